"""Runs a frontier: an audit and a measurement of utility for every generator and epsilon."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.entry import folder_usable, run_audit
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.settings import AuditSettings
from dpaudit.errors import (
    DpauditError,
    InterruptedRunError,
    RegistryError,
    RunFolderError,
    TrialError,
)
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.formatting import clipped
from dpaudit.frontiers.page import frontier_page
from dpaudit.frontiers.plan import FrontierSettings, PlannedPoint, cost, planned_points
from dpaudit.frontiers.record import AUDIT_FOLDER, Frontier, FrontierPoint, MeanScore, PointUtility
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.game.store import (
    PRIVATE_FILE,
    SALT_FILE,
    Private,
    changed_keys,
    new_salt,
    salt_of,
)
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, data_digest, load, require_rows
from dpaudit.plugins.protocols import FloatArray, Generator
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.record import AuditBrief
from dpaudit.results.result import RESULT_FILE
from dpaudit.results.sentences import bound_of
from dpaudit.usefulness.experiment import HEADLINE, Experiment, Measure, Setting
from dpaudit.usefulness.report import score_interval, welch_p_value
from dpaudit.usefulness.run import GENERATOR, NOISE, UniformRows, UtilitySettings, prepare
from dpaudit.versions import versions

_LONGEST = 60
FRONTIER_FILES = ("frontier.json", "frontier.html", "frontier.md")
UTILITY_FILE = "utility.json"
"""The measured utility of a point, in its folder."""


def _ignore(words: str) -> None:
    """Says nothing."""


def frontier(
    generators: Sequence[str],
    data: pd.DataFrame | str | Path,
    *,
    epsilons: Sequence[float],
    schema: Schema | str | Path | None = None,
    test: pd.DataFrame | str | Path | None = None,
    audit: AuditSettings | None = None,
    utility: UtilitySettings | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    on_step: Callable[[str], None] = _ignore,
    on_progress: OnProgress = ignore_progress,
) -> Frontier:
    """Audits generators at several epsilons and measures the utility of their tables.

    Args:
        generators: Names as for `dpaudit.audit`, installed libraries' methods included, each
            perhaps with parameters: "pate-gan,teachers=20". Each is built with `epsilon`.
        data: A table, a file, or "sample:NAME".
        epsilons: The privacy budgets.
        schema: A schema or its file; inferred if None, and the report says so.
        test: Further real rows to test classifiers on; by default a part of `data`, which no
            generator sees where utility is measured. Audits are on all of `data`.
        audit: How each point is audited.
        utility: How utility is measured.
        jobs: Worker processes of audits; one per available core if None.
        out: Folder, which makes the run resumable; kept in a temporary one if None.
        on_step: Called with each next step, in words: first with the total cost.
        on_progress: Called after every trial of an audit.

    Returns:
        The frontier; with `out`, also written there as JSON, HTML and Markdown.

    Raises:
        InputError: If anything is unusable, before any training; or the folder holds another run.
        InterruptedRunError: On Ctrl-C; with `out`, the same call resumes.
    """
    settings = FrontierSettings(
        generators=generators,
        epsilons=epsilons,
        audit=audit or audit_settings(),
        utility=utility or UtilitySettings(),
    )
    folder = tempfile.TemporaryDirectory(prefix="dpaudit-") if out is None else nullcontext(out)
    with folder as place:
        return run_frontier(
            settings,
            data,
            out=Path(place),
            schema=schema,
            test=test,
            jobs=jobs,
            on_step=on_step,
            on_progress=on_progress,
        )


def run_frontier(
    settings: FrontierSettings,
    data: pd.DataFrame | str | Path,
    *,
    out: Path,
    schema: Schema | str | Path | None = None,
    test: pd.DataFrame | str | Path | None = None,
    jobs: int | None = None,
    on_step: Callable[[str], None] = _ignore,
    on_progress: OnProgress = ignore_progress,
) -> Frontier:
    """Runs a frontier in a folder, or resumes it there; see `frontier`.

    Further generators and epsilons may be added in the same folder; the report covers the latest
    request. A failure at one point is recorded there, and the others are run.

    Args:
        settings: Every choice.
        data: A table, a file, or "sample:NAME".
        out: The folder.
        schema: A schema or its file.
        test: Further real rows to test classifiers on.
        jobs: Worker processes of audits.
        on_step: Called with what is done next.
        on_progress: Called after every trial of an audit.

    Returns:
        The frontier, also written to the folder.

    Raises:
        InputError: If anything is unusable, before any training; or the folder holds another run.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    table = load(data, schema)
    require_rows(table.schema, "a frontier")
    tested = None if test is None else load(test, table.schema)
    chosen = replace(
        settings.utility,
        rows=settings.audit.rows,
        confidence=settings.audit.confidence,
        seed=settings.audit.seed,
    )
    experiment = prepare(
        table.data, table.schema, chosen, test=None if tested is None else tested.data
    )
    # A generator that draws records given the label must know the label, in both parts.
    table = table._replace(schema=replace(table.schema, label=experiment.task.label))
    points = planned_points(settings, table, experiment)
    with folder_usable(out):
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        parts = _Parts(table, experiment, chosen, out, jobs, on_step, on_progress)
        waiting = [point for point in points if not _is_done(_folder(out, point))]
        if waiting:
            on_step(cost(waiting, experiment, table, repeats=chosen.repeats, jobs=jobs))
        noise = parts.tables_of_noise()
        found = [
            parts.point(point, noise, f"{number} of {len(points)}: {point.name}")
            for number, point in enumerate(points, start=1)
        ]
        result = parts.frontier(
            found,
            noise,
            test_source=None if tested is None else tested.source,
            reproduce=settings.command(table.words, None if tested is None else tested.source),
        )
        page = frontier_page(result)
        texts = (result.to_json(), page_html(page), page_markdown(page))
        for name, text in zip(FRONTIER_FILES, texts, strict=True):
            write_whole(out / name, text)
    return result


class _Parts(NamedTuple):
    """The common inputs of all points."""

    table: Table
    experiment: Experiment
    utility: UtilitySettings
    out: Path
    jobs: int | None
    on_step: Callable[[str], None]
    on_progress: OnProgress

    def point(self, point: PlannedPoint, noise: MeasuredTables, title: str) -> FrontierPoint:
        """Runs one point, or what is left of it."""
        folder = _folder(self.out, point)
        folder.mkdir(mode=0o700, exist_ok=True)
        failures: list[str] = []
        audit = utility = None
        self.on_step(f"{title}: audit")
        try:
            audit = AuditBrief.of(
                run_audit(
                    point.audit, folder / AUDIT_FOLDER, jobs=self.jobs, on_progress=self.on_progress
                )
            )
        except (InterruptedRunError, RunFolderError):
            raise
        except DpauditError as error:
            failures.append(f"audit: {error}")
        ended = f"{audit.verdict}, bound {bound_of(audit)}" if audit else "the audit failed"
        self.on_step(f"{title}: {ended}; utility")
        try:
            utility = self._utility(point, folder / UTILITY_FILE, noise)
        except (InterruptedRunError, RunFolderError):
            raise
        except DpauditError as error:
            failures.append(f"utility: {error}")
        return FrontierPoint(
            asked=point.name.asked,
            generator=point.generator.name,
            parameters=point.generator.parameters,
            epsilon=point.name.epsilon,
            audit=audit,
            utility=utility,
            folder=folder.name,
            failures=tuple(failures),
        )

    def frontier(
        self,
        points: Sequence[FrontierPoint],
        noise: MeasuredTables,
        *,
        test_source: str | None,
        reproduce: str,
    ) -> Frontier:
        """The frontier of all points."""
        experiment, confidence = self.experiment, self.utility.confidence
        positive = experiment.task.examples(experiment.test).positive
        return Frontier(
            points=tuple(points),
            noise=_mean(noise.auroc, confidence),
            real=experiment.real.scores[HEADLINE._replace(setting=Setting.REAL)],
            source=self.table.source,
            test_source=test_source,
            schema_inferred=self.table.schema.inferred,
            label=experiment.task.label,
            prevalence=float(positive.mean()),
            train_rows=len(experiment.train),
            test_rows=len(experiment.test),
            positive_test_rows=int(positive.sum()),
            rows=experiment.rows,
            classifiers=experiment.classifiers,
            confidence=confidence,
            seed=self.utility.seed,
            versions=versions(),
            reproduce=reproduce,
        )

    def _utility(self, point: PlannedPoint, file: Path, noise: MeasuredTables) -> PointUtility:
        generator = point.audit.stored_specification["generator"]
        found = measure_tables(
            point.generator.generator,
            self.experiment,
            source=GENERATOR,
            repeats=self.utility.repeats,
            file=file,
            specification=self._specification(
                {"generator": generator, "versions": point.audit.software}
            ),
        )
        p_value = welch_p_value(found.auroc, noise.auroc)
        return PointUtility(
            tables=len(found.auroc),
            failed=found.failed,
            auroc=_mean(found.auroc, self.utility.confidence),
            auprc=_mean(found.auprc, self.utility.confidence),
            p_value=p_value,
            beats_noise=p_value <= 1.0 - self.utility.confidence,
        )

    def tables_of_noise(self) -> MeasuredTables:
        """Noise, measured as every generator is."""
        return measure_tables(
            UniformRows(self.table.schema),
            self.experiment,
            source=NOISE,
            repeats=self.utility.repeats,
            file=self.out / f"{NOISE}.json",
            specification=self._specification({}),
        )

    def _specification(self, own: dict[str, Any]) -> dict[str, Any]:
        """Everything that decides the scores, with salted digests of anything about records."""
        salt = salt_of(self.out) if (self.out / SALT_FILE).exists() else new_salt(self.out)
        utility, experiment = self.utility, self.experiment
        return salt.sealed(
            {
                "train": Private(data_digest(experiment.train)),
                "test": Private(data_digest(experiment.test)),
                "schema": Private(self.table.schema.to_document()),
                "label": experiment.task.label,
                "positive": str(experiment.task.positive),
                "repeats": utility.repeats,
                "rows": experiment.rows,
                "classifiers": list(experiment.classifiers),
                "seed": utility.seed,
                "versions": versions(),
                **own,
            }
        )


def _mean(values: FloatArray, confidence: float) -> MeanScore:
    low, high = score_interval(values, confidence=confidence)
    return MeanScore(float(values.mean()), low, high)


def _folder(out: Path, point: PlannedPoint) -> Path:
    """The folder of a point: one for each way a generator can be asked for."""
    asked = point.name.asked
    stem = re.sub(r"[^\w.-]+", "-", asked).strip("-.")[-40:]
    if stem != asked:
        stem += f"-{hashlib.blake2b(asked.encode(), digest_size=3).hexdigest()}"
    return out / f"{stem}-epsilon-{point.name.epsilon:g}"


def _is_done(folder: Path) -> bool:
    """Whether a point has nothing left to train, judged without reading its content."""
    return (folder / AUDIT_FOLDER / RESULT_FILE).exists() and (folder / UTILITY_FILE).exists()


class MeasuredTables(NamedTuple):
    """What was measured of one generator: means over classifiers, on real test rows.

    Attributes:
        auroc: Of each table.
        auprc: Likewise.
        failed: How many models failed; no score is of them.
    """

    auroc: FloatArray
    auprc: FloatArray
    failed: int


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
        kept[str(number)] = (found[HEADLINE], found[auprc])
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
    aurocs, auprcs = map(np.array, zip(*kept.values(), strict=True))
    return MeasuredTables(aurocs, auprcs, len(failures))


def _kept(file: Path, specification: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The AUROC and AUPRC of each table that a file has.

    Raises:
        RunFolderError: If it is of another specification, or damaged.
    """
    if not file.exists():
        return {}
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
        there = document["specification"]
        kept = {
            number: (float(auroc), float(auprc))
            for number, (auroc, auprc) in document["tables"].items()
        }
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
