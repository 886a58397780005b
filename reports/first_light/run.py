"""First light: five audits of the reference PATE-GAN on real tables, by the command line.

Usage: python -m reports.first_light.run [AUDIT ...]   (about 8 minutes on 2 cores)
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpaudit.errors import DpauditError
from reports import cervical
from reports.command import DPAUDIT, Run, StudyParser, start
from reports.data import catalogue, table_file

PUBLISHED = ("--data", "cervical.csv", "--schema", "cervical.schema.json", "--target", "row:397")
FARTHEST = ("--target", "farthest")
KEPT = ("result.json", "report.html", "report.md")
TABLES = ("adult", "cervical-cancer")
QUICK = ("--shadow-models", "20", "--set", "rows=100")


class Audit(NamedTuple):
    """One audit.

    Attributes:
        arguments: What is given to `dpaudit audit`.
        table: Name of the public table; empty for a sample of scikit-learn.
    """

    arguments: tuple[str, ...]
    table: str = ""


AUDITS = {
    "pate-gan-breast-cancer": Audit(
        (
            "pate-gan",
            "--data",
            "sample:breast-cancer",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            *FARTHEST,
        )
    ),
    "pate-gan-cervical": Audit(("pate-gan", *PUBLISHED), "cervical-cancer"),
    "pate-gan-cervical-bounds-from-data": Audit(
        ("pate-gan", "-p", "bounds=data", *PUBLISHED), "cervical-cancer"
    ),
    "pate-gan-cervical-raw": Audit(
        ("pate-gan", "--data", "cervical_cancer.csv.gz", "--shadow-models", "200", *FARTHEST),
        "cervical-cancer",
    ),
    "pate-gan-adult": Audit(
        (
            "pate-gan",
            "--data",
            "adult.csv.gz",
            "--shadow-models",
            "100",
            "--set",
            "rows=1000",
            *FARTHEST,
        ),
        "adult",
    ),
}


def prepare(run: Run, work: Path) -> None:
    """Puts every file that the audits name into the folder where they are run."""
    for name in sorted({AUDITS[part].table for part in run.parts} - {""}):
        shutil.copy(table_file(name, run.data), work / catalogue()[name].file)
        if name == "cervical-cancer":
            cervical.published_table(run.data).to_csv(work / "cervical.csv", index=False)
            shutil.copy(cervical.SCHEMA_FILE, work)


def audit(name: str, run: Run, work: Path) -> None:
    """Runs one audit; keeps its result and reports.

    Raises:
        DpauditError: If the audit ends without a result.
    """
    command = [*DPAUDIT, "audit", *AUDITS[name].arguments, "--out", f"run/{name}", "-q"]
    command += QUICK if run.quick else ()
    command += ("--jobs", str(run.jobs)) if run.jobs else ()
    done = subprocess.run(command, cwd=work, check=False)
    print(f"{name}: exit code {done.returncode}", flush=True)
    (run.out / name).mkdir(exist_ok=True)
    for file in KEPT:
        try:
            shutil.copy(work / "run" / name / file, run.out / name)
        except FileNotFoundError:
            raise DpauditError(f"the audit {name} made no {file}") from None


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=tuple(AUDITS), tables=TABLES, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    with tempfile.TemporaryDirectory() as folder:
        prepare(run, Path(folder))
        for name in run.parts:
            audit(name, run, Path(folder))


if __name__ == "__main__":
    start(main)
