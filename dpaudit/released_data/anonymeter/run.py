"""Singling out, linkability and inference by anonymeter 1.1.0, in a process of its own.

Giomi et al. 2023 attack train records and records of a hold-out with the same synthetic table: an
attack that succeeds on both uses facts of the population. The library needs an older numpy than
dpaudit, so it has a pinned environment (`dpaudit env create anonymeter`) and exchanges files and
JSON with dpaudit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import AttackError, DataError, RegistryError
from dpaudit.external.environments import BuiltEnvironment, Environment
from dpaudit.external.session import WorkerError, WorkerProcess
from dpaudit.model.column import MISSING
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema

ENVIRONMENT: Final = Environment(
    name="anonymeter", pins=Path(__file__).with_name("pins.txt"), pythons=("3.11", "3.12")
)
"""The environment of anonymeter."""
_SCRIPT: Final = Path(__file__).with_name("script.py")
MOST_ROWS: Final = 50_000
"""Largest number of records of each table passed to the library."""
_MOST_ATTACKS: Final = 500
_LEAST_ATTACKS: Final = 10
_SECONDS: Final = 3600.0


def require_environment() -> BuiltEnvironment:
    """The built environment of anonymeter.

    Raises:
        RegistryError: If it has not been built; the message says how.
    """
    built = ENVIRONMENT.built
    if built is None:
        raise RegistryError(
            f"anonymeter needs its environment, which is not there yet; run: dpaudit env create "
            f"{ENVIRONMENT.name}"
        )
    return built


class AnonymeterFinding(NamedTuple):
    """The result of one anonymeter attack; a risk is not a bound on epsilon.

    Attributes:
        kind: "singling out, 1 column", "linkability", "inference", and so on.
        secret: The column whose values were guessed; None for other attacks.
        attacks: How often each table was attacked.
        train: Successes on train records.
        holdout: Successes on hold-out records, which were not trained on.
        baseline: Successes of random guessing.
        risk: Its privacy risk: (train - hold-out)/(1 - hold-out) of the rates, at least 0.
        low: Lower end of its confidence interval, by the normal approximation.
        high: Upper end.
        notes: Its warnings.
    """

    kind: str
    secret: str | None
    attacks: int
    train: int
    holdout: int
    baseline: int
    risk: float
    low: float
    high: float
    notes: tuple[str, ...]


class _PlainTable(NamedTuple):
    """A table in anonymeter's form, and the columns that stand for each original column."""

    table: pd.DataFrame
    parts: Mapping[str, list[str]]
    numeric: list[str]


def run_anonymeter(
    train: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame,
    schema: Schema,
    *,
    secrets: Sequence[str],
    rng: np.random.Generator,
    confidence: float,
) -> tuple[AnonymeterFinding, ...]:
    """Runs all attacks of the library.

    Repeated records are left out, and train and hold-out are cut to equal sizes, because the
    library corrects for unequal sizes by counting queries, not successes.

    Args:
        train: The train table, canonical.
        synthetic: The synthetic table, canonical.
        holdout: The hold-out, canonical.
        schema: Their schema.
        secrets: Columns whose values are guessed.
        rng: Draws the records and the seed of the library.
        confidence: Confidence of each interval by itself.

    Returns:
        A finding for each attack.

    Raises:
        RegistryError: If anonymeter's environment has not been made.
        DataError: If train or hold-out have too few distinct records.
        AttackError: If anonymeter fails.
    """
    built = require_environment()
    plain = {
        name: _plain_table(table, schema)
        for name, table in (("train", train), ("synthetic", synthetic), ("holdout", holdout))
    }
    rows = min(MOST_ROWS, *(len(plain[name].table) for name in ("train", "holdout")))
    attacks = min(_MOST_ATTACKS, rows, len(plain["synthetic"].table))
    if attacks < _LEAST_ATTACKS:
        raise DataError(
            f"anonymeter attacks distinct records, and there are {attacks}: give at least "
            f"{_LEAST_ATTACKS} of each table, or leave anonymeter out"
        )
    with tempfile.TemporaryDirectory(prefix="dpaudit-anonymeter-") as folder:
        for name, (table, _, _) in plain.items():
            most = MOST_ROWS if name == "synthetic" else rows
            drawn = table.iloc[rng.permutation(len(table))[:most]]
            drawn.to_csv(Path(folder) / f"{name}.csv", index=False)
        _, parts, numeric = plain["train"]
        shuffled = [schema.names[place] for place in rng.permutation(len(schema.names))]
        halves = [shuffled[0::2], shuffled[1::2]]
        request = {
            **{name: f"{name}.csv" for name in plain},
            "numeric": numeric,
            "halves": [[part for name in half for part in parts[name]] for half in halves],
            "secrets": [
                {"name": name, "columns": parts[name]} for name in secrets if len(parts) > 1
            ],
            "attacks": attacks,
            "confidence": confidence,
            "seed": int(rng.integers(2**32)),
        }
        return _ask(built, request, Path(folder))


def _ask(
    built: BuiltEnvironment, request: Mapping[str, Any], folder: Path
) -> tuple[AnonymeterFinding, ...]:
    command = [str(built.python), "-I", str(_SCRIPT)]
    try:
        process = WorkerProcess(command, folder=folder)
        try:
            findings = process.ask(request, seconds=_SECONDS)["findings"]
        finally:
            process.end()
        return tuple(
            AnonymeterFinding(**{**row, "notes": tuple(map(str, row["notes"]))}) for row in findings
        )
    except (WorkerError, KeyError, TypeError) as error:
        raise AttackError(f"anonymeter in {built.folder} fails: {error}") from None


def _plain_table(table: pd.DataFrame, schema: Schema) -> _PlainTable:
    """Distinct records: numbers from the lower bound upwards, codes of categories as text.

    The library counts every negative guess of a number as right and puts a record with a missing
    number infinitely far away. So numbers start at 0, and a missing one becomes the middle of the
    bounds, with a column that marks it.
    """
    cells: dict[str, Any] = {}
    parts: dict[str, list[str]] = {}
    numeric = []
    for place, (column, values) in enumerate(
        zip(schema.columns, values_of_table(table, schema).T, strict=True)
    ):
        name = f"c{place}"
        parts[column.name] = [name]
        if not column.kind.numeric:
            codes = values.astype(np.int64)
            cells[name] = np.where(codes == MISSING, "missing", np.char.add("k", codes.astype(str)))
            continue
        numeric.append(name)
        lower, upper = column.bounds
        missing = np.isnan(values)
        cells[name] = np.where(missing, (upper - lower) / 2.0, values - lower)
        if column.missing:
            parts[column.name].append(f"{name}m")
            cells[f"{name}m"] = np.where(missing, "missing", "there")
    return _PlainTable(pd.DataFrame(cells).drop_duplicates(), parts, numeric)
