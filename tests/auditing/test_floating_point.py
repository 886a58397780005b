"""Noise drawn in floating point: what its last bits prove, and what is proved without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.model.column import Kind
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.document import to_document
from dpaudit.results.phrases import IN_FLOATING_POINT
from dpaudit.results.summary import next_step

SCHEMA = dpaudit.Schema(
    columns=(
        dpaudit.Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
        dpaudit.Column(name="count", kind=Kind.CONTINUOUS, lower=-50.0, upper=50.0),
    )
)
DATA = pd.DataFrame({"ill": [*["no"] * 9, "yes"], "count": [0.5 * row for row in range(10)]})


@dataclass(frozen=True)
class Released:
    """A model that releases one number, in every row."""

    number: float

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        del seed
        return pd.DataFrame({"ill": ["no"] * n, "count": [self.number] * n})


@dataclass(frozen=True)
class NoisyCount:
    """The number of ill people with numpy's Laplace noise.

    Attributes:
        scale: Scale of the noise; 1 is what the claim needs.
        grid: Multiples of it are released; 0 releases the sum as it is.
    """

    scale: float = 1.0
    grid: float = 0.0
    claim = dpaudit.PrivacyClaim(epsilon=1.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        noise = np.random.default_rng(seed).laplace(0.0, self.scale)
        number = float((data["ill"] == "yes").sum()) + noise
        return Released(round(number / self.grid) * self.grid if self.grid else number)


def audited(generator: NoisyCount, **settings: Any) -> dpaudit.AuditResult:
    game = dpaudit.TwoWorlds(
        attacks=("form",), shadow_models=200, target="row:9", probe=False, **settings
    )
    return dpaudit.audit(generator, DATA, schema=SCHEMA, rows=2, game=game, jobs=1)


def texts(result: dpaudit.AuditResult) -> tuple[str, ...]:
    return str(result), render_html(result), render_markdown(result)


@pytest.mark.ci
def test_noise_at_its_claim_violates_it_in_floating_point() -> None:
    result = audited(NoisyCount())
    assert result.verdict == "violation"
    assert result.is_floating_point
    without = to_document(result)["proved_without_bits"]
    assert without <= 1.0 < to_document(result)["proved"]
    for text in texts(result):
        assert "VIOLATION in floating point" in text
    assert "public grid" in next_step(result).why


@pytest.mark.ci
def test_without_last_bits_the_same_noise_violates_nothing() -> None:
    result = audited(NoisyCount(), ignore_bits=True)
    assert result.verdict != "violation"
    assert not any("2^-" in leak.feature for leak in result.leaks)
    assert result.reproduce.endswith("--set ignore-bits=true")


@pytest.mark.ci
def test_numbers_rounded_to_a_public_grid_show_no_last_bits() -> None:
    result = audited(NoisyCount(grid=2.0**-10))
    assert result.verdict != "violation"
    assert not any(IN_FLOATING_POINT in text for text in texts(result))


@pytest.mark.ci
def test_noise_far_too_small_is_more_than_floating_point() -> None:
    result = audited(NoisyCount(scale=0.2))
    assert result.verdict == "violation"
    assert not result.is_floating_point
    assert not any("VIOLATION in floating point" in text for text in texts(result))


@dataclass(frozen=True)
class NoisyPresence:
    """Whether each of two patients is there, each with numpy's Laplace noise; a unit is a row."""

    grid: float = 0.0
    claim = dpaudit.PrivacyClaim(epsilon=1.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Presence:
        noise = np.random.default_rng(seed).laplace(size=2)
        numbers = noise + [(data["ill"] == name).sum() for name in ("a", "b")]
        return Presence(numbers if self.grid == 0.0 else np.round(numbers / self.grid) * self.grid)


@dataclass(frozen=True)
class Presence:
    """A model that releases two numbers, in every row."""

    numbers: np.ndarray

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        del seed
        return pd.DataFrame({"ill": ["no"] * n, "a": [self.numbers[0]] * n, "b": self.numbers[1]})


@pytest.mark.ci
@pytest.mark.parametrize("grid", [0.0, pytest.param(2.0**-10, marks=pytest.mark.slow)])
def test_noise_at_its_claim_violates_it_in_floating_point_for_many_records(grid: float) -> None:
    ill = dpaudit.Column(name="ill", kind=Kind.CATEGORICAL, categories=("no", "a", "b"))
    counts = [
        dpaudit.Column(name=name, kind=Kind.CONTINUOUS, lower=-50.0, upper=50.0)
        for name in ("a", "b")
    ]
    small = 0.5 * np.arange(8.0)
    data = pd.DataFrame(
        {"ill": [*["no"] * 8, "a", "b"], "a": [*small, 40.0, 1.2], "b": [*small, 1.1, 40.0]}
    )
    result = dpaudit.audit(
        NoisyPresence(grid=grid),
        data,
        schema=dpaudit.Schema(columns=(ill, *counts)),
        rows=2,
        game=dpaudit.ManyRecords(attacks=("form",), shadow_models=300, records=2, probe=False),
        jobs=1,
    )
    assert (result.verdict == "violation") is (grid == 0.0)
    assert result.is_floating_point is (grid == 0.0)
    assert ("VIOLATION in floating point" in str(result)) is (grid == 0.0)
