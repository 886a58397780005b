"""Possible causes of a leak: generators with one thing fixed."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np
import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.formatting import located
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.adapt import as_generator, train
from dpaudit.plugins.protocols import (
    BatchGenerator,
    Generator,
    IntArray,
    Job,
    Model,
    ModelBatch,
    is_seedable,
    trains_many,
)
from dpaudit.seeds import rng_of

ROW_ORDER: Final = "row-order"
"""The suspect of every generator: the places of the records in the table."""
TOGETHER: Final = "all-together"
"""All suspects fixed at once."""

MOST_TOGETHER: Final = 32
"""Models that a shuffled batch trains at once: its table holds the rows of each."""


def suspects_of(generator: Generator, *, name: str) -> dict[str, Generator]:
    """The generator with each suspect fixed alone, and with all of them if there are several.

    Args:
        generator: The generator that leaks.
        name: The generator's name, for messages.

    Returns:
        Fixed generators by suspect: what `fixes` offers, the order of rows, all together. The
        last is missing where fixed ones do not offer the remaining fixes.

    Raises:
        RegistryError: If `fixes` fails, or what it returns is not a mapping to generators.
    """
    offered = fixes_of(generator, name=name)
    suspects = dict(offered)
    suspects.setdefault(ROW_ORDER, with_rows_shuffled(generator))
    fixed: Generator | None = generator
    for fix in offered:
        fixed = fixes_of(fixed, name=name).get(fix) if fixed is not None else None
    if fixed is not None and len(suspects) > 1:
        suspects[TOGETHER] = fixed if ROW_ORDER in offered else with_rows_shuffled(fixed)
    return suspects


def fixes_of(generator: object, *, name: str) -> dict[str, Generator]:
    """The fixes that a generator offers; empty without `fixes`.

    Raises:
        RegistryError: As for `suspects_of`.
    """
    offer = getattr(generator, "fixes", None)
    if not callable(offer):
        return {}
    try:
        offered = offer()
    except Exception as error:
        raise RegistryError(f"fixes() of {name} fails: {located(error)}") from error
    if not isinstance(offered, Mapping):
        raise RegistryError(f"fixes() of {name} does not return a mapping of names to generators")
    for fix in offered:
        if not isinstance(fix, str) or not re.fullmatch(r"\w[\w.-]*", fix) or fix == TOGETHER:
            raise RegistryError(
                f"fixes() of {name} offers {fix!r}: name a fix with letters, digits, - _ and ., "
                f"and not {TOGETHER}"
            )
    return {fix: as_generator(fixed, name=f"{name}: {fix}") for fix, fixed in offered.items()}


def with_rows_shuffled(generator: Generator) -> Generator:
    """The generator on a table whose rows are shuffled by each training's seed.

    A record's place then carries no information. A generator that trains many models at once still
    does so.
    """
    if trains_many(generator):
        return ShuffledBatch(generator)
    return Shuffled(generator)


@dataclass(frozen=True)
class Shuffled:
    """A generator whose table is shuffled before each training.

    Attributes:
        generator: The generator.
    """

    generator: Generator

    @property
    def claim(self) -> PrivacyClaim | None:
        """The generator's."""
        return cast(PrivacyClaim | None, getattr(self.generator, "claim", None))

    @property
    def seedable(self) -> bool:
        """Whether the generator is."""
        return is_seedable(self.generator)

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        """Trains on the shuffled table."""
        order = _shuffle(np.arange(len(data)), seed)
        return train(self.generator, data.iloc[order].reset_index(drop=True), seed=seed)


@dataclass(frozen=True)
class ShuffledBatch(Shuffled):
    """Shuffles the table of a generator that trains many models at once, for each model anew.

    They train on one table that holds the rows of each model in its order, one model after the
    other; each job drops the rows of all others.

    Attributes:
        generator: The generator.
    """

    generator: BatchGenerator

    @property
    def models_at_once(self) -> int:
        """As many as the generator's, within reason."""
        return min(self.generator.models_at_once, MOST_TOGETHER)

    def batch_key(self, job: Job) -> Hashable:
        """The generator's."""
        return self.generator.batch_key(job)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> ModelBatch:
        """Trains a model for each job; that of `fit` on its rows."""
        orders = [
            _shuffle(np.delete(np.arange(len(data)), list(job.dropped_rows)), job.seed)
            for job in jobs
        ]
        stops = np.cumsum([len(order) for order in orders])
        places = np.arange(stops[-1])
        placed = [
            job._replace(
                dropped_rows=tuple(places[(places < stop - len(order)) | (places >= stop)].tolist())
            )
            for job, order, stop in zip(jobs, orders, stops, strict=True)
        ]
        rows = data.iloc[np.concatenate(orders)].reset_index(drop=True)
        return self.generator.fit_many(rows, placed)


def _shuffle(rows: IntArray, seed: int | None) -> IntArray:
    return rng_of(seed, "row order").permutation(rows)
