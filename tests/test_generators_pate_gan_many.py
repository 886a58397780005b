"""Many PATE-GANs at once: each is the model it would be alone, and the oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from dpaudit.account import LabelPlan
from dpaudit.encoding import table_of
from dpaudit.errors import DataError
from dpaudit.protocols import BatchGenerator, Job, World
from dpaudit.schema import Column, Kind, Schema
from dpaudit.seeds import rng_of
from dpaudit_generators.pate import IndexArray, LabelRelease
from dpaudit_generators.pate_gan import PUBLISHED, PateGan, PateGanModel, training
from dpaudit_generators.pate_gan.draws import gumbel, normal, uniform
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.sequential import train_one
from dpaudit_generators.pate_gan.settings import Settings
from dpaudit_generators.pate_gan.stack import Critics, initial
from dpaudit_generators.pate_gan.teachers import Teachers
from dpaudit_generators.pate_gan.trainee import Records, Trainee, Weights

NUMBERS = Schema(
    columns=tuple(
        Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for i in range(29)
    )
)
MIXED = Schema(
    columns=(
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0.0, upper=100.0, missing=True),
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="paid",
)


def numbers(n: int = 686) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return NUMBERS.canonical(pd.DataFrame(rng.beta(2, 5, (n, 29)), columns=NUMBERS.names))


def mixed(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    income = rng.uniform(0.0, 100.0, n)
    income[::7] = np.nan
    columns = {
        "job": rng.choice(["clerk", "cook"], n),
        "income": income,
        "age": rng.integers(20, 60, n),
        "paid": rng.integers(0, 2, n),
    }
    return MIXED.canonical(pd.DataFrame(columns))


def published(rounds: int) -> PateGan:
    return PateGan(
        schema=NUMBERS, teachers=5, accuracy=0.5002, **(dict(PUBLISHED) | {"rounds": rounds})
    )


def small(**options: Any) -> PateGan:
    return PateGan(schema=MIXED, **{"teachers": 12, "rounds": 6, "epsilon": 8.0} | options)


PRIVATE: dict[str, Any] = {"bounds": "private", "label_proportions": "private"}


def jobs(n: int, rows: int) -> list[Job]:
    """Both worlds, mixed; half of the jobs drop a row, not all the same."""
    return [
        Job(World.IN, i, (), 100 + i) if i % 2 else Job(World.OUT, i, (3 * i % rows,), 100 + i)
        for i in range(n)
    ]


def as_bytes(model: PateGanModel) -> list[bytes]:
    return [weight.tobytes() for weight in model.weights]


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
            trainees: Sequence[Trainee], *, head: Head, plan: LabelPlan, settings: Settings
        ) -> list[Weights]:
            for trainee, seen in zip(trainees, witness.oracle_votes, strict=True):

                def watch(counts: IndexArray, seen: list[int] = seen) -> None:
                    seen += counts.tolist()

                witness.oracle.append(
                    train_one(trainee, head=head, plan=plan, settings=settings, watch=watch)
                )
            return train(trainees, head=head, plan=plan, settings=settings)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "train", both)
            patch.setattr(Teachers, "votes", watched)
            self.models = gan.fit_many(data, many)


@pytest.mark.parametrize(
    ("gan", "data"),
    [
        (published(30), numbers()),
        (small(rounds=30), mixed()),
        (small(replay=False, teacher_hidden=(), student_hidden=(), **PRIVATE), mixed()),
        (small(generator_hidden=(), teacher_hidden=(3, 17), batch=7), mixed(5)),
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
    seeds = [job.trial for job in many]
    alone = [gan.fit_many(data, [job])[0] for job in many]
    assert len({model.weights[0].tobytes() for model in alone}) == len(many)
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
        {"batch": 5, "student_hidden": (17, 1)},
    ],
    ids=["default", "private", "one teacher", "odd"],
)
def test_nor_with_categories_and_bounds_of_its_own(options: dict[str, Any]) -> None:
    assert_alone_as_in_company(small(**options), mixed(), [1, 3, 5], rows=33)


@pytest.mark.slow
def test_nor_after_three_hundred_iterations_of_32_models() -> None:
    assert_alone_as_in_company(published(300), numbers(), [1, 3, 8, 24, 32])


def test_to_drop_rows_is_to_train_without_them() -> None:
    data = mixed()
    for gan in (small(epsilon=200.0), small(bounds="data", epsilon=200.0)):
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
    assert isinstance(gan, BatchGenerator)
    with pytest.raises(DataError, match="does not fit the schema"):
        gan.fit_many(mixed().drop(columns="age"), jobs(2, 60))


def test_each_model_pays_for_its_own_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    released: dict[int, int] = {}
    release = LabelRelease.release

    def counting(self: LabelRelease, votes: Any) -> IndexArray:
        labels = release(self, votes)
        released[id(self)] = self._budget.spent
        return labels

    monkeypatch.setattr(LabelRelease, "release", counting)
    gan = small()
    gan.fit_many(mixed(), jobs(3, 60))
    assert list(released.values()) == [gan.plan.labels] * 3


# What is drawn.


def streams(models: int) -> list[np.random.Generator]:
    return [rng_of(seed, "training") for seed in range(models)]


def test_noise_is_normal_and_gumbel() -> None:
    for draw, law in ((normal, stats.norm), (gumbel, stats.gumbel_r)):
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
    assert normal(streams(1), 1000, 100).abs().max() > 3.9


def test_the_test_of_noise_would_notice_another_law() -> None:
    drawn = normal(streams(1), 400, 37).double().numpy().ravel()
    assert stats.kstest(drawn, stats.norm(scale=1.1).cdf).pvalue < 1e-3
    assert stats.kstest(drawn, stats.logistic(scale=0.55).cdf).pvalue < 1e-3


def test_minibatches_are_uniform_on_uneven_cells() -> None:
    # Two models with other cells each: one record, none, many; together all but the dropped one.
    rows = np.arange(60, dtype=np.float32)[:, None]
    deals = [np.split(np.arange(60), [1, 1, 20]), np.split(np.arange(1, 60), [30, 33, 50])]
    networks = Critics([initial(4, [1, 1], rng_of(1, "w"))] * 2, rate=0.1, betas=(0.5, 0.9))
    teachers = Teachers(networks, [Records(rows, owned) for owned in deals])
    chosen = teachers.minibatches(uniform(streams(2), 50, 4, 64)).numpy()
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
