"""Full disks, too few files, flipped bits, deleted and replaced files."""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from bench import Bench, pause
from kinds import KINDS, Kind, NotHereError, kind
from scene import FailureError

STORE = "trials.sqlite"
OPENS = 80
"""An undisturbed run opens, moves or syncs about as many files as this."""


@kind("disk", "the k-th file cannot be opened, moved or synced", weight=6)
def refused_call(bench: Bench, rng: random.Random) -> int:
    """Python's own calls fail, from the k-th on."""
    folder = bench.scene("controls")
    first = rng.randrange(OPENS)

    def prepare() -> None:
        calls = iter(range(10**9))
        for module, name in (
            *((builtins, "open"), (io, "open"), (os, "open")),
            *((os, "replace"), (os, "fsync")),
        ):
            vars(module)[name] = _failing(getattr(module, name), calls, first)

    ended = bench.start(folder, prepare=prepare).wait()
    kept = bench.check(folder, ended, {})
    bench.finish(folder, kept)
    return 1


def _failing(real: Callable[..., Any], calls: Iterator[int], first: int) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        if next(calls) >= first and os.getpid() != _parent:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(given[0]))
        return real(*given, **named)

    return call


_parent = os.getpid()


@kind("disk", "a file grows beyond its limit", weight=6)
def small_files(bench: Bench, rng: random.Random) -> int:
    """Every write beyond a size fails: of the store, its log, the result or the reports."""
    folder = bench.scene(rng.choice(["empty", "controls", "torn"]))
    size = rng.randrange(1, 2 ** rng.randrange(10, 19))
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    ended = bench.start(folder, prepare=limit).wait()
    kept = bench.check(folder, ended, {})
    bench.finish(folder, kept)
    return 1


@contextmanager
def _small_disk(folder: Path, options: str) -> Iterator[None]:
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        raise NotHereError("no small disk can be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def small_disk(bench: Bench, rng: random.Random, *, options: str, least: int, most: int) -> int:
    """The run folder lies on a disk that becomes full; then it is enlarged."""
    folder = bench.scene(rng.choice(["empty", "controls"]))
    run = folder / "run"
    kept_run = shutil.copytree(run, folder / "kept") if run.exists() else None
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir()
    with _small_disk(run, options.format(rng.randrange(least, most))):
        try:
            if kept_run:
                shutil.copytree(kept_run, run, dirs_exist_ok=True)
        except OSError:
            return 0  # not even what is there fits
        ended = bench.start(folder).wait()
        kept = bench.check(folder, ended, {})
        larger = ["mount", "-o", "remount,size=64m,nr_inodes=1000", str(run)]
        subprocess.run(larger, check=True, capture_output=True)
        (run / "result.json").unlink(missing_ok=True)
        bench.check(folder, bench.start(folder).wait(), kept)
    bench.drop(folder)
    return 1


_inject = partial(small_disk, options="size={}k", least=40, most=900)
KINDS.append(Kind("disk", "full", 6, _inject))
_inject = partial(small_disk, options="size=64m,nr_inodes={}", least=2, most=14)
KINDS.append(Kind("disk", "no more files fit", 3, _inject))


@kind("disk", "too few open files", weight=5)
def few_files(bench: Bench, rng: random.Random) -> int:
    """The process may open only so many files."""
    folder = bench.scene(rng.choice(["empty", "controls"]))
    most = rng.randrange(8, 60)
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
    ended = bench.start(folder, prepare=limit).wait()
    kept = bench.check(folder, ended, {})
    bench.finish(folder, kept)
    return 1


def flipped(bench: Bench, rng: random.Random, *, stage: str, file: str) -> int:
    """One bit changes: it is noticed, or it does not matter."""
    folder = bench.scene(stage)
    path = folder / "run" / file
    raw = bytearray(path.read_bytes())
    place = rng.randrange(len(raw))
    raw[place] ^= 1 << rng.randrange(8)
    path.write_bytes(raw)
    (folder / "run" / "result.json").unlink(missing_ok=True)
    bench.refuse_or_finish(folder)
    return 1


for _stage, _file, _weight in (
    ("complete", STORE, 30),
    ("torn", STORE, 8),
    ("torn", f"{STORE}-wal", 12),
    ("complete", "salt", 4),
):
    _name = f"a flipped bit in {_file}, {_stage} run"
    KINDS.append(Kind("files", _name, _weight, partial(flipped, stage=_stage, file=_file)))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _text(path: Path) -> None:
    path.write_text("some other text\n" * 1000)


def _folder(path: Path) -> None:
    _delete(path)
    path.mkdir()


SPOILT = {"deleted": _delete, "emptied": _empty, "cut": _cut, "text": _text, "a folder": _folder}


def spoilt(bench: Bench, rng: random.Random, *, file: str) -> int:
    """A file is another one when the run is resumed: refused or done again, never wrong."""
    folder = bench.scene(rng.choice(["complete", "torn"]))
    path = folder / "run" / file
    if not path.exists():
        _delete(folder)
        return 0
    SPOILT[rng.choice(list(SPOILT))](path)
    if file != "result.json":
        (folder / "run" / "result.json").unlink(missing_ok=True)
    bench.refuse_or_finish(folder)
    return 1


for _file, _weight in (
    *((STORE, 12), (f"{STORE}-wal", 8), ("lock", 4), ("salt", 5)),
    *(("workers.log", 4), ("result.json", 4), ("report.html", 2)),
):
    KINDS.append(
        Kind("files", f"{_file} spoilt between runs", _weight, partial(spoilt, file=_file))
    )


def during(bench: Bench, rng: random.Random, *, file: str, replaced: bool) -> int:
    """A file or the folder goes while the run uses it."""
    folder = bench.scene("controls")
    (folder / "slow").write_text("0.02")
    running = bench.start(folder)
    pause(bench, rng, most=0.5)
    path = folder / "run" / file
    there = path.exists() and not running.ended()
    if there:
        _delete(path)
        if replaced and file:
            shutil.copy(bench.home / "complete" / "run" / file, path)
        elif replaced:
            shutil.copytree(bench.home / "complete" / "run", path)
    ended = running.wait()
    if not ended.code:
        bench.check(folder, ended, {})
    elif ended.code != 2:
        raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    else:
        bench.refused(folder, ended)
    bench.drop(folder)
    return int(there)


for _file, _replaced in (
    *((STORE, False), (STORE, True), (f"{STORE}-wal", False), ("lock", False)),
    *(("salt", False), ("workers.log", False), ("", False), ("", True)),
):
    _verb = "replaced" if _replaced else "deleted"
    _inject = partial(during, file=_file, replaced=_replaced)
    KINDS.append(Kind("files", f"{_file or 'run folder'} {_verb} during a run", 2, _inject))
