"""Workers that die, print, hang on to state or come in other numbers change no outcome."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import AttackError, GeneratorError, InterruptedRunError
from dpaudit.game.engine import run_trials
from dpaudit.game.flight import Batch, BatchLoss, Landing, TimeLimit, TrialProgress
from dpaudit.game.pool import LocalEngine, current_pool, kill_workers
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.game.worlds import TargetGame
from dpaudit.model.claim import Neighbours
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import (
    BoolArray,
    FeatureName,
    FloatArray,
    GameView,
    Job,
    Scorer,
    World,
)
from program import Program

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file

SCHEMA = Schema(columns=(Column(name="x", kind=Kind.CONTINUOUS, lower=0, upper=1),))
TABLE = SCHEMA.canonical(pd.DataFrame({"x": [0.1, 0.2, 0.3]}))
TRIALS = [Trial(Role.AUDIT, world, number) for number in range(10) for world in World]


def seed_of(trial: Trial) -> int:
    return trial.seed("fit", root=0, audit="test")


class Mean:
    """An attack with one feature."""

    def check(self, game: GameView) -> None:
        del game

    def feature_names(self, game: GameView) -> tuple[FeatureName, ...]:
        del game
        return (FeatureName("x", "mean"),)

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        del game
        if (table["x"] < 0).any():
            raise ValueError("negative")
        return np.array([table["x"].mean()])

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        raise NotImplementedError  # no trial needs it


@dataclass
class Uniform:
    """A generator: uniform numbers from its seeds; the others do worse."""

    seed: int = 0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Uniform:
        self.seed = seed
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng([self.seed, seed])
        return pd.DataFrame({"x": rng.random(n)})


@dataclass
class Lethal(Uniform):
    """Kills its worker at some seeds: always, or until a file is there."""

    kills: frozenset[int] = frozenset()
    exits: frozenset[int] = frozenset()
    once: Path | None = None

    def fit(self, data: pd.DataFrame, *, seed: int) -> Uniform:
        if seed in self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if seed in self.exits and not (self.once and self.once.exists()):
            if self.once:
                self.once.touch()
            os._exit(0)
        return super().fit(data, seed=seed)


@dataclass
class Sleepy(Uniform):
    """Never ends at one seed."""

    sleeps: int = 0
    begun: Path = Path()

    def fit(self, data: pd.DataFrame, *, seed: int) -> Uniform:
        if seed == self.sleeps:
            self.begun.touch()
            time.sleep(600)
        return super().fit(data, seed=seed)


class Loud(Uniform):
    """Writes wherever it can."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        sys.stdout.write("printed\n")
        sys.stdout.flush()
        os.write(1, b"to descriptor 1\n")
        os.write(2, b"to descriptor 2\n")
        return super().sample(n, seed=seed)


class Worker(Uniform):
    """Gives away what differs between two workers unless the engine sees to it."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        threads = float(os.environ["OMP_NUM_THREADS"])
        value = (hash("a text") % 1000) / 1000 + threads
        return pd.DataFrame({"x": [value] * n})


class LazyTorch(Uniform):
    """Imports torch while training and draws from its global generator."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        import torch

        assert torch.get_num_threads() == 1
        return pd.DataFrame({"x": torch.rand(n).double().numpy()})


class Greedy(Uniform):
    """Says how many threads its libraries may use, and takes more."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        return pd.DataFrame({"x": np.full(n, threads / 4)})


class Negative(Uniform):
    """Gives a table that the attack cannot bear."""

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        return super().sample(n, seed=seed) - 2.0


def payload(generator: object) -> Payload:
    view = GameView(
        schema=SCHEMA,
        others=TABLE.iloc[:2],
        target=TABLE.iloc[[2]].reset_index(drop=True),
        n_rows=2,
        neighbours=Neighbours.ADD_REMOVE,
    )
    pickled = cloudpickle.dumps(generator)
    return Payload(
        game=TargetGame(view=view, data=TABLE, missing={World.IN: (), World.OUT: (2,)}),
        generators={Role.AUDIT: pickled, Role.REPLAY: pickled},
        attacks=[Mean()],
        root=0,
        audit="test",
    )


def opened(path: Path) -> RunFolder:
    return RunFolder(path, spec={}, versions={})


def played(
    path: Path, generator: object, trials: Sequence[Trial] = TRIALS, *, jobs: int = 2
) -> dict[Trial, Outcome]:
    with opened(path) as folder:
        run_trials(trials, payload(generator), folder, engine=LocalEngine(jobs))
        assert folder.finished(trials) == set(trials)
        assert not list(path.glob("payload*"))
        return {t: folder.outcome(t) for role in Role for t in folder.outcomes(role)}


def features(outcomes: dict[Trial, Outcome]) -> dict[Trial, bytes]:
    return {t: o.features.tobytes() for t, o in outcomes.items() if o.features is not None}


def workers() -> list[int]:
    """Worker processes of this process that run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            words = (entry / "cmdline").read_text()
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and "dpaudit.game.worker" in words:
            found.append(int(entry.name))
    return found


@pytest.fixture(scope="module", autouse=True)
def _no_worker_is_left() -> Iterator[None]:
    yield
    kill_workers()
    assert not workers()


def test_number_of_workers_and_order_do_not_matter(tmp_path: Path) -> None:
    two = features(played(tmp_path / "two", Uniform(), jobs=2))
    assert len(two) == len(TRIALS)
    assert len(set(two.values())) == len(TRIALS)
    one = features(played(tmp_path / "one", Uniform(), TRIALS[::-1], jobs=1))
    assert one == two


@pytest.mark.new_workers
def test_every_worker_is_alike(tmp_path: Path) -> None:
    one = features(played(tmp_path / "one", Worker(), TRIALS[:1], jobs=1))
    kill_workers()
    another = features(played(tmp_path / "another", Worker(), TRIALS[:1], jobs=1))
    assert one == another
    assert workers()  # started afresh: forks of one process are alike in any case


def test_progress_counts_what_is_there(tmp_path: Path) -> None:
    seen: list[TrialProgress] = []
    with opened(tmp_path) as folder:
        run_trials(TRIALS[:4], payload(Uniform()), folder, engine=LocalEngine(2))
        run_trials(
            TRIALS[:6], payload(Uniform()), folder, engine=LocalEngine(2), on_progress=seen.append
        )
        run_trials(
            TRIALS[:6], payload(Uniform()), folder, engine=LocalEngine(2), on_progress=seen.append
        )
    assert [(p.done, p.total, p.failed) for p in seen] == [(4, 6, 0), (5, 6, 0), (6, 6, 0)]


@pytest.mark.ci
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trial_that_kills_its_worker_takes_no_other_with_it(tmp_path: Path, jobs: int) -> None:
    killer, quitter = TRIALS[0], TRIALS[7]
    lethal = Lethal(kills=frozenset({seed_of(killer)}), exits=frozenset({seed_of(quitter)}))
    outcomes = played(tmp_path, lethal, jobs=jobs)
    for trial, outcome in outcomes.items():
        if trial in (killer, quitter):
            assert outcome.status is TrialStatus.CRASHED
            assert outcome.attempts == 3
            how = "signal 9, SIGKILL: often too little memory" if trial == killer else "exit code 0"
            assert outcome.error == f"its worker process died in each of 3 attempts ({how})"
        else:
            assert outcome.status is TrialStatus.FINISHED
    calm = features(played(tmp_path / "calm", Uniform(), jobs=jobs))
    assert features(outcomes).items() <= calm.items()


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_that_ends_loses_only_what_it_ran(tmp_path: Path, late: bool) -> None:
    """What it had finished is kept, and what it had not begun is no suspect."""
    kill_workers()
    generator = Sleepy(sleeps=seed_of(TRIALS[1]), begun=tmp_path / "begun")
    batches = [(trial,) for trial in TRIALS[:3]]
    limit = TimeLimit(1.0 if late else None)
    engine, log = LocalEngine(1), tmp_path / "log"
    with engine.flight(payload(generator), folder=tmp_path, log=log, limit=limit) as flight:
        for batch in batches[:2]:
            flight.submit(batch)
        [first] = flight.collect()
        assert first.batch == batches[0]
        assert [outcome.status for outcome in first.outcomes] == [TrialStatus.FINISHED]
        flight.submit(batches[2])
        assert not flight.takes(suspect=False)
        while not generator.begun.exists():
            time.sleep(0.01)
        [process] = current_pool().processes
        if not late:
            process.process.kill()
        assert flight.collect() == [
            Landing(batches[1], loss=BatchLoss.LATE)
            if late
            else Landing(batches[1], loss=BatchLoss.DIED, code=-9),
            Landing(batches[2], loss=BatchLoss.STOPPED),
        ]
        assert not len(flight)
    assert process.process.poll() is not None


def test_a_worker_that_died_idle_costs_no_trial(tmp_path: Path) -> None:
    kill_workers()
    played(tmp_path, Uniform(), TRIALS[:2], jobs=1)
    [process] = current_pool().processes
    process.process.kill()
    process.process.wait()
    outcomes = played(tmp_path, Uniform(), TRIALS[:4], jobs=1)
    assert {outcome.attempts for outcome in outcomes.values()} == {1}


def test_a_worker_that_dies_once_leaves_no_trace_but_an_attempt(tmp_path: Path) -> None:
    unlucky = TRIALS[3]
    generator = Lethal(exits=frozenset({seed_of(unlucky)}), once=tmp_path / "died")
    outcomes = played(tmp_path / "run", generator)
    assert all(outcome.status is TrialStatus.FINISHED for outcome in outcomes.values())
    assert outcomes[unlucky].attempts == 2


def test_what_generators_write_goes_to_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    played(tmp_path, Loud(), TRIALS[:3])
    assert capfd.readouterr() == ("", "")
    log = (tmp_path / "workers.log").read_text()
    for line in ("printed", "to descriptor 1", "to descriptor 2"):
        assert log.count(line) == 3


@pytest.mark.ci
def test_torch_imported_by_a_worker_is_seeded_from_its_first_draw(tmp_path: Path) -> None:
    trial = TRIALS[0]
    again = trial._replace(role=Role.REPLAY)
    with opened(tmp_path) as folder:
        for one in (trial, again):
            run_trials([one], payload(LazyTorch()), folder, engine=LocalEngine(1))
        first = folder.outcome(trial)
        second = folder.outcome(again)
    assert first.status is TrialStatus.FINISHED, first.error
    assert features({trial: first})[trial] == features({trial: second})[trial]


def test_threads_that_a_generator_takes_are_not_the_next_one_s(tmp_path: Path) -> None:
    found = features(played(tmp_path, Greedy(), TRIALS[:3], jobs=1))
    assert {found[trial] for trial in TRIALS[:3]} == {np.array([0.25]).tobytes()}


def test_a_worker_that_stays_loads_what_the_next_call_trains(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:  # one folder and one process: the same name of the payload
        run_trials(TRIALS[:1], payload(Uniform()), folder, engine=LocalEngine(1))
        run_trials(TRIALS[1:2], payload(Greedy()), folder, engine=LocalEngine(1))
        found = features({t: folder.outcome(t) for t in folder.outcomes(Role.AUDIT)})
    one_quarter = np.array([0.25]).tobytes()
    assert [found[trial] == one_quarter for trial in TRIALS[:2]] == [False, True]


@pytest.mark.new_workers  # which `workers` finds
def test_an_attack_that_fails_stops_the_run_and_its_workers(tmp_path: Path) -> None:
    with opened(tmp_path) as folder, pytest.raises(AttackError, match="Mean failed: ValueError"):
        run_trials(TRIALS, payload(Negative()), folder, engine=LocalEngine(2))
    assert not list(tmp_path.glob("payload*"))
    assert not workers()


@pytest.mark.new_workers
def test_an_interrupt_keeps_what_finished_and_the_next_call_goes_on(tmp_path: Path) -> None:
    def stop_at_five(progress: TrialProgress) -> None:
        if progress.done == 5:
            signal.raise_signal(signal.SIGINT)

    with opened(tmp_path) as folder:
        with pytest.raises(InterruptedRunError) as stopped:
            run_trials(
                TRIALS, payload(Uniform()), folder, engine=LocalEngine(2), on_progress=stop_at_five
            )
        kept = len(folder.finished(TRIALS))
        assert 5 <= kept <= 8  # the whole batch of the fifth
        assert f"{kept} of 20 shadow models (audit) are kept in" in str(stopped.value)
        assert not workers()
        assert not list(tmp_path.glob("payload*"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    resumed = features(played(tmp_path, Uniform()))
    assert resumed == features(played(tmp_path / "whole", Uniform()))


def test_a_payload_that_a_killed_run_left_is_erased(tmp_path: Path) -> None:
    played(tmp_path, Uniform(), TRIALS[:2])
    stale = tmp_path / "payload-1.pickle"
    stale.write_bytes(b"private")
    played(tmp_path, Uniform(), TRIALS[:2])  # nothing is left to play
    assert not stale.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_payload_has_no_name_while_workers_run(tmp_path: Path) -> None:
    names: list[Path] = []
    with opened(tmp_path) as folder:
        run_trials(
            TRIALS[:2],
            payload(Uniform()),
            folder,
            engine=LocalEngine(1),
            on_progress=lambda _: names.extend(tmp_path.glob("payload*")),
        )
        assert len(folder.finished(TRIALS)) == 2
    assert not names


def test_elsewhere_the_payload_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.game.worker._OPEN_FILES", tmp_path / "nothing")
    modes = []

    def look(progress: TrialProgress) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.glob("payload*"))

    with opened(tmp_path) as folder:
        run_trials(TRIALS[:2], payload(Uniform()), folder, engine=LocalEngine(1), on_progress=look)
    assert set(modes) == {0o600}
    assert not list(tmp_path.glob("payload*"))


class Quoting:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        raise ValueError(f"\x1b[31mJane Doe, {data.shape}\nage 97")


def test_what_a_generator_raises_stays_in_the_log_of_the_folder(tmp_path: Path) -> None:
    outcomes = played(tmp_path, Quoting(), TRIALS[:2])
    [error] = {outcome.error for outcome in outcomes.values()}
    assert re.fullmatch(r"ValueError at test_engine\.py:\d+ in fit", error)
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
        assert (b"Jane" in file.read_bytes()) == (file.name == "workers.log")
    lines = (tmp_path / "workers.log").read_text().splitlines()
    [line] = [line for line in lines if "in/0" in line]
    assert line.isprintable()
    assert re.search(r"in/0 failed: ValueError at test_engine\.py:\d+ in fit: .* age 97$", line)
    assert lines.count("  Traceback (most recent call last):") == 1  # of each way of failing
    assert any("raise ValueError" in line for line in lines)


FAULTS = """
import os, signal, sys, threading
import numpy as np
import pandas as pd
from dpaudit.plugins.protocols import FeatureName

print("imported")

class Copies:
    def check(self, game):
        pass

    def feature_names(self, game):
        return FeatureName("a", "count"), FeatureName("a", "polynomial")

    def features(self, table, game):  # the second tells tables apart, whatever their order and sums
        return np.array([(table["a"] == 100).sum(), np.polyval(table["a"], 1.37)])

    def fit(self, features, member, *, seed):
        return lambda features: features[:, 0]

def table(rng, n):
    return pd.DataFrame({"a": rng.integers(0, 101, n), "b": rng.integers(-3, 4, n)})

def faulty(data, n_rows, seed):
    print("a line")
    os.write(1, b"raw bytes")
    rng = np.random.default_rng(seed)
    good = table(rng, n_rows)
    fault = rng.integers(12)
    if fault == 0:
        return good.drop(columns="b")
    if fault == 1:
        return good.iloc[1:]
    if fault == 2:
        return good.assign(a=np.nan)
    if fault == 3:
        return good.assign(a=np.inf)
    if fault == 4:
        return good.to_numpy()
    if fault == 5:
        raise ValueError("as it happens")
    if fault == 6:
        sys.exit("leaving")
    return good

def always(data, n_rows, seed):
    raise RuntimeError("never works")

def member_only(data, n_rows, seed):
    if (data["a"] == 100).any():
        raise RuntimeError("the record is here")
    return table(np.random.default_rng(seed), n_rows)

def entropy(data, n_rows, seed):
    return table(np.random.default_rng(), n_rows)

class Secure:
    seedable = False

    def fit(self, data, *, seed):
        return self

    def sample(self, n, *, seed):
        return table(np.random.default_rng(), n)
"""


@pytest.fixture
def faults(tmp_path: Path) -> Path:
    """A folder with the faulty generators and a tiny table."""
    rows = [f"{10 * n},{n % 7 - 3}" for n in range(11)]
    (tmp_path / "tiny.csv").write_text("\n".join(["a,b", *rows, ""]))
    (tmp_path / "faults.py").write_text(FAULTS)
    return tmp_path


def audited(folder: Path, generator: str) -> Mapping[str, Any]:
    """The result document of a whole audit."""
    return audit_by_keywords(
        f"{folder / 'faults.py'}:{generator}",
        folder / "tiny.csv",
        target=10,
        epsilon=1,
        attacks=[f"{folder / 'faults.py'}:Copies"],
        shadow_models=100,
        jobs=2,
    ).to_document()


def test_every_fault_is_counted_by_world_with_its_reason(faults: Path, program: Program) -> None:
    words = ["audit", "faults.py:faulty", "--json", "--jobs", "1"]
    words += ["--data", "tiny.csv", "--target", "row:10", "--epsilon", "0.1", "--out", "run"]
    words += ["--attack", "faults.py:Copies", "--shadow-models", "44"]
    done = program.run(words, cwd=faults)
    document = json.loads(done.stdout)  # and nothing else, whatever generators print
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 3)
    assert document["verdict"] in ("consistent", "inconclusive")
    assert min(document["failures"].values()) > 10
    assert sum(reason["count"] for reason in document["failure_reasons"]) > 20
    assert {reason["error"] for reason in document["failure_reasons"]} <= {
        "wrong columns: column 'b' is missing",
        "wrong row count: 10 rows instead of 11",
        "column 'a' has missing values (NaN)",
        "column 'a' has infinite values",
        "sample returned ndarray, not a pandas DataFrame",
        "ValueError at faults.py:42 in faulty",
        "SystemExit at faults.py:44 in faulty",
    }
    assert (faults / "run" / "report.html").exists()


def test_a_generator_that_always_fails_is_stopped_and_never_consistent(faults: Path) -> None:
    with pytest.raises(GeneratorError, match=r"always gave no synthetic table in 1[678] trainings"):
        audited(faults, "always")


@pytest.mark.ci
def test_a_generator_that_fails_for_members_alone_is_a_violation(faults: Path) -> None:
    document = audited(faults, "member_only")
    assert document["failures"] == {"in": document["shadow_models"]["in"], "out": 0}
    assert document["failures"]["in"] > 30
    assert document["verdict"] == "violation"
    assert document["attack"] == "trial outcomes"


@pytest.mark.parametrize(
    ("generator", "passed", "told"),
    [
        pytest.param("entropy", False, "cannot be repeated", marks=pytest.mark.ci),
        ("Secure", True, "secure noise"),
    ],
)
def test_a_generator_without_a_seed_is_audited_all_the_same(
    faults: Path, generator: str, passed: bool, told: str
) -> None:
    document = audited(faults, generator)
    assert document["verdict"] in ("consistent", "inconclusive")
    checks = {check["name"]: check for check in document["checks"]}
    replay = checks["same seed, same table"]
    assert replay["passed"] is passed
    assert told in replay["detail"]


class Scripted:
    """An engine whose batches end as a script says, and with outcomes once it has ended."""

    workers = 2

    def __init__(self, script: dict[Batch, list[BatchLoss]]) -> None:
        self.script = script
        self.handed: list[tuple[Batch, bool]] = []
        self.under_way: list[Batch] = []

    @contextmanager
    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> Iterator[Scripted]:
        yield self

    def renewed(self, trials: int) -> Scripted:
        return self

    def stop(self) -> None:
        raise AssertionError("nothing is to be stopped")

    def __len__(self) -> int:
        return len(self.under_way)

    def takes(self, *, suspect: bool) -> bool:
        return not self.under_way if suspect else len(self.under_way) < 2

    def submit(self, batch: Batch, *, suspect: bool) -> None:
        self.handed.append((batch, suspect))
        self.under_way.append(batch)

    def collect(self) -> list[Landing]:
        batch = self.under_way.pop(0)
        if losses := self.script.get(batch):
            return [Landing(batch, loss=losses.pop(0))]
        return [Landing(batch, tuple(Outcome(trial=t, status=TrialStatus.FINISHED) for t in batch))]


def scripted(path: Path, script: dict[Batch, list[BatchLoss]]) -> tuple[Scripted, list[Outcome]]:
    """What was handed over, and the outcomes of six trials that are trained in threes."""
    engine = Scripted(script)
    with opened(path) as folder:
        run_trials(
            *(SIX, payload(Uniform()), folder),
            engine=engine,
            trial_timeout=2.0,
            generator=Threes(),
        )
        return engine, [folder.outcome(trial) for trial in SIX]


SIX = TRIALS[:12:2]
FIRST, SECOND = tuple(SIX[:3]), tuple(SIX[3:])


class Threes:
    """Trains three models at once."""

    models_at_once = 3

    def batch_key(self, job: Job) -> int:
        return 0

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Any:
        raise NotImplementedError  # the script says what becomes of it


def test_a_batch_that_was_late_counts_as_no_death_of_its_trials(tmp_path: Path) -> None:
    died = [BatchLoss.DIED] * 2
    engine, found = scripted(tmp_path, {FIRST: [BatchLoss.LATE], (SIX[0],): died})
    assert [outcome.status for outcome in found] == [TrialStatus.FINISHED] * 6
    assert [outcome.attempts for outcome in found] == [4, 2, 2, 1, 1, 1]
    assert {batch for batch, suspect in engine.handed if suspect} == {(one,) for one in FIRST}


def test_a_trial_is_a_crash_at_its_third_death_and_late_alone_it_timed_out(tmp_path: Path) -> None:
    script = {
        FIRST: [BatchLoss.DIED],
        (SIX[0],): [BatchLoss.DIED] * 2,
        (SIX[1],): [BatchLoss.LATE],
        SECOND: [BatchLoss.STOPPED] * 5,
    }
    engine, found = scripted(tmp_path, script)
    assert [outcome.status for outcome in found] == [
        TrialStatus.CRASHED,
        TrialStatus.FAILED,
        *[TrialStatus.FINISHED] * 4,
    ]
    assert found[0].error == "its worker process died in each of 3 attempts"
    assert found[1].error == "timed out after 2 s"
    assert [outcome.attempts for outcome in found] == [3, 2, 2, 6, 6, 6]
    # what was stopped for another's fault is trained together again, and is no suspect
    assert engine.handed.count((SECOND, False)) == 6
    assert not any(suspect for batch, suspect in engine.handed if batch == SECOND)
