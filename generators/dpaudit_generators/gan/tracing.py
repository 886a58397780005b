"""What a training of dp-gan records: constants, batches, norms of gradients, and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from dpaudit.plugins.recorder import Recorder
from dpaudit_generators.batches import whole_table
from dpaudit_generators.gan.steps import contributions
from dpaudit_generators.gan.training import GanStep

if TYPE_CHECKING:
    from dpaudit_generators.gan.dp_gan import DpGan


def traced(
    generator: DpGan, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
) -> pd.DataFrame:
    """Trains on a table, samples the model and records the training; see `DpGan.trace`."""
    constants = {
        "batch": generator.batch,
        "sampling_rate": generator.rate,
        "clip": generator.clip,
        "noise_multiplier": generator.noise_multiplier,
        "gradient_penalty": generator.penalty,
    }
    for name, value in constants.items():
        recorder.constant(name, value)
    for column in generator.schema.columns:
        if column.kind.numeric:
            recorder.scaling(column.name, column.bounds)
    recording = _GradientRecording(generator, data, recorder)
    model = generator.train(data, [whole_table(seed)], recording)[0]
    return model.sample(n_rows, seed=seed)


class _GradientRecording:
    """Observes a training of one model and records it.

    Args:
        generator: What is trained.
        data: The table.
        recorder: Takes the records.
    """

    def __init__(self, generator: DpGan, data: pd.DataFrame, recorder: Recorder) -> None:
        self._rows, self._protection = generator.encoded(data), generator.protection
        self._recorder = recorder

    def on_step(self, step: GanStep) -> None:
        """Records a step: each record's gradient is computed again, by itself."""
        assert step.noise is not None
        rows = step.selected[0]
        clipped = added = np.empty(0)
        if len(rows):
            parts = contributions(step.scene, self._rows[rows][None], self._protection)
            norms = [one.gradients.norms() * one.factors for one in parts]
            clipped = norms[0][0].numpy()
            whole = torch.stack([one.gradients.apart() * one.factors[..., None] for one in parts])
            added = whole.sum(0).norm(dim=-1)[0].numpy() if len(parts) > 1 else clipped
        self._recorder.summed(rows, clipped=clipped, added=added, noise=step.noise[0].numpy())
