"""What a worker of a cluster does with a request: a process of its own, which it can end."""

from __future__ import annotations

import hashlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

import batch_toys
from batch_toys import TRIALS, Together, payload
from dpaudit.errors import AttackError, ClusterError
from dpaudit.game import cluster
from dpaudit.game.cluster import Host, Request, serve
from dpaudit.game.flight import BatchLoss
from dpaudit.game.pool import PoolWorker, Report
from dpaudit.game.worker import Greeting, PayloadFile, greet, greeting_of, pack, work

cloudpickle.register_pickle_by_value(batch_toys)

PATH = tuple(sys.path)


class Unloadable:
    """Pickles as the import of a module that is nowhere."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return importlib.import_module, ("nowhere",)


@pytest.fixture(scope="module")
def blob() -> bytes:
    return pack(payload(Together()))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(
        cluster, "get_worker", lambda: SimpleNamespace(local_directory=str(tmp_path), state=None)
    )
    one = Host()
    yield one
    if one._timer is not None:
        one._timer.cancel()
    one.retire()


def asked(
    place: Host,
    blob: bytes,
    function: Callable[..., Any],
    *arguments: Any,
    name: str = "",
    seconds: float | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> Report:
    name = name or hashlib.sha256(blob).hexdigest()
    request = Request("key", name, PATH, function, arguments, seconds)
    return place.serve(request, blob, wanted=wanted)


def _process_of(place: Host) -> PoolWorker:
    assert place._pool is not None
    [process] = place._pool.processes
    return process


def test_it_greets_and_works_and_keeps_its_process_and_the_payload(
    place: Host, blob: bytes, tmp_path: Path
) -> None:
    greeting = asked(place, blob, greet).answer
    assert isinstance(greeting, Greeting)
    assert greeting_of(payload(Together())).difference(greeting) == ""
    first = _process_of(place)
    report = asked(place, b"", work, tuple(TRIALS[:2]), name=hashlib.sha256(blob).hexdigest())
    assert not isinstance(report.answer, Exception), report.answer
    assert [outcome.trial for outcome in report.answer] == TRIALS[:2]
    assert _process_of(place) is first
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(folder.glob("payload*")) or sys.platform != "linux"
    place.retire()
    assert first.process.poll() is not None
    assert not list(tmp_path.iterdir())


def test_another_payload_has_another_process(place: Host, blob: bytes) -> None:
    asked(place, blob, greet)
    first = _process_of(place)
    asked(place, blob, greet, name="again")
    assert _process_of(place) is not first


def test_a_payload_that_cannot_be_loaded_is_said(place: Host) -> None:
    greeting = asked(place, pack(Unloadable()), greet).answer
    assert greeting.trouble == "ModuleNotFoundError: No module named 'nowhere'"


def test_what_is_late_dead_or_wanted_no_more_is_ended(place: Host, blob: bytes) -> None:
    assert asked(place, blob, _SLEEPS, seconds=1.0).loss is BatchLoss.LATE
    assert asked(place, blob, _SLEEPS, wanted=lambda: False).loss is BatchLoss.STOPPED
    assert asked(place, blob, _DIES).loss is BatchLoss.DIED
    assert asked(place, blob, _LEAVES_A_FORK).loss is BatchLoss.DIED
    assert place._pool is None
    assert asked(place, blob, greet).loss is None


def test_what_it_prints_is_handed_on_once_and_in_part(
    place: Host, blob: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "MOST_PRINTED", 6)
    assert asked(place, blob, _PRINTS).printed == b"e end\n"
    assert asked(place, blob, greet).printed == b""


def test_an_attack_s_error_is_an_answer_and_no_failure_of_the_task(
    place: Host, blob: bytes
) -> None:
    report = asked(place, blob, _FAILS)
    assert isinstance(report.answer, AttackError)
    report = asked(place, blob, _FULL)
    assert isinstance(report.answer, ClusterError)
    assert "No space left" in str(report.answer)


def test_an_idle_process_is_given_up(
    place: Host, blob: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "IDLE_SECONDS", 0.2)
    asked(place, blob, greet)
    deadline = time.monotonic() + 20
    while place._pool is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert place._payload is None


def test_a_task_gives_trouble_of_the_machine_as_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = SimpleNamespace(tasks={"key": SimpleNamespace(state="cancelled")})
    monkeypatch.setattr(
        cluster, "get_worker", lambda: SimpleNamespace(local_directory="/nowhere", state=state)
    )
    monkeypatch.setattr(cluster, "_host", Host())
    report = serve(Request("key", "a", PATH, greet), b"")
    assert isinstance(report.answer, ClusterError)
    assert "a worker cannot run trials: FileNotFoundError" in str(report.answer)
    assert cluster._host._timer is not None
    cluster._host._timer.cancel()


def _loading(what: Callable[[], Any]) -> Callable[[PayloadFile], Any]:
    """A function for a worker, by value, that loads the payload as those of `worker` do."""

    def run(file: PayloadFile) -> Any:
        from dpaudit.game import worker

        with worker._loaded(file):
            return what()

    return _ByValue(run)


class _ByValue:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.blob = cloudpickle.dumps(function)

    def __reduce__(self) -> tuple[Any, ...]:
        return cloudpickle.loads, (self.blob,)

    def __call__(self, *args: Any) -> Any:
        raise NotImplementedError


def _fork() -> None:
    if os.fork() == 0:
        time.sleep(600)  # it holds the other end of the connection
    os.kill(os.getpid(), signal.SIGKILL)


def _prints() -> None:
    os.write(1, b"a beginning and the end\n")


def _fails() -> None:
    raise AttackError("mean failed")


def _full() -> None:
    raise OSError(28, "No space left on device")


cloudpickle.register_pickle_by_value(sys.modules[__name__])
_SLEEPS = _loading(lambda: time.sleep(600))
_DIES = _loading(lambda: os.kill(os.getpid(), signal.SIGKILL))
_LEAVES_A_FORK = _loading(_fork)
_PRINTS = _loading(_prints)
_FAILS = _loading(_fails)
_FULL = _loading(_full)
