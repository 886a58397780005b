"""A trained generator of a published PATE-GAN, with the parts it keeps of its training table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.encoding import table_of
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit_generators.networks.model import NetworkModel
from dpaudit_generators.published.recipes import Inputs, Recipe
from dpaudit_generators.published.scaling import Scaling
from dpaudit_generators.published.trainee import Form

_PART: Final = 256
"""Number of records that are sampled at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedModel(NetworkModel):
    """A trained generator network, and the student or the only critic that it learnt from.

    Attributes:
        scaling: Scales the output back.
        form: The layout of records in the networks' matrices.
        recipe: The hyperparameters.
        inputs: The distribution of the network's inputs in sampling.
        given: Labels of the training table, scaled [n, given]; empty unless they are copied.
        hints: Real records that conditions are drawn from [n, hints]; empty unless there are any.
        positions: Row numbers of these records in the table that the model was fitted on [n].
    """

    scaling: Scaling
    form: Form
    recipe: Recipe
    inputs: Inputs
    given: npt.NDArray[np.float32]
    hints: npt.NDArray[np.float32]
    positions: IntArray

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The output of the student, or of the only critic, for each row [n]; no condition is set.

        Args:
            rows: A table with the schema's columns.
        """
        import torch

        from dpaudit_generators.networks.stack import with_ones
        from dpaudit_generators.published.networks import Networks

        records = torch.from_numpy(self.scaling.encode(rows)[:, self.form.order])[None]
        student = Networks([self.critic], self.recipe.student)
        with torch.no_grad():
            outputs = student(with_ones(records, torch.zeros(1, len(rows), self.form.hints)))
        return np.asarray(outputs[0, :, 0].double().numpy())

    def traced_sample(self, n: int, *, seed: int | None, recorder: Recorder) -> pd.DataFrame:
        """Draws what `sample` draws, and records it."""
        rows = _scaled([self], n, [seed], recorder=recorder)[0]
        numeric = [column.kind.numeric for column in self.schema.columns]
        recorder.output(self.scaling.unrounded(rows)[:, numeric])
        return table_of(self.scaling.values(rows), self.schema)

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models."""
        forms: dict[bytes, list[int]] = {}  # in one world, mixtures may need more columns
        for index, model in enumerate(models):
            forms.setdefault(model.form.order.tobytes(), []).append(index)
        values = np.empty((len(models), n, len(models[0].schema.columns)))
        for indices in forms.values():
            rows = _scaled([models[i] for i in indices], n, [seeds[i] for i in indices])
            for index, mine in zip(indices, rows, strict=True):
                values[index] = models[index].scaling.values(mine)
        return values


def _scaled(
    models: Sequence[PublishedModel],
    n: int,
    seeds: Sequence[int | None],
    *,
    recorder: Recorder | None = None,
) -> npt.NDArray[np.float32]:
    """Draws records of models, which must have one form, before they are scaled back.

    Args:
        models: The models.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
        recorder: Records the sampling of the first model.

    Returns:
        Scaled matrices [M, n, width].
    """
    import torch

    from dpaudit_generators.published.networks import Feed, Networks, PublishedRecordSource

    first = models[0]
    form, architecture = first.form, first.recipe.generator
    source = PublishedRecordSource(
        Networks([model.weights for model in models], architecture),
        form,
        first.recipe,
    )
    feed = Feed(seeds, "sample", form=form, recipe=first.recipe, inputs=first.inputs)
    # The labels of the table in their order, repeated if there are too few.
    given = torch.stack(
        [torch.from_numpy(np.resize(model.given, (n, form.given))) for model in models]
    )
    found = np.zeros((len(models), n, first.scaling.width), dtype=np.float32)
    for start in range(0, n, _PART):
        part = slice(start, min(start + _PART, n))
        noise = feed.noise(part.stop - start)
        hints = noise[..., :0]
        if recorder is not None:
            recorder.fed(Stage.SAMPLING, noise[0].double().numpy())
        if form.hints:
            rows = [model.hints for model in models]
            hints, chosen = feed.conditions(rows, part.stop - start)
            if recorder is not None:
                recorder.read(Reader.CONDITIONS, first.positions[chosen[0]])
        with torch.no_grad():
            records = source(noise, given[:, part], hints, feed.gumbel(part.stop - start))
        found[:, part, form.order] = records[..., : form.width].numpy()
    return found
