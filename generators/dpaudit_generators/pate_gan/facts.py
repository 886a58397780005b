"""What the proof of the reference PATE-GAN protects, as numbers that an attack can read.

Labels are summed up by round: which queries they answer follows from them and from the seed of the
generator network, so that a single one says nothing by its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray
from dpaudit_generators.pate_gan.bounds import Bounds
from dpaudit_generators.pate_gan.releases import Proportions
from dpaudit_generators.pate_gan.trainee import Trainee

if TYPE_CHECKING:
    from dpaudit_generators.pate_gan.mechanism import PateGan


def released_names(generator: PateGan) -> tuple[str, ...]:
    """Names of the released numbers of every model, which depend on no table."""
    rounds = min(generator.rounds, generator.plan.labels)
    names = [f"share of 1 among the labels of round {number + 1}" for number in range(rounds)]
    label = generator.label
    if generator.label_proportions is Proportions.PRIVATE and label is not None:
        classes = [str(category) for category in label.categories]
        classes += ["missing"] if label.missing else []
        names += [f"proportion of {label.name} = {name}" for name in classes]
    if generator.bounds is not Bounds.SCHEMA:
        names += [
            f"{end} bound of {column.name}"
            for column in generator.schema.columns
            if column.kind.numeric
            for end in ("lower", "upper")
        ]
    if generator.marginals is not None:
        names += generator.marginals.released_facts
    return tuple(names)


def released_effect(generator: PateGan, record: pd.DataFrame) -> FloatArray:
    """By how much a record raises each released number, as far as the settings alone say.

    Args:
        generator: The settings.
        record: A table of one row.
    """
    marginals = generator.marginals
    counts = np.empty(0) if marginals is None else marginals.released_effect(record)
    votes = np.zeros(len(released_names(generator)) - len(counts))  # any teacher may have it
    return np.concatenate([votes, counts])


def released(
    generator: PateGan, schema: Schema, trainee: Trainee, ones: Sequence[float]
) -> tuple[float, ...]:
    """The released numbers of one model, in the order of their names.

    Args:
        generator: The settings.
        schema: The schema with the bounds that the training used.
        trainee: What it was trained on.
        ones: Share of 1 among the labels of each round.
    """
    bounds: list[float] = []
    if generator.bounds is not Bounds.SCHEMA:
        numeric = [column for column in schema.columns if column.kind.numeric]
        bounds = [float(end) for column in numeric for end in column.bounds]
    counts = [] if trainee.start is None else trainee.start.numbers.tolist()
    return (*ones, *trainee.proportions, *bounds, *counts)
