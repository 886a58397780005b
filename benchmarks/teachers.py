"""What teachers add to noisy marginals: scores of classifiers trained on synthetic tables.

Usage: python benchmarks/teachers.py TABLE LABEL [--positive VALUE ...] [--epsilon E] [--seeds N]
(a few minutes)

TABLE is a CSV of numbers; a record is positive if its label is one of the values (default: 1).
Gaps are filled with each column's mode, constant columns are dropped. A fifth of the records,
stratified, is kept for testing; the bounds are those of the rest, which stand for public ones. Each
generator makes 2000 records from each seed; a logistic regression and a random forest are trained
on them, and their areas under the ROC curve on the real test records are given as mean and standard
error over the seeds.

`free labels` is no private generator: teachers label 4000 candidates for nothing, without noise. It
bounds what labels could add, whatever they cost.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpaudit.account import LabelPlan
from dpaudit.model.choices import Mechanism
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals
from dpaudit_generators.pate_gan.model import sample_weighted
from dpaudit_generators.toys import NullGenerator

LABEL: Final = "label"
ROWS: Final = 2000
Maker = Callable[[pd.DataFrame, int], pd.DataFrame]


class FreeLabels(PateGanMarginals):
    """Has labels that cost nothing and have no noise: its claim does not hold."""

    @cached_property
    def plan(self) -> LabelPlan:
        """4000 labels that say what the majority says."""
        return LabelPlan(Mechanism.GAUSSIAN, self.teachers, 4000, 1e-6, 0.0, self.delta)


def prepared(path: Path, label: str, positive: list[float]) -> pd.DataFrame:
    """The table with numbers alone and a label of 0 and 1."""
    table = pd.read_csv(path, na_values="?").select_dtypes("number")
    table = table.fillna(table.mode().iloc[0]).astype(float)
    wanted = table.pop(label).isin(positive)
    return table.assign(**{LABEL: wanted.astype(int)})


def makers(schema: Schema, epsilon: float) -> dict[str, Maker]:
    """Makes a synthetic table of a table and a seed, by name."""
    gan = PateGanMarginals(schema=schema, epsilon=epsilon)
    generators = {
        "noise": NullGenerator(schema=schema),
        "pate-gan": PateGan(schema=schema, epsilon=epsilon),
        "marginals alone": Marginals(schema=schema, epsilon=epsilon),
        "deviations alone": Marginals(schema=schema, epsilon=epsilon, tree=Structure.DEVIATIONS),
        "pate-gan-marginals": gan,
        "pate-gan-marginals, vote_share=.5": PateGanMarginals(
            schema=schema, epsilon=epsilon, vote_share=0.5
        ),
        "pate-gan-marginals, free labels": FreeLabels(schema=schema, epsilon=epsilon, rounds=40),
    }

    def maker(generator: object) -> Maker:
        return lambda data, seed: generator.fit(data, seed=seed).sample(ROWS, seed=seed)  # type: ignore[attr-defined, no-any-return]

    def unweighted(data: pd.DataFrame, seed: int) -> pd.DataFrame:
        """From the same candidates as with the student, who finds all of them alike."""
        start = gan.fit(data, seed=seed).start
        assert start is not None
        values = sample_weighted(start, lambda one: np.zeros(len(one)), ROWS, seed=seed)
        return table_of(values, schema)

    return {name: maker(one) for name, one in generators.items()} | {
        "pate-gan-marginals, student ignored": unweighted
    }


def scores(synthetic: pd.DataFrame, test: pd.DataFrame, seed: int) -> list[float]:
    """Areas under the curve of a logistic regression and a forest; .5 of a single class."""
    rows, labels = synthetic.drop(columns=LABEL), synthetic[LABEL].astype(int)
    if labels.nunique() < 2:
        return [0.5, 0.5]
    models = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=100)),
        RandomForestClassifier(50, random_state=seed),
    )
    real = test.drop(columns=LABEL)
    return [
        float(roc_auc_score(test[LABEL], model.fit(rows, labels).predict_proba(real)[:, 1]))
        for model in models
    ]


def main() -> None:
    """Prints one line for each generator."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("label")
    parser.add_argument("--positive", type=float, nargs="+", default=[1.0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    torch.set_num_threads(1)
    table = prepared(given.table, given.label, given.positive)
    train, test = train_test_split(table, test_size=0.2, stratify=table[LABEL], random_state=13)
    train = train.loc[:, train.nunique() > 1]
    schema = Schema.infer(train, label=LABEL)
    data, test = schema.canonical(train), test[train.columns]
    print(f"{len(data)} records, {int(data[LABEL].sum())} positive; epsilon {given.epsilon:g}")
    for name, made in makers(schema, given.epsilon).items():
        found = np.array([scores(made(data, s), test, s) for s in range(given.seeds)])
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
        both = ", ".join(f"{m:.3f} ({e:.3f})" for m, e in zip(mean, error, strict=True))
        print(f"{name:30} {both}", flush=True)


if __name__ == "__main__":
    main()
