"""The subject of a probe, its trainings, and the test behind every alarm of a violation.

Independent fair coins put records into a table or leave them out; the coins are guessed from the
synthetic table alone, by features that were chosen on other models, the pilot. If a generator
satisfies an (ε, δ) claim, the number of right guesses is limited, whatever its output: all fits
together are one run in the sense of Steinke, Nasr and Jagielski 2023, Theorem 5.2
(`bounds.one_run_p_value`). A permutation test would be wrong: the output distributions of a private
generator may differ between the two tables, by a factor of e^ε.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.external.generator import WorkerGenerator
from dpaudit.formatting import listed
from dpaudit.model.choices import Severity
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import NamedGenerator, named_generator, train
from dpaudit.plugins.protocols import (
    BatchGenerator,
    BoolArray,
    FloatArray,
    Generator,
    Job,
    Model,
    ModelBatch,
    World,
    trains_many,
)
from dpaudit.plugins.registry import GENERATORS, resolve
from dpaudit.plugins.release import accept, accept_stack, accept_values
from dpaudit.probe.catalogue import ProbeSettings
from dpaudit.seeds import Stream, seeded_globals

SCHEMA = "schema"
_MISSING = "missing"
Number = float | str | bool
PILOTS: Final = 3
"""Fits of each side that choose the feature to guess from."""
_SPARE: Final = 0.01
"""Share of wrong guesses tolerated by an alarm; at least one guess."""
_MOST_GUESSES: Final = 4096
_AT_ONCE: Final = 4
"""An alarm's feasibility is checked after this many fits, if models are trained one by one."""
_TEST: Final = 1000
"""Number of the test's first fit; those of the pilot are lower."""


class Observation(NamedTuple):
    """What a probe observed.

    Attributes:
        alarm: Whether it is an alarm.
        evidence: What was observed, in words.
        numbers: The same in numbers.
        p_value: Largest probability of such evidence under the claim; None where no chance is
            involved.
        certainty: Why an alarm cannot be false, where there is no p-value.
        severity: Severity of this alarm; None means the probe's own.
        read: Columns of the output on which it is based; empty for all.
    """

    alarm: bool
    evidence: str
    numbers: Mapping[str, Number] = {}
    p_value: float | None = None
    certainty: str = ""
    severity: Severity | None = None
    read: tuple[str, ...] = ()


class NotApplicable(NamedTuple):
    """The outcome of a probe that does not apply to this table or this generator.

    Attributes:
        why: The reason, in words.
    """

    why: str


class Maker(NamedTuple):
    """Rebuilds a generator.

    Attributes:
        asked: The generator as the caller gave it.
        takes: Names of the settings that it can be built with, such as "schema".
        make: Builds it from a schema, a table under it, and changed settings.
    """

    asked: NamedGenerator
    takes: frozenset[str]
    make: Callable[[Schema, pd.DataFrame, Mapping[str, Any]], Generator]


def maker(
    generator: object,
    parameters: Mapping[str, Any],
    schema: Schema,
    data: pd.DataFrame,
    *,
    target: int = 0,
    worker_memory: float | None = None,
) -> Maker:
    """The maker for a generator given by name or as an object.

    A name is built as an audit builds it, with the target that it may need. A dataclass is copied
    with its fields changed; any other object is used as it is.

    Args:
        generator: A name or an object.
        parameters: Parameters of a generator given by name.
        schema: The table's schema.
        data: The table.
        target: Position of the target.
        worker_memory: As for `named_generator`.

    Returns:
        The maker.

    Raises:
        RegistryError: If it cannot be found or built, or is not a generator.
    """
    if isinstance(generator, str):
        name = generator

        def built(schema: Schema, data: pd.DataFrame, given: Mapping[str, Any]) -> NamedGenerator:
            offered = {SCHEMA: schema, "target": data.iloc[[target]].reset_index(drop=True)}
            return named_generator(name, given, offered, worker_memory=worker_memory)

        def named(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
            return built(schema, data, {**parameters, **changes}).generator

        asked = built(schema, data, parameters)
        if isinstance(asked.generator, WorkerGenerator):  # its constructor is not visible here
            return Maker(asked, frozenset({SCHEMA, *parameters}), named)
        value = resolve(name, GENERATORS)
        known = inspect.signature(value).parameters if inspect.isclass(value) else ()
        return Maker(asked, frozenset(known), named)

    asked = named_generator(generator, parameters, {})
    ready: Any = asked.generator
    fields = {f.name for f in dataclasses.fields(ready)} if dataclasses.is_dataclass(ready) else ()

    def copied(schema: Schema, data: pd.DataFrame, changes: Mapping[str, Any]) -> Generator:
        del data
        fresh = {SCHEMA: schema} if SCHEMA in fields else {}
        made: Generator = dataclasses.replace(ready, **fresh, **changes) if fields else ready
        return made

    return Maker(asked, frozenset(fields), copied)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A generator, a table, and the settings of the run.

    Attributes:
        maker: Builds the generator.
        data: The table, canonical.
        schema: Its schema.
        claim: The claim under test.
        settings: Every choice of the run.
        target: Position of the record that the caller named; None without one.
    """

    maker: Maker
    data: pd.DataFrame
    schema: Schema
    claim: PrivacyClaim
    settings: ProbeSettings
    target: int | None = None

    @property
    def rows(self) -> int:
        """Synthetic records requested of each model."""
        return len(self.data) if self.settings.rows is None else self.settings.rows

    def build(
        self, schema: Schema | None = None, data: pd.DataFrame | None = None, **changes: Any
    ) -> Generator:
        """Builds the generator for another schema, a table under it, or changed settings.

        Args:
            schema: The schema; the subject's by default.
            data: The table; the subject's by default.
            changes: Settings to change, by name.

        Returns:
            The generator.
        """
        return self.maker.make(
            self.schema if schema is None else schema, self.data if data is None else data, changes
        )


class Fit(NamedTuple):
    """One training.

    Attributes:
        dropped: Positions of the records that it lacks.
        seed: Seed of the training; None means the system's entropy.
        sample_seed: Seed of its sample, likewise.
    """

    dropped: tuple[int, ...]
    seed: int | None
    sample_seed: int | None


class Trainer:
    """Does all trainings of one probe and counts them.

    Args:
        subject: What is probed.
        probe: Id of the probe, which names the random streams.

    Attributes:
        subject: What is probed.
        fits: Models trained so far.
        variation: What varied in the tables so far.
    """

    def __init__(self, subject: Subject, probe: str) -> None:
        self.subject, self._probe = subject, probe
        self.fits, self.variation = 0, Variation()

    def stream(self, role: str, number: int = 0) -> Stream:
        """A random stream of this probe, named by role and number."""
        return Stream(self.subject.settings.seed, f"probe/{self._probe}", role, number)

    def fit_of(self, number: int, dropped: Sequence[int] = (), *, seeded: bool = True) -> Fit:
        """The training with a number, with random streams of its own.

        Args:
            number: Names the streams.
            dropped: Positions of the records that it lacks.
            seeded: Whether the training and the sample get seeds.

        Returns:
            The training.
        """
        if not seeded:
            return Fit(tuple(dropped), None, None)
        streams = self.stream("fit", number), self.stream("sample", number)
        return Fit(tuple(dropped), *(stream.seed() for stream in streams))

    def tables(
        self,
        generator: Generator,
        data: pd.DataFrame,
        fits: Sequence[Fit],
        *,
        schema: Schema | None = None,
        rows: int | None = None,
    ) -> list[pd.DataFrame]:
        """One synthetic table, canonical, for each training.

        Args:
            generator: What is trained.
            data: The whole table.
            fits: The trainings.
            schema: The table's schema; the subject's by default.
            rows: Synthetic records asked of each model; the subject's by default.

        Returns:
            The tables, in the order of the trainings.

        Raises:
            TrialError: If a model's output is not a table of that many records.
            Exception: Whatever the generator raises.
        """
        schema = self.subject.schema if schema is None else schema
        rows = self.subject.rows if rows is None else rows
        self.fits += len(fits)
        tables = (
            self._together(generator, data, fits, schema, rows)
            if trains_many(generator)
            else [
                accept(model.sample(rows, seed=fit.sample_seed), schema, rows)
                for fit in fits
                for model in self._alone(generator, data, fit)
            ]
        )
        for fit, table in zip(fits, tables, strict=True):
            seeded = None not in (fit.seed, fit.sample_seed)
            self.variation.add(table, (fit.seed, fit.sample_seed) if seeded else object())
        return tables

    def _together(
        self,
        generator: BatchGenerator,
        data: pd.DataFrame,
        fits: Sequence[Fit],
        schema: Schema,
        rows: int,
    ) -> list[pd.DataFrame]:
        """`tables` for a generator that trains many models at once."""
        tables: dict[int, pd.DataFrame] = {}
        for chunk, batch in self._batches(generator, data, fits):
            raw = batch.sample_many(rows, [fits[position].sample_seed for position in chunk])
            stack = accept_stack(raw, schema, rows, models=len(chunk))
            for position, values in zip(chunk, stack, strict=True):
                accept_values(values, schema)
                tables[position] = table_of(values, schema)
        return [tables[position] for position in range(len(fits))]

    def models(
        self, generator: Generator, data: pd.DataFrame, fits: Sequence[Fit]
    ) -> Iterator[Model]:
        """Trains and yields the models, one after another.

        Args:
            generator: What is trained.
            data: The whole table.
            fits: The trainings.

        Yields:
            The models, in the order of the trainings.
        """
        self.fits += len(fits)
        if not trains_many(generator):
            for fit in fits:
                yield from self._alone(generator, data, fit)
            return
        models: dict[int, Model] = {}
        for chunk, batch in self._batches(generator, data, fits):
            models |= {position: batch[i] for i, position in enumerate(chunk)}
        yield from (models[position] for position in range(len(fits)))

    def _batches(
        self, generator: BatchGenerator, data: pd.DataFrame, fits: Sequence[Fit]
    ) -> Iterator[tuple[list[int], ModelBatch]]:
        """Yields models that were trained together, to be sampled while they control the streams.

        With each batch come the positions of its fits.
        """
        for chunk in _chunks(generator, fits):
            with _globals(fits[chunk[0]]):
                jobs = [_job(fits[position]) for position in chunk]
                yield chunk, generator.fit_many(self._given(data), jobs)

    def _alone(self, generator: Generator, data: pd.DataFrame, fit: Fit) -> Iterator[Model]:
        """Yields one model, to be sampled while it controls the global streams."""
        kept = np.delete(np.arange(len(data)), list(fit.dropped))
        with _globals(fit):
            fresh = copy.deepcopy(generator)  # some generators train in place
            rows = self._given(data.iloc[kept].reset_index(drop=True))
            yield train(fresh, rows, seed=fit.seed)

    def _given(self, data: pd.DataFrame) -> pd.DataFrame:
        """A copy of a table as the generator receives it."""
        given: pd.DataFrame = self.subject.schema.handed(data.copy())
        return given


def _chunks(generator: BatchGenerator, fits: Sequence[Fit]) -> Iterator[list[int]]:
    """Positions of fits that are trained together."""
    groups: dict[Hashable, list[int]] = {}
    for position, fit in enumerate(fits):
        groups.setdefault(generator.batch_key(_job(fit)), []).append(position)
    most = max(1, generator.models_at_once)
    for group in groups.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _job(fit: Fit) -> Job:
    return Job(World.IN, 0, fit.dropped, fit.seed)


def _globals(fit: Fit) -> AbstractContextManager[None]:
    return nullcontext() if fit.seed is None else seeded_globals(fit.seed)


class Variation:
    """The parts of one probe's synthetic tables that varied.

    A constant satisfies any claim, so it is no alarm; but a broken generator whose output is
    constant or entirely missing would pass every check of dependence. Such a probe does not apply.
    """

    def __init__(self) -> None:
        self._first: pd.DataFrame | None = None
        self._same = True
        self._seeds: set[object] = set()
        self._rows = 0
        self._values: dict[str, set[object]] = {}

    def add(self, table: pd.DataFrame, seeds: object) -> None:
        """Records a table.

        Args:
            table: The synthetic table.
            seeds: The source of its randomness; equal for fits that must give equal tables.
        """
        if self._first is None:
            self._first = table
        elif self._same:
            self._same = self._first.equals(table)
        self._seeds.add(seeds)
        self._rows += len(table)
        for name in table.columns:
            seen = self._values.setdefault(str(name), set())
            if len(seen) < 2:
                some = table[name].drop_duplicates().head(2)
                seen.update(
                    _MISSING if gone else v for v, gone in zip(some, some.isna(), strict=True)
                )

    def still(self) -> list[str]:
        """Columns that have one value, or are missing, in every row of every table."""
        if self._rows < 2:
            return []
        return [name for name, seen in self._values.items() if len(seen) < 2]

    def missing(self) -> list[str]:
        """Columns that are missing in every row of every table."""
        return [name for name in self.still() if self._values[name] == {_MISSING}]

    def nothing_in(self, columns: Sequence[str]) -> str | None:
        """Why some columns allow no conclusion.

        Args:
            columns: Their names.

        Returns:
            The reason in words; None if one of them varies.
        """
        if self._first is None:
            return None
        if self._same and len(self._seeds) > 1:
            seeds = len(self._seeds)
            return (
                f"{seeds} fits with seeds of their own gave one table: a constant follows nothing"
            )
        still = self.still()
        if not set(columns) <= set(still):
            return None
        what = "missing" if set(columns) <= set(self.missing()) else "the same value"
        return f"{listed(columns)}: {what} in every row of every fit, which follows nothing"


class Coin(NamedTuple):
    """Records decided by one coin.

    Attributes:
        heads: Positions that are left out if it falls heads (the guess is True).
        tails: Positions that are left out if not.
    """

    heads: tuple[int, ...]
    tails: tuple[int, ...]


def insertions(records: Sequence[int], bases: Sequence[int], claim: PrivacyClaim) -> list[Coin]:
    """Coins for records that are added or, if the claim is for replacements, replace others.

    Args:
        records: Positions of the records.
        bases: Positions of those that they replace.
        claim: The claim.

    Returns:
        One coin for each record; heads puts it in.
    """
    if claim.neighbours is Neighbours.REPLACE_ONE:
        return [Coin((base,), (record,)) for record, base in zip(records, bases, strict=True)]
    return [Coin((base,), (record, base)) for record, base in zip(records, bases, strict=True)]


class Rule(NamedTuple):
    """A rule that guesses one coin from one feature of a table.

    Attributes:
        feature: Position of the feature.
        threshold: Threshold on it.
        above: Whether it lies above the threshold if the coin fell heads.
        score: Gap between the pilot's two sides in units of their spread.
    """

    feature: int
    threshold: float
    above: bool
    score: float

    def guess(self, features: FloatArray) -> bool:
        """Guesses from one table's features [f] whether the coin fell heads."""
        return bool((features[self.feature] > self.threshold) == self.above)


def rule(heads: FloatArray, tails: FloatArray) -> Rule | None:
    """The rule that separates the pilot's two sides best.

    Args:
        heads: Features of fits whose coin fell heads; shape [a, f].
        tails: Features of fits whose coin fell tails; shape [b, f].

    Returns:
        The rule; None if no feature's gap is wider than its spread.
    """
    best = None
    for feature in range(heads.shape[1]):
        values, others = heads[:, feature], tails[:, feature]
        above = bool(values.mean() > others.mean())
        low, high = (others, values) if above else (values, others)
        gap = float(high.min() - low.max())
        spread = float(np.ptp(low) + np.ptp(high))
        if gap > spread and gap > 1e-9 * float(np.abs(np.concatenate([low, high])).max()):
            score = gap / (spread + 1e-9 * gap)
            if best is None or score > best.score:
                best = Rule(feature, float(low.max()) + gap / 2, above, score)
    return best


def one_coin(claim: PrivacyClaim) -> PrivacyClaim:
    """The pure ε that a claim implies for fits with one coin each.

    Then fits and coins are independent, and each guess is right with probability at most (e^ε + δ)
    / (1 + e^ε) (the total variation that (ε, δ) permits: Kairouz, Oh and Viswanath 2015, Theorem
    2.1). This costs much less than δ does if several coins share a fit.
    """
    odds = (math.exp(min(claim.epsilon, 700.0)) + claim.delta) / (1.0 - claim.delta)
    return replace(claim, epsilon=math.log(odds), delta=0.0)


@cache
def fewest_guesses(claim: PrivacyClaim, alpha: float) -> int | None:
    """Fewest guesses that raise an alarm even if 1 % of them, at least one, are wrong.

    Args:
        claim: What limits right guesses.
        alpha: Largest p-value of an alarm.

    Returns:
        Their number; None if not even thousands suffice.
    """
    for guesses in range(2, _MOST_GUESSES):
        wrong = max(1, int(_SPARE * guesses))
        if _p_value(guesses - wrong, guesses, claim) <= alpha:
            return guesses
    return None


def unprovable(claim: PrivacyClaim, basis: str, fits: int | None) -> NotApplicable:
    """The outcome if the pilot found a feature, but the claim permits too many right guesses.

    Args:
        claim: The claim.
        basis: What the guesses are based on, in words.
        fits: Fits needed; None if too many to compute.

    Returns:
        The outcome, with the reason in words.
    """
    most = "thousands of" if fits is None else str(fits)
    return NotApplicable(
        f"pilot fits only: {basis}; to distinguish that from what epsilon {claim.epsilon:.3g} "
        f"permits takes {most} more: raise `fits`, or probe at a smaller `epsilon`"
    )


def challenge(
    trainer: Trainer,
    generator: Generator,
    data: pd.DataFrame,
    coins: Sequence[Coin],
    guess: Callable[[pd.DataFrame], Sequence[bool]],
    *,
    basis: str,
    schema: Schema | None = None,
    claim: PrivacyClaim | None = None,
    never: Sequence[int] = (),
    rows: int | None = None,
    seeded: bool = True,
) -> Observation | NotApplicable:
    """Runs the test and counts right guesses.

    Stops as soon as an alarm is impossible, which can only lower the false-alarm rate.

    Args:
        trainer: Trains.
        generator: The generator, built for the schema.
        data: A table with every record that a coin may put in.
        coins: The coins of one fit.
        guess: Guesses them from a synthetic table.
        basis: What the guesses are based on, in words.
        schema: The table's schema; the subject's by default.
        claim: What limits right guesses; the subject's by default.
        never: Positions of records that no fit sees.
        rows: Synthetic records requested of each model; the subject's by default.
        seeded: Whether trainings and samples are seeded.

    Returns:
        What was observed, or why so few fits cannot test the claim.
    """
    subject = trainer.subject
    claim = subject.claim if claim is None else claim
    claim = one_coin(claim) if len(coins) == 1 else claim
    guesses = fewest_guesses(claim, subject.settings.alpha)
    fits = None if guesses is None else -(-guesses // len(coins))
    if fits is None or fits > subject.settings.fits:
        return unprovable(claim, basis, fits)
    total = fits * len(coins)
    spare = _most_wrong(total, claim, subject.settings.alpha)
    toss = trainer.stream("coins").rng().random((fits, len(coins))) < 0.5
    at_once = getattr(generator, "models_at_once", _AT_ONCE)
    right = tossed = 0
    for start in range(0, fits, at_once):
        chunk = toss[start : start + at_once]
        wanted = [
            trainer.fit_of(_TEST + start + i, drops(coins, row, never), seeded=seeded)
            for i, row in enumerate(chunk)
        ]
        tables = trainer.tables(generator, data, wanted, schema=schema, rows=rows)
        for table, row in zip(tables, chunk, strict=True):
            right += int(np.count_nonzero(np.asarray(guess(table), dtype=bool) == row))
            tossed += len(row)
        if tossed - right > spare:
            break
    p_value = _p_value(right, total, claim) if tossed == total else 1.0
    numbers = {"right": right, "guesses": tossed, "planned": total, "epsilon_tested": claim.epsilon}
    return Observation(
        tossed == total and p_value <= subject.settings.alpha,
        f"{basis}: {right} of {tossed} coins guessed right",
        numbers,
        p_value,
    )


def drops(coins: Sequence[Coin], heads: BoolArray, never: Sequence[int] = ()) -> list[int]:
    """Positions of the records that a fit lacks.

    Args:
        coins: Its coins, m of them.
        heads: Whether each fell heads; shape [m].
        never: Positions that every fit lacks.

    Returns:
        The positions, ascending.
    """
    gone = {
        position
        for coin, fell in zip(coins, heads, strict=True)
        for position in (coin.heads if fell else coin.tails)
    }
    return sorted(gone | set(never))


def _most_wrong(total: int, claim: PrivacyClaim, alpha: float) -> int:
    """Largest number of wrong guesses that still raises an alarm; negative if no number does."""
    return next(
        wrong
        for wrong in range(total, -2, -1)
        if wrong < 0 or _p_value(total - wrong, total, claim) <= alpha
    )


def _p_value(correct: int, guesses: int, claim: PrivacyClaim) -> float:
    return one_run_p_value(correct, guesses, guesses, epsilon=claim.epsilon, delta=claim.delta)


def summary(table: pd.DataFrame, subject: Subject) -> dict[str, float]:
    """Summary statistics of a synthetic table, by name: means, extremes, shares of categories.

    Args:
        table: The table.
        subject: What is probed, for the schema.

    Returns:
        The numbers, those of each column in turn.
    """
    shown: dict[str, float] = {}
    for column in subject.schema.columns:
        values = table[column.name]
        if column.kind.numeric:
            numbers = column.numbers(values)
            numbers = numbers[~np.isnan(numbers)]
            for name, number in (("mean", np.mean), ("minimum", np.min), ("maximum", np.max)):
                shown[f"{name} of {column.name}"] = float(number(numbers)) if len(numbers) else 0.0
        else:
            for category in column.categories:
                share = float((values == category).mean())
                shown[f"share of {category!r} in {column.name}"] = share
    return shown


def single_coin(
    trainer: Trainer,
    generator: Generator,
    data: pd.DataFrame,
    coin: Coin,
    features: Callable[[pd.DataFrame], Mapping[str, float]],
    *,
    basis: str,
    claim: PrivacyClaim | None = None,
    first: int = 0,
    pilots: int = PILOTS,
) -> Observation | NotApplicable | None:
    """Runs the test with one coin in each fit.

    Args:
        trainer: Trains.
        generator: The generator, built for the subject's schema.
        data: A table with every record that the coin may put in.
        coin: The coin.
        features: Statistics of a synthetic table, by name, that may depend on the coin.
        basis: What depends on it, in words.
        claim: What limits right guesses; the subject's by default.
        first: Number of the pilot's first fit.
        pilots: Fits of each side in the pilot.

    Returns:
        As `challenge`; None if no feature depends on the coin in the pilot.
    """
    sides = []
    for side, dropped in enumerate(coin):
        fits = [trainer.fit_of(first + pilots * side + i, dropped) for i in range(pilots)]
        tables = trainer.tables(generator, data, fits)
        sides.append([features(table) for table in tables])
    heads, tails = (np.array([list(features.values()) for features in side]) for side in sides)
    guesser = rule(heads, tails)
    if guesser is None:
        return None
    name = list(sides[0][0])[guesser.feature]
    means = [float(side[:, guesser.feature].mean()) for side in (heads, tails)]
    return challenge(
        trainer,
        generator,
        data,
        [coin],
        lambda table: [guesser.guess(np.array(list(features(table).values())))],
        claim=claim,
        basis=f"{basis} ({name}: {means[0]:.4g} against {means[1]:.4g})",
    )
