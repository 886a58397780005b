"""The parts of a result that differ from game to game, behind one interface.

An audit's record holds the outcome of one game. Terminal, report, `dpaudit report --bounds` and
`dpaudit explain` ask it, and nothing else knows which game it is: a new one is a subclass of
`GameOutcome` in a module next to these, and its name in `AnyOutcome` (`record.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from dpaudit.bounds import CoinGuesses, Counts, Threshold
from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.model.claim import Claim
from dpaudit.plugins.protocols import World
from dpaudit.results.document import OPTIONAL, NonNegative, Probability
from dpaudit.results.structure import Block


@dataclass(frozen=True, kw_only=True)
class AttackOutcome:
    """What one attack achieved on the scored trials.

    Attributes:
        name: Its name.
        auc: Area under its ROC curve; 0.5 is chance.
        bounds: Lower bounds on epsilon, or on the quantity of the claim, from its errors or its
            guesses, whichever was chosen on other trials, and the Clopper-Pearson bound from its
            errors, which decides nothing; where the selected attack changed on the way, the
            sequential one is from the bets of all that were selected.
        counts: Its errors at its threshold.
        threshold: The scores that it guesses to be "in".
        guesses: Its guesses by weight, where the fair-coin bound is the one that was computed;
            absent where it was not.
        shares: For the combination of all attacks, each attack's share of its weights, largest
            first; absent for every other attack.
    """

    name: str
    auc: Probability
    bounds: Mapping[ValidBound, NonNegative | None]
    counts: Counts
    threshold: Threshold
    guesses: CoinGuesses | None = field(default=None, metadata=OPTIONAL)
    shares: Mapping[str, Probability] | None = field(default=None, metadata=OPTIONAL)


class Scored(Protocol):
    """The fields of a record that the game's outcome reads."""

    @property
    def attack(self) -> str | None:
        """Name of the deciding attack; None if nothing was scored."""

    @property
    def auc(self) -> float | None:
        """Area under its ROC curve."""

    @property
    def counts(self) -> Counts | None:
        """Its errors."""

    @property
    def attacks(self) -> Sequence[AttackOutcome]:
        """Every attack that was scored at a threshold."""

    @property
    def claim(self) -> Claim:
        """The claim under audit."""

    @property
    def shadow_models(self) -> Mapping[World, int]:
        """Trials run in each world."""


def chosen_among(attacks: int, scored: str) -> str:
    """That an AUC is that of the best of several attacks; empty if there was no choice."""
    return f"; best of {attacks} attacks on the same {scored}, so optimistic" if attacks > 1 else ""


class Evidence(NamedTuple):
    """What a bound of one attack is computed from.

    Attributes:
        attack: Name of the attack.
        observed: The kind of observation.
        given: The observations, as `Observed` lists them; None if the result does not hold them.
        recorded: The bound that was recorded; None where all can be computed again.
        chosen: Whether this bound was chosen before the trials were scored.
        estimates: Whether only estimates may use it.
    """

    attack: str
    observed: Observed
    given: tuple[Any, ...] | None
    recorded: float | None = None
    chosen: bool = True
    estimates: bool = False


class GameWords(NamedTuple):
    """Names of a game's parts in a report.

    Attributes:
        attacked: Whose membership is attacked.
        unknown: What the attacker has to find out.
        copies: What the generator of the positive control does.
        separates: What an attack that finds something in a control does.
        units: What is scored, one by one.
        inside: Units of world "in".
        outside: Units of world "out".
        panels: Title of the picture of their scores.
        scores: The meaning of a high score, and how a better attack would change the figure.
    """

    attacked: str
    unknown: str
    copies: str
    separates: str
    units: str
    inside: str
    outside: str
    panels: str
    scores: str


def each_a_unit(unit: str | None) -> str:
    """That each of many records is a unit: ", each all rows of one patient"; else empty."""
    return "" if unit is None else f", each all rows of one {unit}"


class GameOutcome(ABC):
    """How the game of an audit ended."""

    words: ClassVar[GameWords]
    needed: ClassVar[tuple[str, ...]] = (
        "counts",
        "attacks",
        "threshold_rule",
        "threshold",
        "scores",
    )
    """Fields of the record, or of this, that a verdict on the claim needs, as Python names them."""
    unexplained: ClassVar[str] = ""
    """Why `dpaudit explain` does not open such an audit; empty if it does."""
    names_leaks: ClassVar[bool] = False
    """Whether the features that carry the deciding attack are searched for."""
    names_rows: ClassVar[bool] = False
    """Whether its report names attacked rows of the table, as well as that of the target."""
    has_threshold: ClassVar[bool] = True
    """Whether the deciding attack guesses by one threshold, whose errors are counted."""

    @property
    def may_stop(self) -> bool:
        """Whether it may end early, so that each attack has two bounds, with half of the error."""
        return False

    @property
    def has_fixed_independent_trials(self) -> bool:
        """Whether scored trials are independent of one another, and of how many there are."""
        return True

    @property
    def turns(self) -> Mapping[str, int]:
        """Trials that each attack bet on, where the attack that bets changed on the way."""
        return {}

    @property
    @abstractmethod
    def no_clopper_pearson(self) -> str:
        """Why there is no Clopper-Pearson bound, where there is none."""

    @property
    def instead_of_target(self) -> str | None:
        """What is attacked, in a few words; None if it is the target."""
        return None

    @property
    def early_end(self) -> str | None:
        """That it ended before its last trial, in one line; None if it did not."""
        return None

    def disclosed(self, audit: Scored) -> str | None:
        """What guesses of a secret show, in one line; None if none was guessed."""
        return None

    @abstractmethod
    def achieved(self, audit: Scored) -> str | None:
        """The result of the deciding attack, in one line; None if nothing was scored."""

    @abstractmethod
    def models(self, audit: Scored) -> tuple[str, str]:
        """What was trained, for a table of settings: what it is called, and how many."""

    def parts(self, audit: Scored) -> str | None:
        """How many shadow models trained the attacks and how many were scored, in a sentence."""
        return None

    def failed(self, error: str) -> str | None:
        """That its only training failed, in one sentence; None if there are several."""
        return None

    def blocks(self, audit: Scored) -> Iterable[Block]:
        """The parts of a report that no other game has."""
        return ()

    def evidence(self, audit: Scored) -> Iterator[Evidence]:
        """What its bounds are computed from, attack by attack."""
        for attack in audit.attacks:
            if attack.guesses is not None:
                yield Evidence(attack.name, Observed.COINS, tuple(attack.guesses))
