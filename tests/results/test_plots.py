"""Figures by matplotlib: what they draw, where their words stand, and the files they become."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from dpaudit.cli.main import app
from dpaudit.errors import InputError, MissingExtraError, SettingsError
from dpaudit.model.choices import FigureName
from dpaudit.results.curves import SIZES, caption, figure_file, operating_point, plot, roc_of
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult

Make = Callable[..., AuditRecord]
FIGURES = list(FigureName)


@pytest.fixture(autouse=True)
def without_a_screen() -> None:
    mpl.use("Agg")


def axes() -> Any:
    return Figure(layout="constrained").add_subplot()


def labels(ax: Any) -> list[str]:
    return [words.get_text() for words in ax.get_legend().get_texts()]


@pytest.mark.parametrize("figure", FIGURES)
def test_axes_that_are_given_are_drawn_into_and_returned(record_of: Make, figure: str) -> None:
    ax = axes()
    assert plot(record_of(), ax, figure=figure) is ax
    assert ax.has_data()


def test_without_axes_pyplot_has_a_new_figure(record_of: Make) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    result = AuditResult.of(record_of(), folder=None)
    ax = result.plot()
    assert len(pyplot.get_fignums()) == len(before) + 1
    assert tuple(ax.get_figure().get_size_inches()) == SIZES[FigureName.CLAIM]  # type: ignore[union-attr]
    pyplot.close("all")


def test_a_name_in_the_place_of_axes_is_answered_with_the_keyword(record_of: Make) -> None:
    with pytest.raises(SettingsError, match=r"by its keyword: plot\(figure='roc'\)"):
        plot(record_of(), "roc")  # type: ignore[arg-type]


def test_the_claim_figure_has_the_numbers_of_the_result(record_of: Make) -> None:
    ax = plot(record_of(), axes())
    thick, thin = (container.patches[0] for container in ax.containers)
    assert (thick.get_width(), thin.get_width()) == (3.21, 2.58)
    assert thick.get_height() > thin.get_height()
    claim, detectable = ax.lines
    assert list(claim.get_xdata()) == [1.0, 1.0]
    assert list(detectable.get_xdata()) == [1.76]
    beyond = next(patch for patch in ax.patches if patch not in (thick, thin))
    assert beyond.get_x() == 4.38  # type: ignore[attr-defined]
    assert set(labels(ax)) == {
        "claim: 1",
        "empirical epsilon ≥ 3.21 (95 %, exact)",
        "Clopper-Pearson epsilon ≥ 2.58",
        "detectable epsilon (80 % power): 1.76",
        "limit for this many models: 4.38",
    }
    assert ax.get_xlabel() == "epsilon"


def test_a_claim_far_beyond_is_said_to_be_off_the_axis(record_of: Make) -> None:
    ax = plot(record_of(claim={"epsilon": 100.0}, verdict="inconclusive"), axes())
    assert "claim: 100 (off the axis)" in labels(ax)
    assert ax.get_xlim()[1] < 10
    beyond = plot(record_of(claim={"epsilon": 6.0}, verdict="inconclusive"), axes())
    assert beyond.get_xlim()[1] > 6


def test_no_bar_stands_for_a_bound_that_there_is_not(record_of: Make) -> None:
    none = dict.fromkeys(("exact", "fair_coin", "clopper_pearson", "one_run"))
    record = record_of(bounds={**none, "sequential": 1.5}, proved=1.5)
    ax = plot(record, axes())
    assert len(ax.containers) == 1
    assert not any("Clopper" in words for words in labels(ax))


def test_the_roc_figure_is_the_curve_of_the_report(record_of: Make) -> None:
    record = record_of()
    ax = plot(record, axes(), figure="roc")
    _, curve, chosen = ax.lines
    assert np.array_equal(curve.get_xdata(), roc_of(record).fpr)
    assert np.array_equal(curve.get_ydata(), roc_of(record).tpr)
    assert [chosen.get_xdata()[0], chosen.get_ydata()[0]] == list(operating_point(record))  # type: ignore[index]


def test_the_scores_figure_has_every_score_once(record_of: Make) -> None:
    ax = plot(record_of(), axes(), figure="scores")
    for steps in ax.patches:
        assert steps.get_data().values.sum() == pytest.approx(100.0)  # type: ignore[attr-defined]
    assert list(ax.lines[0].get_xdata()) == [0.515, 0.515]


@pytest.mark.parametrize("figure", FIGURES)
def test_words_stand_inside_the_figure_and_outside_the_plot(
    record_of: Make, figure: FigureName
) -> None:
    for size in (SIZES[figure], (3.3, SIZES[figure][1])):
        page = Figure(figsize=size, layout="constrained")
        ax = plot(record_of(), page.add_subplot(), figure=figure)
        page.draw_without_rendering()
        legend, inside = ax.get_legend(), ax.get_window_extent()
        assert legend is not None
        words = legend.get_window_extent()
        assert page.bbox.contains(words.x0, words.y0)
        assert page.bbox.contains(words.x1, words.y1)
        name = ax.xaxis.label.get_window_extent()
        assert words.y1 < name.y0 < name.y1 < inside.y0
        assert not ax.texts


@pytest.mark.parametrize("figure", FIGURES)
def test_a_column_of_a_paper_has_room_for_every_figure_and_its_words(
    record_of: Make, figure: FigureName
) -> None:
    long = replace(record_of(), attack="combined-of-every-attack", confidence=0.999999)
    for record in (record_of(), long):
        assert figure_file(record, figure, ".svg", width=3.3, height=2.4)
    page = Figure(figsize=(3.3, 2.4), layout="constrained")
    ax = plot(record_of(), page.add_subplot(), figure=figure)
    page.draw_without_rendering()
    inside = ax.get_window_extent()
    assert min(inside.width, inside.height) > 0.7 * page.dpi
    legend = ax.get_legend()
    assert legend is not None
    words, paper = legend.get_window_extent(), page.bbox
    assert (words.x1, -words.y0) <= (paper.x1, -paper.y0)
    assert words.x0 > inside.x1 or words.y1 < inside.y0


@pytest.mark.parametrize("kind", [pytest.param(".pdf", marks=pytest.mark.ci), ".svg", ".png"])
def test_a_file_is_the_same_bytes_again(record_of: Make, kind: str) -> None:
    beginning = {".pdf": b"%PDF", ".svg": b"<?xml", ".png": b"\x89PNG"}[kind]
    first, again = (figure_file(record_of(), FigureName.CLAIM, kind) for _ in range(2))
    assert first == again
    assert first.startswith(beginning)


def test_the_caller_sets_the_size(record_of: Make) -> None:
    drawn = figure_file(record_of(), FigureName.CLAIM, ".pdf", width=3.5, height=2.5)
    assert b"/MediaBox [ 0 0 252 180 ]" in drawn
    for size in ({"width": 0.5}, {"height": 1000.0}):
        with pytest.raises(SettingsError, match="must be from 1 to 100 inches"):
            figure_file(record_of(), FigureName.CLAIM, ".pdf", **size)
    for figure, width, height in ((FigureName.CLAIM, 2.0, 1.0), (FigureName.ROC, 1.0, 2.0)):
        with pytest.raises(SettingsError, match=f"{width:g} x {height:g} inches have no room"):
            figure_file(record_of(), figure, ".pdf", width=width, height=height)
    with pytest.raises(SettingsError, match="a figure is a file of"):
        figure_file(record_of(), FigureName.CLAIM, ".gif")


def test_what_a_result_lacks_is_not_drawn(never_run: AuditRecord, record_of: Make) -> None:
    with pytest.raises(InputError, match="no trial was scored, so there is no bound to draw"):
        plot(never_run, axes())
    with pytest.raises(InputError, match="there are no scores to draw"):
        plot(never_run, axes(), figure="roc")
    with pytest.raises(SettingsError, match="figure"):
        plot(record_of(), axes(), figure="forest")


def test_a_missing_matplotlib_is_said_with_its_install_line(
    record_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = (
        r"a figure needs matplotlib. Install it in the clone of dpaudit: pip install '\.\[plot\]'"
    )
    with pytest.raises(MissingExtraError, match=line):
        plot(record_of())
    with pytest.raises(MissingExtraError, match=line):
        figure_file(record_of(), FigureName.CLAIM, ".pdf")


def test_captions_say_what_a_figure_shows(record_of: Make) -> None:
    assert caption(record_of(), FigureName.CLAIM) == (
        "pate-gan: claimed epsilon 1, empirical epsilon at least 3.21 (95 % confidence)."
    )
    assert "FPR 0.00833 and TPR 0.975" in caption(record_of(), FigureName.ROC)
    assert "trained with the target" in caption(record_of(), FigureName.SCORES)


def saved(record: AuditRecord, folder: Path) -> Path:
    AuditResult.of(record, folder=folder).save(folder)
    return folder


@pytest.mark.usefixtures("invented_numbers")
def test_the_command_writes_a_figure_and_says_its_caption(record_of: Make, tmp_path: Path) -> None:
    run, file = saved(record_of(), tmp_path), tmp_path / "claim.svg"
    asked = ["report", str(run), "--figure", "claim", "-o", str(file), "--width", "4"]
    done = CliRunner().invoke(app, asked)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "caption   pate-gan: claimed epsilon 1" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if str(file) not in line)
    assert b"<svg" in file.read_bytes()
    assert not (run / "report.html").exists()
    said = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert said["figure"] == str(file)


@pytest.mark.usefixtures("invented_numbers")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--figure", "claim"], "--figure needs a file: give --out FILE"),
        (["--figure", "claim", "-o", "a.gif"], "a figure is a file of"),
        (["--figure", "forest", "-o", "a.pdf"], "forest"),
        (["-o", "a.pdf"], "--out belongs to a figure"),
        (["--width", "3"], "--width belongs to a figure"),
        (["--delta", "0.1"], "--delta belongs to the bounds: give --bounds"),
        (["--bounds", "--figure", "roc"], "give either --bounds or --figure, not both"),
        (["--figure", "claim", "-o", "no/such/folder.pdf"], "cannot be written"),
    ],
)
def test_the_command_refuses_what_makes_no_figure(
    record_of: Make, tmp_path: Path, words: list[str], message: str
) -> None:
    done = CliRunner().invoke(app, ["report", str(saved(record_of(), tmp_path)), *words])
    assert done.exit_code == 2
    assert message in done.stderr
