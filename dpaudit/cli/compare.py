"""`dpaudit compare`: several runs side by side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import ExitCode, guard, results, write_named
from dpaudit.errors import InputError
from dpaudit.files import io_reason
from dpaudit.formatting import Row, listed, row_lines
from dpaudit.model.setting import Panel

if TYPE_CHECKING:
    from dpaudit.comparison import Comparison, Reference

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
    from dpaudit.comparison.render import comparison_page
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


_KINDS = (".html", ".md", ".svg", ".json", ".csv", ".tex")


def _check_kind(file: Path) -> None:
    if file.suffix not in _KINDS:
        raise InputError(f"`out` is {file}: its name must end in one of {', '.join(_KINDS)}")


def _render(comparison: Comparison, file: Path) -> str:
    """The comparison in the format of the file's name."""
    from dpaudit.comparison.render import comparison_latex, comparison_page, draw_forest
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
