"""Conditional Wasserstein GANs: what they learn, what the noisy layer does, and what leaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World
from dpaudit.results.verdict import Verdict
from dpaudit_generators.gan import WganGp, WganGpDpCritic
from dpaudit_generators.gan.selu_training import (
    NoisyLayer,
    critic_loss,
    scores,
)
from dpaudit_generators.networks.model import Activation, Architecture, Descent
from dpaudit_generators.networks.source import Streams
from dpaudit_generators.networks.stack import Networks, draw_weights, with_ones

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="kind", kind=Kind.BINARY, categories=("a", "b")),
    ),
    label="kind",
)
SMALL: dict[str, Any] = {
    "rounds": 4, "batch": 9, "critic_hidden": 7, "generator_hidden": [11], "noise_width": 5,
}  # fmt: skip
CPU = torch.device("cpu")


def two_groups(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    is_b = np.arange(n) % 4 == 0
    x = np.where(is_b, rng.uniform(0.7, 0.8, n), rng.uniform(0.1, 0.3, n))
    return pd.DataFrame({"x": x, "kind": np.where(is_b, "b", "a")})


@pytest.mark.parametrize("kind", [WganGp, pytest.param(WganGpDpCritic, marks=pytest.mark.ci)])
def test_records_are_those_of_their_label_and_nothing_is_claimed(kind: type[WganGp]) -> None:
    generator, data = kind(schema=SCHEMA, rounds=150), two_groups()
    generator.check(data)
    model = generator.fit(data, seed=3)
    synthetic = model.sample(600, seed=4)
    assert 0.19 < (synthetic["kind"] == "b").mean() < 0.31
    means = synthetic.groupby("kind")["x"].mean()
    assert means["a"] < 0.35
    assert means["b"] > 0.6
    assert generator.claim is model.claim is None


@pytest.mark.parametrize("kind", [WganGp, WganGpDpCritic])
def test_models_are_bit_identical_to_training_alone(kind: type[WganGp]) -> None:
    data, generator = two_groups(41), kind(schema=SCHEMA, **SMALL)
    jobs = [Job(World.IN, i, (i,) if i % 2 else tuple(range(41)) * (i == 4), i) for i in range(6)]
    together = generator.fit_many(data, jobs)
    for place, job in enumerate(jobs):
        alone = generator.fit_many(data, [job])[0]
        assert np.array_equal(alone.parameters(), together[place].parameters())
        assert alone.sample(3, seed=1).equals(together[place].sample(3, seed=1))


def test_without_noise_and_far_from_its_norm_the_noisy_layer_is_none() -> None:
    data = two_groups(41)
    plain = WganGp(schema=SCHEMA, **SMALL).fit(data, seed=2)
    silent = WganGpDpCritic(schema=SCHEMA, clip=1e6, noise=0.0, **SMALL).fit(data, seed=2)
    noisy = WganGpDpCritic(schema=SCHEMA, **SMALL).fit(data, seed=2)
    assert np.array_equal(plain.parameters(), silent.parameters())
    assert not np.array_equal(plain.parameters(), noisy.parameters())


def test_the_noisy_layer_clips_and_adds_noise_of_its_deviation() -> None:
    values = torch.zeros(2, 500, 32)
    values[..., :20] = torch.linspace(-3, 3, 20)
    values[:, 0] = 0.0
    values[..., 20] = 1.0
    silent = NoisyLayer(1.0, 0.0, 20, Streams([1, 2], "noise", device=CPU))(values)
    assert torch.allclose(silent[:, 1:, :20].norm(dim=-1), torch.tensor(1.0))
    assert not silent[:, 0, :20].any()
    assert torch.equal(silent[..., 20:], values[..., 20:])
    noise = NoisyLayer(1.0, 1.5, 20, Streams([1, 2], "noise", device=CPU))(values) - silent
    assert not noise[..., 20:].any()
    assert float(noise[..., :20].std()) == pytest.approx(1.5, rel=0.02)
    assert not torch.equal(noise[0], noise[1])


SHAPE = Architecture(hidden=[6, 6], activation=Activation.SELU)


def critics() -> Networks:
    weights = draw_weights(SHAPE.layers(3, 1), np.random.default_rng(0))
    return Networks([weights], SHAPE, Descent(1e-3, (0.0, 0.9)))


def test_noise_reaches_the_gradient_of_the_last_layer_alone() -> None:
    # Why the layer protects the critic's output and not what the generator learns from it.
    rng = np.random.default_rng(1)
    real, fakes = (with_ones(torch.from_numpy(rng.random((8, 3))).float())[None] for _ in range(2))
    mixing = torch.full((1, 8), 0.5)
    found = []
    for seed in (1, 2):
        one = critics()
        layer = NoisyLayer(1.0, 1.5, 6, Streams([seed], "noise", device=CPU))
        loss = critic_loss(one, real, fakes, mixing, penalty=10.0, inputs=3, layer=layer)
        found.append(torch.autograd.grad(loss, one.parameters, allow_unused=True))
    *hidden, last = zip(*found, strict=True)
    assert all(torch.allclose(first, second, atol=1e-5) for first, second in hidden)
    assert not torch.allclose(*last, atol=1e-2)


def test_the_loss_is_the_one_of_gulrajani_by_finite_differences() -> None:
    one, rng = critics(), np.random.default_rng(2)
    real, fakes = (with_ones(torch.from_numpy(rng.random((5, 3))).float())[None] for _ in range(2))
    between = 0.25 * real + 0.75 * fakes
    slopes = []
    for place in range(3):
        step = torch.zeros(between.shape[-1])
        step[place] = 1e-2
        ends = [scores(one, between + sign * step, None).detach() for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / 2e-2)
    length = torch.stack(slopes).square().sum(0).sqrt()
    by_hand = (scores(one, fakes, None) - scores(one, real, None)).mean()
    by_hand = by_hand + 10.0 * (length - 1.0).square().mean()
    loss = critic_loss(
        one, real, fakes, torch.full((1, 5), 0.25), penalty=10.0, inputs=3, layer=None
    )
    assert float(loss.detach()) == pytest.approx(float(by_hand.detach()), rel=1e-2)


def test_where_there_is_no_record_the_critic_learns_from_its_fakes_alone() -> None:
    one, rng = critics(), np.random.default_rng(2)
    fakes = with_ones(torch.from_numpy(rng.random((5, 3))).float())[None]
    nobody = torch.zeros_like(fakes)
    loss = critic_loss(
        one, nobody, fakes, torch.full((1, 5), 0.25), penalty=10.0, inputs=3, layer=None
    )
    by_hand = scores(one, fakes, None).mean()
    assert float(loss.detach()) == pytest.approx(float(by_hand.detach()), rel=1e-5)


def test_a_model_discloses_what_its_critic_says_of_a_record() -> None:
    data = two_groups(41)
    generator = WganGp(schema=SCHEMA, **SMALL)
    model = generator.fit(data, seed=2)
    stack = Networks([model.critic], Architecture(hidden=[7, 7], activation=Activation.SELU))
    rows = with_ones(torch.from_numpy(encode(data, SCHEMA)).float())[None]
    expected = scores(stack, rows, None)[0].detach().numpy()
    assert model.discriminate(data) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        (WganGp, {"penalty": -1.0}, "penalty"),
        (WganGpDpCritic, {"clip": 0.0}, "clip"),
        (WganGpDpCritic, {"noise": -0.5}, "noise"),
    ],
)
def test_settings_out_of_range_are_refused(
    kind: type[WganGp], parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        kind(schema=SCHEMA, **parameters)


def test_a_schema_without_a_label_with_classes_generates_every_column() -> None:
    for label in (None, "x"):
        schema = Schema(columns=SCHEMA.columns, label=label)
        model = WganGp(schema=schema, **SMALL).fit(two_groups(41), seed=1)
        assert model.proportions == ()
        assert set(model.sample(40, seed=1)["kind"]) <= {"a", "b"}


@pytest.mark.ci
@pytest.mark.parametrize("name", ["wgan-gp", "wgan-gp-dp-critic"])
def test_an_audit_refutes_a_claim_that_was_never_made(name: str, tmp_path: Path) -> None:
    # The proportions of the labels are those of the table: no noise hides one record of five.
    result = audit_by_keywords(
        name,
        schema=SCHEMA,
        parameters=SMALL,
        epsilon=1.0,
        worst_case="opposite",
        shadow_models=80,
        seed=1,
        probe=False,
        out=tmp_path / "run",
        jobs=1,
    )
    assert result.verdict is Verdict.VIOLATION
