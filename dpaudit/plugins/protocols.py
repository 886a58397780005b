"""The contracts of generators and attacks.

A generator may also have any of these:

- `claim: PrivacyClaim | None`: its promise (else the caller states the claim), per row unless its
  `unit` names the column of units;
- `check(data)`: raises an `InputError` before any training if the table cannot be used;
- `seedable = False`: it draws secure noise, so trials cannot be repeated bit by bit;
- `trace(data, *, n_rows, seed, recorder)` and `exercises()`: it reports what happens in training
  (`dpaudit.plugins.recorder`);
- `fixes() -> Mapping[str, Generator]`: the same generator with one thing fixed, by a name for the
  fix. `dpaudit explain` uses them to find the thing that leaks. The `fixes` of a fixed generator
  are the remaining ones, so that all can be fixed together;
- `discloses`, `released_facts` and `released_effect(record)`: what its models disclose in addition
  to synthetic rows (`dpaudit.plugins.access`).

A fitted model may have a `claim` of its own, because the accountant's result depends on the data,
or to state how its noise was drawn. The audit compares the bound with the largest claim of a model
in either world, restated for the neighbours of the game.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import check_rows, values_of_table
from dpaudit.model.linked_tables import KEY, TABLE, LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.plugins.foreign import refusing

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


class World(StrEnum):
    """One side of the distinguishing game."""

    IN = "in"
    OUT = "out"


@runtime_checkable
class Model(Protocol):
    """A fitted generator."""

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` synthetic records; `seed=None` means the system's entropy."""
        ...


@runtime_checkable
class Generator(Protocol):
    """Anything that can be audited."""

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        """Trains on a table; `seed=None` means the system's entropy, as production needs."""
        ...


class Job(NamedTuple):
    """One training of a batch.

    Attributes:
        world: World of the model.
        index: Number of its trial.
        dropped_rows: Positions of the records that it is trained without.
        seed: Its seed; None means the system's entropy.
    """

    world: World
    index: int  # type: ignore[assignment]  # of the field's name, not of tuple.index
    dropped_rows: tuple[int, ...]
    seed: int | None


class ModelBatch(Protocol):
    """Models that were trained together, in the order of their jobs."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Model: ...

    def sample_many(self, n: int, seeds: Sequence[int | None]) -> FloatArray:
        """Values [M, n, d] of n records from each model (`dpaudit.model.encoding.values_of`).

        The records of model i are those of ``self[i].sample(n, seed=seeds[i])``.
        """
        ...


class BatchGenerator(Generator, Protocol):
    """A generator that trains many shadow models at once, each as if it were alone."""

    @property
    def models_at_once(self) -> int:
        """Number of models that it trains fastest together; the game asks for no more at a time."""
        ...

    def batch_key(self, job: Job) -> Hashable:
        """Jobs with equal keys may be trained together."""
        ...

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> ModelBatch:
        """Trains a model for each job; each is bit-identical to training alone."""
        ...


def trains_many(generator: object) -> TypeGuard[BatchGenerator]:
    """Whether a generator can train many models at once."""
    # Up to Python 3.11 `isinstance` would compute `models_at_once`, which may raise.
    return callable(getattr(generator, "fit_many", None))


def is_seedable(generator: object) -> bool:
    """Whether trainings can be repeated from their seeds, which the generator may deny.

    Raises:
        RegistryError: If reading `seedable` raises.
    """
    with refusing(f"{type(generator).__name__}: its seedable cannot be read"):
        return bool(getattr(generator, "seedable", True))


@dataclass(frozen=True, kw_only=True, eq=False)
class GameView:
    """What the attacker of a differential-privacy audit knows: everything but the bit.

    A view is equal only to itself, so that attacks may keep what they derive from it.

    Attributes:
        schema: The public schema.
        others: D' for add-remove neighbours: the table without the target; canonical dtypes.
        target: The attacked record, a table of one row; for a unit, all its rows with the unit's
            column; in a one-run game, the canaries [m].
        n_rows: Synthetic rows requested from every model, in both worlds.
        neighbours: The neighbouring relation of the game.
        released_facts: Names of the numbers that every model releases; empty unless the attacker
            sees them.
        released_effect: Average increase of each of these numbers in world "in" [r]; None if the
            generator does not declare it.

    Raises:
        SettingsError: If fewer than one synthetic row is requested, or more than fit into memory.
    """

    schema: Schema
    others: pd.DataFrame
    target: pd.DataFrame
    n_rows: int
    neighbours: Neighbours
    released_facts: tuple[str, ...] = ()
    released_effect: FloatArray | None = None

    def __post_init__(self) -> None:
        check_rows(self.n_rows, self.schema)

    @cached_property
    def target_values(self) -> FloatArray:
        """Values [m, d] of the target, as `dpaudit.model.encoding.values_of` gives them."""
        return self._read_only(self.target)

    @cached_property
    def of_tables(self) -> dict[str, GameView]:
        """The same game in each of several linked tables, each joined along its keys.

        Tables in which the target has no row are left out; a game on one table has none.
        """
        if not isinstance(self.schema, LinkedTables):
            return {}
        schemas = self.schema.joined_schemas(self.others, self.target)
        target, others = (
            self.schema.joined(frame, schemas, self.target[KEY].iloc[0])
            for frame in (self.target, self.others)
        )
        return {
            name: replace(self, schema=schemas[name], others=others[name], target=target[name])
            for name in schemas
            if (self.target[TABLE] == name).any()
        }

    def joined(self, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Splits the frame of linked tables into the tables of `of_tables`."""
        assert isinstance(self.schema, LinkedTables)
        schemas = {name: view.schema for name, view in self.of_tables.items()}
        return self.schema.joined(table, schemas, self.target[KEY].iloc[0])

    @cached_property
    def other_values(self) -> FloatArray:
        """Values [n, d] of the other records, in the same form."""
        return self._read_only(self.others)

    def _read_only(self, table: pd.DataFrame) -> FloatArray:
        """The values of a table, which attacks must not change."""
        values = values_of_table(table, self.schema)
        values.flags.writeable = False
        return values


_SHORT: Final = re.compile(r"^(?:min|max)\b|\b(?:smallest|largest)(?= in |$)")
_LONG: Final = {
    "min": "minimum",
    "max": "maximum",
    "smallest": "smallest value",
    "largest": "largest value",
}
THE_TRIAL: Final = "the trial itself"
"""Stands for a column in features about how a trial ended and what it cost."""


class FeatureName(NamedTuple):
    """The name of one number of a feature vector: what it measures, in which columns."""

    column: str
    feature: str

    def __str__(self) -> str:
        """The feature for people: "maximum (Age)", "rows equal to the target (Age & Sex)"."""
        spelled = _SHORT.sub(lambda short: _LONG[short[0]], self.feature)
        return f"{spelled} ({self.column})"


class LastBitsName(FeatureName):
    """The name of a number that the last bits of floating-point numbers decide."""


class Scorer(Protocol):
    """A trained membership classifier."""

    def __call__(self, features: FloatArray) -> FloatArray:
        """Membership scores [n] of feature vectors [n, f]; larger means "in".

        A score depends on its own vector alone, because vectors are scored in parts.
        """
        ...


class Attack(Protocol):
    """A membership inference attack on synthetic tables."""

    def check(self, game: GameView) -> None:
        """Raises `InputError` if this attack cannot be used in this game."""
        ...

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `features`."""
        ...

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Features [f] of one synthetic table in canonical form (`Schema.canonical`)."""
        ...

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier on features [n, f] and memberships [n]."""
        ...


@runtime_checkable
class BatchAttack(Attack, Protocol):
    """An attack that takes the features of many synthetic tables at once."""

    def features_many(self, values: FloatArray, game: GameView) -> FloatArray:
        """Features [M, f] of values [M, n, d], as `dpaudit.model.encoding.values_of` gives them.

        Row i equals the result of `features` for table i, up to rounding (1e-12), and is
        bit-identical whatever the other tables are.
        """
        ...


@runtime_checkable
class ReleaseAttack(BatchAttack, Protocol):
    """An attack that also sees how a table was written (`dpaudit.plugins.release`)."""

    def release_features(
        self, values: FloatArray, written: FloatArray, game: GameView
    ) -> FloatArray:
        """Features [M, f] of values [M, n, d] and of the facts [M, r] of their releases.

        The result is that of `features_many` if all facts are 0, as they are for canonical tables.
        A category that the schema does not name has the value `OTHER`.
        """
        ...
