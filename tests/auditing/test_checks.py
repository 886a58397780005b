"""Checks of a run: each catches what it is for, and passes a sound run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpaudit.auditing import checks
from dpaudit.auditing.checks import (
    MOST_REASONS,
    SIGNIFICANCE,
    TrialCounts,
    auc_by_chance,
    check_repeats,
    check_replay,
    failure_reasons,
)
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import Evaluation
from dpaudit.auditing.two_worlds.controls import first_control_settings, judge_control
from dpaudit.auditing.two_worlds.findings import (
    check_agreement,
    check_failures,
    check_order,
    check_randomness,
    first_finished,
)
from dpaudit.bounds import Counts, Direction, EpsilonGuarantee, Threshold
from dpaudit.bounds.table import ValidBound
from dpaudit.bounds.threshold import auc
from dpaudit.game.store import StoredOutcome
from dpaudit.game.trial import Outcome, Role, Trial, TrialStatus
from dpaudit.plugins.protocols import World
from dpaudit.results.verdict import Check, Consequence


def finished(world: World, number: int, *features: float) -> StoredOutcome:
    trial = Trial(Role.AUDIT, world, number)
    table = repr(features).encode()
    return StoredOutcome(trial=trial, status=TrialStatus.FINISHED, table=table, digest=b"same")


def failed(
    world: World, number: int, error: str, status: TrialStatus = TrialStatus.FAILED
) -> StoredOutcome:
    return StoredOutcome(trial=Trial(Role.AUDIT, world, number), status=status, error=error)


def order(scores: np.ndarray, member: np.ndarray, places: np.ndarray | None = None) -> Check:
    positions = np.arange(len(scores), dtype=float) if places is None else places
    return check_order(scores, member, positions, "it")


def test_no_drift_where_worlds_differ_but_order_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    member = rng.permutation(np.repeat([True, False], 120))
    check = order(rng.normal(size=240) + 3 * member, member)
    assert check.passed
    assert "scores of it do not drift" in check.detail


@pytest.mark.parametrize("world", [True, False])
@pytest.mark.parametrize("direction", [1, -1])
def test_a_drift_in_either_world_and_direction_is_found(world: bool, direction: int) -> None:
    rng = np.random.default_rng(2)
    member = rng.permutation(np.repeat([True, False], 120))
    drift = np.linspace(0, 2, 240) * (member == world) * direction
    check = order(rng.normal(size=240) + drift, member)
    assert not check.passed
    assert check.consequence is Consequence.INVALIDATES
    assert "drift with the order" in check.detail


def test_places_count_not_the_order_of_the_arrays() -> None:
    rng = np.random.default_rng(3)
    member = np.repeat([True, False], 100)
    places = rng.permutation(200).astype(float)
    scores = places / 200 + rng.normal(scale=0.3, size=200)
    assert not order(scores, member, places).passed
    assert order(scores, member).passed


def test_constant_scores_and_tiny_worlds_pass_without_warnings() -> None:
    member = np.array([True, False] * 3)
    assert order(np.zeros(6), member).passed
    assert order(np.arange(6.0), member).passed  # three trials a world prove nothing
    assert order(np.arange(2.0), member[:2]).passed


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_a_sound_run_of_few_trials_fails_at_most_as_often_as_promised(n: int) -> None:
    """All orders of n untied scores in one world; the other world's scores are constant."""
    member = np.repeat([True, False], n)
    orders = np.array(list(itertools.permutations(range(n))), dtype=float)
    if len(orders) > 800:  # the extreme ones among them, which are the ones that can fail
        extreme = np.abs((orders * np.arange(n)).sum(axis=1) - orders.mean() ** 2 * n)
        kept = orders[np.argsort(-extreme)[:60]]
    else:
        kept = orders
    fails = sum(not order(np.concatenate([o, np.zeros(n)]), member).passed for o in kept)
    assert fails / len(orders) <= SIGNIFICANCE


def test_sound_runs_seldom_fail_with_tied_scores() -> None:
    rng = np.random.default_rng(4)
    member = np.repeat([True, False], 12)
    fails = sum(not order(rng.integers(0, 4, 24).astype(float), member).passed for _ in range(1000))
    assert fails <= 6  # expected at most 1; P(more than 6) < 1e-4


def counts(n_in: int, n_out: int) -> TrialCounts:
    """Failed trials of each world, of 100."""
    return TrialCounts(run=dict.fromkeys(World, 100), failed={World.IN: n_in, World.OUT: n_out})


def test_failures_alike_in_both_worlds_are_noted() -> None:
    nothing = check_failures(counts(0, 0), highest=3.0, left=3.0)
    assert nothing.passed
    alike = check_failures(counts(7, 5), highest=3.0, left=2.0)
    assert not alike.passed
    assert alike.consequence is Consequence.NOTED
    assert "7 of 100 models with the target failed and 5 of 100 without it" in alike.detail
    assert "is 2 instead of 3" in alike.detail
    assert "depends" not in alike.detail
    assert "instead" not in check_failures(counts(7, 5), highest=2.751, left=2.75).detail


@pytest.mark.parametrize(("n_in", "n_out"), [(40, 5), (5, 40), (100, 0)])
def test_failures_that_differ_by_world_weaken(n_in: int, n_out: int) -> None:
    check = check_failures(counts(n_in, n_out), highest=3.0, left=1.0)
    assert not check.passed
    assert check.consequence is Consequence.WEAKENS
    assert "failing depends on the target" in check.detail


def test_reasons_are_counted_by_world_and_the_most_frequent_come_first() -> None:
    outcomes = [
        *(failed(World.IN, n, "a") for n in range(2)),
        *(failed(World.OUT, n, "a") for n in range(3)),
        failed(World.IN, 5, "worker died", TrialStatus.CRASHED),
        finished(World.IN, 6, 1.0),
    ]
    found = failure_reasons(outcomes)
    assert [(one.world, one.count, one.error) for one in found] == [
        (World.OUT, 3, "a"),
        (World.IN, 2, "a"),
        (World.IN, 1, "worker died"),
    ]
    assert failure_reasons([]) == ()
    many = [failed(World.IN, n, f"reason {n}") for n in range(30)]
    assert len(failure_reasons(many)) == MOST_REASONS


def frozen(inside: list[float], outside: list[float]) -> Check:
    outcomes = [finished(World.IN, n, value) for n, value in enumerate(inside)]
    return check_randomness(
        [*outcomes, *(finished(World.OUT, n, value) for n, value in enumerate(outside))]
    )


def test_different_tables_pass() -> None:
    assert frozen([1, 2, 1], [1, 1, 2]).passed
    assert frozen([1, 1, 1], [1, 1, 2]).passed  # one world may be constant


def test_frozen_outputs_are_told_apart() -> None:
    constant = frozen([1, 1, 1], [1, 1])
    assert not constant.passed
    assert "in both worlds: the output is a constant" in constant.detail
    revealing = frozen([1, 1, 1], [2, 2])
    assert not revealing.passed
    assert "does not use its seed" in revealing.detail
    assert revealing.consequence is constant.consequence is Consequence.NOTED


@pytest.mark.parametrize(("inside", "outside"), [([], []), ([1], [2]), ([1, 1], [2]), ([], [1, 2])])
def test_too_few_tables_prove_neither(inside: list[float], outside: list[float]) -> None:
    check = frozen(inside, outside)
    assert not check.passed
    assert check.consequence is Consequence.NOTED
    assert "too few models finished" in check.detail
    assert check_randomness([failed(World.IN, 0, "a")]).detail == check.detail


def test_replay() -> None:
    trial = Trial(Role.AUDIT, World.IN, 0)
    first, same, other = (
        Outcome(trial=trial, status=TrialStatus.FINISHED, features=np.array(features))
        for features in ([1.0, 2], [1.0, 2], [1.0, 3])
    )
    failing = Outcome(trial=trial, status=TrialStatus.FAILED, error="no luck")
    for together in (False, True):
        options = {"seedable": True, "together": together}
        assert check_replay([(first, same)], **options).passed
        worse = Consequence.INVALIDATES if together else Consequence.NOTED
        for replays in ([(first, other)], [(first, same), (first, other)]):
            differs = check_replay(replays, **options)
            assert not differs.passed
            assert differs.consequence is worse
            assert ("depend on one another" if together else "cannot be repeated") in differs.detail
            assert "seedable = False" in differs.detail
        fails = check_replay([(first, failing)], **options)
        assert not fails.passed
        assert fails.consequence is worse
        assert "the second time it failed (no luck)" in fails.detail
        none = check_replay([], **options)
        assert (none.passed, none.detail) == (False, "no trial could be run twice")
        secure = check_replay([(first, other)], seedable=False, together=together)
        assert secure.passed
        assert "secure noise" in secure.detail


def test_first_finished() -> None:
    outcomes = [failed(World.IN, 0, "a"), finished(World.OUT, 1, 1.0), finished(World.IN, 2, 1.0)]
    assert first_finished(outcomes, World.OUT) == outcomes[1].trial
    assert first_finished(outcomes, World.IN) == outcomes[2].trial
    assert first_finished(outcomes[:1], World.IN) is None
    assert first_finished([], World.OUT) is None


def _evaluation(scores: list[float], wrong: int) -> Evaluation:
    n = len(scores) // 2
    return Evaluation(
        counts=Counts(wrong, wrong, n, n),
        threshold=Threshold(0.5, Direction.HIGHER),
        guesses=None,
        bounds={ValidBound.EXACT: 0.0 if wrong else 2.0, ValidBound.CLOPPER_PEARSON: 0.0},
        auc=1.0,
        scores=np.array(scores),
        scorer=lambda rows: rows[:, 0],
    )


def test_an_auc_of_1_without_a_proof_is_a_contradiction() -> None:
    member = np.arange(60) < 30
    apart = [0.4] * 30 + [0.2] * 30  # told apart, but both below the threshold of the fitting part
    level = {"guarantee": EpsilonGuarantee(0.0), "confidence": 0.95}
    check = check_agreement(_evaluation(apart, wrong=30), member, 2.9, **level)
    assert not check.passed
    assert "nothing is proved" in check.detail
    assert check_agreement(_evaluation(apart, wrong=0), member, 2.9, **level).passed
    assert check_agreement(_evaluation([0.3] * 60, wrong=30), member, 2.9, **level).passed
    # Where trials failed and nothing is provable, proving nothing is no contradiction.
    few = np.arange(10) < 5
    failed = _evaluation(apart[25:35], wrong=5)._replace(counts=Counts(30, 30, 30, 30))
    assert check_agreement(failed, few, 0.0, **level).passed


def test_tables_that_repeat_their_neighbours_are_not_independent() -> None:
    def outcomes(values: list[float]) -> list[StoredOutcome]:
        return [
            finished(world, number, value) for world in World for number, value in enumerate(values)
        ]

    rng = np.random.default_rng(0)
    assert check_repeats(outcomes(list(range(40))), rng).passed
    assert check_repeats(outcomes([1.0] * 40), rng).passed, "a constant repeats everywhere"
    coins = list(rng.integers(0, 2, 40).astype(float))
    assert check_repeats(outcomes(coins), rng).passed, "few possible outputs repeat by chance"
    stale = [float(number // 4) for number in range(40)]
    check = check_repeats(outcomes(stale), rng)
    assert not check.passed
    assert "cache" in check.detail


def test_permutations_are_the_same_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng
    outcomes = [finished(w, n, n // 2 % 7) for w in World for n in range(40)]
    whole = check_repeats(outcomes, rng(0))
    monkeypatch.setattr(checks, "PERMUTED_NUMBERS", 333)
    assert check_repeats(outcomes, rng(0)) == whole
    assert "p = " in whole.detail


def test_an_auc_by_chance_lies_in_limits_that_narrow_with_the_trials() -> None:
    rng = np.random.default_rng(0)
    low, high = auc_by_chance(7, 7)
    member = np.arange(14) < 7
    drawn = np.array([auc(rng.random(14), member) for _ in range(2000)])
    assert 0.92 < np.mean((low <= drawn) & (drawn <= high)) < 0.98
    assert auc_by_chance(700, 700)[0] > 0.45
    assert auc_by_chance(1, 1) == (0.0, 1.0)


def test_a_small_control_that_reaches_its_limit_says_so() -> None:
    settings = first_control_settings(audit_settings(shadow_models=100))
    scored = settings.game.scored
    found = Evaluation(
        counts=Counts(0, 0, scored // 2, scored - scored // 2),
        threshold=Threshold(0.0, Direction.HIGHER),
        guesses=None,
        bounds={ValidBound.EXACT: 0.45},
        auc=1.0,
        scores=np.zeros(scored),
        scorer=None,  # type: ignore[arg-type]
    )
    caught = judge_control(
        Role.POSITIVE_CONTROL,
        found,
        settings.game,
        attacks=3,
        highest=0.45,
        confidence=settings.confidence,
    )
    assert caught.passed
    assert f"{scored} of {scored} scored models right, the most that so few can prove" in (
        caught.detail
    )
    assert "confidence, exact)" in caught.detail
    short = judge_control(
        Role.POSITIVE_CONTROL,
        found,
        settings.game,
        attacks=3,
        highest=0.6,
        confidence=settings.confidence,
    )
    assert short.passed
    assert "the most that" not in short.detail
    nothing = judge_control(
        Role.NULL_CONTROL,
        found._replace(bounds={ValidBound.EXACT: 0.0}),
        settings.game,
        attacks=3,
        highest=0.45,
        confidence=settings.confidence,
    )
    assert "AUC 1.000, by chance 0." in nothing.detail


def test_a_null_control_whose_auc_can_be_anything_is_not_judged_by_it() -> None:
    settings = first_control_settings(audit_settings(shadow_models=40))
    found = Evaluation(
        counts=Counts(0, 0, 3, 3),
        threshold=Threshold(0.0, Direction.HIGHER),
        guesses=None,
        bounds={ValidBound.EXACT: 0.0},
        auc=1.0,
        scores=np.zeros(6),
        scorer=None,  # type: ignore[arg-type]
    )
    null = judge_control(
        Role.NULL_CONTROL,
        found,
        settings.game,
        attacks=3,
        highest=0.14,
        confidence=settings.confidence,
    )
    assert null.passed
    assert "bound 0; too few models to judge by AUC (1.000, by chance 0.00 to 1.00" in null.detail
