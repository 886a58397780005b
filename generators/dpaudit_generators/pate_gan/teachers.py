"""The teachers: the only code that sees real records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_gan.networks import Adam, Network, forward


class Teachers:
    """k critics, each trained on the records of its own cell against generated ones.

    What a teacher does is a function of its cell, its own minibatches and generated records, which
    depend on released labels alone. All shapes are constants.

    Args:
        weights: The k stacked networks, width inputs and one output; trained in place.
        rows: Encoded real records, shape [n, width].
        owned: Row numbers of each teacher, k arrays.
        minibatches: Row numbers of each step, shape [steps, k, batch]; -1 is padding.
        rate: Learning rate.
    """

    def __init__(
        self,
        weights: Network,
        *,
        rows: npt.NDArray[np.float32],
        owned: Sequence[IndexArray],
        minibatches: IndexArray,
        rate: float,
    ) -> None:
        padding = np.zeros((1, rows.shape[1]), dtype=np.float32)  # row -1 is the last one
        self._rows = torch.from_numpy(np.concatenate([rows, padding]))
        self._vote = torch.tensor([len(cell) > 0 for cell in owned])[:, None]
        self._batches = iter(torch.from_numpy(minibatches))
        self._weights = weights
        self._adam = Adam(weights, rate=rate)

    def train(self, generated: Tensor) -> None:
        """One step on the next minibatches and the same generated records [batch, width] for all.

        The loss is binary cross-entropy, as in lines 7 to 10 of PATE-GAN's Algorithm 1; each
        teacher's term of the sum depends on its own weights only.
        """
        real = self._rows[next(self._batches)]
        fake = generated.expand(len(real), -1, -1)
        logits = forward(self._weights, torch.cat([real, fake], dim=1))
        batch = real.shape[1]
        loss = softplus(-logits[:, :batch]).mean(dim=1) + softplus(logits[:, batch:]).mean(dim=1)
        self._adam.step(loss.sum())

    def votes(self, records: Tensor) -> IndexArray:
        """How many teachers take each record [n, width] for real; an empty cell never does."""
        with torch.no_grad():
            logits = forward(self._weights, records.expand(len(self._vote), -1, -1))
        votes: IndexArray = ((logits[:, :, 0] > 0) & self._vote).sum(dim=0).numpy()
        return votes
