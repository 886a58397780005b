"""The settings of an audit in two worlds."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from os import PathLike, fspath
from typing import Annotated, ClassVar

from dpaudit.auditing.settings import ATTACKS_AT, DEFAULT_ATTACKS, ShadowModelSettings
from dpaudit.errors import SettingsError
from dpaudit.model.choices import (
    EXPOSING,
    Access,
    BoundedNumber,
    Multiplicity,
    ThresholdRule,
    WorstCase,
)
from dpaudit.model.setting import Option, Panel


@dataclass(frozen=True, kw_only=True)
class TwoWorlds(ShadowModelSettings):
    """Shadow models with and without one target record (or with another in its place): the default.

    Attributes:
        attacks: Attacks to run (`dpaudit list attacks`).
        shadow_models: Number of shadow models, an even one.
        multiplicity: "select" scores only the attack, or the combination of all, with the largest
            forecast on the fitting part, without correction; "bonferroni" scores every attack, each
            with its share of the error probability.
        target: Record to attack: exposing (most column extremes and unique values), farthest (from
            its nearest neighbours), vulnerable (found by small trial attacks), row:N (from 0) or
            record:FILE; with `unit` also unit:VALUE.
        worst_case: Worst-case table instead of `data`, built from `schema` alone: opposite, crowd,
            ... (`dpaudit list worst-cases`).
        neighbours_file: Your own neighbouring table: `data` without the target record, or with
            another in its place.
        access: What the attacker sees: output (synthetic rows), model (also the published parts of
            the model, such as a discriminator), released (also what the proof protects, such as
            noisy counts), timing (rows, and the seconds and memory of every training), everything.
        bound: Number of the claim to bound: "epsilon" (at the claimed delta), or "delta" (at the
            claimed epsilon), which shows rare events that only one world has.
        threshold: "cross-validated", or "hold-out" as in published audits.
        secret: Column whose value is also guessed, from the target's other values: the audit bounds
            how much more often the guess is right if models are trained with the target.
        sequential: Stops as soon as a violation is shown, at the latest after `shadow_models`
            trainings.
        probe: Whether probes from outside (`dpaudit probe`) run first if they are cheap, in audits
            that are not smaller than `effort` quick.
        ignore_bits: Whether attacks do without the last bits of floating-point numbers: leaks that
            only these bits show stay unseen.

    Raises:
        SettingsError: If a setting is out of range, or two of them name the target.
    """

    NAME: ClassVar[str] = "two worlds"
    WRITTEN_IF_SET: ClassVar[tuple[str, ...]] = ("ignore_bits", "secret")

    multiplicity: Annotated[Multiplicity, Option(by_name=True)] = Multiplicity.SELECT
    target: Annotated[str, Option("RECORD", panel=Panel.ATTACK)] = EXPOSING
    worst_case: Annotated[WorstCase | None, Option("NAME")] = None
    neighbours_file: Annotated[str | None, Option("FILE", by_name=True)] = None
    access: Annotated[Access, Option("LEVEL", panel=Panel.ATTACK)] = Access.OUTPUT
    bound: Annotated[BoundedNumber, Option("NUMBER", by_name=True)] = BoundedNumber.EPSILON
    threshold: Annotated[ThresholdRule, Option(by_name=True)] = ThresholdRule.CROSS_VALIDATED
    secret: Annotated[str | None, Option("COLUMN", by_name=True)] = None
    sequential: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        taken: dict[str, object] = {}
        if self.attacks == DEFAULT_ATTACKS:
            taken["attacks"] = ATTACKS_AT[self.access]
        if isinstance(self.neighbours_file, PathLike):
            taken["neighbours_file"] = fspath(self.neighbours_file)
        if isinstance(self.target, Integral) and not isinstance(self.target, bool):
            taken["target"] = f"row:{self.target}"
        for name, value in taken.items():
            object.__setattr__(self, name, value)
        self._check_target()
        if self.secret is not None and self.sequential:
            raise SettingsError(
                "`secret` counts right guesses of a number of models that is fixed beforehand: "
                "leave out `sequential`, or leave out `secret`"
            )
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
    def are_default_attacks(self) -> bool:
        """Whether the attacks are those of the access level."""
        return self.attacks == ATTACKS_AT[self.access]

    @property
    def rule(self) -> ThresholdRule:
        """The threshold rule."""
        return self.threshold

    @property
    def hypotheses(self) -> int:
        """The attacks on membership that are scored, and the guess of a secret."""
        return super().hypotheses + (self.secret is not None)

    @property
    def is_timed(self) -> bool:
        """Whether the time and memory of trainings are measured."""
        return Access.TIMING in self.access.parts

    @property
    def fair_coins(self) -> bool:
        """Whether the world of every scored trial is an independent fair coin."""
        return self.sequential or self.threshold is not ThresholdRule.HOLD_OUT

    @property
    def may_stop(self) -> bool:
        """Whether the audit is sequential."""
        return self.sequential
