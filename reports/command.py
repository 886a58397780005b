"""The command line that all studies share, and where their results go."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dpaudit.errors import DpauditError
from dpaudit.files import write_whole
from reports.data import catalogue

DPAUDIT = (sys.executable, "-m", "dpaudit")
"""The `dpaudit` command of the interpreter that runs the study."""
DATA_VARIABLE = "DPAUDIT_DATA"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run of a study was asked for.

    Attributes:
        home: The study's folder.
        out: Where results are written.
        parts: The parts to run, in the study's order.
        data: Folder of the public tables; None if none was named.
        quick: Whether this is only a check that the study runs.
        jobs: Worker processes; None for one per core.
    """

    home: Path
    out: Path
    parts: tuple[str, ...] = ()
    data: Path | None = None
    quick: bool = False
    jobs: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the results are those that the study's README.md shows."""
        return self.out == self.home / "results" and not self.quick


class StudyParser(argparse.ArgumentParser):
    """A parser of the options that studies share; a study may add its own."""

    def __init__(
        self,
        module: str,
        description: str | None,
        *,
        parts: Sequence[str] = (),
        tables: Sequence[str] = (),
        has_jobs: bool = False,
    ) -> None:
        """Adds the options that the study has.

        Args:
            module: Path of the study's run.py.
            description: Its docstring, whose first line is shown.
            parts: What can be run alone.
            tables: Names of the public tables that are read.
            has_jobs: Whether anything is run by several processes.
        """
        self._home, self._parts = Path(module).resolve().parent, tuple(parts)
        super().__init__(
            prog=f"python -m reports.{self._home.name}.run",
            description=(description or "").partition("\n")[0],
        )
        self.set_defaults(parts=(), data=None, jobs=None)
        if parts:
            self.add_argument(
                "parts",
                nargs="*",
                metavar="PART",
                help=f"what to run (default: all): {', '.join(parts)}",
            )
        if tables:
            files = " and ".join(catalogue()[name].file for name in tables)
            self.add_argument(
                "--data",
                type=Path,
                metavar="DIR",
                default=os.environ.get(DATA_VARIABLE),
                help=f"folder with {files}, as `python -m reports.fetch DIR` makes it "
                f"(default: the environment variable {DATA_VARIABLE})",
            )
        self.add_argument(
            "--out",
            type=Path,
            metavar="DIR",
            help="folder of the results (default: the study's results/; results/quick/ if quick)",
        )
        self.add_argument(
            "--quick",
            action="store_true",
            help="a small version, to see that the study runs: its numbers say nothing",
        )
        if has_jobs:
            self.add_argument(
                "--jobs",
                type=_positive,
                metavar="N",
                help="worker processes (default: one per core)",
            )

    def run_of(self, given: argparse.Namespace) -> Run:
        """The run that parsed arguments ask for.

        Args:
            given: What `parse_args` returned.

        Returns:
            The run; its folder of results exists, and an earlier quick one is gone.

        Raises:
            SystemExit: With exit code 2, if a part is unknown.
        """
        unknown = sorted(set(given.parts) - set(self._parts))
        if unknown:
            self.error(f"unknown: {', '.join(unknown)}; known: {', '.join(self._parts)}")
        results = self._home / "results"
        out: Path = given.out or (results / "quick" if given.quick else results)
        if out == results / "quick":
            shutil.rmtree(out, ignore_errors=True)  # an earlier one would be resumed
        out.mkdir(parents=True, exist_ok=True)
        return Run(
            home=self._home,
            out=out.resolve(),
            parts=tuple(part for part in self._parts if part in (given.parts or self._parts)),
            data=given.data and Path(given.data),
            quick=given.quick,
            jobs=given.jobs,
        )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def start(main: Callable[[], None]) -> NoReturn:
    """Runs a study; an error that dpaudit raises on purpose ends it with one line.

    Args:
        main: The study's main.

    Raises:
        SystemExit: When the study has ended, or with the error.
    """
    try:
        main()
    except DpauditError as error:
        sys.exit(f"error: {error}")
    sys.exit()


def write_json(path: Path, document: Any, *, indent: int = 1) -> None:
    """Writes a result, whole or not at all.

    Args:
        path: The file; its folder is made.
        document: What is written.
        indent: Spaces for each level.

    Raises:
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(document, indent=indent, ensure_ascii=False) + "\n").encode())


def write_text(path: Path, text: str) -> None:
    """Writes a page, whole or not at all.

    Raises:
        OSError: If the file cannot be written.
    """
    write_whole(path, text.encode())
