"""Replays the newest release of each library and bug, and says where its verdict is another one.

Usage: python -m reports.replay.newest [NAME ...] --data DIR [--out FILE]

NAME is a library, a method of one, or a bug; all by default. A release that is pinned, and so in
the committed results, is not replayed again. FILE has a table of the changes, and nothing if there
are none: the workflow `releases.yml` makes an issue of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpaudit.bugs.bug import Bug, Status, known_bugs
from dpaudit.bugs.run import BugOutcome, BugRun, library_of, replay_side
from dpaudit.errors import DpauditError, RegistryError
from dpaudit.external.environments import (
    Environment,
    clean_environment,
    create_environment,
    find_interpreter,
    pip_reason,
)
from dpaudit.external.generator import Library
from dpaudit.formatting import error_text
from dpaudit.plugins.named import library_named
from reports import markdown
from reports.command import DATA_VARIABLE, start, write_text
from reports.replay.released import SETTINGS, Setting, released_case

HERE: Final = Path(__file__).parent
BUGS: Final = HERE.parent / "bugs" / "results"
HEADS: Final = ("what", "release", "verdict", "new release", "new verdict", "why")


class Change(NamedTuple):
    """A verdict that the newest release does not have any more.

    Attributes:
        name: The method and how it is set, or the bug.
        release: The pinned release.
        verdict: Its verdict.
        newest: The newest release.
        found: Its verdict, or that it could not be replayed.
        why: Why.
    """

    name: str
    release: str
    verdict: str
    newest: str
    found: str
    why: str


def main(given: Sequence[str] | None = None) -> None:
    """Replays what is newer than the committed results, and writes the table of changes."""
    parser = argparse.ArgumentParser(prog="python -m reports.replay.newest")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, default=Path("changes.md"))
    asked = parser.parse_args(given)
    found = [*of_methods(asked.names, asked.data), *of_bugs(asked.names)]
    write_text(asked.out, markdown.table(HEADS, found) + "\n" if found else "")
    print(f"{len(found)} verdicts have changed; {asked.out}", file=sys.stderr)


def of_methods(names: Sequence[str], data: Path | None) -> Iterator[Change]:
    """The methods of libraries whose verdict has changed."""
    cases = json.loads((HERE / "results" / "released.json").read_text())["cases"]
    before = {one["method"]: verdict_of(one) for one in cases}
    for setting in SETTINGS:
        name = setting.method.partition(":")[0]
        if names and not {name, setting.method} & set(names):
            continue
        library = library_named(name)
        if library is None or str(setting) not in before:
            continue
        newest = newest_of(library)
        if newest is not None:
            yield from _changed(setting, before[str(setting)], library, newest, data)


def _changed(
    setting: Setting, before: str, library: Library, newest: str, data: Path | None
) -> Iterator[Change]:
    try:
        create_environment(library.with_release(newest).environment, on_step=say)
        say(f"{setting}: replaying {newest}")
        made = released_case(setting, data, release=newest)
    except DpauditError as error:
        made = {"error": error_text(error)}
    found = verdict_of(made)
    if found != before:
        why = made["error"] if "error" in made else made["result"]["reasons"][0]
        yield Change(str(setting), pinned_release(library), before, newest, found, why)


def of_bugs(names: Sequence[str]) -> Iterator[Change]:
    """The bugs that are no longer proved, or proved again."""
    for bug in known_bugs().values():
        if bug.status is Status.PROVED and (not names or bug.id in names):
            yield from _changed_bug(bug)


def _changed_bug(bug: Bug) -> Iterator[Change]:
    case = bug.case
    assert case is not None
    library = library_of(bug, case, case.broken)
    newest = newest_of(library)
    if newest is None:
        return
    before = BugOutcome.load(BUGS / f"{bug.id}.json").broken.replay
    side = replace(case.broken, environment=library.with_release(newest).environment)
    try:
        create_environment(side.environment, on_step=say)
        replay = replay_side(bug, case, side, BugRun(BUGS, on_step=say))[0].replay
        found, why = replay.verdict or "not replayed", replay.reasons[0]
    except DpauditError as error:
        found, why = "not replayed", error_text(error)
    said = before.verdict or "not replayed"
    if found != said:
        yield Change(bug.id, pinned_release(library), said, newest, found, why)


def newest_of(library: Library) -> str | None:
    """The newest release of a library's package; None if that is the pinned one, or unknown."""
    pinned = pinned_release(library)
    try:
        newest = newest_release(library.environment, library.distribution)
    except DpauditError as error:
        say(f"{library.name}: {error_text(error)}")
        return None
    return None if newest == pinned else newest


def newest_release(environment: Environment, package: str) -> str:
    """The newest release of a package on the index, for the Python of an environment.

    Raises:
        RegistryError: If no interpreter fits, or pip fails; the message says why.
    """
    interpreter = find_interpreter(environment.name, environment.pythons)
    with tempfile.TemporaryDirectory(prefix="dpaudit-pip-") as folder:
        python_there = Path(folder) / "bin" / "python"
        run_pip(package, interpreter, "-I", "-m", "venv", folder)
        listing = run_pip(package, python_there, "-I", "-m", "pip", "index", "versions", package)
    match = re.search(r"^Available versions: (.+)$", listing, re.MULTILINE)
    if match is None:
        raise RegistryError(f"pip does not say which releases of {package} there are: {listing!r}")
    return match[1].split(", ")[0]


def run_pip(package: str, *command: str | Path) -> str:
    """The output of a command of pip about the releases of a package."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, env=clean_environment()
    )
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        reason = pip_reason(output + done.stderr.decode("utf-8", "replace"))
        raise RegistryError(f"the releases of {package} cannot be listed: {reason}")
    return output


def pinned_release(library: Library) -> str:
    """The release of a library's package that its environment has."""
    pins = dict(one.lower().split("==") for one in library.environment.requirements)
    return pins[library.distribution.lower()]


def verdict_of(one: dict[str, Any]) -> str:
    """The verdict of a case, as results have it."""
    return "not replayed" if "error" in one else str(one["result"]["verdict"])


def say(text: str) -> None:
    """Says what is done, on standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    start(main)
