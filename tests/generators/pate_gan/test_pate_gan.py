"""PATE-GAN as a whole: what it promises, what it holds, what it draws."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import torch

from dpaudit.account import LabelBudget, VoteTable, calibrate
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load_table
from dpaudit.plugins.protocols import Generator, Model
from dpaudit_generators.networks.stack import Networks
from dpaudit_generators.pate import LabelReleases
from dpaudit_generators.pate_gan import Bounds, PateGan, PateGanModel, training
from dpaudit_generators.pate_gan.settings import Records
from dpaudit_generators.pate_gan.training import Teachers
from dpaudit_generators.toys import NullGenerator
from samples import people

MIXED = Schema(
    columns=(
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook", "miner")),
        Column(name="income", kind=Kind.CONTINUOUS, lower=-5.0, upper=1000.0, missing=True),
        Column(name="age", kind=Kind.INTEGER, lower=17, upper=90),
        Column(name="paid", kind=Kind.BINARY, categories=(0, 1)),
    ),
)


def _mixed(n: int = 60) -> pd.DataFrame:
    return people(n, schema=MIXED)


def _small(schema: Schema = MIXED, **options: Any) -> PateGan:
    given = {"teachers": 12, "rounds": 4, "epsilon": 2.0}
    return PateGan(schema=schema, **given | options)


def _same(one: PateGanModel, other: PateGanModel) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


# The promise.


def test_the_claim_is_the_budget_and_the_plan_knows_no_data() -> None:
    generator = PateGan(schema=MIXED)
    assert isinstance(generator, Generator)
    claim = generator.claim
    assert (claim.epsilon, claim.delta, claim.neighbours) == (1.0, 1e-5, Neighbours.ADD_REMOVE)
    assert generator.plan == calibrate(epsilon=1.0, delta=1e-5, k=50, accuracy=0.65)
    assert (generator.plan.labels, round(generator.plan.scale, 1)) == (144, 38.9)
    assert generator.plan.epsilon <= 1.0


@pytest.mark.parametrize("n", [0, 1, 30, 60])
def test_exactly_the_planned_labels_are_paid_for_then_released(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []
    spend, release = LabelBudget.spend, VoteTable.release

    def spending(self: LabelBudget, labels: int = 1) -> None:
        events.append(("spend", labels))
        spend(self, labels)

    def releasing(self: VoteTable, votes: Any, words: Any) -> Any:
        events.append(("release", votes.size))
        return release(self, votes, words)

    monkeypatch.setattr(LabelBudget, "spend", spending)
    monkeypatch.setattr(VoteTable, "release", releasing)
    generator = _small()
    generator.fit(_mixed().head(n), seed=1)
    assert [name for name, _ in events] == ["spend", "release"] * 4
    assert events[::2] == [("spend", labels) for _, labels in events[1::2]]
    assert sum(labels for _, labels in events[::2]) == generator.plan.labels


@pytest.mark.parametrize("bounds", [Bounds.SCHEMA, Bounds.DATA])
def test_the_generator_depends_on_the_data_through_labels_alone(
    bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Post-processing, tested: whatever the table, equal labels give equal weights bit for bit.
    def fixed(self: LabelReleases, votes: Any, *, going: Any) -> Any:
        return np.arange(votes.size).reshape(votes.shape) % 3 % 2

    generator = _small(bounds=bounds)
    free = generator.fit(_mixed(), seed=1)
    monkeypatch.setattr(LabelReleases, "release", fixed)
    here = generator.fit(_mixed(), seed=1)
    for other in (_mixed().drop(index=5), _mixed(31), _mixed().head(0)):
        assert _same(generator.fit(other, seed=1), here)
    assert not _same(free, here)


class Watch:
    """Trains with labels fixed, and tells which teachers a removed record reaches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = self

        def fixed(self: LabelReleases, votes: Any, *, going: Any) -> Any:
            return np.arange(votes.size).reshape(votes.shape) % 2

        class Watched(Teachers):
            def __init__(
                self, networks: Networks, records: Sequence[Records], *, device: Any
            ) -> None:
                super().__init__(networks, records, device=device)
                watch.networks, watch.owned = networks, records[0].owned

        self.networks: Networks
        self.owned: Sequence[Any] = []
        monkeypatch.setattr(training, "Teachers", Watched)
        monkeypatch.setattr(LabelReleases, "release", fixed)

    def dealt(self, generator: PateGan, table: pd.DataFrame) -> list[list[int]]:
        generator.fit(table, seed=1)
        return [table.index[cell].tolist() for cell in self.owned]

    def reached(self, generator: PateGan, data: pd.DataFrame, removed: int) -> list[bool]:
        with_it, networks = self.dealt(generator, data), self.networks
        without = self.dealt(generator, data.drop(index=removed))
        assert without == [[row for row in cell if row != removed] for cell in with_it]
        return [
            any(not np.array_equal(a, b) for a, b in zip(here, there, strict=True))
            for here, there in zip(networks.weights(), self.networks.weights(), strict=True)
        ]


def test_a_record_reaches_one_teacher_of_a_whole_training(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, generator, data = Watch(monkeypatch), _small(), _mixed(12)
    for removed in range(12):
        assert sum(watch.reached(generator, data, removed)) == 1
    dealt = watch.dealt(generator, data)
    assert 1 in map(len, dealt)  # so a cell lost its last record above
    assert 0 in map(len, dealt)


def test_bounds_of_the_data_let_an_extreme_record_reach_all_teachers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch, data = Watch(monkeypatch), _mixed()
    data.loc[3, "income"] = 900.0
    for bounds, removed, reached in (("schema", 3, 1), ("data", 5, 1), ("data", 3, 12)):
        assert sum(watch.reached(_small(bounds=bounds), data, removed)) == reached


def test_a_model_holds_no_data() -> None:
    data = _mixed()
    generator = _small()
    model = generator.fit(data, seed=1)
    assert isinstance(model, Model)
    own = {"schema", "weights", "critic", "start", "released_numbers", "proportions", "claim"}
    assert set(vars(model)) == own
    pickled = cloudpickle.dumps(model)
    values = data["income"].dropna().to_numpy()
    encoded = encode(data, MIXED)[:, 3][data["income"].notna()]
    for number in (*values, *encoded):
        for kind in (">f8", "<f8", "<f4"):
            assert np.array(number, dtype=kind).tobytes() not in pickled
    assert len(cloudpickle.dumps(generator.fit(data.head(3), seed=1))) == len(pickled)


@pytest.mark.parametrize(("bounds", "follows"), [("schema", False), ("data", True)])
def test_the_range_of_the_output_follows_the_data_only_on_request(
    bounds: str, follows: bool
) -> None:
    generator = _small(bounds=bounds)
    data = _mixed()
    extreme = data.assign(income=data["income"].where(data.index != 3, 900.0))
    tops = [
        generator.fit(table, seed=1).sample(3000, seed=2)["income"].max()
        for table in (data, extreme)
    ]
    if follows:
        assert tops[0] <= data["income"].max()
        assert tops[1] > 600
    else:
        assert min(tops) > data["income"].max()
    assert ("not proved" in generator.claim.source) is follows
    assert generator.claim.epsilon == 2.0


# Streams.


def test_a_seed_fixes_everything_bit_for_bit_and_the_order_of_rows_nothing() -> None:
    data, generator = _mixed(), _small()
    model = generator.fit(data, seed=7)
    copy = cloudpickle.loads(cloudpickle.dumps(generator))
    assert _same(model, copy.fit(data, seed=7))
    assert _same(model, generator.fit(data.sample(frac=1.0, random_state=1), seed=7))
    assert not _same(model, generator.fit(data, seed=8))
    assert model.sample(40, seed=1).equals(model.sample(40, seed=1))
    assert not model.sample(40, seed=1).equals(model.sample(40, seed=2))


def test_without_a_seed_everything_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    token_bytes = secrets.token_bytes

    def counted(size: int) -> bytes:
        drawn.append(size)
        return token_bytes(size)

    monkeypatch.setattr(secrets, "token_bytes", counted)
    data, generator = _mixed(), _small()
    model = generator.fit(data, seed=None)
    assert sum(drawn) >= 8 * generator.plan.labels  # the labels: 64 bits of the system each
    assert not _same(model, generator.fit(data, seed=None))
    assert not model.sample(40, seed=None).equals(model.sample(40, seed=None))
    drawn.clear()
    seeded = generator.fit(data, seed=1)
    assert drawn == []
    # Who holds a model can tell which it was.
    assert "operating system" in model.claim.source
    assert "drawn from a seed, for audits" in seeded.claim.source
    assert model.claim.epsilon == seeded.claim.epsilon == generator.claim.epsilon


def test_the_global_generators_are_neither_used_nor_touched() -> None:
    def states() -> list[bytes]:
        ours = cloudpickle.dumps(np.random.get_state(legacy=False))  # noqa: NPY002 - only read
        return [ours, torch.random.get_rng_state().numpy().tobytes()]

    before = states()
    _small().fit(_mixed(), seed=1).sample(10, seed=1)
    assert states() == before


# What comes out.


@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("bounds", Bounds)
def test_outputs_fit_a_mixed_schema_and_are_not_constant(n: int, bounds: Bounds) -> None:
    data = _mixed()
    table = _small(bounds=bounds).fit(data, seed=1).sample(n, seed=2)
    assert len(table) == n
    assert MIXED.problems(table) == []
    assert list(table.dtypes) == list(data.dtypes)
    if n > 1:
        assert (table.nunique() > 1).all()
        assert table["income"].isna().any()


@pytest.mark.ci
def test_with_a_large_budget_it_learns_and_its_columns_vary() -> None:
    data = load_table("sample:breast-cancer")
    schema = Schema.infer(data, label="benign")
    real = encode(data, schema)

    def distance(table: pd.DataFrame) -> float:
        assert schema.problems(table) == []
        return float(np.abs(encode(table, schema).mean(axis=0) - real.mean(axis=0)).mean())

    generator = PateGan(schema=schema, epsilon=10.0)
    tables = [generator.fit(data, seed=s).sample(len(data), seed=s) for s in range(4)]
    null = NullGenerator(schema=schema).fit(data, seed=0).sample(len(data), seed=0)
    assert np.mean([distance(table) for table in tables]) < 0.85 * distance(null)
    for table in tables:
        assert encode(table, schema).std(axis=0).min() > 0.01


def test_adult_runs(data_folder: Path) -> None:
    data = load_table(data_folder / "adult_500.csv.gz")
    schema = Schema.infer(data)
    data = schema.canonical(data)
    generator = PateGan(schema=schema, rounds=5)
    generator.check(data)
    table = generator.fit(data, seed=1).sample(500, seed=2)
    assert schema.problems(table) == []
    assert (table.nunique() > 1).all()


# Refusals.


def test_fewer_records_than_teachers_are_refused_before_training_but_never_in_it() -> None:
    generator = _small()
    generator.check(_mixed(12))
    with pytest.raises(DataError, match=r"11 rows for 12 teachers: .*, such as teachers=2$"):
        generator.check(_mixed(11))
    generator.fit(_mixed(11), seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon` must be a number above 0"),
        ({"epsilon": float("inf")}, "epsilon` .* got inf"),
        ({"delta": 0.0}, "delta` must be a number in"),
        ({"teachers": 0}, "`teachers` must be a whole number of at least 1"),
        ({"bounds": "public"}, "bounds is 'public': use schema, private, data"),
        ({"release_share": 1.0}, r"`release_share` must be a number in \(0, 1\)"),
        ({"label_proportions": "private"}, "needs a schema that names a label column"),
        ({"epsilon": 0.01, "accuracy": 0.9}, "pays for no label: one label"),
        ({"batch": 0}, "`batch` must be a whole number of at least 1, got 0"),
        ({"rounds": 1.5}, "`rounds` must be a whole number .* got 1.5"),
        ({"generator_hidden": 64}, "generator_hidden is 64: give each layer's width"),
        (
            {"teacher_hidden": [8, 0]},
            "`teacher_hidden` must be a whole number of at least 1, got 0",
        ),
        ({"replay": 1}, "replay is 1: use true or false"),
        ({"betas": [0.5, 1.0]}, r"betas is \[0.5, 1.0\]: use two numbers"),
        ({"learning_rate": 0.0}, "`learning_rate` must be a number above 0"),
    ],
)
def test_senseless_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        PateGan(schema=MIXED, **change)
