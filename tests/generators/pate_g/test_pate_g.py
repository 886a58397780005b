"""PATE-G: what leaves the private table is noisy labels of public rows, and nothing else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job, World
from dpaudit.results.verdict import Verdict
from dpaudit_generators.gan.selu_training import evidence, student_loss
from dpaudit_generators.networks.model import Activation, Architecture
from dpaudit_generators.networks.stack import Networks, draw_weights, with_ones
from dpaudit_generators.pate_g import PateG

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),
        Column(name="kind", kind=Kind.BINARY, categories=("a", "b")),
        Column(name="z", kind=Kind.CONTINUOUS, lower=0, upper=1),
    ),
    label="kind",
)
SMALL: dict[str, Any] = {
    "rounds": 4, "batch": 9, "critic_hidden": 7, "generator_hidden": [11], "noise_width": 5,
    "teachers": 5, "labels": 7,
}  # fmt: skip


def two_groups(n: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    is_b = np.arange(n) % 3 == 0
    x = np.where(is_b, rng.uniform(0.7, 0.9, n), rng.uniform(0.1, 0.3, n))
    return pd.DataFrame({"x": x, "kind": np.where(is_b, "b", "a"), "z": rng.random(n)})


def test_the_student_learns_the_label_from_few_noisy_ones() -> None:
    public = two_groups(300, seed=2).drop(columns="kind")
    generator = PateG(schema=SCHEMA, public=public, epsilon=20.0, rounds=200)
    data = two_groups(400)
    generator.check(data)
    model = generator.fit(data, seed=1)
    synthetic = model.sample(600, seed=2)
    assert list(synthetic.columns) == ["x", "kind", "z"]
    means = synthetic.groupby("kind")["x"].mean()
    assert means["b"] - means["a"] > 0.15
    ones = model.probabilities(np.array([[0.2, 0.5], [0.8, 0.5]]))[:, 1]
    assert ones[0] < 0.3 < 0.7 < ones[1]


@pytest.mark.parametrize("public", [None, two_groups(30, seed=2)])
def test_models_are_bit_identical_to_training_alone(public: pd.DataFrame | None) -> None:
    data, generator = two_groups(41), PateG(schema=SCHEMA, public=public, **SMALL)
    jobs = [Job(World.IN, i, (i,) if i % 2 else (), i) for i in range(5)]
    together = generator.fit_many(data, jobs)
    for place, job in enumerate(jobs):
        alone = generator.fit_many(data, [job])[0]
        assert np.array_equal(alone.parameters(), together[place].parameters())
        assert alone.sample(3, seed=1).equals(together[place].sample(3, seed=1))


def test_with_the_same_labels_models_are_the_same_whatever_the_table() -> None:
    # 64 teachers without a doubt and hardly any noise: both tables give the same labels.
    public = two_groups(30, seed=2)
    generator = PateG(schema=SCHEMA, public=public, **SMALL | {"epsilon": 1e4})
    first, second = (generator.fit(two_groups(90, seed=seed), seed=5) for seed in (3, 4))
    assert np.array_equal(first.released(), second.released())
    assert np.array_equal(first.parameters(), second.parameters())


def test_without_public_rows_nothing_is_claimed_and_nothing_released() -> None:
    generator = PateG(schema=SCHEMA, **SMALL)
    assert generator.claim is None
    assert generator.released_facts == ()
    model = generator.fit(two_groups(41), seed=1)
    assert model.claim is None
    assert model.released().size == 0


@pytest.mark.parametrize("labels", [1, 20])
def test_the_claim_is_the_budget_and_the_noise_no_more_than_needed(labels: int) -> None:
    generator = PateG(
        schema=SCHEMA, public=two_groups(30), epsilon=2.0, **SMALL | {"labels": labels}
    )
    assert generator.claim is not None
    assert 1.99 < generator.claim.epsilon <= 2.0
    assert generator.claim.delta == 1e-5


@pytest.mark.ci
def test_labels_are_as_often_flipped_as_the_vote_table_says() -> None:
    public = pd.DataFrame({"x": [0.8] * 4000, "z": [0.5] * 4000})
    settings = SMALL | {"labels": 4000, "teachers": 1, "rounds": 1, "epsilon": 150.0}
    generator = PateG(schema=SCHEMA, public=public, **settings)
    table = generator.aggregation.table
    assert table is not None
    for data, votes in ((two_groups(90), 1), (two_groups(90).iloc[1::3], 0)):
        expected = table.probabilities[votes]
        assert 0.02 < expected < 0.98
        share = generator.fit(data, seed=4).released().mean()
        assert abs(share - expected) < 4.0 * math.sqrt(expected * (1.0 - expected) / 4000)


@pytest.mark.parametrize(
    "data", [two_groups(90).iloc[:0], two_groups(90).iloc[:1], two_groups(90).iloc[1::3]]
)
def test_fitting_refuses_no_table_for_its_records(data: pd.DataFrame) -> None:
    # A refusal would tell of a record: `check` refuses, once and outside the game.
    generator = PateG(schema=SCHEMA, public=two_groups(30), **SMALL)
    assert len(generator.fit(data, seed=1).sample(5, seed=1)) == 5
    with pytest.raises(DataError):
        generator.check(data)


def test_a_gap_in_the_label_is_refused() -> None:
    schema = Schema(
        columns=(
            SCHEMA.columns[0],
            Column(name="kind", kind=Kind.CATEGORICAL, categories=("a", "b"), missing=True),
        ),
        label="kind",
    )
    data = two_groups(40)[["x", "kind"]]
    data.loc[3, "kind"] = None
    with pytest.raises(DataError, match="gaps"):
        PateG(schema=schema, **SMALL).check(data)


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"epsilon": 0.0}, SettingsError, "epsilon"),
        ({"delta": 1.0}, SettingsError, "delta"),
        ({"labels": 0}, SettingsError, "labels"),
        ({"public": two_groups(3)}, DataError, "3 public rows"),
        ({"public": two_groups(30)[["x"]]}, DataError, "z"),
        ({"schema": Schema(columns=SCHEMA.columns)}, DataError, "label"),
    ],
)
def test_what_cannot_work_is_refused_at_once(
    parameters: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        PateG(**{"schema": SCHEMA, **SMALL, **parameters})


def test_public_rows_may_be_named_as_a_file(tmp_path: Path) -> None:
    two_groups(30).to_csv(tmp_path / "public.csv", index=False)
    named = PateG(schema=SCHEMA, public=str(tmp_path / "public.csv"), **SMALL)
    given = PateG(schema=SCHEMA, public=two_groups(30), **SMALL)
    models = [one.fit(two_groups(41), seed=1) for one in (named, given)]
    assert np.allclose(models[0].parameters(), models[1].parameters(), atol=1e-5)


def test_the_student_s_loss_is_that_of_a_softmax_with_one_class_more() -> None:
    rng = np.random.default_rng(0)
    shape = Architecture(hidden=[5, 5], activation=Activation.SELU)
    stack = Networks([draw_weights(shape.layers(3, 4), rng)], shape)
    asked, real, fakes = (
        with_ones(torch.from_numpy(rng.random((6, 3))).float())[None] for _ in "abc"
    )
    classes = torch.tensor([[0, 1, 2, 3, 0, 1]])
    hot = torch.nn.functional.one_hot(classes, 4).float()
    loss = float(student_loss(stack, asked, hot, real, fakes).detach())

    def logits(rows: torch.Tensor) -> torch.Tensor:
        return stack(rows)[0, :, :4].detach()

    def of_made(rows: torch.Tensor) -> torch.Tensor:
        own = logits(rows)
        return torch.cat([own, torch.zeros(len(own), 1)], dim=1).softmax(dim=1)[:, -1]

    by_hand = torch.nn.functional.cross_entropy(logits(asked), classes[0])
    by_hand = by_hand - (1.0 - of_made(real)).log().mean() - of_made(fakes).log().mean()
    assert loss == pytest.approx(float(by_hand), rel=1e-5)
    assert torch.allclose(evidence(logits(real)[None])[0], logits(real).logsumexp(dim=1))


@pytest.mark.ci
def test_an_audit_of_the_released_labels_is_consistent(tmp_path: Path) -> None:
    public = tmp_path / "public.csv"
    pd.DataFrame({"x": [1.0] * 10, "z": [1.0] * 10}).to_csv(public, index=False)
    settings = SMALL | {"public": str(public), "teachers": 1, "rounds": 1, "epsilon": 2.0}
    result = audit_by_keywords(
        "pate-g",
        schema=SCHEMA,
        parameters=settings,
        worst_case="opposite",
        access="released",
        shadow_models=80,
        probe=False,
        out=tmp_path / "run",
        jobs=1,
    )
    assert result.verdict is not Verdict.VIOLATION
    assert result.claim.epsilon > 1.99
