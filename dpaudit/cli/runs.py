"""`dpaudit report`, `compare` and `evidence`: what is made of finished runs, without training."""

from __future__ import annotations

import json as json_module
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import DefaultingGroup, PanelledCommand, command_group, option
from dpaudit.cli.console import ExitCode, guard, results, show, write_named
from dpaudit.errors import InputError, SettingsError
from dpaudit.files import io_reason
from dpaudit.formatting import Row, headed, listed, row_lines
from dpaudit.model.choices import Assumption, FigureName
from dpaudit.model.setting import Option, Panel

if TYPE_CHECKING:
    from dpaudit.comparison import Comparison, Reference
    from dpaudit.results.result import AuditResult

Out = Annotated[
    list[Path] | None,
    option(
        "-o",
        "--out",
        metavar="FILE",
        help="File to write as well: .html, .md, .svg (the figure), .json; for a "
        "paper .csv and .tex (the table); repeatable.",
        panel=Panel.OUTPUT,
    ),
]
_KINDS = (".html", ".md", ".svg", ".json", ".csv", ".tex")


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
    from dpaudit.evidence.pack import load
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
        from dpaudit.results.curves import caption, figure_file

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
        from dpaudit.report.render import badge as badge_of

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


@guard
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN...|FOLDER",
            help="Run folders, or their result.json; or one folder with a run folder per version.",
        ),
    ],
    out: Out = None,
    json: options.Json = False,
) -> None:
    """Compares finished runs: claims, bounds, and what changed since the first one.

    Runs of one FOLDER are compared each with the previous one, in the order of their names.
    Numbers in names count as numbers: v9 comes before v10. The exit code is 0 whatever the runs
    found.
    """
    from dpaudit.comparison import Reference
    from dpaudit.results.result import RESULT_FILE

    reference, paths, unfinished = Reference.FIRST, runs, list[str]()
    if len(runs) == 1 and runs[0].name != RESULT_FILE and not (runs[0] / RESULT_FILE).exists():
        reference = Reference.PREVIOUS
        paths, unfinished = _versions(runs[0])
    words = ["compare", *map(str, runs)]
    _show(paths, reference, words, out or [], json=json, unfinished=unfinished)


def _versions(folder: Path) -> tuple[list[Path], list[str]]:
    """The finished runs of a folder by version, and the names of those without a result.

    Raises:
        InputError: If it cannot be read or holds fewer than two finished runs.
    """
    from dpaudit.game.store import STORE_FILE
    from dpaudit.results.result import RESULT_FILE

    try:
        inside = [path for path in folder.iterdir() if (path / RESULT_FILE).is_file()]
        begun = {path for path in folder.iterdir() if (path / STORE_FILE).is_file()}
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read: {io_reason(error)}; give a folder of two run folders or more"
        ) from None
    if len(inside) < 2:
        count = "only one finished run" if inside else "no finished runs"
        raise InputError(f"{folder} holds {count}: give a folder of two run folders or more")
    return sorted(inside, key=_natural_key), sorted(path.name for path in begun.difference(inside))


def _show(
    paths: Sequence[Path],
    reference: Reference,
    words: Sequence[str],
    out: Sequence[Path],
    *,
    json: bool,
    unfinished: Sequence[str] = (),
) -> None:
    from dpaudit.comparison import compare as compared
    from dpaudit.comparison import comparison_page
    from dpaudit.report.page import page_text

    for file in out:
        _check_kind(file)
    again = shlex.join(["dpaudit", *words])
    comparison = compared(paths, reference=reference, reproduce=again)
    for file in out:
        write_named(file, _render(comparison, file), option="out")
    output = results()
    if json:
        output.print(comparison.to_json(), end="")
    else:
        rows = [Row("started", f"{listed(unfinished)}: no result yet; its command resumes it")]
        rows = rows if unfinished else []
        rows.append(Row("report", listed(out) if out else "--out FILE.html writes one"))
        text = page_text(comparison_page(comparison))
        output.print("\n".join([text, "", *row_lines(rows)]))
    raise typer.Exit(ExitCode.PASS)


def _natural_key(path: Path) -> list[tuple[int, str]]:
    """Sort key that puts v9 before v10: numbers by value, the rest by letters."""
    parts = re.findall(r"\d+|\D+", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _check_kind(file: Path) -> None:
    if file.suffix not in _KINDS:
        raise InputError(f"`out` is {file}: its name must end in one of {', '.join(_KINDS)}")


def _render(comparison: Comparison, file: Path) -> str:
    """The comparison in the format of the file's name."""
    from dpaudit.comparison import comparison_latex, comparison_page, draw_forest
    from dpaudit.report.figures import standalone
    from dpaudit.report.render import page_html, page_markdown

    match file.suffix:
        case ".html":
            return page_html(comparison_page(comparison))
        case ".md":
            return page_markdown(comparison_page(comparison))
        case ".csv":
            return comparison.frame.to_csv(index=False)
        case ".tex":
            return comparison_latex(comparison)
        case ".svg":
            if comparison.quantity is None:
                raise InputError(
                    f"{file}: the claims limit different quantities, so there is no picture on one "
                    "axis; ask for .html, .md or .json"
                )
            return standalone(draw_forest(comparison))
        case _:
            return comparison.to_json()


class _Group(DefaultingGroup):
    takes_argument = True


evidence = command_group(
    "Writes a finished audit as one file (the default command), or verifies such a file.", _Group
)


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """How a pack is written.

    Attributes:
        out: Pack to write.
        sign: Ed25519 private key (PEM, no password) to sign with. Default: no signature.
    """

    out: Annotated[Path, Option("FILE", ("-o", "--out"))]
    sign: Annotated[Path | None, Option("KEY")] = None


@evidence.command(cls=PanelledCommand)
@guard
@options.takes_settings()
def pack(*, run_folder: options.RunFolderArgument, asked: PackOptions) -> None:
    """Writes a finished audit as one file.

    It holds result, reports, versions, checksums and a script. The script recomputes errors, bound
    and verdict with numpy and scipy alone. The pack has what result.json has, and so no records.
    The same run gives the same file.
    """
    from dpaudit.evidence.pack import KEY, add_signature, digest, load, pack_files, zip_files

    out, sign = asked.out, asked.sign
    try:
        files = pack_files(load(run_folder))
    except InputError:
        if run_folder.is_file() and '"ledger"' in run_folder.read_text("utf-8", errors="replace"):
            raise InputError(
                f"{run_folder} is a replay: packs hold audits; give a run folder, or send the JSON "
                "of the replay itself, which `dpaudit account check` reads"
            ) from None
        raise
    if sign is not None:
        files = add_signature(files, sign)
    content = zip_files(files)
    write_named(out, content, option="out")
    facts = [
        Row("files", ", ".join(sorted(files))),
        Row("SHA-256", digest(content), whole=True),
        Row("signature", "none" if sign is None else f"by the key in {KEY}"),
        Row("next", f"dpaudit evidence verify {out}", whole=True),
    ]
    results().print("\n".join(headed(f"EVIDENCE  {out}", facts)))


@evidence.command(cls=PanelledCommand)
@guard
def verify(
    path: Annotated[Path, typer.Argument(metavar="PACK", help="Pack to check.")],
    key: Annotated[
        Path | None,
        option(
            metavar="KEY", help="Ed25519 public key (PEM) that must have signed it. Default: any."
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Verifies a pack: files, signature and verdict.

    The bounds and the verdict are recomputed from the guesses. Exit code 1: something differs. Exit
    code 3: the pack is whole, but cannot prove its verdict.
    """
    from dpaudit.evidence.pack import check_pack

    check = check_pack(path, key=key)
    show(check, json=json, quiet=quiet)
    if check.differences:
        raise typer.Exit(ExitCode.VIOLATION)
    raise typer.Exit(ExitCode.INCONCLUSIVE if check.not_recomputed else ExitCode.PASS)
