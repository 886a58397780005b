"""A trained generator of a published PATE-GAN, with the parts it keeps of its training table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit_generators.batches import TrainedTogether
from dpaudit_generators.networks.model import Weights, flat
from dpaudit_generators.published.recipes import Inputs, Recipe
from dpaudit_generators.published.scaling import Scaling
from dpaudit_generators.published.trainee import Form, PublishedSettings

_PART: Final = 256
"""Number of records that are sampled at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedModel:
    """A trained generator network.

    Attributes:
        schema: The public schema.
        scaling: Scales the output back.
        form: The layout of records in the networks' matrices.
        recipe: The hyperparameters.
        settings: The numbers that the training treated as public constants.
        inputs: The distribution of the network's inputs in sampling.
        weights: The network's weights.
        student: The weights of the critic that the network learnt from.
        given: Labels of the training table, scaled [n, given]; empty unless they are copied.
        hints: Real records that conditions are drawn from [n, hints]; empty unless there are any.
        positions: Row numbers of these records in the table that the model was fitted on [n].
        claim: The generator's claim.
        released_numbers: The numbers that `SwitchedPateGan.released_facts` names.
    """

    schema: Schema
    scaling: Scaling
    form: Form
    recipe: Recipe
    settings: PublishedSettings
    inputs: Inputs
    weights: Weights
    student: Weights
    given: npt.NDArray[np.float32]
    hints: npt.NDArray[np.float32]
    positions: IntArray
    claim: PrivacyClaim
    released_numbers: tuple[float, ...]

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records."""
        return table_of(PublishedBatch((self,)).sample_many(n, [seed])[0], self.schema)

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The output of the student, or of the only critic, for each row [n]; no condition is set.

        Args:
            rows: A table with the schema's columns.
        """
        import torch

        from dpaudit_generators.networks.stack import with_ones
        from dpaudit_generators.published.networks import Networks

        records = torch.from_numpy(self.scaling.encode(rows)[:, self.form.order])[None]
        student = Networks([self.student], self.recipe.student)
        with torch.no_grad():
            outputs = student(with_ones(records, torch.zeros(1, len(rows), self.form.hints)))
        return np.asarray(outputs[0, :, 0].double().numpy())

    def parameters(self) -> FloatArray:
        """All weights of generator and student, flat."""
        return flat([*self.weights, *self.student])

    def released(self) -> FloatArray:
        """The numbers that `SwitchedPateGan.released_facts` names."""
        return np.array(self.released_numbers)

    def without_numbers(self) -> PublishedModel:
        """The same model with NaN for every weight, so that all numbers it generates are NaN."""
        return replace(self, weights=tuple(np.full_like(part, np.nan) for part in self.weights))

    def traced_sample(self, n: int, *, seed: int | None, recorder: Recorder) -> pd.DataFrame:
        """Draws what `sample` draws, and records it."""
        rows = PublishedBatch((self,)).scaled(n, [seed], recorder=recorder)[0]
        numeric = [column.kind.numeric for column in self.schema.columns]
        recorder.output(self.scaling.unrounded(rows)[:, numeric])
        return table_of(self.scaling.values(rows), self.schema)


@dataclass(frozen=True, eq=False)
class PublishedBatch(TrainedTogether[PublishedModel]):
    """Published PATE-GANs that were trained together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        """Draws records of all models.

        Args:
            n: Number of records of each model.
            seeds: One for each model; None means the system's entropy.

        Returns:
            Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        """
        forms: dict[bytes, list[int]] = {}  # in one world, mixtures may need more columns
        for index, model in enumerate(self.models):
            forms.setdefault(model.form.order.tobytes(), []).append(index)
        values = np.empty((len(self.models), n, len(self.models[0].schema.columns)))
        for indices in forms.values():
            own = PublishedBatch(tuple(self.models[index] for index in indices))
            rows = own.scaled(n, [seeds[index] for index in indices])
            for index, mine in zip(indices, rows, strict=True):
                values[index] = self.models[index].scaling.values(mine)
        return values

    def scaled(
        self, n: int, seeds: Sequence[int | None], *, recorder: Recorder | None = None
    ) -> npt.NDArray[np.float32]:
        """Draws records of all models, which must have one form, before they are scaled back.

        Args:
            n: Number of records of each model.
            seeds: One for each model; None means the system's entropy.
            recorder: Records the sampling of the first model.

        Returns:
            Scaled matrices [M, n, width].
        """
        import torch

        from dpaudit_generators.published.networks import Feed, Networks, PublishedRecordSource

        first = self.models[0]
        form, architecture = first.form, first.recipe.generator
        source = PublishedRecordSource(
            Networks([model.weights for model in self.models], architecture),
            form,
            first.recipe,
        )
        feed = Feed(seeds, "sample", form=form, recipe=first.recipe, inputs=first.inputs)
        # The labels of the table in their order, repeated if there are too few.
        given = torch.stack(
            [torch.from_numpy(np.resize(model.given, (n, form.given))) for model in self.models]
        )
        found = np.zeros((len(self.models), n, first.scaling.width), dtype=np.float32)
        for start in range(0, n, _PART):
            part = slice(start, min(start + _PART, n))
            noise = feed.noise(part.stop - start)
            hints = noise[..., :0]
            if recorder is not None:
                recorder.fed(Stage.SAMPLING, noise[0].double().numpy())
            if form.hints:
                rows = [model.hints for model in self.models]
                hints, chosen = feed.conditions(rows, part.stop - start)
                if recorder is not None:
                    recorder.read(Reader.CONDITIONS, first.positions[chosen[0]])
            with torch.no_grad():
                records = source(noise, given[:, part], hints, feed.gumbel(part.stop - start))
            found[:, part, form.order] = records[..., : form.width].numpy()
        return found
