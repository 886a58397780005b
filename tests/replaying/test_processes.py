"""The processes of the worlds: what they import, what they say of a failure, and that they end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.spec import build_two_worlds
from dpaudit.errors import RegistryError, ReplayError
from dpaudit.model.tables import load
from dpaudit.replaying import run
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.launching import launch_worlds
from dpaudit.replaying.processes import open_processes, prepare_start
from listened import CELLS, SCHEMA, TABLE, Mechanism, replayed

LIBRARY = """
import numpy as np
import pandas as pd
from numpy.random import default_rng, laplace

NOISE = laplace(0.0, {scale}, 4)


class Counts:
    def fit(self, data, *, seed):
        self.m = np.bincount(data["a"], minlength=4) + {noise}
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({{"a": np.zeros(n, dtype=int)}})
"""


def in_a_file(folder: Path, noise: str, *, scale: float = 1.0, **given: Any) -> Any:
    path = folder / "own_library.py"
    path.write_text(LIBRARY.format(noise=noise, scale=scale))
    settings: dict[str, Any] = {"epsilon": 1.0, "target": "row:39", "fits": 1, **given}
    return dpaudit.replay(f"{path}:Counts", TABLE, schema=SCHEMA, **settings)


@pytest.mark.usefixtures("worlds")
def test_a_generator_in_a_file_is_heard_by_names_that_it_imports(tmp_path: Path) -> None:
    record = in_a_file(tmp_path, "default_rng(seed).laplace(0.0, 1.0, 4)")
    assert record.verdict.value == "consistent", str(record)
    assert record.ledger[0].place == "own_library.py:11"


@pytest.mark.usefixtures("worlds")
@pytest.mark.parametrize("scale", [0.2, pytest.param(1.0, marks=pytest.mark.ci)])
def test_noise_that_is_drawn_at_import_is_never_a_violation(tmp_path: Path, scale: float) -> None:
    """It is one draw for all fits of a process; each import has another."""
    record = in_a_file(tmp_path, "NOISE", scale=scale, fits=100)
    assert record.verdict.value == "inconclusive", str(record)


@pytest.mark.usefixtures("worlds")
def test_each_fit_has_the_table_as_it_is_even_if_the_last_one_changed_it() -> None:
    class Changes(Mechanism):
        def fit(self, data: pd.DataFrame, *, seed: int) -> Any:
            model = super().fit(data, seed=seed)
            data["a"] = 0
            return model

    record = replayed(Changes(lambda counts, rng: counts + rng.laplace(0.0, 1.0, CELLS)))
    assert record.verdict.value == "consistent", str(record)
    assert record.spent == pytest.approx(1.0)


def test_worlds_that_were_launched_fit_the_generator_and_end(tmp_path: Path) -> None:
    path = tmp_path / "own_library.py"
    path.write_text(LIBRARY.format(noise="default_rng(seed).laplace(0.0, 1.0, 4)", scale=1.0))
    spec = build_two_worlds(f"{path}:Counts", load(TABLE, SCHEMA), audit_settings(epsilon=1.0))
    with launch_worlds(f"{path}:Counts", "[]") as launched, prepare_start(spec) as start:
        assert launched is not None
        with open_processes(start, launched=launched) as processes:
            assert Fits(processes, spec).pair(1).parting is None
            assert all(process.poll() is None for process in launched.processes.values())
        assert all(process.poll() is not None for process in launched.processes.values())
    with launch_worlds("dpmm:mst", "[]") as launched:
        assert launched is None


def ends(counts: Any, rng: Any) -> Any:
    os._exit(3)


def test_a_process_that_ends_is_an_error_and_leaves_no_process() -> None:
    with pytest.raises(ReplayError, match="ended"):
        replayed(ends)


@pytest.mark.ci
def test_a_world_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "open_processes", open_processes)

    class CannotBeLoaded(Mechanism):
        def __reduce__(self) -> Any:
            return _raise, ()

    with pytest.raises(RegistryError, match=r"cannot start.*not here"):
        replayed(CannotBeLoaded(lambda counts, rng: np.zeros(CELLS)))


def _raise() -> None:
    raise ValueError("not here")
