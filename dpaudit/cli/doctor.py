"""`dpaudit doctor`: whether this installation can run audits, and whether a worker conforms."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guard, results
from dpaudit.errors import RegistryError, RunFolderError, SettingsError
from dpaudit.formatting import Row, counted, headed, labelled
from dpaudit.model.setting import Option, Panel
from dpaudit.versions import versions


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The worker to check.

    Attributes:
        worker: Worker to check instead of the installation: program and arguments as one string,
            such as '/path/venv/bin/python my.py:Generator'; or LIBRARY:METHOD.
        data: Table that the worker trains on: CSV, Parquet or Excel. Default:
            sample:breast-cancer.
    """

    worker: Annotated[str | None, Option("COMMAND", panel=Panel.INPUT)] = None
    data: Annotated[str | None, Option("FILE", panel=Panel.INPUT)] = None


@guard
@options.reads_tables
@options.takes_settings()
def doctor(
    *,
    asked: WorkerOptions,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    worker_memory: options.WorkerMemory = None,
) -> None:
    """Checks this installation: versions, plugins, workers, disk.

    With --worker it checks that a worker conforms to the protocol dpaudit-worker/1: the exit code
    is 1 if it does not, 2 if it does not start.
    """
    worker, data = asked.worker, asked.data
    if worker is not None:
        _check_worker(worker, data or "sample:breast-cancer", schema, parameter, worker_memory)
        return
    if (data, schema, parameter, worker_memory) != (None, None, None, None):
        raise SettingsError("there is no worker to check: give `worker`")
    output = results()
    findings = list(_findings())
    problems = sum(not good for good, _ in findings)
    headline = "READY  this installation can run audits"
    if problems:
        headline = f"NOT READY  {counted(problems, 'problem')} in {len(findings)} checks"
    rows = [Row("ok" if good else "PROBLEM", text) for good, text in findings]
    output.print("\n".join(headed(headline, rows)))
    if problems:
        raise typer.Exit(ExitCode.USAGE)


def _findings() -> Iterator[tuple[bool, str]]:
    """Whether each thing is as it should be, and what was found of it."""
    extras = _missing_of_extras()
    for name, version in versions().items():
        if name not in extras.values():
            good = version != "not installed"
            yield good, f"{name} {version}" + ("" if good else f": pip install {name}")
    yield sys.version_info >= (3, 11), "Python is 3.11 or newer"
    for extra, package in extras.items():
        install = f"there is no {package}; to add it, in the clone: pip install '.[{extra}]'"
        yield True, f"extra {extra}" + ("" if package is None else f": {install}")
    yield from _plugin_findings()
    yield from _environment_findings()
    yield _store_finding()
    yield _worker_finding()


def _missing_of_extras() -> dict[str, str | None]:
    """The missing package of each extra of dpaudit, except `dev`; None if all are installed."""
    from dpaudit.plugins.registry import missing_package

    of = distribution("dpaudit")
    extras = of.metadata.get_all("Provides-Extra", [])
    return {extra: missing_package(of, extra) for extra in extras if extra != "dev"}


def _plugin_findings() -> Iterator[tuple[bool, str]]:
    from dpaudit.plugins.registry import ATTACKS, GENERATORS, plugins

    for group in (GENERATORS, ATTACKS):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            named = plugins(group)
        yield bool(named), f"{group}: {', '.join(name for name, _ in named)}"
        for warning in caught:
            yield False, str(warning.message)


def _environment_findings() -> Iterator[tuple[bool, str]]:
    """The environments of libraries; a missing one is not a problem."""
    from dpaudit.plugins.named import libraries

    for environment in {of.environment.name: of.environment for of in libraries()}.values():
        named = f"environment {environment.name}"
        try:
            built = environment.built
        except RegistryError as error:
            yield False, f"{named}: {error}"
            continue
        if built is None:
            made = f"dpaudit env create {environment.name}"
            yield True, f"{named} is not there; to make it: {made}"
        elif built.problem:
            again = f"dpaudit env remove {environment.name}, then env create"
            yield False, f"{named}: {built.problem}; run: {again}"
        else:
            yield True, f"{named}: Python {built.python_version}, {built.folder}"


def _store_finding() -> tuple[bool, str]:
    from dpaudit.game.store import RunFolder

    try:
        with tempfile.TemporaryDirectory(prefix="dpaudit-") as folder:
            RunFolder(Path(folder), spec={}, versions={}).close()
    except (RunFolderError, OSError) as error:
        return False, f"run folders cannot be written: {error}"
    return True, f"run folders can be written (SQLite {sqlite3.sqlite_version})"


def _worker_finding() -> tuple[bool, str]:
    import loky

    from dpaudit.game.pool import Pool

    pool = Pool()
    try:
        process = pool.least_busy(1)
        process.ask(pow, 2, 10)
        report = process.report(60)
    except OSError as error:
        return False, f"worker processes do not start: {error}"
    finally:
        pool.end_all()
    if report.answer != 1024:
        return False, "worker processes do not start: the first one ended"
    return True, f"worker processes start ({loky.cpu_count()} core(s))"


def _check_worker(
    worker: str,
    data: str,
    schema: Path | None,
    parameters: list[str] | None,
    worker_memory: float | None,
) -> None:
    """Prints whether a worker conforms to the protocol, clause by clause."""
    from dpaudit.external.generator import WorkerGenerator
    from dpaudit.external.session import PREFIX
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import library_named, named_generator
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.probe.conformance import check_worker

    table = load(data, schema)
    library = library_named(worker.rpartition(":")[0] or worker)
    generator = named_generator(
        worker if library else f"{PREFIX}{worker.removeprefix(PREFIX)}",
        parse_parameters(parameters or []),
        {"schema": table.schema},
        worker_memory=worker_memory,
    ).generator
    assert isinstance(generator, WorkerGenerator)
    output, passed = results(), True
    claim = generator.claim.in_words if generator.claim else "no claim"
    output.print(f"{generator.hello.name}: {claim}; tables as {', '.join(generator.hello.formats)}")
    for finding in check_worker(generator, table):
        passed &= finding.passed
        lines = labelled("ok" if finding.passed else "PROBLEM", finding.name, width=9)
        if finding.detail:
            lines += labelled("", finding.detail, width=9)
        output.print("\n".join(lines))
    if not passed:
        raise typer.Exit(ExitCode.VIOLATION)
