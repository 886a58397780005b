"""How the jobs of a published PATE-GAN become trained models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit.plugins.recorder import Recorder
from dpaudit_generators.batches import kept_rows
from dpaudit_generators.published.facts import released
from dpaudit_generators.published.model import PublishedBatch, PublishedModel
from dpaudit_generators.published.recipes import Inputs
from dpaudit_generators.published.scaling import Scaling, fit_scaling
from dpaudit_generators.published.switches import Switch
from dpaudit_generators.published.trainee import (
    Form,
    PublishedSettings,
    PublishedTrainee,
    TrainedAndShown,
    form_of,
)

if TYPE_CHECKING:
    from dpaudit_generators.published.mechanism import SwitchedPateGan


class _Table(NamedTuple):
    """A table as models are trained on it; those that lack the same rows share it."""

    scaling: Scaling
    form: Form
    trainee: PublishedTrainee


class _Shape(NamedTuple):
    """What models must have in common to be trained together.

    Attributes:
        settings: What their training is asked for.
        rows: Number of records, where teachers' parts depend on it; else 0.
        order: The columns of their records, as bytes.
    """

    settings: PublishedSettings
    rows: int
    order: bytes


def fit_models(
    generator: SwitchedPateGan,
    data: pd.DataFrame,
    jobs: Sequence[Job],
    *,
    recorder: Recorder | None = None,
) -> PublishedBatch:
    """Trains a model for each job, those of one shape together.

    Args:
        generator: The settings.
        data: The private table, with the columns of the generator's schema.
        jobs: What to train.
        recorder: Records the training; for a single job.
    """
    public = encode(data, generator.schema)
    tables: dict[tuple[int, ...], _Table] = {}
    for job in jobs:
        if job.dropped_rows not in tables:
            tables[job.dropped_rows] = _table(generator, data, public, job)
    shapes: dict[_Shape, list[int]] = {}
    for index, job in enumerate(jobs):
        table = tables[job.dropped_rows]
        rows = len(table.trainee.positions)
        shape = _Shape(
            settings=generator.settings_for(rows),
            rows=rows if generator.parts_depend_on_rows else 0,
            order=table.form.order.tobytes(),
        )
        shapes.setdefault(shape, []).append(index)
    models: dict[int, PublishedModel] = {}
    for shape, indices in shapes.items():
        own = [tables[jobs[index].dropped_rows] for index in indices]
        trainees = [
            table.trainee._replace(seed=jobs[index].seed)
            for index, table in zip(indices, own, strict=True)
        ]
        networks = _train(generator, trainees, own[0].form, shape.settings, recorder)
        fitted = [
            _model(generator, table, shape.settings, one)
            for table, one in zip(own, networks, strict=True)
        ]
        models |= dict(zip(indices, fitted, strict=True))
    return PublishedBatch(tuple(models[index] for index in range(len(jobs))))


def _table(generator: SwitchedPateGan, data: pd.DataFrame, public: FloatArray, job: Job) -> _Table:
    kept = kept_rows(job, len(data))
    own = data.iloc[kept]
    schema, switches = generator.schema, generator.switches
    scaling = fit_scaling(own, schema, span=generator.recipe.span, switches=switches)
    if Switch.NO_PATE in switches:
        switches -= {Switch.CONDITIONS_FROM_DATA}  # its critic knows labels alone
    form = form_of(scaling, schema, switches)
    records = np.ascontiguousarray(scaling.encode(own)[:, form.order])
    about = [records[:, part] for part in form.conditions]
    hints = np.concatenate([records[:, :0], *about], axis=1)
    return _Table(scaling, form, PublishedTrainee(records, public[kept], hints, kept, None))


def _train(
    generator: SwitchedPateGan,
    trainees: Sequence[PublishedTrainee],
    form: Form,
    settings: PublishedSettings,
    recorder: Recorder | None,
) -> list[TrainedAndShown]:
    if Switch.NO_PATE in generator.switches:
        from dpaudit_generators.published.without_pate import train
    else:
        from dpaudit_generators.published.pate import train
    recipe = generator.recipe
    return train(trainees, form=form, recipe=recipe, settings=settings, recorder=recorder)


def _model(
    generator: SwitchedPateGan, table: _Table, settings: PublishedSettings, fitted: TrainedAndShown
) -> PublishedModel:
    normal = Switch.SAMPLING_NOISE_DIFFERS in generator.switches
    rows = table.trainee
    return PublishedModel(
        schema=generator.schema,
        scaling=table.scaling,
        form=table.form,
        recipe=generator.recipe,
        settings=settings,
        inputs=Inputs.NORMAL if normal else generator.recipe.inputs,
        weights=fitted.networks.generator,
        student=fitted.networks.student,
        given=rows.records[:, table.form.made :],
        hints=rows.hints,
        positions=rows.positions,
        claim=generator.claim,
        released_numbers=released(
            fitted.shown, scaling=table.scaling, form=table.form, switches=generator.switches
        ),
    )
