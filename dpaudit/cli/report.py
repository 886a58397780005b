"""`dpaudit report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import guarded, results


@guarded
def report(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or its result.json.")
    ],
    json: options.Json = False,
) -> None:
    """Write report.html and report.md again from a finished run's result.json."""
    from dpaudit.auditing.result import AuditResult
    from dpaudit.report.write import write_reports

    result = AuditResult.load(run_folder)
    assert result.folder is not None  # it was loaded from one
    write_reports(result.document, result.folder)
    output = results()
    if json:
        output.print(result.to_json(), end="")
        return
    output.print(str(result))
    output.print(f"report: {result.folder / 'report.html'}")
