"""Audits of dp-gan where its proof is, at the noisy sums: what is proved is kept, a flaw is not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
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
    return dpaudit.audit(
        "dp-gan",
        schema=SCHEMA,
        parameters=SMALL | parameters,
        worst_case="opposite",
        access="released",
        shadow_models=models,
        probe=False,
        out=folder,
        **(stated or {}),
    )


def test_what_is_not_clipped_is_proved_and_what_is_proved_is_kept(tmp_path: Path) -> None:
    broken = audited(tmp_path / "broken", models=100, clip=0.1, flaws=["gradients-not-clipped"])
    assert broken.verdict is Verdict.VIOLATION
    assert broken.epsilon_lower_bound > 1.5
    kept = audited(tmp_path / "kept", models=100, clip=0.1)
    assert kept.verdict is not Verdict.VIOLATION


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
    result = audited(tmp_path, models=4000, epsilon=4.0, stated={"mu": mu})
    assert result.verdict is Verdict.CONSISTENT
    assert result.proved >= 0.8 * mu
