"""The probes before an audit: when they run, where, and what is kept of them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing import probing
from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.probing import FIRST_PROBES, PROBES_FILE, add_probes, probe_first
from dpaudit.auditing.reuse import _mark_of
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.errors import InterruptedRunError, RunFolderError
from dpaudit.explain.run import reopen
from dpaudit.game.pool import PoolWorker, kill_workers, run_errand
from dpaudit.game.store import RunFolder, Salt
from dpaudit.model.choices import Severity
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import load
from dpaudit.plugins.registry import carry
from dpaudit.results.record import AuditRecord, ProbeAlarm, ProbesOutcome, proofs_of
from dpaudit.results.result import AuditResult
from dpaudit.results.sentences import probe_reason
from dpaudit.results.verdict import Verdict
from dpaudit.versions import versions
from samples import QUICK_ATTACKS


@pytest.fixture(autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    kill_workers()


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"age": rng.integers(20, 60, 40), "town": rng.choice(["a", "b"], 40)})


def noise(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Nothing of the data but its columns."""
    rng = np.random.default_rng(seed)
    sys.stdout.write("private\n")
    return pd.DataFrame(
        {"age": rng.integers(20, 60, n_rows), "town": rng.choice(["a", "b"], n_rows)}
    )


def reads_range(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Noise, scaled to the oldest and the youngest of the data."""
    rng = np.random.default_rng(seed)
    age = np.rint(rng.uniform(data["age"].min(), data["age"].max(), n_rows))
    return pd.DataFrame({"age": age, "town": rng.choice(["a", "b"], n_rows)})


def exits(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Would end any process that it runs in."""
    raise SystemExit(3)


def dies(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Ends the process that it runs in."""
    os.kill(os.getpid(), 9)
    return data


def fails(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Gives nothing."""
    raise ValueError("private")


def dies_once(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Ends the process that it runs in, unless a file says that it did so before."""
    mark = Path(os.environ["DIES_ONCE"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return noise(data, n_rows, seed)


class Unloadable:
    """Cannot be unpickled."""

    claim = PrivacyClaim(epsilon=1.0)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Unloadable:
        """Learns nothing."""
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Gives nothing."""
        return pd.DataFrame()

    def __setstate__(self, state: object) -> None:
        raise ValueError("private")

    def __getstate__(self) -> object:
        return {"anything": 1}


for carried in (noise, reads_range, exits, dies, dies_once, fails, Unloadable):
    carry(carried)


def spec_of(generator: object, table: pd.DataFrame, **settings: Any) -> TwoWorldSpec:
    spec = build_spec(generator, load(table, None), audit_settings(epsilon=1.0, **settings))
    assert isinstance(spec, TwoWorldSpec)
    return spec


def probed(spec: TwoWorldSpec, folder: Path, *, jobs: int = 1) -> ProbesOutcome:
    with RunFolder(folder, spec=spec.stored_specification, versions=versions()) as store:
        return probe_first(spec, store, jobs=jobs)


@pytest.mark.parametrize("game", [{}, {"records": 64}, {"one_run": True}])
def test_they_run_in_every_game_at_every_effort_unless_that_is_declined(
    game: dict[str, Any],
) -> None:
    for effort in ("quick", "standard", "thorough"):
        settings = audit_settings(effort=effort, **game)
        assert settings.game.not_probed is None
        assert settings.game.probe_fits >= 40
    assert audit_settings(shadow_models=1000).game.probe_fits == 100
    declined = audit_settings(probe=False, **game)
    assert declined.game.not_probed == "declined (probe=false)"
    small = {"canaries": 49} if "one_run" in game else {"shadow_models": 98}
    why = audit_settings(**game, **small).game.not_probed
    assert why is not None
    assert why.startswith("fewer than ")


def test_where_none_is_to_run_nothing_is_kept(table: pd.DataFrame, tmp_path: Path) -> None:
    outcome = probed(spec_of(noise, table, shadow_models=98), tmp_path)
    assert outcome.not_probed == "fewer than 100 shadow models"
    assert (outcome.left_out, outcome.fits) == (FIRST_PROBES, 0)
    assert not (tmp_path / PROBES_FILE).exists()


def test_what_they_cannot_test_is_said(table: pd.DataFrame) -> None:
    """Their claim would be the generator's own, not the one under audit."""

    def why(**settings: Any) -> str | None:
        asked = audit_settings(**settings)
        return build_spec(noise, audited_table(table, None, asked), asked).not_probed

    assert why(mu=1.0) == "probes test claims of epsilon"
    assert why(delta=1e-5) == "there is no claim to contradict"
    assert why(epsilon=1.0, unit="town") == "probes are about the rows of one table"
    assert why(epsilon=1.0) is None


def test_what_they_see_is_kept_and_depends_neither_on_jobs_nor_on_a_resume(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(reads_range, table)
    one = probed(spec, tmp_path / "one")
    assert one.alarms
    assert all(
        alarm.p_value is not None and alarm.p_value < 0.05 * 0.05 / 16 for alarm in one.alarms
    )
    assert probed(spec, tmp_path / "two", jobs=2) == one

    def again(*_: object, **__: object) -> None:
        raise AssertionError("they ran again")

    monkeypatch.setattr(probing, "run_errand", again)
    assert probed(spec, tmp_path / "one") == one
    file = tmp_path / "one" / PROBES_FILE
    whole = file.read_text()
    for damage in ("", "[]", "{}", whole[:50]):
        file.write_text(damage)
        with pytest.raises(AssertionError, match="they ran again"):
            probed(spec, tmp_path / "one")


@pytest.mark.ci
def test_nothing_that_they_print_or_see_of_the_table_is_kept_but_in_the_log(
    table: pd.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = probed(spec_of(noise, table), tmp_path)
    assert found.alarms == ()
    assert set(found.passed) >= {"range-follows-record", "rows-copied-verbatim", "seed-ignored"}
    assert {*found.left_out} <= {"epsilon-ignored"}
    assert "private" not in capfd.readouterr().out
    assert "private" in (tmp_path / "workers.log").read_text()
    assert set(json.loads((tmp_path / PROBES_FILE).read_text())) <= {
        *("alarms", "passed", "not_applicable", "failed", "left_out", "confidence", "fits"),
        "why_left_out",
        "reproduce",
    }
    assert (tmp_path / PROBES_FILE).stat().st_mode & 0o077 == 0


def test_a_generator_that_fails_or_exits_is_no_alarm(table: pd.DataFrame) -> None:
    for generator in (fails, exits):
        failed = probing._errand(spec_of(generator, table))()
        assert {*failed.failed} >= {"range-follows-record", "rows-copied-verbatim"}
        assert failed.alarms == failed.passed == ()
    unloadable = probing._errand(spec_of(Unloadable(), table))()
    assert unloadable.why_left_out.startswith("they ended with ValueError at test_probing.py:")


def test_a_generator_that_ends_its_process_ends_no_audit(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    found = probed(spec_of(dies, table), tmp_path)
    assert found.left_out == FIRST_PROBES
    assert found.why_left_out == probing.STOPPED


def test_a_worker_that_is_killed_once_changes_no_result(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIES_ONCE", str(tmp_path / "died"))
    kill_workers()  # those of an earlier test have not got the variable
    found = probed(spec_of(dies_once, table), tmp_path / "killed")
    assert (tmp_path / "died").exists()
    assert found == probed(spec_of(noise, table), tmp_path / "undisturbed")


def test_slow_trainings_end_them_after_the_first_probe(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "MOST_SECONDS", 1e-9)
    found = probing._errand(spec_of(noise, table))()
    assert found.passed == ("range-follows-record",)
    assert found.left_out == FIRST_PROBES[2:]  # the first does not apply
    assert found.why_left_out == probing.TOO_SLOW


def test_they_stop_once_they_have_trained_their_share(table: pd.DataFrame) -> None:
    errand = probing._errand(spec_of(noise, table))
    assert errand.settings.fits == 40
    found = replace(errand, settings=replace(errand.settings, fits=12))()
    assert found.why_left_out == probing.ENOUGH
    assert found.left_out
    assert 12 <= found.fits <= 24


@pytest.mark.ci
def test_an_errand_over_its_time_is_stopped(tmp_path: Path) -> None:
    def sleeps() -> str:
        time.sleep(600)
        return "never"

    def answers() -> int:
        return os.getpid()

    start = time.monotonic()
    with RunFolder(tmp_path, spec={}, versions={}) as store:
        assert run_errand(sleeps, store, jobs=1, seconds=1.0) is None
        assert time.monotonic() - start < 60
        assert run_errand(answers, store, jobs=2, seconds=60.0) != os.getpid()
    assert not list(tmp_path.glob("payload-*"))


def test_an_errand_that_is_interrupted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PoolWorker, "report", interrupted)
    with (
        RunFolder(tmp_path, spec={}, versions={}) as store,
        pytest.raises(InterruptedRunError, match="what finished is kept"),
    ):
        run_errand(os.getpid, store, jobs=1, seconds=1.0)


def test_an_audit_without_probes_judges_the_same_trials_alike(table: pd.DataFrame) -> None:
    """Declining them changes no stream, and is no second look at the trials."""
    with_probes, without = spec_of(noise, table), spec_of(noise, table, probe=False)
    assert with_probes.id == without.id
    assert with_probes.specification != without.specification
    assert without.reproduce == f"{with_probes.reproduce} --set probe=false"
    salt = Salt("0" * 64)
    assert _mark_of(with_probes, salt) == _mark_of(without, salt)


@pytest.mark.ci
def test_what_a_probe_proves_is_a_violation_whatever_the_attacks_prove(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    """The target is neither the oldest nor the youngest, so that no attack sees it."""
    row = int(table["age"].rank(method="first").sub(20).abs().idxmin())
    spec = spec_of(reads_range, table, target=f"row:{row}", attacks=QUICK_ATTACKS[1:])
    result = run_audit(spec, tmp_path / "run", jobs=1)
    assert result.verdict is Verdict.VIOLATION
    assert result.proved is not None
    assert result.proved <= 1.0
    assert not result.proves_leak
    [proof] = proofs_of(result.probe_alarms)
    assert proof.id == "constancy-follows-record"
    assert result.reasons[0] == probe_reason(proof)
    assert not [one for one in result.reasons if "no violation" in one]
    assert AuditResult.load(tmp_path / "run") == result
    with pytest.raises(AssertionError, match="probe constancy-follows-record proves a violation"):
        result.assert_no_violation()
    with pytest.raises(RunFolderError, match="a probe proved one"):
        reopen(tmp_path / "run")


ALARM = ProbeAlarm(
    id="seed-ignored", severity=Severity.VIOLATION, correct="", p_value=1e-6, shows="it shows"
)


@pytest.mark.parametrize(
    ("before", "bound", "after"),
    [
        ("consistent", 0.5, "violation"),
        ("inconclusive", 0.5, "violation"),
        ("inconclusive", 2.0, "inconclusive"),  # withheld: its trials were judged before
        ("invalid", 0.5, "invalid"),
        ("violation", 2.0, "violation"),
    ],
)
def test_a_proof_of_a_probe_changes_no_verdict_that_says_the_audit_is_none(
    before: str, bound: float, after: str, record_of: Callable[..., AuditRecord]
) -> None:
    record = record_of(verdict=before, proved=bound, reasons=["first", "second"])
    note = replace(ALARM, severity=Severity.BUG, shows=None)
    for alarms, verdict in (((), before), ((note,), before), ((note, ALARM), after)):
        found = add_probes(record, ProbesOutcome(alarms=alarms, confidence=0.9975))
        assert found.verdict == verdict
        assert found.probe_alarms == alarms
        proved = ALARM in alarms and after == "violation"
        assert (probe_reason(ALARM) in found.reasons) == proved
        assert ("first" in found.reasons) == (verdict == before)
        assert "second" in found.reasons
    nothing = replace(record, verdict=Verdict.INCONCLUSIVE, proved=None)
    assert add_probes(nothing, ProbesOutcome(alarms=(ALARM,), confidence=0.9975)).verdict == (
        Verdict.INCONCLUSIVE
    )
