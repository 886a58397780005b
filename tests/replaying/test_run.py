"""What whole replays see that two equal ones miss, and what must never accuse anybody."""
# ruff: noqa: NPY002 - code as authors write it

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.errors import ReplayError, SettingsError
from dpaudit.replaying.run import _ANSWER_EDGES, replays_of
from dpaudit.results.verdict import Verdict
from listened import (
    CELLS,
    SCHEMA,
    TABLE,
    Mechanism,
    Released,
    replayed,
    rows_of_shares,
    same_rows,
)

pytestmark = pytest.mark.usefixtures("worlds")


def honest(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 1.0, CELLS)


def little_noise(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 0.2, CELLS)


# -- leaks that equal replays miss ---------------------------------------------------------------


def seldom_all(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return counts.astype(float) if rng.random() < 1e-6 else noisy


def seldom_all_by_another_tail(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return counts.astype(float) if rng.random() > 1 - 1e-6 else noisy


def by_a_coin_of_one_world(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return noisy + 1000.0 if rng.random() < 0.01 * counts[3] else noisy


def truth_beyond(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return counts.astype(float) if noisy[3] > 25 or noisy[3] < -25 else noisy


def truth_far_beyond(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return counts.astype(float) if noisy[3] < -70 else noisy


def clipped_at_a_share(counts: Any, rng: Any) -> Any:
    return np.minimum(counts + rng.laplace(0.0, 1.0, CELLS), counts.sum() / 1.5)


def in_low_bits(counts: Any, rng: Any) -> Any:
    return counts + rng.laplace(0.0, 1.0, CELLS) + 1e-12 * counts


def in_a_string(counts: Any, rng: Any) -> Any:
    return [counts + rng.laplace(0.0, 1.0, CELLS), f"counts: {counts}"]


def in_a_set(counts: Any, rng: Any) -> Any:
    return [counts + rng.laplace(0.0, 1.0, CELLS), {int(one) for one in np.flatnonzero(counts)}]


def in_keys(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return {int(one): float(noisy[one]) for one in np.flatnonzero(counts)}


def in_a_closure(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    return [noisy, lambda: counts]


MISSED = [
    seldom_all,
    by_a_coin_of_one_world,
    truth_beyond,
    in_low_bits,
]
MISSED_TOO = [
    seldom_all_by_another_tail,
    clipped_at_a_share,
    in_a_string,
    in_a_set,
    in_keys,
    in_a_closure,
]


@pytest.mark.parametrize(
    "train", [*MISSED, *(pytest.param(one, marks=pytest.mark.ci) for one in MISSED_TOO)]
)
def test_a_leak_that_equal_answers_hide_is_never_consistent(train: Any) -> None:
    record = replayed(train)
    assert record.verdict in (Verdict.INCONCLUSIVE, Verdict.OVERSPENT), str(record)
    assert record.stored or record.parting is not None or record.spent_unlimited


@pytest.mark.ci
def test_the_farthest_edge_is_at_a_hundred_scales(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.replaying.run._ANSWER_EDGES", _ANSWER_EDGES)
    record = replayed(truth_far_beyond)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.stored


def raw_rows_of_many(m: Any, n: int, seed: int) -> Any:
    noisy, counts = m
    if n > 50:
        return np.repeat(np.arange(CELLS), counts)[:n]
    return rows_of_shares(noisy, n, seed)


def test_rows_are_also_drawn_in_a_number_above_that_of_the_records() -> None:
    def both(counts: Any, rng: Any) -> Any:
        return counts + rng.laplace(0.0, 1.0, CELLS), counts

    record = replayed(both, raw_rows_of_many, access="rows")
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.parting is not None
    assert (record.parting.kind, record.parting.inside) == ("rows", "87 rows differ")


# -- what is never a violation -------------------------------------------------------------------

NOISE = {"kept": None}


def kept_by_the_process(counts: Any, rng: Any) -> Any:
    if NOISE["kept"] is None:
        NOISE["kept"] = np.random.laplace(0.0, 1.0, CELLS)
    return counts + NOISE["kept"]


@lru_cache
def _noise_of(table: bytes) -> Any:
    return np.random.laplace(0.0, 1.0, CELLS)


def kept_by_the_table(counts: Any, rng: Any) -> Any:
    return counts + _noise_of(counts.tobytes())


class DrawnAtImport:
    """Its noise is drawn when the generator is unpickled, as at the import of a library."""

    def __setstate__(self, state: Any) -> None:
        self.noise = np.random.default_rng().laplace(0.0, 1.0, CELLS)

    def __getstate__(self) -> Any:
        return {"some": "state"}

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        return Released(np.bincount(data["a"], minlength=CELLS) + self.noise, same_rows)


@pytest.mark.parametrize(
    "train",
    [
        kept_by_the_process,
        pytest.param(kept_by_the_table, marks=pytest.mark.ci),
        pytest.param(DrawnAtImport, id="import", marks=pytest.mark.ci),
    ],
)
def test_noise_that_fits_of_a_process_share_is_never_a_violation(train: Any) -> None:
    """One draw for all fits: a coin game that is won says nothing of a single fit."""
    record = replayed(train() if isinstance(train, type) else train, fits=100)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.proved == 0.0
    assert record.reading is None


def drawn_until_above(counts: Any, rng: Any) -> Any:
    """At any noise it releases nothing: beyond both counts the law is the same."""
    noisy = 0.0
    for _ in range(25):
        noisy = counts[3] + rng.laplace(0.0, 1.0)
        if noisy > 1.05:
            break
    return float(noisy)


def accepted_noise(counts: Any, rng: Any) -> Any:
    noise = 0.0
    for _ in range(25):
        noise = rng.laplace(0.0, 0.2)
        if noise > -100.0:
            break
    return counts[3] + noise


def test_an_answer_that_is_drawn_again_is_not_read() -> None:
    record = replayed(drawn_until_above, epsilon=0.3, fits=100)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.reading is None


def test_noise_that_is_accepted_before_it_meets_data_is_not_read() -> None:
    """By coins it is: the leak is real."""
    record = replayed(accepted_noise, fits=100)
    assert record.reading is None
    assert record.not_followed or record.spent_note, str(record)


@pytest.mark.parametrize("scale", [1.0, pytest.param(0.5, marks=pytest.mark.ci)])
def test_fits_that_fail_by_chance_accuse_nobody(scale: float) -> None:
    def fails(counts: Any, rng: Any) -> Any:
        noisy = counts + rng.laplace(0.0, scale, CELLS)
        if rng.random() < 0.1:
            raise ValueError("by chance")
        return noisy

    record = replayed(fails, fits=100)
    assert record.reading is None
    assert record.proved == 0.0


def sub_sample(counts: Any, rng: Any) -> Any:
    cells = np.repeat(np.arange(CELLS), counts)
    kept = cells[rng.random(len(cells)) < 0.5]
    return np.bincount(kept, minlength=CELLS) + rng.laplace(0.0, 0.25, CELLS)


def test_answers_of_a_secret_sub_sample_are_not_read() -> None:
    record = replayed(sub_sample, fits=100)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.reading is None
    assert record.spent == pytest.approx(np.log1p(0.5 * np.expm1(4.0)))


def noise_twice(counts: Any, rng: Any) -> Any:
    return counts[3] + rng.laplace(0.0, 0.1) + rng.laplace(0.0, 1.0)


def noise_of_two_kinds(counts: Any, rng: Any) -> Any:
    return counts[3] + rng.laplace(0.0, 0.1) + rng.normal(0.0, 1.0)


def less_noise_kept(counts: Any, rng: Any) -> Any:
    answer = counts[3] + rng.laplace(0.0, 0.1)
    return [answer, answer + rng.laplace(0.0, 1.0)]


def test_noise_that_is_added_in_two_steps_is_charged_together() -> None:
    record = replayed(noise_twice, proof="composition")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0, abs=0.01)


def test_more_noise_of_another_kind_accuses_nobody() -> None:
    record = replayed(noise_of_two_kinds, proof="composition")
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert "more noise is added to a noisy answer" in record.reasons[0]
    assert record.spent == pytest.approx(10.0)


def test_an_answer_that_is_also_used_without_more_noise_is_charged_in_full() -> None:
    record = replayed(less_noise_kept, proof="composition")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.spent == pytest.approx(10.0)


def redrawn_until_valid(counts: Any, rng: Any) -> Any:
    while True:
        noisy = counts[3] + rng.laplace(0.0, 1.0)
        if 0 <= noisy <= 2:
            return noisy


def redrawn_cells(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 1.0, CELLS)
    while (bad := noisy < 1).any():
        noisy[bad] = (counts + rng.laplace(0.0, 1.0, CELLS))[bad]
    return noisy


def redrawn_choices(counts: Any, rng: Any) -> Any:
    chances = np.array([0.2, 0.2, 0.2, 0.4]) if counts[3] else np.full(CELLS, 0.25)
    while (place := rng.choice(CELLS, p=chances)) > 0:
        pass
    return place


def redrawn_once(counts: Any, rng: Any) -> Any:
    noisy = counts[3] + rng.laplace(0.0, 1.0)
    return noisy if noisy > 2 else counts[3] + rng.laplace(0.0, 1.0)


@pytest.mark.parametrize(
    ("train", "epsilon"),
    [
        pytest.param(redrawn_until_valid, 0.5, marks=pytest.mark.ci),
        pytest.param(redrawn_cells, 1.0, marks=pytest.mark.ci),
        (redrawn_choices, 0.5),
        (redrawn_once, 1.0),
    ],
)
def test_draws_that_a_loop_makes_until_a_value_is_valid_refute_no_proof(
    train: Any, epsilon: float
) -> None:
    record = replayed(train, proof="composition", epsilon=epsilon, coins=False)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert "how often a line draws depends on its noise" in str(record.spent_note)
    assert "the code spends at most" in record.headline
    assert "the noise steps spend at most" in record.reasons[0]


def rounds_of_batches(counts: Any, rng: Any) -> Any:
    cells = np.repeat(np.arange(CELLS), counts)
    batches = (cells[rng.random(len(cells)) < 0.5] for _ in range(5))
    return [np.bincount(own, minlength=CELLS) + rng.laplace(0.0, 0.25, CELLS) for own in batches]


def rounds(counts: Any, rng: Any) -> Any:
    return [counts[3] + rng.laplace(0.0, 1.0) for _ in range(5)]


@pytest.mark.parametrize("train", [rounds_of_batches, rounds])
def test_a_loop_whose_rounds_no_noise_decides_refutes_a_proof(train: Any) -> None:
    record = replayed(train, proof="composition", coins=False)
    assert (record.verdict, record.of_proof) == (Verdict.VIOLATION, True), str(record)


def too_little_noise(counts: Any, rng: Any) -> Any:
    return [rng.laplace(0.0, 0.5) + counts[3], redrawn_once(counts, rng)]


def a_table_of_chosen_size(counts: Any, rng: Any) -> Any:
    many = 2 + int(rng.laplace(0.0, 5.0) + counts[0] > 3)
    return [many, counts[-many:] + rng.laplace(0.0, 0.5, many)]


@pytest.mark.parametrize("train", [too_little_noise, a_table_of_chosen_size])
def test_lines_without_a_limit_that_spend_more_than_the_claim_refute_a_proof(train: Any) -> None:
    record = replayed(train, proof="composition", coins=False)
    assert (record.verdict, record.of_proof) == (Verdict.VIOLATION, True), str(record)
    assert not record.spent_is_upper_limit


def data_in_the_scale_of_an_unknown_law(counts: Any, rng: Any) -> Any:
    return counts[0] + (rng.laplace(0.0, 1.0 + 3.0 * counts[3]) + rng.normal(0.0, 1.0))


def data_in_the_scale_of_one_of_two_laws(counts: Any, rng: Any) -> Any:
    is_first = rng.random() < 0.5
    noise = rng.laplace(0.0, 1.0) if is_first else rng.normal(0.0, 1.0 + 3.0 * counts[3])
    return counts[0] + noise


def infinite_noise(counts: Any, rng: Any) -> Any:
    return np.clip(counts + rng.laplace(0.0, np.inf, CELLS), 0.0, 1.0)


def infinite_noise_of_two_answers(counts: Any, rng: Any) -> Any:
    noise = rng.laplace(0.0, np.inf)
    return np.clip([counts[3] + noise, counts[2] + noise], 0.0, 1.0)


def rounded_noise(counts: Any, rng: Any) -> Any:
    return counts + np.round(rng.laplace(0.0, 1.0, CELLS))


def noise_of_an_unknown_sampler(counts: Any, rng: Any) -> Any:
    return counts + rng.triangular(-1.0, 0.0, 1.0, CELLS)


def whole_numbers_beyond_floats(counts: Any, rng: Any) -> Any:
    return (2**60 + counts) + (rng.geometric(0.5, CELLS) - rng.geometric(0.5, CELLS))


@pytest.mark.parametrize(
    "train",
    [
        data_in_the_scale_of_an_unknown_law,
        data_in_the_scale_of_one_of_two_laws,
        infinite_noise,
        infinite_noise_of_two_answers,
        rounded_noise,
        noise_of_an_unknown_sampler,
        whole_numbers_beyond_floats,
    ],
)
def test_what_moves_at_an_unknown_cost_is_never_said_to_spend_nothing(train: Any) -> None:
    record = replayed(train, coins=False)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert record.spent is None
    assert not record.spent_unlimited
    assert record.spent_note


def with_a_missing_answer(counts: Any, rng: Any) -> Any:
    return (np.append(counts, np.nan) + rng.laplace(0.0, 1.0, CELLS + 1))[:CELLS]


def test_an_answer_that_is_missing_in_both_worlds_does_not_move() -> None:
    record = replayed(with_a_missing_answer)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(1.0)


def one_sided(counts: Any, rng: Any) -> Any:
    """Laplace noise as a difference, added to the data draw by draw."""
    return counts + rng.exponential(1.0, CELLS) - rng.exponential(1.0, CELLS)


def one_sided_together(counts: Any, rng: Any) -> Any:
    return counts + (rng.exponential(1.0, CELLS) - rng.exponential(1.0, CELLS))


@pytest.mark.parametrize(
    ("train", "verdict"),
    [(one_sided_together, Verdict.CONSISTENT), (one_sided, Verdict.CONSISTENT)],
)
def test_a_difference_of_one_sided_draws_is_no_violation_of_a_proof(
    train: Any, verdict: Verdict
) -> None:
    record = replayed(train, proof="composition")
    assert record.verdict is verdict, str(record)


# -- selections ----------------------------------------------------------------------------------


def pointing_at(place: int) -> Any:
    return [float(one == place) for one in range(CELLS)]


def noisy_max(counts: Any, rng: Any) -> Any:
    return pointing_at(int(np.argmax(counts + rng.gumbel(0.0, 2.0, CELLS))))


def exponential(counts: Any, rng: Any) -> Any:
    weights = np.exp(0.5 * (counts - counts.max()))
    return int(rng.choice(CELLS, p=weights / weights.sum()))


def by_cumulated(counts: Any, rng: Any) -> Any:
    weights = np.exp(0.5 * (counts - counts.max()))
    return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random()))


def of_exponential(last: float) -> float:
    """The largest loss of a choice among the counts by `exp(count / 2)`."""
    inside, outside = (np.exp(0.5 * np.array([20.0, 12.0, 7.0, one])) for one in (last, 0.0))
    ratio = (inside / inside.sum()) / (outside / outside.sum())
    return float(np.abs(np.log(ratio)).max())


@pytest.mark.parametrize(
    "train", [noisy_max, pytest.param(exponential, marks=pytest.mark.ci), by_cumulated]
)
def test_a_selection_costs_what_its_formula_says(train: Any) -> None:
    record = replayed(train)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(of_exponential(1.0), rel=1e-3)
    [line] = record.ledger
    assert line.law in ("choice", "gumbel")


def sparse_vector(counts: Any, rng: Any) -> Any:
    limit = 5.0 + rng.laplace(0.0, 2.0)
    for place in range(CELLS - 1, -1, -1):
        if counts[place] + rng.laplace(0.0, 4.0) > limit:
            return place
    return -1


def test_a_sparse_vector_is_consistent_with_its_claim() -> None:
    record = replayed(sparse_vector)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent is not None
    assert 0 < record.spent <= 1.0


def selected_and_copied(counts: Any, rng: Any) -> Any:
    noisy = counts + rng.laplace(0.0, 0.5, CELLS)
    best = int(np.argmax(noisy))
    return [best, np.array(memoryview(noisy))]


def test_a_score_that_is_also_copied_is_charged_in_full() -> None:
    record = replayed(selected_and_copied)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent == pytest.approx(2.0)
    [line] = record.ledger
    assert line.counts_as == "released"


# -- sub-samples ---------------------------------------------------------------------------------


def gaussian_sample(counts: Any, rng: Any) -> Any:
    cells = np.repeat(np.arange(CELLS), counts)
    kept = cells[rng.random(len(cells)) < 0.5]
    return np.bincount(kept, minlength=CELLS) + rng.normal(0.0, 1.0, CELLS)


def test_a_gaussian_of_a_poisson_sub_sample_is_amplified_unless_coins_are_public() -> None:
    secret = replayed(gaussian_sample, epsilon=3.535, delta=1e-5)
    assert secret.verdict is Verdict.CONSISTENT, str(secret)
    assert secret.spent == pytest.approx(3.534, abs=2e-3)
    [line] = secret.ledger
    assert line.sampling == pytest.approx(0.5)
    public = replayed(gaussian_sample, epsilon=3.535, delta=1e-5, public_coins=True)
    assert public.verdict is Verdict.OVERSPENT, str(public)
    assert public.spent == pytest.approx(4.377, abs=2e-3)
    assert "--public-coins" in public.reproduce


# -- claims --------------------------------------------------------------------------------------


def gaussian(counts: Any, rng: Any) -> Any:
    return counts + rng.normal(0.0, 1.0, CELLS)


@pytest.mark.parametrize(
    ("given", "spent"),
    [
        ({"mu": 1.0}, 1.0),
        pytest.param({"rho": 0.5}, 0.5, marks=pytest.mark.ci),
        pytest.param({"epsilon": 4.4, "delta": 1e-5}, 4.377, marks=pytest.mark.ci),
    ],
)
def test_what_is_spent_is_in_the_quantity_of_the_claim(
    given: dict[str, float], spent: float
) -> None:
    record = replayed(gaussian, **{"epsilon": None, "delta": None, **given})
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.spent == pytest.approx(spent, abs=1e-3)


def test_gaussian_noise_has_no_epsilon_without_a_delta() -> None:
    record = replayed(gaussian, epsilon=5.0, delta=0.0)
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent_unlimited


# -- repetition ----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_record_and_others_the_same_findings() -> None:
    documents = []
    records = replays_of(
        Mechanism(honest, rows_of_shares),
        TABLE,
        [5, 5, 6],
        schema=SCHEMA,
        epsilon=1.0,
        target="row:39",
    )
    for record in records:
        document = record.to_document()
        del document["seconds"], document["seconds_a_fit"], document["date"]
        documents.append(document)
    first, again, other = documents
    assert first == again
    for name in ("seed", "reproduce"):
        assert other.pop(name) != first.pop(name)
    assert first == other


@pytest.mark.ci
def test_a_violation_is_the_same_again() -> None:
    first, again = (replayed(little_noise, fits=None, seed=3) for _ in range(2))
    assert first.reading == again.reading
    assert (first.proved, first.fits) == (again.proved, again.fits)


# -- which record --------------------------------------------------------------------------------


@pytest.mark.ci
def test_the_record_that_spends_most_is_replayed() -> None:
    record = replayed(honest, target="exposing", targets=3)
    assert record.target == "row:39"
    assert record.fits > 6


@pytest.mark.parametrize("rows", [[0, 0, 1, 1], []])
def test_no_record_without_a_copy_is_wrong_use(rows: list[int]) -> None:
    data = pd.DataFrame({"a": np.array(rows, dtype=int)})
    with pytest.raises(dpaudit.InputError, match=r"every record has a copy|no rows"):
        dpaudit.replay(Mechanism(honest), data, schema=SCHEMA, epsilon=1.0, targets=2)


# -- wrong use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"fits": 0},
        {"fits": 1.5},
        {"targets": 0},
        {"targets": 2, "worst_case": "opposite"},
        {"access": "all"},
        {"proof": "magic"},
        {"internal": ["code.py"]},
        {"samplers": [{"function": "noise", "law": "laplace", "scale": "b"}]},
        {"samplers": [{"function": "my:noise", "law": "laplac", "scale": "b"}]},
        {"samplers": [{"function": "my:noise", "law": "laplace"}]},
        {"samplers": [{"function": "my:noise", "law": "gamma", "scale": "b"}]},
        {"samplers": [{"function": "my:noise", "law": "laplace", "scael": "b"}]},
        {"target": "row:400"},
    ],
    ids=str,
)
def test_wrong_use_is_refused_before_any_fit(given: dict[str, Any]) -> None:
    with pytest.raises(dpaudit.InputError):
        replayed(honest, **given)


def test_a_table_is_needed() -> None:
    with pytest.raises(SettingsError, match="worst_case"):
        dpaudit.replay(Mechanism(honest), schema=SCHEMA, epsilon=1.0)


def test_a_generator_that_fails_is_an_error() -> None:
    def fails(counts: Any, rng: Any) -> Any:
        raise ValueError("no such file")

    with pytest.raises(ReplayError, match=r"ValueError at test_run\.py:\d+ in fails"):
        replayed(fails)


def test_a_control_that_fails_by_chance_is_made_again() -> None:
    def fails(counts: Any, rng: Any) -> Any:
        if rng.random() < 0.3:
            raise ValueError("by chance")
        return counts + rng.laplace(0.0, 1.0, CELLS)

    records = [replayed(fails, seed=seed) for seed in range(3)]
    assert {one.verdict for one in records} == {Verdict.CONSISTENT}


def test_releases_without_rows_are_guessed_like_others() -> None:
    def some_rows(released: Any, n: int, seed: int) -> Any:
        del n, seed
        return np.zeros(max(int(released[3] * 4.0), 0), dtype=int)

    record = replayed(little_noise, some_rows, fits=120, access="rows")
    assert record.verdict is Verdict.VIOLATION, str(record)


# -- samplers and libraries ----------------------------------------------------------------------


def own_sampler(counts: Any, rng: Any) -> Any:
    from listened_noise import sample_laplace

    return counts + sample_laplace(int(rng.integers(2**31)), 1.0, CELLS)


@pytest.mark.ci
def test_a_sampler_of_ones_own_is_heard() -> None:
    sampler = {"function": "listened_noise:sample_laplace", "law": "laplace", "scale": "width"}
    record = replayed(own_sampler, samplers=[sampler])
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.ledger[0].law == "laplace"
    assert record.spent == pytest.approx(1.0)
    assert "--sampler listened_noise:sample_laplace,law=laplace,scale=width" in record.reproduce


LAWS = {
    "draw_laplace": "laplace",
    "draw_narrow": "laplace",
    "draw_whole": "discrete_laplace",
    "draw_whole_without_zero": "discrete_laplace",
}
"""Samplers that are named together, so that replays share processes, and what is said of them."""


@pytest.mark.parametrize(
    ("name", "law", "is_its_law"),
    [
        ("draw_laplace", "laplace", True),
        ("draw_narrow", "laplace", False),
        ("draw_laplace", "logistic", False),
        ("draw_whole", "discrete_laplace", True),
        ("draw_whole_without_zero", "discrete_laplace", False),
    ],
)
def test_a_sampler_must_follow_its_law(name: str, law: str, is_its_law: bool) -> None:
    import listened_noise

    def train(counts: Any, rng: Any) -> Any:
        draw = getattr(listened_noise, name)  # the one that is heard
        if "whole" in name:
            return [int(count) + draw(rng, 1.0) for count in counts]
        return counts + draw(rng, 1.0, CELLS)

    record = replayed(
        train,
        samplers=[
            {"function": f"listened_noise:{heard}", "law": stated, "scale": "width"}
            for heard, stated in (LAWS if LAWS[name] == law else {name: law}).items()
        ],
    )
    reasons = [why for why in record.reasons if "do not follow the law" in why]
    assert record.verdict is (Verdict.CONSISTENT if is_its_law else Verdict.INCONCLUSIVE)
    assert bool(reasons) is not is_its_law, str(record)


class Wrong:
    """A generator without noise whose rows are changed."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def fit(self, data: pd.DataFrame, *, seed: int) -> Wrong:
        del data, seed
        return self

    def sample(self, n: int, *, seed: int) -> Any:
        del seed
        return self.change(pd.DataFrame({"a": np.zeros(n, dtype=int)}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.rename(columns={"a": "A"}), "column 'a' is missing"),
        (lambda table: table.assign(a="x"), "column 'a' holds values that are not numbers"),
        (lambda table: table.to_numpy(), "sample gave ndarray, not a pandas DataFrame"),
    ],
)
def test_what_is_no_synthetic_table_is_refused(change: Any, why: str) -> None:
    with pytest.raises(ReplayError, match=why):
        replayed(Wrong(change))


def turned_and_doubled(counts: Any, rng: Any) -> Any:
    return 5.0 - 2.0 * (counts + rng.normal(0.0, 1.0, CELLS))[::-1] + rng.normal(0.0, 1.0, CELLS)


def test_noise_on_answers_in_another_order_and_scale_is_charged_together() -> None:
    record = replayed(turned_and_doubled, epsilon=5.0, delta=1e-5)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    [line] = record.ledger
    assert line.mu == pytest.approx(2.0 / 5.0**0.5)


def place_by_pandas(scores: Any) -> Any:
    return pd.Series(scores).idxmax()


def place_by_equality(scores: Any) -> Any:
    return np.flatnonzero(scores == scores.max())


def place_in_a_list(scores: Any) -> Any:
    numbers = [float(score) for score in scores]
    return numbers.index(max(numbers))


@pytest.mark.parametrize("place", [place_by_pandas, place_by_equality, place_in_a_list])
def test_a_place_that_is_not_followed_accuses_nobody(place: Any) -> None:
    """All scores move by 1, so that the place costs 1 at most, and all scores 2."""

    def train(counts: Any, rng: Any) -> Any:
        return place(counts.sum() + np.arange(4) + rng.laplace(scale=2.0, size=4))

    record = replayed(train, proof="composition")
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent_note == "if all scores were released"


def test_numbers_below_a_noisy_limit_that_are_not_followed_accuse_nobody() -> None:
    def train(counts: Any, rng: Any) -> Any:
        limit = float(counts.sum() + rng.laplace(scale=2.0))
        return [float(count + rng.laplace(scale=0.8)) < limit for count in counts + 35]

    record = replayed(train, proof="composition")
    assert record.verdict is Verdict.OVERSPENT, str(record)
    assert record.spent_note == "if all scores were released"


def test_shares_that_pandas_computes_refute_a_proof() -> None:
    def train(counts: Any, rng: Any) -> Any:
        noisy = (pd.Series(counts) + rng.laplace(scale=0.5, size=4)).clip(lower=0.0)
        return noisy / noisy.sum()

    record = replayed(train, proof="composition")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.of_proof
