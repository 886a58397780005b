"""The tables of an audit without a generator, checked against one another before any work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SchemaError, SettingsError
from dpaudit.formatting import did_you_mean, listed
from dpaudit.model.column import OTHER, Column, Kind, Unit
from dpaudit.model.dates import TIMESTAMP, dates_of, form_of_dates
from dpaudit.model.encoding import values_of_table
from dpaudit.model.inference import describe_columns, set_aside
from dpaudit.model.schema import Schema
from dpaudit.model.table_files import csv_written, plain_types
from dpaudit.model.tables import IN_MEMORY, fitting, load_schema, load_table
from dpaudit.plugins.protocols import IntArray
from dpaudit.released_data.rows import Keys, row_keys
from dpaudit.results.phrases import PUBLIC_SCHEMA

_FILES: Final = ("train", "synthetic", "holdout")
_LEAST_ROWS = 2
_FEW_DISTINCT = 0.5
"""With a smaller share of distinct rows, tables may be equal by chance, which is a warning."""


@dataclass(frozen=True, kw_only=True)
class ReleasedTables:
    """Canonical tables with one schema.

    Attributes:
        train: The rows that the synthetic table was made from.
        synthetic: The synthetic table.
        holdout: Rows of the same population that it was not made from; None if there are none.
        schema: Their common schema.
        sources: Where they came from.
        warnings: Warnings about them, one sentence each.
        owners: The units of the rows of train and hold-out; None if each row stands for itself.
    """

    train: pd.DataFrame
    synthetic: pd.DataFrame
    holdout: pd.DataFrame | None
    schema: Schema
    sources: ReleasedSources
    warnings: tuple[str, ...] = ()
    owners: Owners | None = None

    @property
    def unit(self) -> str | None:
        """The column of the units; None if each row stands for itself."""
        return None if self.owners is None else self.owners.column


class ReleasedSources(NamedTuple):
    """Where the tables came from.

    Attributes:
        train: A file, or a note that it was in memory.
        synthetic: As `train`.
        holdout: As `train`; None if there is no hold-out.
    """

    train: str
    synthetic: str
    holdout: str | None


class Owners(NamedTuple):
    """The unit of each row, numbered over both tables.

    Attributes:
        column: The column that names it.
        train: The units of the rows of train; shape (n,).
        holdout: The units of the rows of the hold-out, none of which is in train; shape (h,).
    """

    column: str
    train: IntArray
    holdout: IntArray

    @property
    def all(self) -> IntArray:
        """The units of all rows, those of train first."""
        return np.concatenate([self.train, self.holdout])


def owners_of(unit: Unit, train: pd.DataFrame, holdout: pd.DataFrame) -> Owners:
    """The units of train and hold-out.

    Args:
        unit: The unit.
        train: The train table.
        holdout: The hold-out.

    Raises:
        DataError: If the unit's column is missing in a table, or missing in a row, if all rows
            belong to one unit or a unit has too many, or if a unit is in both tables.
    """
    for name, table in (("train", train), ("holdout", holdout)):
        if unit.column not in table:
            raise DataError(
                f"the {name} table lacks the unit's column {unit.column!r}: give the file that "
                "`dpaudit split` wrote"
            )
    both = pd.concat([train[[unit.column]], holdout[[unit.column]]], ignore_index=True)
    if problems := unit.problems(both):
        raise DataError(f"train and holdout: {problems[0]}; correct the tables or the unit")
    codes = unit.codes(both)
    owners = Owners(unit.column, codes[: len(train)], codes[len(train) :])
    shared = np.intersect1d(owners.train, owners.holdout)
    if len(shared):
        raise DataError(
            f"{len(shared):,} units of {unit.column!r} have rows in both train and holdout: deal "
            "units, not rows (`dpaudit split --unit`)"
        )
    return owners


def load_released(
    train: pd.DataFrame | str | Path,
    synthetic: pd.DataFrame | str | Path,
    holdout: pd.DataFrame | str | Path | None = None,
    *,
    schema: Schema | str | Path | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
) -> ReleasedTables:
    """Reads the tables and refuses those that do not fit together.

    Args:
        train: The rows that the synthetic table was made from: a table or a file.
        synthetic: The synthetic table, or its file.
        holdout: Rows of the same population that it was not made from.
        schema: Their schema. By default kinds are inferred from the real tables, categories and
            bounds from all of them; the schema is then marked as inferred.
        unit: The column that names the unit of each row of train and hold-out; that of the schema
            if None. The synthetic table may lack it.
        drop: Columns that are left out of all tables.
        separator: What is between the fields of CSV files, as for `dpaudit.audit_data`.
        encoding: Their encoding, likewise.

    Returns:
        The canonical tables.

    Raises:
        DataError: If a table cannot be read, has other columns, kinds or categories, or has fewer
            than two rows, or if hold-out and train are the same; names every problem.
        SchemaError: If the schema is malformed or cannot be inferred.
        SettingsError: If the schema has another unit, there is no hold-out to deal units to, or
            separator or encoding has no meaning.
    """
    given = {"train": train, "synthetic": synthetic, "holdout": holdout}
    named = {name: table for name, table in given.items() if table is not None}
    files = [Path(table).resolve() for table in named.values() if isinstance(table, str | Path)]
    if len(set(files)) < len(files):
        raise DataError(
            "one file is given twice: train, synthetic and holdout are different tables"
        )
    tables = {}
    with csv_written(_stated_of("train", separator), _stated_of("train", encoding)):
        known = _schema(schema, train)
    for name, table in named.items():
        with csv_written(_stated_of(name, separator), _stated_of(name, encoding)):
            tables[name] = _read(table, known)
    _drop(tables, drop, known)
    owners = _take_units_out(tables, known, None if unit is None else Unit(column=unit))
    for name, table in tables.items():
        if len(table) < _LEAST_ROWS:
            raise DataError(
                f"the {name} table has too few rows ({len(table)}): give at least {_LEAST_ROWS}"
            )
    _check_columns(tables, known)
    _agree_on_types(tables)
    common, notes = _common_schema(tables, known)
    reordered = [name for name, table in tables.items() if list(table.columns) != common.names]
    sources = {
        name: IN_MEMORY if isinstance(table, pd.DataFrame) else str(table)
        for name, table in named.items()
    }
    for name in tables:  # one after another, to release the tables as read
        tables[name] = fitting(tables[name], common, source=f"the {name} table ({sources[name]})")
    keys = {name: row_keys(values_of_table(table, common)) for name, table in tables.items()}
    distinct = {name: len(np.unique(own)) / len(own) for name, own in keys.items()}
    if distinct["train"] >= _FEW_DISTINCT:
        _refuse_train_as_holdout(keys)
    return ReleasedTables(
        train=tables["train"],
        synthetic=tables["synthetic"],
        holdout=tables.get("holdout"),
        schema=common,
        sources=ReleasedSources(sources["train"], sources["synthetic"], sources.get("holdout")),
        warnings=(*notes, *_warnings(keys, distinct, reordered, common, owners)),
        owners=owners,
    )


def _take_units_out(
    tables: dict[str, pd.DataFrame], schema: Schema | None, named: Unit | None
) -> Owners | None:
    """The units of train and hold-out; drops their column from all tables that have it."""
    unit = named if schema is None else schema.with_unit(named).unit
    if unit is None:
        return None
    if "holdout" not in tables:
        raise SettingsError(
            f"an audit by {unit.column} needs `holdout` and `coins`: split the next table with "
            "`dpaudit split --unit` before training"
        )
    owners = owners_of(unit, tables["train"], tables["holdout"])
    if schema is None or unit.column not in schema.names:
        for name, table in tables.items():
            tables[name] = table.drop(columns=unit.column, errors="ignore")
    return owners


def _schema(schema: Schema | str | Path | None, train: pd.DataFrame | str | Path) -> Schema | None:
    if schema is None or isinstance(schema, Schema):
        return schema
    return load_schema(schema, lambda: _read(train, None))


def _read(table: pd.DataFrame | str | Path, schema: Schema | None) -> pd.DataFrame:
    return (
        plain_types(table) if isinstance(table, pd.DataFrame) else load_table(table, schema=schema)
    )


def _stated_of(name: str, stated: str | None) -> str | None:
    """What is stated of one file: "synthetic=;" is of that file alone, ";" of every one."""
    file, equals, value = (stated or "").partition("=")
    if not equals or file not in _FILES:
        return stated
    return value if file == name else None


def _drop(tables: dict[str, pd.DataFrame], drop: Sequence[str], schema: Schema | None) -> None:
    """Leaves columns out of all tables that have them."""
    names = sorted({str(name) for table in tables.values() for name in table.columns})
    for column in drop:
        if column not in names:
            close = did_you_mean(column, names)
            raise DataError(f"`drop`: no table has a column {column!r}{close}")
        if schema is not None and column in schema.names:
            raise DataError(
                f"`drop`: the schema has the column {column!r}: leave it out there, too"
            )
    for name, table in tables.items():
        tables[name] = table.drop(columns=list(drop), errors="ignore")


def _check_columns(tables: dict[str, pd.DataFrame], schema: Schema | None) -> None:
    expected = [str(name) for name in (schema.names if schema else tables["train"].columns)]
    problems = []
    for name, table in tables.items():
        has = [str(column) for column in table.columns]
        problems += [f"the {name} table lacks column {c!r}" for c in expected if c not in has]
        problems += [
            f"the {name} table has column {c!r}, which {'the schema' if schema else 'train'} lacks"
            for c in has
            if c not in expected
        ]
    if problems:
        single = [name for name, table in tables.items() if len(table.columns) == 1 < len(expected)]
        form = f", or name its separator: `separator` {single[0]}=CHARACTER" if single else ""
        raise DataError(
            f"the tables do not fit together: {listed(problems, 5, separator='; ')}; correct "
            f"them{form}"
        )


def _refuse_train_as_holdout(keys: dict[str, Keys]) -> None:
    if "holdout" in keys and np.array_equal(np.sort(keys["train"]), np.sort(keys["holdout"])):
        raise DataError(
            "the holdout table has the rows of train: give rows that the synthetic table was not "
            "made from"
        )


def _common_schema(
    tables: dict[str, pd.DataFrame], known: Schema | None
) -> tuple[Schema, list[str]]:
    """The schema of the real tables, widened by what only the synthetic one has; and notes."""
    real, notes = (known, []) if known is not None else _infer_schema(tables)
    synthetic = tables["synthetic"]
    columns = tuple(_widen(column, synthetic[column.name]) for column in real.columns)
    pairs = zip(real.columns, columns, strict=True)
    if apart := [
        column.name for column in real.columns if _is_written_apart(column, synthetic[column.name])
    ]:
        notes.append(
            f"the synthetic table has numbers for dates, or none of the real tables' values, in "
            f"{listed(apart, 10)}: write these columns alike, or copies may go unseen"
        )
    if new := [column.name for column, wider in pairs if _says_more(wider, column, schema=known)]:
        whose = "the real tables lack" if known is None else "the schema rules out"
        notes.append(f"the synthetic table has values that {whose} in {listed(new, 10)}")
    return replace(real, columns=columns), notes


def _infer_schema(tables: dict[str, pd.DataFrame]) -> tuple[Schema, list[str]]:
    """Infers kinds from the real tables, and sets columns without one aside, in all tables."""
    names = list(tables["train"].columns)
    real = [table[names] for name, table in tables.items() if name != "synthetic"]
    which = "train and holdout tables together" if len(real) > 1 else "train table"
    try:
        columns, problems = describe_columns(*real)  # each may rise where both together do not
    except SchemaError as error:
        raise SchemaError(f"no schema can be read off the {which}: {error}") from None
    for name, table in tables.items():
        tables[name] = table.drop(columns=list(problems))
    notes = [set_aside(problems)] if problems else []
    return Schema(columns=columns, inferred=True), notes


def _agree_on_types(tables: dict[str, pd.DataFrame]) -> None:
    """Makes columns equal that are numbers or dates in all files, but not written alike."""
    for name in tables["train"].columns:
        columns = {key: table[name] for key, table in tables.items() if name in table}
        kinds = {values.dtype.kind in "iuf" for values in columns.values()}
        types = {values.dtype for values in columns.values()}
        forms = {form_of_dates(values) for values in columns.values()}
        if len(types) == 2 and types <= {np.dtype(np.float32), np.dtype(np.float64)}:
            agreed = {key: own.astype(np.float32).astype(float) for key, own in columns.items()}
        elif len(kinds) == 2 and TIMESTAMP not in forms:
            agreed = {key: pd.to_numeric(own, errors="coerce") for key, own in columns.items()}
        elif len(forms) > 1 and None not in forms:
            agreed = {key: dates_of(own) for key, own in columns.items()}
        else:
            continue
        if all(agreed[key].notna().equals(values.notna()) for key, values in columns.items()):
            for key, values in agreed.items():
                tables[key] = tables[key].assign(**{name: values})


def _is_written_apart(column: Column, values: pd.Series[float]) -> bool:
    """Whether synthetic values look like those of the column, but written in another way."""
    if column.date:
        return values.dtype.kind in "iuf" and bool(values.notna().any())
    return not column.kind.numeric and bool((column.codes(values) == OTHER).all())


def _says_more(wider: Column, column: Column, *, schema: Schema | None) -> bool:
    """Whether synthetic values contradict a column; bounds do only if a schema states them."""
    if schema is None:
        wider = replace(wider, lower=column.lower, upper=column.upper)
    return wider != column


def _widen(column: Column, values: pd.Series[float]) -> Column:
    """Extends a column by the categories, bounds and gaps of synthetic values."""
    missing = column.missing or bool(values.isna().any())
    if not column.kind.numeric:
        new = values[column.codes(values) == OTHER].unique().tolist()
        more = [value for value in new if isinstance(value, str | int | float)]
        kind = Kind.CATEGORICAL if more else column.kind
        categories = (*column.categories, *sorted(more, key=str))
        return replace(column, kind=kind, categories=categories, missing=missing)
    try:
        numbers = column.numbers(values)
    except SchemaError:  # of values that are no numbers, which are refused
        return column
    numbers = numbers[np.isfinite(numbers)]
    kind = column.kind if (numbers == np.rint(numbers)).all() else Kind.CONTINUOUS
    low, high = column.bounds
    if len(numbers):
        low, high = min(low, float(numbers.min())), max(high, float(numbers.max()))
    return replace(column, kind=kind, lower=low, upper=high, missing=missing)


def _warnings(
    keys: dict[str, Keys],
    distinct: dict[str, float],
    reordered: list[str],
    schema: Schema,
    owners: Owners | None,
) -> Iterator[str]:
    if schema.inferred:
        yield (
            "no public schema was given: column types, categories and ranges were taken from the "
            f"tables themselves, so values that cannot occur went unnoticed; {PUBLIC_SCHEMA}"
        )
    for name in reordered:
        yield f"the {name} table has its columns in another order: they were sorted"
    for name, share in distinct.items():
        if share < _FEW_DISTINCT:
            rows = len(keys[name])
            yield f"only {share * rows:,.0f} of {rows:,} rows of the {name} table are distinct"
    shared = int(np.isin(keys["holdout"], keys["train"]).sum()) if "holdout" in keys else 0
    if shared:
        yield (
            f"{shared:,} of {len(keys['holdout']):,} hold-out rows are also in train; keep them "
            "in both tables, as the split made them"
        )
    if owners is not None and len(np.unique(owners.all)) == len(owners.all):
        yield f"every {owners.column} has one row, so this equals an audit of rows"
