"""The utility of one generator over its repeats, as an object, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.formatting import aligned, percent, printable, wrapped
from dpaudit.model.column import Category
from dpaudit.plugins.protocols import FloatArray
from dpaudit.results.document import Document
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.usefulness.experiment import HEADLINE, MEAN, Measure, Repeat, ScoreName, Setting

NOT_DISTINGUISHABLE: Final = "not distinguishable from noise"
_TITLES = {
    Measure.AUROC: "area under the ROC curve",
    Measure.AUPRC: "area under the precision-recall curve",
    Measure.RANKING: "ranking of classifiers",
    Measure.COLUMN_RANKING: "ranking of columns",
    Measure.COLUMNS: "columns alike",
    Measure.PAIRS: "pairs of columns alike",
}
_HEADS = ("mean", "interval", "noise", "real", "best", "noise's best")


class MeanInterval(NamedTuple):
    """A two-sided confidence interval of a mean over repeats."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class UtilityScore:
    """One number of a generator over its repeats, with its reference values.

    Attributes:
        measure: What was measured.
        setting: The setting; None for measures that compare two tables or settings.
        classifier: The classifier, or "mean"; None for the same measures.
        mean: Mean over repeats.
        standard_error: Standard error of the mean.
        interval: Confidence interval of the mean over models and tables, for the given test rows;
            cut off at the range of the score.
        best: The best repeat; for the mean over classifiers the mean of each classifier's best, as
            in the papers.
        noise_mean: Mean of uniform noise, measured alike.
        noise_best: Best of noise, over as many repeats.
        constant: Value for a table of equal rows.
        real: Value in setting A, or for the real test table; None if there is none.
        p_value: p-value of the hypothesis that the mean is not above that of noise (one-sided Welch
            test).
        beats_noise: Whether that hypothesis is rejected at the confidence level.
    """

    measure: Measure
    setting: Setting | None
    classifier: str | None
    mean: float
    standard_error: float
    interval: MeanInterval
    best: float
    noise_mean: float
    noise_best: float
    constant: float | None
    real: float | None
    p_value: float
    beats_noise: bool

    @property
    def name(self) -> ScoreName:
        """The name of the number."""
        return ScoreName(self.measure, self.setting, self.classifier)


def summarise(
    repeats: Sequence[Repeat],
    *,
    noise: Sequence[Repeat],
    constant: Repeat,
    real: Repeat,
    confidence: float,
) -> tuple[UtilityScore, ...]:
    """Summarises the measurements of a generator.

    Args:
        repeats: Repeats of the generator, at least two.
        noise: Repeats of noise, at least two.
        constant: The measures of a table of equal rows.
        real: The measures of the real table.
        confidence: Confidence of intervals and tests.

    Returns:
        A summary of each number that all repeats have, in the order of the first repeat.

    Raises:
        SettingsError: If repeats were measured with different classifiers.
    """
    both = [*repeats, *noise]
    if len({frozenset(name.classifier or MEAN for name in repeat.scores) for repeat in both}) > 1:
        raise SettingsError(
            "the repeats were measured with other classifiers than one another, so their means "
            "cannot be compared: measure them again where the same are installed"
        )
    names = [name for name in repeats[0].scores if all(name in repeat.scores for repeat in both)]
    scores = []
    for name in names:
        values, of_noise = _values(repeats, name), _values(noise, name)
        p_value = welch_p_value(values, of_noise)
        setting = None if name.setting is None else Setting.REAL
        scores.append(
            UtilityScore(
                measure=name.measure,
                setting=name.setting,
                classifier=name.classifier,
                mean=float(values.mean()),
                standard_error=_standard_error(values),
                interval=score_interval(values, confidence=confidence),
                best=_best(repeats, name),
                noise_mean=float(of_noise.mean()),
                noise_best=_best(noise, name),
                constant=constant.scores.get(name),
                real=real.scores.get(name._replace(setting=setting)),
                p_value=p_value,
                beats_noise=p_value <= 1.0 - confidence,
            )
        )
    return tuple(scores)


def mean_interval(values: FloatArray, *, confidence: float) -> MeanInterval:
    """Student's interval of the mean of values [n], n at least 2."""
    from scipy.stats import t

    reach = float(t.ppf((1.0 + confidence) / 2.0, len(values) - 1)) * _standard_error(values)
    return MeanInterval(float(values.mean()) - reach, float(values.mean()) + reach)


def score_interval(values: FloatArray, *, confidence: float) -> MeanInterval:
    """`mean_interval` cut off at [0, 1], the range of every measure of this package."""
    low, high = mean_interval(values, confidence=confidence)
    return MeanInterval(max(low, 0.0), min(high, 1.0))


def welch_p_value(values: FloatArray, others: FloatArray) -> float:
    """The p-value of "the mean is not above that of the others" (Welch 1947).

    Args:
        values: Values [n], n at least 2.
        others: Values [m], m at least 2.

    Returns:
        The p-value; 0 or 1 for two lists without variation.
    """
    from scipy.stats import t

    difference = float(values.mean() - others.mean())
    variances = np.array([_standard_error(values) ** 2, _standard_error(others) ** 2])
    total = float(variances.sum())
    if total <= 1e-24:  # both vary by rounding at most
        return 0.0 if difference > 1e-9 else 1.0
    degrees = total**2 / float(np.sum(variances**2 / np.array([len(values) - 1, len(others) - 1])))
    return float(t.sf(difference / np.sqrt(total), degrees))


def _values(repeats: Sequence[Repeat], name: ScoreName) -> FloatArray:
    return np.array([repeat.scores[name] for repeat in repeats])


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _best(repeats: Sequence[Repeat], name: ScoreName) -> float:
    if name.classifier != MEAN:
        return float(_values(repeats, name).max())
    single = [
        other
        for other in repeats[0].scores
        if other[:2] == name[:2] and other.classifier not in (None, MEAN)
    ]
    return float(np.mean([_values(repeats, name).max() for name in single]))


@dataclass(frozen=True, kw_only=True)
class UtilityReport(Document):
    """The utility of one generator's tables, compared with noise and real data.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        claim: Its privacy claim, in words; None if it has none.
        source: Where the table came from.
        test_source: Where the test table came from; None if it is a part of the table.
        schema_inferred: Whether bounds and categories were inferred from the table.
        label: The column that is predicted.
        positive: Its value that is predicted.
        prevalence: Share of test rows with it: the AUPRC of a guess.
        train_rows: Real rows that generators and classifiers learn from.
        test_rows: Real rows to test on.
        positive_test_rows: How many of them are positive.
        rows: Synthetic rows that classifiers are trained on.
        repeats: Synthetic tables measured, each from its own model.
        failures: Repeats in which the generator failed, with the reason; left out of all means.
        guesses: How often a classifier learned nothing from a synthetic table, over all repeats.
        classifiers: The classifiers that were trained.
        left_out: The classifiers whose library is not installed.
        confidence: Confidence of intervals and tests.
        seed: Root of every random stream.
        scores: All numbers.
    """

    schema_version = 1

    generator: str
    parameters: Mapping[str, Any]
    claim: str | None
    source: str
    test_source: str | None
    schema_inferred: bool
    label: str
    positive: Category
    prevalence: float
    train_rows: int
    test_rows: int
    positive_test_rows: int
    rows: int
    repeats: int
    failures: tuple[str, ...]
    guesses: int
    classifiers: tuple[str, ...]
    left_out: tuple[str, ...]
    confidence: float
    seed: int
    scores: tuple[UtilityScore, ...]

    @property
    def main(self) -> UtilityScore:
        """Mean AUROC of classifiers trained on synthetic rows and tested on real ones."""
        [headline_score] = [score for score in self.scores if score.name == HEADLINE]
        return headline_score

    @property
    def headline(self) -> str:
        """The main number in one line."""
        main = self.main
        caveat = "" if main.beats_noise else f", {NOT_DISTINGUISHABLE}"
        return (
            f"{self.generator}: AUROC {_number(main.mean)} ({_interval(main)}){caveat}; noise "
            f"{_number(main.noise_mean)}, real data {_number(main.real)}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the numbers, one sentence each."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        test = "a part held out" if self.test_source is None else printable(self.test_source)
        yield (
            f"Predicted: {printable(self.label)} = {self.positive!r}. Real rows: "
            f"{self.train_rows} to learn from, {self.test_rows} to test on ({test}), of which "
            f"{self.positive_test_rows} are positive: a guess has AUROC 0.5 and AUPRC "
            f"{_number(self.prevalence)}."
        )
        yield f"Claim of the generator: {self.claim or 'none'}."
        yield (
            f"Means of {self.repeats} models with one table of {self.rows} rows each, and their "
            f"{percent(self.confidence)} intervals: over models and tables, for these "
            "test rows. Noise is uniform over the schema and was measured alike. Best of "
            f"{self.repeats} is what papers report; chance alone makes it large."
        )
        flat = [score for score in self.scores if not score.beats_noise]
        if flat:
            yield (
                f"~ {NOT_DISTINGUISHABLE}: the mean is not significantly above that of noise at "
                f"{percent(self.confidence)} confidence (each number is tested separately)."
            )
        if self.guesses:
            yield (
                f"In {self.guesses} of {self.repeats * len(self.classifiers)} cases a classifier "
                "learned nothing from a synthetic table (one class only, or no fit): it guesses."
            )
        if self.failures:
            yield (
                f"The generator failed {len(self.failures)} times, which no mean contains: "
                f"{printable(self.failures[0])}."
            )
        if self.left_out:
            yield (
                f"Left out: {', '.join(self.left_out)}, not installed (pip install '.[utility]')."
            )
        yield (
            f"Seed {self.seed}. All numbers come from real rows without any protection: "
            "the generator's claim does not cover this report."
        )
        if self.schema_inferred:
            yield (
                "Bounds and categories were read off the table, which no claim covers: "
                f"{PUBLIC_SCHEMA}."
            )

    def __str__(self) -> str:
        """The numbers by measure, then the notes; 80 columns."""
        lines = wrapped(self.headline)
        for title, scores in self._tables(whole=False):
            rows = [("", *_HEADS), *((_label(score), *_cells(score)) for score in scores)]
            lines += ["", *wrapped(title), *aligned(rows, numeric=range(1, 7))]
        lines.append("")
        for note in self.notes:
            lines += wrapped(note)
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The report as a Markdown page."""
        parts = [f"# Utility of {self.generator}\n\n{self.headline}.\n"]
        for title, scores in self._tables(whole=True):
            heads = ("", *_HEADS, "against noise")
            rows = [
                [_label(score), *_cells(score, mark=False), _against(score)] for score in scores
            ]
            table = "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * 8, *rows))
            parts.append(f"## {title}\n\n{table}")
        parts.append("".join(f"- {note}\n" for note in self.notes))
        return "\n".join(parts)

    def _tables(self, *, whole: bool) -> Iterator[tuple[str, list[UtilityScore]]]:
        """Titles and numbers; the classifiers of setting C only if `whole`."""
        for setting, measure in (
            (Setting.TRANSFER, Measure.AUROC),
            (Setting.TRANSFER, Measure.AUPRC),
            (Setting.SYNTHETIC, Measure.AUROC),
        ):
            scores = [score for score in self.scores if score.name[:2] == (measure, setting)]
            if setting is Setting.SYNTHETIC and not whole:
                scores = [score for score in scores if score.classifier == MEAN]
            yield f"{setting.meaning.capitalize()}: {_TITLES[measure]}", scores
        scores = [score for score in self.scores if score.setting is None]
        if scores:
            yield "Agreement with the real table, from 0 to 1", scores


def _label(score: UtilityScore) -> str:
    if score.setting is None:
        return _TITLES[score.measure]
    return "mean of all" if score.classifier == MEAN else str(score.classifier)


def _cells(score: UtilityScore, *, mark: bool = True) -> tuple[str, ...]:
    return (
        _number(score.mean) + (" ~" if mark and not score.beats_noise else "  " if mark else ""),
        _interval(score),
        _number(score.noise_mean),
        _number(score.real),
        _number(score.best),
        _number(score.noise_best),
    )


def _against(score: UtilityScore) -> str:
    return "better" if score.beats_noise else NOT_DISTINGUISHABLE


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(score: UtilityScore) -> str:
    low, high = score.interval
    return f"{low:.3f} to {high:.3f}"
