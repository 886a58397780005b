"""Generated records: random numbers, the generator networks' outputs, and their encoded form.

Each model draws nothing but uniform words from its one stream, as many as its public settings say,
and turns them into other numbers by functions (inverse transforms). So neither records nor the
other models of a stack shift anything in the stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Activation, Architecture, Float32Array, Weights
from dpaudit_generators.networks.stack import PAIR, Networks, in_whole_vectors, padded, with_ones

_PART: Final = 256
"""Records that are sampled at a time."""


class Noise(NamedTuple):
    """The random numbers that records are made of.

    Attributes:
        rows: Inputs of the network: normal numbers, given labels one-hot, ones;
            [M, n, padded(noise width + classes)].
        gumbel: Gumbel noise that draws categories, [M, n, choices].
        labels: The given labels, one-hot, [M, n, classes].
    """

    rows: Tensor
    gumbel: Tensor
    labels: Tensor

    def part(self, records: slice) -> Noise:
        """The noise of some of the records."""
        return Noise(*(tensor[:, records] for tensor in self))


class RecordSource:
    """The generator networks of M models: random numbers, and the records made of them.

    Args:
        networks: One network per model.
        streams: Their streams.
        head: Turns raw outputs into records.
        proportions: For each model, the proportions of the label's classes; none if the label is
            generated.
        width: Dimension of the normal noise.
        device: Where the tensors are placed.
    """

    def __init__(
        self,
        networks: Networks,
        streams: Streams,
        head: Head,
        proportions: Sequence[Sequence[float]],
        *,
        width: int,
        device: torch.device,
    ) -> None:
        self._networks, self._streams, self._head = networks, streams, head
        self._width, self._classes = width, head.classes
        self._tail = torch.zeros(padded(width + head.classes) - width, device=device)
        self._tail[head.classes] = 1.0
        self._cumulative = torch.tensor(proportions, dtype=torch.float64, device=device).cumsum(1)

    def draw(self, n: int) -> Noise:
        """Draws the noise of n records of each model."""
        inputs = self._width + self._classes
        rows = self._streams.normal(n, padded(inputs))
        rows[..., self._width :] = self._tail
        labels = rows[..., self._width : inputs]
        if self._classes:
            drawn = torch.searchsorted(self._cumulative, self._streams.uniform(n), right=True)
            labels.scatter_(-1, drawn.clamp_max_(self._classes - 1)[..., None], 1.0)
        return Noise(rows, self._streams.gumbel(n, self._head.choices), labels)

    def records(self, noise: Noise) -> Tensor:
        """Encoded records of each model, with their ones [M, n, padded(width)]."""
        with torch.no_grad():
            return self._made(noise)

    def learn(self, noise: Noise, loss: Callable[[Tensor], Tensor]) -> None:
        """Takes one step; `loss` gives the sum of the models' losses for the records of a noise."""
        self._networks.descend(loss(self._made(noise)))

    def _made(self, noise: Noise) -> Tensor:
        return self._head(self._networks(noise.rows), noise.gumbel, noise.labels)


def sample(
    weights: Sequence[Weights],
    head: Head,
    proportions: Sequence[Sequence[float]],
    n: int,
    *,
    seeds: Sequence[int | None],
    activation: Activation = Activation.LEAKY,
    on_noise: Callable[[Noise], None] | None = None,
) -> Float32Array:
    """Draws records from trained generator networks.

    Args:
        weights: The weights of each model, all of one shape.
        head: The head they were trained with.
        proportions: For each model, the proportions of the label's classes, or none.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
        activation: The activation of their hidden layers.
        on_noise: Called with the inputs of the generator networks.

    Returns:
        Encoded records in the schema's order, [M, n, width].
    """
    device = torch.device("cpu")
    source = RecordSource(
        Networks(weights, Architecture(hidden=(), activation=activation)),
        Streams(seeds, "sample", device=device),
        head,
        proportions,
        width=weights[0][0].shape[1] - head.classes,
        device=device,
    )
    records = np.empty((len(weights), n, head.width), dtype=np.float32)
    for start in range(0, n, _PART):
        drawn = source.draw(min(_PART, n - start))
        if on_noise is not None:
            on_noise(drawn)
        part = source.records(drawn)[..., : head.width]
        records[:, start : start + _PART, head.order] = part.numpy()
    return records


TEMPERATURE: Final = 0.5
"""Temperature of the relaxation that gradients flow through; the records themselves are hard."""


class Head:
    """Turns raw outputs into encoded records of a mixed-type table.

    Numbers pass through a logistic function. Categories and missing-value indicators are drawn:
    hard values go forward, so that a generated record looks like a real one and no critic can
    recognise it by its fractions, and the gradient of the Gumbel-softmax relaxation goes back (the
    straight-through estimator of Jang, Gu and Poole 2017).

    With given proportions of the label's classes, the label is drawn from them first, and the
    generator network takes that class as an input.

    Records have the head's order of columns: numbers, missing-value indicators, categories, a given
    label. Raw outputs have the same order, but two for each indicator.

    Args:
        schema: The schema; fixes every position.
        given: Whether labels are given.
    """

    def __init__(self, schema: Schema, *, given: bool = False) -> None:
        blocks = layout(schema)
        labels = [b for b in blocks if given and b.column.name == schema.label]
        others = [b for b in blocks if b not in labels]
        numbers = [block for block in others if block.column.kind.numeric]
        optional = [block for block in numbers if block.indicator is not None]
        choices = [block for block in others if not block.column.kind.numeric]
        places = [b.value.start for b in numbers]
        places += [b.indicator for b in optional if b.indicator is not None]
        for block in choices + labels:
            places += range(block.value.start, block.value.stop)
        sizes = [b.value.stop - b.value.start for b in choices]
        self.order = np.array(places)
        """Position in the schema's encoding of each column of a record."""
        self.numbers = len(numbers)
        """Number of numeric columns."""
        self.optional = [numbers.index(block) for block in optional]
        """Which of them may be missing."""
        self.sizes = [2] * len(optional) + sizes
        """Raw outputs of each indicator and category."""
        self.classes = sum(b.value.stop - b.value.start for b in labels)
        """Number of label classes that the generator network takes as input."""
        self._runs = [(size, len(list(run))) for size, run in groupby(self.sizes)]

    @property
    def choices(self) -> int:
        """Number of raw outputs that indicators and categories are drawn with."""
        return sum(self.sizes)

    @property
    def inputs(self) -> int:
        """Number of raw outputs that make one record."""
        return self.numbers + self.choices

    @property
    def width(self) -> int:
        """Number of columns of a record."""
        return len(self.order)

    def __call__(self, raw: Tensor, gumbel: Tensor, labels: Tensor) -> Tensor:
        """Draws encoded records.

        Args:
            raw: Raw outputs, [M, n, at least inputs].
            gumbel: Gumbel noise that draws categories, [M, n, choices].
            labels: The given labels, one-hot, [M, n, classes].

        Returns:
            Records with their ones, [M, n, padded(width)].
        """
        numbers = in_whole_vectors(torch.sigmoid, raw[..., : self.numbers])
        if not self.sizes:
            return with_ones(numbers, labels)
        chosen = self._drawn((raw[..., self.numbers : self.inputs] + gumbel) / TEMPERATURE)
        indicators = 2 * len(self.optional)
        missing, categories = chosen[..., 1:indicators:2], chosen[..., indicators:]
        if self.optional:  # a gap is written as `encode` does
            maybe = numbers[..., self.optional]
            gapped = maybe + (0.5 - maybe) * missing
            places = torch.tensor(self.optional, device=raw.device)
            numbers = numbers.index_copy(-1, places, gapped)
        return with_ones(numbers, missing, categories, labels)

    def _drawn(self, logits: Tensor) -> Tensor:
        """The largest entry of each block as 1 among zeros, with the gradient of its softmax."""
        parts, start = [], 0
        for size, blocks in self._runs:
            part = logits[..., start : (start := start + size * blocks)]
            soft = part.reshape(*part.shape[:-1], blocks, size).softmax(dim=-1)
            places = soft.argmax(dim=-1, keepdim=True)
            hard = torch.zeros_like(soft).scatter_(-1, places, 1.0)
            parts.append((hard + (soft - soft.detach())).flatten(-2))
        return torch.cat(parts, dim=-1)


WordArray: TypeAlias = npt.NDArray[np.uint64]

_QUANTILE_BITS: Final = 16
"""Bits of the uniform numbers that normal noise is made of, each by a lookup in a table."""
_BELOW_ONE: Final = 1.0 - 2.0**-24


class Streams:
    """One stream of uniform words for each of M models.

    Args:
        seeds: One for each; None means the system's entropy.
        purpose: What the draws are for.
        device: Where the tensors are placed.
    """

    def __init__(self, seeds: Sequence[int | None], purpose: str, *, device: torch.device) -> None:
        self._sources = [rng_of(seed, purpose).bit_generator for seed in seeds]
        self._device = device
        # Kept, because fresh pages for so many numbers would cost as much as the numbers.
        self._normal = np.empty((len(seeds), 0), dtype=np.float32)

    def integers(self, *shape: int) -> Tensor:
        """Uniform integers in [0, 2**32), int64 [M, *shape]."""
        size = math.prod(shape)
        numbers = np.empty((len(self._sources), size), dtype=np.int64)
        for mine, words in zip(numbers, self._words(size, bits=32), strict=True):
            mine[:] = words.view(np.uint32)[:size]
        return self._tensor(numbers, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1), float64 [M, *shape]."""
        words = np.stack(list(self._words(math.prod(shape), bits=64)))
        return self._tensor((words >> np.uint64(11)) * 2.0**-53, shape)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, float32 [M, *shape]; the next call may overwrite them."""
        table, size = _normal_quantiles(), math.prod(shape)
        if self._normal.shape[1] != size:
            self._normal = np.empty((len(self._sources), size), dtype=np.float32)
        for mine, words in zip(self._normal, self._words(size, bits=_QUANTILE_BITS), strict=True):
            table.take(words.view(np.uint16)[:size], out=mine, mode="wrap")
        return self._tensor(self._normal, shape)

    def gumbel(self, *shape: int) -> Tensor:
        """Standard Gumbel numbers, float32 [M, *shape], for drawing categories.

        Each is made of 32 bits, and of the complement of a uniform number: the frequency of a rare
        category depends on the upper tail, where floats near 1 would be too coarse.
        """
        size = math.prod(shape)
        if size == 0:
            return torch.empty(len(self._sources), *shape, device=self._device)
        padded = size + -size % PAIR  # nothing is left over, as in `stack.in_whole_vectors`
        numbers = np.empty((len(self._sources), padded), dtype=np.float32)
        for mine, words in zip(numbers, self._words(padded, bits=32), strict=True):
            mine[:] = words.view(np.uint32)
        drawn = torch.from_numpy((numbers + np.float32(0.5)) * np.float32(2.0**-32))
        drawn.clamp_max_(_BELOW_ONE).neg_().log1p_().neg_().log_().neg_()
        return drawn[:, :size].reshape(len(drawn), *shape).to(self._device)

    def _words(self, size: int, *, bits: int) -> Iterator[WordArray]:
        """Words of each model that hold so many numbers of so many bits."""
        words = -(-size * bits // 64)
        for source in self._sources:
            yield source.random_raw(words)

    def _tensor(self, numbers: npt.NDArray[np.generic], shape: Sequence[int]) -> Tensor:
        return torch.from_numpy(numbers).view(len(numbers), *shape).to(self._device)


@cache
def _normal_quantiles() -> npt.NDArray[np.float32]:
    places = torch.arange(2**_QUANTILE_BITS, dtype=torch.float64, device="cpu")
    middles = (places + 0.5) / 2**_QUANTILE_BITS
    quantiles: npt.NDArray[np.float32] = torch.special.ndtri(middles).float().numpy()
    return quantiles
