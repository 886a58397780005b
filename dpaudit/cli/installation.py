"""`dpaudit list` and `dpaudit doctor`: what is registered, and whether this installation works."""

from __future__ import annotations

import inspect
import re
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guard, messages, results
from dpaudit.errors import RegistryError, RunFolderError, SettingsError, TrialError
from dpaudit.formatting import (
    Row,
    aligned,
    counted,
    did_you_mean,
    headed,
    labelled,
    one_line,
    wrapped,
)
from dpaudit.model.choices import Access, WorstCase
from dpaudit.model.setting import Option, Panel
from dpaudit.versions import versions

if TYPE_CHECKING:
    import pandas as pd

    from dpaudit.external.generator import Library, WorkerGenerator
    from dpaudit.external.session import WorkerSession

T = TypeVar("T")
_ROWS: Final = 20
"""Number of rows requested of a worker."""
_END_SECONDS: Final = 10.0
"""Seconds for a worker to end after its standard input ends."""
_SEED, _OTHER = 11, 12


class Group(StrEnum):
    """What can be listed."""

    GENERATORS = "generators"
    ATTACKS = "attacks"
    BOUNDS = "bounds"
    WORST_CASES = "worst-cases"
    LIBRARIES = "libraries"


@guard
def list_registered(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND|NAME",
            help="Kind to list: generators, attacks, bounds, worst-cases, libraries. Or the "
            "generator, attack, bound or LIBRARY:METHOD to describe with its parameters. Default: "
            "all kinds.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Lists generators, attacks, bounds, worst cases and libraries, or describes one of them."""
    if name is None:
        for group in Group:
            results().print(f"{group}:")
            _list_group(group)
    elif name in tuple(Group):
        _list_group(Group(name))
    else:
        _describe(name)


def _list_group(group: Group) -> None:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import libraries
    from dpaudit.plugins.registry import ATTACKS, GENERATORS

    output = results()
    if group is Group.LIBRARIES:
        for of in libraries():
            names = ", ".join(f"{of.name}:{method}" for method in of.methods)
            output.print("\n".join(wrapped(of.account, first="  ", rest="  ")))
            output.print("\n".join(wrapped(names, first="    ", rest="    ")))
        return
    if group is Group.BOUNDS:
        entries = {entry.key.value: entry.account for entry in BOUNDS}
    elif group is Group.WORST_CASES:
        entries = {case.value: case.meaning for case in WorstCase}
    elif group is Group.ATTACKS:
        entries = _registered(ATTACKS, _attack)
    else:
        entries = _registered(GENERATORS, _summary)
    width = max(map(len, entries), default=0) + 4
    for name, account in entries.items():
        for line in labelled(f"  {name}", account, width=width):
            output.print(line)


def _registered(group: str, account: Callable[[object], str]) -> dict[str, str]:
    """The account of each plugin of a group, and what must be installed before it can be used."""
    from dpaudit.plugins.registry import missing_extra, plugins

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        named = plugins(group)
    for warning in caught:
        messages().print(f"warning: {warning.message}")
    entries = {name: account(value) for name, value in named.items()}
    for name in entries:
        missing = missing_extra(name, group)
        if missing is not None:
            entries[name] += f" (run: {missing.command})"
    return entries


def _attack(value: object) -> str:
    """What an attack does, and the access that it needs beyond synthetic rows."""
    from dpaudit.plugins.access import access_of

    needed = access_of(value)
    needs = "" if needed is Access.OUTPUT else f" Needs --access {needed}."
    return f"{_summary(value)}{needs}"


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "(no description)").splitlines()[0]


def _describe(name: str) -> None:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.named import library_named
    from dpaudit.plugins.registry import ATTACKS, GENERATORS, names

    place, colon, method = name.rpartition(":")
    library = library_named(place if colon else name)
    if library is not None and (colon or name not in names(GENERATORS)):
        _show_method(library, method if colon else "")
        return
    output = results()
    bound = next((entry for entry in BOUNDS if name == entry.key.value), None)
    if bound is not None:
        rows = [Row("label", bound.label), Row("kind", bound.account)]
        output.print("\n".join(headed(name, rows)))
        return
    value = _find(name)
    output.print(f"{name}\n")
    described, _, _ = (inspect.getdoc(value) or "(no description)").partition("\n\nRaises:\n")
    output.print("\n".join(_reflow(described)))
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()  # type: ignore[arg-type]  # a class or function
        if parameter.name not in ("schema", "target", "self")
    ]
    no_default = inspect.Parameter.empty
    is_attack = name in names(ATTACKS) and name not in names(GENERATORS)
    _show_parameters(
        {p.name: None if p.default is no_default else str(p.default) for p in parameters},
        given="from Python" if is_attack else "-p NAME=VALUE",
    )


def _show_method(library: Library, method: str) -> None:
    from dpaudit.external.generator import adapter_account

    library.check_method(method)
    account = adapter_account(library.adapter, library.methods[method])
    rows = [Row("method", account.summary or "(no description)"), Row("library", library.account)]
    results().print("\n".join(headed(f"{library.name}:{method}", rows)))
    _show_parameters(account.parameters)


def _show_parameters(defaults: Mapping[str, str | None], *, given: str = "-p NAME=VALUE") -> None:
    rows = [(f"parameter ({given})", "default")]
    rows += [(name, "required" if of is None else of) for name, of in defaults.items()]
    results().print("\n".join(["", *(aligned(rows) if defaults else ["takes no parameters"])]))


def _reflow(docstring: str) -> list[str]:
    """A docstring in lines of a terminal: source is wider. Entries of a section keep their own."""
    lines, block = list[str](), list[str]()
    for line in [*docstring.splitlines(), ""]:
        indent = len(line) - len(line.lstrip())
        first = len(block[0]) - len(block[0].lstrip()) if block else 0
        heads = len(block) == 1 and re.fullmatch(r"\w+:", block[0]) is not None
        goes_on = block and line and (indent > first or not indent) and not heads
        if not goes_on:
            if block:
                lines += wrapped(one_line(" ".join(block)), first=" " * first, rest=" " * 2 * first)
            block = []
            if not line:
                lines.append("")
        if line:
            block.append(line)
    return lines[:-1]


def _find(name: str) -> object:
    from dpaudit.bounds.table import BOUNDS
    from dpaudit.plugins.registry import ATTACKS, GENERATORS, LIBRARIES, names, resolve

    if ":" in name:
        return resolve(name, GENERATORS)
    for group in (GENERATORS, ATTACKS):
        if name in names(group):
            return resolve(name, group)
    bounds = [entry.key.value for entry in BOUNDS]
    known = [*names(GENERATORS), *names(ATTACKS), *names(LIBRARIES), *bounds, *map(str, Group)]
    raise RegistryError(
        f"unknown name {name!r}{did_you_mean(name, known)}: `dpaudit list` lists all names"
    )


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
        yield bool(named), f"{group}: {', '.join(named)}"
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
    for name, problem in _requirements(generator, table.data):
        passed &= not problem
        lines = labelled("PROBLEM" if problem else "ok", name, width=9)
        lines += labelled("", problem, width=9) if problem else []
        output.print("\n".join(lines))
    if not passed:
        raise typer.Exit(ExitCode.VIOLATION)


def _requirements(generator: WorkerGenerator, data: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Each requirement of the protocol, and what the worker did instead; empty if it conforms.

    Each check starts after a successful answer.
    """
    from dpaudit.external.session import short_session

    with short_session(generator.start) as session:
        for name, check in (
            ("it synthesizes the rows that are asked for", _synthesizes),
            ("the same seed gives the same table, another table in between", _repeats),
            ("another seed gives another table", _varies),
            ("a request it does not know is answered with an error", _unknown),
            ("a table that is not there is answered with an error", _absent),
            ("it serves as before after errors", _synthesizes),
        ):
            yield name, _problem(check, session, data)
    yield "a fresh process gives the same table", _problem(_fresh, generator, data)
    with short_session(generator.start) as session:
        ended = session.ends_with_its_input(seconds=_END_SECONDS)
        late = f"it still ran after {_END_SECONDS:g} s"
        yield "it ends when its standard input does", "" if ended else late


def _problem(check: Callable[[T, pd.DataFrame], str], subject: T, data: pd.DataFrame) -> str:
    try:
        return check(subject, data)
    except TrialError as error:
        return str(error)


def _table(session: WorkerSession, data: pd.DataFrame, seed: int) -> pd.DataFrame:
    from dpaudit.plugins.release import accept

    given = session.synthesize(data, rows=_ROWS, seed=seed)
    return accept(given, session.start.schema, _ROWS)


def _synthesizes(session: WorkerSession, data: pd.DataFrame) -> str:
    _table(session, data, _SEED)
    return ""


def _repeats(session: WorkerSession, data: pd.DataFrame) -> str:
    first = _table(session, data, _SEED)
    _table(session, data.iloc[1:].reset_index(drop=True), _OTHER)
    if not session.hello.seedable or first.equals(_table(session, data, _SEED)):
        return ""
    return "the tables differ: something of a training stays behind, or it draws noise of its own"


def _varies(session: WorkerSession, data: pd.DataFrame) -> str:
    if _table(session, data, _SEED).equals(_table(session, data, _OTHER)):
        return "the tables are equal: the seed is not used"
    return ""


def _unknown(session: WorkerSession, data: pd.DataFrame) -> str:
    del data
    return _refused(session, {"op": "sing", "id": -1})


def _absent(session: WorkerSession, data: pd.DataFrame) -> str:
    del data
    return _refused(session, session.request(rows=_ROWS, seed=_SEED))  # its table is not written


def _refused(session: WorkerSession, request: dict[str, Any]) -> str:
    answer = session.ask(request, seconds=_END_SECONDS)
    if "error" not in answer:
        return f"it answered with {', '.join(sorted(answer))} instead of an error"
    return "" if answer.get("id") == request["id"] else "its answer lacks the request's id"


def _fresh(generator: WorkerGenerator, data: pd.DataFrame) -> str:
    from dpaudit.external.session import short_session

    with short_session(generator.start) as used:
        _table(used, data, _OTHER)
        after = _table(used, data, _SEED)
    with short_session(generator.start) as fresh:
        if not fresh.hello.seedable or after.equals(_table(fresh, data, _SEED)):
            return ""
    return "the tables differ: something of an earlier training stays behind"
