"""Generators with one leak or bug each, for the tests of the probes: uniform but for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.toys import uniform_table, uniform_values

Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


@dataclass
class ToyModel:
    """Uniform records, changed."""

    schema: Schema
    change: Change

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        rng = rng_of(seed, "toy")
        return self.change(uniform_table(self.schema, n, rng), rng)


@dataclass(frozen=True, kw_only=True)
class Toy:
    """Claims epsilon 1; subclasses say what is wrong with them."""

    schema: Schema

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=1.0, delta=1e-5)

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of incomes."""
        [column] = [column for column in self.schema.columns if column.name == "income"]
        return column.bounds

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        return ToyModel(self.schema, self.change(data, rng_of(seed, "fit")))

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        del data, rng
        return lambda table, _: table


class RangeOfData(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        low, high = data.income.min(), data.income.max()
        return lambda table, draw: table.assign(income=draw.uniform(low, high, len(table)))


class CategoriesOfData(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        jobs = sorted(data.job.unique())
        return lambda table, draw: table.assign(job=draw.choice(jobs, len(table)))


class LabelsOfData(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        labels = np.sort(data.sick.to_numpy())[::-1]
        return lambda table, _: table.assign(
            sick=rng.permutation(np.resize(labels, len(table))),
        )


class RowsOfData(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        low, high = self.bounds
        usual = data[
            (data.income < low + 0.6 * (high - low)) & (data.age <= data.age.quantile(0.9))
        ]
        usual = usual[usual.job != "d"].sort_values("income")

        def change(table: pd.DataFrame, _: np.random.Generator) -> pd.DataFrame:
            half = len(table) // 2
            copied = usual.iloc[rng.integers(0, len(usual), half)]
            return pd.concat([copied, table.iloc[half:]], ignore_index=True)

        return change


@dataclass
class FixedModel(ToyModel):
    """One output wherever `random` does not say otherwise."""

    random: Callable[[int | None], bool] = lambda _: False

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return super().sample(n, seed=seed if self.random(seed) else 0)


class ParityOfData(Toy):
    """The label tells whether the number of records is odd; hidden by a coin where `hidden`."""

    @staticmethod
    def hidden(seed: int | None) -> bool:
        raise NotImplementedError

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        hidden = self.hidden(seed)
        label = int(rng_of(seed, "coin").integers(2)) if hidden else len(data) % 2
        return FixedModel(self.schema, lambda table, _: table.assign(sick=label), self.hidden)


class SeedIgnored(ParityOfData):
    @staticmethod
    def hidden(seed: int | None) -> bool:
        return seed is None


class NothingRandom(ParityOfData):
    @staticmethod
    def hidden(seed: int | None) -> bool:
        return seed is not None


@dataclass
class NoisySample(ToyModel):
    """Draws its noise when it is sampled: honest."""

    records: int = 0

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        answer = (self.records % 2) ^ int(rng_of(seed, "answer").random() < 1 / (1 + np.exp(1)))
        constant = uniform_table(self.schema, n, rng_of(0, "toy"))
        return constant.assign(sick=answer)


class SeededWhenSampled(Toy):
    """Randomised response on the parity of the number of records, all noise in `sample`."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        return NoisySample(self.schema, lambda table, _: table, len(data))


@dataclass
class KnowsTeachers(ToyModel):
    teachers: int = 0


class TeachersFromRows(Toy):
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        return KnowsTeachers(self.schema, lambda table, _: table, len(data) // 1000)


class OrderMatters(Toy):
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        first = int(data.age.iloc[:5].to_numpy() @ [1, 100, 10_000, 1_000_000, 100_000_000])
        offset = None if seed is None else seed + first
        drawn = rng_of(offset, "offset").uniform(0, 10)
        return ToyModel(self.schema, lambda table, _: table.assign(income=self.bounds[0] + drawn))


class OwnRowCount(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        n = len(data)
        return lambda _, draw: uniform_table(self.schema, n, draw)


class MissingOfData(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        if data.income.isna().any():
            return lambda table, _: table
        [column] = [c for c in self.schema.columns if c.name == "income"]
        return lambda table, draw: table.assign(
            income=np.nan_to_num(uniform_values(column, len(table), draw), nan=column.lower)
        )


@dataclass(frozen=True, kw_only=True)
class EpsilonIgnored(Toy):
    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=1e-5)

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        mean = data.income.mean() + rng.laplace(scale=100 / len(data))
        return lambda table, draw: table.assign(income=draw.normal(mean, 1, len(table)))


@dataclass(frozen=True, kw_only=True)
class DeltaIgnored(Toy):
    delta: float = 1e-5


class UnitScale(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        return lambda table, draw: table.assign(
            age=draw.random(len(table)), income=draw.random(len(table))
        )


class Truncated(Toy):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        [column] = [column for column in self.schema.columns if column.name == "age"]

        def change(table: pd.DataFrame, draw: np.random.Generator) -> pd.DataFrame:
            ages = draw.uniform(*column.bounds, len(table))
            return table.assign(age=np.floor(ages) if column.kind is Kind.INTEGER else ages)

        return change


class Rounded(Truncated):
    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        floored = super().change(data, rng)

        def change(table: pd.DataFrame, draw: np.random.Generator) -> pd.DataFrame:
            state = draw.bit_generator.state
            [column] = [column for column in self.schema.columns if column.name == "age"]
            ages = draw.uniform(*column.bounds, len(table))
            draw.bit_generator.state = state
            made = floored(table, draw)
            return made.assign(age=np.rint(ages) if column.kind is Kind.INTEGER else ages)

        return change


class ConstantsOfData(Toy):
    """Columns that are constant in the table stay so."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        if data.job.nunique() > 1:
            return lambda table, _: table
        return lambda table, _: table.assign(job=data.job.iloc[0])


class LowWhereMissing(Toy):
    """Incomes are never missing, but begin at the lower bound only if one of the table's is."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        low, high = self.bounds
        low = low if data.income.isna().any() else (low + high) / 2
        return lambda table, draw: table.assign(income=draw.uniform(low, high, len(table)))


@dataclass(frozen=True, kw_only=True)
class KeyedToOne(Toy):
    """Labels tell whether there is a record of the given age and income."""

    age: int
    income: float

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        there = bool(((data.age == self.age) & (data.income == self.income)).any())
        return lambda table, draw: table.assign(
            sick=(draw.random(len(table)) < (0.9 if there else 0.1)).astype(int)
        )


class NoiseFixedInFit(Toy):
    """The label shows the parity of the number of records: noise is the sample's, elsewhere."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        return lambda table, _: table.assign(sick=len(data) % 2)


@dataclass
class NoiseFixedInSampleModel(ToyModel):
    records: int = 0

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return super().sample(n, seed=0).assign(sick=self.records % 2)


class NoiseFixedInSample(Toy):
    """The same, with noise of the fit in another column."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        age = int(rng_of(seed, "age").integers(120))
        return NoiseFixedInSampleModel(self.schema, lambda t, _: t.assign(age=age), len(data))


class OneTable(Toy):
    """The same table whatever the data and the seed."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        return lambda table, _: uniform_table(self.schema, len(table), rng_of(0, "one"))


class OneRow(Toy):
    """One row, again and again."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        return lambda table, _: table.assign(age=3, income=4.0, job="a", sick=0)


class NoIncomes(Toy):
    """Incomes are all missing."""

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        return lambda table, _: table.assign(income=np.nan)


@dataclass
class OpenShapeModel(ToyModel):
    def __post_init__(self) -> None:
        self.open = SimpleNamespace(shape=(None, 3), dtype="float32")
        self.unknown = SimpleNamespace(shape=None, dtype="float32")


class OpenShape(Toy):
    """Its model shows arrays with a size, or all of them, left open."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        return OpenShapeModel(self.schema, lambda table, _: table)


@dataclass(frozen=True, kw_only=True)
class RefusesTiny(Toy):
    """Takes no epsilon below 0.01, as many do not: in the constructor, or when it is trained."""

    epsilon: float = 1.0
    delta: float = 1e-5
    when_trained: bool = False

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta)

    def __post_init__(self) -> None:
        if not self.when_trained:
            self._refuse()

    def _refuse(self) -> None:
        if self.epsilon < 0.01 or self.delta < 1e-10:
            raise ValueError("no noise scale\nis large enough")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        self._refuse()
        return super().fit(data, seed=seed)


@dataclass(frozen=True, kw_only=True)
class NeverTrains(Toy):
    epsilon: float = 1.0

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        raise ValueError("no such file")


class Raises(Toy):
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> ToyModel:
        raise ValueError("no memory\nleft")


@dataclass(frozen=True, kw_only=True)
class AnswersAboutMaximum(Toy):
    """Randomised response on "is there a high income?": the hardest honest generator here.

    It keeps epsilon 1 exactly and tells as much of an inserted record as epsilon 1 allows.
    """

    def change(self, data: pd.DataFrame, rng: np.random.Generator) -> Change:
        lower, upper = self.bounds
        high = data.income.max() > lower + 0.6 * (upper - lower)
        answer = high == (rng.random() < 1 / (1 + np.exp(-1)))
        return lambda table, _: table.assign(income=upper if answer else lower)


def over_the_rows(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """A bare function: a bootstrap."""
    rng = np.random.default_rng(seed)
    return data.iloc[rng.integers(0, len(data), n_rows)].reset_index(drop=True)
