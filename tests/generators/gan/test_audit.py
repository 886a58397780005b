"""Audits of dp-gan where its proof is, at the noisy sums: what is proved is kept, a flaw is not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.model.choices import WorstCase
from dpaudit.model.column import Column, Kind
from dpaudit.model.neighbouring_tables import worst_case_tables
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World
from dpaudit.results.verdict import Verdict
from dpaudit_generators.gan import DpGan

SCHEMA = Schema(
    columns=(
        Column(name="a", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="b", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="c", kind=Kind.BINARY, categories=("no", "yes")),
    )
)
SMALL: dict[str, Any] = {
    "rounds": 10, "critic_steps": 2, "rate": 1.0, "batch": 10,
    "critic_hidden": 8, "generator_hidden": [15], "noise_width": 7,
}  # fmt: skip


def audited(
    folder: Path, *, models: int, stated: dict[str, float] | None = None, **parameters: Any
) -> Any:
    return audit_by_keywords(
        "dp-gan",
        schema=SCHEMA,
        parameters=SMALL | parameters,
        worst_case="opposite",
        access="released",
        shadow_models=models,
        probe=False,
        jobs=1,
        out=folder,
        **(stated or {}),
    )


@pytest.mark.ci
def test_what_is_not_clipped_is_proved_and_what_is_proved_is_kept(tmp_path: Path) -> None:
    broken = audited(tmp_path / "broken", models=100, clip=0.1, flaws=["gradients-not-clipped"])
    assert broken.verdict is Verdict.VIOLATION
    assert broken.epsilon_lower_bound > 1.5
    kept = audited(tmp_path / "kept", models=100, clip=0.1)
    assert kept.verdict is not Verdict.VIOLATION


def test_the_noisy_sums_show_exactly_what_is_accounted_for() -> None:
    # Whole batches and a worst case: normal numbers that the record shifts by mu.
    tables = worst_case_tables(WorstCase.OPPOSITE, SCHEMA)
    target = tables.data.iloc[[tables.rows[0]]]
    generator = DpGan(schema=SCHEMA, epsilon=4.0, target=target, **SMALL)
    numbers = [
        [model.released()[0] for model in generator.fit_many(tables.data, jobs).models]
        for jobs in (
            [Job(World.IN, seed, (), seed) for seed in range(800)],
            [Job(World.OUT, seed, (tables.rows[0],), 10_000 + seed) for seed in range(800)],
        )
    ]
    shown = (np.mean(numbers[0]) - np.mean(numbers[1])) / math.sqrt(np.var(numbers, axis=1).mean())
    mu = math.sqrt(generator.steps) / generator.noise_multiplier
    assert shown == pytest.approx(mu, abs=4 * math.sqrt(2 / 800))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaw", "models"),
    [
        ("gradients-not-clipped", 600),
        ("gradient-part-not-clipped", 600),
        ("batches-not-sampled", 600),
        ("gradient-noise-skipped", 600),
    ],
)
def test_each_flaw_is_proved_under_poisson_sampling(flaw: str, models: int, tmp_path: Path) -> None:
    sampled = {"rounds": 40, "critic_steps": 5, "rate": 0.05, "batch": 1}
    result = audited(tmp_path, models=models, flaws=[flaw], **sampled)
    assert result.verdict is Verdict.VIOLATION


@pytest.mark.slow
def test_nearly_all_of_mu_is_proved_where_every_batch_is_whole(tmp_path: Path) -> None:
    # Then the noisy sums are a Gaussian mechanism, with mu = sqrt(steps) / noise multiplier.
    generator = DpGan(schema=SCHEMA, epsilon=4.0, **SMALL)
    mu = math.sqrt(generator.steps) / generator.noise_multiplier
    result = audited(tmp_path, models=2000, epsilon=4.0, stated={"mu": mu})
    assert 0.8 * mu <= result.proved
