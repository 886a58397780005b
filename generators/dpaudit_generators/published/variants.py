"""The six published PATE-GANs: each a recipe and the switches that are on.

Re-created from the description in Ganev, Annamalai and De Cristofaro 2025, "The Elusive Pursuit of
Reproducing PATE-GAN", Tables 2 and 3 and section 6.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpaudit_generators.published import recipes
from dpaudit_generators.published.mechanism import SwitchedPateGan
from dpaudit_generators.published.recipes import Recipes
from dpaudit_generators.published.switches import Switch


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
    """The Alan Turing Institute's: `original` with other mistakes, and public bounds.

    Fields are those of `SwitchedPateGan`.
    """

    iterations: int = 100

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


@dataclass(frozen=True, kw_only=True)
class Updated(SwitchedPateGan):
    """The authors' second: logistic teachers all trained on the last part, hardly any noise.

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
    """The synthcity library's: records dealt anew, mixtures fitted on them, free queries.

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
    """Borealis AI's: small networks, contiguous parts, an accountant that lacks a logarithm.

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
    """OpenDP's: public bounds, contiguous parts, k from the number of records.

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
