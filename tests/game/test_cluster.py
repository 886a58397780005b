"""The engine of a cluster, piece by piece, with a cluster that is made up."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from distributed import CancelledError, Client, KilledWorker

import batch_toys
from batch_toys import TRIALS, Together, payload
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import AttackError, ClusterError, MissingExtraError, SettingsError
from dpaudit.game import cluster
from dpaudit.game.cluster import ClusterEngine, ClusterFlight, Place, Report, Request
from dpaudit.game.engine import opened_engine
from dpaudit.game.flight import Batch, BatchLoss, Landing, TimeLimit
from dpaudit.game.trial import Outcome, TrialStatus
from dpaudit.game.worker import Greeting, greeting_of

cloudpickle.register_pickle_by_value(batch_toys)

HERE = Greeting({"dpaudit": "1", "numpy": "2"}, {"dpaudit": "aa", "the generator (audit)": None})


class Promise:
    """A future of the made-up cluster."""

    def __init__(self) -> None:
        self.ended: Report | BaseException | None = None
        self.waiting: Callable[[Promise], None] = lambda _: None

    def end(self, report: Report | BaseException) -> None:
        self.ended = report
        self.waiting(self)

    def add_done_callback(self, waiting: Callable[[Promise], None]) -> None:
        self.waiting = waiting
        if self.ended is not None:
            waiting(self)

    def result(self, timeout: float) -> Report:
        assert timeout > 0
        if isinstance(self.ended, BaseException):
            raise self.ended
        assert self.ended is not None
        return self.ended


@dataclass
class Cluster:
    """A cluster without machines: greetings are answered at once, batches when the test says so."""

    there: dict[str, Place] = field(default_factory=dict)
    address: str = "tcp://nowhere:1"
    greeting: Greeting = HERE
    asked: list[tuple[Place, Request, Promise]] = field(default_factory=list)
    dropped: list[Promise] = field(default_factory=list)
    sent: int = 0
    holds: str = ""

    def add(self, name: str, *, threads: int = 1, ready: bool = True) -> None:
        self.there[name] = Place(name, f"/{name}/{len(self.asked)}", threads, ready)

    def places(self) -> dict[str, Place]:
        return dict(self.there)

    def payload(self, blob: bytes, digest: str) -> str:
        self.sent += self.holds != digest
        self.holds = digest
        return "future of the payload"

    def forget_payload(self) -> None:
        self.holds = ""

    def submit(self, place: Place, request: Request, blob: object) -> Promise:
        promise = Promise()
        if request.arguments:
            self.asked.append((place, request, promise))
        else:
            promise.end(Report(self.greeting))
        return promise

    def drop(self, promise: Promise) -> None:
        self.dropped.append(promise)

    def stop(self) -> None:
        pass


def outcomes(batch: Batch) -> list[Outcome]:
    return [Outcome(trial=trial, status=TrialStatus.FAILED) for trial in batch]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.0)


@pytest.fixture
def two() -> Cluster:
    made_up = Cluster()
    made_up.add("a")
    made_up.add("b")
    return made_up


def flown(made_up: Cluster, tmp_path: Path, **engine: Any) -> ClusterFlight:
    flight = ClusterFlight(
        ClusterEngine(made_up, **engine),  # type: ignore[arg-type]  # it is made up
        b"the table",
        HERE,
        log=tmp_path / "workers.log",
        limit=TimeLimit(5.0),
    )
    flight.begin()
    return flight


BATCHES = [(trial,) for trial in TRIALS]


def test_each_worker_has_one_batch_at_a_time_and_the_payload_is_sent_once(
    two: Cluster, tmp_path: Path
) -> None:
    flight = flown(two, tmp_path)
    flight.submit(BATCHES[0], suspect=False)
    assert flight.takes(suspect=True)
    flight.submit(BATCHES[1], suspect=True)
    assert not flight.takes(suspect=False)
    assert {place.address for place, _, _ in two.asked} == {"a", "b"}
    assert len(flight) == 2
    place, request, promise = two.asked[1]
    assert request.seconds == 5.0
    promise.end(Report(outcomes(BATCHES[1]), printed=b"hello\n"))
    assert flight.collect() == [Landing(BATCHES[1], tuple(outcomes(BATCHES[1])))]
    assert flight.takes(suspect=False)
    flight.submit(BATCHES[2], suspect=False)
    assert two.asked[2][0] == place
    assert two.sent == 1
    assert len({request.key for _, request, _ in two.asked}) == 3
    log = tmp_path / "workers.log"
    assert log.read_bytes() == b"hello\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_lost_worker_costs_its_own_batch_alone(two: Cluster, tmp_path: Path) -> None:
    flight = flown(two, tmp_path)
    for batch in BATCHES[:2]:
        flight.submit(batch, suspect=False)
    [lost] = [promise for place, _, promise in two.asked if place.address == "a"]
    two.add("a")  # again at its address: another process
    assert flight.collect() == [Landing(BATCHES[0], loss=BatchLoss.DIED)]
    assert lost in two.dropped
    assert len(flight) == 1
    while not flight.takes(suspect=True):  # it is greeted first
        assert not flight.collect()
    lost.end(Report(outcomes(BATCHES[0])))  # an answer that comes too late is nobody's
    assert not flight.collect()


def test_what_the_scheduler_drops_is_its_worker_s_fault_only_if_that_is_gone(
    two: Cluster, tmp_path: Path
) -> None:
    flight = flown(two, tmp_path)
    for batch in BATCHES[:2]:
        flight.submit(batch, suspect=False)
    two.asked[0][2].end(CancelledError("lost dependencies"))
    assert flight.collect() == [Landing(BATCHES[0], loss=BatchLoss.STOPPED)]
    del two.there[two.asked[1][0].address]
    two.asked[1][2].end(KilledWorker("task", None, 3))
    assert flight.collect() == [Landing(BATCHES[1], loss=BatchLoss.DIED)]
    flight.submit(BATCHES[2], suspect=False)
    assert two.sent == 2  # its copies may have been lost
    two.asked[2][2].end(Report(loss=BatchLoss.LATE))
    assert flight.collect() == [Landing(BATCHES[2], loss=BatchLoss.LATE)]


def test_a_scheduler_that_drops_everything_ends_the_run(two: Cluster, tmp_path: Path) -> None:
    flight = flown(two, tmp_path)

    def dropped() -> None:
        flight.submit(BATCHES[0], suspect=False)
        two.asked[-1][2].end(CancelledError("restarted"))
        assert flight.collect() == [Landing(BATCHES[0], loss=BatchLoss.STOPPED)]

    for _ in range(cluster.MOST_DROPPED):
        dropped()
    with pytest.raises(ClusterError, match="drops what it is asked for"):
        dropped()


def test_a_worker_that_ignores_the_limit_is_given_up(
    two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "START_SECONDS", 1.0)
    flight = flown(two, tmp_path)
    flight.submit(BATCHES[0], suspect=False)
    assert not flight.collect()
    monkeypatch.setattr(flight._watch, "seconds", dict.fromkeys(flight._watch.seconds, 6.3))
    assert flight.collect() == [Landing(BATCHES[0], loss=BatchLoss.LATE)]


def test_a_run_without_workers_waits_and_then_ends(
    two: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "START_SECONDS", 0.1)
    flight = flown(two, tmp_path)
    two.there.clear()
    assert flight.collect() == []
    assert not flight.takes(suspect=False)

    def wait() -> None:
        for _ in range(100):
            assert flight.collect() == []

    with pytest.raises(ClusterError, match="takes trials: there is none; start some"):
        wait()


def test_a_worker_of_another_version_is_refused_before_any_trial_and_left_out_later(
    two: Cluster, tmp_path: Path
) -> None:
    two.greeting = HERE._replace(versions={"dpaudit": "1", "numpy": "1"})
    with pytest.raises(ClusterError, match=r"worker a has numpy 1, and this process has 2"):
        flown(two, tmp_path)
    two.greeting = HERE
    flight = flown(two, tmp_path)
    flight._engine.started = True
    two.greeting = HERE._replace(trouble="ModuleNotFoundError: No module named 'gan'")
    two.add("c")
    two.add("d", threads=4)
    for _ in range(5):
        flight.collect()
    for batch in BATCHES[:2]:
        flight.submit(batch, suspect=False)
    assert not flight.takes(suspect=False)
    log = (tmp_path / "workers.log").read_text()
    assert log.count("the worker c has no way to load what is audited") == 1
    assert log.count("the worker d has 4 threads") == 1


def test_a_worker_that_is_full_or_leaving_gets_nothing(two: Cluster, tmp_path: Path) -> None:
    two.add("a", ready=False)
    flight = flown(two, tmp_path)
    flight.submit(BATCHES[0], suspect=False)
    assert two.asked[0][0].address == "b"
    assert not flight.takes(suspect=False)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (AttackError("mean failed"), AttackError, "mean failed"),
        (ClusterError("no space left"), ClusterError, "a: no space left; then run the same"),
    ],
)
def test_a_defect_ends_the_run(
    two: Cluster, tmp_path: Path, answer: Exception, error: type[Exception], says: str
) -> None:
    flight = flown(two, tmp_path)
    flight.submit(BATCHES[0], suspect=False)
    two.asked[0][2].end(Report(answer))
    with pytest.raises(error, match=says):
        flight.collect()


def test_a_worker_that_cannot_load_dpaudit_ends_the_run(two: Cluster, tmp_path: Path) -> None:
    flight = flown(two, tmp_path)
    flight.submit(BATCHES[0], suspect=False)
    two.asked[0][2].end(ModuleNotFoundError("No module named 'dpaudit'"))
    with pytest.raises(ClusterError, match="worker a cannot run dpaudit: ModuleNotFoundError"):
        flight.collect()


def test_a_greeting_compares_versions_and_sources() -> None:
    shared = payload(Together())
    here = greeting_of(shared)
    assert here.versions["numpy"]
    assert here.sources["dpaudit"] is not None
    assert here.difference(pickle.loads(pickle.dumps(here))) == ""
    other = {**here.sources, "dpaudit": "other"}
    assert here.difference(here._replace(sources=other)) == (
        "other source code of dpaudit than this process"
    )
    assert here.sources["the generator (audit)"] is None
    by_value = dict.fromkeys(here.sources)  # what travels with the payload needs no file there
    assert here.difference(here._replace(sources=by_value)) == ""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"engine": "ray"}, "`engine`: 'ray' is not one of local, dask"),
        ({"scheduler": "tcp://a:1"}, "`scheduler` is for the engine dask"),
        ({"engine": "dask"}, "needs the address of its scheduler"),
        ({"engine": "dask", "scheduler": "tcp://a:1", "jobs": 2}, "`jobs` are of this machine"),
    ],
)
def test_settings_that_do_not_belong_together_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        audit_by_keywords("null", "sample:breast-cancer", **given)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere:at:all", "file.json"])
def test_a_scheduler_that_does_not_answer_is_one_line(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    if address == "file.json":
        with (
            pytest.raises(ClusterError, match=r"found by file.json: No such file"),
            opened_engine("dask", jobs=None, scheduler=address),
        ):
            pass
        Path(address).write_text('{"address": "tcp://127.0.0.1:1"}')
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError) as caught, opened_engine("dask", jobs=None, scheduler=address):
        pass
    where = "tcp://127.0.0.1:1" if address == "file.json" else address
    assert str(caught.value).startswith(f"no dask scheduler answers at {where}: ")
    assert "\n" not in str(caught.value)
    clients = [one for one in gc.get_objects() if issubclass(type(one), Client)]
    assert all(one.status == "closed" for one in clients)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dpaudit.game.cluster")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install '\.\[cluster\]'"),
        opened_engine("dask", jobs=None, scheduler="tcp://a:1"),
    ):
        pass
