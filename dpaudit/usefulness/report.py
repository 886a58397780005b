"""The utility of one generator: as an object, as a JSON document, as text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dpaudit.formatting import TERMINAL_WIDTH, percent, printable
from dpaudit.model.column import Category
from dpaudit.results.document import Document
from dpaudit.usefulness.experiment import HEADLINE, MEAN, Measure, Setting
from dpaudit.usefulness.summary import UtilityScore

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


@dataclass(frozen=True, kw_only=True)
class UtilityReport(Document):
    """What one generator's tables are good for, beside noise and real data.

    Attributes:
        generator: Its name.
        parameters: Its parameters.
        claim: What it claims of privacy, in words; None if it claims nothing.
        source: Where the table came from.
        test_source: Where the test table came from; None if it is a part of the table.
        schema_inferred: Whether bounds and categories were read off the table.
        label: The column that is predicted.
        positive: Its value that is predicted.
        prevalence: Share of test rows with it: the AUPRC of a guess.
        train_rows: Real rows that generators and classifiers learn from.
        test_rows: Real rows to test on.
        positive_test_rows: How many of them are positive.
        rows: Synthetic rows that classifiers are trained on.
        repeats: Synthetic tables measured, each of another model.
        failures: Repeats in which the generator failed, with the reason; left out of all means.
        guesses: How often a classifier learned nothing from a synthetic table, over all repeats.
        classifiers: Which were trained.
        left_out: Which were not, because their library is not installed.
        confidence: Of intervals and tests.
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
        [found] = [one for one in self.scores if one.name == HEADLINE]
        return found

    @property
    def headline(self) -> str:
        """The main number in one line."""
        main = self.main
        said = "" if main.beats_noise else f", {NOT_DISTINGUISHABLE}"
        return (
            f"{self.generator}: AUROC {_number(main.mean)} ({_interval(main)}){said}; noise "
            f"{_number(main.noise_mean)}, real data {_number(main.real)}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader needs to know of the numbers, one sentence each."""
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
        flat = [one for one in self.scores if not one.beats_noise]
        if flat:
            yield (
                f"~ {NOT_DISTINGUISHABLE}: that its mean is not above that of noise is not refuted "
                f"at {percent(self.confidence)} (each number for itself)."
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
                f"Left out: {', '.join(self.left_out)}, not installed "
                "(pip install 'dpaudit[utility]')."
            )
        yield (
            f"Seed {self.seed}. All numbers are taken from real rows and nothing protects them: "
            "the generator's claim does not cover this report."
        )
        if self.schema_inferred:
            yield "Bounds and categories were read off the table, which no claim covers."

    def __str__(self) -> str:
        """The numbers by measure, then the notes; 80 columns."""
        lines = textwrap.wrap(self.headline, TERMINAL_WIDTH)
        for title, scores in self._tables(whole=False):
            lines += ["", *textwrap.wrap(title, TERMINAL_WIDTH), _line("", _HEADS)]
            lines += [_line(_label(one), _cells(one)) for one in scores]
        lines.append("")
        for note in self.notes:
            lines += textwrap.wrap(note, TERMINAL_WIDTH)
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The report as a Markdown page."""
        parts = [f"# Utility of {self.generator}\n\n{self.headline}.\n"]
        for title, scores in self._tables(whole=True):
            heads = ("", *_HEADS, "against noise")
            rows = [[_label(one), *_cells(one, mark=False), _against(one)] for one in scores]
            table = "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * 8, *rows))
            parts.append(f"## {title}\n\n{table}")
        parts.append("".join(f"- {note}\n" for note in self.notes))
        return "\n".join(parts)

    def _tables(self, *, whole: bool) -> Iterator[tuple[str, list[UtilityScore]]]:
        """Titles and numbers; all of setting C only if the whole is asked for."""
        for setting, measure in (
            (Setting.TRANSFER, Measure.AUROC),
            (Setting.TRANSFER, Measure.AUPRC),
            (Setting.SYNTHETIC, Measure.AUROC),
        ):
            found = [one for one in self.scores if one.name[:2] == (measure, setting)]
            if setting is Setting.SYNTHETIC and not whole:
                found = [one for one in found if one.classifier == MEAN]
            yield f"{setting.meaning.capitalize()}: {_TITLES[measure]}", found
        found = [one for one in self.scores if one.setting is None]
        if found:
            yield "Agreement with the real table, from 0 to 1", found


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


def _line(label: str, cells: tuple[str, ...]) -> str:
    widths = (8, 16, 7, 7, 7, 13)
    shown = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{label:<22}{shown}".rstrip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(score: UtilityScore) -> str:
    low, high = (min(max(limit, 0.0), 1.0) for limit in score.interval)
    return f"{low:.3f} to {high:.3f}"
