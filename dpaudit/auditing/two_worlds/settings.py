"""The settings of an audit in two worlds."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import ClassVar, Final

from dpaudit.auditing.settings import (
    ATTACKS_AT,
    DEFAULT_ATTACKS,
    ShadowModelSettings,
    is_whole,
)
from dpaudit.errors import SettingsError
from dpaudit.model.choices import (
    EXPOSING,
    VULNERABLE,
    Access,
    Multiplicity,
    ThresholdRule,
    WorstCase,
    member_named,
)

MODELS_PER_FIT: Final = 10
"""The audit trains this many models for each model that probes may train."""
FEWEST_FITS: Final = 40
"""With fewer fits no alarm could contradict epsilon 1, which needs 32 right guesses."""


@dataclass(frozen=True, kw_only=True)
class TwoWorlds(ShadowModelSettings):
    """Shadow models with and without one target record (or with another in its place): the default.

    Attributes:
        attacks: Registered names or objects. By default those of the access level (`ATTACKS_AT`).
        shadow_models: Trials of both worlds together, an even number of at least 20 (8 for many
            records).
        multiplicity: "select" scores only the attack, or the combination of all, with the largest
            forecast on the fitting part, without correction; "bonferroni" scores every attack, each
            with its share of the error probability.
        target: The attacked record: "exposing" (the most exposed record, with the most column
            extremes and unique values), "farthest", "vulnerable" (found by small attacks, with as
            many trainings as `shadow_models`), "row:N" (or N), or "record:FILE"; in an audit of
            units the most exposed unit, the unit of such a record or row, or "unit:VALUE".
        worst_case: The name of a worst case (`dpaudit list worst-cases`): both tables are built
            from the schema alone, instead of a table and a target. "search" finds the one that
            shows most, with about as many trainings as `shadow_models`.
        neighbours_file: The table of world "out": the caller's table without one record, or with
            one record replaced; used instead of a target.
        access: What the attacker sees: "output" (synthetic rows), "model" (also what the fitted
            model discloses, such as a discriminator), "released" (also the facts that the proof
            protects), "timing" (rows, and the seconds and memory of every training: each model then
            trains alone, and a repetition gives other numbers) or "everything" (all of these).
        threshold: "cross-validated", or "hold-out" as in published audits.
        sequential: Whether to test after every batch of trials and to stop as soon as a violation
            is proved; `shadow_models` is then the cap.
        probe: Whether probes from outside (`dpaudit probe`) run first if they are cheap: from 400
            shadow models on.

    Raises:
        SettingsError: If a setting is out of range, or two of them name the target.
    """

    NAME: ClassVar[str] = "two worlds"

    multiplicity: Multiplicity = Multiplicity.SELECT
    target: str = EXPOSING
    worst_case: WorstCase | None = None
    neighbours_file: str | None = None
    access: Access = Access.OUTPUT
    threshold: ThresholdRule = ThresholdRule.CROSS_VALIDATED
    sequential: bool = False
    probe: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        taken: dict[str, object] = {
            "access": member_named("access", Access, self.access),
            "threshold": member_named("threshold", ThresholdRule, self.threshold),
        }
        if self.attacks == DEFAULT_ATTACKS:
            taken["attacks"] = ATTACKS_AT[Access(self.access)]
        if self.worst_case is not None:
            taken["worst_case"] = member_named("worst_case", WorstCase, self.worst_case)
        if isinstance(self.neighbours_file, PathLike):
            taken["neighbours_file"] = fspath(self.neighbours_file)
        if is_whole(self.target):
            taken["target"] = f"row:{self.target}"
        for name, value in taken.items():
            object.__setattr__(self, name, value)
        self._check_target()
        if self.is_timed and self.rule is ThresholdRule.HOLD_OUT:
            raise SettingsError(
                f'`access="{self.access}"` needs worlds that are fair coins: without them no bound '
                'holds on a busy machine; leave out `threshold="hold-out"`'
            )

    def _check_target(self) -> None:
        if not isinstance(self.target, str):
            raise SettingsError(f"`target` must be text or a row number, got {self.target!r}")
        if not isinstance(self.neighbours_file, str | None):
            raise SettingsError(
                f"`neighbours_file` must be the name of a file, got {self.neighbours_file!r}"
            )
        pairs = [
            name for name in ("worst_case", "neighbours_file") if getattr(self, name) is not None
        ]
        if len(pairs) > 1:
            raise SettingsError(
                "`worst_case` and `neighbours_file` both name the two tables: leave out one"
            )
        if pairs and self.target != EXPOSING:
            raise SettingsError(
                f"`{pairs[0]}` says which record is the target: leave out `target`, or leave out "
                f"`{pairs[0]}`"
            )

    @property
    def searches(self) -> bool:
        """Whether the target or the worst case is found by trainings before the audit."""
        return self.target == VULNERABLE or self.worst_case is WorstCase.SEARCH

    @property
    def rule(self) -> ThresholdRule:
        """The threshold rule."""
        return self.threshold

    @property
    def is_timed(self) -> bool:
        """Whether the time and memory of trainings are measured."""
        return Access.TIMING in self.access.parts

    @property
    def fair_coins(self) -> bool:
        """Whether the world of every scored trial is an independent fair coin."""
        return self.sequential or self.threshold is not ThresholdRule.HOLD_OUT

    @property
    def probe_fits(self) -> int:
        """A tenth of the shadow models, if that is enough for an alarm; else 0."""
        fits = self.shadow_models // MODELS_PER_FIT
        return fits if self.probe and fits >= FEWEST_FITS else 0

    @property
    def may_stop(self) -> bool:
        """Whether the audit is sequential."""
        return self.sequential
