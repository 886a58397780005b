"""Throughput of the engine dask against the local one, two workers each, by length of a trial.

Usage: python benchmarks/engines.py [--burn] [--trials N] [--rounds R]   (some 6 minutes)

A generator sleeps (or computes, with --burn) for a given time in each trial; its table and features
cost next to nothing. A scheduler and two workers with one thread each run on this machine, as
processes of their own. Both engines are warm: processes are started and the payload is loaded. Of
interleaved rounds the median wall time of all trials is taken, and the ratio of the two medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import cloudpickle
import numpy as np
import pandas as pd
from distributed import LocalCluster

from dpaudit.game.engine import opened_engine, run_trials
from dpaudit.game.flight import Engine
from dpaudit.game.pool import LocalEngine, workers_ended
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FeatureName, FloatArray, GameView, World

WORKERS: Final = 2
LENGTHS: Final = (0.1, 0.5, 2.0)
SCHEMA: Final = Schema(columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),))


@dataclass
class Waits:
    """A generator that takes its time."""

    seconds: float
    burns: bool

    def fit(self, data: pd.DataFrame, *, seed: int) -> Waits:
        """Sleeps, or computes."""
        end = time.process_time() + self.seconds
        while self.burns and time.process_time() < end:
            sum(range(1000))
        if not self.burns:
            time.sleep(self.seconds)
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Uniform numbers."""
        return pd.DataFrame({"x": np.random.default_rng(seed).random(n)})


class Mean:
    """An attack with one feature."""

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        """The mean of the column."""
        return (FeatureName("x", "mean"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """The mean of the column."""
        return np.array([table["x"].mean()])


def payload(generator: Waits) -> Payload:
    """What the trials are run from."""
    table = SCHEMA.canonical(pd.DataFrame({"x": np.linspace(0.0, 1.0, 100)}))
    view = GameView(
        schema=SCHEMA,
        others=table.iloc[:99],
        target=table.iloc[[99]].reset_index(drop=True),
        n_rows=99,
        neighbours=Neighbours.ADD_REMOVE,
    )
    return Payload(
        game=TargetGame(view=view, data=table, missing={World.IN: (), World.OUT: (99,)}),
        generators={Role.AUDIT: cloudpickle.dumps(generator)},
        attacks=[Mean()],  # type: ignore[list-item]  # it is never fitted
        root=0,
        audit="benchmark",
    )


def seconds(engine: Engine, shared: Payload, trials: int) -> float:
    """Wall time of that many trials; two more come first."""
    order = [Trial(Role.AUDIT, World.IN, number) for number in range(trials + WORKERS)]
    with (
        tempfile.TemporaryDirectory() as place,
        RunFolder(Path(place) / "run", spec={}, versions={}) as folder,
    ):
        run_trials(order[:WORKERS], shared, folder, engine=engine)
        begun = time.perf_counter()
        run_trials(order, shared, folder, engine=engine)
        return time.perf_counter() - begun


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--burn", action="store_true", help="compute instead of sleeping")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(argv)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    print(f"{'seconds a trial':>15} {'local':>8} {'dask':>8} {'throughput of dask / local':>28}")
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        opened_engine("dask", jobs=None, scheduler=cluster.scheduler_address) as dask,
        workers_ended(),
    ):
        local = LocalEngine(WORKERS)
        for length in LENGTHS:
            shared = payload(Waits(length, given.burn))
            pairs = [
                (seconds(local, shared, given.trials), seconds(dask, shared, given.trials))
                for _ in range(given.rounds)
            ]
            here, there = (median(side) for side in zip(*pairs, strict=True))
            print(f"{length:15g} {here:8.2f} {there:8.2f} {here / there:28.2f}")


if __name__ == "__main__":
    main()
