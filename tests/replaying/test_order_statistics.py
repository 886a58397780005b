"""Of many noisy numbers one is released, or a count of bits: the others must not count."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.replaying import laws
from dpaudit.replaying.laws import Tilt
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict

pytestmark = pytest.mark.usefixtures("worlds")
SCHEMA = dpaudit.Schema.from_document(
    {"columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 1000}]}
)
TABLE = pd.DataFrame({"x": np.linspace(0.0, 1.0, 40)})


class Released:
    """Numbers, one after another, in as many rows."""

    def __init__(self, values: Any) -> None:
        self.values = np.atleast_1d(np.asarray(values, dtype=float))

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"x": np.resize(self.values, n)})


class Some:
    """What a function takes of noisy counts of the records."""

    def __init__(self, takes: Callable[[Any], Any], *, count: int = 5, scale: float = 3.0) -> None:
        self.takes, self.count, self.scale = takes, count, scale

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        noise = np.random.default_rng(seed).laplace(0.0, self.scale, self.count)
        return Released(self.takes(len(data) + noise))


def by_place(noisy: Any) -> Any:
    return noisy[np.argsort(noisy)[2]]


def by_largest(noisy: Any) -> Any:
    return noisy[np.argmax(noisy)]


def by_loop(noisy: Any) -> Any:
    best = None
    for one in noisy:
        if best is None or one < best:
            best = one
    return best


def in_python(noisy: Any) -> Any:
    return statistics.median(noisy.tolist())


def most(noisy: Any) -> Any:
    return float((noisy > 50.0).sum() >= 3)


def each_bit(noisy: Any) -> Any:
    return (noisy > 41.0).astype(float)


def in_order(noisy: Any) -> Any:
    return noisy[np.argsort(noisy)]


def above(noisy: Any) -> Any:
    return np.where(noisy > 10.0, noisy, 0.0)


class MedianOfSums:
    """The median of three sums of two noisy counts each, exactly 1-DP; or all three sums."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        rng = np.random.default_rng(seed)
        first, second = (len(data) + rng.laplace(0.0, 4.0, 3) for _ in range(2))
        in_turn = np.sort(first + second) if self.whole else by_middle(first + second)
        return Released(in_turn)


def by_middle(noisy: Any) -> Any:
    return noisy[np.argsort(noisy)[1]]


def replayed(generator: Any, epsilon: float, **given: Any) -> ReplayRecord:
    settings = {"replays": 6, "delta": 0.0, **given}
    return dpaudit.replay(
        generator, TABLE, schema=SCHEMA, target="row:0", epsilon=epsilon, **settings
    )


@pytest.mark.parametrize(
    "takes",
    [
        by_place,
        by_largest,
        pytest.param(by_loop, marks=pytest.mark.ci),
        pytest.param(in_python, marks=pytest.mark.ci),
    ],
)
def test_one_of_five_noisy_numbers_is_not_all_of_them(takes: Callable[[Any], Any]) -> None:
    """Five numbers cost 5/3 with noise of scale 3; their median costs 1, as its density shows."""
    record = replayed(Some(takes), 1.1)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0


@pytest.mark.parametrize("takes", [in_order, pytest.param(above, marks=pytest.mark.ci)])
def test_all_of_them_are_all_of_them(takes: Callable[[Any], Any]) -> None:
    record = replayed(Some(takes), 1.1)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(5 / 3, rel=0.01)


def test_the_median_of_sums_is_not_all_of_them() -> None:
    assert replayed(MedianOfSums(whole=False), 1.05).verdict is Verdict.INCONCLUSIVE


@pytest.mark.ci
def test_sums_that_are_all_released_are_all_of_them() -> None:
    assert replayed(MedianOfSums(whole=True), 1.05).verdict is Verdict.VIOLATION


@pytest.mark.ci
def test_a_majority_of_bits_is_not_all_of_them() -> None:
    record = replayed(Some(most), 1.0, replays=40)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)


def test_bits_that_are_all_released_are_all_of_them() -> None:
    record = replayed(Some(each_bit), 0.5, replays=20)
    assert record.verdict is Verdict.VIOLATION, str(record)


class NoisyMax:
    """Report noisy max, as the first place that is at least the largest."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        rng = np.random.default_rng(seed)
        counts = np.array([30, 28, len(data)])
        if self.whole:
            noisy = counts + rng.geometric(0.4, size=3) - rng.geometric(0.4, size=3)
            return Released(next(at for at in range(3) if noisy[at] >= max(noisy.tolist())))
        noisy = counts + rng.laplace(0.0, 2.0, size=3)
        return Released(np.flatnonzero(noisy >= noisy.max())[0])


@pytest.mark.parametrize("whole", [False, True])
def test_at_least_the_largest_is_true_of_the_largest(whole: bool) -> None:
    assert replayed(NoisyMax(whole=whole), 1.0, replays=2).verdict is not Verdict.VIOLATION


class OneSided:
    """A count with noise that never lowers it: what lies below it only one world can have."""

    def __init__(self, law: str) -> None:
        self.law = law

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        rng = np.random.default_rng(seed)
        return Released(
            len(data) + {"exponential": rng.exponential, "geometric": rng.geometric}[self.law](0.5)
        )


@pytest.mark.parametrize("law", ["exponential", "geometric"])
def test_noise_on_one_side_has_no_epsilon(law: str) -> None:
    for delta in (0.0, 1e-5):
        record = replayed(OneSided(law), 1.0, delta=delta)
        assert record.verdict is Verdict.VIOLATION, str(record)
        assert record.proved is None
        assert record.computed is None


@pytest.mark.parametrize(
    ("law", "share"),
    [
        (laws.Gamma(np.array([2.0]), np.array([1.0])), -np.expm1(-0.5)),
        (laws.Geometric(np.array([1.0]), np.array([0.3])), 0.3),
        (laws.Geometric(np.array([1.0]), np.array([0.3]), -1.0), 0.3),
    ],
    ids=["exponential", "geometric", "below"],
)
def test_what_one_world_alone_can_have_is_drawn(law: Any, share: float) -> None:
    shift = np.full(500, -1.0) * law.sign
    drawn = law.drawn(Tilt(shift, 1.0), np.random.default_rng(0))
    assert np.all(np.isfinite(law.log_density(drawn.value)))
    assert np.all(law.log_density(drawn.value + shift) == -np.inf)
    assert np.exp(drawn.log_weights) == pytest.approx(share)
    other_way = law.drawn(Tilt(-shift, 0.0), np.random.default_rng(0))
    assert np.all(other_way.log_weights == 0.0)


class Reordered:
    """The order of the columns says whether the number of records is odd."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Reordered:
        self.columns = list(data.columns)[:: 1 if len(data) % 2 else -1]
        self.count = len(data) + np.random.default_rng(seed).laplace()
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return pd.DataFrame({"x": np.full(n, self.count), "y": 0.5})[self.columns]


def test_columns_in_another_order_are_a_difference() -> None:
    columns = [{"name": name, "kind": "continuous", "lower": 0, "upper": 99} for name in "xy"]
    record = dpaudit.replay(
        Reordered(),
        TABLE.assign(y=0.5),
        schema=dpaudit.Schema.from_document({"columns": columns}),
        target="row:0",
        epsilon=1.0,
        delta=0.0,
        replays=2,
    )
    assert record.parting is not None
    assert record.parting.inside == "columns or index differ"


class GumbelOfTorch:
    """The exponential mechanism by Gumbel noise that is made of uniform draws of torch."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> GumbelOfTorch:
        import torch

        generator = torch.Generator().manual_seed(seed)
        uniform = torch.rand(2, generator=generator, dtype=torch.float64)
        scores = 1.5 * torch.tensor([60.0, len(data)], dtype=torch.float64)
        self.place = int(torch.argmax(scores - torch.log(-torch.log(uniform))))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"x": rng.choice(2, size=n, p=[0.5, 0.5]) + float(self.place)})


def test_rows_drawn_with_probabilities_do_not_stand_for_noise_in_the_fit() -> None:
    record = replayed(GumbelOfTorch(), 0.1, replays=2)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
