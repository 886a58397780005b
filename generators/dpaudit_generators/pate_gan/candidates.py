"""Candidates from noisy marginals, in the form that the networks of M models take records in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from dpaudit.model.encoding import encode_values
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.perceptron import Weights
from dpaudit_generators.networks.rows import Head
from dpaudit_generators.networks.slices import with_ones
from dpaudit_generators.networks.source import Noise
from dpaudit_generators.pate_gan.start import candidates


class CandidateSource:
    """Draws records from the noisy marginals of M models: a `Source` that does not learn.

    Args:
        starts: The marginals of each model.
        head: Fixes the order of columns.
        streams: The streams of the models.
        device: Where the tensors are placed.

    Attributes:
        steps: 0.
    """

    steps = 0

    def __init__(
        self, starts: Sequence[TreeModel], head: Head, streams: Streams, *, device: torch.device
    ) -> None:
        self._starts, self._streams, self._device = starts, streams, device
        self._schema, self._order = starts[0].tables.domain.schema, head.order

    def draw(self, n: int) -> Noise:
        """Draws n records of each model: the rows are the records themselves, with their ones."""
        uniforms = self._streams.uniform(n, 2 * len(self._schema.columns)).cpu().numpy()
        rows = [
            encode_values(candidates(start, own), self._schema)[:, self._order]
            for start, own in zip(self._starts, uniforms, strict=True)
        ]
        records = with_ones(torch.from_numpy(np.stack(rows)).float()).to(self._device)
        return Noise(records, records[..., :0], records[..., :0])

    def records(self, noise: Noise) -> Tensor:
        """The records."""
        return noise.rows

    def learn(self, noise: Noise, slope: Callable[[Tensor], Tensor]) -> None:
        """Does nothing: there are no steps."""

    def weights(self, models: Sequence[int]) -> list[Weights]:
        """No weights for each model."""
        return [()] * len(models)
