"""The attacker who is shown the leak itself: whether a table was changed, and by which world.

It knows how often a leak changes a table, and guesses in the better of two ways: only where a
table was changed, or everywhere, the rarer world of those that were not. It sees more than any
attack on tables can: of a leak that shifts a distribution every table is changed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from dpaudit.auditing.games import audit_settings
from dpaudit.bounds import fair_coin
from dpaudit.seeds import rng_of
from reports.detection.leak import RECORDS, SCHEMA, Leak, PlantedModel, public_table, unchanged

TABLES = 200
"""Drawn to see how often a leak changes one."""


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
