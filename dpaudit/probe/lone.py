"""Probes of columns that are constant, or complete, but for one record."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.model.column import Column
from dpaudit.probe.insertions import Canary, followed
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Trainer


def constancy_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Makes every column but the label constant; then inserts records with one other value each."""
    constant, canaries = subject.data.astype(object), []
    for column in subject.schema.columns:
        present = subject.data[column.name].dropna()
        if column.name == subject.schema.label or present.empty:
            continue
        usual = present.mode().iloc[0]
        constant[column.name] = usual
        other = _other(column, usual)
        if other is not None:
            canaries.append(Canary(column, other))
    if not canaries:
        return NotApplicable("no column besides the label has two possible values")
    return followed(subject, trainer, subject.schema, subject.schema.canonical(constant), canaries)


def missing_follows_record(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Inserts missing values into columns that may have them, after filling those of the table."""
    may = [column for column in subject.schema.columns if column.missing]
    if not may:
        return NotApplicable("the schema allows no missing values")
    filled, canaries = subject.data.copy(), []
    for column in may:
        values = filled[column.name]
        present = values.dropna()
        if not present.empty:
            filled[column.name] = values.where(values.notna(), present.mode().iloc[0])
            canaries.append(Canary(column, np.nan))
    if not canaries:
        return NotApplicable("every column that may have missing values has no other")
    return followed(subject, trainer, subject.schema, filled, canaries)


def _other(column: Column, usual: Any) -> Any:
    """A possible value other than the usual one: the farther bound, or the first other category."""
    if column.kind.numeric:
        lower, upper = column.bounds
        return upper if upper - usual >= usual - lower else lower
    return next((other for other in column.categories if other != usual), None)
