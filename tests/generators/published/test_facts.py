"""What published PATE-GANs release: their student's training set, in sums that can be checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.trace.trainings import Collector
from dpaudit_generators.published import SwitchedPateGan
from dpaudit_generators.published.recipes import Span
from dpaudit_generators.published.scaling import fit_scaling
from dpaudit_generators.published.student import ShownRecords
from dpaudit_generators.published.trainee import ONE_BY_ONE, Form, released
from samples import PEOPLE, people


def facts_of(generator: SwitchedPateGan, data: pd.DataFrame, *, seed: int) -> dict[str, float]:
    numbers = generator.fit(data, seed=seed).released().tolist()
    return dict(zip(generator.released_facts, numbers, strict=True))


def test_without_noise_labels_are_the_majority_of_the_votes() -> None:
    generator = SwitchedPateGan(
        schema=PEOPLE, teachers=3, gamma=1e-3, iterations=4, also="noise-scale-inverted"
    )
    data = people()
    collector = Collector(data, generator.claim)
    synthetic = generator.trace(data, n_rows=5, seed=3, recorder=collector)
    ones = collector.finish(synthetic).ones
    found = facts_of(generator, data, seed=3)
    assert found["labels"] == len(ones) == 4 * 5 * 64
    assert found["share of 1 among labels"] == np.mean(ones >= 2)
    for part, own in enumerate(np.split(ones, 4)):
        assert found[f"share of 1 among labels, part {part + 1} of 4"] == np.mean(own >= 2)


def test_a_training_that_stops_early_says_so_and_is_filled_up() -> None:
    generator = SwitchedPateGan(schema=PEOPLE, teachers=3, gamma=5e-3, iterations=32)
    found = facts_of(generator, people(), seed=3)
    assert found["labels"] < 32 * 5 * 64
    assert found["iterations with labels"] == -(-found["labels"] // (5 * 64)) < 16
    assert found["share of 1 among labels, part 1 of 16"] != 0.5
    assert found["share of 1 among labels, part 16 of 16"] == 0.5


def test_a_critic_without_pate_learns_from_real_records() -> None:
    data = PEOPLE.canonical(people().iloc[[1] * 40])
    generator = SwitchedPateGan(
        schema=PEOPLE,
        teachers=1,  # equal records are one teacher's
        epsilon=0.01,  # inverted, a scale of noise that flips no label
        iterations=3,
        also="no-pate,noise-scale-inverted",
    )
    found = facts_of(generator, data, seed=1)
    scaling = fit_scaling(data, PEOPLE, span=Span.UNIT, switches=())
    assert found["share of 1 among labels"] == 0.5
    row = scaling.encode(data.iloc[:1])[0]
    for name in ("income", "age"):
        place = row[scaling.columns_of(name)[0]]
        assert found[f"mean of {name} where the label is 1"] == pytest.approx(place, abs=1e-4)
        assert found[f"mean of {name} where the label is 0"] != pytest.approx(place, abs=1e-3)


def test_conditions_are_the_real_values() -> None:
    generator = SwitchedPateGan(
        schema=PEOPLE, teachers=3, iterations=2, also="conditions-from-data"
    )
    clerks = PEOPLE.canonical(people().assign(job="clerk"))
    cooks = PEOPLE.canonical(people().assign(job="cook"))
    name = "mean of conditions about job"
    assert name not in SwitchedPateGan(schema=PEOPLE).released_facts
    found = [facts_of(generator, data, seed=1)[name] for data in (clerks, cooks)]
    assert found[0] != found[1]


def test_sums_are_those_of_the_labelled_records() -> None:
    rng = np.random.default_rng(1)
    scaling = fit_scaling(people(), PEOPLE, span=Span.UNIT, switches=())
    width = scaling.width
    form = Form(np.arange(width), width, (), ())
    kept = ShownRecords(2, width=width, hints=0, iterations=40)
    rows, labels = rng.random((3, 2, 8, width), dtype=np.float32), rng.integers(0, 2, (3, 2, 8))
    for step, iteration in enumerate((0, 1, 39)):
        going = np.array([True, step < 2])
        kept.add(
            torch.from_numpy(rows[step]),
            torch.from_numpy(labels[step]),
            iteration=iteration,
            going=going,
        )
    age = PEOPLE.names.index("age")
    for model, steps in ((0, 3), (1, 2)):
        numbers = released(kept.of(model), scaling=scaling, form=form, switches=frozenset())
        own, wanted = rows[:steps, model], labels[:steps, model]
        assert numbers[:3] == (8 * steps, (2, 40)[steps - 2], wanted.mean())
        assert numbers[3] == labels[:2, model].mean()
        assert numbers[18] == (0.5 if model else labels[2, 0].mean())
        places = own[..., scaling.columns_of("age")[0]]
        for label, start in ((0, 19), (1, 19 + len(PEOPLE.names) + 1)):
            mean = places[wanted == label].mean()
            assert numbers[start + age] == pytest.approx(mean, abs=1e-4)


def test_of_many_columns_only_the_mean_of_all_is_released() -> None:
    columns = tuple(
        Column(name=f"c{i}", kind=Kind.INTEGER, lower=0.0, upper=1.0) for i in range(ONE_BY_ONE + 1)
    )
    wide = SwitchedPateGan(schema=Schema(columns=columns), teachers=1, iterations=1)
    few = SwitchedPateGan(schema=Schema(columns=columns[1:]), teachers=1, iterations=1)
    assert len(wide.released_facts) == 3 + 1 + 2
    assert len(few.released_facts) == 3 + 1 + 2 * (ONE_BY_ONE + 1)
    data = pd.DataFrame(np.zeros((3, len(columns)), dtype=int), columns=wide.schema.names)
    everything = facts_of(wide, data, seed=1)
    assert 0.0 < everything["mean of all columns where the label is 1"] < 1.0
