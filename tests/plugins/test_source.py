"""The digest of a plugin's source covers what it is made of."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from dpaudit.plugins import source
from dpaudit.plugins.registry import load_module
from dpaudit.plugins.source import source_digest

CLASS = "class It:\n    pass\n"


def edited(path: Path, value: object) -> bool:
    """Whether a change of a file, which is undone, changes the digest of an object."""
    before, text = source_digest(value), path.read_text()
    assert before is not None
    path.write_text(f"{text}# edited\n")
    after = source_digest(value)
    path.write_text(text)
    assert source_digest(value) == before
    return after != before


def test_a_class_without_a_file_is_known_by_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook, or in `python -c`, where inspect raises OSError."""
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)

    def digest(number: int, *, above: str = "") -> str | None:
        scope = {"__name__": "__main__"}
        body = (
            f"class It:\n  def fit(self, data):\n    return [{number} in {{1, 2}} for _ in data]\n"
        )
        exec(compile(above + body, "<string>", "exec"), scope)
        made: Any = scope["It"]
        return source_digest(made())

    assert digest(1) is not None
    assert digest(1) == digest(1, above="# a line\n")
    assert digest(1) != digest(2)
    assert source_digest(3) is None


def test_a_change_anywhere_in_the_package_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "made_up_package" / "inner"
    inner.mkdir(parents=True)
    for file in (tmp_path / "made_up_package" / "__init__.py", inner / "__init__.py"):
        file.touch()
    (inner / "it.py").write_text(CLASS)
    (inner.parent / "helpers.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    value = importlib.import_module("made_up_package.inner.it").It()
    assert edited(inner / "it.py", value)
    assert edited(inner.parent / "helpers.py", value)
    assert not edited(tmp_path / "other.py", value)
    monkeypatch.setattr(source, "MOST_FILES", 2)  # as of a large one: sizes count
    assert edited(inner.parent / "helpers.py", value)


def test_a_lone_file_counts_with_what_it_imports_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"import os\nfrom near import x\nimport kit.part\n{CLASS}")
    (tmp_path / "near.py").write_text("import far\nx = 1\n")
    (tmp_path / "far.py").write_text("import near\n")
    (tmp_path / "kit").mkdir()
    for name in ("kit/__init__.py", "kit/part.py", "notes.py"):
        (tmp_path / name).touch()
    value = load_module(str(tmp_path / "own.py")).It()
    for name in ("own.py", "near.py", "far.py", "kit/part.py"):
        assert edited(tmp_path / name, value), name
    assert not edited(tmp_path / "notes.py", value)


def test_a_large_package_is_digested_in_seconds() -> None:
    start = time.perf_counter()
    assert source_digest(torch.nn.Linear(1, 1)) is not None
    assert time.perf_counter() - start < 5


def test_what_has_no_source_has_no_digest() -> None:
    assert source_digest(3) is None
