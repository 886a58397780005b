"""Memory and time of audits with very many trials, very many features, or a very large table.

Usage: python benchmarks/size.py trials [N]      200,000 trials of 15 features (minutes; see below)
       python benchmarks/size.py features [N]    10,000 trials of 4,096 features (minutes)
       python benchmarks/size.py table [ROWS]    `null` on 1,000,000 rows x 10, 28 models (minutes)

Prints JSON lines: seconds of CPU time of each step, and the peak resident memory in MiB of the
coordinator and of its largest worker (a fork counts as large as the coordinator was). For `trials`
and `features` the store is filled with random numbers but for the last 20 trials, which run: what
is measured is the coordinator, on the same path as in any audit that is resumed. `trials` takes as
long as its forests, so it has one attack of few features.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.game.store import RunFolder
from dpaudit.game.target import farthest_first
from dpaudit.game.trial import Outcome, Role, TrialStatus
from dpaudit.model.schema import Schema
from dpaudit.model.tables import data_digest, load
from dpaudit.plugins.protocols import BoolArray, FeatureName, FloatArray, GameView, Scorer
from dpaudit.versions import versions

RUN = 10
"""Pairs that are not filled in but run."""
Result = TypeVar("Result")


class Wide:
    """An attack of 4,096 features that looks at one: nothing but features costs memory."""

    def check(self, game: GameView) -> None:
        """Takes any game."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """Names of the features."""
        return tuple(FeatureName("x", str(number)) for number in range(4096))

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """How many rows are like the target, and numbers that say nothing."""
        numbers = np.random.default_rng(int(1e6 * table["x"].abs().sum())).normal(size=4096)
        numbers[0] = np.isclose(table["x"], game.target["x"].iloc[0]).sum()
        return numbers

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Learns nothing."""
        return lambda rows: rows[:, 0]


def small_spec(trials: int, **settings: Any) -> TwoWorldSpec:
    """An audit of `null` on 20 rows of 3 columns, with 4 synthetic rows."""
    data = pd.DataFrame({"x": np.linspace(0, 1, 20), "k": np.arange(20), "b": [0, 1] * 10})
    chosen = audit_settings(shadow_models=trials, rows=4, probe=False, **settings)
    spec = build_spec("null", load(data, None), chosen)
    assert isinstance(spec, TwoWorldSpec)
    return spec


def fill(folder: Path, spec: TwoWorldSpec) -> None:
    """Stores random features for all pairs but the last."""
    rng = np.random.default_rng(0)
    width = sum(len(attack.feature_names(spec.game.view)) for _, attack in spec.attacks)
    with RunFolder(folder, spec=spec.stored_specification, versions=versions()) as store:
        for trial in plan_trials(spec, Role.AUDIT, spec.settings).trials()[: -2 * RUN]:
            features = rng.normal(size=width).round(2)
            store.save(Outcome(trial=trial, status=TrialStatus.FINISHED, features=features))


def mixed(rows: int) -> pd.DataFrame:
    """A table of ten columns of every kind, some with missing values."""
    rng = np.random.default_rng(0)
    towns = [f"town {number}" for number in range(50)]
    weight = rng.normal(70, 12, rows)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, rows),
            "income": rng.lognormal(10, 1, rows),
            "hours": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(1, 99, rows)),
            "score": rng.normal(size=rows).round(2),
            "sex": rng.choice(["f", "m"], rows),
            "town": rng.choice(towns, rows),
            "job": pd.Series(rng.choice(list("abcdefgh"), rows)).mask(rng.random(rows) < 0.05),
            "flag": rng.integers(0, 2, rows),
            "weight": np.where(rng.random(rows) < 0.02, np.nan, weight),
            "zip": rng.integers(10_000, 99_999, rows),
        }
    )


def step(name: str, run: Callable[[], Result]) -> Result:
    """Runs something and prints what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    peaks = (resource.getrusage(who).ru_maxrss / 1024 for who in (0, resource.RUSAGE_CHILDREN))
    coordinator, worker = peaks
    taken = {
        "step": name,
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "peak_mib": round(coordinator),
        "largest_worker_mib": round(worker),
    }
    print(json.dumps(taken), flush=True)
    return found


def trials(number: int, folder: Path) -> None:
    """An audit of very many small trials."""
    spec = small_spec(number, attacks=("groundhog-naive",))
    step("fill the store", lambda: fill(folder, spec))
    step(f"audit of {number} trials", lambda: run_audit(spec, folder, jobs=1))


def features(number: int, folder: Path) -> None:
    """The attack of an audit of many features."""
    spec = small_spec(number, attacks=(Wide(),))
    step("fill the store", lambda: fill(folder, spec))
    step(f"audit of {number} trials of 4,096 features", lambda: run_audit(spec, folder, jobs=1))


def table(rows: int, folder: Path) -> None:
    """From a large table to a verdict."""
    data = step("make the table", lambda: mixed(rows))
    schema = step("infer a schema", lambda: Schema.infer(data))
    plain = step("canonical", lambda: schema.canonical(data))
    step("digest", lambda: data_digest(plain))
    step("farthest", lambda: farthest_first(plain, schema, np.arange(rows))[0])
    chosen = audit_settings(shadow_models=28, rows=1000)
    spec = step("spec", lambda: build_spec("null", load(data, schema), chosen))
    step("audit of 28 models", lambda: run_audit(spec, folder, jobs=2))


MODES = {"trials": (trials, 200_000), "features": (features, 10_000), "table": (table, 1_000_000)}


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("mode", choices=list(MODES))
    parser.add_argument("number", type=int, nargs="?")
    options = parser.parse_args()
    run, default = MODES[options.mode]
    with tempfile.TemporaryDirectory() as folder:
        run(options.number or default, Path(folder) / "run")


if __name__ == "__main__":
    main()
