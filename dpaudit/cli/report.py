"""`dpaudit report`: the report, a figure or every bound of a finished run, without training."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import ExitCode, guard, results, write_named
from dpaudit.errors import InputError, SettingsError
from dpaudit.formatting import Row, row_lines
from dpaudit.model.choices import Assumption, FigureName
from dpaudit.model.setting import Option

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """What a figure takes.

    Attributes:
        out: File to write the figure to: .pdf, .svg, .png.
        width: Width of the figure.
        height: Height of the figure.
    """

    out: Annotated[Path | None, Option("FILE", ("-o", "--out"))] = None
    width: Annotated[float | None, Option("INCHES")] = None
    height: Annotated[float | None, Option("INCHES")] = None


@dataclass(frozen=True, kw_only=True)
class BoundsOptions:
    """What a table of bounds takes.

    Attributes:
        delta: Delta of `bounds`. Default: the run's; any other is post hoc.
        confidence: Confidence of `bounds`. Default: the run's; any other is post hoc.
        assume: Estimate that `bounds` adds, for this kind of mechanism: gaussian.
    """

    delta: Annotated[float | None, Option("D")] = None
    confidence: Annotated[float | None, Option("C")] = None
    assume: Annotated[Assumption | None, Option("MECHANISM")] = None


@guard
@options.takes_settings()
def report(
    *,
    run_folder: options.RunFolderArgument,
    figure: Annotated[
        FigureName | None,
        option(metavar="NAME", help="Figure to draw instead: claim, roc, scores; needs --out."),
    ] = None,
    of_figure: FigureOptions,
    bounds: Annotated[
        bool, option("--bounds", help="Print every bound instead, recomputed from the counts.")
    ] = False,
    of_bounds: BoundsOptions,
    badge: Annotated[
        Path | None,
        option(metavar="FILE", help="JSON file for an endpoint badge of shields.io to write."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Writes a run's report.html and report.md again from its result.json.

    With --figure it draws a figure, which needs matplotlib (in the clone: pip install '.[plot]').
    With --bounds it recomputes every bound, corrected as in the run, for its number of attacks and
    for sequential stopping. A delta or confidence that differs from the run's was chosen after
    seeing the counts, so its bounds prove nothing. Estimates are for comparison with other tools:
    they may exceed the true epsilon more often than the confidence allows.
    """
    from dpaudit.evidence.check import load
    from dpaudit.report.render import write_reports
    from dpaudit.results.result import AuditResult, report_row

    if bounds and figure is not None:
        raise SettingsError("give either `bounds` or `figure`, not both")
    if figure is None and (name := _first_given(vars(of_figure))):
        raise SettingsError(f"`{name}` belongs to a figure: give --figure claim|roc|scores")
    if not bounds and (name := _first_given(vars(of_bounds))):
        raise SettingsError(f"`{name}` belongs to the bounds: give `bounds`")
    if badge is not None and (bounds or figure is not None):
        raise SettingsError("give `badge` without `bounds` and `figure`")
    result = AuditResult.load(run_folder) if bounds else load(run_folder)
    assert result.folder is not None  # it was loaded from one
    output = results()
    if bounds:
        _print_bounds(result, **vars(of_bounds), json=json)
        return
    if figure is not None:
        from dpaudit.results.plots import caption, figure_file

        out, width, height = of_figure.out, of_figure.width, of_figure.height
        if out is None:
            raise SettingsError("`figure` needs a file: give --out FILE.pdf, .svg or .png")
        drawn = figure_file(result, figure, out.suffix, width=width, height=height)
        write_named(out, drawn, option="out")
        facts = {"figure": str(out), "caption": caption(result, figure)}
        if json:
            output.print(json_module.dumps(facts, indent=2))
        else:
            rows = [Row(name, words) for name, words in facts.items()]
            output.print("\n".join(row_lines(rows)))
        raise typer.Exit(ExitCode.PASS)
    write_reports(result, result.folder)
    if badge is not None:
        from dpaudit.report.badge import badge as badge_of

        write_named(badge, badge_of(result), option="badge")
    if json:
        output.print(result.to_json(), end="")
    else:
        output.print("\n".join([str(result), *row_lines([report_row(result.folder)])]))
    raise typer.Exit(ExitCode.PASS)


def _first_given(options: Mapping[str, object]) -> str | None:
    """The first option that was given; None if none was."""
    return next((name for name, value in options.items() if value is not None), None)


def _print_bounds(
    result: AuditResult,
    delta: float | None,
    confidence: float | None,
    assume: Assumption | None,
    *,
    json: bool,
) -> None:
    """Prints every bound of a run from its stored counts and scores.

    Raises:
        InputError: If the run has no delta, or scored no attack.
    """
    from dpaudit.results.recomputed import Asked, delta_of, lines_of, recompute

    own = delta_of(result)
    if own is None and (delta is not None or assume is not None):
        raise SettingsError(
            f"{result.folder} audits {result.claim.in_words}, which has no delta: leave out "
            "`delta` and `assume`"
        )
    asked = Asked(
        result=result,
        delta=own if delta is None else delta,
        confidence=result.confidence if confidence is None else confidence,
        assume=assume,
    )
    bounds = recompute(asked)
    if not bounds.bounds:
        raise InputError(f"{result.folder} scored no attack, so there is nothing to bound")
    if json:
        results().print(bounds.to_json(), end="")
    else:
        results().print("\n".join(lines_of(asked, bounds.bounds)))
