"""A trained PATE-GAN: it samples, from noisy marginals or a network, and it can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import InputError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import encode_values, table_of, values_of, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import TrainedTogether
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.networks.model import Weights, flat, logits


@dataclass(frozen=True, kw_only=True, eq=False)
class PateGanModel:
    """A trained PATE-GAN, which is post-processing of noisy counts and released labels.

    Attributes:
        schema: The public schema with the bounds that the training used; scales the output back.
        weights: The generator's weights, W1, b1, W2, b2, ..., with a leading axis of one; empty if
            records are drawn from noisy marginals.
        proportions: Released proportions of the label's classes; empty if labels are generated.
        claim: The generator's claim, and the source of this training's noise.
        student: The weights of the critic that learnt from released labels, in the same form; empty
            in a loaded model whose sampling does not need it.
        start: The noisy marginals that records are drawn from; None if a network makes them.
        released_numbers: The numbers that `released_facts` names; empty in a loaded model.
    """

    schema: Schema
    weights: Weights
    proportions: Sequence[float]
    claim: PrivacyClaim
    student: Weights = ()
    start: TreeModel | None = None
    released_numbers: tuple[float, ...] = ()

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """The student's logit of each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.

        Raises:
            InputError: If the model was loaded from a file.
        """
        if not self.student:
            raise InputError("a loaded PATE-GAN has no student: fit one")
        return self._logits(values_of_table(rows, self.schema))

    def _logits(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The student's logit of each row of values [n, d]."""
        from dpaudit_generators.networks.source import Head

        head = Head(self.schema, given=len(self.proportions) > 0)
        rows = encode_values(values, self.schema).clip(0.0, 1.0)
        return logits(self.student, rows[:, head.order])

    def parameters(self) -> npt.NDArray[np.float64]:
        """All weights of generator and student, and shares of the marginals, flat."""
        shares = np.empty(0) if self.start is None else self.start.shares
        return np.concatenate([flat([*self.weights, *self.student]), shares])

    def released(self) -> npt.NDArray[np.float64]:
        """The numbers that the generator's `released_facts` names."""
        return np.array(self.released_numbers, dtype=np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records with the scale and the types of the input."""
        return table_of(PateGanBatch((self,)).sample_many(n, [seed])[0], self.schema)

    def weighted(
        self,
        n: int,
        *,
        seed: int | None,
        on_candidates: Callable[[npt.NDArray[np.float64]], None] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Values [n, d] drawn from the marginals and weighted by the student.

        Args:
            n: Number of records.
            seed: For audits; None means the system's entropy.
            on_candidates: Called with the values of all candidates.
        """
        assert self.start is not None  # else a network makes them
        return sample_weighted(self.start, self._logits, n, seed=seed, on_candidates=on_candidates)

    def save(self, path: Path | str) -> None:
        """Writes an .npz file without pickle, which `load` reads.

        Args:
            path: The file, usually named .npz.

        Raises:
            InputError: If the file cannot be written.
        """
        from dpaudit_generators.pate_gan.saving import SavedModel, save

        needed = self.weights if self.start is None else self.student
        save(SavedModel(self.schema, needed, self.proportions, self.claim, self.start), Path(path))

    @staticmethod
    def load(path: Path | str) -> PateGanModel:
        """Reads a saved model without running any code from the file.

        Args:
            path: A file that `save` wrote.

        Raises:
            InputError: If the file is no saved model, is damaged, or has a newer format.
        """
        from dpaudit_generators.pate_gan.saving import load

        schema, weights, proportions, claim, start = load(Path(path))
        made, student = (weights, ()) if start is None else ((), weights)
        return PateGanModel(
            schema=schema,
            weights=made,
            proportions=proportions,
            claim=claim,
            student=student,
            start=start,
        )


@dataclass(frozen=True, eq=False)
class PateGanBatch(TrainedTogether[PateGanModel]):
    """PATE-GANs that were trained together.

    Attributes:
        models: The models, in the order of their jobs.
    """

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> npt.NDArray[np.float64]:
        """Draws records of all models.

        Args:
            n: Number of records of each model.
            seeds: One for each model; None means the system's entropy.

        Returns:
            Values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.
        """
        if self.models[0].start is not None:
            pairs = zip(self.models, seeds, strict=True)
            return np.stack([model.weighted(n, seed=seed) for model, seed in pairs])
        from dpaudit_generators.networks.source import Head, sample

        first = self.models[0]
        rows = sample(
            [model.weights for model in self.models],
            Head(first.schema, given=len(first.proportions) > 0),
            [model.proportions for model in self.models],
            n,
            seeds=seeds,
        )
        return np.stack(
            [
                values_of(mine.astype(np.float64), model.schema)
                for mine, model in zip(rows, self.models, strict=True)
            ]
        )


CHOICES: Final = 2
"""Candidates of each sampled record."""

_PART: Final = 2048
"""Records that are sampled at a time."""


def candidates(start: TreeModel, uniforms: FloatArray) -> FloatArray:
    """Records drawn from noisy marginals.

    Args:
        start: The marginals, of d columns.
        uniforms: Two for each value, in [0, 1), [n, 2 d]: for its cell, and where in the cell.

    Returns:
        Values [n, d], as `dpaudit.model.encoding.values_of` gives them.
    """
    which, where = np.split(uniforms, 2, axis=1)
    return start.tables.domain.values(start.tables.draw(start.shares, which), where)


def sample_weighted(
    start: TreeModel,
    score: Callable[[FloatArray], FloatArray],
    n: int,
    *,
    seed: int | None,
    on_candidates: Callable[[FloatArray], None] | None = None,
) -> FloatArray:
    """Draws records from noisy marginals, preferring those that the student classifies as real.

    One of `CHOICES` candidates is kept, with probability proportional to exp(score): the odds that
    a record is real are the ratio of its frequencies in real and candidate tables (sampling
    importance resampling, Rubin 1987). Candidates share their label, because counts give the
    proportions of its classes better than votes: teachers with few records of a rare class classify
    the whole class as synthetic.

    Args:
        start: The marginals.
        score: The student's logit of each of some values [n, d].
        n: Number of records.
        seed: For audits; None means the system's entropy.
        on_candidates: Called with the values of all candidates.

    Returns:
        Values [n, d].
    """
    rng, schema = rng_of(seed, "sample"), start.tables.domain.schema
    columns = len(schema.columns)
    labels = [place for place, name in enumerate(schema.names) if name == schema.label]
    records = np.empty((n, columns))
    for first in range(0, n, _PART):
        own = records[first : first + _PART]
        uniforms = rng.random((len(own), CHOICES, 2 * columns))
        uniforms[..., labels] = uniforms[:, :1, labels]
        values = candidates(start, uniforms.reshape(-1, 2 * columns))
        if on_candidates is not None:
            on_candidates(values)
        chosen = _chosen(score(values).reshape(-1, CHOICES), rng.random(len(own)))
        own[:] = values.reshape(-1, CHOICES, columns)[np.arange(len(own)), chosen]
    return records


def _chosen(scores: FloatArray, uniforms: FloatArray) -> IntArray:
    """Which of the candidates in each row is kept."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    reached = np.cumsum(weights, axis=1)
    passed: IntArray = (reached <= uniforms[:, None] * reached[:, -1:]).sum(axis=1)
    return np.minimum(passed, CHOICES - 1)
