"""The figures: the same bytes for the same numbers; each has a title and a description in words."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.bounds import joint_beta
from reports.pate_gan_audit.findings import proved
from reports.pate_gan_audit.kept import Record
from reports.pate_gan_audit.published import AVERAGE, CONFIDENCE, DELTA, EPSILON, SIX, WORST, Row
from reports.pate_gan_audit.setting import TEACHERS, Game

BLUE, RED, GREEN, GREY = "#1b6ca8", "#c0392b", "#2d7d46", "#555555"
_STYLE: Any = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",
}
Part = Mapping[str, Record]


class Mark(NamedTuple):
    """How one series is drawn: distinguished by shape and filling, not by colour alone."""

    label: str
    marker: str
    colour: str
    filled: bool


SERIES = {
    "paper": Mark("the paper", "D", GREY, True),
    "published": Mark("as published, Clopper-Pearson", "o", RED, False),
    "published proved": Mark("as published, proved", "o", RED, True),
    "valid": Mark("valid game, Clopper-Pearson", "^", BLUE, False),
    "valid proved": Mark("valid game, proved", "^", BLUE, True),
}
BAYESIAN = {
    "paper": Mark("the paper's errors", "D", GREY, True),
    "published": Mark("as published", "o", RED, True),
    "valid": Mark("valid game", "^", BLUE, True),
}
LINES = (("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ((0, (1, 3)), "v"))


def draw(found: Mapping[str, Part], folder: Path) -> None:
    """Draws every figure whose numbers are there."""
    folder.mkdir(parents=True, exist_ok=True)
    training = found["training"]
    with mpl.rc_context(_STYLE):
        if any(name.startswith("partition-") for name in training):
            _write(folder / "figure-2.svg", *_partitions(training))
        if any(name.startswith("losses-") for name in training):
            _write(folder / "figure-3.svg", *_losses(training))
        if any(name.startswith("moments-") for name in training):
            _write(folder / "figure-4.svg", *_moments(training))
        if found["average"] or found["worst"]:
            _write(folder / "figure-5.svg", *_bounds(found, bayesian=False))
            _write(folder / "figure-12.svg", *_bounds(found, bayesian=True))


def _partitions(training: Part) -> tuple[Figure, str, str]:
    shown = [name for name in SIX if f"partition-{name}" in training]
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / TEACHERS
    for place, name in enumerate(shown):
        for teacher, rows in enumerate(training[f"partition-{name}"]["distinct"]):
            left = place - 0.4 + teacher * width
            axes.bar(left, rows, width=0.9 * width, align="edge", color=BLUE)
    rows = next(iter(training.values()))["asked"]["rows"]
    axes.axhline(rows / TEACHERS, color=GREY, linestyle="--", linewidth=1.0)
    axes.set_xticks(range(len(shown)), shown)
    axes.set_ylabel("distinct records read")
    words = "; ".join(f"{n}: {training[f'partition-{n}']['distinct']}" for n in shown)
    return (
        figure,
        "Records read by each of five teachers",
        f"A bar for each teacher; the dashed line is a fifth of all {rows} records. {words}.",
    )


def _losses(training: Part) -> tuple[Figure, str, str]:
    shown = [n for n in SIX if training.get(f"losses-{n}", {}).get("own")]
    figure = Figure(figsize=(7.0, 1.9 * max(1, (len(shown) + 1) // 2)), layout="constrained")
    words = []
    for place, name in enumerate(shown):
        axes = figure.add_subplot(max(1, (len(shown) + 1) // 2), 2, place + 1)
        record = training[f"losses-{name}"]
        axes.plot(
            range(1, len(record["own"]) + 1),
            record["own"],
            color=BLUE,
            label="teacher that read the data first",
        )
        axes.plot(
            range(1, len(record["others"]) + 1),
            record["others"],
            color=RED,
            linestyle="--",
            label="the others, mean",
        )
        axes.set_title(name, loc="left", fontsize=9)
        axes.set_xlabel("iteration")
        axes.set_ylabel("cross-entropy")
        if place == 0:
            axes.legend(frameon=False, fontsize=7)
        own, others = record["own"], record["others"]
        words.append(f"{name}: from {own[0]:.3f} to {own[-1]:.3f}, others {others[0]:.3f} to "
                     f"{others[-1]:.3f}")  # fmt: skip
    return (
        figure,
        "Teachers' cross-entropy on the data that one of them read first",
        f"Solid: that teacher; dashed: the mean of the others. {'; '.join(words)}.",
    )


def _moments(training: Part) -> tuple[Figure, str, str]:
    records = {n: r for n, r in training.items() if n.startswith("moments-")}
    shown = sorted(records, key=lambda name: records[name]["asked"]["parameters"]["gamma"])
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    words = []
    for place, name in enumerate(shown):
        axes = figure.add_subplot(1, len(shown), place + 1)
        for (style, marker), (who, values) in zip(
            LINES, records[name]["moments"].items(), strict=True
        ):
            axes.plot(range(1, len(values) + 1), values, linestyle=style, marker=marker,
                      markevery=25, markersize=4, label=who)  # fmt: skip
        gamma = records[name]["asked"]["parameters"]["gamma"]
        axes.set_title(f"lambda {gamma:g}", loc="left", fontsize=9)
        axes.set_yscale("log")
        axes.set_xlabel("moment")
        said = ", ".join(f"{who} {eps:.4g}" for who, eps in records[name]["epsilon"].items())
        words.append(f"at lambda {gamma:g} epsilon is {said}")
    figure.axes[0].set_ylabel("log moment of all queries")
    figure.axes[0].legend(frameon=False, fontsize=7)
    return (
        figure,
        "Log moments 1 to 100 on the same votes, by accountant",
        f"One panel for each lambda, logarithmic; {'; '.join(words)}.",
    )


def _bounds(found: Mapping[str, Part], *, bayesian: bool) -> tuple[Figure, str, str]:
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    panels = (
        ("worst", "worst case, queries", WORST),
        ("average", "average case, GroundHog", AVERAGE),
    )
    words = []
    for place, (part, title, paper) in enumerate(panels):
        axes = figure.add_subplot(1, 2, place + 1)
        values = {n: estimates(found[part], n, paper[n], bayesian=bayesian) for n in SIX}
        _dots(axes, values, BAYESIAN if bayesian else SERIES)
        axes.set_title(title, loc="left", fontsize=9)
        said = "; ".join(
            f"{name} {', '.join(f'{key} {value:.2f}' for key, value in own.items())}"
            for name, own in values.items()
        )
        words.append(f"{title}: {said}")
    figure.axes[1].set_yticklabels([])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=7.5)
    kind = "Bayesian estimates of epsilon" if bayesian else "Lower bounds on epsilon"
    return figure, f"{kind}, by implementation and game", f"Line: the claim, 1. {'. '.join(words)}."


def estimates(part: Part, name: str, paper: Row, *, bayesian: bool) -> dict[str, float]:
    """What the figures show of one implementation: the paper's value, and ours by game."""
    values = {"paper": paper.joint_beta if bayesian else paper.clopper_pearson}
    for game in (Game.PUBLISHED, Game.VALID):
        record = part.get(f"{name}-{game}")
        if record is None or record["counts"] is None:
            continue
        if bayesian:
            values[game.value] = bayesian_estimate(record)
        else:
            if record["clopper_pearson"] is not None:
                values[game.value] = record["clopper_pearson"]
            values[f"{game} proved"] = proved(record)
    return values


def bayesian_estimate(record: Record) -> float:
    """The joint-posterior estimate from a record's errors: no proof."""
    return joint_beta(**record["counts"], delta=DELTA, confidence=CONFIDENCE)


def _dots(
    axes: Axes, values: Mapping[str, Mapping[str, float]], series: Mapping[str, Mark]
) -> None:
    step = 0.7 / max(1, len(series) - 1)
    axes.axvline(EPSILON, color="black", linestyle="--", linewidth=1.0)
    for offset, (key, mark) in enumerate(series.items()):
        points = [
            (own[key], place - 0.35 + offset * step)
            for place, own in enumerate(values.values())
            if key in own
        ]
        if points:
            axes.plot(*zip(*points, strict=True), linestyle="none", marker=mark.marker,
                      markersize=5, color=mark.colour, label=mark.label,
                      fillstyle="full" if mark.filled else "none")  # fmt: skip
    for place in range(len(values) - 1):
        axes.axhline(place + 0.5, color="#dddddd", linewidth=0.6)
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    highest = max(max(own.values()) for own in values.values())
    axes.set_xlim(-0.15, max(6.0, highest + 0.3))
    axes.set_xlabel("epsilon")


def _write(path: Path, figure: Figure, title: str, description: str) -> None:
    """Writes a figure whose `<svg>` has a title and a description."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    _, attributes, rest = re.split(r"<svg ([^>]*)>", buffer.getvalue(), maxsplit=1)
    path.write_text(
        f'<svg role="img" aria-labelledby="{path.stem}-title {path.stem}-desc" {attributes}>'
        f'<title id="{path.stem}-title">{html.escape(title)}</title>'
        f'<desc id="{path.stem}-desc">{html.escape(description)}</desc>{rest}'
    )
