"""The student, which learns from released labels only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import torch
from torch import Tensor

from dpaudit_generators.networks.perceptron import Weights
from dpaudit_generators.networks.slices import logistic
from dpaudit_generators.networks.stack import Critics
from dpaudit_generators.pate_gan.settings import TrainingSettings


class StudentCritics:
    """The critic of each model that learns from released labels only.

    Replay is post-processing. The paper's student sees each label once; a small budget buys too
    few labels for that.

    Args:
        networks: One of each model.
        settings: The public constants.
    """

    def __init__(self, networks: Critics, settings: TrainingSettings) -> None:
        self._networks, self._settings = networks, settings
        self._records: list[Tensor] = []
        self._labels: list[Tensor] = []

    def weights(self, models: Sequence[int] | None = None) -> list[Weights]:
        """The weights of the students of some models, by default of all, without padding."""
        return self._networks.weights(models)

    def train(self, records: Tensor, labels: Tensor, drawn: Tensor) -> None:
        """Takes all steps of a round.

        Args:
            records: Records with their ones whose labels were released, [M, n, padded(width)].
            labels: Their labels [M, n], float32.
            drawn: Uniform integers in [0, 2**32) for replay, [M, steps * batch].
        """
        if self._settings.replay:
            records, labels = self._replayed(records, labels, drawn)
        batch = self._settings.batch
        minibatches = zip(
            torch.split(records, batch, dim=1), torch.split(labels, batch, dim=1), strict=True
        )
        for rows, wanted in islice(cycle(minibatches), self._settings.student_steps):
            values, logits = self._networks.forward(rows)
            slope = logistic(logits).sub_(wanted).div_(wanted.shape[1])
            self._networks.step(self._networks.gradients(values, slope))

    def _replayed(self, records: Tensor, labels: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Records and labels of all steps, drawn with replacement from all released so far."""
        self._records.append(records.clone())  # the next round reuses its memory
        self._labels.append(labels)
        known_records, known_labels = torch.cat(self._records, 1), torch.cat(self._labels, 1)
        models, known = known_labels.shape
        own = torch.arange(models, device=labels.device)[:, None]
        chosen = (drawn * known).bitwise_right_shift_(32)
        return known_records[own, chosen], known_labels[own, chosen]

    def slope(self, records: Tensor) -> Tensor:
        """Gradient with respect to records of the generator's loss, the mean of -log S(G(z)).

        This loss does not saturate (Goodfellow et al. 2014, section 3).
        """
        values, logits = self._networks.forward(records)
        return self._networks.back(values, logistic(logits).sub_(1.0).div_(records.shape[1]))
