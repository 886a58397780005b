"""What every test file shares: reference values, tables, and which tests may be skipped."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# Tests run side by side and so need no more threads: torch reads this when it is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Nor do audits need more workers than they ask for: each costs more to start than it trains.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# Where no bytecode is to be written next to sources, it goes to a folder of pytest's: the programs
# that tests start would otherwise compile the same modules each time.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    folder = Path(__file__).parents[1] / ".pytest_cache" / "bytecode"
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(folder))

import hypothesis
import pytest

# The same examples in every run, however slow the machine: a failure is the code's, not chance's.
# To search for new ones: HYPOTHESIS_PROFILE=explore pytest
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# A shell's background jobs ignore Ctrl-C, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same of a closed terminal under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

if TYPE_CHECKING:
    from dpaudit.results.record import AuditRecord
    from nursery import Nursery
    from program import Program
    from shared_worlds import KeptWorlds

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

DECLARED_SKIPS = ("needs /proc", "needs mkdocs")
"""Reasons for which a test may be skipped; any other makes it fail."""


def _without_undeclared_skips(report: Report) -> Report:
    """A skip for another than a declared reason becomes a failure.

    A test that silently stops running protects nothing, so it is better to hear of it.
    """
    if report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return report
    assert isinstance(report.longrepr, tuple)
    path, line, message = report.longrepr
    reason = message.removeprefix("Skipped: ")
    if reason not in DECLARED_SKIPS:
        report.outcome = "failed"
        report.longrepr = (
            f"{path}:{line}: skipped without being declared in tests/conftest.py: {reason}"
        )
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _without_undeclared_skips((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _without_undeclared_skips((yield))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: no search for garbage need look at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages and projects come first: the longest tests, at whose end all cores should be busy."""
    items.sort(key=lambda item: item.path.parent != HERE)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """One search for garbage at the end, and not the five of pytest: each takes a second."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Single files and tests run in this process: that is sooner done than starting workers.

    Else one more than there are cores: while a test waits, for a time limit or for a process to
    end, another computes.
    """
    if any(Path(argument.partition("::")[0]).is_dir() for argument in config.args):
        return (os.cpu_count() or 1) + 1
    config.option.dist = "no"
    return 0


def _vectors(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "vectors" / name).read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """The process that workers are forks of."""
    from nursery import Nursery

    with Nursery() as nursery:
        yield nursery


@pytest.fixture(scope="session", autouse=True)
def one_pool(nursery: Nursery) -> Iterator[None]:
    """Audits of one test process share their workers: starting them costs more than most audits."""
    from dpaudit.game.pool import workers_ended

    with workers_ended():
        yield


@pytest.fixture(scope="session", autouse=True)
def no_power_cuts() -> Iterator[None]:
    """Run folders of this process need not outlive the machine: each trial waits for the disk."""
    from dpaudit.game import store

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="session", autouse=True)
def one_look() -> Iterator[None]:
    """What is installed, and what this repository's code imports, is looked up once."""
    from remembered import looked_up_once

    with looked_up_once():
        yield


@pytest.fixture(autouse=True)
def cheap_workers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, nursery: Nursery
) -> Iterator[None]:
    """Workers are forks, and replays share them, but in tests marked `new_workers`."""
    from dpaudit.game.pool import LocalEngine, kill_workers
    from nursery import fork_workers, start_workers

    if "new_workers" in request.keywords:
        kill_workers()
    else:
        monkeypatch.setattr(LocalEngine, "renewed", lambda engine, trials: engine)
        if sys.platform == "linux":
            fork_workers(lambda: nursery.address)
    yield
    start_workers()


@pytest.fixture(scope="session")
def kept_worlds() -> Iterator[KeptWorlds]:
    """The processes of `worlds`."""
    from shared_worlds import KeptWorlds

    with KeptWorlds() as kept:
        yield kept


@pytest.fixture(scope="module")
def worlds(kept_worlds: KeptWorlds) -> Iterator[None]:
    """Replays of a file share the processes of both worlds: starting those takes the longest."""
    from shared_worlds import shared_worlds

    with shared_worlds(kept_worlds):
        yield


@pytest.fixture(scope="session")
def program(nursery: Nursery) -> Iterator[Program]:
    """`dpaudit` in processes of their own that start quickly."""
    from program import forked_programs

    with forked_programs(nursery) as program:
        yield program


@pytest.fixture(scope="session")
def accounting_vectors() -> dict[str, Any]:
    """Reference values of privacy accounting; `vectors/README.md` names their sources."""
    return _vectors("accounting.json")


@pytest.fixture(scope="session")
def estimator_vectors() -> dict[str, Any]:
    """Reference values of bounds and estimates of epsilon."""
    return _vectors("estimators.json")


@pytest.fixture(scope="session")
def published_audits() -> dict[str, Any]:
    """Published results of audits of six PATE-GANs."""
    return _vectors("published_audits.json")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of small real tables; its README names their sources."""
    return HERE / "data"


@pytest.fixture
def proc() -> Path:
    """Linux's folder of running processes; a declared skip where there is none."""
    folder = Path("/proc")
    if not (folder / "self" / "stat").exists():
        pytest.skip("needs /proc")
    return folder


@pytest.fixture
def example() -> dict[str, Any]:
    """The document of an invented violation with every part that a two-world audit may have.

    Keys that came later and may be null are null, as in any result of before.
    """
    from dpaudit.results.document import from_document
    from dpaudit.results.record import AuditRecord

    found = json.loads((HERE / "results" / "example.json").read_text("utf-8"))
    record: AuditRecord = from_document(AuditRecord, found)
    document: dict[str, Any] = record.to_document()
    return document


@pytest.fixture
def record_of(example: dict[str, Any]) -> Callable[..., AuditRecord]:
    """Makes the record of the example with other values of some keys.

    Of claim, data and controls only the parts that are given change, unless it is None.
    """
    from dpaudit.results.document import from_document
    from dpaudit.results.record import AuditRecord

    def make(**changes: Any) -> AuditRecord:
        for key in {"claim", "data", "controls"} & set(changes):
            if changes[key] is not None:
                changes[key] = {**example[key], **changes[key]}
        record: AuditRecord = from_document(AuditRecord, {**example, **changes})
        return record

    return make


@pytest.fixture
def invented_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets commands read results whose bounds do not follow from their scores, as the example's."""
    from dpaudit.evidence import pack
    from dpaudit.results.result import AuditResult

    monkeypatch.setattr(pack, "load", AuditResult.load)


@pytest.fixture
def never_run(record_of: Callable[..., AuditRecord], example: dict[str, Any]) -> AuditRecord:
    """The record of an audit whose null control failed, so that nothing else was trained."""
    missing = ("proved", "bounds", "counts", "auc", "attack", "threshold")
    missing = (*missing, "detectable_epsilon", "max_provable_epsilon")
    return record_of(
        verdict="invalid",
        reasons=["the null control failed"],
        **dict.fromkeys(missing),
        attacks=[],
        leaks=[],
        checks=[],
        scores={"in": [], "out": []},
        shadow_models={"in": 0, "out": 0},
        failures={"in": 0, "out": 0},
        failure_reasons=[],
        controls={"null": {**example["controls"]["null"], "passed": False}},
    )
