"""Noisy marginals along a tree as a generator: settings, claim, and how models are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.account.conversion import concentrated_rho, gaussian_mu
from dpaudit.errors import SettingsError
from dpaudit.model.claim import Claim, ConcentratedClaim, GaussianClaim, PrivacyClaim
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import FloatArray, IntArray, Job
from dpaudit_generators.batches import Domain, TracedGenerator, claim_of_model, record_bounds
from dpaudit_generators.marginals.release import (
    FEW,
    ROOT,
    AdaptiveDeviations,
    ChosenTree,
    DeviationTree,
    PublicTree,
    Structure,
    TreeBatch,
    TreeModel,
    TreeTables,
    joint_counts,
    label_star,
    with_more_bins,
)

if TYPE_CHECKING:
    from dpaudit.plugins.recorder import Recorder

MOST_CELLS: Final = 4096
"""Most cells of all columns for a chosen tree, because each two cells are counted together."""
_EPSILON: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class Marginals(TracedGenerator[TreeModel]):
    """Noisy counts of pairs of columns, and records drawn along a tree of them; an exact claim.

    Which pairs is public (`tree=label`, `deviations`, `independent`) or chosen with noise
    (`chosen`): see `PublicTree`, `DeviationTree` and `ChosenTree` for the proofs. Cells are public:
    categories, and equal bins over the bounds of the schema. The number of records is used only
    through noisy counts. All else, from clipping counts at 0 to drawing records, is
    post-processing.

    The budget is stated in one currency, which is also that of the claim. For a public tree the
    mechanism is Gaussian, and for its counts every currency is exact. A chosen tree is claimed in
    rho, or in the epsilon and delta that follow.

    Attributes:
        schema: The public schema.
        epsilon: Epsilon of the budget; 1 if no other budget is given.
        delta: Delta of the budget.
        mu: Budget in Gaussian DP, instead of epsilon and delta; for a public tree.
        rho: Budget in zCDP, instead of epsilon and delta.
        tree: Which pairs are counted: "label" (every column with the label), "deviations" (the
            same, as deviations of each class), "chosen", or "independent" (none). "auto" is
            "label" if the schema names one, else "chosen".
        bins: Equal bins over the bounds of a numeric column. If not given, 4; with
            `tree=deviations` 16 if noisy counts of the classes show that there are many records.

    Raises:
        ClaimError: If the budget is not positive.
        SettingsError: If a setting is out of range, two budgets are given, or `mu` for a chosen
            tree.
    """

    schema: Schema
    epsilon: float | None = None
    delta: float = 1e-5
    mu: float | None = None
    rho: float | None = None
    tree: Structure = Structure.AUTO
    bins: int | None = None

    models_at_once: ClassVar[int] = 256

    def __post_init__(self) -> None:
        if self.tree not in list(Structure):
            raise SettingsError(f"tree is {self.tree!r}: use {', '.join(Structure)}")
        object.__setattr__(self, "tree", Structure(self.tree))  # text from a command line
        if self.bins is not None:
            check_number("bins", self.bins, AT_LEAST_1, whole=True)
        if sum(stated is not None for stated in (self.epsilon, self.mu, self.rho)) > 1:
            raise SettingsError("the budget is given twice: keep one of epsilon, mu and rho")
        of_label = self.tree in (Structure.LABEL, Structure.DEVIATIONS)
        if of_label and self.schema.label is None:
            raise SettingsError(
                f'tree={self.tree} needs a schema that names a label column ("label": NAME): name '
                "one, or use tree=chosen"
            )
        if self.tree is Structure.DEVIATIONS and len(self.schema.columns) < 2:
            raise SettingsError(
                "tree=deviations needs a column in addition to the label: use tree=label"
            )
        if self.structure is Structure.CHOSEN and self.mu is not None:
            raise SettingsError("mu is for a public tree: give rho, or epsilon, for tree=chosen")
        _ = self.claim  # validates
        _ = self.mechanism

    @property
    def structure(self) -> Structure:
        """Which pairs are counted, once "auto" is decided by the schema."""
        if self.tree is not Structure.AUTO:
            return self.tree
        if self.schema.label is not None:
            return Structure.LABEL
        return Structure.CHOSEN if len(self.schema.columns) > 1 else Structure.INDEPENDENT

    @cached_property
    def mechanism(self) -> PublicTree | DeviationTree | AdaptiveDeviations | ChosenTree:
        """What is released, with noise that spends the budget.

        Raises:
            SettingsError: If the columns have too many cells for a tree chosen among all pairs.
        """
        domain = Domain(self.schema, FEW if self.bins is None else self.bins)
        names = self.schema.names
        root = names.index(self.schema.label) if self.schema.label else 0
        if self.structure is Structure.CHOSEN:
            cells = int(domain.sizes.sum())
            if cells > MOST_CELLS:
                raise SettingsError(
                    f"the columns have {cells} cells together, and tree=chosen compares each two: "
                    f"at most {MOST_CELLS}; use fewer bins, or tree=label"
                )
            return ChosenTree(domain, self._rho, root)
        if self.structure is Structure.DEVIATIONS:
            tree = DeviationTree(domain, self._mu, root)
            return tree if self.bins is not None else with_more_bins(tree)
        star = self.structure is Structure.LABEL
        parents = label_star(len(names), root) if star else (ROOT,) * len(names)
        return PublicTree(TreeTables(domain, parents), self._mu)

    @cached_property
    def claim(self) -> Claim:
        """The budget, for adding or removing one record."""
        if self.structure is Structure.CHOSEN:
            source = (
                "proved: zCDP of noisy counts and of a tree chosen by the exponential mechanism"
            )
        elif self.structure is Structure.DEVIATIONS:
            source = "proved: Gaussian noise on counts of columns and on deviations of each class"
        else:
            source = f"exact: Gaussian noise on the counts of {len(self.schema.columns)} tables"
        if self.mu is not None:
            return GaussianClaim(mu=self.mu, source=source)
        if self.rho is not None:
            return ConcentratedClaim(rho=self.rho, source=source)
        epsilon = _EPSILON if self.epsilon is None else self.epsilon
        return PrivacyClaim(epsilon=epsilon, delta=self.delta, source=source)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy counts."""
        return self.mechanism.names

    def released_effect(self, record: pd.DataFrame) -> FloatArray:
        """How much a record raises each noisy count, as far as the schema alone determines it.

        Args:
            record: A table of one row.
        """
        return self.mechanism.effect(_Counted(values_of_table(record, self.schema)))

    def train(self, data: pd.DataFrame, jobs: Sequence[Job]) -> TreeBatch:
        """As `fit_many`, on a table whose columns are the schema's."""
        mechanism = self.mechanism
        counted = _Counted(values_of_table(data, self.schema))
        models = []
        for job in jobs:
            release = mechanism.of(_Kept(counted, list(job.dropped_rows)), seed=job.seed)
            claim = claim_of_model(self.claim, seed=job.seed)
            models.append(TreeModel(**release._asdict(), claim=claim))
        return TreeBatch(tuple(models))

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's: records the bounds in use."""
        record_bounds(self.schema, recorder)
        return self.fit(data, seed=seed).sample(n_rows, seed=seed)

    @property
    def _budget(self) -> dict[str, float]:
        epsilon = _EPSILON if self.epsilon is None else self.epsilon
        return {"epsilon": epsilon, "delta": self.delta}

    @property
    def _mu(self) -> float:
        if self.mu is not None:
            return self.mu
        return gaussian_mu(**self._budget) if self.rho is None else float(np.sqrt(2.0 * self.rho))

    @property
    def _rho(self) -> float:
        return concentrated_rho(**self._budget) if self.rho is None else self.rho


@dataclass(frozen=True, eq=False)
class _Counted:
    """Records by their cells; counts that many models need are computed once.

    Attributes:
        values: Values [n, d], as `dpaudit.model.encoding.values_of_table` gives them.
    """

    values: FloatArray
    _cells: dict[Domain, IntArray] = field(default_factory=dict, init=False)
    _counts: dict[TreeTables, IntArray] = field(default_factory=dict, init=False)
    _joint: dict[Domain, FloatArray] = field(default_factory=dict, init=False)

    def cells(self, domain: Domain) -> IntArray:
        if domain not in self._cells:
            self._cells[domain] = domain.cells(self.values)
        return self._cells[domain]

    def counts(self, tables: TreeTables) -> IntArray:
        if tables not in self._counts:
            self._counts[tables] = tables.counts(self.cells(tables.domain))
        return self._counts[tables]

    def joint(self, domain: Domain) -> FloatArray:
        if domain not in self._joint:
            self._joint[domain] = joint_counts(domain, self.cells(domain))
        return self._joint[domain]


@dataclass(frozen=True, eq=False)
class _Kept:
    """The records of one training: all but those that it lacks.

    Attributes:
        everything: All records.
        dropped: Positions of the records that it lacks.
    """

    everything: _Counted
    dropped: list[int]

    def cells(self, domain: Domain) -> IntArray:
        return np.delete(self.everything.cells(domain), self.dropped, axis=0)

    def counts(self, tables: TreeTables) -> IntArray:
        lacking = tables.counts(self.everything.cells(tables.domain)[self.dropped])
        return self.everything.counts(tables) - lacking

    def joint(self, domain: Domain) -> FloatArray:
        lacking = joint_counts(domain, self.everything.cells(domain)[self.dropped])
        return self.everything.joint(domain) - lacking
