"""PATE-G: settings, claim, training, and its models of a generator network and a student.

The network makes all columns but the label. `dpaudit trace` records who reads which rows, votes,
labels and what they cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.account import GaussianNoisyMax
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import encode, values_of, width
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, BETWEEN_0_AND_1, POSITIVE, check_number
from dpaudit.model.tables import load_table
from dpaudit.plugins.protocols import FloatArray, IntArray, Job
from dpaudit.plugins.recorder import Reader, Recorder
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import (
    TracedGenerator,
    claim_of_model,
    kept_rows,
    record_bounds,
    require_table,
    whole_table,
)
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.gan.wgan import sample_encoded, selu
from dpaudit_generators.networks.model import NetworkBatch, NetworkModel, perceptron
from dpaudit_generators.pate import Pate, TeacherEnsemble, labelled

if TYPE_CHECKING:
    from dpaudit_generators.gan.selu_training import Query


def features_of(schema: Schema) -> Schema:
    """The schema of all columns but the label."""
    others = tuple(column for column in schema.columns if column.name != schema.label)
    return replace(schema, columns=others, label=None)


class PateGModel(NetworkModel):
    """A trained PATE-G.

    The generator network makes all columns but the label. The critic is the student, a network from
    these columns to logits of the classes.
    """

    def probabilities(self, rows: FloatArray) -> FloatArray:
        """The student's probability of each class [n, k].

        Args:
            rows: All columns but the label, encoded in the order of their schema [n, width].
        """
        logits = self._logits(rows)
        each = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: FloatArray = each / each.sum(axis=1, keepdims=True)
        return shares

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """How real each row looks to the student [n]: log of the summed evidence of all classes.

        Args:
            rows: A table with the schema's columns; the label is not read.
        """
        features = features_of(self.schema)
        encoded = encode(rows[features.names], features).clip(0.0, 1.0)
        return np.asarray(np.logaddexp.reduce(self._logits(encoded), axis=1), dtype=np.float64)

    def labels(self, rows: FloatArray, *, seed: int | None) -> npt.NDArray[np.int64]:
        """Draws the class of each row from the student's probabilities.

        Args:
            rows: As `probabilities` takes them.
            seed: For audits; None means the system's entropy.
        """
        cumulative = self.probabilities(rows).cumsum(axis=1)
        drawn = rng_of(seed, "labels").random((len(rows), 1))
        return np.asarray((drawn >= cumulative[:, :-1]).sum(axis=1), dtype=np.int64)

    def _logits(self, rows: FloatArray) -> FloatArray:
        from dpaudit_generators.networks.source import Head

        order = Head(features_of(self.schema)).order
        return perceptron(self.critic, rows[:, order], selu)[1]

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models: all other columns first, then their label."""
        schema = models[0].schema
        features = features_of(schema)
        assert schema.label is not None
        place = schema.names.index(schema.label)
        weights = [model.weights for model in models]
        encoded = sample_encoded(weights, features, [()] * len(weights), n, seeds=seeds)
        return np.stack(
            [
                np.insert(values_of(rows, features), place, model.labels(rows, seed=seed), axis=1)
                for rows, model, seed in zip(encoded, models, seeds, strict=True)
            ]
        )


_CACHED: Final = 2**19
"""Models that are trained together should hold at most this many numbers in a step."""
_MOST_AT_ONCE: Final = 64
_LOUDEST: Final = 2.0**40
_EXERCISED: Final = 500
"""Labels of an exercise, as far as there are public rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PateG(GanSettings, TracedGenerator[PateGModel]):
    """PATE with a student that a GAN trains from few labels (Papernot et al. 2017, PATE-G).

    Teachers learn from disjoint parts of the table and label a few public rows by a noisy vote. The
    student is the critic of a GAN (Salimans et al. 2016): it gives labelled rows their class, all
    public rows any class, and generated ones none. Synthetic records are the GAN's, each with a
    label that is drawn from the student's probabilities.

    The claim covers the table that teachers learn from, labels and all else, for adding or removing
    one record: only noisy labels of public rows leave it. It does not cover the public rows, which
    the GAN reads without any protection. Without public rows the GAN reads the table itself, all
    columns but the label: then nothing is claimed.

    Attributes:
        schema: The public schema, whose label is binary or categorical.
        public: Public rows of the same kind as the table's: a table, or the name of a file; its
            label is not read. None uses the table's own rows, and nothing is claimed.
        epsilon: The budget of the labels.
        delta: Delta of the budget.
        teachers: Number of teachers.
        labels: How many public rows they label; the same ones in every training.
        critic_hidden: Width of each of the student's two hidden layers.

    Raises:
        SettingsError: If a setting is out of range.
        DataError: If the schema has no such label, or the public rows do not fit it.
    """

    schema: Schema
    public: pd.DataFrame | str | None = None
    epsilon: float = 1.0
    delta: float = 1e-5
    teachers: int = 25
    labels: int = 20
    rounds: int = 100
    critic_steps: int = 1
    batch: int = 64
    generator_hidden: Sequence[int] = (63,)
    critic_hidden: int = 32
    learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3

    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("epsilon", self.epsilon, POSITIVE)
        check_number("delta", self.delta, BETWEEN_0_AND_1)
        check_number("labels", self.labels, AT_LEAST_1, whole=True)
        _ = self._classes
        if self.public is not None:
            features = features_of(self.schema)
            given = load_table(self.public) if isinstance(self.public, str) else self.public
            kept = given[[name for name in features.names if name in given.columns]]
            require_table(kept, features)
            if len(kept) < self.labels:
                raise DataError(
                    f"there are {len(kept)} public rows and {self.labels} are to be labelled: give "
                    "more rows, or ask for fewer labels"
                )
            object.__setattr__(self, "public", features.canonical(kept))
        _ = self.aggregation  # validates the budget, and is pickled along

    @cached_property
    def aggregation(self) -> GaussianNoisyMax:
        """The noisy vote, with the least noise that keeps the labels within the budget.

        Raises:
            SettingsError: If no noise does.
        """

        def votes(scale: float) -> GaussianNoisyMax:
            return GaussianNoisyMax(teachers=self.teachers, classes=len(self._classes), scale=scale)

        low, high = 2.0**-10, 1.0
        while votes(high).epsilon(self.labels, delta=self.delta) > self.epsilon:
            low, high = high, 2.0 * high
            if high > _LOUDEST:
                raise SettingsError(f"no noise keeps {self.labels} labels within {self.epsilon}")
        while high / low > 1.0 + 1e-4:
            middle = (low * high) ** 0.5
            if votes(middle).epsilon(self.labels, delta=self.delta) > self.epsilon:
                low = middle
            else:
                high = middle
        return votes(high)

    @cached_property
    def claim(self) -> PrivacyClaim | None:
        """The cost of the labels, for the teachers' table; None without public rows."""
        if self.public is None:
            return None
        return self.aggregation.claim(self.labels, delta=self.delta)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the noisy labels; none if the rows themselves are shown."""
        if self.public is None:
            return ()
        return tuple(
            f"label of public row {row}: {name}"
            for row in self._asked(len(self.public))
            for name in self._classes[1:]
        )

    @property
    def models_at_once(self) -> int:
        """How many models train fastest together."""
        columns = width(self.schema) + 1
        held = 3 * self.batch * (columns + 2 * self.critic_hidden)
        held += 2 * self.critic_hidden * (columns + self.critic_hidden)
        return max(1, min(_MOST_AT_ONCE, _CACHED // held))

    def check(self, data: pd.DataFrame) -> None:
        """Refuses a table that nothing can be learned from; called once, outside the game.

        Args:
            data: The private table.

        Raises:
            DataError: If the table does not fit the schema, has fewer records than teachers, one
                class only, or no label in some row.
        """
        super().check(data)
        found = data[self.schema.label]
        if found.isna().any():
            raise DataError(f"column {self.schema.label!r}, the label, has gaps: fill or drop them")
        if len(data) < self.teachers:
            raise DataError(
                f"the table has {len(data)} rows for {self.teachers} teachers: use fewer, such as "
                f"teachers={max(2, len(data) // 10)}"
            )
        if found.nunique() < 2:
            raise DataError(
                f"label column {self.schema.label!r} holds one class only: hand in records of "
                "another class too"
            )

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], recording: _Recording | None = None
    ) -> NetworkBatch[PateGModel]:
        """As `fit_many`, on a table whose columns are the schema's; a recording follows one job."""
        from dpaudit_generators.gan.selu_training import train_students
        from dpaudit_generators.networks.source import Head

        features = features_of(self.schema)
        head = Head(features)
        shown = data[features.names] if self.public is None else self.public
        assert isinstance(shown, pd.DataFrame)
        rows = np.clip(encode(shown, features), 0.0, 1.0)
        queries = self._queries(data, rows, jobs, recording)
        trained = train_students(
            rows[:, head.order],
            queries,
            [job.seed for job in jobs],
            head=head,
            classes=len(self._classes),
            settings=self,
            on_rows=None if recording is None else recording.on_rows,
        )
        return NetworkBatch(
            tuple(
                PateGModel(
                    schema=self.schema,
                    weights=weights,
                    critic=critic,
                    claim=self.claim and claim_of_model(self.claim, seed=job.seed),
                    released_numbers=self._released(query),
                )
                for job, (weights, critic), query in zip(jobs, trained, queries, strict=True)
            )
        )

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""
        recorder.constant("teachers", self.teachers)
        recorder.constant("labels", self.labels)
        recorder.constant("batch", self.batch)
        record_bounds(self.schema, recorder)
        if self.aggregation.table is not None:
            recorder.promised(self.aggregation.table)
        model = self.train(data, [whole_table(seed)], _Recording(self, recorder))[0]
        return model.sample(n_rows, seed=seed)

    def exercises(self) -> tuple[PateG, ...]:
        """With two classes: many labels, with noise that shows whether they follow from the votes.

        The usual few labels cannot show that. At this noise one label in six contradicts unanimous
        teachers.
        """
        if len(self._classes) > 2:
            return ()
        labels = _EXERCISED if self.public is None else min(_EXERCISED, len(self.public))
        votes = replace(self.aggregation, scale=self.teachers / np.sqrt(2.0))
        budget = votes.epsilon(labels, delta=self.delta)
        return (replace(self, labels=labels, epsilon=budget, rounds=1),)

    def _queries(
        self,
        data: pd.DataFrame,
        rows: FloatArray,
        jobs: Sequence[Job],
        recording: _Recording | None,
    ) -> list[Query]:
        from sklearn.linear_model import RidgeClassifier

        from dpaudit_generators.gan.selu_training import Query

        pate = Pate(
            teacher=RidgeClassifier(class_weight="balanced"),
            classes=self._classes,
            aggregation=self.aggregation,
            labels=self.labels,
            delta=self.delta,
        )
        private = labelled(data, self.schema)
        classes = np.array([self._classes.index(name) for name in private.labels], dtype=np.int64)
        queries = []
        for job in jobs:
            kept = kept_rows(job, len(data))
            teachers = pate.teach(private.rows[kept], classes[kept], seed=job.seed)
            owned = kept if self.public is None else np.arange(len(rows))
            asked = owned[self._asked(len(owned))] if len(owned) else np.full(self.labels, -1)
            answered = teachers.label(rows[asked])
            labels = np.array([self._classes.index(name) for name in answered.labels], np.int64)
            if recording is not None:
                recording.on_labels(teachers, teachers.votes(rows[asked]), labels)
            queries.append(Query(owned, asked, labels))
        return queries

    def _released(self, query: Query) -> tuple[float, ...]:
        if self.public is None:
            return ()
        hot = query.labels[:, None] == np.arange(1, len(self._classes))
        return tuple(hot.astype(np.float64).ravel().tolist())

    def _asked(self, rows: int) -> IntArray:
        """Which of the public rows are labelled: the same ones in every training."""
        rng = rng_of(0, "rows to label")
        return rng.choice(rows, self.labels, replace=rows < self.labels)

    @property
    def _classes(self) -> tuple[object, ...]:
        for column in self.schema.columns:
            is_alone = len(self.schema.columns) == 1
            if column.name == self.schema.label and not (column.kind.numeric or is_alone):
                return tuple(column.categories)
        raise DataError(
            "the schema names no label that is binary or categorical, with another column to learn "
            "from: set `label` to such a column"
        )


class _Recording:
    """Records a training of one model for `dpaudit trace`.

    Args:
        generator: What is trained.
        recorder: Takes the records.
    """

    def __init__(self, generator: PateG, recorder: Recorder) -> None:
        self._generator, self._recorder = generator, recorder

    def on_labels(self, teachers: TeacherEnsemble, votes: IntArray, labels: IntArray) -> None:
        """Records which rows teachers read, how they voted, the labels and their cost.

        Of more than two classes the second is recorded, against all others.
        """
        generator, recorder = self._generator, self._recorder
        recorder.iteration()
        for index, rows in enumerate(teachers.cells):
            if len(rows):
                recorder.read(Reader.TEACHER, rows, index=index)
        recorder.voted(votes[:, 1], (labels == 1).astype(np.int64))
        paid = generator.labels - teachers.left
        spent = generator.aggregation.epsilon(paid, delta=generator.delta)
        recorder.charged(paid, before=0.0, after=spent, moments=None)

    def on_rows(self, rows: IntArray) -> None:
        """Records which rows a student reads, if they are the table's own."""
        self._recorder.iteration()
        if self._generator.public is None:
            self._recorder.read(Reader.STUDENT, rows[rows >= 0])
