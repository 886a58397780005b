"""Opens a finished run and runs its audit again with one suspect fixed at a time."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.entry import folder_usable, run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec, keywords
from dpaudit.auditing.settings import AuditSettings, Machine, TwoWorlds
from dpaudit.auditing.two_worlds.attacking import attack_all, best
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import InputError, RegistryError, RunFolderError, SettingsError
from dpaudit.explain.explanation import (
    ROW_ORDER,
    TOGETHER,
    Before,
    Explanation,
    FixedAudit,
    allowed_auc,
    conclusion,
    explanation_page,
    judge_fix,
    removing,
)
from dpaudit.files import write_whole
from dpaudit.formatting import did_you_mean, located
from dpaudit.game.flight import OnProgress, ignore_progress
from dpaudit.game.pool import workers_ended
from dpaudit.game.store import (
    SALTED,
    STORE_FILE,
    RunFolder,
    changed_keys,
    salt_of,
    specification_of,
)
from dpaudit.game.trial import Role
from dpaudit.model.choices import EXPOSING
from dpaudit.model.claim import PrivacyClaim, require_epsilon
from dpaudit.model.column import Unit
from dpaudit.model.schema import Schema
from dpaudit.model.table_files import csv_written
from dpaudit.model.tables import IN_MEMORY, Table, load
from dpaudit.plugins.named import NamedGenerator, as_generator, check_table, train
from dpaudit.plugins.protocols import (
    BatchGenerator,
    Generator,
    IntArray,
    Job,
    Model,
    ModelBatch,
    is_seedable,
    trains_many,
)
from dpaudit.report.render import MARKDOWN_FILE, page_html, page_markdown
from dpaudit.results.record import proofs_of
from dpaudit.results.result import REPORT_FILE, RESULT_FILE, AuditResult
from dpaudit.results.summary import EXPLAINED_MODELS
from dpaudit.seeds import rng_of

MOST_TOGETHER: Final = 32
"""Models that a shuffled batch trains at once: its table holds the rows of each."""
FOLDER = "explain"
"""Where the fixed generators' audits go, below the run folder."""
FILE = "explain.json"


def suspects_of(generator: Generator, *, name: str) -> dict[str, Generator]:
    """The generator with each suspect fixed alone, and with all of them if there are several.

    Args:
        generator: The generator that leaks.
        name: The generator's name, for messages.

    Returns:
        Fixed generators by suspect: what `fixes` offers, the order of rows, all together. The
        last is missing where fixed ones do not offer the remaining fixes.

    Raises:
        RegistryError: If `fixes` fails, or what it returns is not a mapping to generators.
    """
    offered = fixes_of(generator, name=name)
    suspects = dict(offered)
    suspects.setdefault(ROW_ORDER, with_rows_shuffled(generator))
    fixed: Generator | None = generator
    for fix in offered:
        fixed = fixes_of(fixed, name=name).get(fix) if fixed is not None else None
    if fixed is not None and len(suspects) > 1:
        suspects[TOGETHER] = fixed if ROW_ORDER in offered else with_rows_shuffled(fixed)
    return suspects


def fixes_of(generator: object, *, name: str) -> dict[str, Generator]:
    """The fixes that a generator offers; empty without `fixes`.

    Raises:
        RegistryError: As for `suspects_of`.
    """
    offer = getattr(generator, "fixes", None)
    if not callable(offer):
        return {}
    try:
        offered = offer()
    except Exception as error:
        raise RegistryError(f"fixes() of {name} fails: {located(error)}") from error
    if not isinstance(offered, Mapping):
        raise RegistryError(f"fixes() of {name} does not return a mapping of names to generators")
    for fix in offered:
        if not isinstance(fix, str) or not re.fullmatch(r"\w[\w.-]*", fix) or fix == TOGETHER:
            raise RegistryError(
                f"fixes() of {name} offers {fix!r}: name a fix with letters, digits, - _ and ., "
                f"and not {TOGETHER}"
            )
    return {fix: as_generator(fixed, name=f"{name}: {fix}") for fix, fixed in offered.items()}


def with_rows_shuffled(generator: Generator) -> Generator:
    """The generator on a table whose rows are shuffled by each training's seed.

    A record's place then carries no information. A generator that trains many models at once still
    does so.
    """
    if trains_many(generator):
        return ShuffledBatch(generator)
    return Shuffled(generator)


@dataclass(frozen=True)
class Shuffled:
    """A generator whose table is shuffled before each training.

    Attributes:
        generator: The generator.
    """

    generator: Generator

    @property
    def claim(self) -> PrivacyClaim | None:
        """The generator's."""
        return cast(PrivacyClaim | None, getattr(self.generator, "claim", None))

    @property
    def seedable(self) -> bool:
        """Whether the generator is."""
        return is_seedable(self.generator)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        """Trains on the shuffled table."""
        order = _shuffle(np.arange(len(data)), seed)
        return train(self.generator, data.iloc[order].reset_index(drop=True), seed=seed)


@dataclass(frozen=True)
class ShuffledBatch(Shuffled):
    """Shuffles the table of a generator that trains many models at once, for each model anew.

    They train on one table that holds the rows of each model in its order, one model after the
    other; each job drops the rows of all others.

    Attributes:
        generator: The generator.
    """

    generator: BatchGenerator

    @property
    def models_at_once(self) -> int:
        """As many as the generator's, within reason."""
        return min(self.generator.models_at_once, MOST_TOGETHER)

    def batch_key(self, job: Job) -> Hashable:
        """The generator's."""
        return self.generator.batch_key(job)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> ModelBatch:
        """Trains a model for each job; that of `fit` on its rows."""
        orders = [
            _shuffle(np.delete(np.arange(len(data)), list(job.dropped_rows)), job.seed)
            for job in jobs
        ]
        stops = np.cumsum([len(order) for order in orders])
        places = np.arange(stops[-1])
        placed = [
            job._replace(
                dropped_rows=tuple(places[(places < stop - len(order)) | (places >= stop)].tolist())
            )
            for job, order, stop in zip(jobs, orders, stops, strict=True)
        ]
        rows = data.iloc[np.concatenate(orders)].reset_index(drop=True)
        return self.generator.fit_many(rows, placed)


def _shuffle(rows: IntArray, seed: int | None) -> IntArray:
    return rng_of(seed, "row order").permutation(rows)


@dataclass(frozen=True, kw_only=True)
class FixedSpec(TwoWorldSpec):
    """An audit of a generator with one suspect fixed.

    Attributes:
        suspect: The suspect.
        command: The command that runs it.
    """

    suspect: str
    command: str

    @property
    def own_specification(self) -> dict[str, Any]:
        """The specification of the audit, and what was fixed."""
        return {**super().own_specification, "fixed": self.suspect}

    @property
    def reproduce(self) -> str:
        """The command that repeats this audit."""
        return self.command


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A violation and its suspects, to be fixed one at a time.

    Attributes:
        run: The run that found the violation.
        claim: The claim that it violates.
        settings: Settings of each suspect's audit.
        before: The leak, found again with that many models.
        suspects: Fixed generators by suspect.
        reproduce: The command of the whole inquiry.
    """

    run: FinishedRun
    claim: PrivacyClaim
    settings: AuditSettings[TwoWorlds]
    before: Before
    suspects: Mapping[str, Generator]
    reproduce: str

    def audit_fixed(
        self,
        suspect: str,
        *,
        jobs: int | Machine | None = None,
        on_progress: OnProgress = ignore_progress,
    ) -> FixedAudit:
        """Audits the generator with one suspect fixed; trials that ran before are kept.

        Args:
            suspect: One of `suspects`.
            jobs: As for `dpaudit.audit`.
            on_progress: Called after every trial.

        Returns:
            How that audit ended.

        Raises:
            RunFolderError: If the suspect's folder cannot be used.
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C; the same call resumes.
        """
        place = Path(FOLDER) / suspect / str(self.settings.game.shadow_models)
        result = run_audit(
            self._fixed(suspect),
            self.run.folder / place,
            jobs=jobs,
            on_progress=on_progress,
        )
        return judge_fix(suspect, result, self.claim, folder=place.as_posix())

    @property
    def report(self) -> Path:
        """The report that `conclude` writes, as HTML."""
        return self.run.folder / FOLDER / REPORT_FILE

    def conclude(self, fixed: Sequence[FixedAudit]) -> Explanation:
        """Combines the findings and writes them to the run's folder."""
        explanation = Explanation(
            generator=self.run.audit.generator.name,
            claim=self.claim,
            confidence=self.settings.confidence,
            shadow_models=self.settings.game.shadow_models,
            allowed_auc=allowed_auc(self.claim),
            before=self.before,
            conclusion=conclusion(self.before, fixed),
            removed_by=tuple(fix.suspect for fix in removing(fixed)),
            fixed=tuple(fixed),
            reproduce=self.reproduce,
        )
        page, folder = explanation_page(explanation), self.run.folder / FOLDER
        with folder_usable(self.run.folder):
            write_whole(folder / FILE, explanation.to_json())
            write_whole(folder / REPORT_FILE, page_html(page))
            write_whole(folder / MARKDOWN_FILE, page_markdown(page))
        return explanation

    def _fixed(self, suspect: str) -> FixedSpec:
        audit = self.run.audit
        name, parameters, _ = audit.generator
        own = {field.name: getattr(audit, field.name) for field in fields(audit)}
        own |= {
            "generator": NamedGenerator(
                f"{name} ({suspect} fixed)", parameters, self.suspects[suspect]
            ),
            "claim": self.claim,  # regardless of the fixed generator's claim
            "settings": replace(
                self.settings.with_game(probe=False),  # the question is the effect on one leak
                claim=replace(
                    self.settings.claim, epsilon=self.claim.epsilon, delta=self.claim.delta
                ),
            ),
        }
        return FixedSpec(**own, suspect=suspect, command=self.reproduce)


def inquire(
    path: str | Path, *, suspects: Sequence[str] = (), shadow_models: int | None = None
) -> Inquiry:
    """Prepares the explanation of a violation; trains nothing.

    Args:
        path: The run folder of an audit that found one.
        suspects: Which suspects to fix; all if empty.
        shadow_models: Models for each suspect; if None, those of the run up to 400, or as many as
            it takes to find the leak again.

    Returns:
            The suspects and how to audit each.

    Raises:
        RunFolderError: If the run cannot be explained.
        SettingsError: If a suspect is unknown, or that many models would not have found the leak.
        InputError: If anything else is unusable; says what and how to fix it.
    """
    run = reopen(Path(path))
    audit = run.audit
    claim = require_epsilon(run.result.claim, method="explain")
    offered = suspects_of(audit.generator.generator, name=audit.generator.name)
    for name in suspects:
        if name not in offered:
            raise SettingsError(
                f"no suspect {name!r}{did_you_mean(name, list(offered))}; there is "
                f"{', '.join(offered)}"
            )
    chosen = {name: fixed for name, fixed in offered.items() if name in (suspects or offered)}
    for fixed in chosen.values():
        check_table(fixed, audit.table.data)
    settings, before = _enough_models(run, claim, shadow_models)
    words = ["dpaudit", "explain", str(path)]
    words += [word for name in suspects for word in ("--suspect", name)]
    return Inquiry(
        run=run,
        claim=claim,
        settings=settings,
        before=before,
        suspects=chosen,
        reproduce=shlex.join([*words, "--shadow-models", str(settings.game.shadow_models)]),
    )


def explain(
    path: str | Path,
    *,
    suspects: Sequence[str] = (),
    shadow_models: int | None = None,
    on_progress: OnProgress = ignore_progress,
    **machine: Any,
) -> Explanation:
    """Explains a violation: runs its audit again with one suspect fixed at a time.

    Args:
        path: The run folder of an audit that found one; the explanation is written beneath it.
        suspects: As for `inquire`.
        shadow_models: As for `inquire`.
        on_progress: Called after every trial.
        machine: Fields of `dpaudit.Machine`: jobs, engine, scheduler, trial_timeout.

    Returns:
        What fixing each suspect did to the leak.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    asked = Machine(**machine)
    inquiry = inquire(path, suspects=suspects, shadow_models=shadow_models)
    with workers_ended():
        return inquiry.conclude(
            [
                inquiry.audit_fixed(name, jobs=asked, on_progress=on_progress)
                for name in inquiry.suspects
            ]
        )


def _enough_models(
    run: FinishedRun, claim: PrivacyClaim, asked: int | None
) -> tuple[AuditSettings[TwoWorlds], Before]:
    """Settings with the number of models for each suspect, and the leak at that number.

    With too few models to find the leak, any fix would seem to remove it.
    """
    most = run.audit.settings.game.shadow_models
    models = min(EXPLAINED_MODELS, most) if asked is None else asked
    while True:
        settings = run.audit.settings.with_game(shadow_models=models)
        before = _leak_before(run, claim, settings)
        if before is not None and before.proved > claim.epsilon:
            return settings, before
        if asked is not None:
            raise SettingsError(
                f"{asked} shadow models would not have found this leak again, so any fix would "
                f"seem to remove it: use more `shadow_models`; the run had {most}"
            )
        models = min(2 * models, most)  # that of the run found it


def _leak_before(
    run: FinishedRun, claim: PrivacyClaim, settings: AuditSettings[TwoWorlds]
) -> Before | None:
    """The leak as the run's own trials show it with the settings' number of models."""
    if settings.game.shadow_models >= run.models:
        result = run.result
        if result.attack is None or result.proved is None or result.auc is None:
            return None
        return Before(result.attack, result.proved, result.auc)
    with run.opened() as store:
        attacked = attack_all(run.audit, store.outcomes(Role.AUDIT), Role.AUDIT, settings, claim)
    if not attacked:
        return None
    deciding = best(attacked)
    return Before(deciding.attack.name, deciding.evaluation.proved, deciding.evaluation.auc)


class FinishedRun(NamedTuple):
    """A finished run.

    Attributes:
        folder: Its folder.
        audit: What ran, complete again.
        result: Its result.
    """

    folder: Path
    audit: TwoWorldSpec
    result: AuditResult

    def opened(self) -> RunFolder:
        """Its run folder, opened and locked.

        Raises:
            RunFolderError: If another process holds it, or it is damaged.
        """
        return RunFolder(
            self.folder, spec=self.audit.stored_specification, versions=self.audit.software
        )

    @property
    def models(self) -> int:
        """Shadow models that were trained, of both worlds together."""
        return sum(self.result.shadow_models.values())


def reopen(path: Path) -> FinishedRun:
    """Rebuilds the audit of a run that found a violation; trains nothing.

    Args:
        path: Its run folder, or the `result.json` in it.

    Returns:
        The run, ready to be run again with something fixed.

    Raises:
        RunFolderError: If the run is not finished, had another game, found no violation, or cannot
            be run again as it was: the table, the generator or a library has changed.
        InputError: If there is no run, or what it needs cannot be found.
    """
    if os.path.isfile(path / STORE_FILE) and not os.path.isfile(path / RESULT_FILE):
        raise RunFolderError(
            f"{path} is not finished: run the command that started it again, it resumes"
        )
    result = AuditResult.load(path)
    folder = result.folder
    assert folder is not None  # it was loaded from one
    if result.game.unexplained:
        raise RunFolderError(f"{folder} is {result.game.unexplained}")
    if not result.proves_leak:
        proofs = proofs_of(result.probe_alarms)
        proved = "; a probe proved one, and its record names it" if proofs else ""
        raise RunFolderError(
            f"{folder} has no bound above its claim (verdict: {result.verdict}): there is nothing "
            f"to explain{proved}"
        )
    if result.data.source == IN_MEMORY:
        raise RunFolderError(
            f"{folder} was run on a table in memory: write it to a file and audit that"
        )
    spec = specification_of(folder)
    audit = _rebuilt(spec, result)
    _compare(folder, "versions", result.versions, audit.versions)
    own = audit.stored_specification
    _compare(folder, "settings", spec, salt_of(folder).sealed(own))
    run = FinishedRun(folder, audit, result)
    run.opened().close()
    return run


def _rebuilt(spec: Mapping[str, Any], result: AuditResult) -> TwoWorldSpec:
    """Rebuilds an audit from its specification and its result, which hold its settings."""
    target = result.target
    try:
        plain = {name: spec[name] for name in keywords() if name in spec}
        described = {
            "parameters": spec["generator"]["parameters"],
            "target": spec["target"]["choice"] if target.tables is None else EXPOSING,
            "worst_case": target.worst_case,
            "neighbours_file": target.neighbours_file,
            "attacks": tuple(attack["name"] for attack in spec["attacks"]),
        }
        settings = audit_settings(**(plain | described))
        with csv_written(settings.separator, settings.encoding):
            table = _table(spec["schema"], result, settings)
        built = build_spec(spec["generator"]["name"], table, settings)
        assert isinstance(built, TwoWorldSpec)  # its target is a row
        return built
    except InputError as error:
        raise RunFolderError(f"the audit cannot be built again: {error}") from error


def _table(stored: Mapping[str, Any], result: AuditResult, settings: AuditSettings) -> Table:
    """The table with its schema; an inferred one was not stored, so it is inferred again."""
    source = result.data.source
    if "links" in stored:
        raise SettingsError(
            "explain is of audits of one table, and this one was of several: `dpaudit replay` "
            "names the lines that the loss comes from"
        )
    if result.target.worst_case is not None:
        return audited_table(None, Schema.from_document(stored), settings)
    if SALTED not in stored:
        return load(source, Schema.from_document(stored))
    unit = None if stored.get("unit") is None else Unit.from_document(stored["unit"])
    if result.schema.source is not None:
        return load(source, result.schema.source, unit)
    table = load(source, None, unit)
    return table._replace(schema=replace(table.schema, label=stored["label"]))


def _compare(folder: Path, what: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuses anything changed since the audit: its effect could look like that of a fix."""
    changed = changed_keys(there, here)
    if changed:
        raise RunFolderError(
            f"{folder} was run with other {what}: {', '.join(changed)} changed since; "
            "audit again, then explain that run"
        )
