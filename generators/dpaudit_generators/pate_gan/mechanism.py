"""The common part of both kinds of PATE-GAN, and the kind that starts from noisy marginals.

A student learns from the noisy votes of teachers; see `from_noise` for the other kind.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.account import LabelPlan, calibrate_gaussian
from dpaudit.account.conversion import gaussian_mu
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import encode, encode_values, table_of, values_of, width
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.schema import Schema
from dpaudit.model.setting import BETWEEN_0_AND_1, check_number
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import (
    TracedGenerator,
    claim_of_model,
    kept_rows,
    record_bounds,
    whole_table,
)
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.networks.model import Float32Array, NetworkBatch, flat
from dpaudit_generators.pate import IndexArray, cells
from dpaudit_generators.pate_gan.model import PateGanModel
from dpaudit_generators.pate_gan.settings import Records, Trained, Trainee, TrainingSettings

if TYPE_CHECKING:
    from torch import Tensor

    from dpaudit_generators.networks.source import Head, Noise
    from dpaudit_generators.pate_gan.training import Observer, Round, Teachers


_CACHED: Final = 2**20
"""Models that are trained together should hold at most this many numbers in a round: a cache."""
_MOST_AT_ONCE: Final = 1024


@dataclass(frozen=True, kw_only=True)
class TaughtGenerator(TrainingSettings, TracedGenerator[PateGanModel]):
    """A generator whose student learns from the noisy labels of k teachers.

    All constants come from public settings. A keyed hash assigns records to teachers, so a record
    reaches one teacher (`pate.cells`), whose training does not read the other cells (`Teachers`).
    So one vote of k changes by one, and a released label is a draw from a public table. The student
    reads released labels only, which is post-processing.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is the claim, not the amount spent in training.
        delta: The delta of the budget.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels. If the budget pays for more labels
            than the student's steps can use, it buys only as many, with less noise.
        device: Where the networks are trained: "cpu", "cuda" or "cuda:N". Devices differ by
            rounding alone: weights agree to 1e-5 after 30 rounds.

    Raises:
        SettingsError: If a setting is out of range.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    teachers: int = 50
    accuracy: float = 0.65
    device: str = "cpu"

    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise SettingsError(f"device is {self.device!r}: use cpu, cuda or cuda:N")
        _ = self.plan, self.marginals  # validates the budget

    @property
    @abstractmethod
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""

    @property
    @abstractmethod
    def plan(self) -> LabelPlan:
        """Number and noise of the labels that the budget pays for; does not depend on data."""

    @abstractmethod
    def spent(self, labels: int) -> float:
        """Epsilon of this many labels and of everything released before them.

        Args:
            labels: Number of labels, at least 0.
        """

    @property
    def marginals(self) -> Marginals | None:
        """The noisy marginals that records are drawn from; None if a network makes them."""
        return None

    @property
    def label(self) -> Column | None:
        """The label column, if the schema names one."""
        return next((c for c in self.schema.columns if c.name == self.schema.label), None)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the numbers that counts and votes release; they do not depend on a table.

        Labels are summed by round: which queries they answer follows from them and from the seed of
        the generator network, so the position of a single one carries no information.
        """
        rounds = min(self.rounds, self.plan.labels)
        names = [f"share of 1 among the labels of round {number + 1}" for number in range(rounds)]
        counts = () if self.marginals is None else self.marginals.released_facts
        return (*names, *self._histogram_facts, *counts)

    @property
    def _histogram_facts(self) -> Sequence[str]:
        """Names of the numbers that noisy histograms release."""
        return ()

    def released_effect(self, record: pd.DataFrame) -> FloatArray:
        """The effect of a record on each released fact, as far as the settings alone determine it.

        Args:
            record: A table of one row.
        """
        counts = np.empty(0) if self.marginals is None else self.marginals.released_effect(record)
        votes = np.zeros(len(self.released_facts) - len(counts))  # any teacher may have it
        return np.concatenate([votes, counts])

    def check(self, data: pd.DataFrame) -> None:
        """Refuses an unusable table; called once, outside the game.

        `fit` itself never fails for lack of records or classes, because an error would reveal them.

        Args:
            data: The private table.

        Raises:
            DataError: If the table does not fit the schema, there are fewer records than teachers,
                or all have the same label.
            SettingsError: If torch does not find the device.
        """
        super().check(data)
        self._require_device()
        if len(data) < self.teachers:
            raise DataError(
                f"the table has {len(data)} rows for {self.teachers} teachers: most would have "
                f"nothing to learn from; use fewer, such as teachers={max(2, len(data) // 10)}"
            )
        label = self.schema.label
        if label is not None and data[label].nunique(dropna=False) < 2:
            raise DataError(
                f"label column {label!r} holds one class only: hand in records of another class "
                "too, or drop the column"
            )

    def _require_device(self) -> None:
        if self.device == "cpu":
            return
        import torch

        there = torch.cuda.device_count()
        if int(self.device.partition(":")[2] or 0) >= there:
            raise SettingsError(
                f"device is {self.device!r}, but torch finds {there} CUDA devices: use cpu"
            )

    @property
    def models_at_once(self) -> int:
        """The number of models that train fastest together.

        More models share the cost of each operation; too many no longer fit into a cache. On a GPU
        each trains alone: how its kernels round depends on the size of the batch, and a model must
        not depend on those that it is trained with.
        """
        if self.device != "cpu":
            return 1
        columns = width(self.schema)
        steps = self.teacher_steps + self.generator_steps + self.student_steps
        made = steps * self.batch * (max([self.noise_width, columns, *self.generator_hidden]) + 1)
        taught = self.teachers * self.batch * (max([columns, *self.teacher_hidden]) + 1)
        return max(1, min(_MOST_AT_ONCE, _CACHED // max(made, taught)))

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], observer: Observer | None = None
    ) -> NetworkBatch[PateGanModel]:
        """As `fit_many`, on a table whose columns are the schema's, followed by an observer.

        Raises:
            SettingsError: If torch does not find the device.
        """
        import torch

        from dpaudit_generators.networks.source import Head
        from dpaudit_generators.pate_gan.training import train

        self._require_device()
        head = Head(self.schema, given=self._releases_proportions)
        prepared = self._prepared(data, jobs, head)
        trained = train(
            [trainee for _, trainee in prepared],
            head=head,
            plan=self.plan,
            settings=self,
            device=torch.device(self.device),
            observer=observer,
        )
        models = [self._model(*one, own) for one, own in zip(prepared, trained, strict=True)]
        return NetworkBatch(tuple(models))

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""
        recorder.constant("teachers", self.plan.teachers)
        recorder.constant("batch", self.batch)
        recorder.constant("labels", self.plan.labels)
        recorder.promised(self.plan.table)
        recording = _Recording(self, recorder, len(data))
        model = self.train(data, [whole_table(seed)], recording)[0]
        record_bounds(model.schema, recorder)
        return recording.sample(model, n_rows, seed=seed)

    @property
    def _releases_proportions(self) -> bool:
        """Whether records are made given a label, whose proportions are released."""
        return False

    def _prepared(
        self, data: pd.DataFrame, jobs: Sequence[Job], head: Head
    ) -> list[tuple[Schema, Trainee]]:
        """Makes the noisy releases that trainings may use, and assigns records to teachers.

        Returns:
            For each job the schema whose bounds scale its numbers, and what it is trained on.
        """
        public = encode(data, self.schema)
        rows: dict[Schema, Float32Array] = {}  # models of one scale share their records
        marginals = self.marginals
        starts = [None] * len(jobs) if marginals is None else marginals.fit_many(data, jobs).models
        prepared = []
        for job, start in zip(jobs, starts, strict=True):
            kept = kept_rows(job, len(data))
            # The public encoding is hashed for any bounds: private bounds must not change the
            # partition.
            key = rng_of(job.seed, "partition").bytes(32)
            owned = [kept[cell] for cell in cells(public[kept], teachers=self.teachers, key=key)]
            schema, proportions = self._histograms(data.iloc[kept], job.seed)
            if schema not in rows:
                scaled = public if schema == self.schema else encode(data, schema)
                scaled = np.clip(scaled, 0.0, 1.0)  # a value beyond the bounds counts as the bound
                rows[schema] = scaled[:, head.order].astype(np.float32)
            records = Records(rows[schema], owned)
            trainee = Trainee(records, proportions, self.plan.labels, job.seed, start)
            prepared.append((schema, trainee))
        return prepared

    def _histograms(self, data: pd.DataFrame, seed: int | None) -> tuple[Schema, tuple[float, ...]]:
        """The releases of noisy histograms before any teacher trains.

        Returns:
            The schema whose bounds scale the numbers, and proportions of the label's classes or
            none.
        """
        del data, seed
        return self.schema, ()

    def _histogram_numbers(self, schema: Schema, trainee: Trainee) -> Sequence[float]:
        """The numbers that `_histogram_facts` names."""
        del schema, trainee
        return ()

    def _model(self, schema: Schema, trainee: Trainee, trained: Trained) -> PateGanModel:
        histograms = self._histogram_numbers(schema, trainee)
        counts = [] if trainee.start is None else trainee.start.numbers.tolist()
        return PateGanModel(
            schema=schema,
            weights=trained.generator,
            start=trainee.start,
            critic=trained.student,
            released_numbers=(*trained.ones, *histograms, *counts),
            proportions=trainee.proportions,
            claim=claim_of_model(self.claim, seed=trainee.seed),
        )


class _Recording:
    """Records a training of one model, and its sampling, for `dpaudit trace`.

    No label counts are recorded, not even with private proportions: labels are drawn one by one
    from released proportions, so the number of records of a class is never fixed.

    Args:
        generator: What is trained.
        recorder: Takes the records.
        rows: Number of rows of the table.
    """

    def __init__(self, generator: TaughtGenerator, recorder: Recorder, rows: int) -> None:
        from dpaudit_generators.networks.source import Head

        self._generator, self._recorder, self._rows = generator, recorder, rows
        drawn = generator.marginals is not None
        self._width = Head(generator.schema).width if drawn else generator.noise_width
        steps = generator.teacher_steps + (0 if drawn else generator.generator_steps)
        self._steps = steps * generator.batch  # records of a round next to its queries
        self._released = 0
        self._before: list[FloatArray] = []
        self._teachers: Teachers | None = None
        self._first: Tensor | None = None

    def on_round(self, drawn: Round, chosen: Tensor, teachers: Teachers) -> None:
        """Records what a round draws and which real records the teachers read."""
        recorder = self._recorder
        recorder.iteration()
        fed = drawn.noise.part(slice(self._steps + drawn.queries))
        recorder.fed(Stage.TRAINING, self._inputs(fed))
        numbers = chosen[0].cpu().numpy()
        for index in range(self._generator.plan.teachers):
            rows = numbers[:, index].ravel()
            if rows[0] < self._rows:  # an empty cell reads padding
                recorder.read(Reader.TEACHER, rows, index=index)
        self._teachers, self._before = teachers, _parameters(teachers)
        self._first = chosen[0, 0, 0] if numbers[0, 0, 0] < self._rows else None

    def on_labels(self, votes: IndexArray, labels: IndexArray) -> None:
        """Records labels, their cost, and the teachers that voted."""
        assert self._teachers is not None  # a round has begun
        recorder, queries = self._recorder, labels.shape[1]
        after = _parameters(self._teachers)
        for index, (one, other) in enumerate(zip(self._before, after, strict=True)):
            recorder.taught(index, before=one, after=other)
        if self._first is not None:
            own, *others = _losses(self._teachers, self._first)
            if others:
                recorder.losses(own, float(np.mean(others)))
        recorder.voted(votes[0].copy(), labels[0].copy())
        before = self._generator.spent(self._released)
        self._released += queries
        recorder.charged(
            queries, before=before, after=self._generator.spent(self._released), moments=None
        )

    def sample(self, model: PateGanModel, n_rows: int, *, seed: int) -> pd.DataFrame:
        """Samples the trained model as it would by itself, and records it."""
        from dpaudit_generators.networks.source import sample

        if model.start is not None:
            return self._weighted(model, n_rows, seed=seed)
        matrix = sample(
            [model.weights],
            model.head,
            [model.proportions],
            n_rows,
            seeds=[seed],
            on_noise=lambda noise: self._recorder.fed(Stage.SAMPLING, self._inputs(noise)),
        )[0].astype(np.float64)
        self._recorder.output(_unrounded(matrix, model.schema))
        return table_of(values_of(matrix, model.schema), model.schema)

    def _weighted(self, model: PateGanModel, n_rows: int, *, seed: int) -> pd.DataFrame:
        """Samples a model of noisy marginals and records its candidates."""
        schema = model.schema

        def fed(candidates: FloatArray) -> None:
            rows = encode_values(candidates, schema)[:, model.head.order]
            self._recorder.fed(Stage.SAMPLING, rows)

        values = model.weighted(n_rows, seed=seed, on_candidates=fed)
        numeric = [column.kind.numeric for column in schema.columns]
        self._recorder.output(values[:, numeric])
        return table_of(values, schema)

    def _inputs(self, noise: Noise) -> FloatArray:
        """What records are made of, without given labels: random numbers, or candidates."""
        return noise.rows[0, :, : self._width].cpu().numpy().astype(np.float64)


def _parameters(teachers: Teachers) -> list[FloatArray]:
    """The parameters of each teacher, flat."""
    return [flat(weights) for weights in teachers.networks.weights()]


def _losses(teachers: Teachers, chosen: Tensor) -> list[float]:
    """Each teacher's cross-entropy on real records, given their row numbers [n]."""
    import torch

    with torch.no_grad():
        logits = teachers.logits(teachers.rows[chosen][None])
    losses: list[float] = torch.nn.functional.softplus(-logits).mean(dim=1).tolist()
    return losses


def _unrounded(matrix: FloatArray, schema: Schema) -> FloatArray:
    """FloatArray in the scale of the output, NaN where missing; integers are not yet rounded."""
    numeric = [column.kind.numeric for column in schema.columns]
    continuous = tuple(
        replace(column, kind=Kind.CONTINUOUS) if column.kind is Kind.INTEGER else column
        for column in schema.columns
    )
    return values_of(matrix, replace(schema, columns=continuous))[:, numeric]


@dataclass(frozen=True, kw_only=True)
class PateGanMarginals(TaughtGenerator):
    """PATE-GAN whose records start from noisy marginals instead of a generator network.

    Records are drawn from noisy marginals of each class and weighted by a student that learns from
    the noisy labels of k teachers. It claims (epsilon, delta) for adding or removing one record.
    The proof, in the order of the code: All constants come from public settings (`plan`,
    `marginals`, `TrainingSettings`). A record is counted once in each column and adds to the
    deviations of its class at most their radius, so Gaussian noise makes both mu-GDP
    (`marginals.DeviationTree`; without a label `marginals.PublicTree`). A keyed hash assigns
    records to teachers, so a record reaches one teacher (`pate.cells`), whose training does not
    read the other cells (`Teachers`). So one vote of k changes by one, and the released label is a
    draw from a public table whose mu is known (`VoteTable.mu`). Squares of mu add up, even if later
    steps depend on earlier ones. Everything else, the student and the records, reads noisy numbers
    and released labels only, which is post-processing.

    With `seed=None` every stream, including that of the labels' noise, is the operating system's
    entropy, as production needs; a seed is for audits. The model's claim says which was used.

    The defaults do not depend on any data: an accuracy of .65 with 50 teachers means noise of 38.9
    votes at most. At epsilon 1 a tenth of the budget buys 10 labels.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is the claim, not the amount spent in training.
        delta: The delta of the budget.
        bins: Equal bins of a numeric column's marginals. If not given, 4, or 16 if noisy counts of
            the label's classes show that there are many records.
        vote_share: Share of the budget, in squares of mu, for the votes; marginals get the rest.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels. If the budget pays for more labels
            than the student's steps can use, it buys only as many, with less noise.
        device: Where the networks are trained: "cpu", "cuda" or "cuda:N". Devices differ by
            rounding alone: weights agree to 1e-5 after 30 rounds.

    Raises:
        SettingsError: If a setting is out of range.
    """

    bins: int | None = None
    vote_share: float = 0.1

    stream_name: ClassVar[str] = "pate-gan"
    """Its former name, so that random streams stay the same."""

    def __post_init__(self) -> None:
        check_number("vote_share", self.vote_share, BETWEEN_0_AND_1)
        super().__post_init__()

    @cached_property
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""
        plan = self.plan
        source = (
            f"noisy marginals of {len(self.schema.columns)} columns, "
            f"{self.marginals.claim.value:.4g}-Gaussian DP, and {plan.labels} one-bit votes of "
            f"{plan.teachers} teachers with {plan.table.noise}, {plan.table.mu:.4g}-Gaussian "
            "DP each; one record moves one vote by one; squares of mu added up"
        )
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @cached_property
    def marginals(self) -> Marginals:
        """The noisy marginals that records are drawn from; does not depend on data."""
        mu = math.sqrt(1.0 - self.vote_share) * self._mu
        classes = self.schema.label is not None and len(self.schema.columns) > 1
        tree = Structure.DEVIATIONS if classes else Structure.INDEPENDENT
        return Marginals(schema=self.schema, mu=mu, tree=tree, bins=self.bins)

    @cached_property
    def plan(self) -> LabelPlan:
        """Number and noise of the labels that the budget pays for; does not depend on data."""
        return calibrate_gaussian(
            mu=math.sqrt(self.vote_share) * self._mu,
            delta=self.delta,
            k=self.teachers,
            accuracy=self.accuracy,
            most=self.rounds * self.student_steps * self.batch,  # labels that the student draws
        )

    def spent(self, labels: int) -> float:
        """Epsilon of this many labels and of everything released before them.

        Args:
            labels: Number of labels, at least 0.
        """
        mu = math.hypot(self.marginals.claim.value, math.sqrt(labels) * self.plan.table.mu)
        return gaussian_epsilon(mu, self.delta)

    @property
    def _mu(self) -> float:
        """The budget in Gaussian DP."""
        return gaussian_mu(epsilon=self.epsilon, delta=self.delta)
