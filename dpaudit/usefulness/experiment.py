"""One experiment: the real tables, and what is measured of each synthetic one beside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import TrialError
from dpaudit.plugins.adapt import train
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import FloatArray, Generator
from dpaudit.plugins.synthetic import accept
from dpaudit.seeds import Stream, seeded_globals
from dpaudit.usefulness.agreement import column_importance, ranking_agreement
from dpaudit.usefulness.fidelity import measure_fidelity
from dpaudit.usefulness.prediction import Areas, Examples, areas, predict
from dpaudit.usefulness.task import PredictionTask

MEAN = "mean"
"""Stands for the mean over all classifiers."""


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
        setting: Of which setting; None of measures that compare two tables or settings.
        classifier: Of which classifier, or their mean; None of the same measures.
    """

    measure: Measure
    setting: Setting | None = None
    classifier: str | None = None


class Repeat(NamedTuple):
    """What was measured of one synthetic table, or of the real one.

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
    """Real tables and all choices; what is measured of a generator depends on nothing else.

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
        """Synthetic rows to test on in setting C: in proportion, as of the real table."""
        return max(round(self.rows * len(self.test) / len(self.train)), 2)

    @cached_property
    def real(self) -> Repeat:
        """Setting A, and the fidelity of the real test table as what can be hoped for."""
        test = self._examples_of_test
        tested = self._tested(self.task.examples(self.train), {Setting.REAL: test}, "real", 0)
        return Repeat({**tested.scores, **self._fidelity_of(self.test, "real", 0)}, tested.guesses)

    def repeat(self, generator: Generator, *, source: str, number: int) -> Repeat:
        """Trains one model and measures one synthetic table of it.

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
        """A synthetic table in random order, so that its first rows are like its last."""
        n_rows = self.rows + self.held_out_rows
        fit, sample = (self._stream(role, source, number).seed() for role in ("fit", "sample"))
        torch_was_loaded = "torch" in sys.modules
        with seeded_globals(fit), refusing("fit or sample raises", as_error=TrialError):
            model = train(generator, self.train, seed=fit)
            found = accept(model.sample(n_rows, seed=sample), self.task.schema, n_rows)
        if not torch_was_loaded and "torch" in sys.modules:
            return self._sampled(generator, source, number)  # its first draws were not seeded
        order = self._stream("order", source, number).rng().permutation(n_rows)
        return found.iloc[order].reset_index(drop=True)

    def _tested(
        self, examples: Examples, tests: Mapping[Setting, Examples], source: str, number: int
    ) -> Repeat:
        found: dict[tuple[Setting, str], Areas] = {}
        guesses = 0
        tables = [test.features for test in tests.values()]
        for name in self.classifiers:
            seed = self._stream(name, source, number).seed()
            prediction = predict(name, examples, tables, seed=seed)
            guesses += not prediction.learned
            for (setting, test), scores in zip(tests.items(), prediction.scores, strict=True):
                found[setting, name] = areas(test.positive, scores)
        return Repeat(dict(self._named(found, tests)), guesses)

    def _named(
        self, found: Mapping[tuple[Setting, str], Areas], settings: Mapping[Setting, Examples]
    ) -> Iterator[tuple[ScoreName, float]]:
        for setting in settings:
            of_all = {name: found[setting, name] for name in self.classifiers}
            mean = Areas(*np.mean(list(of_all.values()), axis=0).tolist())
            for name, both in {MEAN: mean, **of_all}.items():
                yield ScoreName(Measure.AUROC, setting, name), both.auroc
                if setting is not Setting.SYNTHETIC:  # whose share of positive rows is its own
                    yield ScoreName(Measure.AUPRC, setting, name), both.auprc

    def _rankings(
        self, scores: Mapping[ScoreName, float], table: pd.DataFrame
    ) -> dict[ScoreName, float]:
        found = {}
        if len(self.classifiers) > 1:
            real, synthetic = (
                np.array([of[ScoreName(Measure.AUROC, setting, one)] for one in self.classifiers])
                for of, setting in (
                    (self.real.scores, Setting.REAL),
                    (scores, Setting.SYNTHETIC),
                )
            )
            found[ScoreName(Measure.RANKING)] = ranking_agreement(real, synthetic)
        if len(self._importance) > 1:
            importance = column_importance(table, self.task)
            agreement = ranking_agreement(self._importance, importance)
            found[ScoreName(Measure.COLUMN_RANKING)] = agreement
        return found

    def _fidelity_of(self, table: pd.DataFrame, source: str, number: int) -> dict[ScoreName, float]:
        if not self.fidelity:
            return {}
        seed = self._stream("fidelity", source, number).seed()
        found = measure_fidelity(self.train, table, self.task.schema, seed=seed)
        named = {Measure.COLUMNS: found.columns, Measure.PAIRS: found.pairs}
        return {ScoreName(name): value for name, value in named.items() if value is not None}
