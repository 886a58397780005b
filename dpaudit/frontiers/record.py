"""A frontier as data: what `frontier.json` holds, by the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpaudit.comparison.compare import gravest
from dpaudit.frontiers.words import frontier_lines
from dpaudit.results.document import Document, Positive, Probability, Whole, document_schema
from dpaudit.results.record import AuditBrief
from dpaudit.results.verdict import Verdict


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
    """What the tables of one point are good for.

    Attributes:
        tables: How many were measured, each of another model.
        failed: How many models failed; no mean contains them.
        auroc: Mean AUROC of the classifiers trained on synthetic and tested on real rows.
        auprc: Their mean AUPRC.
        p_value: Of a mean AUROC that is not above that of noise (one-sided Welch test).
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
        utility: What its tables are good for; null if that failed.
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
    """Generators over epsilons on one table: what each claims, what is proved, what it is good for.

    Attributes:
        points: All points, generator by generator, epsilons in increasing order.
        noise: AUROC of noise, uniform over the schema and measured alike.
        real: AUROC of classifiers trained on the real rows.
        source: Where the table came from.
        test_source: Where the test table came from; null if it is a part of the table.
        schema_inferred: Whether bounds and categories were read off the table.
        label: The column that is predicted.
        prevalence: Share of test rows with the value that is predicted: the AUPRC of a guess.
        train_rows: Real rows that generators learn from where utility is measured; audits have all.
        test_rows: Real rows to test on.
        positive_test_rows: How many of them are positive.
        rows: Synthetic rows that classifiers are trained on.
        classifiers: Which were trained.
        confidence: Of bounds, one-sided, and of intervals, two-sided.
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
        """The gravest verdict of all audits; invalid if there is none."""
        return gravest([point.audit.verdict for point in self.points if point.audit])

    @property
    def failures(self) -> tuple[str, ...]:
        """Every failure, with its point."""
        return tuple(
            f"{point.asked} at epsilon {point.epsilon:g}: {reason}"
            for point in self.points
            for reason in point.failures
        )

    def __str__(self) -> str:
        """The table for a terminal, at most 80 columns wide."""
        return "\n".join(frontier_lines(self))


def frontier_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `frontier.json`; a fresh dictionary every time."""
    return document_schema(Frontier, title="dpaudit frontier")
