"""The settings of an audit: those that every audit has, and the base class of a game's.

The settings of one game are in its package, such as `dpaudit.auditing.two_worlds.settings`;
`dpaudit.auditing.games` knows them all. Messages name settings in backquotes as Python spells them;
the command line turns them into its options. Modules that load numpy or scipy are imported where
they are used: the help of a command is made from these fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple

from dpaudit.errors import SettingsError
from dpaudit.model.choices import Access, Effort, Multiplicity, ThresholdRule, member_named
from dpaudit.model.claim import Promise, StatedClaim

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import TypeVar

    from dpaudit.plugins.access import AnyAttack

    GameT = TypeVar("GameT", bound="GameSettings", default="GameSettings", covariant=True)
else:
    from typing import TypeVar

    GameT = TypeVar("GameT")  # defaults of type variables are of Python 3.13

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
        description: What it says, unless it is a field of the game's settings.
    """

    keyword: str
    off: object
    description: str = ""


SET_BY_NAME: Final = frozenset(
    {
        *("links", "mu", "rho", "curve", "neighbours", "unit", "max_rows_per_unit", "effort"),
        *("neighbours_file", "rows", "confidence", "threshold", "multiplicity", "probe"),
        *("worker_memory", "engine", "scheduler", "trial_timeout", "junit", "after_replay"),
    }
)
"""What few audits need: `dpaudit audit` takes it as `--set NAME=VALUE`, or from its file."""
MOST_MODELS: Final = 100_000
"""Of an audit; its bounds, and a plan of it, are computed in half a minute."""
PROBES_SHARE: Final = 0.05
"""Of the error probability of an audit, for probes before it: bounds lose some 1 % of their value.
What probes find is certain or nearly so, and is found with a twentieth, too."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Choices that are written field by field, as JSON and as words of a command."""

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
        """The settings as words of a command; flags only if they differ from the default.

        Args:
            left_out: Fields that are written otherwise.
        """
        defaults = {choice.name: choice.default for choice in fields(self)}
        words = []
        for name, value in self.plain(*left_out).items():
            option = f"--{name.replace('_', '-')}"
            if not isinstance(value, bool):
                words += [] if value is None else [option, str(value)]
            elif value != defaults[name]:
                words.append(option if value else f"--no-{option[2:]}")
        return words


def name_of_flag(flag: str) -> str | None:
    """The setting that an option of earlier releases sets, as in dpaudit.toml; None for others.

    Args:
        flag: Such as "--rows" or "--no-probe".
    """
    name = "links" if flag == "--link" else flag.removeprefix("--no-").removeprefix("--")
    is_setting = flag.startswith("--") and name.replace("-", "_") in SET_BY_NAME
    return name if is_setting else None


def set_by_name(words: Sequence[str]) -> list[str]:
    """Words of `dpaudit audit` with `--set NAME=VALUE` for settings that have no option any more.

    Args:
        words: Options and their values, spelled as if every setting had an option.

    Returns:
        The words that the command takes.
    """
    named, rest = list[str](), iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = name_of_flag(flag)
        if name is None:
            named.append(word)
            continue
        if flag.startswith("--no-") or flag == "--probe":
            value = str(flag == "--probe").lower()
        elif not equals and (value := next(rest, "")) == "":
            return [*named, word]
        named += ["--set", f"{name}={value}"]
    return named


@dataclass(frozen=True, kw_only=True)
class GameSettings(Choices, ABC):
    """The settings of one game, which its `dpaudit.auditing.game.Game` carries out."""

    NAME: ClassVar[str]
    """The game in words."""
    SWITCH: ClassVar[GameSwitch | None] = None
    """The plain keyword that chooses it; None for the default game."""
    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]]
    """The sizes of each effort."""

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
    def rule(self) -> ThresholdRule | None:
        """Where thresholds come from; None in a game without thresholds."""
        return None

    @property
    def correction(self) -> Multiplicity:
        """The correction for multiple hypotheses."""
        return Multiplicity.BONFERRONI

    @property
    def probe_fits(self) -> int:
        """Models that probes from outside may train before the audit; 0 for no probes."""
        return 0

    @property
    def probes_share(self) -> float:
        """The share of the error probability that the probes before the audit have."""
        return PROBES_SHARE if self.probe_fits else 0.0

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
        shadow_models: Models to train, an even number from `FEWEST` to `MOST_MODELS`.
        multiplicity: "bonferroni" scores every attack; "select" scores only the one with the
            largest forecast on the fitting part, without correction.

    Raises:
        SettingsError: If a setting is out of range.
    """

    FEWEST: ClassVar[int] = MIN_SHADOW_MODELS
    SIZES: ClassVar[Mapping[Effort, Mapping[str, int]]] = {
        Effort.QUICK: {"shadow_models": 100},
        Effort.STANDARD: {"shadow_models": 400},
        Effort.THOROUGH: {"shadow_models": 1000},
    }

    attacks: tuple[str | AnyAttack, ...] = DEFAULT_ATTACKS
    shadow_models: int = 400
    multiplicity: Multiplicity = Multiplicity.BONFERRONI

    def __post_init__(self) -> None:
        if isinstance(self.attacks, str):
            raise SettingsError(f"`attacks` must be a list of attacks, got {self.attacks!r}")
        if not self.attacks:
            raise SettingsError("`attacks` is empty: an audit needs at least one attack")
        object.__setattr__(self, "attacks", tuple(self.attacks))
        chosen = member_named("multiplicity", Multiplicity, self.multiplicity)
        object.__setattr__(self, "multiplicity", chosen)
        check_whole(self, "shadow_models")
        if not self.FEWEST <= self.shadow_models <= MOST_MODELS:
            raise SettingsError(
                f"`shadow_models` must be from {self.FEWEST} to {MOST_MODELS:,}, "
                f"got {self.shadow_models:,}"
            )
        if self.shadow_models % 2:
            raise SettingsError(
                f"`shadow_models` must be even, half of them for each world: give "
                f"{self.shadow_models + 1} instead of {self.shadow_models}"
            )

    @property
    def rule(self) -> ThresholdRule:
        """Where thresholds come from."""
        return ThresholdRule.CROSS_VALIDATED

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
        parameters: Constructor parameters of a generator given by name.
        links: What connects several tables, such as "visits.patient_id=patients.id"; none if their
            schema has links.
        rows: Synthetic rows requested of every model; those of the table if None.
        confidence: One-sided confidence of the bound, over all attacks together; in (0.5, 1).
        worker_memory: Gigabytes of address space that a generator in a process of its own may take
            (Linux). A property of the machine, like `jobs`: a run may be resumed with another
            value.
        seed: Root of every random stream, in [0, 2**63).

    Raises:
        SettingsError: If a setting is out of range.
    """

    game: GameT
    claim: StatedClaim = field(default_factory=StatedClaim)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    rows: int | None = None
    confidence: float = 0.95
    worker_memory: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        from dpaudit.seeds import check_seed

        given: Any = self.claim
        if isinstance(given, Promise):
            object.__setattr__(self, "claim", StatedClaim.of(given))
        links: Any = self.links
        object.__setattr__(self, "links", (links,) if isinstance(links, str) else tuple(links))
        check_whole(self, "rows", "seed")
        if not 0.5 < self.confidence < 1:
            raise SettingsError(f"`confidence` must be in (0.5, 1), got {self.confidence:g}")
        if self.rows is not None and self.rows < 1:
            raise SettingsError(f"`rows` must be at least 1, got {self.rows}")
        check_seed(self.seed)

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


def check_whole(settings: object, *names: str) -> None:
    """Refuses settings that must be whole numbers, or None, and are not.

    Raises:
        SettingsError: If one is no whole number.
    """
    for name in names:
        value = getattr(settings, name)
        if value is not None and not is_whole(value):
            raise SettingsError(f"`{name}` must be a whole number, got {value!r}")


def is_whole(value: object) -> bool:
    """Whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
