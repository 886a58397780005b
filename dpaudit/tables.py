"""Reads tables: CSV, Parquet, and the samples that come with a dependency."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dpaudit.errors import DataError, MissingExtraError, SchemaError
from dpaudit.inference import schema_from_sdv
from dpaudit.registry import did_you_mean
from dpaudit.schema import Schema

SAMPLE = "sample:"
MISSING_MARKS = ["?"]
"""Read as missing besides what pandas takes for missing: empty, NA, NaN, null, None, ..."""


def load_table(source: str | Path, *, schema: Schema | None = None) -> pd.DataFrame:
    """Reads a table.

    Args:
        source: A CSV file (`.csv`, also `.gz`), a Parquet file, or `sample:NAME`.
        schema: Columns whose categories are all text are read as text, whatever they look like.

    Returns:
        The table as read.

    Raises:
        DataError: If it does not exist or is not a table.
        MissingExtraError: If reading Parquet needs a package that is not installed.
    """
    text = str(source)
    if text.startswith(SAMPLE):
        return _sample(text.removeprefix(SAMPLE))
    path = Path(source)
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {what}; give a CSV or Parquet file, or sample:breast-cancer")
    name = path.name.lower()
    table = _parquet(path) if name.endswith((".parquet", ".pq")) else _csv(path, schema)
    if table.empty:
        raise DataError(f"{path} has no rows below its header")
    return table


def load_schema(path: str | Path, data: Callable[[], pd.DataFrame]) -> Schema:
    """Reads a schema file: ours, or SDV-style metadata.

    Args:
        path: A JSON file.
        data: Loads the table; called only for SDV metadata, which lack bounds and categories.

    Returns:
        The schema; `inferred` if anything in it came from the data.

    Raises:
        SchemaError: If the file is missing, is not JSON, or is not a schema.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(f"schema {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SchemaError(f"schema {path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SchemaError(f"schema {path}: expected a JSON object with columns")
    try:
        if "tables" in document or isinstance(document.get("columns"), dict):
            return schema_from_sdv(document, data())
        return Schema.from_json(document)
    except SchemaError as error:
        raise SchemaError(f"schema {path}: {error}") from None


def fitting(data: pd.DataFrame, schema: Schema, *, source: str) -> pd.DataFrame:
    """The canonical form of a table that fits its schema.

    Args:
        data: The table as read.
        schema: Its schema.
        source: Named in the message.

    Returns:
        The canonical table.

    Raises:
        DataError: If anything contradicts the schema; names every problem.
    """
    problems = schema.problems(data)
    if problems:
        hint = "mend the table or the schema"
        raise DataError(f"{source} does not fit its schema: {'; '.join(problems)}; {hint}")
    return schema.canonical(data)


def _csv(path: Path, schema: Schema | None) -> pd.DataFrame:
    text_columns = {
        column.name: "object"
        for column in (schema.columns if schema else ())
        if column.categories and all(isinstance(value, str) for value in column.categories)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # the schema judges the values
            table = pd.read_csv(
                path, na_values=MISSING_MARKS, dtype=text_columns, skipinitialspace=True
            )
    except (ValueError, OSError, EOFError) as error:  # ParserError, UnicodeDecodeError, gzip
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is not a CSV table: {reason}") from None
    if len(table.columns) == 1 and "Unnamed" in str(table.columns[0]):
        raise DataError(f"{path} is not a CSV table: its header names no columns")
    return table


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise MissingExtraError("reading Parquet", "pyarrow", "parquet") from None
    except (ValueError, OSError) as error:  # pyarrow's ArrowInvalid is a ValueError
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is not a Parquet table: {reason}") from None


def _breast_cancer() -> pd.DataFrame:
    from sklearn.datasets import load_breast_cancer

    table: pd.DataFrame = load_breast_cancer(as_frame=True).frame
    return table.rename(columns={"target": "benign"})


_SAMPLES: dict[str, Callable[[], pd.DataFrame]] = {"breast-cancer": _breast_cancer}


def _sample(name: str) -> pd.DataFrame:
    if name not in _SAMPLES:
        known = ", ".join(f"{SAMPLE}{key}" for key in _SAMPLES)
        raise DataError(f"no sample {name!r}{did_you_mean(name, list(_SAMPLES))}; there is {known}")
    return _SAMPLES[name]()
