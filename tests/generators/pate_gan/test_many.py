"""Many PATE-GANs at once: each is the model it would be alone, and the oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from benchmarks.oracle import train_one
from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.errors import BudgetError, DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World, trains_many
from dpaudit.seeds import rng_of
from dpaudit_generators.networks.model import Architecture, Weights
from dpaudit_generators.networks.source import Head, Streams
from dpaudit_generators.networks.stack import Networks, draw_weights
from dpaudit_generators.pate import IndexArray, LabelRelease, LabelReleases
from dpaudit_generators.pate_gan import (
    PUBLISHED,
    PateGan,
    PateGanMarginals,
    PateGanModel,
    training,
)
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator
from dpaudit_generators.pate_gan.settings import Records, Trained, Trainee, TrainingSettings
from dpaudit_generators.pate_gan.training import Teachers
from samples import PEOPLE, people

NUMBERS = Schema(
    columns=tuple(
        Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for i in range(29)
    )
)


def numbers(n: int = 686) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return NUMBERS.canonical(pd.DataFrame(rng.beta(2, 5, (n, 29)), columns=NUMBERS.names))


def published(rounds: int) -> PateGan:
    return PateGan(
        schema=NUMBERS,
        teachers=5,
        accuracy=0.5002,
        **(dict(PUBLISHED) | {"rounds": rounds}),
    )


def small(kind: type[TaughtGenerator] = PateGan, **options: Any) -> Any:
    return kind(schema=PEOPLE, **{"teachers": 12, "rounds": 6, "epsilon": 8.0} | options)


CPU = torch.device("cpu")
PRIVATE: dict[str, Any] = {"bounds": "private", "label_proportions": "private"}


def jobs(n: int, rows: int) -> list[Job]:
    """Both worlds, mixed; half of the jobs drop a row, not all the same."""
    return [
        Job(World.IN, i, (), 100 + i) if i % 2 else Job(World.OUT, i, (3 * i % rows,), 100 + i)
        for i in range(n)
    ]


def as_bytes(model: PateGanModel) -> list[bytes]:
    return [model.parameters().tobytes(), model.released().tobytes()]


# The oracle.


class Witness:
    """Trains with both trainers from the same uniform numbers."""

    def __init__(self, gan: PateGan, data: pd.DataFrame, many: Sequence[Job]) -> None:
        self.votes: list[list[int]] = [[] for _ in many]
        self.oracle_votes: list[list[int]] = [[] for _ in many]
        self.oracle: list[Weights] = []
        witness, train, votes = self, training.train, Teachers.votes

        def watched(teachers: Teachers, records: torch.Tensor) -> IndexArray:
            counts = votes(teachers, records)
            for mine, counted in zip(witness.votes, counts, strict=True):
                mine += counted.tolist()
            return counts

        def both(
            trainees: Sequence[Trainee],
            *,
            head: Head,
            plan: LabelPlan,
            settings: TrainingSettings,
            device: torch.device,
            **options: Any,
        ) -> list[Trained]:
            for trainee, seen in zip(trainees, witness.oracle_votes, strict=True):

                def watch(counts: IndexArray, seen: list[int] = seen) -> None:
                    seen += counts.tolist()

                witness.oracle.append(
                    train_one(trainee, head=head, plan=plan, settings=settings, on_votes=watch)
                )
            return train(
                trainees, head=head, plan=plan, settings=settings, device=device, **options
            )

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "train", both)
            patch.setattr(Teachers, "votes", watched)
            self.models = gan.fit_many(data, many)


@pytest.mark.parametrize(
    ("gan", "data"),
    [
        pytest.param(published(30), numbers(), marks=pytest.mark.ci),
        pytest.param(small(rounds=30), people(), marks=pytest.mark.ci),
        (small(replay=False, teacher_hidden=(), student_hidden=(), **PRIVATE), people()),
        pytest.param(
            *(small(generator_hidden=(), teacher_hidden=(3, 17), batch=7), people(5)),
            marks=pytest.mark.ci,
        ),
    ],
    ids=["published", "default", "private", "odd"],
)
def test_it_agrees_with_the_oracle_after_thirty_iterations(
    gan: PateGan, data: pd.DataFrame
) -> None:
    witness = Witness(gan, data, jobs(2, len(data)))
    assert witness.votes == witness.oracle_votes
    assert len(witness.votes[0]) == gan.plan.labels
    start = training.InitialNetworks(
        100, head=Head(gan.schema, given=bool(gan.split.histograms)), teachers=2, settings=gan
    )
    for model, oracle in zip(witness.models.models, witness.oracle, strict=True):
        for ours, theirs in zip(model.weights, oracle, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    moved = np.abs(witness.models[0].weights[0] - start.generator[0]).max()
    assert moved > 100e-5  # so they did not agree for want of a step


# Independence of the batch.


def assert_alone_as_in_company(
    gan: PateGan, data: pd.DataFrame, sizes: Sequence[int], *, rows: int = 300
) -> None:
    many = jobs(max(sizes), len(data))
    seeds = [job.index for job in many]
    alone = [gan.fit_many(data, [job])[0] for job in many]
    assert len({model.parameters().tobytes() for model in alone}) == len(many)
    for size in sizes:
        batch = gan.fit_many(data, many[:size])
        assert len(batch) == size
        tables = batch.sample_many(rows, seeds[:size])
        assert tables.shape == (size, rows, len(gan.schema.columns))
        for i in range(size):
            assert as_bytes(batch[i]) == as_bytes(alone[i])
            assert (batch[i].schema, batch[i].claim) == (alone[i].schema, alone[i].claim)
            sampled = alone[i].sample(rows, seed=seeds[i])
            assert table_of(tables[i], batch[i].schema).equals(sampled)


def test_a_model_does_not_depend_on_its_batch_by_a_bit() -> None:
    assert_alone_as_in_company(published(50), numbers(), [1, 3, 8])


@pytest.mark.parametrize(
    "options",
    [
        {},
        PRIVATE,
        {"bounds": "data", "teacher_hidden": (), "teachers": 1},
        pytest.param({"batch": 5, "student_hidden": (17, 1)}, marks=pytest.mark.ci),
        pytest.param({"kind": PateGanMarginals}, marks=pytest.mark.ci),
        {"kind": PateGanMarginals, "batch": 7, "student_hidden": (5,), "teacher_hidden": ()},
    ],
    ids=["default", "private", "one teacher", "odd", "marginals", "odd marginals"],
)
def test_nor_with_categories_and_bounds_of_its_own(options: dict[str, Any]) -> None:
    assert_alone_as_in_company(small(**options), people(), [1, 3, 5], rows=33)


@pytest.mark.slow
def test_nor_after_three_hundred_iterations_of_32_models() -> None:
    assert_alone_as_in_company(published(300), numbers(), [1, 3, 8, 24, 32])


def test_to_drop_rows_is_to_train_without_them() -> None:
    data = people()
    settings = ({}, {"bounds": "data"}, {"kind": PateGanMarginals})
    for gan in (small(epsilon=200.0, **one) for one in settings):
        dropped = gan.fit_many(
            data, [Job(World.OUT, i, rows, 1) for i, rows in enumerate([(7,), (), (20, 3, 7)])]
        )
        assert as_bytes(dropped[0]) == as_bytes(gan.fit(data.drop(index=7), seed=1))
        assert as_bytes(dropped[1]) == as_bytes(gan.fit(data, seed=1))
        assert as_bytes(dropped[0]) != as_bytes(dropped[1])
        assert as_bytes(dropped[2]) == as_bytes(gan.fit(data.drop(index=[3, 7, 20]), seed=1))


# The contract.


def test_it_is_a_batch_generator_that_refuses_other_tables() -> None:
    gan = small()
    assert trains_many(gan)
    with pytest.raises(DataError, match="does not fit the schema"):
        gan.fit_many(people().drop(columns="age"), jobs(2, 60))


def test_each_model_pays_for_its_own_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[LabelBudget] = []

    class Counted(LabelBudget):
        def __init__(self, labels: int) -> None:
            super().__init__(labels)
            budgets.append(self)

    monkeypatch.setattr(training, "LabelBudget", Counted)
    gan = small()
    gan.fit_many(people(), jobs(3, 60))
    assert [budget.spent for budget in budgets] == [gan.plan.labels] * 3


def test_a_model_stops_when_its_own_budget_does(monkeypatch: pytest.MonkeyPatch) -> None:
    gan, data = small(rounds=8), people()
    train, seen = training.train, []

    def short(trainees: Sequence[Trainee], **options: Any) -> list[Trained]:
        share = [t._replace(labels=t.labels * (t.seed % 4) // 4) for t in trainees if t.seed]
        seen.extend(t.labels for t in share)
        return train(share, **options)

    monkeypatch.setattr(training, "train", short)
    many = jobs(5, len(data))
    batch = gan.fit_many(data, many)
    assert len(set(seen)) == 4
    assert len({model.weights[0].tobytes() for model in batch.models}) == len(many)
    for job, model in zip(many, batch.models, strict=True):
        assert as_bytes(model) == as_bytes(gan.fit_many(data, [job])[0])
        untrained = training.InitialNetworks(
            job.seed, head=Head(gan.schema), teachers=gan.teachers, settings=gan
        )
        stopped_at_once = np.array_equal(model.weights[0], untrained.generator[0])
        assert stopped_at_once == (job.seed is not None and job.seed % 4 == 0)


def test_nothing_of_a_stopped_model_is_released() -> None:
    table = small().plan.table
    budgets = [LabelBudget(3), LabelBudget(9)]
    releases = LabelReleases(table, budgets, seeds=[1, 2])
    votes = np.full((2, 3), table.teachers)
    both = releases.release(votes, going=[True, True])
    one = releases.release(votes, going=[False, True])
    assert [budget.left for budget in budgets] == [0, 3]
    assert one[0].tolist() == [0, 0, 0]
    alone = LabelRelease(table, LabelBudget(9), seed=2)
    assert [*both[1], *one[1]] == [*alone.release(votes[0]), *alone.release(votes[0])]
    with pytest.raises(BudgetError):
        releases.release(votes, going=[True, True])


# The device.


def test_every_tensor_is_made_on_the_device_that_is_named() -> None:
    # A tensor that is made where torch would put it has no memory here.
    gan, data = small(), people()
    usual = gan.fit_many(data, jobs(2, 60))
    for other, same in ((gan, usual), (small(**PRIVATE), None)):
        with torch.device("meta"):
            batch = other.fit_many(data, jobs(2, 60))
            sampled = batch.sample_many(5, [1, 2])
        assert np.isfinite(batch[0].weights[0]).all()
        if same is not None:
            assert [as_bytes(m) for m in batch.models] == [as_bytes(m) for m in same.models]
            np.testing.assert_array_equal(sampled, same.sample_many(5, [1, 2]))


def test_a_device_that_is_not_there_is_refused_before_any_training() -> None:
    for wrong in ("gpu", "cuda:x", ""):
        with pytest.raises(SettingsError, match="device"):
            small(device=wrong)
    if not torch.cuda.is_available():
        with pytest.raises(SettingsError, match="cuda"):
            small(device="cuda").check(people())


def test_a_gpu_trains_one_model_at_a_time() -> None:
    # Measured on an H100: two models trained together differ from each alone in the last bits.
    assert small(device="cuda:1").models_at_once == 1 < small().models_at_once


# What is drawn.


def streams(models: int) -> Streams:
    return Streams(list(range(models)), "training", device=CPU)


def test_noise_is_normal_and_gumbel() -> None:
    for draw, law in ((Streams.normal, stats.norm), (Streams.gumbel, stats.gumbel_r)):
        drawn = draw(streams(3), 400, 37).double().numpy()
        assert drawn.shape == (3, 400, 37)
        for model in drawn:
            assert stats.kstest(model.ravel(), law.cdf).pvalue > 1e-3
            # Neighbours in a row and in a column have nothing to do with one another.
            assert abs(np.corrcoef(model[:, :-1].ravel(), model[:, 1:].ravel())[0, 1]) < 0.04
            assert abs(np.corrcoef(model[:-1].ravel(), model[1:].ravel())[0, 1]) < 0.04
        assert abs(np.corrcoef(drawn[0].ravel(), drawn[1].ravel())[0, 1]) < 0.04
        spread = drawn.std() / law.std()
        assert spread == pytest.approx(1.0, abs=0.02)
    assert streams(1).normal(1000, 100).abs().max() > 3.9


def test_rare_categories_are_as_rare_as_they_should_be() -> None:
    # Category 1 has probability 1e-4 against category 0: the upper tail of a Gumbel number.
    noise = streams(1).gumbel(2_000_000, 2)[0].double().numpy()
    assert np.isfinite(noise).all()
    wins = int((noise[:, 1] + np.log(1e-4) > noise[:, 0]).sum())
    assert stats.binomtest(wins, 2_000_000, 1e-4 / (1 + 1e-4)).pvalue > 1e-3


def test_integers_and_uniform_numbers_are_uniform() -> None:
    integers = streams(2).integers(20_001).numpy()
    assert (integers.min(), integers.max()) > (-1, 2**32 - 10**7)
    assert integers.max() < 2**32
    for model in integers:
        assert stats.kstest(model / 2**32, stats.uniform.cdf).pvalue > 1e-3
    drawn = streams(1).uniform(20_001).numpy()
    assert stats.kstest(drawn[0], stats.uniform.cdf).pvalue > 1e-3


def test_the_test_of_noise_would_notice_another_law() -> None:
    drawn = streams(1).normal(400, 37).double().numpy().ravel()
    assert stats.kstest(drawn, stats.norm(scale=1.1).cdf).pvalue < 1e-3
    assert stats.kstest(drawn, stats.logistic(scale=0.55).cdf).pvalue < 1e-3


def test_minibatches_are_uniform_on_uneven_cells() -> None:
    # Two models with other cells each: one record, none, many; together all but the dropped one.
    rows = np.arange(60, dtype=np.float32)[:, None]
    deals = [np.split(np.arange(60), [1, 1, 20]), np.split(np.arange(1, 60), [30, 33, 50])]
    shape = Architecture(hidden=())
    networks = Networks([draw_weights(shape.layers(1, 1), rng_of(1, "w"), k=4)] * 2, shape)
    teachers = Teachers(networks, [Records(rows, owned) for owned in deals], device=CPU)
    chosen = teachers.minibatches(streams(2).integers(50, 4, 64)).numpy()
    assert chosen.shape == (2, 50, 4, 64)
    for model, owned in enumerate(deals):
        for teacher, cell in enumerate(owned):
            drawn = chosen[model, :, teacher].ravel()
            if len(cell) == 0:
                assert set(drawn) == {60}  # the row of padding
            else:
                assert set(drawn) == set(cell)
                counts = np.bincount(drawn, minlength=61)[cell]
                assert len(cell) == 1 or stats.chisquare(counts).pvalue > 1e-3
    assert not np.array_equal(chosen[0, :, 3] - 20, chosen[1, :, 3] - 50)
