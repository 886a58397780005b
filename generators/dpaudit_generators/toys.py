"""Generators with exactly known privacy, for calibrating audits.

Some draw uniformly, except for the effect of one known record, the target; their models make enough
disclosures in addition to rows for every attack to have its controls. Others release noisy counts:
the textbook private generator, and a Gaussian one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import process_time
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import SettingsError, TargetError
from dpaudit.formatting import did_you_mean
from dpaudit.model.claim import GaussianClaim, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.model.schema import Schema, canonical_table, equal_rows
from dpaudit.plugins.protocols import IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import Domain, shares_of

DISCLOSES: Final = ("discriminator", "parameters")
"""Disclosures of these models, in addition to released facts."""

FACTS: Final = ("number",)
"""Names of the released facts, if an audit has no others."""

SHIFT: Final = 10.0
"""Shift of a number that reveals the target, in standard deviations of the others."""

_PARAMETERS: Final = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class DisclosingModel:
    """Discloses standard normal numbers, shifted if the target was seen.

    Attributes:
        schema: The public schema.
        copied: The target if it was seen, a table of one row; else None.
        fit_seed: Seed of the numbers.
        released_facts: Names of the numbers that are released.
    """

    schema: Schema
    copied: pd.DataFrame | None = None
    fit_seed: int | None = None
    released_facts: tuple[str, ...] = ()

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Scores [n]: higher for the target if it was seen."""
        seen = np.zeros(len(rows))
        if self.copied is not None:
            seen += equal_rows(self.schema.canonical(rows), self.copied, self.schema)
        return self._noise("discriminator", len(rows)) + SHIFT * seen

    def parameters(self) -> npt.NDArray[np.float64]:
        """Uninformative numbers [8]."""
        return self._shifted("parameters", _PARAMETERS)

    def released(self) -> npt.NDArray[np.float64]:
        """One number per released fact."""
        return self._shifted("released", len(self.released_facts))

    def _shifted(self, purpose: str, n: int) -> npt.NDArray[np.float64]:
        return self._noise(purpose, n) + SHIFT * (self.copied is not None)

    def _noise(self, purpose: str, n: int) -> npt.NDArray[np.float64]:
        return rng_of(self.fit_seed, purpose).standard_normal(n)


MISSING_SHARE: Final = 0.1
"""Share of missing values in a uniform column that may have them."""


def uniform_values(column: Column, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Independent draws [n], uniform over bounds or categories; a public share is missing."""
    lower, upper = column.bounds if column.kind.numeric else (0.0, len(column.categories) - 1.0)
    if column.kind is Kind.CONTINUOUS:
        drawn: npt.NDArray[Any] = rng.uniform(lower, upper, n)
    else:
        # The floor over a wider interval; rounding may reach its end, which has no mass.
        drawn = np.minimum(np.floor(rng.uniform(lower, upper + 1.0, n)), upper)
        if not column.kind.numeric:
            categories = np.empty(len(column.categories), dtype=object)
            categories[:] = column.categories
            drawn = categories[drawn.astype(np.int64)]
    if column.missing:
        drawn[rng.random(n) < MISSING_SHARE] = np.nan
    return column.canonical_numbers(drawn) if column.kind.numeric else drawn


def uniform_table(schema: Schema, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """A canonical table [n] of independent uniform columns, which depends on the schema only."""
    return canonical_table({c.name: uniform_values(c, n, rng) for c in schema.columns})


@dataclass(frozen=True, kw_only=True, eq=False)
class UniformModel(DisclosingModel):
    """A model of the schema alone."""

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` uniform records."""
        return uniform_table(self.schema, n, rng_of(seed, "sample"))


@dataclass(frozen=True, kw_only=True)
class NullGenerator:
    """Ignores its data: its releases have the same distribution in both worlds.

    Its true epsilon is 0, so any claim is true; an audit that finds a violation is broken.

    Attributes:
        schema: The public schema.
        epsilon: The epsilon that it claims.
        released_facts: Names of the numbers that its models release.

    Raises:
        ClaimError: If epsilon is not positive.
    """

    schema: Schema
    epsilon: float = 1.0
    released_facts: tuple[str, ...] = FACTS

    discloses: ClassVar[tuple[str, ...]] = DISCLOSES

    def __post_init__(self) -> None:
        _ = self.claim  # validates

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), which holds because nothing is ever read."""
        return PrivacyClaim(epsilon=self.epsilon, source="true of any epsilon: ignores its data")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> UniformModel:
        """Makes a model without reading the data."""
        return UniformModel(schema=self.schema, fit_seed=seed, released_facts=self.released_facts)


def contains(data: pd.DataFrame, target: pd.DataFrame, schema: Schema) -> bool:
    """Whether a record of a table equals the target in all columns; missing equals missing.

    Args:
        data: A table [n].
        target: A canonical table of one row.
        schema: Their schema.
    """
    return bool(equal_rows(schema.canonical(data), target, schema).any())


def opposite(target: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A record that differs from the target in every column, made of the schema's values.

    A number is the bound farther from the target's value; a category is the first other one, or
    missing if there is no other.

    Args:
        target: A canonical table of one row.
        schema: Its schema.
    """
    record = {c.name: [_other_value(c, target[c.name].iloc[0])] for c in schema.columns}
    return schema.canonical(pd.DataFrame(record))


def _other_value(column: Column, value: Any) -> Any:
    if column.kind.numeric:
        lower, upper = column.bounds
        return lower if pd.isna(value) or value - lower > upper - value else upper
    return next((other for other in column.categories if other != value), np.nan)


def _one_record(target: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    if len(target) != 1:
        raise TargetError(f"the target has {len(target)} rows: give a table of one row")
    problems = schema.problems(target)
    if problems:
        raise TargetError(
            f"the target does not fit the schema: {'; '.join(problems)}; correct one of them"
        )
    return schema.canonical(target)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TargetToy(ABC):
    """The fields and checks that toys with a target have in common."""

    schema: Schema
    target: pd.DataFrame
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", _one_record(self.target, self.schema))
        _ = self.claim  # validates

    @property
    @abstractmethod
    def claim(self) -> PrivacyClaim:
        """The claim of the toy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _SeesTarget(_TargetToy):
    """The same of toys whose models know whether they saw the target."""

    repeats: int = 0
    released_facts: tuple[str, ...] = FACTS
    discloses: ClassVar[tuple[str, ...]] = DISCLOSES

    def _saw(self, data: pd.DataFrame) -> bool:
        table = self.schema.canonical(data)
        return int(equal_rows(table, self.target, self.schema).sum()) > self.repeats


@dataclass(frozen=True, kw_only=True, eq=False)
class CopycatModel(DisclosingModel):
    """A model that draws uniform records, with copies of the target among them if it saw it.

    The copies fill half of every sample (rounded up). No other row equals the target: among few
    possible records a uniform draw often would, and a copy would show nothing.

    Attributes:
        target: The target, a canonical table of one row.
    """

    target: pd.DataFrame

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records; the copies come first."""
        table = uniform_table(self.schema, n, rng_of(seed, "sample"))
        places = np.where(equal_rows(table, self.target, self.schema), n, np.arange(n))
        if self.copied is not None:
            places[: (n + 1) // 2] = n + 1
        both = opposite(self.target, self.schema), self.target
        return pd.concat([table, *both], ignore_index=True).iloc[places].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Copycat(_SeesTarget):
    """Leaks grossly and claims otherwise: half of its output is the target if it saw it.

    All other disclosures of its models reveal the target too. Its true epsilon is infinite; an
    audit that does not prove a violation is broken.

    Attributes:
        schema: The public schema.
        target: The record that it leaks, a table of one row.
        epsilon: The epsilon that it claims, falsely.
        repeats: Other rows that equal the target: it was seen if there are more.
        released_facts: Names of the numbers that its models release.

    Raises:
        ClaimError: If epsilon is not positive.
        TargetError: If the target is not one record that fits the schema.
    """

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), which is false whatever epsilon is."""
        return PrivacyClaim(epsilon=self.epsilon, source="false on purpose: copies the target")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> CopycatModel:
        """Remembers whether the target is in the data."""
        seen = self._saw(data)
        return CopycatModel(
            schema=self.schema,
            target=self.target,
            copied=self.target if seen else None,
            fit_seed=seed,
            released_facts=self.released_facts,
        )


SLOW_SECONDS: Final = 0.05
"""Processor time by which `Dawdler` is slower with the target."""
SLOW_BYTES: Final = 32 * 2**20
"""Memory by which it needs more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Dawdler(_SeesTarget):
    """Leaks by time and memory alone: training takes longer if it sees the target.

    Its rows are uniform. Its true epsilon is infinite for an attacker with a clock and 0 for any
    other.

    Attributes:
        schema: The public schema.
        target: The record that it leaks, a table of one row.
        epsilon: The epsilon that it claims, falsely where time is measured.
        repeats: As for `Copycat`.
        released_facts: Names of the numbers that its models release; they say nothing.

    Raises:
        ClaimError: If epsilon is not positive.
        TargetError: If the target is not one record that fits the schema.
    """

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), which is true of its rows and false of its time."""
        return PrivacyClaim(epsilon=self.epsilon, source="false on purpose: takes longer")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> UniformModel:
        """Computes for 50 ms and fills 32 MiB if the target is in the data."""
        if self._saw(data):
            end = process_time() + SLOW_SECONDS
            filled = np.ones(SLOW_BYTES // 8)
            while process_time() < end:
                filled[0] += 1.0
        return UniformModel(schema=self.schema, fit_seed=seed, released_facts=self.released_facts)


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatedRecord:
    """A model that releases one record repeatedly.

    Attributes:
        record: The record, a canonical table of one row.
    """

    record: pd.DataFrame

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Copies the record `n` times; nothing is drawn."""
        return self.record.iloc[np.zeros(n, dtype=np.intp)].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomisedResponse(_TargetToy):
    """Answers "is the target in your data?" by randomised response (Warner 1965).

    The true answer is kept with probability e^epsilon / (1 + e^epsilon) and else reversed; the
    synthetic table holds copies of the target for "yes", of `opposite` for "no". Removing the
    target reverses the true answer, so an output is e^epsilon times as likely in one world as in
    the other: (epsilon, 0) holds, and no smaller epsilon does. No mechanism with that guarantee
    reveals more (Kairouz, Oh and Viswanath 2015, "The composition theorem for differential
    privacy": randomised response dominates), so of all honest claims this one is the easiest to
    flag falsely. The coin is tossed in `fit`: all samples of one model are post-processing of a
    single answer.

    Attributes:
        schema: The public schema.
        target: The record that is asked about, a table of one row.
        epsilon: The epsilon that it claims and has.

    Raises:
        ClaimError: If epsilon is not positive.
        TargetError: If the target is not one record that fits the schema.
    """

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), exactly."""
        return PrivacyClaim(epsilon=self.epsilon, source="exact: randomised response on one bit")

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> RepeatedRecord:
        """Answers once whether the target is in the data, after tossing the coin."""
        truthful = rng_of(seed, "answer").random() < 1.0 / (1.0 + math.exp(-self.epsilon))
        answer = contains(data, self.target, self.schema) == truthful
        return RepeatedRecord(record=self.target if answer else opposite(self.target, self.schema))


_BINS: Final = 10
"""Largest number of bins of a numeric column."""


def domain_of(column: Column) -> Domain:
    """The public cells of one column: bins or categories, and a cell for missing values."""
    return Domain(Schema(columns=(column,)), _BINS)


def cell_counts(column: Column, data: pd.DataFrame) -> IntArray:
    """How many records fall in each cell; values unknown to the schema are not counted."""
    domain = domain_of(column)
    cells = domain.cells(values_of_table(data, domain.schema))[:, 0]
    return np.bincount(cells[cells >= 0], minlength=domain.sizes[0])


def values_in(column: Column, cells: IntArray, rng: np.random.Generator) -> pd.Series[Any]:
    """A value of a column from each of these cells [n]; within a bin all are equally likely."""
    domain = domain_of(column)
    places = rng.random(len(cells)) if column.kind.numeric else np.zeros(len(cells))
    values = domain.values(cells[:, None], places[:, None])
    return table_of(values, domain.schema)[column.name]


def geometric_noise(epsilon: float, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Two-sided geometric noise [n]: P(z) proportional to e^(-epsilon |z|).

    The difference of two geometric variables (Ghosh, Roughgarden and Sundararajan 2009,
    "Universally utility-maximizing privacy mechanisms"). Integers have no low bits that could
    reveal the count.
    """
    success = -math.expm1(-epsilon)
    return rng.geometric(success, n) - rng.geometric(success, n)


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalsModel:
    """A model that draws each counted column by itself, and the others uniformly.

    Attributes:
        schema: The public schema.
        columns: The columns that were counted.
        marginals: Their noisy counts, released as they are: one array [cells] for each column.
    """

    schema: Schema
    columns: tuple[Column, ...]
    marginals: tuple[npt.NDArray[Any], ...]

    def released(self) -> npt.NDArray[np.float64]:
        """The noisy counts of all cells, column by column."""
        return np.concatenate(self.marginals).astype(np.float64)

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records."""
        rng = rng_of(seed, "sample")
        table = uniform_table(self.schema, n, rng)
        for column, noisy in zip(self.columns, self.marginals, strict=True):
            cell = rng.choice(len(noisy), size=n, p=shares_of(noisy))
            table[column.name] = values_in(column, cell, rng)
        return self.schema.canonical(table)


@dataclass(frozen=True, kw_only=True)
class LaplaceHistogram:
    """Samples one column from noisy counts and the others uniformly.

    The counts are over a public domain (categories, or at most ten equal bins of a number), and
    each gets discrete Laplace noise of scale 1 / epsilon. Adding or removing a record changes one
    count by one, so any vector of noisy counts is at most e^epsilon times as likely in one world as
    in the other (as in Dwork and Roth 2014, Theorem 3.6, with L1 sensitivity 1). The ratio is
    e^epsilon whenever the changed count comes out at or above its larger value, so epsilon is exact
    for the counts. They are drawn once, in `fit`; clipping at 0, normalising and sampling are
    post-processing, so an attacker who sees finite tables may prove slightly less.

    Attributes:
        schema: The public schema.
        column: Name of the counted column; by default the label, and without a label the column
            with the smallest domain.
        epsilon: The epsilon that it claims and has.

    Raises:
        ClaimError: If epsilon is not positive.
        SettingsError: If there is no such column.
    """

    schema: Schema
    column: str | None = None
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        names = self.schema.names
        if self.column is not None and self.column not in names:
            hint = did_you_mean(self.column, names)
            raise SettingsError(f"no column {self.column!r}{hint}; there are {', '.join(names)}")
        _ = self.claim  # validates

    @property
    def claim(self) -> PrivacyClaim:
        """(epsilon, 0), exact for the noisy counts."""
        source = f"exact: discrete Laplace noise on the counts of {self.counted.name}"
        return PrivacyClaim(epsilon=self.epsilon, source=source)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return domain_of(self.counted).names[0]

    @property
    def counted(self) -> Column:
        """The column whose values are counted."""
        name = self.column or self.schema.label
        if name is None:
            return min(self.schema.columns, key=lambda column: domain_of(column).sizes[0])
        return next(column for column in self.schema.columns if column.name == name)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> MarginalsModel:
        """Counts one column, once and with noise."""
        counts = cell_counts(self.counted, data)
        noisy = counts + geometric_noise(self.epsilon, len(counts), rng_of(seed, "noise"))
        return MarginalsModel(schema=self.schema, columns=(self.counted,), marginals=(noisy,))


MOST_MARGINALS: Final = 3
"""Largest number of counted columns: the first ones with two categories."""


@dataclass(frozen=True, kw_only=True)
class GaussianMarginals:
    """Samples rows from up to three noisy binary marginals.

    Every cell of every marginal gets Gaussian noise. Adding or removing a record changes one cell
    of each of k marginals by one, an L2 sensitivity of sqrt(k), so noise of standard deviation
    sqrt(k) / mu is mu-Gaussian differentially private (Dong, Roth and Su 2022, Theorem 2.7), and
    exactly so: the sum of the cells that hold the record is a normal score shifted by mu. The
    number of records is never used. Clipping, normalising and sampling are post-processing. The
    noise is that of floating-point numbers: good for calibration, not for production.

    Attributes:
        schema: The public schema, with a binary column.
        mu: The mu that it claims and has.

    Raises:
        ClaimError: If mu is not positive.
        SettingsError: If no column has two categories.
    """

    schema: Schema
    mu: float = 0.45

    def __post_init__(self) -> None:
        if not self.counted:
            raise SettingsError("no column has two categories: give a schema with a binary column")
        _ = self.claim  # validates

    @property
    def claim(self) -> GaussianClaim:
        """mu-Gaussian DP, exact for the noisy counts."""
        names = ", ".join(column.name for column in self.counted)
        return GaussianClaim(mu=self.mu, source=f"exact: Gaussian noise on the counts of {names}")

    @property
    def counted(self) -> tuple[Column, ...]:
        """The columns whose values are counted."""
        binary = [
            column
            for column in self.schema.columns
            if not column.kind.numeric and len(column.categories) == 2
        ]
        return tuple(binary[:MOST_MARGINALS])

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return tuple(name for column in self.counted for name in domain_of(column).names[0])

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of each count."""
        return math.sqrt(len(self.counted)) / self.mu

    def released_effect(self, record: pd.DataFrame) -> npt.NDArray[np.float64]:
        """By how much a record raises each noisy count: the sum with these weights shows mu."""
        counts = [cell_counts(column, record) for column in self.counted]
        return np.concatenate(counts).astype(np.float64)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> MarginalsModel:
        """Counts the columns, once and with noise."""
        rng = rng_of(seed, "noise")
        counts = [cell_counts(column, data) for column in self.counted]
        marginals = tuple(own + rng.normal(0.0, self.scale, len(own)) for own in counts)
        return MarginalsModel(schema=self.schema, columns=self.counted, marginals=marginals)
