"""The synthetic tables that utility is measured on: each is kept as soon as it was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.errors import DpauditError, RegistryError, RunFolderError, TrialError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.formatting import clipped
from dpaudit.game.store import PRIVATE_FILE, changed_keys
from dpaudit.plugins.protocols import FloatArray, Generator
from dpaudit.usefulness.experiment import HEADLINE, Experiment, Measure

_LONGEST = 60


class TableScores(NamedTuple):
    """What was measured of one table: means over classifiers, on real test rows."""

    auroc: float
    auprc: float


class MeasuredTables(NamedTuple):
    """What was measured of one generator.

    Attributes:
        scores: Of each table.
        failures: Why models failed, one line each; no score is of them.
    """

    scores: tuple[TableScores, ...]
    failures: tuple[str, ...] = ()

    def values(self, name: str) -> FloatArray:
        """One of the scores of every table."""
        return np.array([getattr(one, name) for one in self.scores])


def measure_tables(
    generator: Generator,
    experiment: Experiment,
    *,
    source: str,
    repeats: int,
    file: Path,
    specification: Mapping[str, Any],
) -> MeasuredTables:
    """Measures tables of a generator, or those that a file does not have yet.

    Args:
        generator: The generator.
        experiment: The experiment.
        source: Names its random streams.
        repeats: How many models, each measured by one table.
        file: Where scores are kept; its folder exists.
        specification: What decides every number, as JSON; a file belongs to one.

    Returns:
        What was measured, of two tables at least.

    Raises:
        RunFolderError: If the file is of another specification, damaged, or cannot be written.
        DpauditError: If the first model fails, or all but one do.
    """
    kept = _kept(file, specification)
    failures = []
    for number in range(repeats):
        if str(number) in kept:
            continue
        try:
            found = experiment.repeat(generator, source=source, number=number).scores
        except DpauditError as error:
            if number == 0:
                raise RegistryError(f"its first model fails: {error}") from error
            failures.append(str(error))
            continue
        auprc = HEADLINE._replace(measure=Measure.AUPRC)
        kept[str(number)] = TableScores(found[HEADLINE], found[auprc])
        document = {"specification": specification, "tables": kept}
        try:
            write_whole(file, json.dumps(document, indent=1) + "\n", mode=PRIVATE_FILE)
        except OSError as error:
            raise RunFolderError(
                f"{file} cannot be written: {io_reason(error)}; fix that and run the same command "
                "again"
            ) from error
    if len(kept) < 2:
        raise TrialError(f"{len(failures)} of {repeats} models failed: {failures[0]}")
    return MeasuredTables(tuple(kept.values()), tuple(failures))


def _kept(file: Path, specification: Mapping[str, Any]) -> dict[str, TableScores]:
    """The scores that a file has.

    Raises:
        RunFolderError: If it is of another specification, or damaged.
    """
    if not file.exists():
        return {}
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
        there = document["specification"]
        kept = {number: TableScores(*map(float, one)) for number, one in document["tables"].items()}
        changed = changed_keys(there, json.loads(json.dumps(specification)))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunFolderError(
            f"{file} cannot be read ({type(error).__name__}): delete it, and it is measured again"
        ) from error
    if changed:
        key = changed[0]
        shown = (clipped(json.dumps(of.get(key)), _LONGEST) for of in (there, specification))
        raise RunFolderError(
            f"{file} holds another measurement: {key} is {' there and '.join(shown)} here; give "
            "another `out`"
        )
    return kept
