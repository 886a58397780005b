"""Whole replays of secret sub-samples: honest ones pass, faults are named, others are open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpaudit.replaying.checks import follows_coins, leaves_no_trace, other_orders
from dpaudit.replaying.setting import with_other_rows

import dpaudit
import listened
import listened_samples
from dpaudit.replaying import laws
from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.lockstep import Order
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.transcript import NoisyStep, Pair, Site, Toss, Transcript
from dpaudit.results.verdict import Verdict
from listened import table

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(
    {
        "columns": [
            {"name": "a", "kind": "integer", "lower": 0, "upper": listened.CELLS - 1},
            {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
        ]
    }
)


def replayed(name: str, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"replays": 4, "target": "row:39", **given}
    return dpaudit.replay(getattr(listened_samples, name)(), table(), schema=SCHEMA, **settings)


def line_of(code: str) -> str:
    """File and line of some code that only one generator has."""
    source = Path(listened_samples.__file__).read_text().splitlines()
    [line] = [at for at, text in enumerate(source) if code in text]
    return f"listened_samples.py:{line + 1}"


@pytest.mark.parametrize(
    "name",
    [
        "Sampling",
        *(
            pytest.param(name, marks=pytest.mark.ci)
            for name in ("OneByOne", "KeptAbove", "ByBinomial", "ElementByElement")
        ),
    ],
)
def test_a_poisson_sub_sample_is_followed_however_it_is_written(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(3.534, abs=2e-3)
    assert record.proved is not None
    assert 1.5 < record.proved <= 3.534
    assert not record.not_followed
    [line] = record.ledger
    assert line.sampling == pytest.approx(0.5)
    assert line.counts_as == "released"
    assert "sub-sample" in str(record)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["FromTorch", "FromTorchBits"])
def test_coins_of_torch_are_followed_too(name: str) -> None:
    pytest.importorskip("torch")
    record = replayed(name, replays=2)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(3.534, abs=2e-3)
    assert not record.not_followed


def test_the_loss_of_a_pure_mechanism_is_exact() -> None:
    record = replayed("LaplaceSample")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved == pytest.approx(np.log((1 + np.e) / 2))
    assert record.computed == pytest.approx(record.proved)


def test_answers_of_one_coin_are_composed() -> None:
    record = replayed("TwoAnswersOfACoin")
    assert record.computed == pytest.approx(3.534, abs=2e-3)


@pytest.mark.ci
def test_steps_of_many_coins_are_composed() -> None:
    record = replayed("ManySteps")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(2.8545, abs=5e-3)
    assert record.ledger[0].times == 10


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("TwiceTheRate", marks=pytest.mark.ci),
        pytest.param("HalfTheSamplingNoise", marks=pytest.mark.ci),
    ],
)
def test_a_rate_or_a_scale_that_is_not_the_claims_is_a_violation_at_its_line(name: str) -> None:
    record = replayed(name, replays=10)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.ledger[0].place == line_of(
        "self.counted() + self.rng.normal(0.0, self.scale, size=CELLS))"
    )
    assert "given which other records are in the sub-samples" in record.reasons[0]


@pytest.mark.ci
def test_a_training_with_too_little_noise_on_sub_samples_is_found_and_its_honest_twin_is_not() -> (
    None
):
    pytest.importorskip("torch")
    honest = replayed("TorchSteps")
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    assert honest.computed == pytest.approx(2.8545, abs=0.3)
    found = replayed("TorchStepsHalfTheNoise")
    assert found.verdict is Verdict.VIOLATION, str(found)
    assert found.ledger[0].place == line_of("# the noise")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("KeepsSamples", "own coins"),
        pytest.param("NoiseByCoins", "own coins", marks=pytest.mark.ci),
        pytest.param("CountOfASample", "could hide it", marks=pytest.mark.ci),
        pytest.param("SumOfSteps", "not followed", marks=pytest.mark.ci),
        pytest.param("SmallestCoins", "used as numbers", marks=pytest.mark.ci),
        ("RateByRows", "depends on the data"),
        ("Replaced", "coins"),
    ],
)
def test_what_is_no_pure_sub_sample_is_never_a_violation(name: str, said: str) -> None:
    record = replayed(name, epsilon=0.05)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert said in " ".join(record.reasons)


def test_the_target_is_in_or_out_in_each_order_of_its_coins() -> None:
    rng = np.random.default_rng(0)
    tosses = [Toss(Site("code.py", 1, "f"), 0.5, inside=True)] * 3
    orders = list(other_orders(Transcript(tosses=tosses), Order(1), 5, 2, rng))
    falls = [one.falls for one in orders if not one.rows]
    assert falls[:3] == [(False,), (True, False), (False, True)]
    assert len(falls) == 4
    rows = [set(one.rows) for one in orders if one.rows]
    assert set.union(*rows) == {0, 1, 3, 4}
    assert not set.intersection(*rows)


def test_other_rows_come_from_the_table_and_the_rest_stays() -> None:
    found = with_other_rows(table(), (1, 3), np.random.default_rng(0))
    kept = [at for at in range(40) if at not in (1, 3)]
    assert found.iloc[kept].equals(table().iloc[kept])
    assert len(found) == 40


def test_coins_that_fall_otherwise_must_leave_the_same_number_of_steps() -> None:
    tosses = [Toss(Site("code.py", 1, "f"), 0.5, inside=False)]
    assert follows_coins(Transcript(tosses=tosses), Transcript(tosses=tosses))
    assert not follows_coins(Transcript(tosses=tosses), Transcript())


def drawn(law: NoiseLaw) -> NoisyStep:
    """An answer that is moved by the record while its coin is "in"."""
    return NoisyStep(
        site=Site("code.py", 2, "f"),
        first=0,
        before=Pair(np.ones(1), np.zeros(1)),
        laws=(law, law),
        answer=np.array([0.5]),
        moved=np.zeros(1),
        log_weight=0.0,
        base=0,
        toss=0,
    )


def with_coin(step: NoisyStep, *, inside: bool) -> Transcript:
    return Transcript(noisy=[step], tosses=[Toss(Site("code.py", 1, "f"), 0.5, inside=inside)])


WIDE, NARROW = laws.Gaussian(np.full(1, 2.0)), laws.Gaussian(np.ones(1))
OTHERS = [NARROW, laws.Laplace(np.full(1, 2.0))]


@pytest.mark.parametrize("other", OTHERS)
def test_a_coin_decides_what_is_counted_and_never_the_law_of_the_noise(other: NoiseLaw) -> None:
    first = with_coin(drawn(WIDE), inside=True)
    still = Pair(np.zeros(1), np.zeros(1))
    assert follows_coins(first, first)
    assert follows_coins(first, with_coin(replace(drawn(WIDE), before=still), inside=False))
    for found in ((other, other), (WIDE, other), (other, WIDE)):
        assert not follows_coins(first, with_coin(replace(drawn(WIDE), laws=found), inside=True))
        second = replace(drawn(WIDE), before=still, laws=found)
        assert not follows_coins(first, with_coin(second, inside=False))
    # with the coin "out" each world does what world "out" did
    widened = with_coin(replace(drawn(WIDE), laws=(other, WIDE)), inside=True)
    assert follows_coins(widened, with_coin(replace(drawn(WIDE), before=still), inside=False))
    assert not follows_coins(
        widened, with_coin(replace(drawn(WIDE), before=still, laws=(other, WIDE)), inside=False)
    )


@pytest.mark.parametrize("other", OTHERS)
def test_with_its_coins_out_a_record_leaves_no_trace_in_value_or_law(other: NoiseLaw) -> None:
    still = replace(drawn(WIDE), before=Pair(np.zeros(1), np.zeros(1)))
    assert leaves_no_trace(with_coin(still, inside=False))
    assert not leaves_no_trace(with_coin(drawn(WIDE), inside=False))
    for found in ((WIDE, other), (other, WIDE)):
        assert not leaves_no_trace(with_coin(replace(still, laws=found), inside=False))
    assert not leaves_no_trace(Transcript(noisy=[still]))  # without a coin nothing was sampled
