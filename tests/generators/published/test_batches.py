"""Models of published PATE-GANs: alone, in any batch, and traced, they are the same to the bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpaudit.plugins.protocols import Job, World
from dpaudit_generators import published
from dpaudit_generators.published import Switch, SwitchedPateGan
from samples import PEOPLE, people

SIX = ["Original", "Updated", "Synthcity", "Turing", "Borealis", "Smartnoise"]
GENERATORS = {
    name: getattr(published, name)(schema=PEOPLE, teachers=3, iterations=2) for name in SIX
}
GENERATORS |= {
    f"plain and {switch}": SwitchedPateGan(
        schema=PEOPLE,
        teachers=3,
        iterations=2,
        also=f"no-pate,{switch}" if switch is Switch.PENALTY_FROM_TEACHERS else switch,
    )
    for switch in Switch
}
GENERATORS["plain"] = SwitchedPateGan(schema=PEOPLE, teachers=3, iterations=2)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.ci] if name.startswith(("plain and", "Synth")) else []
        )
        for name in GENERATORS
    ],
)
def test_a_model_is_the_same_alone_and_in_any_batch(name: str) -> None:
    generator, data = GENERATORS[name], people()
    jobs = [
        Job(World.OUT if i % 2 else World.IN, i, (7,) if i % 2 else (), 40 + i) for i in range(8)
    ]
    single = {i: generator.fit_many(data, jobs[i : i + 1]) for i in (0, 1, 7)}
    for count in (3, 8):
        batch = generator.fit_many(data, jobs[:count])
        many = batch.sample_many(33, range(count))
        for i, alone in single.items():
            if i < count:
                assert np.array_equal(alone[0].parameters(), batch[i].parameters())
                scores = alone[0].discriminate(data)
                assert np.array_equal(scores, batch[i].discriminate(data))
                assert np.isfinite(scores).all()
                facts = alone[0].released()
                assert facts.shape == (len(generator.released_facts),)
                assert np.array_equal(facts, batch[i].released())
                assert np.isfinite(facts).all()
                assert np.array_equal(alone.sample_many(33, [i])[0], many[i], equal_nan=True)
    own = generator.fit(data.drop(index=7).reset_index(drop=True), seed=41).sample(33, seed=1)
    pd.testing.assert_frame_equal(own, single[1][0].sample(33, seed=1))
