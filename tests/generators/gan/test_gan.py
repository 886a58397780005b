"""The GAN without privacy: it learns, it is the same in any batch, and it promises nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World
from dpaudit_generators.gan import Gan

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="kind", kind=Kind.BINARY, categories=("a", "b")),
    )
)


def test_it_learns_where_the_records_are_and_claims_nothing() -> None:
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"x": rng.uniform(0.8, 0.9, 300), "kind": ["b"] * 290 + ["a"] * 10})
    generator = Gan(schema=SCHEMA, rounds=300)
    generator.check(data)
    model = generator.fit(data, seed=3)
    synthetic = model.sample(500, seed=4)
    assert 0.7 < synthetic["x"].mean() < 0.95
    assert (synthetic["kind"] == "b").mean() > 0.8
    assert generator.claim is model.claim is None
    assert model.released().size == 0


def test_models_are_bit_identical_to_training_alone() -> None:
    data = pd.DataFrame({"x": np.linspace(0, 1, 41), "kind": ["a"] * 41})
    generator = Gan(schema=SCHEMA, rounds=5, batch=9, critic_hidden=7)
    jobs = [Job(World.IN, i, (i,) if i % 2 else tuple(range(41)) * (i == 4), i) for i in range(6)]
    together = generator.fit_many(data, jobs)
    for place, job in enumerate(jobs):
        alone = generator.fit_many(data, [job])[0]
        assert np.array_equal(alone.parameters(), together[place].parameters())
