"""PATE-GAN as a generator that can be audited."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.account import LabelPlan, plan_labels
from dpaudit.claim import PrivacyClaim
from dpaudit.encoding import decode, encode
from dpaudit.errors import DataError, SettingsError
from dpaudit.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.pate_gan.bounds import Bounds, schema_of_data
from dpaudit_generators.pate_gan.partition import cells
from dpaudit_generators.pate_gan.settings import Settings

Weights: TypeAlias = tuple[npt.NDArray[np.float32], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class PateGanModel:
    """A trained generator network: post-processing of the released labels, and nothing else.

    Attributes:
        schema: Scales the output back; the public one, unless bounds were taken from the data.
        weights: The generator's weights, [W1, b1, W2, b2] with a leading axis of one.
    """

    schema: Schema
    weights: Weights

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records in the scale and the types of the input."""
        from dpaudit_generators.pate_gan.rows import draw

        rows = draw(self.weights, self.schema, n, seed=seed)
        return decode(rows.astype(np.float64), self.schema)


@dataclass(frozen=True, kw_only=True)
class PateGan(Settings):
    """PATE-GAN whose promise is proved: (epsilon, delta) for adding or removing one record.

    The proof, in the order of the code. All constants come from public settings (`plan`,
    `Settings`). A keyed hash deals records to teachers, so a record touches one teacher
    (`partition`), whose training reads nothing of the other cells (`teachers`). One vote of k
    moves by one; the released label is a draw from a public table whose Rényi divergence is known
    exactly, and T adaptive labels compose (`dpaudit.account`). All the rest, the student and the
    generator, reads released labels only: post-processing. The premise is lost, and the claim with
    it, under `bounds=data`.

    With `seed=None` every stream, that of the labels' noise included, is the operating system's
    entropy, as production needs; a seed is for audits.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is claimed, not what training happens to spend.
        delta: The delta of the budget.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels.
        bounds: Where bounds of numbers come from; `data` is an experiment that breaks the proof.

    Raises:
        SettingsError: If a setting is out of range or the budget pays for no label.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    teachers: int = 50
    accuracy: float = 0.65
    bounds: Bounds = Bounds.SCHEMA

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            object.__setattr__(self, "bounds", Bounds(self.bounds))  # text from a command line
        except ValueError:
            known = " or ".join(Bounds)
            raise SettingsError(f"bounds is {self.bounds!r}: use {known}") from None
        _ = self.plan  # validates the budget

    @property
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""
        source = f"{self.plan.labels} one-bit votes of {self.teachers} teachers"
        if self.bounds is Bounds.DATA:
            source += "; not proved, because the bounds are read off the data"
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @cached_property
    def plan(self) -> LabelPlan:
        """How many labels the budget pays for, and at which noise; knows no data."""
        return plan_labels(
            epsilon=self.epsilon,
            delta=self.delta,
            teachers=self.teachers,
            accuracy=self.accuracy,
        )

    def check(self, data: pd.DataFrame) -> None:
        """Refuses a table too small to be of use; called once, outside the game.

        `fit` itself never fails for want of records: an error would tell their number.

        Raises:
            DataError: If there are fewer records than teachers.
        """
        if len(data) < self.teachers:
            raise DataError(
                f"the table has {len(data)} rows for {self.teachers} teachers: most would have "
                f"nothing to learn; use fewer with -p teachers={max(2, len(data) // 10)}"
            )

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> PateGanModel:
        """Trains on a table that fits the schema.

        Args:
            data: The private table.
            seed: For audits; None draws everything from the system's entropy.
        """
        from dpaudit_generators.pate_gan.training import train

        rows = encode(data, self.schema)
        # The public encoding is hashed whatever the bounds: the partition never depends on others.
        key = rng_of(seed, "partition").bytes(32)
        owned = cells(rows, teachers=self.teachers, key=key)
        schema = self.schema
        if self.bounds is Bounds.DATA:
            schema = schema_of_data(schema, data)
            rows = encode(data, schema)
        weights = train(
            rows.astype(np.float32),
            owned=owned,
            schema=schema,
            plan=self.plan,
            settings=self,
            seed=seed,
        )
        return PateGanModel(schema=schema, weights=weights)
