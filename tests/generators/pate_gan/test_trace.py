"""What a traced PATE-GAN tells, and that telling changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.account import VoteTable
from dpaudit.plugins.recorder import NoiseOn, Reader, Recorder, Stage, can_be_traced
from dpaudit_generators.networks.source import Head
from dpaudit_generators.pate import cells
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator
from dpaudit_generators.pate_gan.model import CHOICES
from samples import PEOPLE, people

PRIVATE: dict[str, Any] = {"bounds": "private", "label_proportions": "private"}


class Notes(Recorder):
    """Keeps all that it is told, in order, as (what, numbers)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def all(self, what: str) -> list[dict[str, Any]]:
        return [numbers for name, numbers in self.told if name == what]

    def _note(self, what: str, **numbers: Any) -> None:
        self.told.append((what, numbers))

    def constant(self, name: str, value: float) -> None:
        self._note("constant", name=name, value=value)

    def scaling(self, column: str, numbers: Sequence[float]) -> None:
        self._note("scaling", column=column, numbers=tuple(numbers))

    def label_counts(self, counts: Sequence[int]) -> None:
        self._note("label_counts", counts=counts)

    def iteration(self) -> None:
        self._note("iteration")

    def read(self, reader: Reader, rows: Any, *, index: int = 0) -> None:
        self._note("read", reader=reader, rows=rows, index=index)

    def taught(self, index: int, *, before: Any, after: Any) -> None:
        self._note("taught", index=index, before=before, after=after)

    def losses(self, own: float, others: float) -> None:
        self._note("losses", own=own, others=others)

    def promised(self, table: VoteTable) -> None:
        self._note("promised", table=table)

    def voted(self, ones: Any, labels: Any) -> None:
        self._note("voted", ones=ones, labels=labels)

    def noise(self, draws: Any, *, on: NoiseOn) -> None:
        self._note("noise", draws=draws, on=on)

    def charged(self, queries: int, *, before: float, after: float, moments: Any) -> None:
        self._note("charged", queries=queries, before=before, after=after, moments=moments)

    def fed(self, stage: Stage, inputs: Any) -> None:
        self._note("fed", stage=stage, inputs=inputs)

    def output(self, unrounded: Any) -> None:
        self._note("output", unrounded=unrounded)


def gan(kind: type[TaughtGenerator] = PateGan, **options: Any) -> Any:
    given = {"teachers": 6, "rounds": 8, "epsilon": 8.0}
    return kind(schema=PEOPLE, **given | options)


def traced(generator: TaughtGenerator, data: pd.DataFrame, *, n_rows: int = 300) -> Notes:
    notes = Notes()
    generator.trace(data, n_rows=n_rows, seed=5, recorder=notes)
    return notes


@pytest.mark.parametrize(
    "options",
    [
        {},
        PRIVATE,
        {"bounds": "data", "teachers": 2, "teacher_hidden": (), "replay": False},
        {"teachers": 40, "batch": 7, "epsilon": 1.0},
        {"kind": PateGanMarginals},
    ],
    ids=["default", "private", "data", "empty cells", "marginals"],
)
def test_a_trace_is_a_fit_and_a_sample(options: dict[str, Any]) -> None:
    generator, data = gan(**options), people()
    assert can_be_traced(generator)
    told = generator.trace(data, n_rows=300, seed=5, recorder=Notes())
    plain = generator.fit(data, seed=5).sample(300, seed=5)
    pd.testing.assert_frame_equal(told, plain, check_exact=True)
    assert not told.equals(generator.fit(data, seed=6).sample(300, seed=5))


def test_each_teacher_reads_its_own_cell_and_no_other() -> None:
    data = people()
    notes = traced(gan(rounds=40), data)
    reads = notes.all("read")
    assert len(notes.all("iteration")) == 40
    assert {read["reader"] for read in reads} == {Reader.TEACHER}
    assert {len(read["rows"]) for read in reads} == {5 * 64}
    owned = [
        {int(row) for read in reads if read["index"] == teacher for row in read["rows"]}
        for teacher in range(6)
    ]
    assert sum(map(len, owned)) == len(set.union(*owned)) == len(data)  # disjoint, none left out
    key = _partition_key(5)
    assert owned == [set(cell.tolist()) for cell in _cells(data, key)]


def _partition_key(seed: int) -> bytes:
    from dpaudit.seeds import rng_of

    return rng_of(seed, "partition").bytes(32)


def _cells(data: pd.DataFrame, key: bytes) -> Sequence[Any]:
    from dpaudit.model.encoding import encode

    return cells(encode(data, PEOPLE), teachers=6, key=key)


def test_a_teacher_without_records_reads_none_and_does_not_vote() -> None:
    data = people(3)
    notes = traced(gan(teachers=20), data)
    readers = {read["index"] for read in notes.all("read")}
    assert 1 <= len(readers) <= 3
    assert {row for read in notes.all("read") for row in read["rows"].tolist()} == {0, 1, 2}
    assert max(votes["ones"].max() for votes in notes.all("voted")) <= 3
    assert (len(notes.all("losses")) > 0) == (0 in readers)


def test_labels_follow_the_promised_table_and_none_is_free() -> None:
    generator = gan(teachers=6, epsilon=30.0, rounds=40, student_steps=20)
    notes = traced(generator, people())
    plan, [promised] = generator.plan, notes.all("promised")
    assert promised["table"] == plan.table
    ones = np.concatenate([votes["ones"] for votes in notes.all("voted")])
    labels = np.concatenate([votes["labels"] for votes in notes.all("voted")])
    assert len(labels) == plan.labels == sum(one["queries"] for one in notes.all("charged"))
    assert ones.min() >= 0
    assert ones.max() <= 6
    expected = plan.table.probabilities[ones]
    spread = np.sqrt((expected * (1 - expected)).sum())
    assert abs(labels.sum() - expected.sum()) < 4 * spread
    assert abs(labels.sum() - (1 - expected).sum()) > 4 * spread  # it would see them swapped
    for votes, charge in zip(notes.all("voted"), notes.all("charged"), strict=True):
        assert len(votes["labels"]) == charge["queries"]


@pytest.mark.parametrize("options", [{}, PRIVATE, {"epsilon": 1.0, "teachers": 50}])
def test_the_budget_is_never_above_the_claim(options: dict[str, Any]) -> None:
    generator = gan(**options)
    charges = traced(generator, people()).all("charged")
    histograms = float(generator.split.histograms * generator.split.each)
    assert charges[0]["before"] == histograms
    assert (histograms > 0) == (options == PRIVATE)
    for one, other in pairwise(charges):
        assert one["before"] < one["after"] == other["before"]
    assert charges[-1]["after"] == histograms + generator.plan.epsilon <= generator.epsilon
    assert all(charge["moments"] is None for charge in charges)


def test_teachers_learn_on_from_where_they_were() -> None:
    notes = traced(gan(), people())
    for teacher in range(6):
        mine = [told for told in notes.all("taught") if told["index"] == teacher]
        assert len(mine) == 8
        for one, other in pairwise(mine):
            assert np.array_equal(one["after"], other["before"])
        assert all(not np.array_equal(told["before"], told["after"]) for told in mine)
    # One of few records, seen again and again, is known better by who has seen it.
    last = traced(gan(rounds=60, learning_rate=0.01), people()).all("losses")[-1]
    assert 0.0 < last["own"] < last["others"]


def test_losses_are_cross_entropies_on_what_teacher_0_read_first() -> None:
    from dpaudit.model.encoding import encode

    generator, data = gan(teacher_hidden=()), people()
    notes = traced(generator, data)
    taught = [told["after"] for told in notes.all("taught")[:6]]  # of the first round
    first = next(read["rows"][:64] for read in notes.all("read") if read["index"] == 0)
    rows = encode(data, PEOPLE)[first][:, Head(PEOPLE).order]
    losses = [np.log1p(np.exp(-(rows @ w[:-1] + w[-1]))).mean() for w in taught]
    told = notes.all("losses")[0]
    assert told["own"] == pytest.approx(losses[0], abs=1e-5)
    assert told["others"] == pytest.approx(np.mean(losses[1:]), abs=1e-5)


def test_constants_and_scaling_are_those_of_the_settings() -> None:
    generator = gan()
    notes = traced(generator, people())
    constants = {told["name"]: told["value"] for told in notes.all("constant")}
    assert constants == {"teachers": 6, "batch": 64, "labels": generator.plan.labels}
    scaling = {told["column"]: told["numbers"] for told in notes.all("scaling")}
    assert scaling == {"income": (0.0, 100.0), "age": (17, 90)}
    data = people()
    read_off = {
        told["column"]: told["numbers"] for told in traced(gan(bounds="data"), data).all("scaling")
    }
    assert read_off["age"] == (data["age"].min(), data["age"].max())


def test_training_and_sampling_are_fed_the_same_noise_law() -> None:
    notes = traced(gan(), people())
    for stage in Stage:
        fed = np.concatenate([f["inputs"] for f in notes.all("fed") if f["stage"] is stage])
        assert fed.shape[1] == 15
        assert abs(fed.mean()) < 5 / np.sqrt(fed.size)
        assert abs(fed.std() - 1.0) < 5 / np.sqrt(fed.size)
        assert len(np.unique(fed, axis=0)) == len(fed)  # told once each, and not overwritten
    assert sum(len(f["inputs"]) for f in notes.all("fed") if f["stage"] is Stage.SAMPLING) == 300


def test_the_output_is_told_before_it_is_rounded() -> None:
    generator, data, notes = gan(), people(), Notes()
    given = generator.trace(data, n_rows=300, seed=5, recorder=notes)
    [told] = notes.all("output")
    income, age = told["unrounded"].T
    np.testing.assert_array_equal(income, given["income"].to_numpy(dtype=float))
    np.testing.assert_array_equal(np.rint(age), given["age"].to_numpy(dtype=float))
    assert (age != np.rint(age)).mean() > 0.9


def test_candidates_of_marginals_are_told_and_labels_are_charged_after_the_counts() -> None:
    generator = gan(PateGanMarginals)
    notes = traced(generator, people())
    width = Head(PEOPLE).width
    means = []
    for stage in Stage:
        fed = np.concatenate([f["inputs"] for f in notes.all("fed") if f["stage"] is stage])
        assert fed.shape[1] == width
        assert ((fed >= 0.0) & (fed <= 1.0)).all()
        means.append(fed.mean(axis=0))
    np.testing.assert_allclose(means[0], means[1], atol=0.1)  # one law in both
    sampled = [f["inputs"] for f in notes.all("fed") if f["stage"] is Stage.SAMPLING]
    assert sum(map(len, sampled)) == CHOICES * 300
    charges = notes.all("charged")
    assert charges[0]["before"] == generator.spent(0) > 0.0
    assert sum(charge["queries"] for charge in charges) == generator.plan.labels
    assert charges[-1]["after"] == generator.spent(generator.plan.labels) <= generator.epsilon
    assert {read["reader"] for read in notes.all("read")} == {Reader.TEACHER}


def test_no_label_count_is_fixed_with_private_proportions() -> None:
    notes = traced(gan(**PRIVATE), people())
    assert not notes.all("label_counts")
    assert not notes.all("noise")


def test_bounds_of_the_data_are_what_there_is_to_fix() -> None:
    [(name, mended)] = gan(bounds="data").fixes().items()
    assert (name, mended) == ("bounds-from-data", gan())
    assert gan().fixes() == gan(bounds="private").fixes() == {}
