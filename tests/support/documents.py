"""What a command prints as JSON against the type of the record that it found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from dpaudit.results.document import Document, document_schema


def read_document(kind: type[Document], text: str) -> Any:
    """The document that a text holds, which is one of a record of that type and is read as it."""
    document = json.loads(text)
    jsonschema.validate(document, document_schema(kind, title="a test"))
    assert next(iter(document)) == "schema_version"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "written.json"
        file.write_text(text, encoding="utf-8")
        assert kind.load(file).to_document() == document
    return document
