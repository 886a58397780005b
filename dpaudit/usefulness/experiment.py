"""One experiment: the real tables, and the measurements of each synthetic one."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import MissingExtraError, SettingsError, TrialError
from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.named import train
from dpaudit.plugins.protocols import BoolArray, FloatArray, Generator
from dpaudit.plugins.release import accept
from dpaudit.seeds import Stream, seeded_globals
from dpaudit.usefulness.task import Areas, Examples, PredictionTask, curve_areas, predict

MEAN = "mean"
"""The name of the mean over all classifiers."""


class Setting(StrEnum):
    """What classifiers are trained and tested on."""

    REAL = "A"
    TRANSFER = "B"
    SYNTHETIC = "C"

    @property
    def meaning(self) -> str:
        """In words."""
        return {
            Setting.REAL: "trained on real, tested on real rows",
            Setting.TRANSFER: "trained on synthetic, tested on real rows",
            Setting.SYNTHETIC: "trained and tested on synthetic rows",
        }[self]


class Measure(StrEnum):
    """What is measured; larger is better."""

    AUROC = "auroc"
    AUPRC = "auprc"
    RANKING = "synthetic-ranking-agreement"
    COLUMN_RANKING = "column-ranking-agreement"
    COLUMNS = "column-fidelity"
    PAIRS = "pair-fidelity"


class ScoreName(NamedTuple):
    """Names one number.

    Attributes:
        measure: What is measured.
        setting: The setting; None for measures that compare two tables or settings.
        classifier: The classifier, or their mean; None for the same measures.
    """

    measure: Measure
    setting: Setting | None = None
    classifier: str | None = None


class Repeat(NamedTuple):
    """The measurements of one synthetic table, or of the real one.

    Attributes:
        scores: The numbers by name.
        guesses: Classifiers that learned nothing from it, whose scores are those of a guess.
    """

    scores: Mapping[ScoreName, float]
    guesses: int


HEADLINE = ScoreName(Measure.AUROC, Setting.TRANSFER, MEAN)
"""The number that stands for all."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Real tables and all settings; the measurements of a generator depend on nothing else.

    Attributes:
        task: What is predicted.
        train: Canonical real table that generators and classifiers learn from.
        test: Canonical real table that neither sees.
        rows: Synthetic rows to train classifiers on.
        classifiers: Their names.
        fidelity: Whether columns and pairs of columns are compared too.
        seed: Root of every random stream.
    """

    task: PredictionTask
    train: pd.DataFrame
    test: pd.DataFrame
    rows: int
    classifiers: tuple[str, ...]
    fidelity: bool
    seed: int

    @property
    def held_out_rows(self) -> int:
        """Synthetic rows to test on in setting C: the same proportion as in the real table."""
        return max(round(self.rows * len(self.test) / len(self.train)), 2)

    @cached_property
    def real(self) -> Repeat:
        """Setting A, and the fidelity of the real test table as a reference."""
        test = self._examples_of_test
        tested = self._tested(self.task.examples(self.train), {Setting.REAL: test}, "real", 0)
        return Repeat({**tested.scores, **self._fidelity_of(self.test, "real", 0)}, tested.guesses)

    def repeat(self, generator: Generator, *, source: str, number: int) -> Repeat:
        """Trains one model and measures one of its synthetic tables.

        Args:
            generator: The generator.
            source: Names its random streams.
            number: Number of the repeat.

        Returns:
            Settings B and C, the agreement of rankings with the real table, fidelity if asked for.

        Raises:
            DpauditError: If the generator fails; a `TrialError` unless it raises another itself.
        """
        table = self._sampled(generator, source, number)
        tested = self._tested(
            self.task.examples(table[: self.rows]),
            {
                Setting.TRANSFER: self._examples_of_test,
                Setting.SYNTHETIC: self.task.examples(table[self.rows :]),
            },
            source,
            number,
        )
        scores = {
            **tested.scores,
            **self._rankings(tested.scores, table),
            **self._fidelity_of(table, source, number),
        }
        return Repeat(scores, tested.guesses)

    @cached_property
    def _examples_of_test(self) -> Examples:
        return self.task.examples(self.test)

    @cached_property
    def _importance(self) -> FloatArray:
        return column_importance(self.train, self.task)

    def _stream(self, role: str, source: str, number: int) -> Stream:
        return Stream(self.seed, "utility", f"{source}/{role}", number)

    def _sampled(self, generator: Generator, source: str, number: int) -> pd.DataFrame:
        """A synthetic table in random order, so that any part of it is a random sample."""
        n_rows = self.rows + self.held_out_rows
        fit, sample = (self._stream(role, source, number).seed() for role in ("fit", "sample"))
        torch_was_loaded = "torch" in sys.modules
        with seeded_globals(fit), refusing("fit or sample raises", as_error=TrialError):
            model = train(generator, self.train, seed=fit)
            rows = accept(model.sample(n_rows, seed=sample), self.task.schema, n_rows)
        if not torch_was_loaded and "torch" in sys.modules:
            return self._sampled(generator, source, number)  # again: some draws were not seeded yet
        order = self._stream("order", source, number).rng().permutation(n_rows)
        return rows.iloc[order].reset_index(drop=True)

    def _tested(
        self, examples: Examples, tests: Mapping[Setting, Examples], source: str, number: int
    ) -> Repeat:
        scored: dict[tuple[Setting, str], Areas] = {}
        guesses = 0
        tables = [test.features for test in tests.values()]
        for name in self.classifiers:
            seed = self._stream(name, source, number).seed()
            prediction = predict(name, examples, tables, seed=seed)
            guesses += not prediction.learned
            for (setting, test), scores in zip(tests.items(), prediction.scores, strict=True):
                scored[setting, name] = curve_areas(test.positive, scores)
        return Repeat(dict(self._named(scored, tests)), guesses)

    def _named(
        self, scored: Mapping[tuple[Setting, str], Areas], settings: Mapping[Setting, Examples]
    ) -> Iterator[tuple[ScoreName, float]]:
        for setting in settings:
            of_all = {name: scored[setting, name] for name in self.classifiers}
            mean = Areas(*np.mean(list(of_all.values()), axis=0).tolist())
            for name, both in {MEAN: mean, **of_all}.items():
                yield ScoreName(Measure.AUROC, setting, name), both.auroc
                if setting is not Setting.SYNTHETIC:  # whose share of positive rows is its own
                    yield ScoreName(Measure.AUPRC, setting, name), both.auprc

    def _rankings(
        self, scores: Mapping[ScoreName, float], table: pd.DataFrame
    ) -> dict[ScoreName, float]:
        agreements = {}
        if len(self.classifiers) > 1:
            real, synthetic = (
                np.array([of[ScoreName(Measure.AUROC, setting, name)] for name in self.classifiers])
                for of, setting in ((self.real.scores, Setting.REAL), (scores, Setting.SYNTHETIC))
            )
            agreements[ScoreName(Measure.RANKING)] = ranking_agreement(real, synthetic)
        if len(self._importance) > 1:
            importance = column_importance(table, self.task)
            agreement = ranking_agreement(self._importance, importance)
            agreements[ScoreName(Measure.COLUMN_RANKING)] = agreement
        return agreements

    def _fidelity_of(self, table: pd.DataFrame, source: str, number: int) -> dict[ScoreName, float]:
        if not self.fidelity:
            return {}
        seed = self._stream("fidelity", source, number).seed()
        fidelity = measure_fidelity(self.train, table, self.task.schema, seed=seed)
        return {ScoreName(measure): value for measure, value in fidelity.items()}


def ranking_agreement(first: FloatArray, second: FloatArray) -> float:
    """The share of pairs that two lists of numbers put in the same strict order.

    For the scores of classifiers on real and on synthetic data this is the synthetic ranking
    agreement of Jordon, Yoon and van der Schaar 2019. A pair that is tied in either list does not
    agree; unrelated lists without ties agree on half of the pairs.

    Args:
        first: Numbers [k].
        second: Numbers [k] for the same things.

    Returns:
        The share, in [0, 1].

    Raises:
        SettingsError: If there are fewer than two numbers, or the lists differ in length.
    """
    if len(first) != len(second) or len(first) < 2:
        raise SettingsError(
            f"rankings of {len(first)} and {len(second)} things: rank the same things, at least 2"
        )
    rows, columns = np.triu_indices(len(first), 1)
    orders = np.sign(first[rows] - first[columns]) * np.sign(second[rows] - second[columns])
    return float((orders > 0).mean())


def column_importance(table: pd.DataFrame, task: PredictionTask) -> FloatArray:
    """The multiple correlation of each column with the label.

    For numbers without missing values this is the absolute Pearson correlation, as in the papers;
    for categories, and for numbers that may be missing, it is the correlation of the label with the
    best linear combination of the column's encoded values.

    Args:
        table: A canonical table.
        task: What is predicted.

    Returns:
        A number in [0, 1] for each column except the label, in schema order; 0 if the column or the
        label is constant.
    """
    features, positive = task.examples(table)
    blocks = []
    for block in layout(task.feature_schema):
        stop = block.value.stop if block.indicator is None else block.indicator + 1
        blocks.append(_multiple_correlation(features[:, block.value.start : stop], positive))
    return np.array(blocks)


def _multiple_correlation(block: FloatArray, positive: BoolArray) -> float:
    centred = block - block.mean(axis=0)
    label = positive - positive.mean()
    total = float(label @ label)
    if total == 0.0 or np.abs(centred).max() < 1e-12:
        return 0.0
    weights, *_ = np.linalg.lstsq(centred, label, rcond=None)
    explained = float(label @ centred @ weights) / total
    return float(np.sqrt(np.clip(explained, 0.0, 1.0)))


def check_installed() -> None:
    """Refuses to measure fidelity without SDMetrics.

    Raises:
        MissingExtraError: If it is not installed.
    """
    if importlib.util.find_spec("sdmetrics") is None:
        raise MissingExtraError("fidelity", "sdmetrics", "fidelity")


def measure_fidelity(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, *, seed: int
) -> dict[Measure, float]:
    """The similarity of columns and pairs of columns by SDMetrics (extra `fidelity`).

    Args:
        real: The real table, canonical.
        synthetic: The synthetic one, canonical.
        schema: Their schema.
        seed: Seed of SDMetrics' random draws, in [0, 2**32).

    Returns:
        Its finite scores in [0, 1]: for the columns' distributions ("Column Shapes") and for the
        dependence within pairs of columns ("Column Pair Trends").

    Raises:
        MissingExtraError: If SDMetrics is not installed.
    """
    check_installed()
    from sdmetrics.reports.single_table import QualityReport

    columns = {
        column.name: {"sdtype": "numerical" if column.kind.numeric else "categorical"}
        for column in schema.columns
    }
    report = QualityReport()
    with warnings.catch_warnings(), np.errstate(all="ignore"), seeded_globals(seed):
        warnings.simplefilter("ignore")  # constant columns have no correlation
        report.generate(
            _plain(real, schema), _plain(synthetic, schema), {"columns": columns}, verbose=False
        )
    scores = report.get_properties().set_index("Property")["Score"]
    named = {Measure.COLUMNS: "Column Shapes", Measure.PAIRS: "Column Pair Trends"}
    return {of: float(scores[its]) for of, its in named.items() if np.isfinite(scores[its])}


def _plain(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Categories as text: SDMetrics cannot sort those of several types."""
    texts = {
        column.name: table[column.name].map(str, na_action="ignore")
        for column in schema.columns
        if not column.kind.numeric
    }
    return table.assign(**texts)
