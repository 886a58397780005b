"""The tables of the study: which file, which label, which split, and what was published of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd
from sklearn.model_selection import train_test_split

from dpaudit.errors import DataError
from dpaudit.model.schema import Schema
from dpaudit.usefulness.experiment import Experiment
from dpaudit.usefulness.run import UtilitySettings, prepare
from dpaudit.usefulness.task import CLASSIFIERS
from reports.cervical import FRACTIONAL, NEAR_CONSTANT
from reports.data import sha256, table_file

SPLIT_SEED = 13
"""Of the published split: a fifth for tests, the label's classes in proportion."""
MOST_ROWS = 2000
"""Synthetic rows that classifiers learn from, at most: the dearest classifiers take seconds."""
EVERY_ROW = 1_000_000
"""As many synthetic rows as the tables have real ones, which is what the published runs had."""
WHOLE = (
    *("pate-gan-marginals 1", "marginals 1"),
    *("pate-gan-marginals-16-bins 1", "marginals-16-bins 1"),
)
"""Generators that are measured with as many rows: minutes a table."""


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """One table.

    Attributes:
        file: Its file in the folder of public tables.
        sha256: Of the CSV; None for one of the tables that all studies share.
        origin: Where an outsider finds it.
        label: The column that is predicted.
        positive: Values of that column that become 1; empty for a column that is 0 or 1 already.
        published: Mean over classifiers of the best AUROC of 25 tables at epsilon 1.
        published_real: Mean AUROC in setting A.
        repeats: Models of each generator.
        libraries: Methods of installed libraries that take part.
        rows: Synthetic rows that classifiers learn from, at most as many as real ones.
        sources: Generators that are measured, and their epsilons; empty for every one.
    """

    file: str
    sha256: str | None
    origin: str
    label: str
    positive: tuple[object, ...] = ()
    published: Mapping[str, float] = field(default_factory=dict)
    published_real: float | None = None
    repeats: int = 3
    libraries: tuple[str, ...] = ()
    rows: int = MOST_ROWS
    sources: tuple[str, ...] = ()


class _Figures(NamedTuple):
    """Published figures of the six implementations, and the paper's own for PATE-GAN."""

    original: float
    updated: float
    synthcity: float
    turing: float
    borealis: float
    smartnoise: float
    paper: float


def _published(*figures: float) -> Mapping[str, float]:
    named = _Figures(*figures)._asdict()
    named["pate-gan"] = named.pop("paper")
    return MappingProxyType(named)


_PUBLISHED: Mapping[str, StudyTable] = MappingProxyType(
    {
        "cervical": StudyTable(
            file="cervical_cancer.csv.gz",
            sha256=None,
            origin="reports/data.toml",
            label="Biopsy",
            published=_published(0.9265, 0.8739, 0.8584, 0.5, 0.9431, 0.8025, 0.9108),
            published_real=0.94,
            repeats=10,
            libraries=("smartnoise-synth:mst", "smartnoise-synth:mst-public", "dpmm:aim-small"),
        ),
        "epileptic": StudyTable(
            file="epileptic_seizure.csv.gz",
            sha256="2ae67f9761cee07bea11c389e5a6857e93951fe0fd1e463cb764eebe52b3ea24",
            origin="UCI Epileptic Seizure Recognition; the column of names dropped",
            label="y",
            positive=(1,),
            published=_published(0.6867, 0.6187, 0.7165, 0.7425, 0.673, 0.6963, 0.7681),
            published_real=0.8103,
        ),
        "isolet": StudyTable(
            file="isolet5.csv.gz",
            sha256="e14eb62addf13e4268e011929e2829e78fd21b7ebb07829ee477fd7daaf2c244",
            origin="UCI ISOLET, isolet5.data; vowels are the letters A, E, I, O, U",
            label="class",
            positive=(1, 5, 9, 15, 21),
            published=_published(0.8342, 0.5861, 0.6292, 0.5, 0.6219, 0.6152, 0.6399),
            published_real=0.9678,
        ),
        "credit": StudyTable(
            file="credit_20pct.csv.gz",
            sha256="c9f4bfefdd4306ce9f1749c5421d891b1a16c698d32636b4782f3c361e193ad6",
            origin="Credit Card Fraud Detection (ULB, Kaggle), a stratified fifth without Time",
            label="Class",
            published=_published(0.5, 0.5, 0.5172, 0.5, 0.63, 0.7358, 0.8737),
            published_real=0.8176,
        ),
        "adult": StudyTable(
            file="adult.csv.gz",
            sha256=None,
            origin="reports/data.toml",
            label="income",
            positive=(">50K",),
        ),
    }
)
_WHOLE = {
    f"{name}-whole": replace(_PUBLISHED[name], rows=EVERY_ROW, sources=WHOLE)
    for name in ("epileptic", "credit")
}
STUDY_TABLES: Mapping[str, StudyTable] = MappingProxyType({**_PUBLISHED, **_WHOLE})
_SHARED = {"cervical": "cervical-cancer", "adult": "adult"}


@cache
def experiment(name: str, folder: Path | None, rows: int) -> Experiment:
    """The experiment on one table: the published split, with the training rows' range as bounds.

    Args:
        name: Which table.
        folder: Folder of the public tables; None if none was named.
        rows: Synthetic rows, at most.

    Returns:
        The experiment, in which nothing was trained yet.

    Raises:
        DataError: If the table is not there, or is another one.
        MissingExtraError: If one of the twelve classifiers is not installed: means over fewer could
            not be compared.
    """
    table, of = _read(name, folder), STUDY_TABLES[name]
    train, test = train_test_split(
        table, test_size=0.2, stratify=table[of.label], random_state=SPLIT_SEED
    )
    varying = [name for name in table if train[name].nunique(dropna=False) > 1]
    schema = Schema.infer(train[varying], label=of.label)
    return prepare(
        schema.canonical(train),
        schema,
        UtilitySettings(rows=min(rows, len(train)), classifiers=tuple(CLASSIFIERS)),
        test=schema.canonical(test),
    )


def _read(name: str, folder: Path | None) -> pd.DataFrame:
    of = STUDY_TABLES[name]
    table = pd.read_csv(_path(name, folder), na_values="?", skipinitialspace=True)
    if name == "cervical":
        table = table.drop(columns=NEAR_CONSTANT).apply(pd.to_numeric)
        table = table.fillna(table.mode().iloc[0])
        table = table.astype({one: float if one in FRACTIONAL else int for one in table})
    if of.positive:
        table[of.label] = table[of.label].isin(of.positive).astype(int)
    return table


def _path(name: str, folder: Path | None) -> Path:
    if name in _SHARED:
        return table_file(_SHARED[name], folder)
    of = STUDY_TABLES[name]
    if folder is None:
        raise DataError(f"name the folder of {of.file} with --data or DPAUDIT_DATA")
    path = folder / of.file
    try:
        found = sha256(gzip.decompress(path.read_bytes()))
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error}); it is {of.origin}") from None
    if found != of.sha256:
        raise DataError(f"{path} has SHA-256 {found}, not {of.sha256}; it is {of.origin}")
    return path
