"""`dpaudit doctor`: whether this installation can run audits."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import typer

from dpaudit.cli.console import ExitCode, guarded, results
from dpaudit.errors import RegistryError, RunFolderError
from dpaudit.formatting import Row, counted, headed
from dpaudit.versions import versions


@guarded
def doctor() -> None:
    """Checks this installation: versions, plugins, workers, disk."""
    output = results()
    findings = list(_findings())
    problems = sum(not good for good, _ in findings)
    found = "READY  this installation can run audits"
    if problems:
        found = f"NOT READY  {counted(problems, 'problem')} in {len(findings)} checks"
    rows = [Row("ok" if good else "PROBLEM", text) for good, text in findings]
    output.print("\n".join(headed(found, rows)))
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
        install = f"there is no {package}; to add it: pip install 'dpaudit[{extra}]'"
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
            found = plugins(group)
        yield bool(found), f"{group}: {', '.join(name for name, _ in found)}"
        for warning in caught:
            yield False, str(warning.message)


def _environment_findings() -> Iterator[tuple[bool, str]]:
    """The environments of libraries; one that is not there is no problem."""
    from dpaudit.plugins.named import libraries

    for environment in {one.environment.name: one.environment for one in libraries()}.values():
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
