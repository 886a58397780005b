"""Notebooks of the documentation, run in a Jupyter kernel.

`python tests/support/notebooks.py examples/notebook/own_gan.ipynb` runs one and stores what its
cells print and draw.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

_PROGRESS = re.compile(r"((null control|positive control|shadow models): \d+ of \d+\n?)+")


def executed(notebook: Any, folder: Path) -> Any:
    """A notebook after all of its cells were run in a folder.

    Raises:
        CellExecutionError: If a cell raises.
    """
    place = {"metadata": {"path": str(folder)}}
    return NotebookClient(notebook, timeout=600, record_timing=False, resources=place).execute()


def text_of(output: Any) -> str:
    """What an output says where no markup is shown."""
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return str(text)


def is_progress(output: Any) -> bool:
    """Whether an output is the progress of an audit."""
    return _PROGRESS.fullmatch(text_of(output)) is not None


def _store(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(nbformat.read(path, as_version=4), Path(folder))
    nbformat.write(notebook, path)


if __name__ == "__main__":
    _store(Path(sys.argv[1]))
