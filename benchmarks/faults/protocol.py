"""Generators in a process of their own that break the worker protocol once or twice.

An audit of such a generator must go on to its end: what was asked while the fault happened has
failed, for a reason that names it, and every other trial is what it is without the fault.
"""

from __future__ import annotations

import copy
import random
import re
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from bench import COMMAND, Bench
from kinds import KINDS, Kind
from scene import ORPHAN_SECONDS, FailureError, finished

from dpaudit.game.store import STORE_FILE

TIMES = 2
"""How often one run is hit."""
LIMIT_SECONDS = 5
FAULTS = {
    "prints": "no JSON object",
    "answers-twice": "before it was asked|answered request . instead of",
    "answers-another": "answered request 0 instead of",
    "is-late": f"timed out after {LIMIT_SECONDS} s",
    "hangs": f"timed out after {LIMIT_SECONDS} s",
    "takes-10-GB": "MemoryError",
    "dies": "was ended by signal 9",
    "exits": "exit code 3",
    "closes-its-output": "closed its standard output",
    "endless-answer": "over 1048576 bytes",
    "endless-errors": "exit code 1",
    "leaves-a-child": "exit code 1",
    "writes-outside": "wrote no output",
    "answers-a-link": "cannot be read",
    "answers-a-hard-link": "no plain file",
    "answers-a-pipe": "no plain file",
    "answers-a-folder": "no plain file",
    "wrong-columns": "column",
    "too-few-rows": "rows instead of",
    "no-text": "not a CSV table",
}
"""What a worker does, and what the reason of the failed trial says."""
SLOW = ("is-late", "hangs")
OUTSIDE = '''
import os, sys
from dpaudit.external.generator import WorkerGenerator


class Outside:
    """The worker in this folder, with a limit of memory."""

    def __init__(self, *, schema):
        here = os.getcwd()
        command = f"{sys.executable} -I -S {here}/w.py {here}"
        self.worker = WorkerGenerator(command=command, schema=schema, memory=2**31)

    def fit(self, data, *, seed):
        return self.worker.fit(data, seed=seed)
'''
WORKER = """
import json, os, random, subprocess, sys, time

HERE = sys.argv[1]


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\\n")
    sys.stdout.flush()


def asked():
    try:
        with open(f"{HERE}/how") as file:
            how = file.read().split()
    except OSError:
        return ""
    for number, what in enumerate(how):
        try:
            os.close(os.open(f"{HERE}/once-{number}", os.O_CREAT | os.O_EXCL))
        except OSError:
            continue
        return what
    return ""


def written(request, output, head="a,b"):
    rng = random.Random(request["seed"])
    with open(output, "w") as file:
        file.write(head + "\\n")
        for _ in range(request["rows"]):
            file.write(f"{rng.randrange(101)},{rng.randrange(-3, 4)}\\n")


def forever(write):
    while True:
        write("x" * 2**16)


def errors():
    for _ in range(200):
        sys.stderr.write("e" * 2**16)
    sys.exit(1)


for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "hello":
        say({"protocol": "dpaudit-worker/1", "name": "outside"})
        continue
    how, output = asked(), request["output"]
    done = {"id": request["id"], "done": True}
    if how == "prints":
        sys.stdout.write("epoch 1 of 2\\n")
    elif how == "answers-twice":
        written(request, output)
        say(done)
    elif how == "answers-another":
        done["id"] = 0
    elif how == "is-late":
        time.sleep(600)
    elif how == "hangs":
        os.kill(os.getpid(), 19)
    elif how == "takes-10-GB":
        try:
            bytearray(10 * 2**30)
        except MemoryError:
            say({"id": request["id"], "error": "MemoryError", "message": ""})
            continue
    elif how == "dies":
        os.kill(os.getpid(), 9)
    elif how == "exits":
        sys.exit(3)
    elif how == "closes-its-output":
        os.close(1)
        time.sleep(600)
    elif how == "endless-answer":
        forever(sys.stdout.write)
    elif how == "endless-errors":
        errors()
    elif how == "leaves-a-child":
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep(600)  # {HERE}"])
        sys.exit(1)
    if how == "writes-outside":
        written(request, f"{HERE}/outside.csv")
    elif how == "answers-a-link":
        written(request, f"{HERE}/outside.csv")
        os.symlink(f"{HERE}/outside.csv", output)
    elif how == "answers-a-hard-link":
        written(request, "other")
        os.link("other", output)
    elif how == "answers-a-pipe":
        os.mkfifo(output)
    elif how == "answers-a-folder":
        os.mkdir(output)
    elif how == "wrong-columns":
        written(request, output, head="a,c")
    elif how == "too-few-rows":
        written(dict(request, rows=request["rows"] - 1), output)
    elif how == "no-text":
        with open(output, "wb") as file:
            file.write(b"a,b\\n1,\\xff\\xfe\\n")
    else:
        written(request, output)
    say(done)
"""

_undisturbed: dict[Path, Bench] = {}
"""The bench of these audits, by the home of the one of all others."""


def survived(bench: Bench, rng: random.Random, *, how: str) -> int:
    """The run goes on to its end; what was asked when the fault happened has failed."""
    del rng
    if bench.home not in _undisturbed:
        _undisturbed[bench.home] = _without_fault(bench)
    own = _undisturbed[bench.home]
    folder = _scene(own)
    (folder / "how").write_text(f"{how}\n" * TIMES)
    limit = ("--set", f"trial-timeout={LIMIT_SECONDS}") if how in SLOW else ()
    ended = own.start(folder, *limit, words=_command()).wait()
    if ended.code:
        raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    _nothing_left(folder)
    own.check(folder, ended, {}, missing=TIMES)
    reasons = _reasons(folder)
    if not reasons or not all(re.search(FAULTS[how], one) for one in reasons):
        raise FailureError(f"reasons are {reasons}")
    own.drop(folder)
    return TIMES


def _command() -> tuple[str, ...]:
    return tuple("g.py:Outside" if word == "g.py:G" else word for word in COMMAND)


def _scene(bench: Bench) -> Path:
    folder = bench.scene()
    with (folder / "g.py").open("a") as file:
        file.write(OUTSIDE)
    (folder / "w.py").write_text(WORKER)
    return folder


def _without_fault(bench: Bench) -> Bench:
    own = copy.copy(bench)
    folder = _scene(own)
    ended = own.start(folder, words=_command()).wait()
    if ended.code:
        raise FailureError(f"the undisturbed run exits with {ended.code}: {ended.err[-300:]}")
    own.baseline = finished(folder / "run")
    own.drop(folder)
    return own


def _nothing_left(folder: Path) -> None:
    """Makes sure that no worker is left: their environment does not have the command's mark."""
    deadline = time.monotonic() + ORPHAN_SECONDS
    while left := [words for words in _commands() if str(folder).encode() in words]:
        if time.monotonic() > deadline:
            raise FailureError(f"orphan: {left}")
        time.sleep(0.02)


def _commands() -> list[bytes]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(place.read_bytes())
        except OSError:
            continue
    return found


def _reasons(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "run" / STORE_FILE)) as db:
        rows = db.execute("SELECT error FROM trial WHERE status != 'finished'").fetchall()
    return [row[0] for row in rows]


for _how in FAULTS:
    _inject = partial(survived, how=_how)
    KINDS.append(Kind("worker protocol", _how.replace("-", " "), 1, _inject))
