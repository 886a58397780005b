"""PATE-GAN as a generator: the settings, their promise, and how models are trained."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.account import LabelPlan, calibrate, calibrate_gaussian
from dpaudit.account.conversion import gaussian_mu
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.column import Column
from dpaudit.model.encoding import encode, width
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, Job
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import TracedGenerator, claim_of_model, kept_rows, whole_table
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.networks.model import Float32Array
from dpaudit_generators.pate import RandomBits, cells
from dpaudit_generators.pate_gan.model import Origin, PateGanBatch, PateGanModel
from dpaudit_generators.pate_gan.releases import (
    Bounds,
    Proportions,
    Split,
    private_bounds,
    private_proportions,
    schema_of_data,
    split,
)
from dpaudit_generators.pate_gan.settings import Records, Trained, Trainee, TrainingSettings

if TYPE_CHECKING:
    from dpaudit.plugins.recorder import Recorder
    from dpaudit_generators.networks.source import Head
    from dpaudit_generators.pate_gan.training import Observer


_CACHED: Final = 2**20
"""Most numbers that all models trained together should hold in a round: about a cache."""
_MOST_AT_ONCE: Final = 1024


@dataclass(frozen=True, kw_only=True)
class PateGan(TrainingSettings, TracedGenerator[PateGanModel]):
    """PATE-GAN whose promise is proved: (epsilon, delta) for adding or removing one record.

    Records are drawn from noisy marginals of each class and weighted by a student that learns from
    the noisy labels of k teachers. The proof, in the order of the code: All constants come from
    public settings (`plan`, `marginals`, `TrainingSettings`). A record is counted once in each
    column and adds to the deviations of its class at most their radius, so Gaussian noise makes
    both mu-GDP (`marginals.DeviationTree`; without a label `marginals.PublicTree`). A keyed hash
    deals records to teachers, so a record reaches one teacher (`pate.cells`), whose training reads
    nothing of the other cells (`teachers`). So one vote of k changes by one, and the released label
    is a draw from a public table whose mu is known (`VoteTable.mu`). Squares of mu add up, whatever
    later steps take from earlier ones. Everything else, the student and the records, reads noisy
    numbers and released labels only, which is post-processing.

    With `start=noise` there are no marginals: a generator network learns from the student, as in
    the paper, and the labels are accounted by their exact Rényi divergences. Whatever else of the
    table is used then is released by noisy histograms (`releases`) before any teacher trains, for a
    share of epsilon that is taken from the votes; the sum is the budget. Under `bounds=data` the
    premise fails, and the claim with it.

    With `seed=None` every stream, including that of the labels' noise, is the operating system's
    entropy, as production needs; a seed is for audits. The claim of the model says which.

    The defaults do not depend on any data: an accuracy of .65 with 50 teachers means noise of 38.9
    votes at most. At epsilon 1 a tenth of the budget buys 10 labels; with `start=noise` the whole
    of it buys 144.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is claimed, not what training happens to spend.
        delta: The delta of the budget.
        start: Where records come from: "marginals", or a network that begins with "noise".
        bins: Equal bins of a numeric column's marginals. If not given, 4, or 16 where noisy counts
            of the label's classes say that records are many.
        vote_share: Share of the budget, in squares of mu, for the votes; marginals get the rest.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels. If the budget pays for more labels
            than the student's steps can use, it buys as many as they can, with less noise.
        bounds: Where bounds of numbers come from; `data` is an experiment that breaks the proof.
            All but "schema" need `start=noise`.
        label_proportions: Where the proportions of the label's classes come from; "private" needs
            `start=noise`, because marginals have them.
        release_share: Share of epsilon for private bounds and label proportions, if any; divided
            equally over the numeric columns and the label.
        device: Where the networks are trained: "cpu", "cuda" or "cuda:N". Devices differ by
            rounding alone: weights agree to 1e-5 after 30 rounds.

    Raises:
        SettingsError: If a setting is out of range, or with `start=noise` the budget pays for no
            label.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    start: Origin = Origin.MARGINALS
    bins: int | None = None
    vote_share: float = 0.1
    teachers: int = 50
    accuracy: float = 0.65
    bounds: Bounds = Bounds.SCHEMA
    label_proportions: Proportions = Proportions.GENERATED
    release_share: float = 0.2
    device: str = "cpu"

    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    def __post_init__(self) -> None:
        super().__post_init__()
        choices = (("start", Origin), ("bounds", Bounds), ("label_proportions", Proportions))
        for name, kind in choices:
            value = getattr(self, name)
            if value not in list(kind):
                raise SettingsError(f"{name} is {value!r}: use {', '.join(kind)}")
            object.__setattr__(self, name, kind(value))  # text from a command line
        for name in ("release_share", "vote_share"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise SettingsError(f"{name} is {getattr(self, name)!r}: use a number in (0, 1)")
        if self.label_proportions is Proportions.PRIVATE and (
            self.label is None or self.label.kind.numeric or len(self.schema.columns) < 2
        ):
            raise SettingsError(
                "label_proportions=private needs a schema that names a label column with "
                'categories ("label": NAME), and another column beside it'
            )
        if not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise SettingsError(f"device is {self.device!r}: use cpu, cuda or cuda:N")
        if self.start is Origin.MARGINALS and self._releases_histograms:
            raise SettingsError(
                f"bounds={self.bounds} and label_proportions={self.label_proportions} do not go "
                "together with start=marginals, which have public bounds and the proportions of "
                "the label: use start=noise"
            )
        _ = self.plan, self.marginals  # validates the budget

    @property
    def _releases_histograms(self) -> bool:
        proportions = self.label_proportions is Proportions.PRIVATE
        return proportions or self.bounds is not Bounds.SCHEMA

    @property
    def label(self) -> Column | None:
        """The label column, if the schema names one."""
        return next((c for c in self.schema.columns if c.name == self.schema.label), None)

    @cached_property
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""
        plan, split = self.plan, self.split
        if self.marginals is not None:
            source = (
                f"noisy marginals of {len(self.schema.columns)} columns, "
                f"{self.marginals.claim.value:.4g}-Gaussian DP, and {plan.labels} one-bit votes of "
                f"{plan.teachers} teachers with {plan.table.noise}, {plan.table.mu:.4g}-Gaussian "
                "DP each; one record moves one vote by one; squares of mu added up"
            )
            return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)
        source = plan.table.claim(plan.labels, delta=plan.delta, method="rdp").source
        if split.histograms:
            source += (
                f"; epsilon {split.votes:.3g} of the budget; the rest for {split.histograms} "
                f"histogram(s) with discrete Laplace noise, {float(split.each):.3g} each; the sum "
                "by basic composition"
            )
        if self.bounds is Bounds.DATA:
            source = f"not proved, because bounds are read off the data; else {source}"
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @cached_property
    def split(self) -> Split:
        """What histograms and votes may spend; does not depend on data."""
        numbers = sum(column.kind.numeric for column in self.schema.columns)
        histograms = numbers * (self.bounds is Bounds.PRIVATE)
        histograms += self.label_proportions is Proportions.PRIVATE
        return split(self.epsilon, share=self.release_share, histograms=histograms)

    @cached_property
    def marginals(self) -> Marginals | None:
        """The noisy marginals that records are drawn from; does not depend on data."""
        if self.start is Origin.NOISE:
            return None
        mu = math.sqrt(1.0 - self.vote_share) * self._mu
        classes = self.schema.label is not None and len(self.schema.columns) > 1
        tree = Structure.DEVIATIONS if classes else Structure.INDEPENDENT
        return Marginals(schema=self.schema, mu=mu, tree=tree, bins=self.bins)

    @cached_property
    def plan(self) -> LabelPlan:
        """How many labels the budget pays for, with which noise; does not depend on data."""
        budget = self.split.votes
        most = self.rounds * self.student_steps * self.batch  # labels that the student draws
        k, accuracy, delta = self.teachers, self.accuracy, self.delta
        if self.start is Origin.MARGINALS:
            mu = math.sqrt(self.vote_share) * self._mu
            return calibrate_gaussian(mu=mu, delta=delta, k=k, accuracy=accuracy, most=most)
        # RDP only: no trial has to wait for the import of another accountant.
        plan = calibrate(epsilon=budget, delta=delta, k=k, accuracy=accuracy, method="rdp")
        if plan.labels <= most:
            return plan
        return calibrate(epsilon=budget, delta=delta, k=k, labels=most, method="rdp")

    def spent(self, labels: int) -> float:
        """Epsilon of so many labels and of all that is released before them.

        Args:
            labels: How many, at least 0.
        """
        plan = self.plan
        if self.marginals is not None:
            mu = math.hypot(self.marginals.claim.value, math.sqrt(labels) * plan.table.mu)
            return gaussian_epsilon(mu, self.delta)
        histograms = float(self.split.histograms * self.split.each)
        return histograms + plan.table.epsilon(labels, delta=plan.delta, method="rdp")

    @property
    def _mu(self) -> float:
        """The budget in Gaussian DP."""
        return gaussian_mu(epsilon=self.epsilon, delta=self.delta)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of what counts and votes release; they depend on no table.

        Labels are summed up by round: which queries they answer follows from them and from the seed
        of the generator network, so that a single one says nothing by its place.
        """
        rounds = min(self.rounds, self.plan.labels)
        names = [f"share of 1 among the labels of round {number + 1}" for number in range(rounds)]
        label = self.label
        if self.label_proportions is Proportions.PRIVATE and label is not None:
            classes = [str(category) for category in label.categories]
            classes += ["missing"] if label.missing else []
            names += [f"proportion of {label.name} = {name}" for name in classes]
        if self.bounds is not Bounds.SCHEMA:
            names += [
                f"{end} bound of {column.name}"
                for column in self.schema.columns
                if column.kind.numeric
                for end in ("lower", "upper")
            ]
        return (*names, *(self.marginals.released_facts if self.marginals is not None else ()))

    def released_effect(self, record: pd.DataFrame) -> FloatArray:
        """By how much a record raises each released fact, as far as the settings alone say.

        Args:
            record: A table of one row.
        """
        counts = np.empty(0) if self.marginals is None else self.marginals.released_effect(record)
        votes = np.zeros(len(self.released_facts) - len(counts))  # any teacher may have it
        return np.concatenate([votes, counts])

    def check(self, data: pd.DataFrame) -> None:
        """Refuses a table that nothing can be learned from; called once, outside the game.

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
        """How many models train fastest together.

        More of them share the cost of each operation; too many no longer fit a cache.
        """
        columns = width(self.schema)
        steps = self.teacher_steps + self.generator_steps + self.student_steps
        made = steps * self.batch * (max([self.noise_width, columns, *self.generator_hidden]) + 1)
        taught = self.teachers * self.batch * (max([columns, *self.teacher_hidden]) + 1)
        return max(1, min(_MOST_AT_ONCE, _CACHED // max(made, taught)))

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], observer: Observer | None = None
    ) -> PateGanBatch:
        """As `fit_many`, on a table whose columns are the schema's, followed by an observer.

        Raises:
            SettingsError: If torch does not find the device.
        """
        import torch

        from dpaudit_generators.networks.source import Head
        from dpaudit_generators.pate_gan.training import train

        self._require_device()
        head = Head(self.schema, given=self.label_proportions is Proportions.PRIVATE)
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
        return PateGanBatch(tuple(models))

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""
        from dpaudit_generators.pate_gan.tracing import Recording

        recorder.constant("teachers", self.plan.teachers)
        recorder.constant("batch", self.batch)
        recorder.constant("labels", self.plan.labels)
        recorder.promised(self.plan.table)
        recording = Recording(
            recorder,
            rows=len(data),
            schema=self.schema,
            plan=self.plan,
            spent=self.spent,
            settings=self,
            drawn=self.start is Origin.MARGINALS,
        )
        model = self.train(data, [whole_table(seed)], recording)[0]
        for column in model.schema.columns:
            if column.kind.numeric:
                recorder.scaling(column.name, column.bounds)
        return recording.sample(model, n_rows, seed=seed)

    def fixes(self) -> dict[str, PateGan]:
        """The same generator with public bounds, if bounds of the data break its proof."""
        if self.bounds is Bounds.DATA:
            return {"bounds-from-data": replace(self, bounds=Bounds.SCHEMA)}
        return {}

    def _prepared(
        self, data: pd.DataFrame, jobs: Sequence[Job], head: Head
    ) -> list[tuple[Schema, Trainee]]:
        """Makes the noisy releases that trainings may use, and deals records to teachers.

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
            # The public encoding is hashed, whatever the bounds: no others may move the partition.
            key = rng_of(job.seed, "partition").bytes(32)
            owned = [kept[cell] for cell in cells(public[kept], teachers=self.teachers, key=key)]
            bits = RandomBits(job.seed, "histogram noise")
            own = data.iloc[kept]
            schema = self._scale(own, bits)
            if schema not in rows:
                scaled = public if schema == self.schema else encode(data, schema)
                scaled = np.clip(scaled, 0.0, 1.0)  # a value beyond the bounds counts as the bound
                rows[schema] = scaled[:, head.order].astype(np.float32)
            records, proportions = Records(rows[schema], owned), self._proportions(own, bits)
            trainee = Trainee(records, proportions, self.plan.labels, job.seed, start)
            prepared.append((schema, trainee))
        return prepared

    def _scale(self, data: pd.DataFrame, bits: RandomBits) -> Schema:
        """The schema whose bounds scale the numbers."""
        if self.bounds is Bounds.DATA:
            return schema_of_data(self.schema, data)
        if self.bounds is Bounds.SCHEMA:
            return self.schema
        columns = tuple(
            private_bounds(column, data[column.name], epsilon=self.split.each, bits=bits)
            if column.kind.numeric
            else column
            for column in self.schema.columns
        )
        return replace(self.schema, columns=columns)

    def _proportions(self, data: pd.DataFrame, bits: RandomBits) -> tuple[float, ...]:
        """Released proportions of the label's classes, or none."""
        label = self.label
        if self.label_proportions is Proportions.GENERATED or label is None:
            return ()
        return private_proportions(label, data[label.name], epsilon=self.split.each, bits=bits)

    def _model(self, schema: Schema, trainee: Trainee, trained: Trained) -> PateGanModel:
        bounds: list[float] = []
        if self.bounds is not Bounds.SCHEMA:
            numeric = [column for column in schema.columns if column.kind.numeric]
            bounds = [float(end) for column in numeric for end in column.bounds]
        counts = [] if trainee.start is None else trainee.start.numbers.tolist()
        return PateGanModel(
            schema=schema,
            weights=trained.generator,
            start=trainee.start,
            student=trained.student,
            released_numbers=(*trained.ones, *trainee.proportions, *bounds, *counts),
            proportions=trainee.proportions,
            claim=claim_of_model(self.claim, seed=trainee.seed),
        )
