"""The pictures of the study: the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from reports.calibration.pages import worst_cell

Record = dict[str, Any]
OURS, OTHERS = "#1b6ca8", "#c0392b"
# Rates below are drawn here: a logarithmic axis has no 0.
_FLOOR = 1e-3


def draw(found: Record, folder: Path) -> None:
    """Draws all pictures into a folder."""
    for name, figure in (
        ("rates", _rates(found["cells"])),
        ("tightness", _tightness(found["tightness"])),
        ("speed", _speed(found["speed"])),
    ):
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")


def _rates(cells: Sequence[Record]) -> Figure:
    rules = list(dict.fromkeys((cell["ours"], cell["rule"]) for cell in cells))
    worst = [(ours, worst_cell(cells, rule, 0.05)) for ours, rule in rules]
    worst.sort(key=lambda one: (not one[0], one[1]["rate"]))
    figure = Figure(figsize=(7.5, 0.28 * len(worst) + 1.0))
    axes = figure.add_subplot()
    axes.axvline(0.05, color="black", linewidth=1.0)
    for row, (ours, cell) in enumerate(worst):
        colour = OURS if ours else OTHERS
        ends = [max(_FLOOR, cell[end]) for end in ("low", "high")]
        axes.plot(ends, [row, row], color=colour, linewidth=2.0)
        axes.plot(max(_FLOOR, cell["rate"]), row, "o", color=colour, markersize=5.0)
    axes.set_yticks(range(len(worst)), [cell["rule"] for _, cell in worst])
    axes.invert_yaxis()
    axes.set_xscale("log")
    ticks = (0.001, 0.01, 0.05, 0.2, 1.0)
    axes.set_xticks(ticks, [f"{100 * tick:g} %" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("worst false-violation rate at nominal 5 % (line), with 99 % interval")
    _plain(figure)
    return figure


def _tightness(found: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(5.0, 3.2))
    axes = figure.add_subplot()
    preset = [one for one in found if "preset" in one["rule"]]
    for rule, n in dict.fromkeys((one["rule"], one["scored"]) for one in preset):
        own = [one for one in preset if (one["rule"], one["scored"]) == (rule, n)]
        axes.plot(
            [one["epsilon"] for one in own],
            [one["tightness"] for one in own],
            marker="o",
            markersize=4.0,
            color=OURS if rule.startswith("exact") else OTHERS,
            linestyle="-" if n == max(one["scored"] for one in preset) else ":",
            label=f"{rule.split(',')[0]}, {n} trials",
        )
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("true epsilon of randomised response")
    axes.set_ylabel("median bound / true epsilon")
    axes.legend(frameon=False, fontsize=8)
    _plain(figure)
    return figure


def _speed(found: Sequence[Record]) -> Figure:
    figure = Figure(figsize=(5.0, 3.2))
    axes = figure.add_subplot()
    for nominal, colour in ((0.05, OURS), (0.01, OTHERS)):
        own = [one for one in found if one["nominal"] == nominal]
        epsilons = [one["epsilon"] for one in own]
        for key, style, label in (("mean", "-", "mean"), ("p90", ":", "90 % quantile")):
            axes.plot(
                epsilons,
                [one[key] for one in own],
                marker="o",
                markersize=4.0,
                color=colour,
                linestyle=style,
                label=f"{label}, alpha {nominal:g}",
            )
    axes.set_yscale("log")
    axes.set_xlabel("true epsilon (claim 1)")
    axes.set_ylabel("trials until proof")
    axes.legend(frameon=False, fontsize=8)
    _plain(figure)
    return figure


def _plain(figure: Figure) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
