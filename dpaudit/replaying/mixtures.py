"""Answers from a secret sub-sample that includes the record by its own coin.

Given the coins of all other records, the answers in world "in" have the density (1 - q) p_out + q
p_in. Here q is the probability of the coin, p_in the density with the record in the sub-sample, and
p_out the density without it, as in world "out". The proofs of privacy amplification by Poisson
sub-sampling (Li, Qardaji and Su 2012) and of the sampled Gaussian mechanism (Mironov et al. 2019)
compare these two, and hold given all other coins. After each answer q is the posterior probability
of the coin given the answers so far, so answers that share a coin are taken one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import World
from dpaudit.replaying.laws import FloatArray, Gaussian, NoiseLaw
from dpaudit.replaying.transcript import Pair

_NODES: Final = 1001
"""Cells of the grid that an answer is drawn from."""
_REACH: Final = 60.0
"""The grid reaches this many scales around both values before noise."""


_UNIT: Final = Gaussian(np.asarray(1.0))
_LOSSES: Final = 401
"""Grid points of the loss, for the value of a partly drawn transcript."""
_MARGIN: Final = 12.0
"""The grid reaches this far above the target epsilon; beyond, everything counts."""
_WIDE: Final = 9.0
"""For this value, answers are integrated up to this many scales around both values before noise."""

Towards = Callable[[FloatArray], FloatArray]
"""The log factor of a density, as a function of the loss of an answer."""


class Steering(NamedTuple):
    """Steers the next answer of a transcript, given the loss of the earlier ones.

    The best law to draw from is P (1 - e^(epsilon - L))_+, whose weighted estimate is constant.
    Answer by answer this is P times the mean of (1 - e^(epsilon - L))_+ given the loss so far
    (Doob's h-transform). The means are computed for the expected answers; weights are exact in any
    case.

    Attributes:
        epsilon: The epsilon that is aimed at.
        grid: Losses.
        log_means: After each answer but the last, the logarithm of the mean at each of these.
    """

    epsilon: float
    grid: FloatArray
    log_means: tuple[FloatArray, ...]

    def after(self, number: int, loss: FloatArray) -> FloatArray:
        """The logarithm of the mean after answer `number`, counted from 0, by the loss so far."""
        if number < len(self.log_means):
            return np.asarray(np.interp(loss, self.grid, self.log_means[number]))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-np.expm1(np.minimum(self.epsilon - loss, 0.0))))

    def towards(self, number: int, so_far: float) -> Towards:
        """The factor of the density of answer `number`, given the loss before it."""
        return lambda gain: self.after(number, so_far + gain)


class Expected(NamedTuple):
    """A Gaussian answer that depends on its own coin.

    Attributes:
        far: The distance by which the record moves it, in units of its scale.
        chance: Probability of the coin.
    """

    far: float
    chance: float

    def in_world(self, base: World) -> CoinMixture:
        """The answer in units of its scale, drawn from this world's law."""
        return CoinMixture((_UNIT, _UNIT), (self.far, 0.0), self.chance, base)


def steering(answers: Sequence[Expected], base: World, epsilon: float) -> tuple[Steering, float]:
    """Steering towards the divergence at an epsilon, and that divergence, up to grid error.

    Args:
        answers: In order.
        base: The world whose law is drawn from.
        epsilon: The epsilon.
    """
    # the total loss that all coins can remove, or add in the other order
    least = -sum(math.log1p(-min(one.chance, 1.0 - 1e-9)) for one in answers)
    low, high = -least - 1.0, epsilon + least + _MARGIN
    if base is World.OUT:
        low, high = epsilon - least - 1e-3, max(least, epsilon)
    grid = np.linspace(low, high, _LOSSES)
    found = Steering(epsilon, grid, ())
    cells = {one: _masses(one, base) for one in set(answers)}
    means: list[FloatArray] = []
    for one in reversed(answers):
        mass, gain = cells[one]
        # the last answer's mean is known without a grid: `after` gives it for number 0
        value = np.exp(found.after(0, grid[:, None] + gain)) @ mass
        means.insert(0, np.log(np.maximum(value, 1e-300)))
        found = Steering(epsilon, grid, (means[0],))
    start = float(np.exp(np.interp(0.0, grid, means[0])))
    return Steering(epsilon, grid, tuple(means[1:])), start


def _masses(one: Expected, base: World) -> tuple[FloatArray, FloatArray]:
    """The mass of cells of an answer in the base world, and the loss there towards it."""
    edges = np.linspace(-_WIDE, one.far + _WIDE, _LOSSES)
    middles = 0.5 * (edges[1:] + edges[:-1])
    own, other = one.in_world(base).log_densities(middles)
    return np.exp(own) * np.diff(edges), own - other


class MixedDraw(NamedTuple):
    """Drawn answers of a step that depends on the record's coin.

    Attributes:
        value: The answers.
        log_weight: log P(answers) - log Q(answers), P being the law of the base world.
        log_ratio: log p_in(answers) - log p_out(answers).
    """

    value: FloatArray
    log_weight: float
    log_ratio: float


def log_mixed(chance: float, log_ratio: FloatArray | float) -> FloatArray:
    """log((1 - q) + q p_in / p_out): the privacy loss of a sub-sample.

    Args:
        chance: q.
        log_ratio: log p_in - log p_out.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp(np.log1p(-chance), np.log(chance) + log_ratio))


def posterior(chance: float, log_ratio: float) -> float:
    """The posterior probability that the record is in the sub-sample, given answers.

    Args:
        chance: Before them.
        log_ratio: log p_in - log p_out of the answers.
    """
    if math.isnan(log_ratio) or chance in (0.0, 1.0):
        return chance
    odds = math.log(chance) - math.log1p(-chance) + log_ratio
    return 1.0 / (1.0 + math.exp(-min(max(odds, -700.0), 700.0)))


def mixed_answers(
    laws: tuple[NoiseLaw, NoiseLaw],
    before: Pair,
    chance: float,
    *,
    base: World,
    tilt: float,
    rng: np.random.Generator,
    towards: Towards | None = None,
) -> MixedDraw:
    """Draws the answers of a step that depends on the record's coin.

    Args:
        laws: The noise with the record in the sub-sample, and in world "out".
        before: The values before noise, likewise.
        chance: Probability that the record is in the sub-sample, given all earlier answers.
        base: The world whose law is drawn from.
        tilt: How far towards where the worlds differ most: the power of P / P' that the density is
            multiplied by.
        rng: Draws.
        towards: Replaces the tilt, if the noise is Gaussian with one scale.
    """
    size = before.outside.shape
    scales = [np.broadcast_to(law.scale, size) for law in laws]
    equal = np.array_equal(scales[0], scales[1])
    if all(isinstance(law, Gaussian) for law in laws) and equal:
        # the density differs only along the line through both values
        shift = before.shift / scales[1]
        noise = rng.standard_normal(size)
        far = float(np.linalg.norm(shift))
        if far == 0:
            return MixedDraw(before.outside + noise * scales[1], 0.0, 0.0)
        whole = Expected(far, chance).in_world(base)
        along = whole.drawn(1.0 if towards is not None else tilt, rng, towards=towards)
        unit = shift / far
        noise = noise + (float(along.value[0]) - float(noise @ unit)) * unit
        value = before.outside + noise * scales[1]
        return MixedDraw(value, float(along.log_weights[0]), float(along.log_ratios[0]))
    value = before.outside + laws[1].sample(rng, size)
    log_weight = log_ratio = 0.0
    for place in np.flatnonzero((before.shift != 0) | (scales[0] != scales[1])).tolist():
        own = (laws[0].element(place, value.size), laws[1].element(place, value.size))
        values = (float(before.inside[place]), float(before.outside[place]))
        drawn = CoinMixture(own, values, chance, base).drawn(tilt, rng)
        value[place] = drawn.value[0]
        log_weight += float(drawn.log_weights[0])
        log_ratio += float(drawn.log_ratios[0])
        chance = posterior(chance, float(drawn.log_ratios[0]))
    return MixedDraw(value, log_weight, log_ratio)


class MixedNumbers(NamedTuple):
    """Independent draws of one answer: the fields of `MixedDraw`, one by one."""

    value: FloatArray
    log_weights: FloatArray
    log_ratios: FloatArray


class CoinMixture(NamedTuple):
    """A noisy number that depends on the record's coin.

    Attributes:
        laws: As in `mixed_answers`, each without dimensions.
        before: As in `mixed_answers`.
        chance: As in `mixed_answers`.
        base: As in `mixed_answers`.
    """

    laws: tuple[NoiseLaw, NoiseLaw]
    before: tuple[float, float]
    chance: float
    base: World

    def drawn(
        self,
        tilt: float,
        rng: np.random.Generator,
        *,
        size: int = 1,
        towards: Towards | None = None,
    ) -> MixedNumbers:
        """Draws it several times from P (P / P')^tilt on a grid, P being the base world's law.

        Within a cell the draw is uniform, so its density and its weight are exact whatever the
        grid. Mass beyond the grid is lost, which only makes a bound smaller.

        Args:
            tilt: As in `mixed_answers`.
            rng: Draws.
            size: How many draws.
            towards: Replaces the tilt, which then only sets how far the grid reaches.
        """
        edges = self._edges(tilt)
        whole = self.laws[1].whole
        middles = edges if whole else 0.5 * (edges[1:] + edges[:-1])
        own, other = self.log_densities(middles)
        if towards is None:
            with np.errstate(invalid="ignore"):
                aim = np.nan_to_num(tilt * (own - other), nan=0.0, posinf=500.0, neginf=-500.0)
        else:
            aim = towards(own - other)
            if not np.any(np.isfinite(own + aim)):
                aim = np.zeros_like(own)  # the aim is out of reach
        log_heights = own + aim
        widths = np.ones_like(edges) if whole else np.diff(edges)
        log_heights -= np.max(log_heights)
        mass = np.exp(log_heights) * widths
        total = float(mass.sum())
        picked = rng.choice(len(mass), size=size, p=mass / total)
        value = edges[picked] if whole else edges[picked] + rng.random(size) * widths[picked]
        exact, _ = self.log_densities(value)
        weights = exact - (log_heights[picked] - math.log(total))
        inside, outside = self._of_each(value)
        with np.errstate(invalid="ignore"):
            return MixedNumbers(value, weights, np.asarray(inside - outside))

    def loss(self, log_ratio: FloatArray) -> FloatArray:
        """The privacy loss towards the base world.

        Args:
            log_ratio: log p_in - log p_out.
        """
        loss = log_mixed(self.chance, log_ratio)
        return loss if self.base is World.IN else -loss

    def log_densities(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log density of answers in the base world, and in the other one."""
        inside, outside = self._of_each(value)
        with np.errstate(divide="ignore"):
            mixed = np.logaddexp(np.log1p(-self.chance) + outside, np.log(self.chance) + inside)
        return (mixed, outside) if self.base is World.IN else (outside, mixed)

    def _of_each(self, value: FloatArray) -> list[FloatArray]:
        """Log density with the record in the sub-sample, and in world "out"."""
        each = zip(self.laws, self.before, strict=True)
        return [law.log_density(value - before) for law, before in each]

    def _edges(self, tilt: float) -> FloatArray:
        """The edges of the cells; for integer noise, the values themselves."""
        laws, before = self.laws, self.before
        wide = max(law.width for law in laws)
        low, high = min(before), max(before)
        if laws[1].whole:
            reach = math.ceil(_REACH * wide)
            start = before[1] + math.floor(low - before[1]) - reach
            return np.arange(start, start + (high - low) + 2 * reach + 2)
        if isinstance(laws[1], Gaussian):  # its tilt moves it along the line
            far = (1.0 + tilt) * (high - low) + 12.0 * wide
            return np.linspace(low - far, high + far, 2 * _NODES)
        spread = np.sinh(np.linspace(-1.0, 1.0, _NODES) * math.asinh(_REACH))
        each = zip(before, laws, strict=True)
        return np.unique(np.concatenate([one + float(law.width) * spread for one, law in each]))
