"""`dpaudit demo`: two audits with known answers, in a minute."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dpaudit.cli import options
from dpaudit.cli.console import guard, messages, results, suggest_resuming, write_named
from dpaudit.formatting import Row, headed, row_lines
from dpaudit.model.setting import Option, Panel

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult

MODELS: Final = 100
"""Shadow models of each audit."""
_TABLE: Final = "sample:breast-cancer"


_TOYS: Final = {
    "laplace-histogram": "claims epsilon 1 and satisfies it: noisy counts of one column",
    "copycat": "claims epsilon 1, and copies one record if it saw it",
}
"""Two generators and their known answers."""


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Where the demonstration goes.

    Attributes:
        out: Folder of both runs.
        open_report: Open the comparison in a browser, if on a terminal. Default: open-report.
    """

    out: Annotated[Path, Option("DIR", panel=Panel.OUTPUT)] = Path("runs/demo")
    open_report: Annotated[bool, Option(panel=Panel.OUTPUT)] = True


@guard
@options.takes_settings()
def demo(
    *,
    asked: DemoOptions,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> None:
    """Audits two toy generators, one that satisfies its claim and one that does not.

    Shows both audits side by side. The exit code is 0 whatever they find.
    """
    from dpaudit.comparison import compare
    from dpaudit.comparison.render import comparison_page
    from dpaudit.report.render import page_html
    from dpaudit.results.result import report_row
    from dpaudit.results.sentences import headline

    out, output, audits = asked.out, results(), {}
    for name, known in _TOYS.items():
        audits[name] = _run_audit(name, out / name, jobs=jobs, quiet=quiet)
        rows = [Row("toy", f"{name} {known}"), report_row(out / name)]
        output.print("\n".join([*headed(headline(audits[name]), rows), ""]))
    page = out / "compare.html"
    again = shlex.join(["dpaudit", "compare", *(str(out / name) for name in _TOYS)])
    compared = comparison_page(compare(audits, reproduce=again))
    write_named(page, page_html(compared), option="out")
    own = "dpaudit audit my.py:Gan --data t.csv --epsilon 1 --delta 1e-5"
    rows = [Row("both", str(page), whole=True), Row("next", own, whole=True)]
    output.print("\n".join(row_lines(rows)))
    if asked.open_report and sys.stdout.isatty():
        typer.launch(page.resolve().as_uri())


def _run_audit(name: str, folder: Path, *, jobs: int | None, quiet: bool) -> AuditResult:
    """One audit, in its run folder."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.games import audit_settings, audited_table, build_spec
    from dpaudit.auditing.progress_bar import ConsoleProgress

    settings = audit_settings(shadow_models=MODELS, probe=False)
    spec = build_spec(name, audited_table(_TABLE, None, settings), settings)
    with suggest_resuming(), ConsoleProgress(messages(), quiet=quiet) as progress:
        return run_audit(spec, folder, jobs=jobs, on_progress=progress)
