"""The six published PATE-GANs: each a recipe and the switches that are on.

Re-created from the description in Ganev, Annamalai and De Cristofaro 2025, "The Elusive Pursuit of
Reproducing PATE-GAN", Tables 2 and 3 and section 6.3, and from what the released code does: a test
compares what they generate with figures that were measured on that code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.plugins.protocols import Job
from dpaudit.plugins.recorder import Recorder
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import NetworkBatch
from dpaudit_generators.published import recipes
from dpaudit_generators.published.mechanism import PublishedModel, SwitchedPateGan
from dpaudit_generators.published.recipes import Recipes, Switch

_UNUSABLE: Final = 11 / 24
"""Share of Turing's models, run as in its published audit, that generate nothing but NaN."""


@dataclass(frozen=True, kw_only=True)
class Original(SwitchedPateGan):
    """The code released with the paper of 2019: one critic on all records, normal noise on labels.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.NO_PATE,
            Switch.PARTITION_ALL_ROWS,
            Switch.BOUNDS_FROM_DATA,
            Switch.NOISE_GAUSSIAN_ON_LABELS,
            Switch.DELTA_XOR,
            Switch.LABELS_COPIED,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.original)


@dataclass(frozen=True, kw_only=True)
class Turing(SwitchedPateGan):
    """The Alan Turing Institute's version: `original` with other mistakes, and public bounds.

    The published audit's copy also trains on one column more than the table has, of uninitialised
    memory. Its content decides whether training ends in numbers: 11 of 24 measured models generate
    nothing but NaN. Only this effect is re-created.

    Attributes:
        unwritten_memory: Whether models fail in this way, at the measured frequency; a model's seed
            decides. The other fields are those of `SwitchedPateGan`.
    """

    iterations: int = 100
    unwritten_memory: bool = False

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.NO_PATE,
            Switch.PARTITION_ALL_ROWS,
            Switch.NOISE_GAUSSIAN_ON_LABELS,
            Switch.DELTA_MULTIPLIED,
            Switch.INTEGERS_TRUNCATED,
            Switch.OUTPUT_SHIFTED,
            Switch.PENALTY_FROM_TEACHERS,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.turing)

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], recorder: Recorder | None = None
    ) -> NetworkBatch[PublishedModel]:
        """As in the base class; a model that reads unwritten memory may generate only NaN."""
        models = list(super().train(data, jobs, recorder).models)
        for index, job in enumerate(jobs):
            unusable = rng_of(job.seed, "unwritten memory").random() < _UNUSABLE
            if self.unwritten_memory and unusable:
                model = models[index]
                lost = tuple(np.full_like(part, np.nan) for part in model.weights)
                models[index] = replace(model, weights=lost)
        return NetworkBatch(tuple(models))


@dataclass(frozen=True, kw_only=True)
class Updated(SwitchedPateGan):
    """The authors' second version: logistic teachers that all train on the last part, little noise.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.PARTITION_LAST_ONLY,
            Switch.BOUNDS_FROM_DATA,
            Switch.NOISE_SCALE_INVERTED,
            Switch.TEACHERS_REFITTED,
            Switch.OUTPUT_NOT_INVERTED,
            Switch.BUDGET_EXCEEDED,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.updated)


@dataclass(frozen=True, kw_only=True)
class Synthcity(SwitchedPateGan):
    """The synthcity library's version: records dealt anew, mixtures fitted on them, free queries.

    Columns of at most ten distinct values are one-hot by the values that the table has.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.PARTITION_RESHUFFLED,
            Switch.ACCOUNTANT_EXPONENT_SLIP,
            Switch.BOUNDS_FROM_DATA,
            Switch.TEACHERS_REFITTED,
            Switch.STUDENT_SEES_REAL_ROWS,
            Switch.GENERATOR_SEES_REAL_ROWS,
            Switch.CONDITIONS_FROM_DATA,
            Switch.QUERIES_NOT_ACCOUNTED,
            Switch.DELTA_IGNORED,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.synthcity)


@dataclass(frozen=True, kw_only=True)
class Borealis(SwitchedPateGan):
    """Borealis AI's version: small networks, contiguous parts, an accountant without a logarithm.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.ACCOUNTANT_MISSING_LOG,
            Switch.BOUNDS_FROM_DATA,
            Switch.OUTPUT_NOT_INVERTED,
            Switch.BUDGET_EXCEEDED,
            Switch.SAMPLING_NOISE_DIFFERS,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.PARTITION_BY_POSITION,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.borealis)


@dataclass(frozen=True, kw_only=True)
class Smartnoise(SwitchedPateGan):
    """OpenDP's version: public bounds, contiguous parts, k from the number of records.

    The published audit set k = 5; for that, use `without="teachers-from-rows"`. Fields are those of
    `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.ACCOUNTANT_MISSING_LOG,
            Switch.BUDGET_EXCEEDED,
            Switch.SAMPLING_NOISE_DIFFERS,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.PARTITION_BY_POSITION,
            Switch.TEACHERS_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.smartnoise)
