"""What a generator in a file keeps from one trial to the next, and what must not pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds import game
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.game.trial import Role, Trial
from dpaudit.plugins import kept
from dpaudit.plugins.kept import keep
from samples import QUICK_ATTACKS

SOURCE = """
import os
import numpy as np
import pandas as pd
from dpaudit.plugins.kept import keep

loads = 0


@keep
def expensive():
    np.random.random()  # as libraries do
    with open("LOADED", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return {"scale": 2.0}


class Model:
    def __init__(self, noise):
        self.noise = noise

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": np.clip(rng.normal(50 + self.noise, 9, n), 0, 100)})


class Sound:
    def fit(self, data, *, seed):
        global loads
        loads += 1
        assert loads == 1  # the globals of the file come with each trial
        scale = expensive()["scale"]
        return Model(scale * (np.random.random() + np.random.default_rng(seed).random()))


class Leaky:
    def fit(self, data, *, seed):
        noise = float(np.random.default_rng(seed).normal())
        return Model(expensive().setdefault("first", noise))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.csv").write_text("\n".join(["a", *map(str, range(0, 101, 5)), "97.5", ""]))
    (tmp_path / "my.py").write_text(SOURCE.replace("LOADED", str(tmp_path / "loaded")))
    return tmp_path


def audited(folder: Path, name: str, *, jobs: int) -> dict[str, Any]:
    document: dict[str, Any] = audit_by_keywords(
        f"{folder / 'my.py'}:{name}",
        folder / "table.csv",
        epsilon=1.0,
        target=0,
        attacks=QUICK_ATTACKS[:1],
        shadow_models=40,
        jobs=jobs,
        probe=False,
    ).to_document()
    return document


def replay(document: dict[str, Any]) -> dict[str, Any]:
    [found] = [check for check in document["checks"] if check["name"] == "same seed, same table"]
    return dict(found)


@pytest.mark.new_workers
def test_what_is_kept_is_loaded_once_by_each_worker_and_changes_no_trial(folder: Path) -> None:
    document = audited(folder, "Sound", jobs=2)
    assert sum(document["failures"].values()) == 0
    assert replay(document)["passed"]
    processes = (folder / "loaded").read_text().split()
    assert len(processes) == len(set(processes))
    assert len(processes) in (2, 3)  # both workers, and the new one of the replay


@pytest.mark.new_workers
def test_what_one_trial_leaves_to_the_next_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the trial that ran before all others is the first of the order's second half."""
    planned = game.shuffle_trials

    def second_half_first(spec: TwoWorldSpec, role: Role, settings: AuditSettings) -> list[Trial]:
        trials = sorted(planned(spec, role, settings), key=lambda trial: trial.number)
        return [*trials[len(trials) // 2 :], *trials[: len(trials) // 2]]

    monkeypatch.setattr(game, "shuffle_trials", second_half_first)
    found = replay(audited(folder, "Leaky", jobs=1))  # one worker: none may start late
    assert not found["passed"]
    assert "keeps something of one trial for the next" in found["detail"]


def test_the_global_generators_are_as_they_were() -> None:
    @keep
    def draws() -> float:
        return float(np.random.random())  # noqa: NPY002 - as libraries do

    state = np.random.get_state()  # noqa: NPY002 - as above
    first = draws()
    assert str(np.random.get_state()) == str(state)  # noqa: NPY002 - as above
    assert draws() == first
    kept._kept.clear()
    assert draws() == first


def test_only_a_function_that_no_trial_decides_is_taken() -> None:
    table = [1.0]

    def of_a_table() -> float:
        return table[0]

    for function in (of_a_table, lambda data: data, lambda *, seed: seed, len):
        with pytest.raises(TypeError, match="without arguments"):
            keep(function)  # type: ignore[arg-type]
