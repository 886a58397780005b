"""Audits of the six published PATE-GANs and of a sound one, and the picture that compares them.

Each audit is one `dpaudit audit`, in the worst case in which that generator shows most
(`pate_gan_audit/access_settings.py` has how these were chosen, on trials of other seeds). A part
whose result is there is not run again.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.comparison import Comparison, compare, comparison_table, draw_forest
from dpaudit.errors import DpauditError
from dpaudit.files import write_whole
from dpaudit.report.figures import standalone
from dpaudit.results.result import RESULT_FILE, AuditResult
from reports import markdown
from reports.command import DPAUDIT, Run, StudyParser, start
from reports.pate_gan_audit.access_settings import WORST, Worst, generator_of
from reports.pate_gan_audit.published import DELTA, EPSILON, SIX

SOUND: Final = "pate-gan-marginals"
PARTS: Final = (*SIX, SOUND)
PICTURE: Final = "compare.svg"
SEED: Final = 3
"""Other than those of the trials on which the settings were chosen."""
QUICK_MODELS: Final = 20
_OF_THE_SOUND: Final = Worst(records=200, models=1000)
"""The simplest of the worst cases, with records for its 50 teachers; the rest are its defaults."""


def case_of(name: str) -> tuple[Worst, dict[str, Any]]:
    """The worst case of a generator, and its parameters there."""
    if name == SOUND:
        return _OF_THE_SOUND, {}
    case, (_, given) = WORST[name], generator_of(name)
    settings = {"teachers": case.teachers, "gamma": case.gamma, "iterations": case.iterations}
    return case, given | settings


def command(name: str, *, models: int | None = None) -> list[str]:
    """The arguments of `dpaudit` for one audit, on files that `write_table` makes."""
    case, parameters = case_of(name)
    words = ["audit", name]
    for key, value in parameters.items():
        words += ["-p", f"{key}={value}"]
    words += ["--data", f"{name}.csv", "--schema", f"{name}.schema.json", "--target", "row:0"]
    words += ["--epsilon", f"{EPSILON:g}", "--delta", f"{DELTA:g}", "--access", "released"]
    words += ["--set", f"rows={case.rows}", "--shadow-models", str(models or case.models)]
    return [*words, "--seed", str(SEED), "--set", "probe=false"]


def write_table(name: str, folder: Path) -> None:
    """Writes the table and the public schema of a worst case."""
    case, _ = case_of(name)
    case.table.to_csv(folder / f"{name}.csv", index=False)
    case.schema.save(folder / f"{name}.schema.json")


def audit(name: str, run: Run) -> None:
    """Runs one audit and keeps its result.

    Raises:
        DpauditError: If the audit ends without a result.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_table(name, work)
        words = [*DPAUDIT, *command(name, models=QUICK_MODELS if run.quick else None)]
        words += ["--jobs", str(run.jobs)] if run.jobs else []
        done = subprocess.run([*words, "--out", f"run/{name}", "-q"], cwd=work, check=False)
        kept = run.out / name
        kept.mkdir(exist_ok=True)
        try:
            shutil.copy(work / "run" / name / RESULT_FILE, kept)
        except FileNotFoundError:
            raise DpauditError(
                f"the audit of {name} ended with code {done.returncode} and made no {RESULT_FILE}"
            ) from None


def compared(folder: Path) -> Comparison:
    """The audits that a folder of results holds, in the order of the parts."""
    there = [name for name in PARTS if (folder / name / RESULT_FILE).is_file()]
    return compare({name: AuditResult.load(folder / name) for name in there})


def picture(comparison: Comparison) -> str:
    """The audits on one axis, of a width that suits a page, which may be dark."""
    head, _, rest = draw_forest(comparison).partition(">")
    return standalone(f'{head} width="520">{rest}')


def page(comparison: Comparison) -> str:
    """The results as a Markdown table."""
    table = comparison_table(comparison)
    shown = [at for at, head in enumerate(table.header) if head != "generator"]
    rows = ([row[at] for at in shown] for row in table.rows)
    return markdown.table([table.header[at] for at in shown], rows)


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; draws the picture and writes the page's table."""
    parser = StudyParser(__file__, __doc__, parts=PARTS, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        if not (run.out / name / RESULT_FILE).is_file():
            audit(name, run)
            print(f"{name}: {AuditResult.load(run.out / name).verdict}", flush=True)
    try:
        comparison = compared(run.out)
    except DpauditError:
        return  # one run has nothing to be compared with
    write_whole(run.out / PICTURE, picture(comparison).encode())
    text = page(comparison)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", text)
    else:
        print(text)


if __name__ == "__main__":
    start(main)
