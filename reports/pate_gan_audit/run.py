"""Six published PATE-GANs, audited again: Tables 2 and 3, Figures 2 to 5 and 12.

Usage: python -m reports.pate_gan_audit.run [PART ...]   (about an hour and a quarter on 2 cores)

Each part resumes where it was stopped: what is finished is under results/, trials are under --runs.
What was asked the same way is not done again, so that on the committed results this changes
nothing; --models 1000 asks for as many models as the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reports.command import StudyParser, start
from reports.pate_gan_audit import (
    access,
    access_exact,
    average,
    pages,
    remains,
    sequential,
    tables,
    training,
    worst,
)
from reports.pate_gan_audit.access_settings import SUBJECTS
from reports.pate_gan_audit.average import REFERENCE
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.worst import NULLS

Part = Callable[[Plan], None]
TABLES = ("cervical-cancer",)
PAGES = "pages"
FULL: dict[str, Part] = {
    "tables": tables.run,
    "training": training.run,
    "average": average.run,
    "worst": worst.run,
    "sequential": sequential.run,
    "remains": remains.run,
    "access": access.run,
    "exact": access_exact.run,
}
QUICK: dict[str, Part] = FULL | {
    "training": partial(training.run, lambdas=(1.0,)),
    "sequential": partial(sequential.run, seeds=1),
    "remains": lambda plan: None,  # explains violations of a valid game, which this has not found
}
QUICK_NAMES = ("borealis", "null")
KNOWN = tuple(dict.fromkeys((*tables.NAMES, *NULLS, REFERENCE, *SUBJECTS)))


def main(given: Sequence[str] | None = None) -> None:
    """Runs the parts that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=(*FULL, PAGES), tables=TABLES, has_jobs=True)
    parser.add_argument(
        "--models",
        type=int,
        metavar="N",
        help="shadow models of each world (default: as many as for the committed results)",
    )
    parser.add_argument(
        "--names", default="", metavar="A,B", help="these generators alone (default: all)"
    )
    parser.add_argument(
        "--runs",
        type=Path,
        metavar="DIR",
        help="run folders, from which stopped audits go on (default: runs/pate_gan_audit here)",
    )
    asked = parser.parse_args(given)
    run = parser.run_of(asked)
    names = tuple(name for name in asked.names.split(",") if name)
    unknown = sorted(set(names) - set(KNOWN))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(KNOWN)}")
    plan = Plan(
        out=run.out,
        runs=asked.runs or (run.out / "runs" if run.quick else Path("runs/pate_gan_audit")),
        data=run.data,
        names=names or (QUICK_NAMES if run.quick else ()),
        models=asked.models or (10 if run.quick else None),
        iterations=2 if run.quick else None,
        rows=100 if run.quick else None,
        jobs=run.jobs,
    )
    for part in run.parts:
        if part == PAGES:
            pages.write(run)
        else:
            (QUICK if run.quick else FULL)[part](plan)


if __name__ == "__main__":
    start(main)
