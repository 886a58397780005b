"""The fault campaign runs, and notices what it is there to notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Role, Trial, TrialStatus
from dpaudit.plugins.protocols import World

CAMPAIGN = Path(__file__).resolve().parents[1] / "benchmarks" / "faults"
KINDS = (
    *("coordinator: KILL", "worker: SEGV", "generator: daemon", "generator: sleeps"),
    *("disk: too few", "files: salt deleted", "closed standard output", "setting: seed"),
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the campaign needs Linux")
def test_a_handful_of_faults_loses_nothing(tmp_path: Path) -> None:
    words = [sys.executable, str(CAMPAIGN), "--faults", "1", "--only", *KINDS]
    done = subprocess.run(
        [*words, "--out", str(tmp_path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"of {len(KINDS)} kinds: 0 failures" in done.stdout
    assert len(list(tmp_path.glob("*.json"))) == 7


def test_the_campaign_notices_what_must_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CAMPAIGN))
    import bench
    import scene

    trials = [Trial(Role.AUDIT, World.IN, number) for number in range(3)]
    with RunFolder(tmp_path / "run", spec={}, versions={}) as store:
        for trial in trials[:2]:
            features = np.array([1.0, trial.number])
            store.save(Outcome(trial=trial, status=TrialStatus.FINISHED, features=features))
    there = scene.finished(tmp_path / "run")
    assert len(there) == 2
    third = {("audit", "in", 2): b"third"}

    def said(code: int, baseline: scene.Features, kept: scene.Features, err: str = "") -> str:
        undisturbed = object.__new__(bench.Bench)
        undisturbed.baseline, undisturbed.verdict = baseline, "consistent"
        try:
            undisturbed.check(tmp_path, scene.Ended(code, "", err), kept)
        except scene.FailureError as failure:
            return str(failure)
        return ""

    assert said(2, there, there) == ""
    assert said(2, there | third, there | third).startswith("lost: 1 trials")
    assert said(2, dict.fromkeys(there, b"other"), {}).startswith("changed: ")
    assert said(130, there, {}, "shadow models: 3 of 20, about 2 s left\n").startswith(
        "lost: 3 were reported"
    )
    assert said(0, there | third, {}) == "1 trials are missing"
    assert said(0, there, {}).startswith("exit 0 without a result")
    assert said(1, there, {}).startswith("exit code 1")
    (tmp_path / "run" / "result.json").write_text(json.dumps({"verdict": "violation"}))
    assert said(0, there, {}) == "another verdict: violation"
    (tmp_path / "run" / "result.json").write_text(json.dumps({"verdict": "consistent"}))
    assert said(0, there, {}) == ""


@pytest.mark.ci
@pytest.mark.skipif(sys.platform != "linux", reason="the campaign needs Linux")
def test_the_campaign_notices_tracebacks_hangs_and_orphans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"""
import os, subprocess, sys, time
from pathlib import Path
sys.path.insert(0, {str(CAMPAIGN)!r})
import scene

scene.PATIENCE_SECONDS = scene.ORPHAN_SECONDS = 1

def leaves():
    subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)

def hangs():
    time.sleep(60)

def traces():
    os.write(2, scene.TRACE.encode())

for prepare in (leaves, hangs, traces):
    try:
        scene.start(["--version"], Path("."), prepare=prepare).wait()
    except scene.FailureError as failure:
        print(str(failure).split(":")[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["orphan", "hang", "traceback"], done.stderr
