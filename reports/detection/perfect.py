"""The attacker who is shown the leak itself: whether a table was changed, and by which world.

It knows how often a leak changes a table, and guesses in the better of two ways: only where a
table was changed, or everywhere, the rarer world of those that were not. It sees more than any
attack on tables can: of a leak that shifts a distribution every table is changed.

Of a leak that names its statistic the attacker sees that of the released table instead, as an
attack could, and guesses above one threshold and below another.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.auditing.games import audit_settings
from dpaudit.bounds import fair_coin
from dpaudit.seeds import rng_of
from reports.detection.leak import RECORDS, SCHEMA, Leak, PlantedModel, public_table, unchanged

TABLES = 200
"""Drawn to see how often a leak changes one."""
FACTS = 200
"""Tables of each world that choose the thresholds; as many others say what these prove."""
CUTS = 41
"""Quantiles of the statistic that are tried as thresholds."""


class Shown(NamedTuple):
    """How often a leak changes a table, with the target and without it."""

    seen: float
    unseen: float


@lru_cache
def shown(leak: Leak) -> Shown:
    """How often a leak changes a table, of `TABLES` that are drawn with each world's write."""
    return Shown(_changed(leak, seen=True), _changed(leak, seen=False))


def _changed(leak: Leak, *, seen: bool) -> float:
    if not seen and leak.unseen is unchanged:
        return 0.0
    model = PlantedModel(leak=leak, seen=seen)
    return sum(_differs(model, seed) for seed in range(TABLES)) / TABLES


def _differs(model: PlantedModel, seed: int) -> bool:
    honest = public_table(RECORDS, rng_of(seed, "sample"))
    try:
        released = model.sample(RECORDS, seed=seed)
    except (ArithmeticError, MemoryError):  # the leaks that are about failing
        return True
    # In the types of the schema, which a write may change without changing a value.
    return not SCHEMA.canonical(released).equals(SCHEMA.canonical(honest))


@lru_cache
def provable(rates: Shown, models: int) -> float:
    """The bound of this attacker in an audit where exactly the expected numbers are seen.

    Args:
        rates: How often the leak changes a table.
        models: Shadow models of the audit.

    Returns:
        The bound at 95 %, of one hypothesis, as of a default audit; delta is 0.
    """
    settings = audit_settings(shadow_models=models)
    scored = settings.game.scored
    changed = round(scored * (rates.seen + rates.unseen) / 2)
    rest = scored - changed
    larger = max(1.0 - rates.seen, 1.0 - rates.unseen)
    right = changed + min(rest, round(scored * larger / 2))
    return max(
        fair_coin([hits], [made], scored, delta=0.0, confidence=settings.confidence)
        for hits, made in ((changed, changed), (right, changed + rest))
    )


@lru_cache
def provable_by_fact(leak: Leak, models: int) -> float:
    """The bound of who sees the leak's statistic, in an audit with exactly the expected numbers.

    Args:
        leak: A leak that names its statistic.
        models: Shadow models of the audit.

    Returns:
        As of `provable`.
    """
    values = _facts(leak)
    trying, judging = values[:, :FACTS], values[:, FACTS:]
    cuts = np.unique(np.quantile(trying, np.linspace(0, 1, CUTS), method="nearest"))
    best = max(
        combinations([-np.inf, *cuts, np.inf], 2), key=lambda pair: _by_cuts(trying, pair, models)
    )
    return _by_cuts(judging, best, models)


@lru_cache
def _facts(leak: Leak) -> npt.NDArray[np.float64]:
    """The statistic of tables [2, 2 * FACTS] with the target and without it."""
    assert leak.fact is not None
    models = [PlantedModel(leak=leak, seen=seen) for seen in (True, False)]
    seeds = [range(2 * FACTS), range(2 * FACTS, 4 * FACTS)]
    return np.array(
        [
            [leak.fact(model.sample(RECORDS, seed=seed)) for seed in own]
            for model, own in zip(models, seeds, strict=True)
        ]
    )


def _by_cuts(values: npt.NDArray[Any], cuts: tuple[float, float], models: int) -> float:
    """Bound of guesses that the target was seen from the upper cut on, unseen up to the lower."""
    settings = audit_settings(shadow_models=models)
    scored = settings.game.scored
    (seen_low, unseen_low), (seen_high, unseen_high) = (
        (values <= cuts[0]).mean(axis=1) if np.isfinite(cuts[0]) else (0.0, 0.0),
        (values >= cuts[1]).mean(axis=1) if np.isfinite(cuts[1]) else (0.0, 0.0),
    )
    hits, wrong = (
        round(scored * (first + second) / 2)
        for first, second in ((seen_high, unseen_low), (seen_low, unseen_high))
    )
    return fair_coin([hits], [hits + wrong], scored, delta=0.0, confidence=settings.confidence)
