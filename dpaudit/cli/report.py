"""`dpaudit report`."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import ExitCode, guarded, results, write_asked
from dpaudit.errors import SettingsError
from dpaudit.formatting import Row, row_lines
from dpaudit.model.choices import FigureName

Width = Annotated[float | None, option(metavar="INCHES", help="Width of the figure.")]
Height = Annotated[float | None, option(metavar="INCHES", help="Height of the figure.")]


@guarded
def report(
    run_folder: options.RunFolderArgument,
    figure: Annotated[
        FigureName | None,
        option(metavar="NAME", help="Figure to draw instead: claim, roc, scores; needs --out."),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "-o", "--out", metavar="FILE", help="File to write the figure to: .pdf, .svg, .png."
        ),
    ] = None,
    width: Width = None,
    height: Height = None,
    json: options.Json = False,
) -> None:
    """Writes a run's report.html and report.md again from its result.json, or draws a figure of it.

    Figures need matplotlib: pip install 'dpaudit[plot]'.
    """
    from dpaudit.report.render import write_reports
    from dpaudit.results.result import AuditResult, report_row

    result = AuditResult.load(run_folder)
    assert result.folder is not None  # it was loaded from one
    output = results()
    if figure is not None:
        from dpaudit.results.plots import caption, figure_file

        if out is None:
            raise SettingsError("`figure` needs a file: give --out FILE.pdf, .svg or .png")
        drawn = figure_file(result, figure, out.suffix, width=width, height=height)
        write_asked(out, drawn, option="out")
        said = {"figure": str(out), "caption": caption(result, figure)}
        if json:
            output.print(json_module.dumps(said, indent=2))
        else:
            rows = [Row(name, words) for name, words in said.items()]
            output.print("\n".join(row_lines(rows)))
        raise typer.Exit(ExitCode.PASS)
    for name, value in (("out", out), ("width", width), ("height", height)):
        if value is not None:
            raise SettingsError(f"--{name} belongs to a figure: give --figure claim|roc|scores")
    write_reports(result, result.folder)
    if json:
        output.print(result.to_json(), end="")
    else:
        output.print("\n".join([str(result), *row_lines([report_row(result.folder)])]))
    raise typer.Exit(ExitCode.PASS)
