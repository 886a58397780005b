"""A generator that always fails is refused before anything else, with its reason."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import GeneratorError
from dpaudit.game.flight import TrialProgress
from dpaudit.game.trial import Role
from dpaudit.plugins.exits import how_it_died
from dpaudit.plugins.registry import carry
from samples import QUICK_ATTACKS

GAMES: dict[str, dict[str, Any]] = {
    "two worlds": {"attacks": QUICK_ATTACKS, "shadow_models": 20},
    "records": {"attacks": QUICK_ATTACKS, "shadow_models": 8, "records": 4},
    "one run": {"one_run": True, "canaries": 20},
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 90, 60), "hours": rng.poisson(40, 60)})


def dies(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Ends its process by a signal."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return data


def exits(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Ends its process with a code."""
    os._exit(7)


def misspells(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Gives a column another name."""
    return data.sample(n_rows, replace=True, random_state=seed).rename(columns={"age": "Age"})


for carried in (dies, exits, misspells):
    carry(carried)

SPELLED = "column 'age' is missing; column 'Age' is not in the schema: did you mean 'age'?"
THREE_DEATHS = "its worker process died in each of 3 attempts"


@pytest.mark.parametrize(
    ("generator", "game", "why"),
    [
        *((misspells, game, SPELLED) for game in GAMES),
        (dies, "one run", f"{THREE_DEATHS} (signal 11, SIGSEGV)"),
        pytest.param(dies, "records", THREE_DEATHS, marks=pytest.mark.slow),
        pytest.param(dies, "two worlds", THREE_DEATHS, marks=pytest.mark.slow),
        pytest.param(exits, "one run", f"{THREE_DEATHS} (exit code 7)", marks=pytest.mark.slow),
    ],
)
def test_a_generator_that_always_fails_is_refused_with_its_reason(
    generator: Callable[..., pd.DataFrame], game: str, why: str, table: pd.DataFrame
) -> None:
    events: list[TrialProgress] = []
    with pytest.raises(GeneratorError, match="gave no synthetic table in ") as refused:
        audit_by_keywords(
            generator, table, epsilon=1.0, jobs=1, progress=events.append, **GAMES[game]
        )
    assert why in str(refused.value)
    assert not {event.role for event in events} - {Role.AUDIT, Role.ONE_RUN}
    if generator is not misspells:  # three deaths of a model of each world, and no further model
        assert max(event.done for event in events) == (2 if game == "two worlds" else 1)


def test_the_command_line_exits_with_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"age": range(40)}).to_csv("table.csv", index=False)
    Path("fails.py").write_text("def fails(data, n_rows, seed):\n    raise ValueError('no')\n")
    words = ["audit", "fails.py:fails", "--data", "table.csv", "--epsilon", "1", "--jobs", "1"]
    done = CliRunner().invoke(app, [*words, "--one-run", "--set", "canaries=20", "--out", "run"])
    assert done.exit_code == ExitCode.USAGE
    assert "gave no synthetic table in 1 training: ValueError at fails.py:2" in done.stderr
    assert not Path("run/result.json").exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (None, ""),
        (7, " (exit code 7)"),
        (-11, " (signal 11, SIGSEGV)"),
        (-9, " (signal 9, SIGKILL: often too little memory)"),
        (-200, " (signal 200)"),
    ],
)
def test_how_a_process_died_is_said(code: int | None, words: str) -> None:
    assert how_it_died(code) == words
