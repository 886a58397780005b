"""What drives a generator towards real records, where it is trained on them: a deviation."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from dpaudit_generators.networks.slices import padded
from dpaudit_generators.published.trainee import Form

_LEAST: Final = 1e-8  # added to a share before its logarithm is taken


class Likeness:
    """The loss of generated records that are unlike real ones.

    It is the cross-entropy of the categories of as many real records, of each record in the column
    that its condition is about, of all columns without conditions; where nothing is a category, the
    mean square of all differences.

    Args:
        form: The form of the records.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        size = padded(form.width)
        self._grouped = torch.zeros(size)
        self._about = torch.zeros(max(1, form.hints), size)
        start = 0
        for part in form.conditions:
            stop = start + part.stop - part.start
            self._about[start:stop, part] = 1.0
            start = stop
        for group in form.groups:
            self._grouped[group] = 1.0

    def slope(self, fakes: Tensor, real: Tensor, hints: Tensor) -> Tensor:
        """The loss's gradient with respect to generated records.

        Args:
            fakes: Generated records with their ones [M, n, padded(width)].
            real: As many real records.
            hints: The conditions of the generated ones [M, n, hints].
        """
        n = fakes.shape[1]
        if not self._form.groups:
            return 2.0 * (fakes - real) / (n * self._form.width)
        about = self._grouped.expand_as(fakes)
        if self._form.hints:
            about = torch.bmm(hints, self._about.expand(len(hints), -1, -1)) * about
        # Sums of zeros and ones are exact in any order.
        counts = about.sum(dim=1, keepdim=True).clamp_min(1.0)
        return -about * real / ((fakes + _LEAST) * counts * n)
