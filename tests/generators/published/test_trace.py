"""What published PATE-GANs do, as they tell it: each deviation where it is on, and nowhere else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpaudit.account import VoteTable
from dpaudit.account.moments import Deviation, algorithm_1_moments
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.plugins.recorder import NoiseOn, Reader, Stage
from dpaudit_generators.published import (
    Borealis,
    Original,
    Smartnoise,
    Switch,
    SwitchedPateGan,
    Synthcity,
    Turing,
    Updated,
)
from reports.cervical import published_table

AUDITED = {
    "updated": Updated,
    "synthcity": Synthcity,
    "borealis": Borealis,
    "smartnoise": Smartnoise,
}
SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=90),
        Column(name="size", kind=Kind.CONTINUOUS, lower=-1.0, upper=1.0),
        Column(name="sick", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="sick",
)


class Notes:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.constants: dict[str, float] = {}
        self.scalings: dict[str, tuple[float, ...]] = {}
        self.counts: list[int] = []
        self.iterations = 0
        self.reads: dict[Reader, list[list[IntArray]]] = defaultdict(list)
        self.teachers: list[dict[int, IntArray]] = []
        self.parameters: list[dict[int, tuple[FloatArray, FloatArray]]] = []
        self.table: VoteTable | None = None
        self.votes: list[tuple[IntArray, IntArray]] = []
        self.draws: list[tuple[NoiseOn, FloatArray]] = []
        self.charges: list[tuple[int, float, float, FloatArray]] = []
        self.inputs: dict[Stage, list[FloatArray]] = defaultdict(list)
        self.unrounded: FloatArray | None = None
        self.entropies: list[tuple[float, float]] = []

    def constant(self, name: str, value: float) -> None:
        self.constants[name] = value

    def scaling(self, column: str, numbers: Sequence[float]) -> None:
        self.scalings[column] = tuple(numbers)

    def label_counts(self, counts: Sequence[int]) -> None:
        self.counts = list(counts)

    def iteration(self) -> None:
        self.iterations += 1
        self.teachers.append({})
        self.parameters.append({})

    def read(self, reader: Reader, rows: IntArray, *, index: int = 0) -> None:
        if reader is Reader.TEACHER:
            self.teachers[-1][index] = rows
        else:
            self.reads[reader].append([rows])

    def taught(self, index: int, *, before: FloatArray, after: FloatArray) -> None:
        self.parameters[-1][index] = (before, after)

    def losses(self, own: float, others: float) -> None:
        self.entropies.append((own, others))

    def promised(self, table: VoteTable) -> None:
        self.table = table

    def voted(self, ones: IntArray, labels: IntArray) -> None:
        self.votes.append((ones, labels))

    def noise(self, draws: FloatArray, *, on: NoiseOn) -> None:
        self.draws.append((on, draws))

    def charged(
        self, queries: int, *, before: float, after: float, moments: FloatArray | None
    ) -> None:
        assert moments is not None
        self.charges.append((queries, before, after, moments))

    def fed(self, stage: Stage, inputs: FloatArray) -> None:
        self.inputs[stage].append(inputs)

    def output(self, unrounded: FloatArray) -> None:
        self.unrounded = unrounded

    def seen(self, teacher: int) -> set[int]:
        """Records that a teacher ever read."""
        return {int(row) for one in self.teachers for row in one.get(teacher, [])}


def small(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 70, n)
    return SCHEMA.canonical(
        pd.DataFrame(
            {
                "age": age,
                "size": np.round(rng.normal(0, 0.2, n).clip(-1, 1), 3),
                "sick": np.where(age > 60, "yes", "no"),
            }
        )
    )


def traced(generator: SwitchedPateGan, data: pd.DataFrame, seed: int = 3) -> Notes:
    notes = Notes()
    told = generator.trace(data, n_rows=50, seed=seed, recorder=notes)
    silent = generator.fit(data, seed=seed).sample(50, seed=seed)
    pd.testing.assert_frame_equal(told, silent)
    return notes


def switched(*names: str, **settings: object) -> Notes:
    given: dict[str, object] = {"teachers": 4, "iterations": 3, "also": ",".join(names)}
    return traced(SwitchedPateGan(schema=SCHEMA, **(given | settings)), small())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plain() -> Notes:
    return switched()


@pytest.fixture(scope="module")
def cervical(data_folder: Path) -> pd.DataFrame:
    return published_table(data_folder)


def numeric(table: pd.DataFrame) -> Schema:
    return Schema(
        columns=tuple(
            Column(
                name=name,
                kind=Kind.INTEGER if table[name].dtype.kind == "i" else Kind.CONTINUOUS,
                lower=0.0,
                upper=float(table[name].max()) + 1.0,
            )
            for name in table
        )
    )


@pytest.mark.ci
def test_partitions_of_the_published_audit(cervical: pd.DataFrame) -> None:
    sizes, seen = {}, {}
    for name, kind in AUDITED.items():
        # What a teacher may draw from shows once it has drawn often enough.
        generator = kind(schema=numeric(cervical), without="teachers-from-rows", iterations=30)
        notes = Notes()
        generator.trace(cervical, n_rows=1, seed=3, recorder=notes)
        seen[name] = [notes.seen(teacher) for teacher in range(5)]
        sizes[name] = [len(one) for one in seen[name]]
    assert sizes["updated"] == [137] * 5
    assert all(one == seen["updated"][0] for one in seen["updated"])
    assert all(665 <= size <= 680 for size in sizes["synthcity"])  # published: 670 to 675
    pairs = [len(a & b) for a, b in combinations(seen["synthcity"], 2)]
    assert all(645 <= pair <= 670 for pair in pairs)  # published: 655 to 663
    assert sizes["borealis"] == [137, 137, 137, 137, 138]
    assert sizes["smartnoise"] == [138, 137, 137, 137, 137]
    for name in ("borealis", "smartnoise"):
        assert all(a.isdisjoint(b) for a, b in combinations(seen[name], 2))


@pytest.mark.parametrize(
    ("kind", "iterations", "spent"),
    [
        pytest.param(Borealis, 33, 1.00744, marks=pytest.mark.ci),
        (Smartnoise, 33, 1.00744),
        pytest.param(Updated, 158, 1.00035, marks=pytest.mark.ci),
    ],
)
def test_published_trainings_stop_after_they_spent(
    kind: type[SwitchedPateGan], iterations: int, spent: float
) -> None:
    # Networks are small here; what is charged does not depend on them.
    data = pd.concat([small(120)] * 3, ignore_index=True)
    notes = traced(kind(schema=SCHEMA, without="teachers-from-rows"), data)
    assert notes.iterations == iterations
    assert notes.charges[-1][2] == pytest.approx(spent, abs=5e-6)
    if kind is not Updated:
        assert len(notes.charges) == 165


@pytest.mark.ci
def test_synthcity_stops_by_what_it_charged(cervical: pd.DataFrame) -> None:
    notes = traced(Synthcity(schema=numeric(cervical), epsilon=0.6), cervical)
    asked = sum(len(labels) for _, labels in notes.votes)
    charged = sum(queries for queries, *_ in notes.charges)
    assert notes.constants["batch"] == 137
    assert 0.35 < charged / asked < 0.65
    free = [labels for _, labels in notes.votes if labels.mean() >= 0.5]
    assert asked - charged == sum(map(len, free))
    assert notes.charges[-1][2] <= 0.6


def test_without_switches_the_promise_is_kept(plain: Notes) -> None:
    assert SwitchedPateGan(schema=SCHEMA).switches == frozenset()
    cells = [plain.seen(teacher) for teacher in range(4)]
    assert all(a.isdisjoint(b) for a, b in combinations(cells, 2))
    assert len(set.union(*cells)) == 120
    assert not plain.reads
    assert plain.counts == []
    assert plain.scalings == {"age": (0.0, 90.0), "size": (-1.0, 1.0)}
    assert plain.constants == {"teachers": 4, "batch": 64, "gamma": 1e-3}
    assert plain.unrounded is not None
    assert plain.unrounded.shape == (50, 2)
    for (ones, labels), (on, draws) in zip(plain.votes, plain.draws, strict=True):
        assert on is NoiseOn.VOTES
        assert np.array_equal(labels, ones + draws[:64] > (4 - ones) + draws[64:])
    assert [queries for queries, *_ in plain.charges] == [64] * 15
    for earlier, later in zip(plain.parameters, plain.parameters[1:], strict=False):
        assert np.array_equal(earlier[0][1], later[0][0])  # teachers go on from where they were


@pytest.mark.parametrize("gamma", [1e-3, 0.01])
def test_without_switches_the_budget_is_never_passed(gamma: float) -> None:
    notes = switched(gamma=gamma, iterations=100)
    assert 0.7 < notes.charges[-1][2] <= 1.0
    assert notes.iterations <= 33


def test_when_it_stops_does_not_depend_on_the_votes() -> None:
    lengths = {
        len(traced(SwitchedPateGan(schema=SCHEMA, gamma=0.3, epsilon=400.0), small(), seed).votes)
        for seed in range(3)
    }
    assert len(lengths) == 1


def accounted(notes: Notes, deviations: set[Deviation], *, k: int, gamma: float) -> FloatArray:
    ones = np.concatenate([one for one, _ in notes.votes])
    return algorithm_1_moments(
        np.stack([k - ones, ones], axis=-1),
        gamma=gamma,
        moments=np.arange(1, len(notes.charges[-1][3]) + 1),
        deviations=deviations,
    ).sum(axis=0)


@pytest.mark.parametrize(
    ("names", "deviations"),
    [
        ((), set()),
        (("accountant-missing-log",), {Deviation.MISSING_LOG}),
        (("accountant-exponent-slip",), {Deviation.EXPONENT_SLIP}),
    ],
)
def test_accountants_where_votes_matter(names: tuple[str, ...], deviations: set[Deviation]) -> None:
    generator = SwitchedPateGan(schema=SCHEMA, also=",".join(names)).exercises()[0]
    notes = traced(generator, small())
    spent = notes.charges[-1][3]
    np.testing.assert_allclose(spent, accounted(notes, deviations, k=5, gamma=1.25), rtol=1e-9)
    correct = accounted(notes, set(), k=5, gamma=1.25)
    assert np.allclose(spent, correct) == (not deviations)
    assert len(notes.votes) == 15


def test_partition_switches() -> None:
    everything = set(range(120))
    notes = switched("partition-all-rows")
    assert notes.seen(0) & notes.seen(1)
    assert len(notes.seen(0)) > 60
    notes = switched("partition-last-only")
    assert len(set.union(*(notes.seen(teacher) for teacher in range(4)))) == 30
    notes = switched("partition-reshuffled")
    assert len(notes.seen(0)) > 60
    for one in notes.teachers:
        parts = [set(rows.tolist()) for rows in one.values()]
        assert all(a.isdisjoint(b) for a, b in combinations(parts, 2))
    notes = switched("partition-by-position")
    parts = [notes.seen(teacher) for teacher in range(4)]
    assert [max(part) - min(part) + 1 for part in parts] == [30] * 4
    assert set.union(*parts) == everything


def test_one_critic_in_place_of_teachers() -> None:
    notes = switched("no-pate")
    assert set(notes.reads) == {Reader.STUDENT}
    assert notes.votes == []
    assert notes.charges == []
    drawn = np.concatenate([draws for _, draws in notes.draws])
    assert {on for on, _ in notes.draws} == {NoiseOn.LABELS}
    assert np.abs(drawn).mean() == pytest.approx(1.0, rel=0.1)  # Laplace of scale 1 / epsilon
    assert notes.constants["gradient_penalty"] == 10.0
    assert switched("no-pate", "penalty-from-teachers").constants["gradient_penalty"] == 4.0
    for published, spread in ((Original, 2.421), (Turing, 0.668)):
        notes = traced(published(schema=SCHEMA, iterations=20), small())
        drawn = np.concatenate([draws for _, draws in notes.draws])
        assert drawn.std() == pytest.approx(spread, rel=0.05)


def test_noise_switches(plain: Notes) -> None:
    def spread(notes: Notes) -> float:
        return float(np.mean(np.abs(np.concatenate([draws for _, draws in notes.draws]))))

    assert spread(plain) == pytest.approx(1000.0, rel=0.1)
    notes = switched("noise-scale-inverted")
    assert spread(notes) == pytest.approx(1e-3, rel=0.1)
    notes = switched("one-noise-charged-as-two")
    assert [len(draws) for _, draws in notes.draws] == [64] * 15
    assert spread(notes) == pytest.approx(1000.0, rel=0.15)
    notes = switched("noise-gaussian-on-labels")
    assert {on for on, _ in notes.draws} == {NoiseOn.LABELS}
    drawn = np.concatenate([draws for _, draws in notes.draws])
    assert drawn.std() == pytest.approx(4.845, rel=0.08)
    notes = switched("noise-gaussian-on-labels", "delta-xor")
    drawn = np.concatenate([draws for _, draws in notes.draws])
    assert drawn.std() == pytest.approx(2.421, rel=0.08)


def test_delta_switches() -> None:
    orders = np.arange(1, 101)
    for names, inverse in (
        ((), 1e5),
        (("delta-xor",), 15.0),
        (("delta-multiplied",), 10.0**1e-5),
        (("delta-ignored",), 120 * np.sqrt(120)),
    ):
        _, _, after, moments = switched(*names).charges[-1]
        assert after == pytest.approx(np.min((moments + np.log(inverse)) / orders), rel=1e-9)


def test_who_sees_real_records(plain: Notes) -> None:
    assert plain.reads == {}
    for name, reader in (
        ("student-sees-real-rows", Reader.STUDENT),
        ("generator-sees-real-rows", Reader.GENERATOR),
        ("conditions-from-data", Reader.CONDITIONS),
    ):
        assert set(switched(name).reads) == {reader}


def test_teachers_refitted() -> None:
    notes = switched("teachers-refitted")
    for one in notes.parameters:
        assert not one[0][0].any()  # from scratch
        assert one[0][1].any()


def test_budget_exceeded_and_free_queries() -> None:
    notes = switched("budget-exceeded", iterations=100)
    assert notes.charges[-1][2] > 1.0
    assert notes.charges[-5][1] < 1.0
    notes = switched("queries-not-accounted", iterations=10)
    charged = sum(queries for queries, *_ in notes.charges)
    asked = sum(len(labels) for _, labels in notes.votes)
    assert 0 < charged < asked


def test_rows_decide_teachers_and_batch() -> None:
    assert switched("teachers-from-rows").constants["teachers"] == 1
    assert switched("batch-from-rows").constants["batch"] == 30


def test_inputs_of_the_generator(plain: Notes) -> None:
    for stage in Stage:
        fed = np.concatenate([one.ravel() for one in plain.inputs[stage]])
        assert np.abs(fed).max() <= 1.0
    notes = switched("sampling-noise-differs")
    assert np.abs(np.concatenate(notes.inputs[Stage.TRAINING])).max() <= 1.0
    assert np.abs(np.concatenate(notes.inputs[Stage.SAMPLING])).max() > 1.0


def test_labels_copied() -> None:
    data = small()
    generator = SwitchedPateGan(schema=SCHEMA, teachers=4, iterations=2, also="labels-copied")
    notes = traced(generator, data)
    assert notes.counts == sorted(data["sick"].value_counts().tolist())
    made = generator.fit(data, seed=1).sample(240, seed=1)
    assert made["sick"].tolist() == data["sick"].tolist() * 2


def test_bounds_from_data_scale_the_output() -> None:
    data = small()
    notes = switched("bounds-from-data")
    assert notes.scalings["age"] == (data["age"].min(), data["age"].max())


def test_refusals_and_fixes() -> None:
    with pytest.raises(SettingsError, match="did you mean 'no-pate'"):
        SwitchedPateGan(schema=SCHEMA, also="nopate")
    with pytest.raises(SettingsError, match=r"`gamma` must be a number above 0, got 0\.0"):
        SwitchedPateGan(schema=SCHEMA, gamma=0.0)
    with pytest.raises(SettingsError, match="penalty-from-teachers needs no-pate"):
        SwitchedPateGan(schema=SCHEMA, also="penalty-from-teachers")
    with pytest.raises(DataError, match="teachers"):
        SwitchedPateGan(schema=SCHEMA, teachers=200).check(small())
    fixes = Original(schema=SCHEMA).fixes()
    assert set(fixes) == {str(switch) for switch in Original.PUBLISHED}
    for name, fixed in fixes.items():
        assert fixed.switches == Original.PUBLISHED - {Switch(name)}  # type: ignore[attr-defined]
    assert Original(schema=SCHEMA).exercises() == ()
    with_pate = Turing(schema=SCHEMA).fixes()["no-pate"]
    assert with_pate.switches == Turing.PUBLISHED - {Switch.NO_PATE, Switch.PENALTY_FROM_TEACHERS}
