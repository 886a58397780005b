"""`dpaudit` in a process of its own that need not import everything again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from nursery import Nursery

FORKS = """
import gc, json, os, runpy, signal, sys
import sklearn.linear_model
import dpaudit.auditing.games, dpaudit.cli.audit, dpaudit.report.render
import dpaudit_attacks.groundhog, dpaudit_generators.toys
sys.path.append(sys.argv.pop())
import nursery
sys.path.pop()
gc.freeze()

def opened(where):
    if where != "broken pipe":
        return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    read, write = os.pipe()
    os.close(read)
    return write

for line in iter(sys.stdin.readline, ""):
    asked = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm(120)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = opened(asked[name])
            os.dup2(file, number)
            os.close(file)
        os.chdir(asked["cwd"])
        if asked["nursery"]:
            nursery.fork_workers(lambda: asked["nursery"])
        sys.argv[1:] = asked["words"]
        runpy.run_module("dpaudit", run_name="__main__", alter_sys=True)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Program:
    """Runs `dpaudit` in forks of one process that has imported what audits need.

    A fork costs a tenth of a process that starts afresh, and ends as that does. What a start itself
    does (imports, closed streams, limits, signals to a group) needs a start.

    Attributes:
        parent: The process that forks.
        nursery: What the workers of audits are forks of.
        folder: Where what they write is kept until it is read.
    """

    parent: subprocess.Popen[str]
    nursery: Nursery
    folder: Path

    def run(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        stdout: str = "",
        stderr: str = "",
        fresh_workers: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end.

        Args:
            words: Those behind `dpaudit`.
            cwd: The folder to run it in.
            stdout: The file that its output goes to, or "broken pipe"; "" to have it returned.
            stderr: As for `stdout`.
            fresh_workers: Whether workers start afresh, as outside of tests.
        """
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        out, err = self.folder / "stdout", self.folder / "stderr"
        to = {"stdout": stdout or str(out), "stderr": stderr or str(err)}
        address = "" if fresh_workers or sys.platform != "linux" else self.nursery.address
        asked = json.dumps({"words": list(words), "cwd": str(cwd), "nursery": address, **to})
        print(asked, file=self.parent.stdin, flush=True)
        code = int(self.parent.stdout.readline())
        return subprocess.CompletedProcess(
            list(words), code, "" if stdout else out.read_text(), "" if stderr else err.read_text()
        )


@contextmanager
def forked_programs(nursery: Nursery) -> Iterator[Program]:
    """Starts the process that forks; it ends with the context."""
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", FORKS, str(Path(__file__).parent)]
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as parent,
    ):
        yield Program(parent, nursery, Path(folder))
