"""Controls of an audit of many records: one leaks nothing, one leaks every included record."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpaudit.auditing.controls import (
    BEYOND_CHANCE,
    CONFIDENCE,
    judge,
    unfinished,
)
from dpaudit.auditing.records.attack import RecordsEvaluation
from dpaudit.auditing.records.settings import ManyRecords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.game.target import copies_of
from dpaudit.game.trial import Role
from dpaudit.model.choices import Multiplicity
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Generator, Model
from dpaudit.results.record import ControlOutcome

MOST_MODELS = 60
"""Of a control; it has no more than the audit."""


@dataclass(frozen=True, kw_only=True)
class CopiesRecords:
    """The positive control: releases the audited records that it saw among random rows.

    Attributes:
        schema: The public schema.
        records: The audited records, a canonical table of all their rows.
        null: Draws the random rows.
    """

    schema: Schema
    records: pd.DataFrame
    null: Generator

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> _Copies:
        """Remembers which of the records are in the table."""
        table = self.schema.canonical(data)
        unit = self.schema.unit
        seen = (
            [
                bool(copies_of(self.records.iloc[[row]].reset_index(drop=True), table, self.schema))
                for row in range(len(self.records))
            ]
            if unit is None
            else self.records[unit.column].isin(table[unit.column])
        )
        return _Copies(
            schema=self.schema,
            records=self.records[seen].reset_index(drop=True),
            every=len(self.records),
            model=self.null.fit(data, seed=seed),
        )


@dataclass(frozen=True, kw_only=True)
class _Copies:
    """The records seen, and the model that draws the other rows."""

    schema: Schema
    records: pd.DataFrame
    every: int
    model: Model

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` rows; rows of records seen share half of them equally, at least 1 each."""
        table = self.schema.canonical(self.model.sample(n, seed=seed))
        each = max(1, n // (2 * self.every))
        copies = self.records.iloc[np.repeat(np.arange(len(self.records)), each)][:n]
        return pd.concat([copies, table.iloc[len(copies) :]], ignore_index=True)


def control_settings(settings: AuditSettings[ManyRecords]) -> AuditSettings[ManyRecords]:
    """The settings of either control: no more models than the audit has, one selected attack.

    The confidence is the strictest at which a perfect separation of so few coins proves a leak.
    """
    models = min(settings.game.shadow_models, MOST_MODELS)
    small = settings.with_game(shadow_models=models, multiplicity=Multiplicity.SELECT)
    by_chance = 0.5 ** (small.game.scored * settings.game.records)
    return replace(small, confidence=min(CONFIDENCE, 1 - BEYOND_CHANCE * by_chance))


def judged(role: Role, found: RecordsEvaluation | None, *, highest: float) -> ControlOutcome:
    """Whether a control ended as it must.

    Args:
        role: Which control.
        found: The result of its attack; None if too few of its models finished.
        highest: The largest epsilon that it could prove.

    Returns:
        The result.
    """
    if found is None:
        return unfinished(role, "too few of its models finished", highest=highest)
    seen = f"{int(found.right.sum())} of {int(found.made.sum())} guesses were right"
    return judge(
        role,
        found.proved,
        auc=found.auc,
        highest=highest,
        hidden=f"a generator that ignores its data revealed no coin: {seen}",
        found=f"a generator that ignores its data revealed coins ({seen}): the game leaks",
        caught=f"a generator that copies the records it saw was caught: {seen}",
        missed="a generator that copies the records it saw was not caught ({bound}): "
        f"{seen}; these attacks cannot see these records",
    )
