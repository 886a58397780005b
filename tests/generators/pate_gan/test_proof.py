"""The premises of PATE-GAN's proof, P1 to P9 of the review checklist.

Each is a check that tells a sound trainer from a broken one, and the second half breaks the trainer
to show that the check would notice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dpaudit.account import LabelBudget, VoteTable
from dpaudit.account.conversion import gaussian_mu
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode, values_of_table
from dpaudit.model.gaussian import gaussian_delta
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit_generators import pate
from dpaudit_generators.marginals import Marginals, TreeBatch, release
from dpaudit_generators.networks.stack import Networks
from dpaudit_generators.pate import IndexArray
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals, PateGanModel, training
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator
from dpaudit_generators.pate_gan.settings import Records
from dpaudit_generators.pate_gan.training import Teachers

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
        Column(name="n", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
    ),
)


def table(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    return SCHEMA.canonical(
        pd.DataFrame(
            {"x": rng.random(n), "n": rng.integers(0, 100, n), "c": rng.choice(["a", "b", "c"], n)}
        )
    )


GIVEN: dict[str, Any] = {"teachers": 10, "rounds": 3, "epsilon": 2.0}


DEFAULT: dict[str, type[TaughtGenerator]] = {"kind": PateGanMarginals}


@pytest.fixture(params=[PateGan, PateGanMarginals])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[TaughtGenerator]:
    """The class of all generators of a test."""
    monkeypatch.setitem(DEFAULT, "kind", request.param)
    return DEFAULT["kind"]


def generator(**settings: Any) -> TaughtGenerator:
    return DEFAULT["kind"](schema=SCHEMA, **GIVEN | settings)


def weights(model: PateGanModel) -> bytes:
    return model.parameters().tobytes()


class Trace:
    """What one training does, seen from inside."""

    def __init__(self, gan: TaughtGenerator, data: pd.DataFrame, *, seed: int = 1) -> None:
        self.owned: Sequence[IndexArray] = ()
        self.batches = np.empty((0, gan.teachers, gan.batch), dtype=np.int64)
        self.votes: list[int] = []
        self.shapes: set[tuple[int, ...]] = set()
        self.asked: list[int] = []
        trace = self

        class Watched(Teachers):
            def __init__(
                self, networks: Networks, records: Sequence[Records], *, device: torch.device
            ) -> None:
                super().__init__(networks, records, device=device)
                trace.owned = records[0].owned

            def minibatches(self, drawn: torch.Tensor) -> torch.Tensor:
                rows = super().minibatches(drawn)
                trace.batches = np.concatenate([trace.batches, rows[0].numpy()])
                return rows

            def train(self, chosen: torch.Tensor, generated: torch.Tensor) -> None:
                trace.shapes |= {tuple(chosen.shape), tuple(generated.shape)}
                super().train(chosen, generated)

            def votes(self, records: torch.Tensor) -> IndexArray:
                counts = super().votes(records)
                trace.votes += counts[0].tolist()
                trace.asked.append(records.shape[1])
                return counts

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "Teachers", Watched)
            self.model = gan.fit(data, seed=seed)

    def cells(self, data: pd.DataFrame) -> list[list[tuple[Any, ...]]]:
        """The records of each teacher, in its order."""
        records = list(data.itertuples(index=False, name=None))
        return [[records[row] for row in cell] for cell in self.owned]


# P1: constants.


def public(gan: TaughtGenerator, data: pd.DataFrame) -> list[Any]:
    trace = Trace(gan, data)
    return [
        *(len(trace.owned), gan.plan, gan.claim, trace.shapes, trace.asked, trace.batches.shape),
        [weight.shape for weight in (*trace.model.weights, *trace.model.critic)],
        *(trace.model.parameters().shape, trace.model.released().shape),
    ]


@pytest.mark.usefixtures("kind")
def test_p1_constants_do_not_depend_on_the_number_of_records() -> None:
    gan = generator()
    of_1000 = public(gan, table(1000))
    for n in (999, 500, 10, 1, 0):
        assert public(gan, table(n)) == of_1000


# P2: the assignment looks at one record at a time.


def changed_cells(deal: Callable[[Any], Sequence[IndexArray]], rows: Any, removed: int) -> int:
    """How many teachers' records change, in content or order, when one record is removed."""
    rest = np.delete(rows, removed, axis=0)
    before = [rows[cell].tolist() for cell in deal(rows)]
    after = [rest[cell].tolist() for cell in deal(rest)]
    if len(before) != len(after):
        return max(len(before), len(after))
    return sum(a != b for a, b in zip(before, after, strict=True))


def by_hash(rows: Any) -> Sequence[IndexArray]:
    return pate.cells(rows, teachers=10, key=b"key")


def by_permutation(rows: Any) -> Sequence[IndexArray]:
    return np.array_split(np.random.default_rng(1).permutation(len(rows)), 10)


def by_position(rows: Any) -> Sequence[IndexArray]:
    return np.array_split(np.arange(len(rows)), 10)


def by_the_number_of_records(rows: Any) -> Sequence[IndexArray]:
    return np.array_split(np.arange(len(rows)), len(rows) // 100)


@pytest.mark.parametrize("records", [200, pytest.param(1000, marks=pytest.mark.ci)])
def test_p2_any_record_reaches_exactly_one_teacher(records: int) -> None:
    rows = encode(table(records), SCHEMA)
    assert {changed_cells(by_hash, rows, removed) for removed in range(records)} == {1}


@pytest.mark.parametrize("deal", [by_permutation, by_position, by_the_number_of_records])
def test_p2_would_notice_other_ways_to_deal(
    deal: Callable[[Any], Sequence[IndexArray]],
) -> None:
    rows = encode(table(1000), SCHEMA)
    assert max(changed_cells(deal, rows, removed) for removed in range(0, 1000, 100)) > 1


@pytest.mark.usefixtures("kind")
def test_p2_the_trainer_deals_by_the_hash_and_the_order_of_rows_is_nothing() -> None:
    data = table(200)
    trace = Trace(generator(), data)
    shuffled = data.sample(frac=1.0, random_state=3)
    other = Trace(generator(), shuffled.reset_index(drop=True))
    assert trace.cells(data) == other.cells(shuffled)
    assert weights(trace.model) == weights(other.model)


# P3, P5: a teacher's order and randomness are its own; generated records are post-processing.


def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the marginals count a table of their own, so that they do not follow the one given."""
    fit_many = Marginals.fit_many

    def fixed(self: Marginals, data: pd.DataFrame, jobs: Sequence[Job]) -> TreeBatch:
        return fit_many(self, table(50), [job._replace(dropped_rows=()) for job in jobs])

    monkeypatch.setattr(Marginals, "fit_many", fixed)


def moved_teachers(data: pd.DataFrame, removed: int) -> int:
    """Teachers whose minibatches differ once a record is removed, by the records in them."""
    rest = data.drop(index=removed).reset_index(drop=True)
    one, other = Trace(generator(), data), Trace(generator(), rest)
    records, left = encode(data, SCHEMA), encode(rest, SCHEMA)
    return sum(
        not np.array_equal(records[one.batches[:, t]], left[other.batches[:, t]]) for t in range(10)
    )


@pytest.mark.usefixtures("kind")
def test_p3_minibatches_of_other_teachers_do_not_move() -> None:
    data = table(200)
    assert [moved_teachers(data, removed) for removed in (0, 77, 199)] == [1, 1, 1]


def test_p3_would_notice_a_shared_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(self: Teachers, drawn: torch.Tensor) -> torch.Tensor:
        # A permutation of each cell, all from one stream: how much is drawn depends on the cells.
        rng, (_, steps, _, batch) = np.random.default_rng(1), drawn.shape
        cells = np.split(self._cells.numpy(), self._starts[0, 0, 1:, 0].numpy())
        rows = [np.resize(rng.permutation(cell), (steps, batch)) for cell in cells]
        return torch.from_numpy(np.stack(rows, axis=1))[None]

    monkeypatch.setattr(Teachers, "minibatches", shared)
    assert max(moved_teachers(table(200), removed) for removed in range(4)) > 1


# P4: an empty cell still votes, a constant.


@pytest.mark.usefixtures("kind")
def test_p4_votes_count_teachers_with_records_only_and_never_fail() -> None:
    assert set(Trace(generator(), table(0)).votes) == {0}
    assert max(Trace(generator(), table(1)).votes) <= 1


# P6: nothing else is taken from the table.


@pytest.mark.usefixtures("kind")
def test_p6_given_its_counts_and_votes_the_model_knows_no_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ignoring(self: Teachers, records: torch.Tensor) -> IndexArray:
        return np.arange(records.shape[1])[None] % 11

    unseen(monkeypatch)
    monkeypatch.setattr(Teachers, "votes", ignoring)
    here = weights(generator().fit(table(300), seed=1))
    for other in (table(299), table(5), table(0)):
        assert weights(generator().fit(other, seed=1)) == here


def test_p6_would_notice_bounds_of_the_data() -> None:
    models = [
        PateGan(schema=SCHEMA, **GIVEN, bounds="data").fit(data, seed=1)
        for data in (table(300), table(20))
    ]
    assert models[0].schema != models[1].schema
    public_ones = [generator().fit(data, seed=1) for data in (table(300), table(20))]
    assert public_ones[0].schema == public_ones[1].schema


# P7, P8: paid before it is drawn, every query, never more than the budget.

BUDGETS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 50.0)


def spending(gan: TaughtGenerator) -> list[int]:
    """Labels spent after every release, each paid before it is drawn."""
    spent: list[int] = []
    spend, release = LabelBudget.spend, VoteTable.release
    paid = [0]

    def spending(self: LabelBudget, labels: int = 1) -> None:
        spend(self, labels)
        paid[0] = self.spent

    def releasing(self: VoteTable, votes: Any, words: Any) -> IndexArray:
        assert self == gan.plan.table
        spent.append((spent[-1] if spent else 0) + votes.size)
        assert spent[-1] <= paid[0]
        return release(self, votes, words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabelBudget, "spend", spending)
        patch.setattr(VoteTable, "release", releasing)
        gan.fit(table(50), seed=1)
    return spent


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_p7_the_budget_is_not_exceeded_at_any_iteration(
    epsilon: float, kind: type[TaughtGenerator]
) -> None:
    gan = generator(epsilon=epsilon, accuracy=0.55, rounds=8)
    costs = [gan.spent(labels) for labels in spending(gan)]
    assert costs == sorted(costs)
    assert costs[-1] <= epsilon
    if kind is PateGan:
        assert costs[-1] == gan.plan.epsilon
    else:
        assert costs[-1] == pytest.approx(epsilon, rel=1e-5)
    # Nearly all of it is used: the next label would not fit, or the noise was cut to measure.
    assert gan.spent(gan.plan.labels + 1) > epsilon


def test_p7_would_notice_paying_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def afterwards(self: Any, votes: Any, *, going: Any) -> IndexArray:
        labels = self._table.release(votes, self._bits[0].words(votes.size)[None])
        self._budgets[0].spend(votes.size)
        return np.asarray(labels)

    monkeypatch.setattr(pate.LabelReleases, "release", afterwards)
    with pytest.raises(AssertionError):
        spending(generator())


@pytest.mark.usefixtures("kind")
def test_p8_a_trainer_that_asks_for_more_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(labels: int, rounds: int) -> list[int]:
        return [labels // rounds + 1] * rounds

    monkeypatch.setattr("dpaudit_generators.pate_gan.training.labels_per_round", greedy)
    gan = generator(epsilon=20.0)
    assert sum(greedy(gan.plan.labels, gan.rounds)) > gan.plan.labels
    spent = spending(gan)
    assert len(spent) == gan.rounds - 1
    assert spent[-1] <= gan.plan.labels


@pytest.mark.usefixtures("kind")
def test_p8_every_query_that_is_voted_on_is_paid_for() -> None:
    gan = generator()
    assert sum(Trace(gan, table(50)).asked) == gan.plan.labels


# P9: the marginals, and what they cost together with the votes.


def shifted(marginals: Marginals, removed: int) -> FloatArray:
    """By how much the counts before noise change when one record of fifty is removed."""
    sums = []

    def counted(counts: FloatArray, *rest: Any) -> FloatArray:
        sums.append(np.asarray(counts, dtype=np.float64))
        return sums[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "add_noise", counted)
        for data in (table(50), table(50).drop(index=removed).reset_index(drop=True)):
            marginals.fit(data, seed=1)
    return sums[0] - sums[1]


def test_p9_a_record_is_in_one_cell_of_each_marginal() -> None:
    marginals = generator().marginals
    assert marginals is not None
    for removed in range(0, 50, 7):
        moved = shifted(marginals, removed)
        assert sorted(moved[moved != 0.0]) == [1.0, 1.0, 1.0]


def noise_multiplier(gan: TaughtGenerator) -> float:
    """Deviation of the noise on the counts, over what one record moves them by."""
    fixed, labels = gan.rounds, min(gan.rounds, gan.plan.labels)
    assert labels <= fixed
    counts = [gan.fit(table(0), seed=seed).released()[labels:] for seed in range(40)]
    return float(np.std(counts) / np.sqrt(len(SCHEMA.columns)))


def test_p9_counts_have_the_noise_that_is_accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    gan = generator(rounds=1, teacher_steps=1)
    assert gan.marginals is not None
    mu = gan.marginals.claim.value
    error = 1.0 / np.sqrt(2 * 40 * len(gan.marginals.released_facts))
    assert noise_multiplier(gan) * mu == pytest.approx(1.0, abs=4 * error)
    # It would notice noise for one column in place of all three.
    monkeypatch.setattr(release.PublicTree, "scale", 1.0 / mu)
    assert noise_multiplier(gan) * mu < 1.0 - 4 * error


def most_moved(gan: TaughtGenerator) -> float:
    """The most that a record of fifty moves the deviations by, over their radius."""
    assert gan.marginals is not None
    mechanism = gan.marginals.mechanism
    assert isinstance(mechanism, release.AdaptiveDeviations)
    rng = np.random.default_rng(4)
    moved = []
    for tree in (mechanism.few, mechanism.many):
        cells = tree.domain.cells(values_of_table(table(50), gan.schema))
        for removed in range(50):
            around = tree.centre(rng.normal(10.0, 20.0, len(tree.alone_scales)))
            sums, radius = tree.deviations(cells, around)
            less = tree.deviations(np.delete(cells, removed, axis=0), around)
            assert less.radius == radius
            moved.append(np.linalg.norm(sums - less.sums) / radius)
    return max(moved)


def test_p9_a_record_moves_the_deviations_by_at_most_their_radius(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gan = PateGanMarginals(schema=replace(SCHEMA, label="c"), **GIVEN)
    assert 0.99 < most_moved(gan) <= 1.0 + 1e-12
    # It would notice records that are not scaled down.
    monkeypatch.setattr(release, "_clip_factors", lambda norms, radius: np.ones(len(norms)))
    assert most_moved(gan) > 1.1


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_p9_marginals_and_votes_are_together_what_is_claimed(epsilon: float, share: float) -> None:
    gan = generator(epsilon=epsilon, vote_share=share)
    assert gan.marginals is not None
    votes = gan.plan.labels * gan.plan.table.mu**2
    counts = gan.marginals.claim.value**2
    budget = gaussian_mu(epsilon=epsilon, delta=gan.delta) ** 2
    assert counts + votes <= budget
    assert counts + votes == pytest.approx(budget, rel=1e-6)
    assert gaussian_delta(epsilon, np.sqrt(counts + votes)) <= gan.delta
    assert gan.claim.epsilon == epsilon


def test_the_claim_is_the_budget_whatever_was_spent() -> None:
    gan = generator(epsilon=2.0)
    assert gan.plan.epsilon < 2.0
    assert gan.claim.epsilon == gan.fit(table(5), seed=1).claim.epsilon == 2.0
    assert PateGan(schema=SCHEMA).claim.epsilon == 1.0
