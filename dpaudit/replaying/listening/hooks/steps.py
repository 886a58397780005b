"""A library mechanism as one step: noise added to a value, or a choice among several."""

from __future__ import annotations

import functools
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from .. import choices, marks, noise
from ..channel import Site, site
from ..world import PlainGenerator

_TABULATED = 50.0
"""Up to this scale a discrete Gaussian is drawn from its table; above, a Gaussian is rounded."""
_NODES = 200
"""Points of the integral behind permute-and-flip; exact up to twice as many candidates."""
_LONGEST = 1.0
"""Seconds for which a sampler is drawn from again."""


_Drawing = Callable[[Any, Any, Any, Any, Tuple[int, ...]], Any]
"""Draws noise from a generator, given the three parameters of a law and the number of draws."""


def _discrete_laplace(rng: Any, scale: Any, shape: Any, other: Any, size: Tuple[int, ...]) -> Any:
    p = -np.expm1(-1.0 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def _discrete_gaussian(rng: Any, scale: Any, shape: Any, other: Any, size: Tuple[int, ...]) -> Any:
    if np.ptp(scale) == 0 and np.max(scale) <= _TABULATED:
        reach = int(12 * np.max(scale)) + 1
        grid = np.arange(-reach, reach + 1)
        mass = np.exp(-0.5 * (grid / np.max(scale)) ** 2)
        return rng.choice(grid, size, p=mass / mass.sum())
    return np.rint(rng.normal(size=size) * scale).astype(int)


def _bounded_laplace(rng: Any, scale: Any, shape: Any, other: Any, size: Tuple[int, ...]) -> Any:
    """Between `shape`, which is at most 0, and `other`, which is at least 0."""
    below, above = -np.expm1(shape / scale), -np.expm1(-other / scale)
    positive = rng.random(size) * (below + above) < above
    far = -np.log1p(-rng.random(size) * np.where(positive, above, below)) * scale
    return np.where(positive, far, -far)


DRAWS: Dict[str, _Drawing] = {
    "laplace": lambda rng, scale, shape, other, size: rng.laplace(size=size) * scale,
    "gaussian": lambda rng, scale, shape, other, size: rng.normal(size=size) * scale,
    "gumbel": lambda rng, scale, shape, other, size: rng.gumbel(size=size) * scale,
    "logistic": lambda rng, scale, shape, other, size: rng.logistic(size=size) * scale,
    "exponential": lambda rng, scale, shape, other, size: rng.exponential(size=size) * scale,
    "gamma": lambda rng, scale, shape, other, size: rng.gamma(shape, size=size) * scale,
    "geometric": lambda rng, scale, shape, other, size: rng.geometric(shape, size=size),
    "discrete_laplace": _discrete_laplace,
    "discrete_gaussian": _discrete_gaussian,
    "bounded_laplace": _bounded_laplace,
}
"""How to draw noise of each law that can be drawn here."""


def draw_for_records(draw: Callable[[Any], Any], size: Any, place: Optional[int]) -> Any:
    """Draws, one per record if one world lacks that at a place: common records share theirs."""
    if place is None:
        return draw(size)
    own, other = marks.world.order.rows
    most = max(own, other)
    drawn = draw((most, *size[1:]) if isinstance(size, (tuple, list)) else most)
    return np.delete(drawn, place, axis=0) if own < other else drawn


def draw_around(
    where: Site,
    law: str,
    loc: Any,
    scale: Any,
    size: Any,
    *,
    natural: Callable[[], Any],
    shape: Any = 1.0,
    make: Callable[[Any], Any] = PlainGenerator,
    seed: Optional[str] = None,
    is_noise: bool = True,
) -> Any:
    """Draws of a law around a value: noise or an answer; plain numbers if the value is public.

    Args:
        where: The line that draws.
        law: The law.
        loc: The value.
        scale: The scale of the law.
        size: As numpy takes it.
        natural: Draws around the value as the library does, in natural fits.
        shape: The second parameter of the law.
        make: The class of the generators that draw in lockstep fits.
        seed: What seeded the noise, if known.
        is_noise: Whether draws around a value that is equal in both worlds can be noise.
    """
    world = marks.world
    is_plain = not is_noise or world.is_located(where, loc, scale)
    if world.natural:
        drawn = natural()
        drawn = drawn if is_plain or not np.any(loc) else drawn - loc
    else:
        draw = functools.partial(DRAWS[law], world.stream(where, size, make), 1.0, shape, 1.0)
        drawn = draw_for_records(draw, size, world.shared_row(where, size)) * scale
        drawn = drawn + loc if is_plain else drawn
    if is_plain:
        return drawn
    content = np.asarray(drawn)[()] if size is None else np.asarray(drawn)
    made = noise.noise(content, law, where, scale=scale, shape=shape, seed=seed)
    return noise.add_to(loc, made, where)


def add_noise(
    value: Any,
    law: str,
    *,
    library: Callable[[Any], Any],
    redraw: Optional[Callable[[], Any]] = None,
    scale: Any = 1.0,
    shape: Any = 1.0,
    other: Any = 1.0,
    size: Any = None,
    seed: Optional[str] = None,
) -> Any:
    """Adds to a value the noise that a library adds to it.

    If the value is 0 in both worlds, the noise is returned alone: libraries call `mechanism(0.0)`
    to draw noise that they then add to data.

    Args:
        value: The value before noise: a number, a list or an array.
        law: The law of the noise, one of `DRAWS`.
        library: What the library makes of a plain value, for natural fits.
        redraw: Adds noise to the same value once more; None if that cannot be done.
        scale: Its scale.
        shape: Its second parameter.
        other: Its third parameter.
        size: Shape of what is drawn, if it is larger than that of the value.
        seed: What seeded the noise, if known.

    Returns:
        Noise or an answer: a number for a number, else an array.
    """
    where, world = site(), marks.world
    scale, shape, other = (
        np.asarray(marks.end_marks(parameter, "a parameter"), dtype=float)
        for parameter in (scale, shape, other)
    )
    value = marks.array_of(marks.combine(value))
    before = np.asarray(marks.plain_array(value)) if world.natural else value
    is_new = (where, law) not in world.redrawn
    if redraw is not None:
        world.redrawn.add((where, law))
    if world.natural:
        with world.hushed():
            drawn = np.asarray(library(marks.without_marks(value))) - before
            if world.order.redraws and is_new and redraw is not None:
                _note_draws(lambda: redraw() - before, law, (scale, shape, other), where)
        full = drawn.shape
    else:
        given = () if size is None else tuple(np.atleast_1d(size).tolist())
        full = np.broadcast_shapes(np.shape(value), scale.shape, shape.shape, other.shape, given)
        rng = world.stream(where, full if full else None)
        drawn = np.asarray(DRAWS[law](rng, scale, shape, other, full))
    made = noise.noise(
        drawn if full else drawn[()], law, where, scale=scale, shape=shape, other=other, seed=seed
    )
    if marks.is_marked(value):
        return value + made
    if world.are_zero(where, value):
        return made
    return noise.answer(value, marks.array_of(made), where)


def _note_draws(
    draw: Callable[[], Any], law: str, parameters: Tuple[Any, Any, Any], where: Site
) -> None:
    """Notes many draws of one noise, so that its law can be tested."""
    draws: List[Any] = []
    started, count = time.monotonic(), 0
    while count < marks.world.order.redraws and time.monotonic() - started < _LONGEST:
        draws.append(draw())
        count += max(draws[-1].size, 1)
    drawn = np.stack(draws)
    full = [np.ravel(np.broadcast_to(parameter, drawn.shape[1:])) for parameter in parameters]
    names = ("scale", "shape", "other")
    marks.world.note("redrawn", where, drawn=drawn, law=law, **dict(zip(names, full)))


def pick(weights: Any) -> int:
    """A place drawn with known probabilities in a lockstep fit: each line asks."""
    return int(choices.ask_places(weights, (), site()))


def exponential_weights(scores: Any) -> Any:
    """Probabilities of the exponential mechanism: the largest of scores plus Gumbel noise.

    Args:
        scores: In units of the noise's scale.
    """
    scores = np.asarray(scores, dtype=float)
    weights = np.exp(scores - np.max(scores))
    return weights / weights.sum()


def flip_weights(scores: Any) -> Any:
    """Probabilities of permute-and-flip: the largest of scores plus exponential noise.

    Candidates arrive at uniform random times; the first one that its coin accepts is chosen.

    Args:
        scores: In units of the noise's scale.
    """
    scores = np.asarray(scores, dtype=float)
    takes = np.exp(scores - np.max(scores))
    nodes, weights = np.polynomial.legendre.leggauss(min(len(takes) // 2 + 1, _NODES))
    logs = np.log1p(-np.outer((nodes + 1) / 2, takes))  # that no earlier one is chosen
    others = np.exp(logs.sum(axis=1, keepdims=True) - logs)
    chances = takes * (weights / 2 @ others)
    return chances / chances.sum()


def report_unfollowed(what: str) -> None:
    """Reports that a mechanism of a library cannot be followed."""
    marks.world.tell("unfollowed", site(), what)


def intercept(plain: Callable[..., Any], instead: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a library, with another one in its place where draws are intercepted."""

    @functools.wraps(plain)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not marks.world.hears_draw:
            return plain(*args, **kwargs)
        marks.world.count_draw(site())
        return instead(*args, **kwargs)

    return wrapper
