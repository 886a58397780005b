"""The settings of an audit: those that every audit has, those of each game, and those of the run.

`Machine` and `Outputs` change no number of a result. Messages name settings in backquotes as Python
spells them; the command line turns them into its options. Modules that load numpy or scipy are
imported where they are used: the help of a command is made from these fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from numbers import Integral
from os import PathLike, fspath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, NamedTuple

from dpaudit.errors import SettingsError
from dpaudit.model.choices import (
    EXPOSING,
    Access,
    BoundedNumber,
    Effort,
    EngineName,
    FailOn,
    Multiplicity,
    ThresholdRule,
    WorstCase,
    member_named,
)
from dpaudit.model.claim import Promise, StatedClaim
from dpaudit.model.setting import (
    AT_LEAST_1,
    CONFIDENCE,
    POSITIVE,
    SEED,
    NumberRange,
    Option,
    Panel,
    check_settings,
    settings_of,
)

if TYPE_CHECKING:
    from dpaudit.model.tables import Population

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import TypeVar

    from dpaudit.plugins.access import AnyAttack

    GameT = TypeVar("GameT", bound="GameSettings", default="GameSettings", covariant=True)
else:
    from typing import TypeVar

    GameT = TypeVar("GameT")  # defaults of type variables are of Python 3.13
    AnyAttack = object  # its module loads numpy

FIT_SHARE: Final = {ThresholdRule.CROSS_VALIDATED: 0.4, ThresholdRule.HOLD_OUT: 0.6}
"""Share of the trials that train the classifier and choose the threshold; the rest is scored.

The hold-out follows published audits: 40 % to train, 20 % for the threshold, 40 % to score.
"""
MIN_SHADOW_MODELS: Final = 20
DEFAULT_ATTACKS: Final = ("groundhog", "query-target", "form")
ATTACKS_AT: Final = {
    Access.OUTPUT: DEFAULT_ATTACKS,
    Access.MODEL: (*DEFAULT_ATTACKS, "logan", "parameters"),
    Access.RELEASED: ("released",),
    Access.TIMING: (*DEFAULT_ATTACKS, "timing"),
    Access.EVERYTHING: ("released", "timing"),
}
"""The default attacks of each access level; attacks that do not fit a generator are left out."""


class GameSwitch(NamedTuple):
    """The keyword that chooses a game.

    Attributes:
        keyword: The keyword.
        off: Its value if the game is not chosen.
        description: Its help text, unless it is a field of the game's settings.
    """

    keyword: str
    off: object
    description: str = ""


MOST_MODELS: Final = 100_000
"""Largest number of models of an audit; its bounds and its plan take half a minute to compute."""
MODELS_OPTION: Final = Option("N", panel=Panel.ATTACK)
ATTACKS_OPTION: Final = Option("NAME[,K=V]", ("--attack",), Panel.ATTACK)
FEWEST_FITS: Final = 40
"""Least number of models that probes may train: epsilon 1 is contradicted by 32 right guesses."""
MODELS_PER_FIT: Final = 10
"""Probes before a large audit may train one model for this many shadow models."""
PROBES_SHARE: Final = 0.05
"""Share of an audit's error probability for its probes; it costs bounds about 1 % of their value.
Most of what probes detect is nearly certain, so a small share suffices."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Choices that are written field by field, as JSON and as words of a command.

    Raises:
        SettingsError: If one is outside its range.
    """

    def __post_init__(self) -> None:
        check_settings(self)

    def plain(self, *left_out: str) -> dict[str, Any]:
        """The choices as JSON, by field.

        Args:
            left_out: Fields that are written otherwise.
        """
        values = {choice.name: getattr(self, choice.name) for choice in fields(self)}
        return {
            name: value.value if isinstance(value, StrEnum) else value
            for name, value in values.items()
            if name not in left_out
        }

    def words(self, *left_out: str) -> list[str]:
        """The settings that differ from their defaults, as words of a command.

        Args:
            left_out: Fields that are written otherwise.
        """
        defaults = {choice.name: choice.default for choice in fields(self)}
        words = []
        for name, value in self.plain(*left_out).items():
            option = f"--{name.replace('_', '-')}"
            if isinstance(value, bool):
                given = [option if value else f"--no-{option[2:]}"]
            else:
                given = [] if value is None else [option, str(value)]
            words += given if value != defaults[name] else []
        return words


@dataclass(frozen=True, kw_only=True)
class GameSettings(Choices, ABC):
    """The settings of one game, which its `dpaudit.auditing.game.Game` carries out.

    Attributes:
        probe: Whether probes from outside run first; each game documents it itself.
    """

    NAME: ClassVar[str]
    """The game in words."""
    SWITCH: ClassVar[GameSwitch | None] = None
    """The plain keyword that chooses it; None for the default game."""
    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]]
    """The sizes of each effort."""

    probe: Annotated[bool, Option(by_name=True)] = True

    @classmethod
    def sized(cls, effort: Effort | str, **given: Any) -> Self:
        """The settings for an effort.

        Args:
            effort: "quick", "standard" (the defaults) or "thorough".
            given: Fields; a size among them wins.

        Raises:
            SettingsError: If there is no such effort, or a field is out of range.
        """
        return cls(**{**cls.SIZES[member_named("effort", Effort, effort)], **given})

    @property
    @abstractmethod
    def hypotheses(self) -> int:
        """The number of hypotheses tested on the scored trials: every audit takes it from here.

        Thresholds, directions and the target are fixed before.
        """

    @property
    def are_default_attacks(self) -> bool:
        """Whether the attacks are those of an audit that names none."""
        return True

    @property
    def rule(self) -> ThresholdRule | None:
        """Where thresholds come from; None in a game without thresholds."""
        return None

    @property
    def correction(self) -> Multiplicity:
        """The correction for multiple hypotheses."""
        return Multiplicity.BONFERRONI

    @property
    def probe_fits(self) -> int:
        """Models that probes may train before the audit."""
        return FEWEST_FITS

    @property
    def not_probed(self) -> str | None:
        """Why no probes run before an audit of this size; None if they do."""
        if not self.probe:
            return "declined (probe=false)"
        for name, least in self.SIZES[Effort.QUICK].items():
            if getattr(self, name) < least:
                return f"fewer than {least} {name.replace('_', ' ')}"
        return None

    @property
    def probes_share(self) -> float:
        """The share of the error probability that the probes before the audit have."""
        return 0.0 if self.not_probed else PROBES_SHARE

    def attack_confidence(self, confidence: float) -> float:
        """Confidence of each attack's bound, from that of all together and of the probes."""
        from dpaudit.bounds import attack_confidence

        return attack_confidence(
            confidence, self.hypotheses, sequential=self.may_stop, others=self.probes_share
        )

    @property
    def may_stop(self) -> bool:
        """Whether the audit may stop early, so that it tests twice."""
        return False

    @property
    def is_timed(self) -> bool:
        """Whether the time and memory of trainings are measured."""
        return False


@dataclass(frozen=True, kw_only=True)
class ShadowModelSettings(GameSettings):
    """The settings common to games with shadow models; each game documents these fields itself.

    Attributes:
        attacks: Registered names or objects; each is one hypothesis (Bonferroni).
        shadow_models: Total number of shadow models, an even one.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one with the
            largest forecast on the fitting part, without correction.
        ignore_bits: Whether attacks do without the last bits of floating-point numbers: leaks that
            only these bits show stay unseen.

    Raises:
        SettingsError: If a setting is out of range.
    """

    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]] = {
        Effort.QUICK: {"shadow_models": 100},
        Effort.STANDARD: {"shadow_models": 400},
        Effort.THOROUGH: {"shadow_models": 1000},
    }

    WRITTEN_IF_SET: ClassVar[tuple[str, ...]] = ("ignore_bits",)
    """Settings that specifications leave out unless they are set."""

    attacks: Annotated[tuple[str | AnyAttack, ...], ATTACKS_OPTION] = DEFAULT_ATTACKS
    shadow_models: Annotated[int, NumberRange(MIN_SHADOW_MODELS, MOST_MODELS), MODELS_OPTION] = 400
    multiplicity: Annotated[Multiplicity, Option(by_name=True)] = Multiplicity.BONFERRONI
    ignore_bits: Annotated[bool, Option(by_name=True)] = False

    def __post_init__(self) -> None:
        if isinstance(self.attacks, str):
            raise SettingsError(f"`attacks` must be a list of attacks, got {self.attacks!r}")
        if not self.attacks:
            raise SettingsError("`attacks` is empty: an audit needs at least one attack")
        object.__setattr__(self, "attacks", tuple(self.attacks))
        super().__post_init__()
        if self.shadow_models % 2:
            raise SettingsError(
                f"`shadow_models` must be even, half of them for each world: give "
                f"{self.shadow_models + 1} instead of {self.shadow_models}"
            )

    def plain(self, *left_out: str) -> dict[str, Any]:
        """As in `GameSettings`, without `WRITTEN_IF_SET` where they are not set."""
        unset = [name for name in self.WRITTEN_IF_SET if not getattr(self, name)]
        return super().plain(*left_out, *unset)

    @property
    def are_default_attacks(self) -> bool:
        """Whether the attacks are those of an audit that names none."""
        return self.attacks == DEFAULT_ATTACKS

    @property
    def rule(self) -> ThresholdRule:
        """Where thresholds come from."""
        return ThresholdRule.CROSS_VALIDATED

    @property
    def probe_fits(self) -> int:
        """Models that probes may train before the audit: more before a large one."""
        return max(FEWEST_FITS, self.shadow_models // MODELS_PER_FIT)

    @property
    def per_world(self) -> int:
        """Trials of each world, if worlds are not drawn."""
        return self.shadow_models // 2

    @property
    def fitted(self) -> int:
        """Trials of each world that train the attack and choose its threshold."""
        return round(FIT_SHARE[self.rule] * self.per_world)

    @property
    def scored(self) -> int:
        """Trials of both worlds together that are scored once."""
        return self.shadow_models - 2 * self.fitted

    @property
    def hypotheses(self) -> int:
        """The number of attacks; 1 if one of them is selected on the fitting part."""
        return 1 if self.multiplicity is Multiplicity.SELECT else len(self.attacks)

    @property
    def correction(self) -> Multiplicity:
        """The chosen correction; Bonferroni for a single attack, which needs none."""
        return self.multiplicity if len(self.attacks) > 1 else Multiplicity.BONFERRONI


@dataclass(frozen=True, kw_only=True)
class AuditSettings(Choices, Generic[GameT]):
    """Every setting of an audit except the generator and the table.

    Attributes:
        game: The game with its choices: `dpaudit.TwoWorlds`, `ManyRecords` or `OneRun`.
        claim: The claim under audit, or parts of it; by default the claim of the generator.
        parameters: Parameters of the generator, by name.
        links: What connects several tables, such as visits.patient_id=patients.id; a row that
            refers to no other is the unit, with all rows that refer to it. Default: the schema's.
        separator: What is between the fields of all CSV files: one character, or tab. Default:
            found out.
        encoding: Encoding of all CSV files, such as cp1252. Default: found out.
        rows: Synthetic rows per model. Default: as many as the table has.
        confidence: One-sided confidence of the bound, over all attacks together.
        worker_memory: Memory limit in gigabytes of a generator that runs in its own process
            (Linux); a run may be resumed with another one.
        seed: Seed of all randomness; another one gives independent results.

    Raises:
        SettingsError: If a setting is out of range.
    """

    game: GameT
    claim: StatedClaim = field(default_factory=StatedClaim)
    parameters: Annotated[Mapping[str, Any], Option("K=V", ("-p", "--parameter"), Panel.INPUT)] = (
        field(default_factory=dict)
    )
    links: Annotated[
        tuple[str, ...], Option("CHILD.COLUMN=PARENT.KEY", ("--link",), Panel.INPUT, by_name=True)
    ] = ()
    separator: Annotated[str | None, Option("CHARACTER", panel=Panel.INPUT, by_name=True)] = None
    encoding: Annotated[str | None, Option("NAME", panel=Panel.INPUT, by_name=True)] = None
    rows: Annotated[int | None, AT_LEAST_1, Option("N", by_name=True)] = None
    confidence: Annotated[float, CONFIDENCE, Option("C", by_name=True)] = 0.95
    worker_memory: Annotated[
        float | None, POSITIVE, Option("GB", panel=Panel.MACHINE, by_name=True)
    ] = None
    seed: Annotated[int, SEED, Option("S", panel=Panel.ATTACK)] = 0

    def __post_init__(self) -> None:
        given: Any = self.claim
        if isinstance(given, Promise):
            object.__setattr__(self, "claim", StatedClaim.of(given))
        links: Any = self.links
        object.__setattr__(self, "links", (links,) if isinstance(links, str) else tuple(links))
        super().__post_init__()

    @property
    def attack_confidence(self) -> float:
        """Confidence of each attack's bound: of the fixed one, and of the sequential one."""
        return self.game.attack_confidence(self.confidence)

    @property
    def probes_confidence(self) -> float:
        """Probability that no probe before the audit flags a generator that satisfies its claim."""
        return 1.0 - (1.0 - self.confidence) * PROBES_SHARE

    def with_game(self, **changed: Any) -> Self:
        """The same audit with other choices of its game.

        Raises:
            SettingsError: If they are out of range.
        """
        return replace(self, game=replace(self.game, **changed))

    def words_by_name(self, words: Iterable[str]) -> list[str]:
        """Words of `dpaudit audit` with `--set NAME=VALUE` for settings that few audits need.

        Args:
            words: Options and their values, spelled as if every setting had an option; each value
                is a word of its own.
        """
        owners: tuple[Any, ...] = (StatedClaim, type(self.game), type(self))
        flags = {
            flag: (name.replace("_", "-"), setting.kind is bool)
            for owner in owners
            for name, setting in settings_of(owner).items()
            if setting.option.by_name
            for flag in setting.option.spelled(name)
        }
        named, rest = list[str](), iter(words)
        for word in rest:
            name, is_flag = flags.get(word.replace("--no-", "--"), ("", False))
            if name:
                value = str(not word.startswith("--no-")).lower() if is_flag else next(rest)
                named += ["--set", f"{name}={value}"]
            else:
                named.append(word)
        return named


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


LARGEST_SHARE: Final = 1 / 4
"""Largest share of the table's rows; a model is trained without half of them."""

FEWEST_MODELS: Final = 8
"""Fewer than in two worlds: every model gives many guesses."""
MOST_RECORDS: Final = 10_000
"""The bound of so many, with the default of shadow models, takes a minute."""


@dataclass(frozen=True, kw_only=True)
class ManyRecords(ShadowModelSettings):
    """Shadow models that each serve many records, the most exposed ones.

    Attributes:
        attacks: Registered names or objects; each is one hypothesis (Bonferroni).
        shadow_models: Total number of shadow models, an even one.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one with the
            largest forecast on the fitting part, without correction.
        records: Number of records (or units) that share the shadow models, each one attacked.
        probe: Whether probes run first, as in two worlds.
        ignore_bits: Whether attacks do without the last bits of numbers, as in two worlds.

    Raises:
        SettingsError: If a setting is out of range.
    """

    NAME: ClassVar[str] = "many records"
    SWITCH: ClassVar[GameSwitch] = GameSwitch("records", off=1)
    shadow_models: Annotated[int, NumberRange(FEWEST_MODELS, MOST_MODELS), MODELS_OPTION] = 400
    records: Annotated[
        int, NumberRange(2, MOST_RECORDS, why="leave it out for a single target"), Option("K")
    ]

    def check_population(self, of: Population) -> None:
        """Refuses too many records for a table.

        Raises:
            SettingsError: If they are more than a quarter of its rows, or of its units.
        """
        if self.records > LARGEST_SHARE * of.number:
            raise SettingsError(
                f"`records` must be at most a quarter of the table's {of.number} {of.noun}, got "
                f"{self.records}: half of them are missing from what each model is trained on"
            )


MIN_CANARIES: Final = 20
CANARY_ATTACKS: Final = ("closest-record", "canary-matches", "canary-marginals")
"""The attacks of every one-run audit, each with an equal share of the error probability."""

MOST_CANARIES: Final = 100_000
"""The bound of so many takes seconds, and of more memory."""


@dataclass(frozen=True, kw_only=True)
class OneRun(GameSettings):
    """One training with many canaries, for generators too slow for shadow models.

    Attributes:
        canaries: Canaries of `one_run`: records (or units) that are each included with probability
            1/2; at most half of the table.
        probe: Whether probes run first, as in two worlds.

    Raises:
        SettingsError: If there are too few canaries, or too many.
    """

    NAME: ClassVar[str] = "one run"
    SWITCH: ClassVar[GameSwitch] = GameSwitch(
        "one_run", off=False, description="One training, many canaries: for slow generators."
    )
    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]] = {
        Effort.QUICK: {"canaries": 50},
        Effort.STANDARD: {"canaries": 100},
        Effort.THOROUGH: {"canaries": 400},
    }

    canaries: Annotated[
        int, NumberRange(MIN_CANARIES, MOST_CANARIES), Option("M", by_name=True)
    ] = 100

    @property
    def hypotheses(self) -> int:
        """The number of attacks."""
        return len(CANARY_ATTACKS)

    def check_population(self, of: Population) -> None:
        """Refuses more canaries than a table allows.

        Raises:
            SettingsError: If they are more than half of its rows, or of its units.
        """
        if self.canaries > of.number // 2:
            raise SettingsError(
                f"`canaries` must be a number from {MIN_CANARIES} to half of the table's "
                f"{of.number} {of.noun}, got {self.canaries}"
            )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how trials run; it never changes a result.

    Attributes:
        jobs: Trainings in parallel. Default: one per core.
        engine: Engine that trains the models: "local" for processes of this machine, "dask" for
            the workers of a dask cluster.
        scheduler: Dask scheduler: tcp://host:8786, or its JSON file.
        trial_timeout: Seconds after which a shadow model has failed. Default: a day for the first,
            then 20 times the slowest, at least an hour.
        worker_memory: Gigabytes of address space that a generator in a process of its own may take
            (Linux).

    Raises:
        SettingsError: If a number or the engine has no meaning.
    """

    jobs: Annotated[int | None, AT_LEAST_1, Option("J", panel=Panel.MACHINE)] = None
    engine: Annotated[EngineName, Option("ENGINE", panel=Panel.MACHINE, by_name=True)] = (
        EngineName.LOCAL
    )
    scheduler: Annotated[str | None, Option("ADDRESS", panel=Panel.MACHINE, by_name=True)] = None
    trial_timeout: Annotated[
        float | None, AT_LEAST_1, Option("SECONDS", panel=Panel.MACHINE, by_name=True)
    ] = None
    worker_memory: Annotated[float | None, POSITIVE, Option("GB", panel=Panel.MACHINE)] = None

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What `dpaudit audit` reads and writes in addition to its run folder.

    Attributes:
        time_one: Train one model of GENERATOR for `plan`, to estimate the cost.
        after_replay: Result of `dpaudit replay --json`, to attack the features that its record
            moves; the only attack unless attacks are named.
        junit: JUnit XML file to write: claim, controls and checks as test cases.
        fail_on: What gives a non-zero exit code: violation (with leaks and invalid runs),
            inconclusive (all of these), never (nothing).
    """

    time_one: Annotated[bool, Option(panel=Panel.PLAN, by_name=True)] = False
    after_replay: Annotated[str | None, Option("FILE", by_name=True)] = None
    junit: Annotated[str | None, Option("FILE", panel=Panel.OUTPUT, by_name=True)] = None
    fail_on: Annotated[FailOn, Option("VERDICT", panel=Panel.OUTPUT)] = FailOn.INCONCLUSIVE

    def __post_init__(self) -> None:
        check_settings(self)
