"""The parts of PATE-GAN that its privacy proof rests on, one by one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpaudit.encoding import decode, encode, layout, width
from dpaudit.schema import Column, Kind, Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import cells
from dpaudit_generators.pate_gan.bounds import schema_of_data
from dpaudit_generators.pate_gan.minibatches import all_minibatches
from dpaudit_generators.pate_gan.networks import Adam, forward, network, torch_rng
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.training import labels_per_round

KEY = b"a key of the hash"
TEACHERS = 7
ROWS = np.random.default_rng(3).random((60, 4))

MIXED = Schema(
    columns=(
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="income", kind=Kind.CONTINUOUS, lower=-5.0, upper=1e5, missing=True),
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="pet", kind=Kind.CATEGORICAL, categories=("cat",), missing=True),
        Column(name="children", kind=Kind.INTEGER, lower=0, upper=4, missing=True),
    ),
)
NUMBERS = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="y", kind=Kind.INTEGER, lower=0, upper=9),
    )
)


def _records(rows: npt.NDArray[np.float64], teachers: int = TEACHERS) -> list[list[list[float]]]:
    return [rows[cell].tolist() for cell in cells(rows, teachers=teachers, key=KEY)]


# P2: a record goes to its teacher by a keyed hash of itself alone.


@settings(deadline=None, max_examples=30)
@given(removed=st.integers(0, len(ROWS) - 1))
def test_removing_a_record_changes_one_cell_by_that_record(removed: int) -> None:
    before, after = _records(ROWS), _records(np.delete(ROWS, removed, axis=0))
    changed = [teacher for teacher in range(TEACHERS) if before[teacher] != after[teacher]]
    assert len(changed) == 1
    cell = list(before[changed[0]])
    cell.remove(ROWS[removed].tolist())
    assert cell == after[changed[0]]  # the order of the others included


def test_the_order_of_the_table_does_not_matter() -> None:
    shuffled = np.random.default_rng(1).permutation(ROWS)
    assert _records(shuffled) == _records(ROWS)


def test_equal_records_share_a_cell_also_as_negative_zero() -> None:
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0]])
    assert sorted(len(cell) for cell in cells(rows, teachers=TEACHERS, key=KEY))[-1] == 3


def test_every_record_has_one_teacher_and_teachers_are_alike() -> None:
    rows = np.random.default_rng(5).random((7000, 2))
    owned = cells(rows, teachers=TEACHERS, key=KEY)
    assert sorted(np.concatenate(owned)) == list(range(len(rows)))
    assert chisquare([len(cell) for cell in owned]).pvalue > 1e-4


def test_the_key_matters() -> None:
    other = cells(ROWS, teachers=TEACHERS, key=b"another")
    assert [cell.tolist() for cell in other] != [
        cell.tolist() for cell in cells(ROWS, teachers=TEACHERS, key=KEY)
    ]


# P3, P4: teachers share nothing, and empty cells vote a constant.


def _streams(teachers: int) -> list[np.random.Generator]:
    return [rng_of(1, f"teacher {teacher}") for teacher in range(teachers)]


def _teachers(rows: npt.NDArray[np.float64], k: int = TEACHERS, steps: int = 6) -> Teachers:
    owned = cells(rows, teachers=k, key=KEY)
    return Teachers(
        network(k, [rows.shape[1], 5, 1], torch_rng(1, "weights")),
        rows=rows.astype(np.float32),
        owned=owned,
        minibatches=all_minibatches(owned, steps=steps, batch=8, rngs=_streams(k)),
        rate=0.05,
    )


def _trained(rows: npt.NDArray[np.float64], steps: int = 6) -> Teachers:
    teachers, rng = _teachers(rows, steps=steps), torch_rng(2, "generated")
    for _ in range(steps):
        teachers.train(torch.rand(8, rows.shape[1], generator=rng))
    return teachers


@pytest.mark.parametrize("removed", [0, 17, 59])
def test_the_minibatches_of_other_teachers_do_not_change(removed: int) -> None:
    def batches(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        owned = cells(rows, teachers=TEACHERS, key=KEY)
        numbers = all_minibatches(owned, steps=5, batch=8, rngs=_streams(TEACHERS))
        assert numbers.shape == (5, TEACHERS, 8)
        return rows[numbers]

    same = batches(ROWS) == batches(np.delete(ROWS, removed, axis=0))
    assert sum(not same[:, teacher].all() for teacher in range(TEACHERS)) == 1


@pytest.mark.parametrize("removed", [0, 17, 59])
def test_the_training_of_other_teachers_does_not_change_by_a_bit(removed: int) -> None:
    here, there = _trained(ROWS), _trained(np.delete(ROWS, removed, axis=0))
    changed = {
        teacher
        for teacher in range(TEACHERS)
        for one, other in zip(here._weights, there._weights, strict=True)
        if not torch.equal(one[teacher], other[teacher])
    }
    assert len(changed) == 1
    asked = torch.rand(200, ROWS.shape[1], generator=torch_rng(4, "asked"))
    moves = np.subtract(here.votes(asked), there.votes(asked))
    assert np.abs(moves).max() <= 1


def test_a_broken_record_breaks_one_teacher_only() -> None:
    rows = ROWS.copy()
    rows[17] = np.nan  # travels with its record to one teacher, which then votes a constant
    teachers = _trained(rows, steps=30)
    broken = [bool(weight.isnan().any()) for weight in teachers._weights[0]]
    assert sum(broken) == 1


def test_teachers_learn_to_tell_their_cell_from_generated_records() -> None:
    rows = 0.8 + 0.2 * np.random.default_rng(1).random((200, 4))
    teachers = _teachers(rows, steps=60)
    rng = torch_rng(2, "generated")
    for _ in range(60):
        teachers.train(0.3 * torch.rand(8, 4, generator=rng))
    assert teachers.votes(torch.full((1, 4), 0.9)).tolist() == [TEACHERS]
    assert teachers.votes(torch.full((1, 4), 0.1)).tolist() == [0]


def test_empty_cells_vote_zero_whatever_is_asked() -> None:
    nobody = _trained(ROWS[:0])
    asked = 10 * torch.randn(50, ROWS.shape[1], generator=torch_rng(4, "asked"))
    assert nobody.votes(asked).tolist() == [0] * 50
    one = _trained(ROWS[:1])
    assert set(one.votes(asked).tolist()) <= {0, 1}


# P8: the schedule of queries.


@given(labels=st.integers(1, 10**9), rounds=st.integers(1, 100))
def test_a_schedule_spends_exactly_the_budget_evenly(labels: int, rounds: int) -> None:
    schedule = labels_per_round(labels, rounds)
    assert len(schedule) == min(rounds, labels)
    assert min(schedule) >= 1
    assert max(schedule) - min(schedule) <= 1
    assert sum(schedule) == labels


# Networks.


def test_adam_steps_as_torch_does() -> None:
    ours = network(2, [3, 4, 1], torch_rng(1, "w"))
    theirs = [weight.detach().clone().requires_grad_() for weight in ours]
    adam = Adam(ours, rate=0.01)
    reference = torch.optim.Adam(theirs, lr=0.01, betas=(0.5, 0.999))
    rows = torch.randn(2, 16, 3, generator=torch_rng(1, "x"))
    for _ in range(20):
        adam.step(forward(ours, rows).square().mean())
        reference.zero_grad()
        loss = forward(theirs, rows).square().mean()
        torch.autograd.backward(loss)
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["mixed", "numbers"])
def test_generated_rows_are_encoded_records(schema: Schema) -> None:
    head = Head(schema)
    raw = 2 * torch.randn(300, head.inputs, generator=torch_rng(1, "raw"))
    rows = (
        head(raw, head.labels(300, torch_rng(1, "labels")), torch_rng(1, "draw")).double().numpy()
    )
    assert rows.shape == (300, width(schema))
    table = decode(rows, schema)
    assert schema.problems(table) == []
    back = encode(table, schema)
    spacing = np.full(width(schema), 1e-6)
    for column, value, _ in layout(schema):
        if column.kind is Kind.INTEGER:  # decoding rounds
            lower, upper = column.bounds
            spacing[value] += 0.5 / (upper - lower)
    assert (np.abs(back - rows) <= spacing).all()


def test_categories_are_drawn_with_their_softmax_probabilities() -> None:
    schema = Schema(columns=(MIXED.columns[0],))
    logits = torch.tensor([0.0, 1.0, -1.0])
    head, given_nothing = Head(schema), torch.empty(20_000, 0)
    rows = head(logits.expand(20_000, 3), given_nothing, torch_rng(3, "draw"))
    drawn = rows.sum(dim=0).numpy()
    assert chisquare(drawn, 20_000 * torch.softmax(logits, 0).double().numpy()).pvalue > 1e-4


def test_labels_follow_their_proportions_and_stand_in_the_record() -> None:
    schema = Schema(columns=MIXED.columns, label="pet")
    head = Head(schema, (0.7, 0.3))
    assert head.inputs == Head(schema).inputs - 2
    labels = head.labels(20_000, torch_rng(1, "labels"))
    drawn = labels.sum(dim=0).numpy()
    assert chisquare(drawn, [14_000, 6_000]).pvalue > 1e-4
    raw = torch.randn(20_000, head.inputs, generator=torch_rng(1, "raw"))
    table = decode(head(raw, labels, torch_rng(1, "draw")).double().numpy(), schema)
    assert schema.problems(table) == []
    assert (table["pet"].isna().to_numpy() == (labels[:, 1] == 1).numpy()).all()


def test_a_proportion_of_zero_is_never_drawn() -> None:
    schema = Schema(columns=MIXED.columns, label="job")
    labels = Head(schema, (0.5, 0.0, 0.5)).labels(5000, torch_rng(1, "labels"))
    assert labels[:, 1].sum() == 0


def test_gradients_reach_every_raw_output() -> None:
    head = Head(MIXED)
    raw = torch.randn(50, head.inputs, generator=torch_rng(1, "raw")).requires_grad_()
    weights = torch.randn(width(MIXED), generator=torch_rng(1, "w"))
    rows = head(raw, torch.empty(50, 0), torch_rng(1, "d"))
    (gradient,) = torch.autograd.grad((rows @ weights).sum(), raw)
    assert (gradient.abs().sum(dim=0) > 0).all()


# Bounds.


def test_bounds_of_data_are_its_extremes() -> None:
    data = pd.DataFrame(
        {
            "job": ["cook", "cook"],
            "income": [3.0, np.nan],
            "age": [20, 40],
            "pet": ["cat", None],
            "children": [np.nan, np.nan],
        }
    )
    narrowed = {column.name: column for column in schema_of_data(MIXED, data).columns}
    assert narrowed["age"].bounds == (20, 40)
    assert narrowed["income"].bounds == (3.0, 1e5)  # constant: one public bound stays
    assert narrowed["children"].bounds == (0, 4)  # nothing there: the public ones
    assert narrowed["job"] == MIXED.columns[0]
    data["income"] = 1e5
    assert schema_of_data(MIXED, data).columns[1].bounds == (-5.0, 1e5)
    assert schema_of_data(MIXED, data).inferred
