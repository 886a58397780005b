"""The student: learns from released labels alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import torch
from torch import Tensor

from dpaudit_generators.pate_gan.draws import Streams, uniform
from dpaudit_generators.pate_gan.settings import Settings
from dpaudit_generators.pate_gan.stack import Critics, logistic


class Student:
    """The critic of each model that learns from released labels alone.

    Replay, if asked for, is post-processing. The paper's student sees each label once; a small
    budget has too few for that.

    Args:
        networks: One of each model.
        settings: The public constants.
    """

    def __init__(self, networks: Critics, settings: Settings) -> None:
        self._networks, self._settings = networks, settings
        self._records: list[Tensor] = []
        self._labels: list[Tensor] = []

    def train(self, records: Sequence[Tensor], labels: Tensor, rngs: Streams) -> None:
        """All steps of a round.

        Args:
            records: Records with their ones whose labels were released, minibatch by minibatch.
            labels: Their labels [M, n], float32.
            rngs: The streams of the models.
        """
        if self._settings.replay:
            records, labels = self._replayed(records, labels, rngs)
        minibatches = zip(records, torch.split(labels, self._settings.batch, dim=1), strict=True)
        for rows, wanted in islice(cycle(minibatches), self._settings.student_steps):
            values, logits = self._networks.forward(rows)
            slope = (logistic(logits) - wanted) / wanted.shape[1]
            self._networks.step(self._networks.gradients(values, slope))

    def _replayed(
        self, records: Sequence[Tensor], labels: Tensor, rngs: Streams
    ) -> tuple[Sequence[Tensor], Tensor]:
        """Minibatches of all steps, drawn with replacement from all that is known."""
        self._records += records
        self._labels.append(labels)
        known_records, known_labels = torch.cat(self._records, 1), torch.cat(self._labels, 1)
        models, known = known_labels.shape
        drawn = uniform(rngs, self._settings.student_steps * self._settings.batch) * known
        own, chosen = torch.arange(models)[:, None], drawn.to(torch.int64).clamp_max(known - 1)
        return torch.split(known_records[own, chosen], self._settings.batch, 1), known_labels[
            own, chosen
        ]

    def slope(self, records: Tensor) -> Tensor:
        """Gradient by records of the generator's loss, the mean of -log S(G(z)).

        It does not saturate (Goodfellow et al. 2014, section 3).
        """
        values, logits = self._networks.forward(records)
        return self._networks.back(values, (logistic(logits) - 1.0) / records.shape[1])
