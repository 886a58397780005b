"""Seconds for the features of 2,000 synthetic tables: one by one against a stack at once.

Usage: python benchmarks/features.py [--quick] [--json]   (half a minute with --quick)

Tables of the published average-case audit (686 x 29, all continuous), of the same size with every
kind of column and a fifth of the values missing, and of its worst-case audit (4 x 3). One thread,
CPU time, the median of interleaved rounds in one process, scaled to 2,000 tables. One by one means
`features` of a DataFrame, as a trial takes them; a stack is given as an array. The values are drawn
at random, because the time depends only on the shape.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd
from timing import interleaved

from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BatchAttack, FloatArray, GameView
from dpaudit.versions import versions
from dpaudit_attacks.groundhog import Correlation, Ensemble, Histogram, Naive
from dpaudit_attacks.queries import AbsoluteQueries, TargetQueries

TABLES: Final = 2000
"""Number of tables that the printed seconds are for."""
ROWS, COLUMNS = 686, 29
KINDS = (
    Column(name="continuous", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
    Column(name="gaps", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=True),
    Column(name="integer", kind=Kind.INTEGER, lower=0, upper=90, missing=True),
    Column(name="binary", kind=Kind.BINARY, categories=(0, 1)),
    Column(name="categorical", kind=Kind.CATEGORICAL, categories=tuple("abcd"), missing=True),
)
BATCH_ATTACKS: dict[str, BatchAttack] = {
    "naive": Naive(),
    "histogram": Histogram(),
    "correlation": Correlation(),
    "ensemble": Ensemble(),
    "query-target": TargetQueries(),
}


def schema_of(kinds: tuple[Column, ...], columns: int) -> Schema:
    """A schema of so many columns, of each kind in turn."""
    taken = islice(cycle(kinds), columns)
    return Schema(columns=tuple(replace(kind, name=f"x{i}") for i, kind in enumerate(taken)))


def drawn(schema: Schema, tables: int, rows: int) -> FloatArray:
    """Random values [tables, rows, d]."""
    rng = np.random.default_rng(0)
    parts = []
    for column in schema.columns:
        if column.kind.numeric:
            lower, upper = column.bounds
            numbers = lower + (upper - lower) * rng.random((tables, rows))
            numbers = np.rint(numbers) if column.kind is Kind.INTEGER else numbers
            absent = rng.random((tables, rows)) < 0.2 * column.missing
            parts.append(np.where(absent, np.nan, numbers))
        else:
            codes = rng.integers(-int(column.missing), len(column.categories), (tables, rows))
            parts.append(codes.astype(np.float64))
    return np.stack(parts, axis=-1)


def one_by_one(attack: BatchAttack, tables: list[pd.DataFrame], game: GameView) -> None:
    """Computes the features of each table."""
    for table in tables:
        attack.features(table, game)


def measure(
    schema: Schema, rows: int, attacks: dict[str, BatchAttack], *, tables: int, repeats: int
) -> dict[str, Any]:
    """Measures both ways for each attack, interleaved.

    Args:
        schema: The schema of the tables.
        rows: Number of rows of each table.
        attacks: The attacks, by name.
        tables: How many tables are timed.
        repeats: How often each is timed.
    """
    values = drawn(schema, tables, rows)
    frames = [table_of(one, schema) for one in values]
    game = GameView(
        schema=schema,
        others=frames[0],
        target=frames[0].iloc[:1],
        n_rows=rows,
        neighbours=Neighbours.ADD_REMOVE,
    )
    runs: dict[tuple[str, str], Callable[[], object]] = {}
    for name, attack in attacks.items():
        runs[name, "features"] = partial(one_by_one, attack, frames, game)
        runs[name, "features_many"] = partial(attack.features_many, values, game)
        attack.features_many(values[:2], game)  # imports, caches
    times = interleaved(runs, repeats=repeats, warm_up=False)
    taken = {key: median(each) * TABLES / tables for key, each in times.items()}
    result: dict[str, Any] = {}
    for name in attacks:
        alone, many = taken[name, "features"], taken[name, "features_many"]
        result[name] = {"features": alone, "features_many": many, "ratio": alone / many}
    return result


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="200 tables, half a minute")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    arguments = parser.parse_args()
    size = {"tables": 200, "repeats": 3} if arguments.quick else {"tables": TABLES, "repeats": 5}
    published = schema_of(KINDS[:1], COLUMNS)
    mixed = schema_of(KINDS, COLUMNS)
    worst = schema_of(KINDS[3:4], 3)
    every = BATCH_ATTACKS | {"query-all": AbsoluteQueries()}
    result = {
        f"{ROWS} x {COLUMNS} continuous": measure(published, ROWS, BATCH_ATTACKS, **size),
        f"{ROWS} x {COLUMNS} mixed": measure(mixed, ROWS, BATCH_ATTACKS, **size),
        "4 x 3 binary": measure(worst, 4, every, **size),
    }
    if arguments.json:
        document = {
            "tables": TABLES,
            "seconds": result,
            "timed_tables": size["tables"],
            "repeats": size["repeats"],
            "versions": versions(),
        }
        print(json.dumps(document, indent=2))
        return
    for shape, attacks in result.items():
        print(f"seconds for {TABLES} tables, {shape}: one by one, a stack at once, their ratio")
        for name, found in attacks.items():
            both = f"{found['features']:8.3f}  {found['features_many']:8.3f}"
            print(f"  {name:<12}  {both}  {found['ratio']:6.1f}")


if __name__ == "__main__":
    main()
