"""Loads tables with their schemas: from files, from memory, and the sample of a dependency."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SchemaError, SettingsError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import did_you_mean, listed
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.inference import describe_columns, set_aside
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.model.table_files import LOG, plain_types, read_file

SAMPLE = "sample:"
IN_MEMORY = "a table in memory"
SEVERAL: Final = (
    "several tables with links are for audits in two worlds and replays (dpaudit audit, dpaudit "
    "replay): give one table and its schema"
)
TABLE_FILE = "TABLE.csv"
"""Name of the file in commands that repeat an audit of a table in memory."""


class Population(NamedTuple):
    """The number of records of a table, and what a record is.

    Attributes:
        number: Number of records.
        noun: "rows", or "units" in an audit of units.
    """

    number: int
    noun: str


class Table(NamedTuple):
    """The table handed in: canonical, with its schema and where it came from.

    Attributes:
        data: The canonical table.
        schema: Its schema.
        source: The file or sample it was read from, or that it was in memory.
        schema_source: The schema's file, if it was read from one.
        files: The files of several tables, or their names in commands.
    """

    data: pd.DataFrame
    schema: Schema
    source: str
    schema_source: str | None
    files: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The words of a command that name the table and its schema."""
        file = TABLE_FILE if self.source == IN_MEMORY else self.source
        data_words = [word for name in self.files or (file,) for word in ("--data", name)]
        return [*data_words, *self.schema_words]

    @property
    def population(self) -> Population:
        """The number of records of the table: rows, or units."""
        unit = self.schema.unit
        if unit is None:
            return Population(len(self.data), "rows")
        return Population(int(self.data[unit.column].nunique()), "units")

    @property
    def schema_words(self) -> list[str]:
        """The words of a command that name the schema; its links if it is not from a file."""
        file = self.schema_source
        return self.schema.words if file is None else ["--schema", file]


def load(
    data: pd.DataFrame | str | Path,
    schema: Schema | str | Path | None,
    unit: Unit | None = None,
) -> Table:
    """Reads and validates a table.

    Args:
        data: A table, a file, or "sample:NAME".
        schema: A schema, a schema file, or None to infer one, which is then marked as inferred; a
            sample has a public schema of its own.
        unit: The unit of privacy, if the schema does not name it.

    Returns:
        The canonical table and its schema.

    Raises:
        DataError: If the table cannot be read or does not fit.
        SchemaError: If the schema is malformed or cannot be inferred.
        SettingsError: If the schema has another unit, or describes several tables.
    """
    source = IN_MEMORY if isinstance(data, pd.DataFrame) else str(data)

    def read(known: Schema | None) -> pd.DataFrame:
        return (
            plain_types(data) if isinstance(data, pd.DataFrame) else load_table(data, schema=known)
        )

    if schema is None:
        table = read(None)
        if source.startswith(SAMPLE):
            used = _breast_cancer_schema()
        else:
            table, used = _infer_schema(table, source, unit)
    elif isinstance(schema, Schema):
        table, used = read(schema), schema
    else:
        used = load_schema(schema, lambda: read(None))
        table = read(used)
    schema_file = str(schema) if isinstance(schema, str | Path) else None
    if isinstance(used, LinkedTables):
        raise SettingsError(f"{source}: {SEVERAL}")
    used = used.with_unit(unit)
    if used.unit is not None and (problems := used.unit.problems(table)):
        raise DataError(f"{source}: {'; '.join(problems)}; correct the table or the unit")
    return Table(fitting(table, used, source=source), used, source, schema_file)


def require_rows(schema: Schema, method: str) -> None:
    """Refuses a schema with a unit, for a method whose neighbours differ in one row.

    Args:
        schema: The schema.
        method: The method, as the subject of the message.

    Raises:
        SettingsError: If the schema has a unit.
    """
    if schema.unit is not None:
        raise SettingsError(
            f"{method} audits rows, and the unit is {schema.unit.column}: audit it in two worlds, "
            "or leave out the unit"
        )


def _infer_schema(
    table: pd.DataFrame, source: str, unit: Unit | None
) -> tuple[pd.DataFrame, Schema]:
    """Infers a schema of the columns that can be described; the table without the others."""
    described = table if unit is None else table.drop(columns=unit.column, errors="ignore")
    try:
        columns, problems = describe_columns(described, from_file=source != IN_MEMORY)
    except SchemaError as error:
        raise SchemaError(f"{source}: {error}") from None
    if problems:
        LOG.warning("%s: %s", source, set_aside(problems))
    return table.drop(columns=list(problems)), Schema(columns=columns, inferred=True)


def load_table(
    source: str | Path, *, schema: Schema | None = None, unchanged: bool = False
) -> pd.DataFrame:
    """Reads a table.

    Args:
        source: A CSV file with a header (also `.gz`), a Parquet or Excel file, or `sample:NAME`.
        schema: If all categories of a column are text, its values are read as text, even numbers.
        unchanged: Whether the values of a CSV file stay the texts that they are in the file.

    Returns:
        The table as read.

    Raises:
        DataError: If the file does not exist or is not a table.
        SettingsError: If several tables are given.
        MissingExtraError: If reading Parquet or Excel needs a package that is not installed.
    """
    given: object = source
    if isinstance(given, Mapping):
        raise SettingsError(SEVERAL)
    if not isinstance(given, str | Path):
        raise DataError(
            f"the table is a {type(given).__name__}: give a pandas DataFrame, a file or sample:NAME"
        )
    text = str(source)
    if text.startswith(SAMPLE):
        _check_sample(text.removeprefix(SAMPLE))
        return _breast_cancer()
    path = Path(source)
    if not os.path.isfile(path):  # `Path.is_file` raises where a name is too long
        problem = "is a folder, not a file" if os.path.isdir(path) else "does not exist"
        raise DataError(
            f"{path} {problem}; give a CSV, Parquet or Excel file, or sample:breast-cancer"
        )
    table = read_file(path, schema, unchanged=unchanged)
    if table.empty:
        raise DataError(f"{path} has no rows below its header: give a table with records")
    return table


def load_schema(path: str | Path, data: Callable[[], pd.DataFrame]) -> Schema:
    """Reads a schema file: ours, or SDV-style metadata.

    Args:
        path: A JSON file.
        data: Loads the table; called only for SDV metadata, which lacks bounds and categories.

    Returns:
        The schema; `inferred` if anything in it came from the data.

    Raises:
        SchemaError: If the file is missing, is not JSON, or is not a schema.
    """
    try:
        document = parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaError(
            f"schema {path} cannot be read: {io_reason(error)}; give a JSON file of dpaudit or SDV"
        ) from None
    except ValueError as error:
        raise SchemaError(
            f"schema {path} is not JSON: {error}; give a JSON file of dpaudit or SDV"
        ) from None
    if not isinstance(document, dict):
        raise SchemaError(f'schema {path}: expected a JSON object with "columns"')
    try:
        if "links" in document:
            return LinkedTables.from_document(document)
        if isinstance(document.get("tables"), dict) or isinstance(document.get("columns"), dict):
            return Schema.from_sdv(document, data())
        return Schema.from_document(document)
    except SchemaError as error:
        raise SchemaError(f"schema {path}: {error}") from None


def fitting(data: pd.DataFrame, schema: Schema, *, source: str) -> pd.DataFrame:
    """The canonical form of a table that fits its schema.

    Args:
        data: The table as read.
        schema: Its schema.
        source: Name of the table in the message.

    Returns:
        The canonical table.

    Raises:
        DataError: If anything contradicts the schema; names every problem.
    """
    problems = schema.problems(data)
    if problems:
        hint = "correct the table or the schema"
        raise DataError(
            f"{source} does not fit its schema: {listed(problems, 5, separator='; ')}; {hint}"
        )
    return schema.canonical(data)


def data_digest(data: pd.DataFrame) -> str:
    """SHA-256 over the row hashes and column names of a canonical table."""
    texts = {place: _as_text(data.iloc[:, place]) for place in range(data.shape[1])}
    hashed = pd.util.hash_pandas_object(pd.DataFrame(texts), index=False)
    digest = hashlib.sha256(hashed.to_numpy().astype("<u8").tobytes())
    digest.update(json.dumps([str(name) for name in data.columns]).encode())
    return digest.hexdigest()


def _as_text(values: pd.Series[Any]) -> pd.Series[Any]:
    """A column as text; for speed, each distinct number is converted once."""
    kind = values.dtype
    if kind not in (np.dtype(np.float64), np.dtype(np.int64)):
        return values.astype(str)
    codes, distinct = pd.factorize(
        values.to_numpy().view(np.int64)
    )  # as bits, so that -0.0 is not 0.0
    return pd.Series(distinct.view(kind.type)).astype(str).take(codes).reset_index(drop=True)


def _check_sample(name: str) -> None:
    if name != _BREAST_CANCER:
        hint = did_you_mean(name, [_BREAST_CANCER])
        raise DataError(f"no sample {name!r}{hint}; there is {SAMPLE}{_BREAST_CANCER}")


_BREAST_CANCER: Final = "breast-cancer"
"""The only sample."""
_LARGEST: Final = {
    "radius": 50.0,
    "texture": 100.0,
    "perimeter": 400.0,
    "area": 8000.0,
    "smoothness": 1.0,
    "compactness": 4.0,
    "concavity": 4.0,
    "concave points": 1.0,
    "symmetry": 1.0,
    "fractal dimension": 1.0,
}
"""Measurements of a nucleus and their largest values, by definition and not from the records.

Lengths are in pixels of images in which a nucleus has a radius of at most 50; texture is a standard
deviation of 8-bit grey values; the others are ratios.
"""
_ERROR: Final = 0.16
"""Largest standard error of ten nuclei or more, as a share of the range: 1 / (2 sqrt(10))."""
_FORMS: Final = (("mean {}", 1.0), ("{} error", _ERROR), ("worst {}", 1.0))
_LABEL: Final = "benign"


def _breast_cancer() -> pd.DataFrame:
    """The table of scikit-learn, read from its file because the import takes half a second."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None  # a dependency
    assert package.origin is not None
    file = Path(package.origin).with_name("datasets") / "data" / "breast_cancer.csv"
    names = [form.format(measure) for form, _ in _FORMS for measure in _LARGEST]
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    return pd.DataFrame(values, columns=[*names, _LABEL]).astype({_LABEL: np.int64})


def _breast_cancer_schema() -> Schema:
    """Bounds from the definitions of the columns: public, independent of the patients."""
    numbers = tuple(
        Column(name=form.format(measure), kind=Kind.CONTINUOUS, lower=0.0, upper=share * largest)
        for form, share in _FORMS
        for measure, largest in _LARGEST.items()
    )
    label = Column(name=_LABEL, kind=Kind.BINARY, categories=(0, 1))
    return Schema(columns=(*numbers, label), label=_LABEL)
