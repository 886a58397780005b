"""Every bound and estimate of epsilon: its name, its input and whether it may decide.

Audits compute the bounds of this table; results, reports, `dpaudit report --bounds`, `dpaudit list
bounds` and docs/statistics.md show them. A new bound is a function and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from operator import itemgetter

from dpaudit.bounds.clopper_pearson import clopper_pearson, gdp, jeffreys, joint_beta
from dpaudit.bounds.exact import exact
from dpaudit.bounds.fair_coin import fair_coin
from dpaudit.bounds.one_run import (
    one_run,
    one_run_gaussian,
    one_run_in_turn,
    one_run_in_turn_level,
    one_run_level,
)
from dpaudit.bounds.sequential import coin_bound, coin_level
from dpaudit.bounds.trade_off import level_clopper_pearson, level_limit
from dpaudit.model.choices import Assumption


class ValidBound(StrEnum):
    """A lower confidence bound, valid at its stated confidence."""

    EXACT = "exact"
    FAIR_COIN = "fair_coin"
    CLOPPER_PEARSON = "clopper_pearson"
    SEQUENTIAL = "sequential"
    ONE_RUN = "one_run"
    ONE_RUN_IN_TURN = "one_run_in_turn"


class Estimate(StrEnum):
    """A number for comparison, without the guarantee of a bound."""

    JEFFREYS = "jeffreys"
    JOINT_BETA = "joint_beta"
    GDP = "gdp"
    ONE_RUN_GAUSSIAN = "one_run_gaussian"


class Observed(StrEnum):
    """The observations from which a bound is computed."""

    COUNTS = "counts"
    """The four numbers of `Counts`, of trials that were scored once."""
    COINS = "coins"
    """The three fields of `CoinGuesses`, of trials whose worlds were fair coins, scored once."""
    BETS = "bets"
    """The log odds of world "in" [trials], then the worlds [trials], in the order they were run."""
    CANARIES = "canaries"
    """Right guesses, guesses (a number fixed beforehand) and canaries of one training."""
    IN_TURN = "in-turn"
    """Whether the guess of each canary of one training is right [m], the most confident first."""


_IN_TWO_WORLDS = (Observed.COUNTS, Observed.COINS, Observed.BETS)


@dataclass(frozen=True, kw_only=True)
class BoundEntry:
    """One row of the table.

    Attributes:
        key: Key in results.
        label: Name in reports.
        meaning: Explanation for a reader of a report.
        observed: Kind of observations that it is computed from.
        function: Called with the observations and with `delta` and `confidence`.
        level: The same for claims in mu, in rho or by a curve: called with the observations (the
            four counts as one `Counts`), the family of trade-off functions and `confidence`. Every
            valid bound has one, except the bound from weighted guesses.
        decides: Whether it may decide a verdict; only a valid bound may.
        assumption: What it assumes about the mechanism; None if nothing.
        source: Where it is proved or proposed.
        short: What it does, in three or four words. Every valid bound of an audit in two worlds has
            this, to be shown next to the Clopper-Pearson bound.

    Raises:
        ValueError: If an estimate may decide a verdict, or a valid bound lacks a `level` or `short`
            that audits need.
    """

    key: ValidBound | Estimate
    label: str
    meaning: str
    observed: Observed
    function: Callable[..., float]
    level: Callable[..., float] | None = None
    decides: bool = False
    assumption: Assumption | None = None
    source: str
    short: str = ""

    def __post_init__(self) -> None:
        if self.decides and not self.valid:
            raise ValueError(f"{self.key} is an estimate: it cannot decide a verdict")
        if self.valid and self.observed is not Observed.COINS and self.level is None:
            raise ValueError(f"{self.key} lacks `level`: what it is for mu, rho and curves")
        if self.valid and self.observed in _IN_TWO_WORLDS and not self.short:
            raise ValueError(f"{self.key} lacks `short`: what it does, in three or four words")

    @property
    def valid(self) -> bool:
        """Whether it is a bound, not an estimate."""
        return isinstance(self.key, ValidBound)

    @property
    def account(self) -> str:
        """Whether it is a bound or an estimate, its meaning and its source, in one line."""
        kind = "bound" if self.valid else "estimate, not a proof"
        if self.decides:
            kind = "bound, may decide"
        return f"{kind}; {self.meaning} ({self.source})"


BOUNDS: tuple[BoundEntry, ...] = (
    BoundEntry(
        key=ValidBound.EXACT,
        label="exact",
        meaning="by inverting the exact test on both error counts",
        observed=Observed.COUNTS,
        function=exact,
        level=level_limit,
        decides=True,
        source="Buehler 1957, on the region of Kairouz, Oh and Viswanath 2015",
        short="tests both counts at once",
    ),
    BoundEntry(
        key=ValidBound.FAIR_COIN,
        label="fair coin",
        meaning="from the weight of right guesses; the attack abstains where it is unsure",
        observed=Observed.COINS,
        function=fair_coin,
        decides=True,
        source="Steinke, Nasr and Jagielski 2023, Theorem 5.2, with a training for each coin",
        short="weighs each guess",
    ),
    BoundEntry(
        key=ValidBound.CLOPPER_PEARSON,
        label="Clopper-Pearson",
        meaning="the bound that other audits report, for comparison; never decides",
        observed=Observed.COUNTS,
        function=clopper_pearson,
        level=level_clopper_pearson,
        source="Clopper and Pearson 1934, as in Nasr et al. 2021",
        short="bounds each rate",
    ),
    BoundEntry(
        key=ValidBound.SEQUENTIAL,
        label="sequential",
        meaning="at any time, by an e-process that is tested after every batch",
        observed=Observed.BETS,
        function=coin_bound,
        level=coin_level,
        decides=True,
        source="Ville 1939, with the stakes of Kelly 1956",
        short="bets on each trial",
    ),
    BoundEntry(
        key=ValidBound.ONE_RUN,
        label="one-run",
        meaning="from a fixed number of guesses of the coins in one training",
        observed=Observed.CANARIES,
        function=one_run,
        level=one_run_level,
        decides=True,
        source="Steinke, Nasr and Jagielski 2023, Theorem 5.2",
    ),
    BoundEntry(
        key=ValidBound.ONE_RUN_IN_TURN,
        label="one-run, in turn",
        meaning="from guesses of the coins in one training, over all numbers of them at once",
        observed=Observed.IN_TURN,
        function=one_run_in_turn,
        level=one_run_in_turn_level,
        decides=True,
        source="Steinke, Nasr and Jagielski 2023, Theorem 5.2, for coins looked at in turn",
    ),
    BoundEntry(
        key=Estimate.JEFFREYS,
        label="Jeffreys",
        meaning="as Clopper-Pearson, with Jeffreys' prior",
        observed=Observed.COUNTS,
        function=jeffreys,
        source="limits of Brown, Cai and DasGupta 2001",
    ),
    BoundEntry(
        key=Estimate.JOINT_BETA,
        label="joint beta",
        meaning="by a joint posterior of both error rates",
        observed=Observed.COUNTS,
        function=joint_beta,
        source="Zanella-Béguelin et al. 2023",
    ),
    BoundEntry(
        key=Estimate.GDP,
        label="Gaussian",
        meaning="if the mechanism is Gaussian",
        observed=Observed.COUNTS,
        function=partial(gdp, assume="gaussian"),
        assumption=Assumption.GAUSSIAN,
        source="Nasr et al. 2023, section 5",
    ),
    BoundEntry(
        key=Estimate.ONE_RUN_GAUSSIAN,
        label="one-run, Gaussian",
        meaning="if the trade-off curve of the training is Gaussian",
        observed=Observed.CANARIES,
        function=one_run_gaussian,
        assumption=Assumption.GAUSSIAN,
        source="Mahloujifar, Melis and Chaudhuri 2024",
    ),
)
"""The table, in display order."""


def entries_for(observed: Observed) -> Iterator[BoundEntry]:
    """The bounds and estimates that can be computed from such observations."""
    return (entry for entry in BOUNDS if entry.observed is observed)


FIXED = frozenset(
    entry.key for entry in BOUNDS if entry.observed in (Observed.COUNTS, Observed.COINS)
)
"""The bounds that need a number of trials fixed in advance."""


def deciding(bounds: Mapping[ValidBound, float | None]) -> BoundEntry | None:
    """The row of the largest bound that may decide a verdict; None if there is no such bound."""
    rows = [
        (value, entry)
        for entry in BOUNDS
        if entry.decides and (value := bounds.get(ValidBound(entry.key))) is not None
    ]
    return max(rows, key=itemgetter(0))[1] if rows else None


def proved(bounds: Mapping[ValidBound, float]) -> float:
    """The largest of the bounds that may decide a verdict; 0 if there is none."""
    entry = deciding(bounds)
    return 0.0 if entry is None else bounds[ValidBound(entry.key)]
