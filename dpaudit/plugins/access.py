"""What the attacker sees: synthetic rows alone, or also disclosures of a fitted model.

Before any training, a generator declares what its models disclose; each of these is optional:

- `discloses`, a collection of names of `Disclosure`: "discriminator" if its models have
  `discriminate(rows)`, "parameters" if they have `parameters()`;
- `released_facts`, the names of the numbers that its models' `released()` returns, in their order:
  the values that its proof protects, such as noisy counts. They are the same for every table;
- `released_effect(record)`: the average increase of each of these numbers when a record, a table of
  one row, is added [r], for mechanisms where that is known before any training. If all numbers have
  noise of the same scale, the sum with these weights is the optimal attack.

The model does not disclose what its training cost, but an attacker on the same machine may see that
too (`Disclosure.COST`): the audit measures it, and generators declare nothing.

`discriminate` takes a canonical table and gives a score for each row; `parameters` gives a flat
array of public weights, whose length may depend on the table. All numbers must be finite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pandas as pd

from dpaudit.errors import RegistryError
from dpaudit.model.choices import Access
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import Attack, BoolArray, FeatureName, FloatArray, GameView, Scorer


class Disclosure(StrEnum):
    """A disclosure of a fitted model."""

    DISCRIMINATOR = "discriminator"
    """Scores of the target (of each row of a unit), then of other records, [1 + m]."""
    PARAMETERS = "parameters"
    """Public weights, flat [p]."""
    RELEASED = "released"
    """Released facts, in the order of `GameView.released_facts` [r]."""
    COST = "cost"
    """Seconds and memory that training and sampling took, in the order of `COSTS` [6]."""

    @property
    def access(self) -> Access:
        """The level at which the attacker sees it."""
        return {Disclosure.RELEASED: Access.RELEASED, Disclosure.COST: Access.TIMING}.get(
            self, Access.MODEL
        )

    @property
    def how(self) -> str:
        """What a generator must have to make this disclosure, in words."""
        return {
            Disclosure.DISCRIMINATOR: '"discriminator" in its `discloses`, and models with '
            "discriminate(rows)",
            Disclosure.PARAMETERS: '"parameters" in its `discloses`, and models with parameters()',
            Disclosure.RELEASED: "names in its `released_facts`, and models with released()",
            Disclosure.COST: "nothing: the audit measures it",
        }[self]


COSTS: Final = tuple(
    f"{quantity} of {step}"
    for step in ("training", "sampling")
    for quantity in ("wall seconds", "processor seconds", "peak memory")
)
"""Names of the numbers of `Disclosure.COST`.

Processor seconds are those of all threads and child processes. Memory is the growth of these in
bytes at its peak; 0 if the system does not show it.
"""


Disclosed: TypeAlias = Mapping[Disclosure, FloatArray]
"""The disclosures of one model."""


@runtime_checkable
class ModelAttack(Protocol):
    """An attack on what a fitted model discloses; it sees no synthetic table.

    Attributes:
        sees: The disclosure that it sees.
    """

    sees: Disclosure

    def check(self, game: GameView) -> None:
        """Raises `InputError` if this attack cannot be used in this game."""
        ...

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features, in the order of `model_features`."""
        ...

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        """Features [f] of one model.

        Args:
            disclosed: The disclosure that the attack sees, as `Disclosure` describes it; finite.
            game: What the attacker knows.
        """
        ...

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier on features [n, f] and memberships [n]."""
        ...


AnyAttack: TypeAlias = Attack | ModelAttack
"""An attack on synthetic tables, or on models."""


def access_of(attack: object) -> Access:
    """The least access that an attack needs."""
    return attack.sees.access if isinstance(attack, ModelAttack) else Access.OUTPUT


def disclosed_by(generator: object, *, name: str) -> frozenset[Disclosure]:
    """The declared disclosures of a generator's models.

    Raises:
        RegistryError: If it names something that is not a disclosure, or reading them raises.
    """
    with refusing(f"{name}: its discloses cannot be read"):
        declared = {str(name) for name in getattr(generator, "discloses", ())}
    known = {Disclosure.DISCRIMINATOR.value, Disclosure.PARAMETERS.value}
    unknown = sorted(declared - known)
    if unknown:
        raise RegistryError(
            f"{name}: its discloses names {unknown[0]!r}; use {' and '.join(sorted(known))}"
        )
    disclosures = frozenset(map(Disclosure, declared))
    has_facts = bool(released_facts(generator, name=name))
    return disclosures | {Disclosure.RELEASED} if has_facts else disclosures


def released_facts(generator: object, *, name: str) -> Sequence[str]:
    """Names of the numbers that the models of a generator release; empty if it names none.

    Raises:
        RegistryError: If reading them raises.
    """
    with refusing(f"{name}: its released_facts cannot be read"):
        return tuple(str(fact) for fact in getattr(generator, "released_facts", ()))


def released_effect(
    generator: object,
    *,
    name: str,
    facts: Sequence[str],
    target: pd.DataFrame,
    replacement: pd.DataFrame | None,
) -> FloatArray | None:
    """The declared increase of each released fact in world "in".

    Args:
        generator: The generator.
        name: Its name, for messages.
        facts: Names of the released facts that attacks see.
        target: The attacked record, or the rows of the attacked unit, whose effects add up.
        replacement: The rows in its place in world "out", if any.

    Returns:
        Differences [r]; None if the generator declares none, or no attack sees the facts.

    Raises:
        RegistryError: If it raises, or does not give a finite number for each fact.
    """
    with refusing(f"{name}: its released_effect cannot be asked"):
        method = getattr(generator, "released_effect", None)
        if method is None or not facts:
            return None
        effect = _total_effect(method, target)
        if replacement is not None:
            effect = effect - _total_effect(method, replacement)
    if effect.shape != (len(facts),) or not np.isfinite(effect).all():
        raise RegistryError(
            f"{name}: its released_effect must give {len(facts)} finite numbers, one for each of "
            f"its released_facts, it gave shape {effect.shape}"
        )
    return effect


def _total_effect(method: Callable[[pd.DataFrame], object], rows: pd.DataFrame) -> FloatArray:
    """The sum of the effects of all rows."""
    effects = [np.array(method(rows.iloc[[n]]), dtype=np.float64) for n in range(len(rows))]
    return np.asarray(sum(effects), dtype=np.float64)
