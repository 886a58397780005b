"""What each model is trained on, made from a private table and a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import kept_rows
from dpaudit_generators.networks.perceptron import Float32Array
from dpaudit_generators.networks.rows import Head
from dpaudit_generators.pate import RandomBits, cells
from dpaudit_generators.pate_gan.bounds import Bounds, schema_of_data
from dpaudit_generators.pate_gan.releases import Proportions, private_bounds, private_proportions
from dpaudit_generators.pate_gan.trainee import Records, Trainee

if TYPE_CHECKING:
    from dpaudit_generators.pate_gan.mechanism import PateGan


class PreparedModel(NamedTuple):
    """One model before its training.

    Attributes:
        schema: The schema whose bounds scale its numbers.
        trainee: What it is trained on.
    """

    schema: Schema
    trainee: Trainee


def prepare(
    generator: PateGan, data: pd.DataFrame, jobs: Sequence[Job], *, head: Head
) -> list[PreparedModel]:
    """Makes the noisy releases that trainings may use, and deals records to teachers.

    Args:
        generator: The settings.
        data: The private table, with the columns of the generator's schema.
        jobs: What to train.
        head: Fixes the order of columns in which the networks take records.

    Returns:
        One for each job.
    """
    public = encode(data, generator.schema)
    rows: dict[Schema, Float32Array] = {}  # models of one scale share their records
    marginals = generator.marginals
    starts = [None] * len(jobs) if marginals is None else marginals.fit_many(data, jobs).models
    prepared = []
    for job, start in zip(jobs, starts, strict=True):
        kept = kept_rows(job, len(data))
        # The public encoding is hashed, whatever the bounds: no others may move the partition.
        key = rng_of(job.seed, "partition").bytes(32)
        owned = [kept[cell] for cell in cells(public[kept], teachers=generator.teachers, key=key)]
        bits = RandomBits(job.seed, "histogram noise")
        own = data.iloc[kept]
        schema = _scale(generator, own, bits)
        if schema not in rows:
            scaled = public if schema == generator.schema else encode(data, schema)
            scaled = np.clip(scaled, 0.0, 1.0)  # a value beyond the bounds counts as the bound
            rows[schema] = scaled[:, head.order].astype(np.float32)
        records, proportions = Records(rows[schema], owned), _proportions(generator, own, bits)
        trainee = Trainee(records, proportions, generator.plan.labels, job.seed, start)
        prepared.append(PreparedModel(schema, trainee))
    return prepared


def _scale(generator: PateGan, data: pd.DataFrame, bits: RandomBits) -> Schema:
    """The schema whose bounds scale the numbers."""
    schema = generator.schema
    if generator.bounds is Bounds.DATA:
        return schema_of_data(schema, data)
    if generator.bounds is Bounds.SCHEMA:
        return schema
    columns = tuple(
        private_bounds(column, data[column.name], epsilon=generator.split.each, bits=bits)
        if column.kind.numeric
        else column
        for column in schema.columns
    )
    return replace(schema, columns=columns)


def _proportions(generator: PateGan, data: pd.DataFrame, bits: RandomBits) -> tuple[float, ...]:
    """Released proportions of the label's classes, or none."""
    label = generator.label
    if generator.label_proportions is Proportions.GENERATED or label is None:
        return ()
    return private_proportions(label, data[label.name], epsilon=generator.split.each, bits=bits)
