"""A frontier as data, which `frontier.json` holds by the same names, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dpaudit.comparison import gravest
from dpaudit.formatting import (
    Row,
    aligned,
    counted,
    percent,
    printable,
    rounded,
    rounded_down,
    row_lines,
    wrapped,
)
from dpaudit.results.document import Document, Positive, Probability, Whole, document_schema
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.results.record import AuditBrief
from dpaudit.results.sentences import bound_of
from dpaudit.results.structure import ReportTable
from dpaudit.results.verdict import Verdict

HEADER: Final = ("generator", "claim", "bound", "limit", "AUROC", "interval", "verdict")
_NUMERIC = frozenset({1, 2, 3, 4, 5})
AUDIT_FOLDER: Final = "audit"
"""The run folder of a point's audit, in its folder."""
_AS_NOISE: Final = "as noise"


class MeanScore(NamedTuple):
    """The mean of a score over tables, with its two-sided confidence interval.

    Attributes:
        mean: The mean.
        low: Lower end of the interval.
        high: Upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PointUtility:
    """The utility of the tables of one point.

    Attributes:
        tables: How many were measured, each of another model.
        failed: How many models failed; no mean contains them.
        auroc: Mean AUROC of the classifiers trained on synthetic and tested on real rows.
        auprc: Their mean AUPRC.
        p_value: p-value for a mean AUROC no higher than that of noise (one-sided Welch test).
        beats_noise: Whether that is refuted at the confidence level.
    """

    tables: Positive
    failed: Whole
    auroc: MeanScore
    auprc: MeanScore
    p_value: Probability
    beats_noise: bool


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """One generator at one epsilon.

    Attributes:
        asked: The generator as it was asked for.
        generator: Its name.
        parameters: What it was built with.
        epsilon: The privacy budget that it was given.
        audit: What its audit found; null if that failed.
        utility: The utility of its tables; null if that failed.
        folder: Its folder in that of the frontier; below it is the run folder of its audit.
        failures: Why a part failed, one line each.
    """

    asked: str
    generator: str
    parameters: Mapping[str, Any]
    epsilon: float
    audit: AuditBrief | None
    utility: PointUtility | None
    folder: str
    failures: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Frontier(Document):
    """Generators over epsilons on one table: claims, bounds and utility.

    Attributes:
        points: All points, generator by generator, epsilons in increasing order.
        noise: AUROC of noise, uniform over the schema and measured alike.
        real: AUROC of classifiers trained on the real rows.
        source: Where the table came from.
        test_source: Where the test table came from; null if it is a part of the table.
        schema_inferred: Whether bounds and categories were inferred from the table.
        label: The column that is predicted.
        prevalence: Share of test rows with the value that is predicted: the AUPRC of a guess.
        train_rows: Real rows that generators learn from where utility is measured; audits have all.
        test_rows: Real rows to test on.
        positive_test_rows: How many of them are positive.
        rows: Synthetic rows that classifiers are trained on.
        classifiers: Which were trained.
        confidence: Confidence of bounds, one-sided, and of intervals, two-sided.
        seed: Root of every random stream.
        versions: Versions of the software that ran.
        reproduce: The command that repeats it.
    """

    schema_version = 1

    points: tuple[FrontierPoint, ...]
    noise: MeanScore
    real: float
    source: str
    test_source: str | None
    schema_inferred: bool
    label: str
    prevalence: Probability
    train_rows: Positive
    test_rows: Positive
    positive_test_rows: Positive
    rows: Positive
    classifiers: tuple[str, ...]
    confidence: Probability
    seed: Whole
    versions: Mapping[str, str]
    reproduce: str

    @property
    def verdict(self) -> Verdict:
        """The most severe verdict of all audits; invalid if there is none."""
        return gravest([point.audit.verdict for point in self.points if point.audit])

    @property
    def headline(self) -> str:
        """The finding in one line."""
        return f"FRONTIER  {finding(self)}"

    @property
    def failures(self) -> tuple[str, ...]:
        """Every failure, with its point."""
        return tuple(
            f"{point.asked} at epsilon {point.epsilon:g}: {reason}"
            for point in self.points
            for reason in point.failures
        )

    def __str__(self) -> str:
        """The finding, the points as a table, and what they are: at most 80 columns wide."""
        table = frontier_table(self)
        rows = [*notes(self), *(Row("failed", one) for one in self.failures)]
        lines = [*wrapped(self.headline, rest="  "), ""]
        lines += [*aligned((table.header, *table.rows), numeric=table.numeric), ""]
        return "\n".join([*lines, *row_lines(rows)])


def frontier_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `frontier.json`; a fresh dictionary every time."""
    return document_schema(Frontier, title="dpaudit frontier")


def frontier_table(frontier: Frontier) -> ReportTable:
    """The points, one a row."""
    return ReportTable(HEADER, tuple(map(_row, frontier.points)), _NUMERIC)


def finding(frontier: Frontier) -> str:
    """The frontier in a few words: "no violation found at 6 points; 2 could not decide"."""
    audits = [point.audit for point in frontier.points if point.audit]
    violations = sum(audit.verdict is Verdict.VIOLATION for audit in audits)
    undecided = sum(audit.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID) for audit in audits)
    failed = sum(bool(point.failures) for point in frontier.points)
    many = counted(len(audits), "point")
    if not audits:
        said = "no point could be audited"
    elif violations:
        verb = "violates its" if violations == 1 else "violate their"
        said = f"{violations} of {many} {verb} claim"
    else:
        said = f"no violation found at {many}"
    rest = [f"{undecided} could not decide"] if undecided else []
    rest += [f"{failed} failed"] if failed else []
    return "; ".join([said, *rest])


def notes(frontier: Frontier) -> list[Row]:
    """Notes on the numbers, one or two sentences each, labelled by what they are about."""
    audits = sum(point.audit is not None for point in frontier.points)
    chance = 1.0 - frontier.confidence**audits
    low, high = frontier.noise.low, frontier.noise.high
    test = "a part held out" if frontier.test_source is None else printable(frontier.test_source)
    found = [
        (
            "AUROC",
            f"Mean AUROC of {counted(len(frontier.classifiers), 'classifier')} trained on "
            f"{frontier.rows} synthetic rows and tested on {frontier.test_rows} real ones ({test}),"
            f" of which {frontier.positive_test_rows} are positive. Real data reaches "
            f"{frontier.real:.3f}, noise {frontier.noise.mean:.3f} ({low:.3f} to {high:.3f}).",
        )
    ]
    if any(point.utility and not point.utility.beats_noise for point in frontier.points):
        found.append(("noise", f'"{_AS_NOISE}": an AUROC not significantly above that of noise.'))
    bounds = (
        f"Each bound and interval holds at {percent(frontier.confidence)} confidence, "
        "separately. Bounds are lower bounds on epsilon; the limit is the bound of an attack "
        "without errors, so an audit says nothing about a claim beyond it."
    )
    found.append(("bounds", bounds))
    if audits > 1:
        several = (
            f"Of {audits} independent audits of generators that satisfy their claims, one or "
            f"more would be flagged with probability at most {percent(round(chance, 2))}."
        )
        found.append(("several", several))
    covered = "Utility is measured on real rows, which no claim covers: this report is for those"
    held_out = (
        "who may see the table. Generators had the part that is not held out there, and all of the "
        "table in audits."
    )
    whose = "who may see the tables." if frontier.test_source is not None else held_out
    found.append(("readers", f"{covered} {whose}"))
    if frontier.schema_inferred:
        inferred = (
            "Bounds and categories were inferred from the table itself, which no claim covers: "
            f"{PUBLIC_SCHEMA}."
        )
        found.append(("warning", inferred))
    return [Row(label, fact) for label, fact in found]


def _row(point: FrontierPoint) -> tuple[str, ...]:
    audit, utility = point.audit, point.utility
    bounds = (rounded(point.epsilon), "-", "-")
    if audit is not None:
        claimed = rounded(audit.claim.value)
        bounds = (claimed, bound_of(audit), rounded_down(audit.max_provable))
    useful = ("-", "-")
    if utility is not None:
        mark = "" if utility.beats_noise else f" {_AS_NOISE}"
        _, low, high = utility.auroc
        useful = (f"{utility.auroc.mean:.3f}{mark}", f"{low:.3f} to {high:.3f}")
    verdict = "failed" if audit is None else str(audit.verdict)
    return (point.asked, *bounds, *useful, verdict)
