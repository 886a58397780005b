"""PATE on UCI Adult: random-forest teachers, 250 parts, 500 queries, and what the labels cost.

Usage: python -m reports.pate_adult.run   (about a minute on one core)

Writes results/labels.json. Appendix C of Papernot et al. 2017 is followed where the table at hand
allows it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from dpaudit.account import (
    LabelBudget,
    Mechanism,
    VoteTable,
    calibrate,
    epsilon_from_moments,
)
from dpaudit.account.moments import data_independent_moments, exact_moments, pate_moments
from dpaudit.account.noisy_max import LaplaceNoisyMax
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import LabelRelease, Pate
from reports.command import StudyParser, start, write_json
from reports.data import table_file
from reports.methods.smooth_sensitivity import SmoothRelease, sanitised_epsilon

TABLES = ("adult",)
SEED = 2017
TEACHERS = 250
QUERIES = 500
SCALE = 20.0
"""Of the Laplace noise on each count, 1/gamma: the paper's gamma is 0.05."""
DELTA = 1e-5
HELD_OUT = 6000
"""Public records: queries first, the rest for testing."""
PAPER_EPSILON = 2.66
CLASSES = ("<=50K", ">50K")
DROPPED = "fnlwgt"
"""The census weight: the paper has 13 features, the file 14."""

Votes = npt.NDArray[np.int64]


class Size(NamedTuple):
    """How large the study is.

    Attributes:
        trees: Trees of each forest.
        repeats: Draws of the noise, each with a student of its own.
    """

    trees: int
    repeats: int


FULL = Size(trees=100, repeats=20)
"""scikit-learn's default forests, as in the paper."""
QUICK = Size(trees=5, repeats=2)


class Adult(NamedTuple):
    """Features [n, 13] and labels [n], private, asked and for testing."""

    private: tuple[Any, Any]
    asked: tuple[Any, Any]
    test: tuple[Any, Any]


def load(path: Path) -> Adult:
    """Splits the table at random; categories become integers in alphabetical order."""
    table = pd.read_csv(path).drop(columns=DROPPED)
    labels = table.pop("income").to_numpy(dtype=object)
    for name in table.columns[[kind.kind not in "iuf" for kind in table.dtypes]]:
        table[name] = table[name].astype("category").cat.codes
    rows = table.to_numpy(dtype=np.float64)
    order = rng_of(SEED, "split").permutation(len(rows))
    held, private = order[:HELD_OUT], order[HELD_OUT:]
    asked, test = held[:QUERIES], held[QUERIES:]
    return Adult(*((rows[part], labels[part]) for part in (private, asked, test)))


def forest(seed: int, trees: int) -> RandomForestClassifier:
    """The paper's model: scikit-learn's defaults but for the number of trees."""
    return RandomForestClassifier(n_estimators=trees, random_state=seed)


def student_accuracy(labels: list[Any], adult: Adult, size: Size) -> dict[str, float]:
    """Mean and standard deviation of the test accuracy of one student for each draw of labels."""
    found = []
    for repeat, drawn in enumerate(labels):
        student = forest(repeat, size.trees).fit(adult.asked[0], drawn)
        found.append(float(np.mean(student.predict(adult.test[0]) == adult.test[1])))
    return {"mean": float(np.mean(found)), "sd": float(np.std(found, ddof=1))}


def released(table: VoteTable, votes: Votes, adult: Adult, size: Size) -> dict[str, Any]:
    """Labels and students of a public table."""
    names = np.array(CLASSES, dtype=object)
    draws = []
    for repeat in range(size.repeats):
        release = LabelRelease(table, LabelBudget(QUERIES), seed=repeat)
        draws.append(names[release.release(votes[:, 1])])
    right = [float(np.mean(drawn == adult.asked[1])) for drawn in draws]
    majority = names[(2 * votes[:, 1] > TEACHERS).astype(int)]
    return {
        "labels_as_majority": float(np.mean([np.mean(drawn == majority) for drawn in draws])),
        "label_accuracy": float(np.mean(right)),
        "student_accuracy": student_accuracy(draws, adult, size),
    }


def paper_account(votes: Votes) -> dict[str, Any]:
    """The moments accountant on the votes cast: a function of private data, not releasable."""
    table = VoteTable.noisy_max(TEACHERS, SCALE)
    answers: dict[str, Any] = {}
    for most in (8, 100):
        moments = np.arange(1.0, most + 1.0)
        curves = {
            "paper": pate_moments(votes, gamma=1 / SCALE, moments=moments).sum(axis=0),
            "exact": exact_moments(table, votes[:, 1], moments=moments).sum(axis=0),
            "theorem_2": QUERIES * data_independent_moments(gamma=1 / SCALE, moments=moments),
        }
        answers[f"moments_to_{most}"] = {
            name: epsilon_from_moments(moments, alpha, delta=DELTA)
            for name, alpha in curves.items()
        }
    return answers


def sanitised(votes: Votes) -> dict[str, float]:
    """The smallest data-dependent epsilon that smooth sensitivity could publish, over a grid.

    Optimistic: a release would have to fix the grid's point before anyone has seen the votes.
    """
    table = VoteTable.noisy_max(TEACHERS, SCALE)
    points = [
        SmoothRelease(order=order, beta=slope / order, sigma=sigma)
        for order in (4.0, 6.0, 8.0, 12.0, 16.0, 24.0)
        for slope in (0.05, 0.1, 0.2, 0.3, 0.4)
        for sigma in (2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
    ]
    costs = [
        sanitised_epsilon(table, votes[:, 1], delta=DELTA, release=point, noise=0.0)
        for point in points
    ]
    best = points[int(np.argmin(costs))]
    return {
        "epsilon": float(min(costs)),
        "order": best.order,
        "beta": best.beta,
        "sigma": best.sigma,
    }


def study(path: Path, size: Size) -> dict[str, Any]:
    """Every number.

    Args:
        path: Adult, as `reports.data` has it.
        size: How large the study is.

    Returns:
        The numbers by name.
    """
    started = time.perf_counter()
    adult = load(path)
    names = np.array(CLASSES, dtype=object)
    aggregation = LaplaceNoisyMax(teachers=TEACHERS, classes=2, scale=SCALE)
    pate = Pate(
        teacher=forest(0, size.trees),
        classes=CLASSES,
        aggregation=aggregation,
        labels=QUERIES,
        delta=DELTA,
    )
    ensemble = pate.fit(*adult.private, seed=SEED)
    votes = ensemble.votes(adult.asked[0])
    majority = names[(2 * votes[:, 1] > TEACHERS).astype(int)]
    shares = votes.max(axis=1) / TEACHERS

    full = forest(0, size.trees).fit(*adult.private)
    laplace = VoteTable.noisy_max(TEACHERS, SCALE).quantised()
    cost = pate.claim.epsilon
    found: dict[str, Any] = {
        "records": {part: len(rows) for part, (rows, _) in zip(adult._fields, adult, strict=True)},
        "consensus": {
            "mean": float(shares.mean()),
            "median": float(np.median(shares)),
            "below_60_percent": float(np.mean(shares < 0.6)),
            "unanimous": float(np.mean(shares == 1.0)),
        },
        "accuracy": {
            "most_frequent_class": float(np.mean(adult.test[1] == CLASSES[0])),
            "forest_on_all_private_records": float(
                np.mean(full.predict(adult.test[0]) == adult.test[1])
            ),
            "majority_on_queries": float(np.mean(majority == adult.asked[1])),
            "student_on_noiseless_majority": student_accuracy(
                [majority] * size.repeats, adult, size
            ),
            "student_on_true_labels": student_accuracy(
                [adult.asked[1]] * size.repeats, adult, size
            ),
        },
        "laplace": {
            "scale": SCALE,
            "claim": pate.claim.source,
            "epsilon": cost,
            "epsilon_tight": laplace.epsilon(QUERIES, delta=DELTA, method="tight"),
            "epsilon_pure": 2 * QUERIES / SCALE,
            "data_dependent": paper_account(votes),
            "sanitised": sanitised(votes),
            **released(laplace, votes, adult, size),
        },
    }
    budgets = {
        "gaussian_at_equal_epsilon": cost,
        "gaussian_at_2.66": PAPER_EPSILON,
        "gaussian_at_1": 1.0,
    }
    for name, epsilon in budgets.items():
        plan = calibrate(
            epsilon=epsilon, delta=DELTA, k=TEACHERS, labels=QUERIES, mechanism=Mechanism.GAUSSIAN
        )
        found[name] = {
            "scale": plan.scale,
            "epsilon": plan.table.epsilon(QUERIES, delta=DELTA),
            **released(plan.table, votes, adult, size),
        }
    # The way a user takes: one release, one student, the budget spent once.
    once = ensemble.student(forest(0, size.trees), adult.asked[0])
    found["one_run_of_pate"] = {
        "student_accuracy": float(np.mean(once.predict(adult.test[0]) == adult.test[1])),
        "labels_left": ensemble.left,
    }
    print(f"{time.perf_counter() - started:.0f} s")
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Runs the study and writes it."""
    parser = StudyParser(__file__, __doc__, tables=TABLES)
    run = parser.run_of(parser.parse_args(given))
    found = study(table_file("adult", run.data), QUICK if run.quick else FULL)
    write_json(run.out / "labels.json", found, indent=2)


if __name__ == "__main__":
    start(main)
