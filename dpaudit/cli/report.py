"""`dpaudit report`."""

from __future__ import annotations

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guarded, results


@guarded
def report(run_folder: options.RunFolderArgument, json: options.Json = False) -> None:
    """Writes report.html and report.md again from a finished run's result.json."""
    from dpaudit.report.render import write_reports
    from dpaudit.results.result import REPORT_FILE, AuditResult

    result = AuditResult.load(run_folder)
    assert result.folder is not None  # it was loaded from one
    write_reports(result, result.folder)
    output = results()
    if json:
        output.print(result.to_json(), end="")
    else:
        output.print(str(result))
        output.print(f"report: {result.folder / REPORT_FILE}")
    raise typer.Exit(ExitCode.PASS)
