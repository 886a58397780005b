"""Synthetic tables of Cervical Cancer, measured in processes and kept one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.errors import DpauditError
from dpaudit.plugins.named import named_generator
from dpaudit.usefulness.experiment import MEAN, Measure, Repeat, Setting
from dpaudit.versions import versions
from reports.command import Run, write_json
from reports.streams import stream_of
from reports.utility.tables import experiment

Rows = dict[str, dict[str, dict[str, Any]]]
"""What was measured, by source and by number of the repeat."""
REAL = "real"
"""The source whose tables are the real one: setting A."""


class Source(NamedTuple):
    """Where tables come from.

    Attributes:
        name: Names the source, and its random streams by `stream_of`.
        generator: Its name for the registry; unused of `REAL`.
        parameters: Its parameters.
    """

    name: str
    generator: str = ""
    parameters: Mapping[str, Any] = {}


class TableTask(NamedTuple):
    """One synthetic table to measure.

    Attributes:
        source: Where it comes from.
        number: Which repeat.
        folder: Folder of the public tables.
        rows: Synthetic rows that classifiers learn from.
    """

    source: Source
    number: int
    folder: Path | None
    rows: int


def measured(task: TableTask) -> dict[str, Any]:
    """Measures one table; a failure is a result.

    Returns:
        `seconds`, `guesses`, `auroc` by setting and classifier, and the mean `auprc` of real test
        rows; or `error`.
    """
    begun = time.process_time()
    of = experiment("cervical", task.folder, task.rows)
    try:
        found = of.real if task.source.name == REAL else _repeat(task)
    except DpauditError as error:
        return {"error": str(error)}
    row: dict[str, Any] = {
        "seconds": round(time.process_time() - begun, 1),
        "guesses": found.guesses,
        "auroc": {},
    }
    for name, value in found.scores.items():
        if name.measure is Measure.AUROC and name.setting is not None:
            row["auroc"].setdefault(name.setting.value, {})[name.classifier] = round(value, 5)
        elif name.measure is Measure.AUPRC and name.classifier == MEAN:
            row["auprc"] = round(value, 5)
    return row


def _repeat(task: TableTask) -> Repeat:
    of = experiment("cervical", task.folder, task.rows)
    source = task.source
    named = named_generator(source.generator, source.parameters, {"schema": of.task.schema})
    return of.repeat(named.generator, source=stream_of(source.name), number=task.number)


def complete(
    run: Run,
    file: str,
    sources: Sequence[Source],
    *,
    repeats: int,
    rows: int,
) -> Rows:
    """Measures what a file of results lacks, first repeats first; the same call resumes.

    Args:
        run: What was asked for.
        file: Name of the file, which is written after every table.
        sources: Where tables come from.
        repeats: Tables of each source; of `REAL` there is one.
        rows: Synthetic rows that classifiers learn from.

    Returns:
        All results.

    Raises:
        DataError: If the public table is not there, or is another one.
        OSError: If the file cannot be written.
    """
    path = run.out / file
    found: Rows = json.loads(path.read_text())["repeats"] if path.exists() else {}
    experiment("cervical", run.data, rows)  # before any process starts
    tasks = [
        TableTask(source, number, run.data, rows)
        for number in range(repeats)
        for source in sources
        if (number == 0 or source.name != REAL) and str(number) not in found.get(source.name, {})
    ]
    # New processes: threads of BLAS do not survive a fork.
    with ProcessPoolExecutor(run.jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(measured, task): task for task in tasks}
        for done, future in enumerate(as_completed(waiting), start=1):
            task, row = waiting[future], future.result()
            found.setdefault(task.source.name, {})[str(task.number)] = row
            ordered = {one.name: found[one.name] for one in sources if one.name in found}
            write_json(path, {"versions": versions(), "repeats": ordered}, indent=0)
            said = row.get("error") or f"{row['seconds']} s of CPU"
            print(f"{done}/{len(tasks)} {task.source.name}: {said}", flush=True)
    return found


def values(rows: Mapping[str, Mapping[str, Any]], setting: Setting, classifier: str) -> list[float]:
    """The AUROC of every repeat that did not fail."""
    return [row["auroc"][setting][classifier] for row in rows.values() if "error" not in row]
