"""`access="timing"`: what trainings cost, on a machine that does other things too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.two_worlds.controls import GENERATORS_OF, LEAKS_BY_TIME, control_generator
from dpaudit.auditing.two_worlds.findings import check_measured, check_order
from dpaudit.auditing.two_worlds.target_search import compare_tables
from dpaudit.errors import SettingsError
from dpaudit.game import training
from dpaudit.game.flight import TimeLimit, make_batches
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.choices import Access
from dpaudit.model.tables import load
from dpaudit.plugins.foreign import pickled
from dpaudit.plugins.protocols import World
from dpaudit.report.render import render_markdown
from hidden import Hidden, schema_of_bits, table_of_bits
from timed import Timed, TimedTogether

MODELS = 100
CLOCK = {"access": "timing", "attacks": ["timing"]}


def audited(generator: object, **settings: Any) -> dpaudit.AuditResult:
    given = {"shadow_models": MODELS, "target": "row:11", "jobs": 1, "probe": False} | CLOCK
    return audit_by_keywords(
        generator, table_of_bits(), schema=schema_of_bits(), **given | settings
    )


def spec_of(generator: object, **settings: Any) -> Any:
    table = load(table_of_bits(), schema_of_bits())
    return build_spec(generator, table, audit_settings(target="row:11", **CLOCK | settings))


def separating(result: dpaudit.AuditResult) -> list[str]:
    """Features that almost separate the worlds alone."""
    return [leak.feature for leak in result.leaks if (leak.separation or 0.0) > 0.4]


def payload_of(generator: Any) -> Payload:
    spec = spec_of(generator)
    return Payload(
        game=spec.game,
        generators=dict.fromkeys((Role.AUDIT, Role.REPLAY), pickled(generator, name="it")),
        attacks=[attack for _, attack in spec.attacks],
        root=1,
        audit=spec.id,
    )


@pytest.mark.parametrize(
    ("generator", "leak"),
    [
        (TimedTogether(computes=0.02), "processor seconds of training"),
        pytest.param(Timed(waits=0.1), "wall seconds of training", marks=pytest.mark.ci),
        pytest.param(Timed(fills=2**23), "peak memory of training", marks=pytest.mark.ci),
    ],
)
def test_time_and_memory_that_depend_on_the_record_are_proved(
    generator: object, leak: str, tmp_path: Path
) -> None:
    result = audited(generator, out=tmp_path / "run")
    assert result.verdict == "violation", result.reasons
    assert leak in separating(result)  # filling memory takes time too
    assert result.access is Access.TIMING
    assert "--access timing" in result.reproduce
    assert result.controls is not None
    assert all(control.passed for control in result.controls.named().values())
    assert "takes longer for the target" in result.controls.positive.detail
    checks = {check.name: check for check in result.checks}
    assert checks["same seed, same table"].passed  # seconds were not compared
    assert "other seconds and memory" in render_markdown(result)


@pytest.mark.ci
def test_with_the_default_attacks_the_clock_is_one_of_them() -> None:
    result = audited(Timed(fills=2**24), attacks=None)
    assert result.verdict == "violation", result.reasons
    assert "peak memory of training" in separating(result)


@pytest.mark.parametrize(
    "generator",
    [
        pytest.param(Timed(), marks=pytest.mark.ci),
        pytest.param(TimedTogether(), marks=pytest.mark.ci),
    ],
)
def test_what_takes_the_same_time_in_both_worlds_is_not_flagged(generator: object) -> None:
    result = audited(generator, shadow_models=60)
    assert result.verdict in ("consistent", "inconclusive"), result.reasons
    assert result.proved is not None
    assert result.proved < 1.0


def test_no_other_level_measures_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "measure_cost", None)
    attacks = [attack for _, attack in spec_of(Timed(), **_rows()).attacks]
    payload = replace(payload_of(Timed()), attacks=attacks)
    assert not payload.is_timed
    [outcome] = training.run_batch(payload, [Trial(Role.AUDIT, World.IN, 0)])
    assert outcome.features is not None


def _rows() -> dict[str, Any]:
    return {"access": "output", "attacks": ["groundhog-naive"]}


def test_models_are_trained_alone_after_one_of_each_world(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[tuple[World, int]] = []

    def noted(payload: Any, trial: Trial, generator: Any) -> Any:
        trained.append((trial.world, trial.number))
        return run_it(payload, trial, generator)

    run_it = training._release_of
    monkeypatch.setattr(training, "_release_of", noted)
    monkeypatch.setattr(training, "_warm", set())
    payload = payload_of(TimedTogether())
    trials = [Trial(Role.AUDIT, world, number) for number in (0, 1) for world in World]
    batches = make_batches(trials, payload, TimedTogether(), workers=1)
    assert batches == [(trial,) for trial in trials]
    for batch in batches:
        training.run_batch(payload, batch)
    assert trained == [
        (World.IN, -1),
        (World.OUT, -1),
        *((trial.world, trial.number) for trial in trials),
    ]


def test_a_limit_for_each_training_counts_those_that_are_dropped() -> None:
    batch = (Trial(Role.AUDIT, World.IN, 0),)
    assert TimeLimit(2.0).of(batch) == 2.0
    assert TimeLimit(2.0, first=2).of(batch) == 6.0


def test_a_trial_that_is_run_again_is_compared_without_what_is_measured() -> None:
    spec = spec_of(TimedTogether(), attacks=["groundhog-naive", "timing"])
    assert spec.repeatable.tolist() == [True] * spec.widths[0] + [False] * 6
    assert not spec.trains_together
    assert spec_of(TimedTogether(), **_rows()).trains_together


def test_scores_that_drift_with_the_machine_do_not_invalidate() -> None:
    scores = np.arange(60.0)
    member = np.arange(60) % 2 == 0
    plain = check_order(scores, member, scores, "timing")
    timed = check_order(scores, member, scores, "timing", timed=True)
    assert (plain.passed, plain.consequence) == (False, "invalidates")
    assert (timed.passed, timed.consequence) == (False, "noted")
    assert "machine" in timed.detail


def test_the_checks_say_what_was_measured() -> None:
    assert check_measured(memory=True).passed
    without = check_measured(memory=False)
    assert (without.passed, without.consequence) == (False, "noted")
    assert "seconds of each training" in without.detail
    assert "memory were not" in without.detail


def test_the_positive_control_leaks_by_time_alone() -> None:
    blob = control_generator(Role.POSITIVE_CONTROL, spec_of(Timed()))
    assert blob != control_generator(Role.POSITIVE_CONTROL, spec_of(Timed(), **_rows()))
    assert LEAKS_BY_TIME not in GENERATORS_OF.values()


def test_equal_tables_say_nothing_about_time() -> None:
    store: Any = None  # not even opened
    spec = spec_of(Timed())
    assert compare_tables(spec, payload_of(Timed()), store, jobs=1) is None


@pytest.mark.ci
def test_a_clock_and_what_is_released_are_seen_together(tmp_path: Path) -> None:
    both = {"access": "everything", "attacks": None}
    found = {
        strength: audited(Hidden(strength=strength), out=tmp_path / f"{strength}", **both)
        for strength in (8.0, 0.01)
    }
    assert found[8.0].verdict == "violation"
    assert "what the proof protects, and the seconds" in render_markdown(found[8.0])
    assert separating(found[8.0]) == ["released"]
    assert found[0.01].verdict == "consistent"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"access": "output"}, 'set `access="timing"`'),
        ({"access": "released"}, 'set `access="timing"`'),
        ({"attacks": ["groundhog"]}, "no attack looks at"),
        ({"attacks": ["timing", "parameters"]}, 'set `access="model"`'),
        ({"threshold": "hold-out"}, "fair coins"),
        ({"mu": 1.0}, "claim in epsilon"),
        ({"mu": 1.0, "access": "everything", "attacks": None}, "claim in epsilon"),
        ({"access": "everything"}, "no attack looks at"),
    ],
)
def test_a_clock_is_a_level_of_its_own(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spec_of(Hidden(), **settings)
