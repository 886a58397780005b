"""Choices: uniform draws that are compared or looked up, and places with known probabilities."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from . import marks
from .channel import Site
from .marks import Marked, MarkedCall, plain_array


class CoinState(NamedTuple):
    """What is known of uniform draws; all views of the draws share it.

    The interval each still lies in, its value, whose coin it is, and whether it was compared, or
    used as a number; and the line that draws.
    """

    low: Any
    high: Any
    value: Any
    record: Any
    known: Any
    where: Site

    def map_fields(self, change: Callable[[Any], Any]) -> CoinState:
        """The state with the same change applied to all arrays."""
        return CoinState(*(change(array) for array in self[:5]), where=self.where)

    def narrow(self, place: Any, low: Any, high: Any) -> None:
        """Moves draws to a smaller interval, to where they lay in the larger one."""
        share = (self.value[place] - self.low[place]) / (self.high[place] - self.low[place])
        self.value[place] = low + share * (high - low)
        self.low[place], self.high[place] = low, high

    def read(self) -> None:
        """Notes that something may depend on the draws: what is made of them has another law."""
        if self.known.flags.writeable:
            self.known[...] = True


def compare(marked: Any, bound: Any, name: str, where: Site, *, whole: bool) -> Any:
    """Compares coins with a value, as a comparison of numpy does.

    Args:
        marked: The coin, or an array of coins.
        bound: The value.
        name: The comparison: "less", "less_equal", "greater" or "greater_equal".
        where: The line that compares.
        whole: Whether the coins are integers.
    """
    if whole:  # the limit on the draw in [0, 1) behind them
        bound = np.asarray(bound).astype(float)
        is_above = name in ("less_equal", "greater")
        bound = np.floor(bound) + 1.0 if is_above else np.ceil(bound)
    return toss(marked, bound, name.startswith("less"), where)


def toss(marked: Any, bound: Any, is_below: bool, where: Site) -> Any:
    """Compares a coin with a value, which shrinks the coin's interval.

    Args:
        marked: The coin, or an array of coins.
        bound: The value.
        is_below: Whether "true" means that the coin is below.
        where: The line that compares.
    """
    world, state = marks.world, marked.state
    shape = np.broadcast_shapes(marked.shape, bound.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.broadcast_to((bound - marked.offset) / marked.factor, shape).astype(float)
    flipped = np.broadcast_to(np.asarray(marked.factor) < 0, shape)
    below = np.full(shape, is_below) ^ flipped  # whether "true" means u < limit
    state.read()
    is_asked = where[:2] in world.asked
    if world.order.kept is not None and np.any(state.record):
        under = _toss_for_records(marked, limit, below, where)
    elif is_asked and marked.size == 1 and limit.size > 1:
        order = np.argsort(limit, axis=None, kind="stable")
        if not world.is_equal("spend", where, order):
            why = "one coin compared with limits whose order depends on the data"
            world.tell("unfollowed", where, why)
        under = _find_interval(state, limit, where)
    elif is_asked:
        under = _ask(state, limit, where)
    else:
        world.note("coin", where, limit if bound.ndim else np.unique(limit))
        under = np.broadcast_to(state.value, shape) < limit
    outcome = np.where(below, under, ~under)
    return outcome if outcome.ndim else np.bool_(outcome)


def _ask(state: CoinState, limit: Any, where: Site) -> Any:
    """Whether coins are under their limits: the coordinator decides."""
    shape = limit.shape
    low, high, value = (np.broadcast_to(array, shape) for array in state[:3])
    name = state.low.__array_interface__["data"][0]
    reply = marks.world.ask("coin", where, low=low, high=high, limit=limit, value=value, name=name)
    under = np.asarray(reply["under"], dtype=bool).reshape(shape)
    if shape == state.low.shape and state.low.flags.writeable:
        inside = np.clip(limit, low, high)
        # the lower part of the interval is [low, inside), the upper one [inside, high)
        state.narrow(..., np.where(under, low, inside), np.where(under, inside, high))
    return under


def _toss_for_records(marked: Any, limit: Any, below: Any, where: Site) -> Any:
    """Whether coins of the records are under their limits: the target's own are decided."""
    world, state = marks.world, marked.state
    own = np.broadcast_to(state.record == 2, limit.shape)
    if not own.all():
        world.note("sampled", where, limit[~own], below[~own])
    if own.any():
        single = own.sum() <= len(world.order.own_rows)  # otherwise several coins of one record
        if single and marked.shape == limit.shape and state.low.flags.writeable:
            for place in zip(*np.nonzero(own)) if own.ndim else [()]:
                _decide(state, place, limit, below, where)
        else:
            why = "several coins of the record, or one coin with several views"
            world.tell("unfollowed", where, why)
    return np.broadcast_to(state.value, limit.shape) < limit


def _decide(state: CoinState, place: Any, limit: Any, below: Any, where: Site) -> None:
    """Decides on which side of its limit the target's coin falls, if both are possible."""
    low, high = float(state.low[place]), float(state.high[place])
    inside = min(max(float(limit[place]), low), high)
    share = (inside - low) / (high - low)
    if not 0.0 < share < 1.0:
        return
    true_below, kept = bool(below[place]), marks.world.order.kept
    chance = share if true_below == kept else 1.0 - share
    under = (marks.world.toss(where, chance) == kept) == true_below
    state.narrow(place, *((low, inside) if under else (inside, high)))


def _find_interval(state: CoinState, limit: Any, where: Site) -> Any:
    """Finds the two of several limits between which a coin lies."""
    low, high = (float(array.reshape(())) for array in state[:2])
    edges = np.concatenate([[low], np.sort(np.clip(limit, low, high), axis=None), [high]])
    place = int(ask_places(np.diff(edges), (), where))
    if state.low.flags.writeable:
        state.narrow(..., edges[place], edges[place + 1])
    return np.clip(limit, low, high) >= edges[place + 1]


def look_up(call: MarkedCall) -> Any:
    """A coin looked up in a table, by numpy."""
    first, second = call.inputs[:2]
    is_digitize = call.name == "digitize"
    table, marked = (second, first) if is_digitize else (first, second)
    is_coin = isinstance(getattr(marked, "state", None), CoinState)
    if not is_coin or isinstance(table, Marked) or len(call.inputs) > 2:
        return NotImplemented
    side = call.kwargs.get("side", "left")
    if is_digitize:
        side = "left" if call.kwargs.get("right") else "right"
    return invert(plain_array(table), marked, call.where, side=side)


def invert(cdf: Any, marked: Any, where: Site, *, side: str) -> Any:
    """Looks up a coin in a table of cumulative weights."""
    if not marks.world.natural:
        weights = np.diff(np.concatenate([[0.0], np.asarray(cdf, dtype=float)]))
        marked.state.read()
        total = marked.factor + marked.offset
        exact = bool(np.all(marked.offset == 0)) and bool(np.allclose(total, cdf[-1]))
        if where[:2] in marks.world.asked and exact:
            return ask_places(weights, marked.shape, where)
        marks.world.note("choose", where, weights)
    return np.searchsorted(cdf, marked.view(np.ndarray), side=side)


def ask_distinct_places(weights: Any, count: int, where: Site) -> Any:
    """Distinct places drawn one after another, requested from the coordinator."""
    weights = np.asarray(weights, dtype=float)
    if np.count_nonzero(weights) < count:
        raise ValueError("Fewer non-zero entries in p than size")  # as numpy
    return np.asarray(marks.world.ask("pick", where, weights=weights, count=count)["places"])


def ask_places(weights: Any, shape: Any, where: Site) -> Any:
    """Places drawn with known probabilities, requested from the coordinator."""
    weights = np.asarray(weights, dtype=float)
    count = int(np.prod(shape, dtype=int))
    reply = marks.world.ask("choose", where, weights=weights, count=count)
    return np.asarray(reply["places"]).reshape(shape)


def draw_places(weights: Any, shape: Any, where: Site) -> Any:
    """Places drawn with known probabilities in a lockstep fit.

    Args:
        weights: Their probabilities, up to a factor.
        shape: Of the result; () for one place.
        where: The line that draws.
    """
    world, weights = marks.world, np.asarray(weights, dtype=float)
    shape = tuple(np.atleast_1d(shape).astype(int).tolist()) if np.size(shape) else ()
    if where[:2] in world.asked:
        return ask_places(weights, shape, where)
    world.note("choose", where, weights)
    total = np.cumsum(weights)
    drawn = world.stream(where, shape if shape != () else None).random(shape)
    if world.order.edge is not None:
        drawn = np.full(shape, world.order.edge)
    places = np.searchsorted(total / total[-1], drawn, side="right")
    return np.minimum(places, np.flatnonzero(weights)[-1])
