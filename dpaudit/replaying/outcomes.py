"""The outcomes of choices and selections that a replay tries, the costliest first."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dpaudit.replaying.charges import charges_of
from dpaudit.replaying.costs import RARE, TableCost
from dpaudit.replaying.transcript import ChoiceStep, Transcript

_MOST: Final = 24
"""Outcomes that are tried."""
_FAR: Final = 1e6
"""A score is made the largest by this many scales of its noise."""


def costliest_outcomes(transcript: Transcript) -> list[dict[str, Any]]:
    """Orders of replays in which choices have each outcome in turn, the costliest first.

    Args:
        transcript: A replay.

    Returns:
        Fields of `orders.Order`.
    """
    orders: list[tuple[int, float, dict[str, Any]]] = []
    for choice in transcript.choices:
        if not choice.is_late:
            cost = TableCost.of(*choice.tables[0])
            orders += [
                (rank, -cost.epsilon, {"chosen": {choice.key: _outcome(choice, place)}})
                for rank, place in enumerate(_rank_places(cost))
            ]
    for charge in charges_of(transcript, is_internal=lambda site: False).charges:
        if charge.answers and isinstance(charge.cost, TableCost):
            orders += [
                (
                    rank,
                    -charge.cost.epsilon,
                    {"placed": _raise_answer(transcript, charge.answers[place])},
                )
                for rank, place in enumerate(_rank_places(charge.cost))
            ]
    orders.sort(key=lambda order: order[:2])
    return [order for *_, order in orders[:_MOST]]


def _rank_places(cost: TableCost) -> list[int]:
    """The places of a table: those that cost most either way, the rarest, and the others."""
    inside, outside = cost.tables
    likely = np.maximum(inside, outside)
    possible = np.flatnonzero(likely >= RARE)
    with np.errstate(divide="ignore"):
        losses = np.log(inside[possible]) - np.log(outside[possible])
    first = np.argmax(losses), np.argmin(losses), np.argmin(likely[possible])
    ranked = [*first, *np.argsort(-np.abs(losses), kind="stable")]
    return list(dict.fromkeys(possible[ranked].tolist()))


def _outcome(choice: ChoiceStep, place: int) -> tuple[int, ...]:
    """A place as `orders.Order` has it."""
    if not choice.sides:
        return (place,)
    # each comparison of a uniform draw but the last leaves one outcome: that it went otherwise
    last = () if place == len(choice.sides) else (not choice.sides[place],)
    return (*choice.sides[:place], *last)


def _raise_answer(transcript: Transcript, number: int) -> dict[Any, Any]:
    """An answer as the largest of the scores that are made of it and others."""
    [step] = [step for step in transcript.noisy if 0 <= number - step.first < step.answer.size]
    factors = [
        factor
        for selection in transcript.selections
        for own, factor in zip(selection.numbers.tolist(), selection.factor.tolist(), strict=True)
        if own == number
    ]
    scales = np.full(step.answer.size, np.nan)
    scales[number - step.first] = np.sign(factors[0]) * _FAR
    return {step.key: scales}
