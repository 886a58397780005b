"""PATE on its own: partition, teachers, noisy aggregation, student."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dpaudit.account.noisy_max import (
    ConfidentNoisyMax,
    GaussianNoisyMax,
    LaplaceNoisyMax,
)
from dpaudit.errors import BudgetError, ClaimError, DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit_generators.pate import (
    Aggregation,
    Classifier,
    Pate,
    TorchClassifier,
    fit_voter,
    labelled,
)

Rows = npt.NDArray[np.float64]
COLOURS = ("red", "green", "blue")
TEACHERS = 10


def _blobs(n: int, *, classes: tuple[str, ...] = COLOURS, seed: int = 0) -> tuple[Rows, Any]:
    """Records of well-separated classes."""
    rng = np.random.default_rng(seed)
    positions = rng.integers(len(classes), size=n)
    angle = 2.0 * math.pi * positions / len(classes)
    rows = 3.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(size=(n, 2)) * 0.5
    return rows, np.array(classes)[positions]


def _gnmax(classes: int = 3, *, scale: float = 1.5) -> GaussianNoisyMax:
    return GaussianNoisyMax(teachers=TEACHERS, classes=classes, scale=scale)


def _pate(**changed: Any) -> Pate:
    settings: dict[str, Any] = {
        "teacher": GaussianNB(),
        "classes": COLOURS,
        "aggregation": _gnmax(),
        "labels": 60,
    }
    return Pate(**(settings | changed))


class Recorder(BaseEstimator):  # type: ignore[misc]
    """Remembers its cell and one draw from numpy's global state."""

    def fit(self, rows: Rows, labels: Any) -> Recorder:
        self.seen_ = np.column_stack([rows, labels]).tolist()
        np.random.random(len(rows))  # noqa: NPY002 - what third-party classifiers do
        self.draw_ = np.random.random()  # noqa: NPY002
        return self

    def predict(self, rows: Rows) -> Any:
        return np.zeros(len(rows), dtype=int)


class Untouchable(GaussianNB):  # type: ignore[misc]
    """Fails the test that trains it."""

    def fit(self, *_: Any) -> None:
        raise AssertionError("trained on bad input")


def _cells(rows: Rows, labels: Any) -> list[Any]:
    ensemble = _pate(teacher=Recorder()).fit(rows, labels, seed=4)
    voters = ensemble._teachers
    return [voter.classifier and voter.classifier.seen_ for voter in voters]  # type: ignore[attr-defined]


# One record touches one teacher.


@pytest.mark.parametrize("records", [100, pytest.param(200, marks=pytest.mark.ci)])
def test_removing_any_record_changes_exactly_one_teachers_data(records: int) -> None:
    rows, labels = _blobs(records)
    before = _cells(rows, labels)
    assert sum(map(len, before)) == records
    for removed in range(records):
        after = _cells(np.delete(rows, removed, axis=0), np.delete(labels, removed))
        changed = [i for i in range(TEACHERS) if before[i] != after[i]]
        assert len(changed) == 1
        record = [*rows[removed], COLOURS.index(labels[removed])]
        remaining = list(before[changed[0]])
        remaining.remove(record)
        assert remaining == after[changed[0]]  # the order of the others included


def test_the_order_of_records_changes_nothing() -> None:
    rows, labels = _blobs(200)
    order = np.random.default_rng(1).permutation(200)
    assert _cells(rows[order], labels[order]) == _cells(rows, labels)
    forest = _pate(teacher=RandomForestClassifier(n_estimators=3))
    asked = _blobs(50, seed=9)[0]
    shuffled = forest.fit(rows[order], labels[order], seed=4).votes(asked)
    assert np.array_equal(forest.fit(rows, labels, seed=4).votes(asked), shuffled)


@pytest.mark.parametrize("removed", range(0, 200, 40))
def test_one_record_moves_at_most_one_vote(removed: int) -> None:
    rows, labels = _blobs(200)
    flipped = labels.copy()
    flipped[removed] = "red" if labels[removed] == "blue" else "blue"
    asked = np.random.default_rng(2).normal(size=(100, 2)) * 3.0
    forest = _pate(teacher=RandomForestClassifier(n_estimators=3))
    votes = forest.fit(rows, flipped, seed=4).votes(asked)
    without = forest.fit(
        np.delete(rows, removed, axis=0), np.delete(flipped, removed), seed=4
    ).votes(asked)
    moved = np.abs(votes - without).sum(axis=1)
    assert np.all(votes.sum(axis=1) == TEACHERS)
    assert set(moved.tolist()) <= {0, 2}


def test_a_teacher_that_uses_global_state_has_a_stream_of_its_own() -> None:
    rows, labels = _blobs(200)
    recorder = _pate(teacher=Recorder())
    before = recorder.fit(rows, labels, seed=4)._teachers
    after = recorder.fit(rows[1:], labels[1:], seed=4)._teachers
    draws = [
        [voter.classifier.draw_ for voter in voters]  # type: ignore[union-attr]
        for voters in (before, after)
    ]
    assert len(set(draws[0])) == TEACHERS
    assert sum(a != b for a, b in zip(*draws, strict=True)) <= 1


def test_every_random_setting_of_a_teacher_is_seeded_and_the_template_stays() -> None:
    template = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    rows = np.random.default_rng(0).normal(size=(20, 2))
    voter = fit_voter(template, rows, np.arange(20) % 2, seed=7)
    assert voter.classifier is not None
    assert voter.classifier.get_params()["decisiontreeclassifier__random_state"] == 7
    assert template.get_params()["decisiontreeclassifier__random_state"] is None
    assert not hasattr(template[-1], "tree_")


@pytest.mark.parametrize(("labels", "answer"), [([], 0), ([2, 2, 2], 2)])
def test_a_cell_without_two_classes_votes_a_constant(labels: list[int], answer: int) -> None:
    rows = np.zeros((len(labels), 2))
    voter = fit_voter(Untouchable(), rows, np.array(labels, dtype=np.int64), seed=1)
    assert voter.predict(np.ones((4, 2)), classes=3).tolist() == [answer] * 4


def test_empty_cells_still_vote() -> None:
    rows = np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)  # two distinct records: two cells
    ensemble = _pate().fit(rows, ["green"] * 10 + ["blue"] * 10, seed=3)
    votes = ensemble.votes(np.zeros((3, 2)))
    assert votes.sum(axis=1).tolist() == [TEACHERS] * 3
    assert votes[0, 0] >= TEACHERS - 2  # the first public class


# The whole.


def _net(classes: int = 3) -> torch.nn.Module:
    rng = torch.Generator().manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.Dropout(0.1), torch.nn.ReLU(), torch.nn.Linear(8, classes)
    )
    with torch.no_grad():
        for weights in net.parameters():
            weights.copy_(torch.randn(weights.shape, generator=rng) * 0.5)
    return net


@pytest.mark.parametrize(
    "teacher",
    [RandomForestClassifier(n_estimators=5), TorchClassifier(module=_net(), steps=60)],
    ids=["scikit-learn", "torch"],
)
@pytest.mark.parametrize(
    "aggregation",
    [
        _gnmax(),
        LaplaceNoisyMax(teachers=TEACHERS, classes=3, scale=1.0),
        ConfidentNoisyMax(answer=_gnmax(scale=1.5), threshold=6, check_scale=2.0, checks=60),
    ],
    ids=["gnmax", "laplace", "confident"],
)
def test_a_student_learns_what_the_teachers_know(
    teacher: Classifier, aggregation: Aggregation
) -> None:
    ensemble = _pate(teacher=teacher, aggregation=aggregation).fit(*_blobs(300), seed=1)
    student = ensemble.student(GaussianNB(), _blobs(60, seed=2)[0])
    rows, labels = _blobs(300, seed=3)
    assert np.mean(student.predict(rows) == labels) > 0.95
    if not isinstance(aggregation, ConfidentNoisyMax):
        assert ensemble.left == 0
        with pytest.raises(BudgetError):
            ensemble.label(rows[:1])


def test_two_classes_and_a_torch_student() -> None:
    sides = ("left", "right")
    pate = _pate(classes=sides, aggregation=_gnmax(2))
    ensemble = pate.fit(*_blobs(300, classes=sides), seed=1)
    answers = ensemble.label(_blobs(20, classes=sides, seed=2)[0])
    assert set(answers.labels.tolist()) <= set(sides)
    net = TorchClassifier(module=_net(2), steps=50)
    student = ensemble.student(net, _blobs(40, classes=sides, seed=4)[0])
    rows, labels = _blobs(300, classes=sides, seed=3)
    assert np.mean(student.predict(rows) == labels) > 0.95


def test_noise_that_drowns_the_votes_leaves_no_signal() -> None:
    ensemble = _pate(aggregation=_gnmax(scale=1e4), labels=600).fit(*_blobs(300), seed=1)
    rows, labels = _blobs(600, seed=3)
    known = np.array(COLOURS)[ensemble.votes(rows).argmax(axis=1)]
    assert np.mean(known == labels) > 0.95
    right = np.mean(ensemble.label(rows).labels == labels)
    assert abs(right - 1 / 3) < 5 * math.sqrt(2 / 9 / 600)


def test_a_seed_repeats_everything_and_no_seed_does_not() -> None:
    pate = _pate(teacher=RandomForestClassifier(n_estimators=2), aggregation=_gnmax(scale=20.0))
    asked = _blobs(60, seed=2)[0]
    drawn = [
        pate.fit(*_blobs(200), seed=seed).label(asked).labels.tolist()
        for seed in (1, 1, 2, None, None)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert drawn[3] != drawn[4]


def test_torch_teachers_repeat_and_leave_global_state_and_module_alone() -> None:
    net, state = _net(), torch.random.get_rng_state()
    weights = [weight.clone() for weight in net.parameters()]
    template = TorchClassifier(module=net, steps=5)
    rows, _ = _blobs(50)
    positions = np.arange(50) % 3
    voters = [fit_voter(template, rows, positions, seed=seed) for seed in (1, 1, 2)]
    logits = [
        voter.classifier.module_(torch.ones(1, 2)).tolist()  # type: ignore[union-attr]
        for voter in voters
    ]
    assert logits[0] == logits[1] != logits[2]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(*pair) for pair in zip(weights, net.parameters(), strict=True))


def test_claims_are_the_accountants_and_say_where_the_noise_is_from() -> None:
    pate = _pate()
    assert pate.claim == _gnmax().claim(60, delta=1e-5)
    assert pate.fit(*_blobs(100), seed=None).claim == pate.claim
    seeded = pate.fit(*_blobs(100), seed=1)
    assert seeded.claim.epsilon == pate.claim.epsilon
    assert "for audits only" in seeded.claim.source
    assert seeded.student(GaussianNB(), _blobs(5)[0]).claim == seeded.claim


# Bad input.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows, labels: (rows[:9], labels[:9]), "9 rows for 10 teachers"),
        (lambda rows, labels: (rows, ["red"] * len(rows)), "of one class"),
        (lambda rows, labels: (rows, [*labels[:-1], "pink"]), "row 99 is not in the list"),
        (lambda rows, labels: (rows, [*labels[:-1], None]), "row 99 is not in the list"),
        (lambda rows, labels: (rows, labels[:-1]), "100 rows and 99 labels"),
        (lambda rows, labels: (rows[:, 0], labels), "give a matrix"),
        (lambda rows, labels: (rows.astype(str) + "x", labels), "not all numbers"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_before_training(
    change: Callable[[Rows, Any], tuple[Any, Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        _pate(teacher=Untouchable()).fit(*change(*_blobs(100)), seed=1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": ("red", "green")}, "2 classes are listed"),
        ({"classes": ("red", "green", "red")}, "listed twice"),
        ({"labels": 0}, "labels`? is 0"),
        ({"teacher": GaussianNB}, "pass an instance"),
        ({"teacher": torch.nn.Linear(2, 3)}, "wrap a torch module"),
    ],
)
def test_settings_that_contradict_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        _pate(**changed)


def test_gaussian_noise_at_delta_zero_is_refused() -> None:
    with pytest.raises(ClaimError, match="delta 0"):
        _pate(delta=0.0)


def test_what_does_not_classify_is_refused() -> None:
    ensemble = _pate(teacher=LinearRegression()).fit(*_blobs(100), seed=1)
    with pytest.raises(SettingsError, match="not a regressor"):
        ensemble.label(_blobs(5)[0])
    fitted = _pate().fit(*_blobs(100), seed=1)
    with pytest.raises(SettingsError, match="not a scikit-learn classifier"):
        fitted.student(torch.nn.Linear(2, 3), _blobs(5)[0])  # type: ignore[arg-type]
    with pytest.raises(DataError, match="have 1 columns and the teachers learned from 2"):
        fitted.label(_blobs(5)[0][:, :1])
    assert fitted.left == 60
    with pytest.raises(SettingsError, match="at least 1"):
        TorchClassifier(module=torch.nn.Linear(2, 3), steps=0)


SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="income", kind=Kind.BINARY, categories=("low", "high")),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook")),
    ),
    label="income",
)
TABLE = pd.DataFrame({"age": [17, 90], "income": ["high", "low"], "job": ["cook", "clerk"]})


def test_a_table_is_split_by_its_public_schema() -> None:
    rows, labels, classes = labelled(TABLE, SCHEMA)
    assert rows.tolist() == [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    assert labels.tolist() == ["high", "low"]
    assert classes == ("low", "high")


@pytest.mark.parametrize(
    ("table", "schema", "message"),
    [
        (TABLE.drop(columns="income"), SCHEMA, "'income' is missing"),
        (TABLE.assign(extra=1), SCHEMA, "'extra' is not in the schema"),
        (TABLE, Schema(columns=SCHEMA.columns), "names no label"),
        (TABLE, Schema(columns=SCHEMA.columns, label="age"), "'age' cannot be the label"),
        (TABLE, Schema(columns=SCHEMA.columns[1:2], label="income"), "cannot be the label"),
        (TABLE.assign(income="medium"), SCHEMA, "does not fit"),
    ],
)
def test_tables_without_a_usable_label_are_refused(
    table: pd.DataFrame, schema: Schema, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        labelled(table, schema)
