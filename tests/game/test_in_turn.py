"""Trials of a fast generator run in turn, in batches, and give what each gives alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from batch_toys import TRIALS, Mean, Means, Together, features, payload, seed_of
from dpaudit.errors import InterruptedRunError, RunFolderError
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import BATCH_SECONDS, Batch, BatchLoss, BatchSize, Landing, TimeLimit
from dpaudit.game.store import RunFolder
from dpaudit.game.training import run_batch, run_trial
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.plugins.access import Disclosure
from dpaudit.plugins.protocols import FloatArray, GameView, World
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Ensemble

MANY = [Trial(Role.AUDIT, world, number) for number in range(12) for world in World]


@dataclass
class Alone:
    """Trains as `Together` does, one model at a time; some trials give odd tables or fail."""

    unnamed: frozenset[int] = frozenset()
    short: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Alone:
        self.seed, self.model = seed, Together().fit(data, seed=seed)
        if seed in self.failing:
            raise ValueError("no model")
        return self

    def parameters(self) -> list[float]:
        return [self.model.mean]

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        table = self.model.sample(n - (self.seed in self.short), seed=seed)
        return table.replace({"town": {"b": "elsewhere"}}) if self.seed in self.unnamed else table


class Weights:
    """An attack on what a model discloses."""

    sees = Disclosure.PARAMETERS

    def model_features(self, disclosed: FloatArray, game: GameView) -> FloatArray:
        del game
        return disclosed


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes agree in all but their times."""
    plain = replace(one, features=None, seconds=0.0, attempts=1)
    assert plain == replace(other, features=None, seconds=0.0, attempts=1)
    if one.features is None or other.features is None:
        return one.features is other.features
    return np.array_equal(one.features, other.features)


def test_a_batch_gives_what_its_trials_give_alone() -> None:
    seeds = [seed_of(trial) for trial in TRIALS]
    odd = Alone(frozenset(seeds[1:7:2]), frozenset(seeds[4:5]), frozenset(seeds[2:3]))
    attacks = Mean(), Weights(), Means(), TableForm(), Ensemble()
    given = payload(odd, *attacks)
    alone = [run_trial(given, trial) for trial in TRIALS]
    for size in (5, len(TRIALS)):
        batch = run_batch(given, TRIALS[:size])
        assert all(map(same, batch, alone[:size]))
    failed = [outcome.trial for outcome in batch if outcome.status is TrialStatus.FAILED]
    assert failed == [TRIALS[2], TRIALS[4]]


def test_an_attack_on_many_tables_sees_those_of_a_batch_at_once() -> None:
    attack = Means()
    run_batch(payload(Alone(failing=frozenset({seed_of(TRIALS[0])})), attack), TRIALS)
    assert attack.sizes == [len(TRIALS) - 1]


# How large a batch is.


def ended(*seconds: float) -> list[Outcome]:
    return [Outcome(trial=MANY[0], status=TrialStatus.FINISHED, seconds=each) for each in seconds]


def test_batches_double_while_they_are_short() -> None:
    size = BatchSize(workers=2, most=100)
    sizes = []
    for _ in range(9):
        sizes.append(size.size)
        size.learn(ended(*[BATCH_SECONDS / 50.5] * size.size))
    assert sizes == [1, 2, 4, 8, 16, 32, 50, 50, 50]
    size.learn(ended(BATCH_SECONDS))
    assert size.size == 1
    size.learn(ended(0.0))
    assert size.size == 2
    few = BatchSize(workers=1, most=1)
    few.learn(ended(0.0))
    assert few.size == 1


def test_workers_share_the_last_trials() -> None:
    queue: deque[Batch] = deque((trial,) for trial in MANY[:11])
    size = BatchSize(workers=2, most=100, size=4)
    assert [len(size.take(queue)) for _ in range(4)] == [4, 4, 2, 1]  # of 11, 7, 3, 1


# With an engine in this process, whose workers die, are late, or are stopped.


@dataclass
class Here:
    """An engine that runs batches here, all as fast; `loses` says how a batch is lost."""

    workers: int = 2
    loses: Callable[[Batch], BatchLoss | None] = lambda batch: None
    batches: list[Batch] = field(default_factory=list)
    stopped: bool = False

    @contextmanager
    def flight(self, payload: Payload, **_: Any) -> Iterator[Here]:
        self.payload, self.waiting = payload, deque[Batch]()
        yield self

    def __len__(self) -> int:
        return len(self.waiting)

    def takes(self, *, suspect: bool) -> bool:
        return not self.waiting if suspect else len(self.waiting) < 2 * self.workers

    def submit(self, batch: Batch, *, suspect: bool) -> None:
        assert not suspect or len(batch) == 1
        self.batches.append(batch)
        self.waiting.append(batch)

    def collect(self) -> list[Landing]:
        batch = self.waiting.popleft()
        loss = self.loses(batch)
        if loss is not None:
            return [Landing(batch, loss=loss)]
        outcomes = run_batch(self.payload, batch)
        return [Landing(batch, tuple(replace(outcome, seconds=1e-3) for outcome in outcomes))]

    def renewed(self, trials: int) -> Here:
        return self

    def stop(self) -> None:
        self.stopped = True


def run(path: Path, engine: Any, trials: Sequence[Trial] = MANY, **chosen: Any) -> dict[Any, Any]:
    with RunFolder(path, spec={}, versions={}) as folder:
        run_trials(trials, payload(Alone()), folder, engine=engine, **chosen)
        return {trial: folder.outcome(trial) for trial in folder.outcomes(trials[0].role)}


def test_the_number_of_workers_and_the_order_do_not_matter(tmp_path: Path) -> None:
    engines = [Here(1), Here(3)]
    found = [
        features(run(tmp_path / str(engine.workers), engine, MANY[:: 2 - engine.workers]))
        for engine in engines
    ]
    assert found[0] == found[1]
    assert len(set(found[0].values())) == len(MANY)
    for engine in engines:
        assert max(map(len, engine.batches)) > 1
        assert sorted(trial for batch in engine.batches for trial in batch) == sorted(MANY)


@pytest.mark.parametrize("loss", [BatchLoss.DIED, BatchLoss.LATE])
def test_the_trials_of_a_lost_batch_run_alone(tmp_path: Path, loss: BatchLoss) -> None:
    culprit = MANY[17]
    engine = Here(loses=lambda batch: loss if culprit in batch else None)
    found = run(tmp_path, engine, trial_timeout=9.0)
    calm = run(tmp_path / "calm", Here())
    lost = [batch for batch in engine.batches if culprit in batch]
    assert [len(batch) > 1 for batch in lost] == [True] + [False] * (
        2 if loss is BatchLoss.DIED else 1
    )
    assert all((trial,) in engine.batches for trial in lost[0])
    assert found.pop(culprit).status in (TrialStatus.CRASHED, TrialStatus.FAILED)
    assert all(same(outcome, calm[trial]) for trial, outcome in found.items())


def test_a_batch_in_turn_has_the_time_of_one_trial() -> None:
    assert TimeLimit(2.0).of(tuple(MANY[:3])) == 6.0
    assert TimeLimit(2.0, in_turn=True).of(tuple(MANY[:3])) == 2.0


def test_what_must_run_alone_does(tmp_path: Path) -> None:
    replays = [trial._replace(role=Role.REPLAY) for trial in MANY[:9]]
    engine = Here()
    run(tmp_path, engine, replays)
    assert all(len(batch) == 1 for batch in engine.batches)


def test_an_end_in_the_middle_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    reported: list[int] = []

    def end_at_twelve(batch: Batch) -> None:
        if reported[-1] >= 12:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError):
        run(tmp_path, Here(loses=end_at_twelve), on_progress=lambda at: reported.append(at.done))
    with RunFolder(tmp_path, spec={}, versions={}) as folder:
        assert len(folder.finished(MANY)) == reported[-1] >= 12
    engine = Here()
    resumed = features(run(tmp_path, engine))
    assert sum(map(len, engine.batches)) == len(MANY) - reported[-1]
    assert resumed == features(run(tmp_path / "whole", Here()))


def test_outcomes_are_stored_all_or_none(tmp_path: Path) -> None:
    outcomes = run_batch(payload(Alone()), TRIALS)
    unstorable: dict[str, Any] = {"rows": object()}
    broken = replace(outcomes[-1], **unstorable)
    with RunFolder(tmp_path, spec={}, versions={}) as folder:
        with pytest.raises(RunFolderError, match="take another trial"):
            folder.save(*outcomes[:-1], broken)
        assert not folder.finished(TRIALS)
        folder.save(*outcomes)
        assert folder.finished(TRIALS) == set(TRIALS)
