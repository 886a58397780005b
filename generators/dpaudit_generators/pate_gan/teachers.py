"""The teachers: the only networks that see real records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dpaudit_generators.networks.stack import Critics, logistic, with_ones
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_gan.settings import Records


class Teachers:
    """k critics of each of M models, each trained on its own cell against generated records.

    A teacher is a function of its cell, its share of its model's uniform numbers and generated
    records, which depend on released labels only. All shapes are constants.

    Args:
        networks: The stacked networks, k of each model; one output.
        records: The records of each model.
        device: Where the networks are.
    """

    def __init__(
        self, networks: Critics, records: Sequence[Records], *, device: torch.device
    ) -> None:
        self.networks = networks
        """The critics, k of each model."""
        self._k = len(records[0].owned)
        arrays = {id(rows): rows for rows, _ in records}
        starts = np.cumsum([0, *map(len, arrays.values())])
        start = dict(zip(arrays, starts.tolist(), strict=False))
        padding = np.zeros((1, records[0].rows.shape[1]), dtype=np.float32)
        rows = torch.from_numpy(np.concatenate([*arrays.values(), padding])).to(device)
        self.rows = with_ones(rows)
        """Real records with their ones; the last is padding."""
        self._real = torch.empty(0, device=device)
        # All cells one after the other; an empty one holds the padding row.
        cells = [
            start[id(rows)] + cell if len(cell) else starts[-1:]
            for rows, owned in records
            for cell in owned
        ]
        sizes = np.array([len(cell) for cell in cells]).reshape(len(records), self._k)
        starts = np.cumsum(sizes.ravel()).reshape(sizes.shape) - sizes
        self._cells = torch.from_numpy(np.concatenate(cells)).to(device)
        self._sizes = torch.from_numpy(sizes).to(device)[:, None, :, None]
        self._starts = torch.from_numpy(starts).to(device)[:, None, :, None]
        empty = [[len(cell) == 0 for cell in owned] for _, owned in records]
        self._voting = np.logical_not(empty)[:, :, None]

    def minibatches(self, drawn: Tensor) -> Tensor:
        """Draws rows with replacement from each teacher's cell.

        Args:
            drawn: Uniform integers in [0, 2**32), [M, steps, k, batch].

        Returns:
            Row numbers [M, steps, k, batch]; an empty cell has that of the padding row.
        """
        # floor(drawn / 2**32 * size), in integers; those of a step lie side by side.
        places = (drawn * self._sizes).bitwise_right_shift_(32).add_(self._starts).transpose(0, 1)
        return self._cells.index_select(0, places.flatten()).view(places.shape).transpose(0, 1)

    def train(self, chosen: Tensor, generated: Tensor) -> None:
        """Takes one step, on the same generated records for all teachers of a model.

        The loss is binary cross-entropy, as in lines 7 to 10 of PATE-GAN's Algorithm 1.

        Args:
            chosen: Row numbers of the real records [M, k, batch].
            generated: Generated records with their ones, [M, batch, padded(width)].
        """
        batch = chosen.shape[2]
        # Memory is kept, because fresh pages for this much would cost more than the step.
        torch.index_select(self.rows, 0, chosen.flatten(), out=self._real)
        seen, logits = self.networks.forward(self._real.view(-1, batch, self._real.shape[1]))
        gradients = self.networks.gradients(seen, logistic(logits).sub_(1.0))
        seen, logits = self.networks.forward(generated)
        others = self.networks.gradients(seen, logistic(logits))
        both = zip(gradients, others, strict=True)
        self.networks.step([one.add_(other).div_(batch) for one, other in both])

    def votes(self, records: Tensor) -> IndexArray:
        """How many teachers of each model call each record real; those of empty cells never do.

        Args:
            records: Generated records with their ones, [M, n, padded(width)].

        Returns:
            Votes [M, n].
        """
        logits = self.networks.forward(records)[1].view(len(records), self._k, -1)
        real = (logits.cpu().numpy() > 0) & self._voting
        # Counted in 16 bits, which is faster.
        votes: IndexArray = real.sum(axis=1, dtype=np.uint16).astype(np.int64)
        return votes
