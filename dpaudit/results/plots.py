"""The figures of a result by matplotlib, for notebooks and papers: pure functions of the result.

matplotlib is an extra and is imported when a figure is asked for. A legend below the plot, or to
the right of a square one on a wide page, shows every mark and its number, so that no text stands on
an axis.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dpaudit.errors import InputError, MissingExtraError, SettingsError
from dpaudit.formatting import percent, rounded, rounded_down, score_text
from dpaudit.model.choices import FigureName, member_named
from dpaudit.model.claim import NoClaim
from dpaudit.results import curves
from dpaudit.results.record import AuditRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_IN, _OUT, _CLAIM, _INK = "#b3420f", "#1f4e79", "#6a1b9a", "#222222"
_LARGEST_INCHES = 100.0
_BELOW = 0.5
"""Inches from the axis to the legend: room for its numbers and its name."""
_BESIDE = 0.1
"""Inches from a square plot to the legend at its right."""
_BESIDE_LETTERS = 19
"""Where the words of a legend at the right break."""
_LEGEND_POINTS = (8.3, 7.0, 6.0, 5.0)
"""Font sizes of a legend: the first, or the largest with which a file of a given size has room."""
_DOTS_PER_INCH = 300
_REPEATABLE: Final[dict[str, dict[str, Any]]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {},
}
"""Fixed metadata for each kind of file, so that the same result always gives the same bytes."""
FILE_KINDS: Final = tuple(_REPEATABLE)


SIZES: Final = {
    FigureName.CLAIM: (4.5, 2.6),
    FigureName.ROC: (4.0, 5.0),
    FigureName.SCORES: (4.5, 3.4),
}
"""Inches of width and height of a figure, unless its caller says so."""


def plot(
    result: AuditRecord, ax: Axes | None = None, *, figure: FigureName | str = FigureName.CLAIM
) -> Axes:
    """Draws a figure of a result into axes.

    Args:
        result: The record of an audit.
        ax: The axes; those of a new figure of pyplot if None.
        figure: "claim", "roc" or "scores".

    Returns:
        The axes.

    Raises:
        InputError: If the result lacks what the figure shows.
        MissingExtraError: If matplotlib is not installed.
        SettingsError: If there is no such figure, or its name was passed as `ax`.
    """
    if isinstance(ax, str):
        raise SettingsError(f"a figure is named by its keyword: plot(figure={ax!r})")
    name = member_named("figure", FigureName, figure)
    draw = _drawing(result, name)
    if ax is None:
        _require_matplotlib()
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=SIZES[name], layout="constrained")
    draw(result, ax)
    _set_legend(ax)
    return ax


def figure_file(
    result: AuditRecord,
    figure: FigureName,
    kind: str,
    *,
    width: float | None = None,
    height: float | None = None,
) -> bytes:
    """Draws a figure of a result as a file, reproducible byte by byte.

    Args:
        result: The record of an audit.
        figure: Which figure.
        kind: ".pdf", ".svg" or ".png".
        width: Inches; those of `SIZES` if None.
        height: Inches, likewise.

    Returns:
        The bytes of the file.

    Raises:
        InputError: If the result lacks what the figure shows.
        MissingExtraError: If matplotlib is not installed.
        SettingsError: If there is no such kind of file, or the figure does not fit a size, which is
            from 1 to 100 inches.
    """
    if kind not in FILE_KINDS:
        raise SettingsError(f"a figure is a file of {', '.join(FILE_KINDS)}, not {kind or 'none'}")
    usual_width, usual_height = SIZES[figure]
    wide = usual_width if width is None else width
    tall = usual_height if height is None else height
    for name, inches in (("width", wide), ("height", tall)):
        if not 1.0 <= inches <= _LARGEST_INCHES:
            raise SettingsError(f"`{name}` must be from 1 to 100 inches, got {inches:g}")
    draw = _drawing(result, figure)
    _require_matplotlib()
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Fonts that publishers take, and identifiers that do not change.
    with mpl.rc_context({"pdf.fonttype": 42, "svg.hashsalt": "dpaudit"}):
        page = Figure(figsize=(wide, tall), layout="constrained")
        ax = page.add_subplot()
        draw(result, ax)
        if not any(_fits(page, _set_legend(ax, points=points)) for points in _LEGEND_POINTS):
            raise SettingsError(
                f"{wide:g} x {tall:g} inches have no room for the figure and its "
                "legend: give a larger `width` or `height`"
            )
        file = io.BytesIO()
        page.savefig(file, format=kind[1:], dpi=_DOTS_PER_INCH, metadata=_REPEATABLE[kind])
    return file.getvalue()


def caption(result: AuditRecord, figure: FigureName) -> str:
    """The caption of a figure, in one line."""
    noun, confidence = result.claim.quantity.noun, percent(result.confidence)
    if figure is FigureName.CLAIM:
        claimed = f"claimed {noun} {rounded(result.claim.value)}"
        if isinstance(result.claim, NoClaim):
            claimed = f"no claim at delta {rounded(result.claim.delta)}"
        return (
            f"{result.generator.name}: {claimed}, empirical {noun} at least "
            f"{rounded_down(result.proved)} ({confidence} confidence)."
        )
    if figure is FigureName.ROC:
        point = curves.operating_point(result)
        return (
            f"{result.generator.name}: ROC curve of the attack {result.attack}; at its threshold "
            f"FPR {rounded(point.fpr)} and TPR {rounded(point.tpr)}."
        )
    words = result.game.words
    return (
        f"{result.generator.name}: scores of the attack {result.attack} on {words.units} "
        f"{words.inside} and {words.outside}."
    )


def _drawing(result: AuditRecord, figure: FigureName) -> Callable[[AuditRecord, Axes], None]:
    """The function that draws a figure.

    Raises:
        InputError: If the result lacks what the figure shows.
    """
    if figure is FigureName.CLAIM:
        if result.proved is None:
            raise InputError("no trial was scored, so there is no bound to draw")
        return _claim
    if not curves.has_scores(result):
        raise InputError("no attack was scored, so there are no scores to draw: ask for `claim`")
    if figure is FigureName.SCORES:
        return _scores
    if result.counts is None:
        raise InputError(
            "canaries of one training have no ROC curve of independent trials: ask for `scores`"
        )
    return _roc


def _fits(page: Figure, legend: Legend) -> bool:
    """Whether the plot has enough room and the legend is not cut off."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="constrained_layout not applied")
        try:
            page.draw_without_rendering()
        except UserWarning:
            return False
    words, paper = legend.get_window_extent(), page.bbox
    return bool(words.x1 <= paper.x1 and words.y0 >= paper.y0)


def _require_matplotlib() -> None:
    """Refuses to continue without matplotlib, and says how to install it.

    Raises:
        MissingExtraError: If it is missing.
    """
    try:
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise MissingExtraError("a figure", "matplotlib", "plot") from None


def _claim(result: AuditRecord, ax: Axes) -> None:
    """One axis: bars up to the bounds, marks for the claim and for what the audit can reach."""
    shown = curves.claim_axis(result)
    if shown.claim is not None:
        value, words = shown.claim
        ax.axvline(value, color=_CLAIM, linewidth=2.2, zorder=3, label=words)
    ax.barh(0.0, shown.proved.value, height=0.5, color=_IN, label=shown.proved.words)
    if shown.compared is not None:
        value, words = shown.compared
        thin: dict[str, Any] = {
            "height": 0.14,
            "color": "white",
            "edgecolor": _INK,
            "linewidth": 0.8,
        }
        ax.barh(0.0, value, label=words, **thin)
    if shown.detectable is not None:
        value, words = shown.detectable
        ax.plot(value, -0.4, "v", color=_INK, markersize=7, label=words)
    if shown.limit is not None:
        value, words = shown.limit
        far = max(value, shown.end)
        ax.axvspan(value, far, facecolor="#dddddd", edgecolor="none", label=words)
    noun = result.claim.quantity.noun
    ax.set(xlim=(0.0, shown.end), ylim=(-0.5, 0.5), yticks=[], xlabel=noun)
    ax.spines[["left", "right", "top"]].set_visible(False)


def _roc(result: AuditRecord, ax: Axes) -> None:
    """The curve with its limits, the chosen point, chance, and what the claim permits."""
    claim, band, curve = result.claim, curves.roc_band(result), curves.roc_of(result)
    if not isinstance(claim, NoClaim):
        ax.fill(
            *_columns(curves.claim_region(claim)),
            facecolor="#efe6f4",
            edgecolor=_CLAIM,
            linestyle="--",
            label=f"permitted by the claim ({claim.quantity.noun} {rounded(claim.value)})",
        )
    if band is not None:
        worse, better = (list(zip(*corners, strict=True)) for corners in band)
        label = f"{percent(result.confidence)} limits of each rate"
        corners = _columns([curves.Point(*rates) for rates in [*worse, *reversed(better)]])
        ax.fill(*corners, facecolor=_IN, alpha=0.22, edgecolor="none", label=label)
    ax.plot([0, 1], [0, 1], ":", color=_INK, linewidth=1.2, label="chance")
    ax.plot(curve.fpr, curve.tpr, color=_IN, linewidth=2, label=f"attack {result.attack}")
    ax.plot(
        *curves.operating_point(result),
        "o",
        color=_INK,
        markerfacecolor="white",
        clip_on=False,
        label="at the threshold",
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")


def _scores(result: AuditRecord, ax: Axes) -> None:
    """The scores of both worlds over one axis, and the threshold."""
    bins, words, threshold = curves.histogram(result.scores), result.game.words, result.threshold
    inside, outside = (100.0 * of / of.sum() for of in (bins.inside, bins.outside))
    ax.stairs(
        inside,
        bins.edges,
        fill=True,
        facecolor="#fbe3d6",
        edgecolor=_IN,
        hatch="///",
        label=words.inside,
    )
    ax.stairs(outside, bins.edges, color=_OUT, linewidth=2, label=words.outside)
    if threshold is not None:
        label = f"threshold: {score_text(threshold.value)}"
        ax.axvline(threshold.value, color=_INK, linestyle="--", linewidth=1.2, label=label)
    ax.set_ylim(bottom=0.0)
    ax.set(xlabel="membership score", ylabel=f"% of {words.units}")
    ax.spines[["right", "top"]].set_visible(False)


def _columns(points: Any) -> tuple[list[float], list[float]]:
    x, y = zip(*points, strict=True)
    return list(x), list(y)


def _set_legend(ax: Axes, *, points: float = _LEGEND_POINTS[0]) -> Legend:
    """Sets the legend under the name of the axis, the same distance whatever the size.

    On a page that is wider than tall, a square plot has it at the right, in shorter lines.
    """
    from matplotlib.transforms import ScaledTranslation

    page = ax.get_figure(root=True)
    assert page is not None  # axes are made in one
    width, height = page.get_size_inches()
    handles, labels = ax.get_legend_handles_labels()
    corner, moved = (0.0, 0.0), (0.0, -_BELOW)
    if ax.get_aspect() == 1.0 and width > height:
        corner, moved = (1.0, 1.0), (_BESIDE, 0.0)
        labels = [textwrap.fill(label, _BESIDE_LETTERS) for label in labels]
    return ax.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=corner,
        bbox_transform=ax.transAxes + ScaledTranslation(*moved, page.dpi_scale_trans),
        frameon=False,
        fontsize=points,
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=1.5,
    )
