"""From the generator's raw outputs to encoded records, and the gradient back."""

from __future__ import annotations

from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit_generators.networks.slices import logistic, padded

TEMPERATURE: Final = 0.5
"""Temperature of the relaxation that gradients flow through; the records themselves are hard."""


class Generated(NamedTuple):
    """Records of M models, and what their gradient needs.

    Attributes:
        records: Encoded records with their ones, in the head's order, [M, n, padded(width)].
        maybe: Numbers that may be missing, before they are, [M, n, optional].
        soft: The relaxed categories, [M, n, choices].
    """

    records: Tensor
    maybe: Tensor
    soft: Tensor


class Head:
    """Turns raw outputs into encoded records of a mixed-type table.

    Numbers pass through a logistic function. Categories and missing-value indicators are drawn:
    hard values go forward, so that a generated record looks like a real one and no critic can win
    by spotting fractions, and the gradient of the Gumbel-softmax relaxation goes back (the
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

    def __call__(self, raw: Tensor, gumbel: Tensor, labels: Tensor) -> Generated:
        """Draws encoded records.

        Args:
            raw: Raw outputs, [M, n, padded(inputs)]; the records may take over their memory.
            gumbel: Gumbel noise that draws categories, [M, n, choices].
            labels: The given labels, one-hot, [M, n, classes].
        """
        first, last, optional = self.numbers, self.inputs, len(self.optional)
        soft = hard = gumbel
        if self.sizes:
            soft, hard = self._drawn((raw[..., first:last] + gumbel) / TEMPERATURE)
        wider = padded(self.width) - raw.shape[2]
        records = logistic(torch.nn.functional.pad(raw, (0, wider)) if wider > 0 else raw)
        records = records[..., : padded(self.width)]
        maybe = records[..., self.optional] if self.optional else records[..., :0]
        if self.sizes:
            missing = hard[..., 1 : 2 * optional : 2]
            records[..., self.optional] += (0.5 - maybe) * missing  # as `encode` writes a gap
            records[..., first : first + optional] = missing
            records[..., first + optional : self.width - self.classes] = hard[..., 2 * optional :]
        if self.classes:
            records[..., self.width - self.classes : self.width] = labels
        records[..., self.width] = 1.0
        records[..., self.width + 1 :] = 0.0
        return Generated(records, maybe, soft)

    def backward(self, generated: Generated, slope: Tensor) -> Tensor:
        """The gradient of a loss with respect to the raw outputs.

        Args:
            generated: What was drawn.
            slope: The gradient with respect to the records.

        Returns:
            The gradient, [M, n, padded(inputs)], 0 in padding columns.
        """
        first, last, optional = self.numbers, self.inputs, len(self.optional)
        records, maybe, soft = generated
        # Everything but numbers is 0 or 1 in a record, so its factor is 0.
        back = slope * records * (1.0 - records)
        back = back[..., : padded(self.inputs)]
        wider = padded(self.inputs) - back.shape[2]
        back = torch.nn.functional.pad(back, (0, wider)) if wider > 0 else back
        if self.sizes:
            missing = records[..., first : first + optional]
            gap = (0.5 - maybe) * slope[..., self.optional]
            chosen = torch.zeros_like(soft)
            chosen[..., 1 : 2 * optional : 2] = slope[..., first : first + optional] + gap
            chosen[..., 2 * optional :] = slope[..., first + optional : self.width - self.classes]
            back[..., self.optional] *= 1.0 - missing
            back[..., first:last] = self._through(soft, chosen)
        return back

    def _drawn(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Softmax of each block, and its largest entry as 1 among zeros."""
        soft, hard, start = torch.empty_like(logits), torch.zeros_like(logits), 0
        for size, blocks in self._runs:
            part = slice(start, start := start + size * blocks)
            relaxed = logits[..., part].reshape(*logits.shape[:-1], blocks, size).softmax(dim=-1)
            chosen = relaxed.argmax(dim=-1, keepdim=True)
            soft[..., part] = relaxed.flatten(-2)
            hard[..., part] = torch.zeros_like(relaxed).scatter_(-1, chosen, 1.0).flatten(-2)
        return soft, hard

    def _through(self, soft: Tensor, slope: Tensor) -> Tensor:
        """The gradient of the relaxation: soft * (slope - the block's sum of soft * slope)."""
        back, start = torch.empty_like(soft), 0
        for size, blocks in self._runs:
            part = slice(start, start := start + size * blocks)
            relaxed = soft[..., part].reshape(*soft.shape[:-1], blocks, size)
            pull = slope[..., part].reshape(relaxed.shape)
            pull = relaxed * (pull - (relaxed * pull).sum(dim=-1, keepdim=True))
            back[..., part] = pull.flatten(-2)
        return back / TEMPERATURE
