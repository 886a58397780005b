"""Two coordinators, changed inputs, and an output that nobody reads."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import COMMAND, Bench, pause
from kinds import KINDS, Kind, kind
from scene import FailureError


@kind("two coordinators", "in one folder", weight=6)
def two(bench: Bench, rng: random.Random) -> int:
    """The second is refused; the first does not notice."""
    folder = bench.scene("controls")
    (folder / "slow").write_text("0.05")
    first = bench.start(folder)
    first.until((folder / "run" / "lock").exists)
    pause(bench, rng, most=0.3)
    second = bench.start(folder, log="second-")
    ended = second.wait()
    overlap = not first.ended()
    bench.check(folder, first.wait(), {})
    if overlap and (ended.code != 2 or "another process is using" not in ended.err):
        raise FailureError(f"two ran at once: exit code {ended.code}: {ended.err[-300:]}")
    bench.drop(folder)
    return int(overlap)


@kind("two coordinators", "the lock is deleted before the second", weight=4)
def two_locks(bench: Bench, rng: random.Random) -> int:
    """Whatever both do, what is finished stays right."""
    folder = bench.scene("controls")
    (folder / "slow").write_text("0.05")
    first = bench.start(folder)
    first.until((folder / "run" / "lock").exists)
    pause(bench, rng, most=0.3)
    (folder / "run" / "lock").unlink()
    second = bench.start(folder, log="second-")
    for ended in (second.wait(), first.wait()):
        if ended.code not in (0, 2):
            raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    bench.finish(folder, {})
    return 1


def _more_rows(folder: Path) -> None:
    with (folder / "tiny.csv").open("a") as file:
        file.write("50,1\n")


def _other_value(folder: Path) -> None:
    table = (folder / "tiny.csv").read_text()
    (folder / "tiny.csv").write_text(table.replace("50,", "51,"))


def _other_columns(folder: Path) -> None:
    table = (folder / "tiny.csv").read_text()
    (folder / "tiny.csv").write_text(table.replace("a,b", "a,c"))


def _other_code(folder: Path) -> None:
    source = (folder / "g.py").read_text()
    (folder / "g.py").write_text(source.replace("randint", "randint") + "\nCHANGED = True\n")


CHANGES: dict[str, Callable[[Path], None]] = {
    "a row more": _more_rows,
    "another value": _other_value,
    "another column": _other_columns,
    "other code": _other_code,
}


def changed(bench: Bench, rng: random.Random, *, change: str) -> int:
    """The folder belongs to another audit: refused, and resumed once the change is undone."""
    folder = bench.scene(rng.choice(["complete", "controls", "torn"]))
    file = "g.py" if change == "other code" else "tiny.csv"
    shutil.copy(folder / file, folder / "original")
    CHANGES[change](folder)
    bench.refused(folder, bench.start(folder).wait())
    shutil.move(folder / "original", folder / file)
    bench.finish(folder, {})
    return 1


SETTINGS = {
    "epsilon": ("--epsilon", "2"),
    "shadow models": ("--shadow-models", "24"),
    "seed": ("--seed", "1"),
    "target": ("--target", "row:9"),
    "rows": ("--set", "rows=5"),
}


def other_settings(bench: Bench, rng: random.Random, *, setting: str) -> int:
    """As with changed inputs."""
    folder = bench.scene(rng.choice(["complete", "controls", "torn"]))
    bench.refused(folder, bench.start(folder, *SETTINGS[setting]).wait())
    bench.finish(folder, {})
    return 1


for _change in CHANGES:
    KINDS.append(Kind("changed", _change, 3, partial(changed, change=_change)))
for _setting in SETTINGS:
    KINDS.append(
        Kind("changed", f"setting: {_setting}", 3, partial(other_settings, setting=_setting))
    )


def _full() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _gone() -> None:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 1)


def _closed() -> None:
    os.close(1)
    sys.stdout = None


def _no_errors() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)


def _neither() -> None:
    _closed()
    os.close(2)
    sys.stderr = None


OUTPUTS = {
    "full standard output": _full,
    "reader of standard output gone": _gone,
    "closed standard output": _closed,
    "full standard error": _no_errors,
    "both closed": _neither,
}


def output(bench: Bench, rng: random.Random, *, prepare: Callable[[], None]) -> int:
    """The exit code is that of what was found all the same."""
    folder = bench.scene(rng.choice(["complete", "controls"]))
    (folder / "run" / "result.json").unlink(missing_ok=True)
    words = tuple("violation" if word == "never" else word for word in COMMAND)
    more = ("--json",) if rng.random() < 0.5 else ()
    ended = bench.start(folder, *more, prepare=prepare, words=words).wait()
    if ended.code:
        raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    bench.check(folder, ended, {})
    bench.drop(folder)
    return 1


for _name, _prepare in OUTPUTS.items():
    KINDS.append(Kind("output", _name, 4, partial(output, prepare=_prepare)))
