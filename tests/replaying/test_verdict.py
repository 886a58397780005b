"""The verdict of whole replays, and each reason why nothing can be concluded."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.results.verdict import Verdict
from listened import CELLS, Released, line_of, replayed, rows_of_shares, same_rows

pytestmark = pytest.mark.usefixtures("worlds")


# -- the five verdicts ---------------------------------------------------------------------------


def honest(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 1.0, CELLS)


def half_the_noise(counts: Any, rng: Any) -> Any:
    return np.maximum(counts + rng.laplace(0.0, 0.5, CELLS), 0.0)


def no_noise(counts: Any, rng: Any) -> Any:
    return counts


def median_of_copies(counts: Any, rng: Any) -> Any:
    return float(np.median(counts[3] + rng.laplace(0.0, 5.0, 9)))


def test_an_honest_histogram_is_consistent_and_its_cost_is_exact() -> None:
    record = replayed(honest, rows_of_shares)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert (record.spent, record.spent_is_exact) == (pytest.approx(1.0), True)
    assert record.proved == 0.0
    assert record.replays == 8
    assert "what happens in less than 0.375 of fits is not seen" in record.reasons[0]
    [line] = record.ledger
    assert line.place == line_of(honest, "laplace")
    assert (line.law, line.times, line.l1, line.counts_as) == ("laplace", 1, 1.0, "released")
    record.assert_no_violation()


def test_too_little_noise_is_a_violation_that_is_read_off_the_model() -> None:
    record = replayed(half_the_noise, fits=None)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert not record.of_proof
    assert record.spent == pytest.approx(2.0)
    assert record.proved is not None
    assert 1.0 < record.proved < 2.0
    assert record.reading is not None
    assert record.reading.line == line_of(half_the_noise, "laplace")
    assert record.reading.released_at == "model.m[3]"
    assert record.reading.bound == record.proved
    assert record.guesses is None
    with pytest.raises(AssertionError, match="VIOLATION"):
        record.assert_no_violation()


def test_a_count_without_noise_in_the_rows_is_a_violation_by_coins() -> None:
    record = replayed(no_noise, lambda m, n, seed: np.full(n, m[3]), access="rows", fits=None)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.reading is None
    assert record.guesses is not None
    assert record.guesses.decided
    assert record.guesses.right == record.guesses.guesses == 24
    assert record.parting is not None
    assert record.parting.kind == "rows"
    assert record.proved is not None
    assert 1.0 < record.proved < 3.0


def test_steps_that_spend_more_than_is_shown_are_overspent() -> None:
    record = replayed(median_of_copies, fits=80)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent == pytest.approx(9 / 5)
    assert record.proved == 0.0
    assert record.guesses is not None  # it was tried
    assert not record.guesses.decided
    with pytest.raises(AssertionError, match="OVERSPENT"):
        record.assert_no_violation()


def test_the_same_is_a_violation_of_a_proof_by_composition() -> None:
    record = replayed(median_of_copies, proof="composition")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.of_proof
    assert record.proved == 0.0
    assert "--proof composition" in record.reproduce


class StatesItsProof:
    """As `median_of_copies`, by a generator that says how its claim is proved."""

    proof = "composition"

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        count = int((data["a"] == 3).sum())
        return Released(np.median(count + np.random.default_rng(seed).laplace(0, 5, 9)), same_rows)


def test_a_generator_may_state_its_proof() -> None:
    record = replayed(StatesItsProof())
    assert (record.verdict, record.of_proof) == (Verdict.VIOLATION, True)
    assert record.proof == "composition"


# -- why nothing can be concluded ----------------------------------------------------------------


def one_more_draw(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return noisy + rng.laplace() if counts[3] else noisy


def noise_for_some(counts: Any, rng: Any) -> Any:
    return counts[counts > 0] + rng.laplace(0.0, 1.0, int((counts > 0).sum()))


def noise_on_others(counts: Any, rng: Any) -> Any:
    noise = np.zeros(CELLS)
    noise[:3] = rng.laplace(0.0, 1.0, 3)
    return counts + noise


def parameter_of_data(counts: Any, rng: Any) -> Any:
    return [honest(counts, rng), rng.poisson(5.0 + counts[3])]


def seed_of_data(counts: Any, rng: Any) -> Any:
    return counts + np.random.default_rng(int(counts.sum())).laplace(0.0, 1.0, CELLS)


def coins_of_data(counts: Any, rng: Any) -> Any:
    return [honest(counts, rng), np.random.default_rng(int(counts.sum())).random(20)]


def fails_in_one_world(counts: Any, rng: Any) -> Any:
    noisy = honest(counts, rng)
    if not counts[3]:
        raise ValueError("an empty cell")
    return noisy


PARTED: dict[str, tuple[Callable[..., Any], str]] = {
    "steps": (one_more_draw, "else noisy"),
    "draws": (parameter_of_data, "poisson"),
    "seeds": (coins_of_data, "default_rng"),
    "failure": (fails_in_one_world, ""),
}


@pytest.mark.parametrize("kind", PARTED)
def test_where_the_worlds_part_is_named(kind: str) -> None:
    train, text = PARTED[kind]
    record = replayed(train)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.parting is not None
    assert record.parting.kind == kind
    if text:
        assert record.parting.place == line_of(train, text)
        assert record.reasons[0].startswith(f"{record.parting.place}: ")


@pytest.mark.parametrize(
    "train",
    [
        noise_for_some,
        *(pytest.param(one, marks=pytest.mark.ci) for one in (noise_on_others, seed_of_data)),
    ],
)
def test_noise_that_follows_the_data_is_never_consistent(train: Callable[..., Any]) -> None:
    record = replayed(train)
    assert record.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(record)
    where = line_of(train, "laplace")
    assert where in " ".join([*record.reasons, *(one.place for one in record.ledger)])


def true_counts(counts: Any, rng: Any) -> Any:
    return {"noisy": counts + rng.laplace(0.0, 1.0, CELLS), "log": counts.tolist()}


def generator(counts: Any, rng: Any) -> Any:
    return [counts + rng.laplace(0.0, 1.0, CELLS), rng]


def plain_number(counts: Any, rng: Any) -> Any:
    return [count + float(rng.laplace()) for count in counts]


def fixed_seed(counts: Any, rng: Any) -> Any:
    return counts + np.random.default_rng(7).laplace(0.0, 1.0, CELLS)


def few_seeds(counts: Any, rng: Any) -> Any:
    own = np.random.default_rng(int(rng.integers(2**31)) % 8)
    return counts + own.laplace(0.0, 1.0, CELLS)


def one_seed_for_two(counts: Any, rng: Any) -> Any:
    seed = int(rng.integers(2**31))
    first, second = (np.random.default_rng(seed) for _ in range(2))
    return [counts[3] + first.laplace(0.0, 2.0), counts[2] + second.laplace(0.0, 2.0)]


def nothing_moves(counts: Any, rng: Any) -> Any:
    return rng.laplace(0.0, 1.0, CELLS)


def a_lock(counts: Any, rng: Any) -> Any:
    return [counts + rng.laplace(0.0, 1.0, CELLS), itertools.islice(counts, 2), _Held()]


class _Held:
    """Something that no walk sees into."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        raise TypeError("it cannot be pickled")


def sum_of_two_laws(counts: Any, rng: Any) -> Any:
    return counts + (rng.laplace(size=CELLS) + rng.gumbel(size=CELLS))


REASONS: dict[str, tuple[Callable[..., Any], str]] = {
    "stored": (true_counts, r"`model.m\['log'\]` in the fitted model depends on the record"),
    "generator": (generator, r"stores what the noise is drawn from \(`model.m\[1\]`\)"),
    "not followed": (plain_number, r"{laplace}: "),
    "fixed seed": (fixed_seed, r"the noise at {laplace} has the same seed in every fit"),
    "few seeds": (few_seeds, r"the noise at {laplace} has the same seed in several fits"),
    "shared noise": (one_seed_for_two, r"the noise at {laplace} and at {laplace} is the same"),
    "nothing": (nothing_moves, r"this record moved no noisy answer and nothing else"),
    "not compared": (a_lock, r"`model.m\[2\]` in the fitted model could not be compared"),
    "unknown law": (sum_of_two_laws, r"what the steps spend is not known: .*{laplace}"),
}


@pytest.mark.parametrize("name", REASONS)
def test_each_reason_is_said(name: str) -> None:
    train, said = REASONS[name]
    record = replayed(train)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    if "{laplace}" in said:
        said = said.replace("{laplace}", re.escape(line_of(train, "laplace")))
    assert any(re.search(said, one) for one in record.reasons), record.reasons


def noise_in_each_sample(m: Any, n: int, seed: int) -> Any:
    return np.full(n, int(np.clip(m[3] + np.random.default_rng(seed).laplace(), 0, 3)))


def test_noise_that_every_sample_draws_is_said() -> None:
    record = replayed(no_noise, noise_in_each_sample, access="rows", epsilon=4.0)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    line = line_of(noise_in_each_sample, "laplace")
    assert record.fresh_noise == (line,)
    assert record.reasons == (
        f"every call of `sample` draws noise at {line} again, and spends again",
    )


def in_a_thread(counts: Any, rng: Any) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda count: count + rng.laplace(), counts))


def in_a_process(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    if not (child := os.fork()):
        rng.laplace()
        os._exit(0)
    os.waitpid(child, 0)
    return noisy


@pytest.mark.parametrize(("train", "said"), [(in_a_thread, "thread"), (in_a_process, "process")])
def test_noise_of_threads_and_processes_ends_with_a_reason(train: Any, said: str) -> None:
    started = time.monotonic()
    record = replayed(train)
    assert time.monotonic() - started < 30
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert said in record.reasons[0]
    assert line_of(train, "rng.laplace()") in record.reasons[0]


def differs_between_processes(counts: Any, rng: Any) -> Any:
    return counts + os.getpid() + rng.laplace(0.0, 1.0, CELLS)


def decides_by_process(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return noisy if os.environ["DPAUDIT_WORLD"] == "in" else noisy - rng.laplace()


@pytest.mark.parametrize("train", [differs_between_processes, decides_by_process])
def test_code_that_is_not_repeatable_concludes_nothing(train: Any) -> None:
    record = replayed(train)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "the code is not repeatable" in record.reasons[0]
    assert record.replays == 0


def test_a_timestamp_in_the_model_is_left_out() -> None:
    def timed(counts: Any, rng: Any) -> Any:
        return {"noisy": counts + rng.laplace(0.0, 1.0, CELLS), "at": time.perf_counter()}

    record = replayed(timed)
    assert record.verdict is Verdict.CONSISTENT, str(record)


# -- what the user says --------------------------------------------------------------------------


def one_too_many(counts: Any, rng: Any) -> Any:
    unreleased = counts[3] + rng.laplace(0.0, 0.5)
    kept = float(unreleased)
    del kept
    return counts + rng.laplace(0.0, 1.0, CELLS)


def test_a_line_that_is_declared_internal_is_not_charged() -> None:
    line = line_of(one_too_many, "unreleased =")
    record = replayed(one_too_many, internal=[f"{line}: only a log sees it"])
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)
    [internal] = record.internal
    assert internal == (line, "only a log sees it")
    [left_out] = [one for one in record.ledger if one.internal]
    assert (left_out.place, left_out.epsilon) == (line, pytest.approx(2.0))
    assert f"--internal '{line}: only a log sees it'" in record.reproduce


@pytest.mark.parametrize("train", [true_counts, pytest.param(generator, marks=pytest.mark.ci)])
def test_who_sees_rows_alone_does_not_see_the_model(train: Any) -> None:
    record = replayed(train, access="rows")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.stored == ()
    assert "--access rows" in record.reproduce
