"""A trained PATE-GAN, and how it is kept in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.claim import PrivacyClaim
from dpaudit.encoding import decode
from dpaudit.schema import Schema

Weights: TypeAlias = tuple[npt.NDArray[np.float32], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class PateGanModel:
    """A trained generator network: post-processing of what was released, and nothing else.

    Attributes:
        schema: Scales the output back: the public one, with the bounds that the training used.
        weights: The generator's weights, [W1, b1, W2, b2] with a leading axis of one.
        proportions: Released proportions of the label's classes; empty if labels are generated.
        claim: The generator's promise, and where the noise of this training came from.
    """

    schema: Schema
    weights: Weights
    proportions: Sequence[float]
    claim: PrivacyClaim

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records in the scale and the types of the input."""
        from dpaudit_generators.pate_gan.rows import Head, draw

        rows = draw(self.weights, Head(self.schema, self.proportions), n, seed=seed)
        return decode(rows.astype(np.float64), self.schema)

    def save(self, path: Path | str) -> None:
        """Writes what `load` reads, and nothing else: an .npz file without pickle.

        Raises:
            InputError: If the file cannot be written.
        """
        from dpaudit_generators.pate_gan.saving import save

        save(self, Path(path))

    @staticmethod
    def load(path: Path | str) -> PateGanModel:
        """Reads a saved model; runs no code of the file's.

        Raises:
            InputError: If the file is no such model, is damaged, or is of a newer format.
        """
        from dpaudit_generators.pate_gan.saving import load

        return load(Path(path))
