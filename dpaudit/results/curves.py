"""The figures of a result: their points, and their drawing by matplotlib for notebooks and papers.

All are pure functions of the result; reports draw the same points as SVG. matplotlib is an extra
and is imported when a figure is asked for. A legend below the plot, or to the right of a square one
on a wide page, shows every mark and its number, so that no text stands on an axis.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpaudit.bounds import Direction, RocCurve, guarantee_of, roc, upper_limits
from dpaudit.bounds.table import BOUNDS, BoundEntry, ValidBound
from dpaudit.errors import InputError, MissingExtraError, SettingsError
from dpaudit.formatting import percent, rounded, rounded_down, rounded_up, score_text
from dpaudit.model.choices import FigureName, member_named
from dpaudit.model.claim import Claim, NoClaim, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.results.record import AuditRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

_BINS = 20
_CURVE_POINTS = 61
_FARTHEST_SCORE = 4.0
# A claim this many times larger than the other values is not drawn: it would squeeze them.
FAR = 3.0
# e^700 is near the largest float; a claim beyond it permits everything.
_LARGEST_EXPONENT = 700.0


class ScoreHistogram(NamedTuple):
    """Scored trials of both worlds by score.

    Attributes:
        edges: Edges of the bins; shape (bins + 1,).
        inside: Trials of world in per bin; shape (bins,).
        outside: Trials of world out per bin; shape (bins,).
    """

    edges: npt.NDArray[np.float64]
    inside: npt.NDArray[np.int64]
    outside: npt.NDArray[np.int64]


class Point(NamedTuple):
    """A pair of rates: false positives and true positives."""

    fpr: float
    tpr: float


def shown_bounds(result: AuditRecord) -> list[tuple[BoundEntry, float]]:
    """The bounds that a result has and their values, in the table's order."""
    values = result.bounds or {}
    return [
        (entry, value)
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound) and (value := values.get(entry.key)) is not None
    ]


def attack_bounds(result: AuditRecord) -> dict[ValidBound, str]:
    """Labels of the bounds that any of the attacks has, in the table's order."""
    return {
        entry.key: entry.label
        for entry in BOUNDS
        if isinstance(entry.key, ValidBound)
        and any(attack.bounds.get(entry.key) is not None for attack in result.attacks)
    }


class Mark(NamedTuple):
    """A value on an axis, and its label in the legend."""

    value: float
    words: str


class ClaimAxis(NamedTuple):
    """What the figure of a claim shows on its one axis, which begins at 0.

    Attributes:
        claim: The claim; None without one.
        proved: The lower bound that decides.
        compared: The Clopper-Pearson bound, if there is one.
        detectable: The minimum detectable value, if there is one.
        limit: The upper limit for an audit of this size; None if nothing was scored.
        end: The end of the axis.
    """

    claim: Mark | None
    proved: Mark
    compared: Mark | None
    detectable: Mark | None
    limit: Mark | None
    end: float

    @property
    def claim_is_off(self) -> bool:
        """Whether the claim is too far away to be on the axis."""
        return self.claim is not None and self.claim.value > self.end


def sized_by(result: AuditRecord) -> str:
    """The unit whose number sets the limit: models, or canaries of one training."""
    return "models" if result.game.has_threshold else result.game.words.units


def claim_axis(result: AuditRecord) -> ClaimAxis:
    """Arranges claim, bounds and power on one axis, for every picture of them."""
    noun, claim = result.claim.quantity.noun, result.claim.value
    entry, compared = result.decided_by, result.clopper_pearson
    has_claim = not isinstance(result.claim, NoClaim)
    most, least, _ = result.power or (None, None, None)
    least = least if has_claim else None
    proved = result.proved or 0.0
    reach = max(value for value in (proved, compared, least, most, 0.1) if value is not None)
    off = has_claim and claim > FAR * reach
    rule = "" if entry is None else f", {entry.label}"
    confidence = percent(result.confidence)

    def mark(value: float | None, words: str) -> Mark | None:
        return None if value is None else Mark(value, words)

    return ClaimAxis(
        claim=mark(
            claim if has_claim else None,
            f"claim: {rounded(claim)}{' (off the axis)' if off else ''}",
        ),
        proved=Mark(proved, f"empirical {noun} ≥ {rounded_down(proved)} ({confidence}{rule})"),
        compared=mark(compared, f"Clopper-Pearson {noun} ≥ {rounded_down(compared)}"),
        detectable=mark(least, f"detectable {noun} (80 % power): {rounded_up(least)}"),
        limit=mark(most, f"limit for this many {sized_by(result)}: {rounded_down(most)}"),
        end=1.06 * (reach if off or not has_claim else max(reach, claim)),
    )


def has_scores(result: AuditRecord) -> bool:
    """Whether there are scores of both worlds to draw, and a threshold if the game has one."""
    scores = result.scores
    fixed = not result.game.has_threshold or (result.threshold and result.counts)
    return bool(scores[World.IN] and scores[World.OUT] and fixed)


def histogram(scores: Mapping[World, Sequence[float]]) -> ScoreHistogram:
    """Counts the scores of each world in bins of equal width.

    Bins span 0 to 1 if all scores lie there, as probabilities do; else the range of the scores,
    with half a unit on either side if all are equal.
    """
    every = [*scores[World.IN], *scores[World.OUT]]
    low, high = min(every), max(every)
    if low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    elif low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    return ScoreHistogram(
        edges, np.histogram(scores[World.IN], edges)[0], np.histogram(scores[World.OUT], edges)[0]
    )


def roc_of(result: AuditRecord) -> RocCurve:
    """The ROC curve of the scores, in the direction in which the attack guesses."""
    scores = result.scores
    values = np.array([*scores[World.IN], *scores[World.OUT]], dtype=np.float64)
    if result.threshold is not None and result.threshold.direction is Direction.LOWER:
        values = -values
    member = np.repeat([True, False], [len(scores[World.IN]), len(scores[World.OUT])])
    return roc(values, member)


class RocBand(NamedTuple):
    """Confidence limits of both rates at every threshold, as the corners of a band.

    Attributes:
        worse: Upper limits of the false-positive rates, lower limits of the true-positive rates.
        better: The other limits; same shape.
    """

    worse: RocCurve
    better: RocCurve


def roc_band(result: AuditRecord) -> RocBand | None:
    """Clopper-Pearson limits of the rates, each one-sided at the confidence of the audit.

    Each limit holds by itself, not for the curve as a whole.

    Returns:
        The band; None where the scored trials are dependent (many records per model), or their
        number depends on the results (a sequential audit).
    """
    if not result.game.has_fixed_independent_trials:
        return None
    n_in, n_out = (len(result.scores[world]) for world in (World.IN, World.OUT))
    fp, tp = _counts(roc_of(result), n_in=n_in, n_out=n_out)
    alpha = 1.0 - result.confidence
    of_in, of_out = upper_limits(n_in, alpha), upper_limits(n_out, alpha)
    return RocBand(
        worse=RocCurve(fpr=of_out[fp], tpr=1.0 - of_in[n_in - tp]),
        better=RocCurve(fpr=1.0 - of_out[n_out - fp], tpr=of_in[tp]),
    )


def _counts(curve: RocCurve, *, n_in: int, n_out: int) -> npt.NDArray[np.int64]:
    """False and true positives [2, points] at every threshold; tied scores count together."""
    corners = np.rint([curve.fpr * n_out, curve.tpr * n_in]).astype(np.int64).T
    stretches = [corners[:1]]
    for before, after in pairwise(corners):
        step = after - before
        along = int(step.max()) if step.min() == 0 else 1  # a slope is one step of tied scores
        stretches.append(before + np.outer(np.arange(1, along + 1), step // along))
    return np.concatenate(stretches).T


def on_logarithmic_axes(curve: RocCurve, *, low: float) -> RocCurve:
    """Adds points to a curve, because its straight segments are bent on logarithmic axes.

    Args:
        curve: The curve.
        low: Where both axes begin; smaller rates are drawn there.
    """
    between = np.geomspace(low, 1.0, _CURVE_POINTS)
    fpr = np.concatenate([curve.fpr, between])
    tpr = np.concatenate([curve.tpr, np.interp(between, curve.fpr, curve.tpr)])
    order = np.lexsort([tpr, fpr])
    return RocCurve(np.maximum(fpr[order], low), np.maximum(tpr[order], low))


def operating_point(result: AuditRecord) -> Point:
    """Rates at the chosen threshold.

    Raises:
        ValueError: If no attack was scored.
    """
    counts = result.counts
    if counts is None:
        raise ValueError("no attack was scored, so there are no rates")
    return Point(
        fpr=counts.false_positives / counts.n_out, tpr=1.0 - counts.false_negatives / counts.n_in
    )


def claim_region(claim: Claim) -> tuple[Point, ...]:
    """Corners of the rates that a claim permits, clockwise from (0, 0).

    Under (ε, δ)-DP, TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ, and the same with the
    guesses swapped (Kairouz, Oh and Viswanath 2015, Theorem 2.1). For other claims the corners are
    points along the trade-off curve.
    """
    if not isinstance(claim, PrivacyClaim):
        rates = scipy.special.ndtr(np.linspace(-_FARTHEST_SCORE, _FARTHEST_SCORE, _CURVE_POINTS))
        fpr = np.concatenate([[0.0], rates, [1.0]])
        upper = [Point(float(x), largest_tpr(claim, float(x))) for x in fpr]
        return (*upper, *(Point(1.0 - x, 1.0 - y) for x, y in upper))
    delta = claim.delta
    corner = (1.0 - delta) / (1.0 + math.exp(min(claim.epsilon, _LARGEST_EXPONENT)))
    return (
        Point(0.0, 0.0),
        Point(0.0, delta),
        Point(corner, 1.0 - corner),
        Point(1.0 - delta, 1.0),
        Point(1.0, 1.0),
        Point(1.0, 1.0 - delta),
        Point(1.0 - corner, corner),
        Point(delta, 0.0),
    )


def permitted_from(claim: Claim, *, low: float) -> tuple[Point, ...]:
    """The part of `claim_region` from a false-positive rate up, for logarithmic axes."""
    fpr = np.geomspace(low, 1.0, _CURVE_POINTS)
    most = guarantee_of(claim).most_tpr(fpr, claim.value)
    least = 1.0 - guarantee_of(claim).most_tpr(1.0 - fpr, claim.value)
    upper = [Point(float(x), float(y)) for x, y in zip(fpr, most, strict=True)]
    lower = [Point(float(x), float(y)) for x, y in zip(fpr, least, strict=True)]
    return (*upper, *reversed(lower))


def largest_tpr(claim: Claim, fpr: float) -> float:
    """Largest true-positive rate that a claim permits at a false-positive rate."""
    return float(guarantee_of(claim).most_tpr(np.array([fpr]), claim.value)[0])


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
        point = operating_point(result)
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
    if not has_scores(result):
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
    shown = claim_axis(result)
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
    claim, band, curve = result.claim, roc_band(result), roc_of(result)
    if not isinstance(claim, NoClaim):
        ax.fill(
            *_columns(claim_region(claim)),
            facecolor="#efe6f4",
            edgecolor=_CLAIM,
            linestyle="--",
            label=f"permitted by the claim ({claim.quantity.noun} {rounded(claim.value)})",
        )
    if band is not None:
        worse, better = (list(zip(*corners, strict=True)) for corners in band)
        label = f"{percent(result.confidence)} limits of each rate"
        corners = _columns([Point(*rates) for rates in [*worse, *reversed(better)]])
        ax.fill(*corners, facecolor=_IN, alpha=0.22, edgecolor="none", label=label)
    ax.plot([0, 1], [0, 1], ":", color=_INK, linewidth=1.2, label="chance")
    ax.plot(curve.fpr, curve.tpr, color=_IN, linewidth=2, label=f"attack {result.attack}")
    ax.plot(
        *operating_point(result),
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
    bins, words, threshold = histogram(result.scores), result.game.words, result.threshold
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
