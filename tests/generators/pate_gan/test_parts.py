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
from torch import Tensor

from benchmarks.oracle import Network, records_of
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import decode, encode, layout, width
from dpaudit.model.schema import Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import schema_of_data
from dpaudit_generators.networks.model import Activation, Architecture, Descent
from dpaudit_generators.networks.source import Head, RecordSource, Streams
from dpaudit_generators.networks.stack import (
    Networks,
    draw_weights,
    padded,
    with_ones,
)
from dpaudit_generators.pate import cells
from dpaudit_generators.pate_gan import TrainingSettings
from dpaudit_generators.pate_gan.settings import Records
from dpaudit_generators.pate_gan.training import Teachers, labels_per_round

CPU = torch.device("cpu")
DESCENT = Descent(0.01, (0.5, 0.999))
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


def _perceptron(*hidden: int) -> Architecture:
    return Architecture(hidden=hidden, activation=Activation.LEAKY)


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


def _teachers(rows: npt.NDArray[np.float64], k: int = TEACHERS) -> Teachers:
    owned = cells(rows, teachers=k, key=KEY)
    shape = _perceptron(5)
    networks = draw_weights(shape.layers(rows.shape[1], 1), rng_of(1, "weights"), k=k)
    return Teachers(
        Networks([networks], shape, DESCENT._replace(rate=0.05)),
        [Records(rows.astype(np.float32), owned)],
        device=CPU,
    )


def _train(teachers: Teachers, generated: Tensor) -> None:
    """Steps on generated records [steps, batch, width]."""
    steps, batch, _ = generated.shape
    numbers = _streams(1).integers(steps, teachers._k, batch)
    chosen = teachers.minibatches(numbers)
    for step in range(steps):
        teachers.train(chosen[:, step], with_ones(generated[None, step]))


def _trained(rows: npt.NDArray[np.float64], steps: int = 6) -> Teachers:
    teachers = _teachers(rows)
    _train(teachers, torch.rand(steps, 8, rows.shape[1], generator=_torch_rng(2)))
    return teachers


def _streams(seed: int) -> Streams:
    return Streams([seed], "test", device=CPU)


def _torch_rng(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("removed", [0, 17, 59])
def test_the_minibatches_of_other_teachers_do_not_change(removed: int) -> None:
    def batches(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        numbers = _streams(1).integers(5, TEACHERS, 8)
        chosen = _teachers(rows).minibatches(numbers)[0].numpy()
        assert chosen.shape == (5, TEACHERS, 8)
        return rows[chosen]

    same = batches(ROWS) == batches(np.delete(ROWS, removed, axis=0))
    assert sum(not same[:, teacher].all() for teacher in range(TEACHERS)) == 1


@pytest.mark.parametrize("removed", [0, 17, 59])
def test_the_training_of_other_teachers_does_not_change_by_a_bit(removed: int) -> None:
    here, there = _trained(ROWS), _trained(np.delete(ROWS, removed, axis=0))
    changed = {
        teacher
        for teacher in range(TEACHERS)
        for one, other in zip(
            here.networks.weights()[teacher], there.networks.weights()[teacher], strict=True
        )
        if not np.array_equal(one, other)
    }
    assert len(changed) == 1
    asked = with_ones(torch.rand(1, 200, ROWS.shape[1], generator=_torch_rng(4)))
    moves = np.subtract(here.votes(asked), there.votes(asked))
    assert np.abs(moves).max() <= 1


def test_a_broken_record_breaks_one_teacher_only() -> None:
    rows = ROWS.copy()
    rows[17] = np.nan  # travels with its record to one teacher, which then votes a constant
    teachers = _trained(rows, steps=30)
    broken = [bool(np.isnan(weights[0]).any()) for weights in teachers.networks.weights()]
    assert sum(broken) == 1


def test_teachers_learn_to_tell_their_cell_from_generated_records() -> None:
    rows = 0.8 + 0.2 * np.random.default_rng(1).random((200, 4))
    teachers = _teachers(rows)
    _train(teachers, 0.3 * torch.rand(60, 8, 4, generator=_torch_rng(2)))
    assert teachers.votes(with_ones(torch.full((1, 1, 4), 0.9))).tolist() == [[TEACHERS]]
    assert teachers.votes(with_ones(torch.full((1, 1, 4), 0.1))).tolist() == [[0]]


def test_empty_cells_vote_zero_whatever_is_asked() -> None:
    nobody = _trained(ROWS[:0])
    asked = with_ones(10 * torch.randn(1, 50, ROWS.shape[1], generator=_torch_rng(4)))
    assert nobody.votes(asked).tolist() == [[0] * 50]
    one = _trained(ROWS[:1])
    assert set(one.votes(asked)[0].tolist()) <= {0, 1}


# P8: the schedule of queries.


@given(labels=st.integers(1, 10**9), rounds=st.integers(1, 100))
def test_a_schedule_spends_exactly_the_budget_evenly(labels: int, rounds: int) -> None:
    schedule = labels_per_round(labels, rounds)
    assert len(schedule) == min(rounds, labels)
    assert min(schedule) >= 1
    assert max(schedule) - min(schedule) <= 1
    assert sum(schedule) == labels


# Networks.


@pytest.mark.parametrize("hidden", [pytest.param((), marks=pytest.mark.ci), (4,), (1, 20, 3)])
def test_critics_step_as_torch_does(hidden: tuple[int, ...]) -> None:
    shape = _perceptron(*hidden)
    networks = draw_weights(shape.layers(3, 1), rng_of(1, "w"), k=2)
    ours = Networks([networks], shape, DESCENT)
    theirs = [Network(networks, index, TrainingSettings(learning_rate=0.01)) for index in range(2)]
    rows = torch.randn(1, 16, 3, generator=_torch_rng(1))
    for _ in range(20):
        outputs = ours(with_ones(rows).expand(2, -1, -1))[..., 0]
        ours.descend(outputs.square().sum() / 16)
        for network in theirs:
            network.descend(network(rows[0]).square().mean())
    for one, other in zip(ours.weights(), theirs, strict=True):
        for here, there in zip(one, other.weights(), strict=True):
            np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given_labels", [False, True])
def test_gradients_of_the_generator_are_those_of_autograd(given_labels: bool) -> None:
    # Through critic, head and generator: numbers, gaps, categories, labels.
    schema = Schema(columns=MIXED.columns, label="pet")
    head = Head(schema, given=given_labels)
    makes, judges = _perceptron(18), _perceptron(5)
    networks = draw_weights(makes.layers(6, head.inputs), rng_of(1, "generator"), gain=3.0)
    critic = draw_weights(judges.layers(head.width, 1), rng_of(1, "critic"))
    ours, judge = Networks([networks], makes, DESCENT), Networks([critic], judges)
    public = TrainingSettings(learning_rate=0.01)
    theirs, their_judge = Network(networks, 0, public), Network(critic, 0, public)
    labels = torch.eye(2)[torch.arange(40) % 2][:, : head.classes]
    for step in range(10):
        inputs = torch.randn(40, 6, generator=_torch_rng(step))
        noise = _streams(step).gumbel(40, head.choices)
        generated = head(ours(with_ones(inputs[None])), noise, labels[None])
        ours.descend(judge(generated)[..., 0].sum())
        records = records_of(theirs(inputs), noise[0], labels, head)
        np.testing.assert_allclose(
            generated[0, :, : head.width].detach().numpy(), records.detach().numpy(), atol=1e-5
        )
        theirs.descend(their_judge(records).sum())
    for here, there in zip(ours.weights()[0], theirs.weights(), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-5)


def _generated(head: Head, raw: Tensor, labels: Tensor, *, seed: int) -> npt.NDArray[np.float64]:
    """Records [n, width] in the schema's order, of raw outputs [n, inputs]."""
    noise = _streams(seed).gumbel(len(raw), head.choices)
    filled = torch.nn.functional.pad(raw, (0, padded(head.inputs) - head.inputs))[None]
    records = head(filled, noise, labels[None])[0].double().numpy()
    assert (records[:, head.width] == 1).all()
    assert not records[:, head.width + 1 :].any()
    rows = np.empty((len(raw), head.width))
    rows[:, head.order] = records[:, : head.width]
    return rows


@pytest.mark.parametrize("schema", [MIXED, NUMBERS], ids=["mixed", "numbers"])
def test_generated_rows_are_encoded_records(schema: Schema) -> None:
    head = Head(schema)
    raw = 2 * torch.randn(300, head.inputs, generator=_torch_rng(1))
    rows = _generated(head, raw, torch.empty(300, 0), seed=1)
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
    rows = _generated(Head(schema), logits.expand(20_000, 3), torch.empty(20_000, 0), seed=3)
    expected = 20_000 * torch.softmax(logits, 0).double().numpy()
    assert chisquare(rows.sum(axis=0), expected).pvalue > 1e-4


def _labels(proportions: tuple[float, ...], n: int) -> Tensor:
    schema = Schema(columns=MIXED.columns, label="job" if len(proportions) == 3 else "pet")
    head = Head(schema, given=True)
    shape = _perceptron()
    weights = draw_weights(shape.layers(4 + head.classes, head.inputs), np.random.default_rng(0))
    networks = Networks([weights], shape)
    source = RecordSource(networks, _streams(1), head, [proportions], width=4, device=CPU)
    return source.draw(n).labels[0]


def test_labels_follow_their_proportions_and_stand_in_the_record() -> None:
    schema = Schema(columns=MIXED.columns, label="pet")
    head = Head(schema, given=True)
    assert head.inputs == Head(schema).inputs - 2
    labels = _labels((0.7, 0.3), 20_000)
    drawn = labels.sum(dim=0).numpy()
    assert chisquare(drawn, [14_000, 6_000]).pvalue > 1e-4
    raw = torch.randn(20_000, head.inputs, generator=_torch_rng(1))
    table = decode(_generated(head, raw, labels, seed=1), schema)
    assert schema.problems(table) == []
    assert (table["pet"].isna().to_numpy() == (labels[:, 1] == 1).numpy()).all()


def test_a_proportion_of_zero_is_never_drawn() -> None:
    assert _labels((0.5, 0.0, 0.5), 5000)[:, 1].sum() == 0


def test_gradients_reach_every_raw_output() -> None:
    head = Head(MIXED)
    raw = torch.randn(1, 50, padded(head.inputs), generator=_torch_rng(1), requires_grad=True)
    generated = head(raw, _streams(1).gumbel(50, head.choices), torch.empty(1, 50, 0))
    weights = torch.randn(width(MIXED), generator=_torch_rng(2))
    (slopes,) = torch.autograd.grad((generated[..., : len(weights)] * weights).sum(), raw)
    gradient = slopes.abs().sum(dim=1)[0]
    assert (gradient[: head.inputs] > 0).all()
    assert not gradient[head.inputs :].any()


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
