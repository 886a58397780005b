"""Plays a run again with one suspect mended at a time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpaudit.auditing.attacking import attack_all, best
from dpaudit.auditing.entry import run
from dpaudit.auditing.plan import Size
from dpaudit.auditing.spec import Audit
from dpaudit.errors import SettingsError
from dpaudit.explain.effect import Finding, judged
from dpaudit.explain.explanation import Before, Explanation
from dpaudit.explain.rebuild import Run, reopened
from dpaudit.explain.suspects import suspects_of
from dpaudit.files import write_whole
from dpaudit.formatting import did_you_mean
from dpaudit.game.progress import OnProgress, ignore_progress
from dpaudit.game.trial import Role
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import NamedGenerator
from dpaudit.plugins.protocols import Generator

DEFAULT_MODELS = 400
"""Of a suspect, unless the run had fewer, or so many would not have found the leak."""
FOLDER = "explain"
FILE = "explain.json"


@dataclass(frozen=True, kw_only=True)
class MendedAudit(Audit):
    """An audit of a generator with one suspect mended.

    Attributes:
        suspect: The suspect.
        command: The command that plays it.
    """

    suspect: str
    command: str

    @property
    def own_specification(self) -> dict[str, Any]:
        """That of the audit, and what was mended."""
        return {**super().own_specification, "fixed": self.suspect}

    @property
    def reproduce(self) -> str:
        """The command that gives this result again."""
        return self.command


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A violation and its suspects, ready to be played one by one.

    Attributes:
        run: The run that found the violation.
        claim: The claim that it violates.
        size: That of each suspect's audit.
        before: The leak, found again with so many models.
        suspects: Mended generators by suspect.
        reproduce: The command of the whole inquiry.
    """

    run: Run
    claim: PrivacyClaim
    size: Size
    before: Before
    suspects: Mapping[str, Generator]
    reproduce: str

    def play(
        self, suspect: str, *, jobs: int | None = None, on_progress: OnProgress = ignore_progress
    ) -> Finding:
        """Audits the generator with one suspect mended; what was played before is kept.

        Args:
            suspect: One of `suspects`.
            jobs: Worker processes; one per available core if None.
            on_progress: Told after every trial.

        Raises:
            RunFolderError: If the suspect's folder cannot be used.
            SettingsError: If `jobs` is not positive.
            AttackError: If an attack fails on a valid synthetic table.
            InterruptedRunError: On Ctrl-C; the same call resumes.
        """
        place = Path(FOLDER) / suspect / str(self.size.shadow_models)
        result = run(
            self._mended(suspect), self.run.folder / place, jobs=jobs, on_progress=on_progress
        )
        return judged(suspect, result.document, self.claim, folder=place.as_posix())

    def conclude(self, findings: Sequence[Finding]) -> Explanation:
        """Puts what was found together, and writes it to the run's folder."""
        explanation = Explanation(
            generator=self.run.audit.generator.name,
            claim=self.claim,
            confidence=self.size.confidence,
            shadow_models=self.size.shadow_models,
            before=self.before,
            findings=tuple(findings),
            reproduce=self.reproduce,
        )
        text = json.dumps(explanation.document, indent=2, allow_nan=False) + "\n"
        write_whole(self.run.folder / FOLDER / FILE, text.encode())
        return explanation

    def _mended(self, suspect: str) -> MendedAudit:
        audit = self.run.audit
        own = {field.name: getattr(audit, field.name) for field in fields(audit)}
        name, parameters, _ = audit.generator
        own |= {
            "generator": NamedGenerator(
                f"{name} ({suspect} fixed)", parameters, self.suspects[suspect]
            ),
            "claim": self.claim,
            "claim_is_given": True,  # whatever the mended one claims
            "size": self.size,
        }
        return MendedAudit(**own, suspect=suspect, command=self.reproduce)


def inquire(
    path: str | Path, *, suspects: Sequence[str] = (), shadow_models: int | None = None
) -> Inquiry:
    """Prepares the explanation of a violation; trains nothing.

    Args:
        path: The run folder of an audit that found one.
        suspects: Which suspects to play; all if empty.
        shadow_models: Models for each suspect; if None those of the run, at most 400, or as many
            more as it takes to find the leak again.

    Raises:
        RunFolderError: If the run cannot be explained.
        SettingsError: If a suspect is unknown, or so many models would not have found the leak.
        InputError: If anything else is unusable; says what and how to mend it.
    """
    reopen = reopened(Path(path))
    audit, stated = reopen.audit, reopen.document["claim"]
    claim = PrivacyClaim(**{**stated, "neighbours": Neighbours(stated["neighbours"])})
    offered = suspects_of(audit.generator.generator, name=audit.generator.name)
    for name in suspects:
        if name not in offered:
            raise SettingsError(
                f"no suspect {name!r}{did_you_mean(name, list(offered))}; there is "
                f"{', '.join(offered)}"
            )
    chosen = {name: mended for name, mended in offered.items() if name in (suspects or offered)}
    for mended in chosen.values():
        check_table(mended, audit.table.data)
    size, before = _sized(reopen, claim, shadow_models)
    words = ["dpaudit", "explain", str(path)]
    words += [word for name in suspects for word in ("--suspect", name)]
    return Inquiry(
        run=reopen,
        claim=claim,
        size=size,
        before=before,
        suspects=chosen,
        reproduce=shlex.join([*words, "--shadow-models", str(size.shadow_models)]),
    )


def explain(
    path: str | Path,
    *,
    suspects: Sequence[str] = (),
    shadow_models: int | None = None,
    jobs: int | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Explanation:
    """Explains a violation: plays its audit again with one suspect mended at a time.

    Args:
        path: The run folder of an audit that found one; the explanation is written beneath it.
        suspects: As for `inquire`.
        shadow_models: As for `inquire`.
        jobs: Worker processes; one per available core if None.
        on_progress: Told after every trial.

    Raises:
        InputError: If anything is unusable, before any training.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C; the same call resumes.
    """
    inquiry = inquire(path, suspects=suspects, shadow_models=shadow_models)
    return inquiry.conclude(
        [inquiry.play(name, jobs=jobs, on_progress=on_progress) for name in inquiry.suspects]
    )


def _sized(run: Run, claim: PrivacyClaim, asked: int | None) -> tuple[Size, Before]:
    """How many models each suspect is given, and the leak with so many.

    With fewer models than it takes to find the leak, any fix would seem to remove it.
    """
    most = run.audit.size.shadow_models
    models = min(DEFAULT_MODELS, most) if asked is None else asked
    while True:
        size = replace(run.audit.size, shadow_models=models)
        before = _before(run, claim, size)
        if before is not None and before.proved > claim.epsilon:
            return size, before
        if asked is not None:
            raise SettingsError(
                f"{asked} shadow models would not have found this leak again, so any fix would "
                f"seem to remove it: use more --shadow-models; the run had {most}"
            )
        models = min(2 * models, most)  # that of the run found it


def _before(run: Run, claim: PrivacyClaim, size: Size) -> Before | None:
    """The leak as the run would have found it with so many models, whose outcomes it has."""
    if size.shadow_models >= run.models:
        found = run.document
        return Before(found["attack"], found["proved"], found["auc"])
    audit = replace(run.audit, size=size, claim=claim)
    attacked = attack_all(audit, run.outcomes, Role.AUDIT, size)
    if not attacked:
        return None
    deciding = best(attacked)
    return Before(deciding.attack.name, deciding.evaluation.proved, deciding.evaluation.auc)
