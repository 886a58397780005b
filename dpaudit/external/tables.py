"""Tables that go to a worker and come back from it, as CSV or Arrow files."""

from __future__ import annotations

import io
import os
import stat
import warnings
from pathlib import Path
from typing import Any, Final

import pandas as pd

from dpaudit.errors import DataError
from dpaudit.external.messages import ARROW, WorkerError
from dpaudit.formatting import error_line
from dpaudit.model.schema import Schema

MOST_BYTES: Final = 2**31
"""Of a file that a worker writes."""


def write_table(table: pd.DataFrame, path: Path, *, form: str) -> None:
    """Writes a table for a worker.

    CSV is comma-separated UTF-8 with a header; numbers are as short as they can be read back
    exactly, missing values empty.

    Args:
        table: The table, canonical.
        path: Where to.
        form: "csv" or "arrow".

    Raises:
        OSError: If it cannot be written.
    """
    if form == ARROW:
        table.to_feather(path)
    else:
        path.write_bytes(table.to_csv(index=False).encode())


def read_table(path: Path, schema: Schema, *, form: str) -> pd.DataFrame:
    """Reads what a worker wrote; whether it fits the schema is for the game to say.

    Args:
        path: The file that the worker was to write.
        schema: Which columns hold text.
        form: "csv" or "arrow".

    Returns:
        The table as written.

    Raises:
        WorkerError: If there is no file, it is no plain file of its own, it is too large, or it is
            no such table.
    """
    content = _content(path)
    try:
        return _arrow(content) if form == ARROW else _csv(content, schema)
    except Exception as error:
        what = "an Arrow file" if form == ARROW else "a CSV table"
        raise WorkerError(f"the worker's output is not {what}: {error_line(error)}") from error


def _content(path: Path) -> bytes:
    """The bytes of a plain file without other names: no link, no device, nothing that blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise WorkerError("the worker said that it was done but wrote no output") from None
    except OSError as error:
        raise WorkerError(f"the worker's output cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise WorkerError("the worker's output is no plain file of its own")
        if found.st_size > MOST_BYTES:
            raise WorkerError(f"the worker's output has {found.st_size} bytes, over {MOST_BYTES}")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _arrow(content: bytes) -> pd.DataFrame:
    table: pd.DataFrame = pd.read_feather(io.BytesIO(content))
    return table


def _csv(content: bytes, schema: Schema) -> pd.DataFrame:
    text = dict.fromkeys(schema.text_columns, "object")
    options: dict[str, Any] = {"encoding": "utf-8", "keep_default_na": False, "na_values": [""]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # the game judges the values
        table: pd.DataFrame = pd.read_csv(
            io.BytesIO(content), dtype=text, index_col=False, **options
        )
    if not len(table.columns):
        raise DataError("it has no columns")
    return table
