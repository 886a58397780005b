"""The premises of dp-gan's proof, its gradients against autograd, and its claim."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import kstest

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import CurveClaim, Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World
from dpaudit_generators.gan import DpGan, GradientFlaw
from dpaudit_generators.gan.gradients import (
    Scene,
    ShallowCritics,
    contributions,
    scene,
)
from dpaudit_generators.gan.settings import DpSgd, GanLoss
from dpaudit_generators.gan.training import GanStep

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="income", kind=Kind.CONTINUOUS, lower=0, upper=10, missing=True),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b", "c")),
        Column(name="ill", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="ill",
)
SMALL: dict[str, Any] = {
    "schema": SCHEMA, "rounds": 4, "critic_steps": 3, "batch": 7, "rate": 0.25,
    "critic_hidden": 5, "generator_hidden": [9], "noise_width": 3,
}  # fmt: skip


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    income = rng.uniform(0, 10, n)
    income[::5] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(0, 101, n),
            "income": income,
            "town": rng.choice(["a", "b", "c"], n),
            "ill": rng.choice(["no", "yes"], n),
        }
    )


class Steps:
    """Keeps every step of a training."""

    def __init__(self) -> None:
        self.seen: list[GanStep] = []

    def __call__(self, step: GanStep) -> None:
        critics = ShallowCritics(
            step.scene.critics.hidden.clone(),
            step.scene.critics.last.clone(),
            step.scene.critics.inputs,
        )
        self.seen.append(step._replace(scene=step.scene._replace(critics=critics)))


def steps_of(generator: DpGan, data: pd.DataFrame, jobs: list[Job]) -> list[GanStep]:
    steps = Steps()
    generator.train(data, jobs, steps)
    return steps.seen


def whole(seed: int, *dropped: int) -> Job:
    return Job(World.IN, 0, dropped, seed)


def random_scene(
    models: int, records: int, loss: GanLoss = GanLoss.WASSERSTEIN
) -> tuple[Scene, torch.Tensor]:
    """ShallowCritics of 4 inputs and 3 hidden units, with padding, and real records."""
    rng = torch.Generator().manual_seed(5)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    def rows(n: int) -> torch.Tensor:
        made = torch.zeros(models, n, 16, dtype=torch.float64)
        made[..., :4], made[..., 4] = drawn(models, n, 4), 1.0
        return made

    hidden = torch.zeros(models, 3, 16, dtype=torch.float64)
    hidden[..., :5] = drawn(models, 3, 5)
    critics = ShallowCritics(hidden, drawn(models, 3), 4)
    mixing = torch.rand(models, generator=rng, dtype=torch.float64)
    return scene(critics, rows(6), mixing, loss, 10.0), rows(records)


@pytest.mark.parametrize("loss", GanLoss)
def test_gradients_of_single_records_are_those_of_autograd(loss: GanLoss) -> None:
    # The scene keeps no synthetic records: they are drawn again from the same seed.
    seen, rows = random_scene(2, 8, loss)
    rng = torch.Generator().manual_seed(5)
    for shape in ((2, 3, 5), (2, 3)):
        torch.randn(*shape, generator=rng, dtype=torch.float64)
    torch.rand(2, generator=rng, dtype=torch.float64)
    fakes = torch.randn(2, 6, 4, generator=rng, dtype=torch.float64)
    (own,) = contributions(seen, rows, None)
    apart, norms = own.gradients.apart(), own.gradients.norms()
    factors = torch.linspace(0.1, 0.9, 8, dtype=torch.float64).expand(2, 8)
    summed = own.gradients.summed(factors).flat()
    for model in range(2):
        weight = seen.critics.hidden[model, :, :5].clone().requires_grad_()
        last = seen.critics.last[model].clone().requires_grad_()

        def critic(x: torch.Tensor, w: torch.Tensor = weight, v: torch.Tensor = last) -> Any:
            return torch.nn.functional.leaky_relu(x @ w[:, :4].T + w[:, 4], 0.2) @ v

        expected = []
        for record in rows[model, :, :4]:
            near = seen.mixing[model]
            between = (near * record + (1 - near) * fakes[model, 0]).requires_grad_()
            (steepness,) = torch.autograd.grad(critic(between), between, create_graph=True)
            value, fake = critic(record), critic(fakes[model])
            if loss is GanLoss.WASSERSTEIN:
                cost = fake.mean() - value
            else:
                cost = torch.nn.functional.softplus(fake).mean() + torch.nn.functional.softplus(
                    -value
                )
            cost = cost + 10.0 * (steepness.norm() - 1.0) ** 2
            by_weight, by_last = torch.autograd.grad(cost, (weight, last))
            padded = torch.nn.functional.pad(by_weight, (0, 11))
            expected.append(torch.cat([padded.flatten(), by_last]))
        flat = torch.stack(expected)
        assert torch.allclose(apart[model], flat, atol=1e-10)
        assert torch.allclose(norms[model], flat.norm(dim=1), atol=1e-8)
        assert torch.allclose(summed[model], (factors[model, :, None] * flat).sum(0), atol=1e-9)


@pytest.mark.parametrize("clip", [1e-3, 0.5, 1e6])
def test_no_record_adds_more_than_the_clipping_norm(clip: float) -> None:
    seen, rows = random_scene(3, 20)
    (own,) = contributions(seen, rows, DpSgd(0.1, clip, 1.0))
    added = (own.gradients.apart() * own.factors[..., None]).norm(dim=-1)
    assert added.max() <= clip * (1 + 1e-12)
    assert torch.allclose(added, own.gradients.norms().clamp(max=clip))


def test_the_sum_is_that_of_the_batch_and_its_noise_and_of_nothing_else() -> None:
    data = table(60)
    generator = DpGan(**SMALL)
    steps = steps_of(generator, data, [whole(3), whole(4, 1, 2)])
    assert len(steps) == generator.steps == 12
    encoded = generator.encoded(data)
    for step in steps:
        assert step.noise is not None
        for model, rows in enumerate(step.selected):
            alone = step.scene.of(torch.tensor([model]))
            expected = step.noise[model].clone()
            if len(rows):
                (own,) = contributions(alone, encoded[rows][None], generator.protection)
                expected += own.gradients.summed(own.factors).flat()[0]
            assert torch.allclose(step.total[model], expected, atol=1e-12)


def test_batches_are_independent_coins_and_leave_out_dropped_records() -> None:
    jobs = [whole(seed, 7) for seed in range(20)]
    steps = steps_of(DpGan(**SMALL), table(60), jobs)
    counts = np.zeros(60)
    sizes = []
    for step in steps:
        for rows in step.selected:
            counts[rows] += 1
            sizes.append(len(rows))
    assert counts[7] == 0
    coins = len(steps) * len(jobs)
    others = np.delete(counts, 7)
    assert abs(others.mean() - 0.25 * coins) < 4 * math.sqrt(0.1875 * coins / 59)
    assert 0.5 < others.var() / (0.1875 * coins) < 1.7
    assert 0.5 < np.var(sizes) / (0.1875 * 59) < 1.7


def test_noise_is_normal_of_the_accounted_scale_in_every_step_even_an_empty_one() -> None:
    generator = DpGan(**SMALL, clip=0.3)
    steps = steps_of(generator, table(1), [whole(seed) for seed in range(30)])
    assert any(len(rows) == 0 for step in steps for rows in step.selected)
    draws = []
    for step in steps:
        assert step.noise is not None
        inputs = step.scene.critics.inputs + 1
        hidden = step.noise[:, :-5].reshape(30, 5, -1)
        assert not hidden[..., inputs:].any()
        draws.append(torch.cat([hidden[..., :inputs].flatten(), step.noise[:, -5:].flatten()]))
    noise = torch.cat(draws).numpy() / (0.3 * generator.noise_multiplier)
    assert kstest(noise, "norm").pvalue > 1e-3


def test_models_depend_on_records_through_the_noisy_sums_alone() -> None:
    # With noise that drowns every gradient two tables give the same model, up to its share.
    generator = DpGan(**SMALL, epsilon=1e-3, delta=1e-9)
    assert generator.noise_multiplier > 1000
    one, other = (generator.fit(table(50, seed), seed=1) for seed in (1, 2))
    assert np.abs(one.parameters() - other.parameters()).max() < 0.05
    no_records = generator.fit(table(0), seed=1)
    assert np.abs(one.parameters() - no_records.parameters()).max() < 0.05


@pytest.mark.parametrize("n", [0, 1, *(pytest.param(n, marks=pytest.mark.ci) for n in (3, 200))])
def test_models_are_bit_identical_to_training_alone(n: int) -> None:
    # 200 records at rate 1/4 are six times the expected batch: it is read in parts.
    data = table(n)
    generator = DpGan(**SMALL, target=table(1, seed=9))
    jobs = [whole(seed, *((seed,) if seed < n else ())) for seed in range(9)]
    together = generator.fit_many(data, jobs)
    sampled = together.sample_many(20, list(range(9)))
    for place in (0, 4, 8):
        alone = generator.fit_many(data, [jobs[place]])
        assert np.array_equal(alone[0].parameters(), together[place].parameters())
        assert np.array_equal(alone[0].released(), together[place].released())
        assert np.array_equal(alone.sample_many(20, [place])[0], sampled[place], equal_nan=True)


def test_the_target_changes_no_training() -> None:
    data = table(40)
    models = [
        DpGan(**SMALL, target=target).fit(data, seed=2)
        for target in (None, table(1, seed=3), table(1, seed=4))
    ]
    for other in models[1:]:
        assert np.array_equal(models[0].parameters(), other.parameters())
    assert models[0].released().size == 0
    assert len(models[1].released()) == len(DpGan(**SMALL, target=data[:1]).released_facts) == 15
    assert not np.array_equal(models[1].released(), models[2].released())


def test_the_claim_is_what_privacy_loss_distributions_say() -> None:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    generator = DpGan(**SMALL)
    assert isinstance(generator.claim, PrivacyClaim)
    accountant = PLDAccountant()
    event = PoissonSampledDpEvent(0.25, GaussianDpEvent(generator.noise_multiplier))
    accountant.compose(SelfComposedDpEvent(event, 12))
    assert generator.claim.epsilon == pytest.approx(accountant.get_epsilon(1e-5), abs=1e-6)
    assert 0.999 <= generator.claim.epsilon <= 1.0
    assert generator.claim.neighbours is Neighbours.ADD_REMOVE
    curve = DpGan(**SMALL, curve=True).claim
    assert isinstance(curve, CurveClaim)
    for epsilon, delta in curve.points[::20]:
        assert delta == pytest.approx(accountant.get_delta(epsilon), abs=1e-9)
    assert curve.points[-1].delta <= 1e-6 * (1 + 1e-6)
    assert "operating system" in generator.fit(table(5), seed=None).claim.source  # type: ignore[union-attr]


def test_flaws_are_flaws() -> None:
    data = table(60)
    for flaw in GradientFlaw:
        generator = DpGan(**SMALL, flaws=[flaw.value])
        assert "false on purpose" in generator.claim.source
        steps = steps_of(generator, data, [whole(1)])
        encoded = generator.encoded(data)
        largest = 0.0
        for step in steps:
            parts = contributions(step.scene, encoded[None], generator.protection)
            added = sum(one.gradients.apart() * one.factors[..., None] for one in parts)
            assert isinstance(added, torch.Tensor)
            largest = max(largest, float(added.norm(dim=-1).max()))
        silent = [step.noise is not None and not step.noise.any() for step in steps]
        sizes = {len(step.selected[0]) for step in steps}
        clipped = largest <= 1 + 1e-9
        unclipped = {GradientFlaw.NOT_CLIPPED, GradientFlaw.PENALTY_NOT_CLIPPED}
        assert clipped is (flaw not in unclipped), flaw
        assert any(silent) is (flaw is GradientFlaw.NOISE_SKIPPED), flaw
        assert (sizes == {15}) is (flaw is GradientFlaw.NOT_SAMPLED), flaw
        ((name, fixed),) = generator.fixes().items()
        assert name == flaw
        assert fixed.flaws == () == tuple(fixed.fixes())


def test_tables_fit_the_schema_and_follow_their_seed() -> None:
    generator = DpGan(**SMALL)
    data = table(30)
    generator.check(data)
    model = generator.fit(data, seed=1)
    synthetic = model.sample(25, seed=2)
    assert not SCHEMA.problems(synthetic)
    pd.testing.assert_frame_equal(synthetic, generator.fit(data, seed=1).sample(25, seed=2))
    assert not synthetic.equals(model.sample(25, seed=3))
    assert model.discriminate(data).shape == (30,)
    with pytest.raises(DataError, match="does not fit the schema"):
        generator.check(data.drop(columns="age"))
    with pytest.raises(DataError, match="does not fit the schema"):
        generator.fit(data.drop(columns="age"), seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 0}, "`rounds` must be a whole number of at least 1, got 0"),
        ({"rate": 0.0}, "`rate` must be a number in"),
        ({"rate": 1.5}, "`rate` .* got 1.5"),
        ({"epsilon": 0.0}, "`epsilon` must be a number above 0"),
        ({"delta": 0.0}, "delta"),
        ({"clip": 0.0}, "`clip` must be a number above 0"),
        ({"penalty": -1.0}, "`penalty` must be a number of at least 0"),
        ({"flaws": "none"}, "flaws has 'none'"),
        ({"generator_hidden": [0]}, "`generator_hidden` must be a whole number"),
        ({"learning_rate": 0}, "`learning_rate` must be a number above 0"),
        ({"betas": [1.0, 0.5]}, "betas is"),
    ],
)
def test_senseless_settings_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        DpGan(**(SMALL | change))
