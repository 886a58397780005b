"""Every choice of an audit, its default and its range: the one place that has them.

A new choice is a field here, an option in `dpaudit.cli.options` and a line of docs. Messages name
settings in backquotes as Python spells them; the command line turns them into its options. What
loads numpy or scipy is imported where it is used: the help of a command is made of these fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict, TypeVar

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean
from dpaudit.model.choices import (
    EXPOSING,
    VULNERABLE,
    Access,
    Multiplicity,
    ThresholdRule,
    WorstCase,
)
from dpaudit.model.claim import Neighbours
from dpaudit.model.currencies import CurvePoint, curve_points
from dpaudit.model.curve_text import read_curve
from dpaudit.model.stated_claim import StatedClaim

if TYPE_CHECKING:
    from dpaudit.bounds import Hypotheses
    from dpaudit.plugins.access import AnyAttack

FIT_SHARE: Final = {ThresholdRule.CROSS_VALIDATED: 0.4, ThresholdRule.HOLD_OUT: 0.6}
"""Share of the trials that train the classifier and choose the threshold; the rest is scored.

The hold-out is the split of published audits: 40 % to train, 20 % for the threshold, 40 % to score.
"""
MIN_SHADOW_MODELS: Final = 20
FEWEST_WITH_RECORDS: Final = 8
"""Shadow models of an audit of many records, whose every model gives many guesses."""
DEFAULT_ATTACKS: Final = ("groundhog", "query-target", "form")
ATTACKS_AT: Final = {
    Access.OUTPUT: DEFAULT_ATTACKS,
    Access.MODEL: (*DEFAULT_ATTACKS, "logan", "parameters"),
    Access.RELEASED: ("released",),
}
"""The default attacks of each access level; those that see nothing of a generator are left out."""
DEFAULT_CANARIES: Final = 100
MIN_CANARIES: Final = 20
CANARY_ATTACKS: Final = ("closest-record", "canary-matches", "canary-marginals")
"""The attacks of every one-run audit, each with an equal share of the error probability."""

Choice = TypeVar("Choice", bound=StrEnum)


class GameName(StrEnum):
    """The games that an audit can play."""

    TWO_WORLDS = "two worlds"
    MANY_RECORDS = "many records"
    ONE_RUN = "one run"


@dataclass(frozen=True, kw_only=True)
class AuditSettings:
    """Every choice of an audit other than what is audited on which table.

    Attributes:
        parameters: Constructor parameters of a generator given by name.
        epsilon: Epsilon of the claim under audit; the generator's own if None.
        delta: Delta of the claim; the generator's own, else 0, if None.
        mu: A claim of Gaussian DP under audit, instead of epsilon.
        rho: A claim of zCDP, instead of epsilon.
        curve: A privacy curve, instead of epsilon: pairs of epsilon and delta, a JSON or CSV file
            of them, or text such as "0.5:1e-3,1:1e-5".
        neighbours: "add-remove" or "replace-one"; that of the generator's claim if None.
        target: The attacked record: "exposing" (facts such as the extremes of columns hold of it
            alone), "farthest", "vulnerable" (found by small attacks, for as many trainings as
            `shadow_models`), "row:N" (or N), or "record:FILE".
        worst_case: "opposite", "one-hot", "narrow", "mst" or "mixed": both tables are built from
            the schema alone, in place of a table and a target.
        neighbours_file: The table of world "out": that handed in without one record, or with one
            changed in its place; in place of a target.
        access: What the attacker sees: "output" (synthetic rows), "model" (also what the fitted
            model discloses, such as a discriminator) or "released" (also what the proof protects).
        attacks: Registered names or objects; each is one hypothesis (Bonferroni). By default those
            of the access level (`ATTACKS_AT`).
        shadow_models: Trials of both worlds together, an even number of at least 20.
        rows: Synthetic rows requested of every model; those of the table if None.
        confidence: One-sided confidence of the bound, over all attacks together; in (0.5, 1).
        threshold: "cross-validated", or "hold-out" as in published audits.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one that forecasts
            most on the fitting part, and corrects for nothing.
        sequential: Whether to test after every batch of trials and to stop as soon as a violation
            is proved; `shadow_models` is then the cap.
        one_run: Whether to train once with many canaries instead of shadow models, for slow
            generators; what concerns shadow models must then be left at its default.
        canaries: Of a one-run audit: how many records are each in the table by a fair coin; 100 if
            None.
        records: Records that every shadow model serves, each by its own coin: those that stand out
            most. More than 1 gives as many guesses per model, and attacks no single target.
        probe: Whether probes from outside (`dpaudit probe`) run first where they are cheap: in an
            audit of at least 400 shadow models of one target.
        worker_memory: Gigabytes of address space that a generator in a process of its own may take
            (Linux). Suits the machine, as `jobs`: a run may be resumed with another.
        seed: Root of every random stream, in [0, 2**63).

    Raises:
        SettingsError: If a setting is out of range, or two contradict each other.
    """

    FEWEST: ClassVar[int] = MIN_SHADOW_MODELS

    parameters: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    delta: float | None = None
    mu: float | None = None
    rho: float | None = None
    curve: tuple[CurvePoint, ...] | None = None
    neighbours: Neighbours | None = None
    target: str = EXPOSING
    worst_case: WorstCase | None = None
    neighbours_file: str | None = None
    access: Access = Access.OUTPUT
    attacks: tuple[str | AnyAttack, ...] = DEFAULT_ATTACKS
    shadow_models: int = 400
    rows: int | None = None
    confidence: float = 0.95
    threshold: ThresholdRule = ThresholdRule.CROSS_VALIDATED
    multiplicity: Multiplicity = Multiplicity.BONFERRONI
    sequential: bool = False
    one_run: bool = False
    canaries: int | None = None
    records: int = 1
    probe: bool = True
    worker_memory: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._take_names()
        self._check_ranges()
        self._check_pair()
        if self.one_run:
            self._check_one_run()
        elif self.canaries is not None:
            raise SettingsError("`canaries` is for `one_run`: set that too, or leave it out")
        elif self.records > 1:
            self._check_records()

    def _take_names(self) -> None:
        """Accepts the names of choices, a row's number and a list where the type is stricter."""
        if isinstance(self.attacks, str):
            raise SettingsError(f"`attacks` must be a list of attacks, got {self.attacks!r}")
        taken: dict[str, object] = {
            "threshold": _choice("threshold", ThresholdRule, self.threshold),
            "multiplicity": _choice("multiplicity", Multiplicity, self.multiplicity),
            "access": _choice("access", Access, self.access),
            "attacks": tuple(self.attacks),
        }
        if taken["attacks"] == DEFAULT_ATTACKS:
            taken["attacks"] = ATTACKS_AT[Access(self.access)]
        if self.curve is not None:
            given: Any = self.curve
            text = isinstance(given, str | Path)
            taken["curve"] = read_curve(given) if text else curve_points(given)
        if self.neighbours is not None:
            taken["neighbours"] = _choice("neighbours", Neighbours, self.neighbours)
        if self.worst_case is not None:
            taken["worst_case"] = _choice("worst_case", WorstCase, self.worst_case)
        if isinstance(self.neighbours_file, PathLike):
            taken["neighbours_file"] = fspath(self.neighbours_file)
        if _is_whole(self.target):
            taken["target"] = f"row:{self.target}"
        for name, value in taken.items():
            object.__setattr__(self, name, value)

    def _check_ranges(self) -> None:
        from dpaudit.seeds import check_seed

        for name in ("shadow_models", "rows", "canaries", "records", "seed"):
            value = getattr(self, name)
            if value is not None and not _is_whole(value):
                raise SettingsError(f"`{name}` must be a whole number, got {value!r}")
        if not isinstance(self.target, str):
            raise SettingsError(f"`target` must be text or a row number, got {self.target!r}")
        if not isinstance(self.neighbours_file, str | None):
            raise SettingsError(
                f"`neighbours_file` must be the name of a file, got {self.neighbours_file!r}"
            )
        if self.records < 1:
            raise SettingsError(f"`records` must be at least 1, got {self.records}")
        fewest = min(self.FEWEST, FEWEST_WITH_RECORDS) if self.records > 1 else self.FEWEST
        if self.shadow_models < fewest or self.shadow_models % 2:
            raise SettingsError(
                f"`shadow_models` must be an even number of at least {fewest}, "
                f"got {self.shadow_models}"
            )
        stated = [
            name for name in ("epsilon", "mu", "rho", "curve") if getattr(self, name) is not None
        ]
        if self.delta is not None and stated and stated != ["epsilon"]:
            raise SettingsError(f"`delta` belongs to `epsilon`: leave it out of `{stated[0]}`")
        if len(stated) > 1:
            named = " and ".join(f"`{name}`" for name in stated)
            raise SettingsError(f"{named} state one claim each: give one of them")
        if not self.attacks:
            raise SettingsError("`attacks` is empty: an audit needs at least one attack")
        if not 0.5 < self.confidence < 1:
            raise SettingsError(f"`confidence` must be in (0.5, 1), got {self.confidence:g}")
        if self.rows is not None and self.rows < 1:
            raise SettingsError(f"`rows` must be at least 1, got {self.rows}")
        check_seed(self.seed)

    def _check_pair(self) -> None:
        if self.worst_case is not None and self.neighbours_file is not None:
            raise SettingsError(
                "`worst_case` and `neighbours_file` both name the two tables: leave out one"
            )
        for name in ("worst_case", "neighbours_file"):
            if getattr(self, name) is None:
                continue
            if self.one_run:
                raise SettingsError(
                    f"`{name}` is a pair of tables for shadow models: leave out `one_run`, or "
                    f"leave out `{name}`"
                )
            if self.target != EXPOSING:
                raise SettingsError(
                    f"`{name}` says which record is the target: leave out `target`, or leave out "
                    f"`{name}`"
                )

    def _check_one_run(self) -> None:
        if self.access is not Access.OUTPUT:
            raise SettingsError(
                "`one_run` looks for canaries in synthetic rows alone: leave out `access`, or "
                "leave out `one_run`"
            )
        if self.target == VULNERABLE:
            raise SettingsError(
                f"`one_run` attacks many canaries, not one target: leave out "
                f'`target="{VULNERABLE}"`, or leave out `one_run`'
            )
        unused = (
            "sequential",
            "multiplicity",
            "threshold",
            "attacks",
            "target",
            "shadow_models",
            "records",
        )
        defaults = {one.name: one.default for one in fields(self)}
        given = [name for name in unused if getattr(self, name) != defaults[name]]
        if given:
            named = ", ".join(f"`{name}`" for name in given)
            raise SettingsError(
                f"`one_run` trains once and fits no attack: leave out {named}, or leave out "
                "`one_run`"
            )

    def _check_records(self) -> None:
        target = next(one.default for one in fields(self) if one.name == "target")
        if self.target != target or self.worst_case is not None or self.neighbours_file is not None:
            raise SettingsError(
                "`records` attacks many records, those that stand out most: leave out `target`, "
                "`worst_case` and `neighbours_file`, or leave out `records`"
            )
        if self.access is not Access.OUTPUT:
            raise SettingsError(
                "`records` looks for records in synthetic rows alone: leave out `access`, or leave "
                "out `records`"
            )
        if self.sequential:
            raise SettingsError(
                "`records` scores all models at once: leave out `sequential`, or leave out "
                "`records`"
            )
        if self.threshold is ThresholdRule.HOLD_OUT:
            raise SettingsError(
                "`records` weighs guesses of fair coins: leave out "
                '`threshold="hold-out"`, or leave out `records`'
            )
        if self.neighbours is Neighbours.REPLACE_ONE:
            raise SettingsError(
                "`records` adds and removes records, so it says nothing about replace-one "
                "neighbours: audit an add-remove claim, or leave out `records`"
            )

    @property
    def game(self) -> GameName:
        """The game that these settings ask for."""
        if self.one_run:
            return GameName.ONE_RUN
        return GameName.MANY_RECORDS if self.records > 1 else GameName.TWO_WORLDS

    @property
    def states_claim(self) -> bool:
        """Whether the claim under audit is stated here; else it is the generator's own."""
        return self.stated_claim._replace(neighbours=None) != StatedClaim()

    @property
    def stated_claim(self) -> StatedClaim:
        """What is claimed here."""
        return StatedClaim(self.epsilon, self.delta, self.mu, self.rho, self.curve, self.neighbours)

    @property
    def per_world(self) -> int:
        """Trials of each world, where their worlds are not drawn."""
        return self.shadow_models // 2

    @property
    def fair_coins(self) -> bool:
        """Whether the world of every scored trial is an independent fair coin."""
        return self.sequential or self.threshold is not ThresholdRule.HOLD_OUT

    @property
    def fitted(self) -> int:
        """Trials of each world that train the attack and choose its threshold."""
        return round(FIT_SHARE[self.threshold] * self.per_world)

    @property
    def scored(self) -> int:
        """Trials of both worlds together that are scored once."""
        return self.shadow_models - 2 * self.fitted

    @property
    def hypotheses(self) -> Hypotheses:
        """What is tested on the scored trials: every audit takes the number from here.

        Thresholds, directions and the target are fixed before.
        """
        from dpaudit.bounds import Hypotheses

        if self.one_run:
            return Hypotheses(attacks=len(CANARY_ATTACKS))
        selected = self.multiplicity is Multiplicity.SELECT
        return Hypotheses(attacks=1 if selected else len(self.attacks))

    @property
    def attack_confidence(self) -> float:
        """Confidence of each attack's bound: of the fixed one, and of the sequential one."""
        from dpaudit.bounds import attack_confidence

        return attack_confidence(self.confidence, self.hypotheses.count, sequential=self.sequential)


class SettingsGiven(TypedDict, total=False):
    """The fields of `AuditSettings` as keyword arguments, for editors and type checkers."""

    parameters: Mapping[str, Any]
    epsilon: float | None
    delta: float | None
    mu: float | None
    rho: float | None
    curve: Sequence[tuple[float, float]] | str | Path | None
    neighbours: Neighbours | str | None
    target: str | int
    worst_case: WorstCase | str | None
    neighbours_file: str | PathLike[str] | None
    access: Access | str
    attacks: tuple[str | AnyAttack, ...] | list[str | AnyAttack] | list[str]
    shadow_models: int
    rows: int | None
    confidence: float
    threshold: ThresholdRule | str
    multiplicity: Multiplicity | str
    sequential: bool
    one_run: bool
    canaries: int | None
    records: int
    probe: bool
    worker_memory: float | None
    seed: int


def _is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _choice(name: str, kind: type[Choice], text: str) -> Choice:
    """The member of an enumeration that a setting names.

    Raises:
        SettingsError: If there is none of that name.
    """
    try:
        return kind(text)
    except ValueError:
        known = [member.value for member in kind]
        raise SettingsError(
            f"`{name}`: {text!r} is not one of {', '.join(known)}{did_you_mean(str(text), known)}"
        ) from None
