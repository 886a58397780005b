"""The record of `dpaudit account`: the cost of a PATE ensemble's labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.account.calibration import Prospect
from dpaudit.model.choices import Method
from dpaudit.model.claim import Neighbours
from dpaudit.results.document import Document, NonNegative, Positive, Probability


@dataclass(frozen=True, kw_only=True)
class LabelCosts(Document):
    """Plans of labels, as `dpaudit account --json` prints them.

    Attributes:
        teachers: Number of teachers that vote.
        budget: Epsilon of all labels together; null if their cost was asked for.
        delta: The delta at which it holds.
        neighbours: The neighbouring relation for which it holds.
        method: The method that was asked for.
        plans: The plans: noise, number of labels, cost and accuracy.
        warnings: Warnings about them, one sentence each.
    """

    schema_version: ClassVar[int] = 1
    called: ClassVar[str] = "a table of label costs"
    teachers: Positive
    budget: NonNegative | None
    delta: Probability
    neighbours: Neighbours
    method: Method
    plans: tuple[Prospect, ...]
    warnings: tuple[str, ...]
