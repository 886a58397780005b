"""What tables of private generators are good for, beside noise and real data.

Usage: python -m reports.utility.run [TABLE ...] [--data DIR] [--jobs N]   (resumes)

Writes results/TABLE.json after every synthetic table, and the tables of README.md. Every generator
that is installed takes part, at epsilon 1 and 10; one that is not installed is left out and named.
A method of a library takes part where its environment was made (dpaudit env create LIBRARY).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.errors import DpauditError
from dpaudit.plugins.named import library_named, named_generator
from dpaudit.plugins.protocols import Generator
from dpaudit.plugins.registry import GENERATORS, names
from dpaudit.usefulness.experiment import HEADLINE, Measure, Repeat, ScoreName, Setting
from dpaudit.usefulness.report import UtilityScore, summarise
from dpaudit.usefulness.run import EqualRows, UniformRows
from dpaudit.versions import versions
from reports import markdown
from reports.command import Run, StudyParser, start, write_json
from reports.streams import stream_of
from reports.utility.tables import STUDY_TABLES, experiment

TABLES = ("adult", "cervical-cancer")
EPSILONS, DELTA = (1.0, 10.0), 1e-5
QUICK_REPEATS, QUICK_ROWS = 2, 200
LIBRARY_REPEATS = 3
"""A model of such a method takes minutes."""
CONFIDENCE = 0.95
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "pate-gan-marginals-16-bins": ("pate-gan-marginals", {"bins": 16}),
    "marginals-16-bins": ("marginals", {"bins": 16}),
    "deviations": ("marginals", {"tree": "deviations"}),
    "deviations-16-bins": ("marginals", {"tree": "deviations", "bins": 16}),
    "smartnoise-synth:mst-public": ("smartnoise-synth:mst", {"defaults": "public"}),
    "dpmm:aim-small": (
        "dpmm:aim",
        {"defaults": "public", "max_model_size": 1, "rounds": 60, "n_iters": 100},
    ),
}
"""Generators under other settings: finer counts; deviations of classes, where `pate-gan-marginals`
starts, with all of the budget; libraries that take bounds and categories from the schema instead of
paying for them, AIM with a model, rounds and steps that let it end within minutes.
"""
PRIVATE = (
    *("pate-gan", "pate-gan-marginals", "pate-gan-marginals-16-bins"),
    *("marginals", "marginals-16-bins"),
    *("deviations", "deviations-16-bins", "dp-gan"),
    *("original", "updated", "synthcity", "turing", "borealis", "smartnoise"),
)
"""Generators that take a privacy budget."""
OPEN = ("gan", "wgan-gp", "wgan-gp-dp-critic", "pate-g")
"""Generators that take none."""
DEAR = ("synthcity 10",)
"""Left out: a model takes minutes, as this budget pays for many steps."""
REAL, NOISE, CONSTANT = "real", "noise", "constant"
BASELINES = (REAL, NOISE, CONSTANT)
QUICK = (*BASELINES, "pate-gan-marginals 1", "smartnoise 1")


class Task(NamedTuple):
    """One synthetic table to measure.

    Attributes:
        table: Name of the real table.
        source: A baseline, or a generator and its epsilon.
        number: Which repeat.
        folder: Folder of the public tables.
        rows: Synthetic rows, at most.
    """

    table: str
    source: str
    number: int
    folder: Path | None
    rows: int


def sources(table: str) -> Iterator[str]:
    """Baselines, and those of the table or every generator: at both epsilons, DEAR ones not."""
    yield from BASELINES
    if of := STUDY_TABLES[table].sources:
        yield from of
        return
    for name in (*PRIVATE, *STUDY_TABLES[table].libraries):
        for epsilon in EPSILONS:
            if (source := f"{name} {epsilon:g}") not in DEAR:
                yield source
    yield from OPEN


def _is_here(source: str) -> bool:
    name = source.partition(" ")[0]
    if name in BASELINES:
        return True
    if ":" in name:
        library = library_named(name.partition(":")[0])
        return library is not None and library.environment.built is not None
    return VARIANTS.get(name, (name, {}))[0] in names(GENERATORS)


def generator_of(task: Task) -> Generator:
    """The generator of a task."""
    schema = experiment(task.table, task.folder, task.rows).task.schema
    if task.source in (NOISE, CONSTANT):
        return UniformRows(schema) if task.source == NOISE else EqualRows(schema)
    name, _, epsilon = task.source.partition(" ")
    parameters: dict[str, Any] = {"epsilon": float(epsilon)} if epsilon else {}
    if epsilon and ":" not in name:  # methods of libraries have a delta of their own
        parameters["delta"] = DELTA
    name, settings = VARIANTS.get(name, (name, {}))
    parameters |= settings
    return named_generator(name, parameters, {"schema": schema}).generator


def measured(task: Task) -> dict[str, Any]:
    """Measures one synthetic table; a failure is a result."""
    begun = time.perf_counter()
    of = experiment(task.table, task.folder, task.rows)
    try:
        if task.source == REAL:
            found = of.real
        else:
            found = of.repeat(generator_of(task), source=stream_of(task.source), number=task.number)
    except DpauditError as error:
        return {"error": str(error)}
    seconds = round(time.perf_counter() - begun, 1)
    scores = [[*name, round(value, 5)] for name, value in found.scores.items()]
    return {"seconds": seconds, "guesses": found.guesses, "scores": scores}


def repeat_of(row: dict[str, Any]) -> Repeat:
    """What was measured, as it was before it was written."""
    return Repeat(
        {
            ScoreName(Measure(measure), setting and Setting(setting), classifier): value
            for measure, setting, classifier, value in row["scores"]
        },
        row["guesses"],
    )


class Row(NamedTuple):
    """One source of tables on a page: AUROC and AUPRC of setting B, means over classifiers."""

    source: str
    tables: int
    failed: int
    auroc: UtilityScore
    auprc: UtilityScore
    ranking: UtilityScore


def rows_of(table: str, found: dict[str, dict[str, dict[str, Any]]]) -> Iterator[Row]:
    """Summaries of every source that has two tables, where noise has."""
    good = {
        source: [repeat_of(row) for row in repeats.values() if "error" not in row]
        for source, repeats in found.items()
    }
    if len(good.get(NOISE, [])) < 2 or not good.get(REAL) or not good.get(CONSTANT):
        return
    for source in sources(table):
        repeats = good.get(source, [])
        if source in (REAL, CONSTANT) or len(repeats) < 2:
            continue
        scores = {
            one.name: one
            for one in summarise(
                repeats,
                noise=good[NOISE],
                constant=good[CONSTANT][0],
                real=good[REAL][0],
                confidence=CONFIDENCE,
            )
        }
        yield Row(
            source,
            len(repeats),
            len(found[source]) - len(repeats),
            scores[HEADLINE],
            scores[HEADLINE._replace(measure=Measure.AUPRC)],
            scores[ScoreName(Measure.RANKING)],
        )


HEADS = (
    *(
        "generator and epsilon",
        "tables",
        "AUROC, mean",
        "95 % interval",
        "best",
        "published best of 25",
    ),
    *("AUPRC, mean", "ranking agreement", "against noise", "failed"),
)


def page(results: dict[str, dict[str, dict[str, dict[str, Any]]]]) -> str:
    """The results as Markdown, a table for each real table."""
    parts = []
    for table, found in results.items():
        rows = list(rows_of(table, found))
        if not rows:
            continue
        published = STUDY_TABLES[table]
        real = rows[0].auroc.real
        beside = markdown.number(published.published_real, 3)
        cells = [_cells(row, published.published) for row in rows]
        parts.append(
            f"\n### {table}\n\nSetting A: {markdown.number(real, 3)} (published {beside}).\n\n"
            + markdown.table(HEADS, cells)
        )
    return "".join(parts)


def _cells(row: Row, published: Any) -> list[object]:
    name, _, epsilon = row.source.partition(" ")
    low, high = row.auroc.interval
    beats = (
        ""
        if row.source == NOISE
        else "better"
        if row.auroc.beats_noise
        else ("not distinguishable from noise")
    )
    return [
        row.source,
        row.tables,
        markdown.number(row.auroc.mean, 3),
        f"{low:.3f} to {high:.3f}",
        markdown.number(row.auroc.best, 3),
        markdown.number(published.get(name) if epsilon == "1" else None, 3),
        markdown.number(row.auprc.mean, 3),
        markdown.number(row.ranking.mean, 2),
        beats or "–",
        row.failed,
    ]


def kept(folder: Path) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """What was measured so far: rows by table, source and number of the repeat."""
    paths = {table: folder / f"{table}.json" for table in STUDY_TABLES}
    return {
        table: json.loads(path.read_text())["tables"] if path.exists() else {}
        for table, path in paths.items()
    }


def tasks_of(run: Run, results: dict[str, dict[str, dict[str, Any]]]) -> list[Task]:
    """The tables that the results do not hold yet, first repeats first."""
    wanted = [
        Task(table, source, number, run.data, QUICK_ROWS if run.quick else STUDY_TABLES[table].rows)
        for table in run.parts
        for source in (QUICK if run.quick else sources(table))
        for number in range(_repeats(table, source, quick=run.quick))
        if str(number) not in results[table].get(source, {}) and _is_here(source)
    ]
    return sorted(wanted, key=lambda task: task.number)


def _repeats(table: str, source: str, *, quick: bool) -> int:
    if source in (REAL, CONSTANT):
        return 1
    of = QUICK_REPEATS if quick else STUDY_TABLES[table].repeats
    return min(of, LIBRARY_REPEATS) if ":" in source else of


def main(given: Sequence[str] | None = None) -> None:
    """Measures what the results lack."""
    parser = StudyParser(__file__, __doc__, parts=tuple(STUDY_TABLES), tables=TABLES, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    of_all = dict.fromkeys(source for table in run.parts for source in sources(table))
    absent = [source for source in of_all if not _is_here(source)]
    print(f"not installed, left out: {', '.join(absent) or 'none'}", flush=True)
    results = kept(run.out)
    tasks = tasks_of(run, results)
    # New processes: threads of BLAS do not survive a fork.
    with ProcessPoolExecutor(run.jobs, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(measured, task): task for task in tasks}
        for done, future in enumerate(as_completed(waiting), start=1):
            task, row = waiting[future], future.result()
            results[task.table].setdefault(task.source, {})[str(task.number)] = row
            write_json(
                run.out / f"{task.table}.json",
                {"versions": versions(), "tables": results[task.table]},
                indent=0,
            )
            if run.is_whole:
                markdown.replace_table(run.home / "README.md", page(results))
            said = row.get("error") or f"{row['seconds']} s"
            print(f"{done}/{len(tasks)} {task.table} {task.source}: {said}", flush=True)
    if not run.is_whole:
        print(page({table: results[table] for table in run.parts}))


if __name__ == "__main__":
    start(main)
