"""`dpaudit trace` on dp-gan: nothing to find as it is, and each flaw by its name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.trace import TraceReport, trace
from dpaudit.trace.trainings import Collector
from dpaudit_generators.gan import DpGan, GradientFlaw

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
    )
)
RNG = np.random.default_rng(4)
DATA = pd.DataFrame({"age": RNG.integers(0, 101, 150), "ill": RNG.choice(["no", "yes"], 150)})
SMALL: dict[str, Any] = {
    "schema": SCHEMA, "rounds": 8, "critic_steps": 5, "batch": 15, "rate": 0.1,
    "critic_hidden": 8, "generator_hidden": [15], "noise_width": 3,
}  # fmt: skip
SUMS = {
    "gradients-not-clipped",
    "gradient-part-not-clipped",
    "batches-not-sampled",
    "gradient-noise-skipped",
    "gradient-noise-scale",
    "gradient-steps-not-accounted",
}


def found(**settings: Any) -> TraceReport:
    return trace(DpGan(**(SMALL | settings)), DATA, schema=SCHEMA, rows=20)


def test_nothing_is_found_on_the_proved_one_and_every_premise_was_looked_at() -> None:
    report = found()
    assert report.findings == ()
    assert set(report.checked) >= SUMS | {"batch-from-rows", "constant-from-rows"}


@pytest.mark.ci
def test_nothing_is_found_where_every_batch_is_the_table() -> None:
    assert found(rate=1.0).findings == ()


@pytest.mark.parametrize("flaw", GradientFlaw)
def test_each_flaw_is_named_alone(flaw: GradientFlaw) -> None:
    assert [one.id for one in found(flaws=[flaw]).findings] == [flaw.value]


def test_tracing_changes_no_training() -> None:
    generator = DpGan(**SMALL)
    recorded = generator.trace(DATA, n_rows=20, seed=3, recorder=Collector(DATA))
    pd.testing.assert_frame_equal(recorded, generator.fit(DATA, seed=3).sample(20, seed=3))
