"""The published PATE-GANs as one generator with switches: each a recipe and its switches.

A model keeps parts of its training table where a switch has it use them in sampling.

The six are re-created from the description in Ganev, Annamalai and De Cristofaro 2025, "The Elusive
Pursuit of Reproducing PATE-GAN", Tables 2 and 3 and section 6.3, and from what the released code
does: a test compares what they generate with figures that were measured on that code.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import encode, table_of
from dpaudit.model.schema import Schema
from dpaudit.model.setting import AT_LEAST_1, BETWEEN_0_AND_1, POSITIVE, check_number
from dpaudit.plugins.protocols import FloatArray, IntArray, Job
from dpaudit.plugins.recorder import Reader, Recorder, Stage
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import TracedGenerator, kept_rows, whole_table
from dpaudit_generators.networks.model import NetworkBatch, NetworkModel
from dpaudit_generators.published import recipes
from dpaudit_generators.published.recipes import (
    EQUAL_PARTS,
    Inputs,
    Recipe,
    Recipes,
    Span,
    Switch,
    switches_named,
)
from dpaudit_generators.published.scaling import Scaling, fit_scaling
from dpaudit_generators.published.trainee import (
    Form,
    PublishedSettings,
    PublishedTrainee,
    TrainedAndShown,
    form_of,
    released,
    released_names,
)

_PART: Final = 256
"""Number of records that are sampled at a time."""
_EXERCISES: Final = (5, 11, 25, 51)
"""Numbers of teachers in exercises; odd, so that there is no tie."""

_OF_ROWS: Final = frozenset(
    {Switch.BATCH_FROM_ROWS, Switch.TEACHERS_FROM_ROWS, Switch.DELTA_IGNORED}
)
"""Switches that make settings depend on the number of records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedModel(NetworkModel):
    """A trained generator network, and the student or the only critic that it learnt from.

    Attributes:
        scaling: Scales the output back.
        form: The layout of records in the networks' matrices.
        recipe: The hyperparameters.
        inputs: The distribution of the network's inputs in sampling.
        given: Labels of the training table, scaled [n, given]; empty unless they are copied.
        hints: Real records that conditions are drawn from [n, hints]; empty unless there are any.
        positions: Row numbers of these records in the table that the model was fitted on [n].
    """

    scaling: Scaling
    form: Form
    recipe: Recipe
    inputs: Inputs
    given: npt.NDArray[np.float32]
    hints: npt.NDArray[np.float32]
    positions: IntArray

    def discriminate(self, rows: pd.DataFrame) -> FloatArray:
        """The output of the student, or of the only critic, for each row [n]; no condition is set.

        Args:
            rows: A table with the schema's columns.
        """
        import torch

        from dpaudit_generators.networks.stack import Networks, with_ones

        records = torch.from_numpy(self.scaling.encode(rows)[:, self.form.order])[None]
        student = Networks([self.critic], self.recipe.student)
        with torch.no_grad():
            outputs = student(with_ones(records, torch.zeros(1, len(rows), self.form.hints)))
        return np.asarray(outputs[0, :, 0].double().numpy())

    def traced_sample(self, n: int, *, seed: int | None, recorder: Recorder) -> pd.DataFrame:
        """Draws what `sample` draws, and records it."""
        rows = _sample_scaled([self], n, [seed], recorder=recorder)[0]
        numeric = [column.kind.numeric for column in self.schema.columns]
        recorder.output(self.scaling.unrounded(rows)[:, numeric])
        return table_of(self.scaling.values(rows), self.schema)

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models."""
        forms: dict[bytes, list[int]] = {}  # in one world, mixtures may need more columns
        for index, model in enumerate(models):
            forms.setdefault(model.form.order.tobytes(), []).append(index)
        values = np.empty((len(models), n, len(models[0].schema.columns)))
        for indices in forms.values():
            rows = _sample_scaled([models[i] for i in indices], n, [seeds[i] for i in indices])
            for index, mine in zip(indices, rows, strict=True):
                values[index] = models[index].scaling.values(mine)
        return values


def _sample_scaled(
    models: Sequence[PublishedModel],
    n: int,
    seeds: Sequence[int | None],
    *,
    recorder: Recorder | None = None,
) -> npt.NDArray[np.float32]:
    """Draws records of models, which must have one form, before they are scaled back.

    Args:
        models: The models.
        n: Number of records of each model.
        seeds: One for each model; None means the system's entropy.
        recorder: Records the sampling of the first model.

    Returns:
        Scaled matrices [M, n, width].
    """
    import torch

    from dpaudit_generators.networks.stack import Networks
    from dpaudit_generators.published.source import Feed, PublishedRecordSource

    first = models[0]
    form, architecture = first.form, first.recipe.generator
    source = PublishedRecordSource(
        Networks([model.weights for model in models], architecture),
        form,
        first.recipe,
    )
    feed = Feed(seeds, "sample", form=form, recipe=first.recipe, inputs=first.inputs)
    # The labels of the table in their order, repeated if there are too few.
    given = torch.stack(
        [torch.from_numpy(np.resize(model.given, (n, form.given))) for model in models]
    )
    scaled = np.zeros((len(models), n, first.scaling.width), dtype=np.float32)
    for start in range(0, n, _PART):
        part = slice(start, min(start + _PART, n))
        noise = feed.noise(part.stop - start)
        hints = noise[..., :0]
        if recorder is not None:
            recorder.fed(Stage.SAMPLING, noise[0].double().numpy())
        if form.hints:
            rows = [model.hints for model in models]
            hints, chosen = feed.conditions(rows, part.stop - start)
            if recorder is not None:
                recorder.read(Reader.CONDITIONS, first.positions[chosen[0]])
        with torch.no_grad():
            records = source(noise, given[:, part], hints, feed.gumbel(part.stop - start))
        scaled[:, part, form.order] = records[..., : form.width].numpy()
    return scaled


@dataclass(frozen=True, kw_only=True)
class SwitchedPateGan(TracedGenerator[PublishedModel]):
    """PATE-GAN that satisfies its claim, unless deviations of published ones are switched on.

    Without switches: public constants and bounds, records assigned to teachers by a keyed hash, a
    separate stream for each teacher, two Laplace draws on the votes of every label, every label
    charged, and a training that stops before it could exceed the budget for any votes.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget.
        delta: The delta of the budget.
        teachers: Number k of teachers.
        gamma: Inverse scale of the Laplace noise (lambda in the papers).
        iterations: Largest number of iterations of a training.
        also: Names of switches to turn on, separated by commas.
        without: Names of switches to turn off, separated by commas.

    Raises:
        SettingsError: If a setting is out of range.
    """

    schema: Schema
    epsilon: float = 1.0
    delta: float = 1e-5
    teachers: int = 5
    gamma: float = 1e-3
    iterations: int = 1000
    also: str = ""
    without: str = ""

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset()
    """The switches that are on by default."""
    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")
    models_at_once: ClassVar[int] = 32
    """More models share the cost of each operation; too many no longer fit into a cache."""
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.paper)

    def __post_init__(self) -> None:
        for name in ("also", "without"):
            object.__setattr__(self, name, ",".join(sorted(switches_named(getattr(self, name)))))
        check_number("epsilon", self.epsilon, POSITIVE)
        check_number("delta", self.delta, BETWEEN_0_AND_1)
        check_number("gamma", self.gamma, POSITIVE)
        check_number("teachers", self.teachers, AT_LEAST_1, whole=True)
        check_number("iterations", self.iterations, AT_LEAST_1, whole=True)
        if Switch.PENALTY_FROM_TEACHERS in self.switches and Switch.NO_PATE not in self.switches:
            raise SettingsError(
                f"{Switch.PENALTY_FROM_TEACHERS} needs {Switch.NO_PATE}: only its single critic "
                "has a gradient penalty"
            )

    @cached_property
    def switches(self) -> frozenset[Switch]:
        """The deviations that are on."""
        return (self.PUBLISHED | switches_named(self.also)) - switches_named(self.without)

    @property
    def claim(self) -> PrivacyClaim:
        """The budget, whether or not training stays within it."""
        source = "the budget of a moments accountant with data-independent costs"
        if self.switches:
            names = ", ".join(sorted(self.switches))
            source = f"as a published PATE-GAN promises; broken by {names}"
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of the numbers that models release: sums over the student's training set."""
        return released_names(self.schema, iterations=self.iterations, switches=self.switches)

    def fixes(self) -> Mapping[str, SwitchedPateGan]:
        """For each switch that is on, the same generator without it."""
        return {str(switch): self._fixed(switch) for switch in sorted(self.switches)}

    def _fixed(self, switch: Switch) -> SwitchedPateGan:
        gone = {*switches_named(self.without), switch}
        if switch is Switch.NO_PATE:  # nothing else has a gradient penalty
            gone.add(Switch.PENALTY_FROM_TEACHERS)
        return replace(self, without=",".join(gone))

    def exercises(self) -> Sequence[SwitchedPateGan]:
        """The same generator in settings where its accountant's data-dependent term is smallest.

        There is little noise and more than one teacher. If the majority is at least two votes, the
        term is below the others with and without its logarithm, and too small with the error in its
        exponent. Barely trained teachers agree by chance, so several numbers of teachers are tried.
        The budget allows enough iterations.
        """
        if Switch.NO_PATE in self.switches:
            return ()
        without = ",".join({*switches_named(self.without), Switch.TEACHERS_FROM_ROWS})
        return tuple(
            replace(self, gamma=1.25, epsilon=1e4, iterations=3, teachers=teachers, without=without)
            for teachers in _EXERCISES
        )

    def check(self, data: pd.DataFrame) -> None:
        """Refuses an unusable table; called once, outside the game.

        Args:
            data: The private table.

        Raises:
            DataError: If the table does not fit the schema or has fewer records than teachers.
        """
        super().check(data)
        teachers = self.settings_for(len(data)).teachers
        if len(data) < teachers:
            raise DataError(
                f"the table has {len(data)} rows for {teachers} teachers: use fewer, such as "
                f"teachers={max(1, len(data) // 2)}"
            )

    def batch_key(self, job: Job) -> Hashable:
        """Equal for models of one shape; by the switches, that may need equally many records."""
        if self.recipe.span is Span.MIXTURE and Switch.BOUNDS_FROM_DATA in self.switches:
            return tuple(sorted(set(job.dropped_rows)))  # as many columns as components
        depends = not _OF_ROWS.isdisjoint(self.switches) or self.parts_depend_on_rows
        return len(set(job.dropped_rows)) if depends else ()

    def traced(
        self, data: pd.DataFrame, *, n_rows: int, seed: int, recorder: Recorder
    ) -> pd.DataFrame:
        """As `trace`, on a table whose columns are the schema's."""
        model = self.train(data, [whole_table(seed)], recorder)[0]
        for column, numbers in model.scaling.numbers.items():
            recorder.scaling(column, numbers)
        if Switch.LABELS_COPIED in self.switches:
            _, counts = np.unique(model.given, axis=0, return_counts=True)
            recorder.label_counts(counts.tolist())
        return model.traced_sample(n_rows, seed=seed, recorder=recorder)

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], recorder: Recorder | None = None
    ) -> NetworkBatch[PublishedModel]:
        """As `fit_many`, on a table whose columns are the schema's; a recorder is for one job."""
        if Switch.NO_PATE in self.switches:
            from dpaudit_generators.published.critic import train
        else:
            from dpaudit_generators.published.pate import train
        public = encode(data, self.schema)
        tables: dict[tuple[int, ...], _Table] = {}
        shapes: dict[tuple[PublishedSettings, int, bytes], list[int]] = {}
        for index, job in enumerate(jobs):
            if job.dropped_rows not in tables:
                tables[job.dropped_rows] = self._table(data, public, job)
            table = tables[job.dropped_rows]
            rows = len(table.trainee.positions)
            parts = rows if self.parts_depend_on_rows else 0
            shape = self.settings_for(rows), parts, table.form.order.tobytes()
            shapes.setdefault(shape, []).append(index)
        models: dict[int, PublishedModel] = {}
        for (settings, *_), indices in shapes.items():  # those of one shape together
            own = [tables[jobs[index].dropped_rows] for index in indices]
            trainees = [
                table.trainee._replace(seed=jobs[index].seed)
                for index, table in zip(indices, own, strict=True)
            ]
            trained = train(
                trainees,
                form=own[0].form,
                recipe=self.recipe,
                settings=settings,
                recorder=recorder,
            )
            models |= zip(indices, map(self._model, own, trained), strict=True)
        return NetworkBatch(tuple(models[index] for index in range(len(jobs))))

    @property
    def parts_depend_on_rows(self) -> bool:
        """Whether the size of a refitted teacher's part depends on the number of records."""
        refitted = Switch.TEACHERS_REFITTED in self.switches
        return refitted and not EQUAL_PARTS.isdisjoint(self.switches)

    @cached_property
    def recipe(self) -> Recipe:
        """The hyperparameters for a table of this schema."""
        recipe = self._RECIPE(len(self.schema.columns))
        if Switch.NO_PATE in self.switches:  # `critic` trains networks of that kind only
            own = recipes.original(len(self.schema.columns))
            recipe = replace(
                recipe,
                generator=own.generator,
                student=own.student,
                inputs=own.inputs,
                start=own.start,
            )
        return recipe

    def settings_for(self, rows: int) -> PublishedSettings:
        """The settings of a training on this many records; public unless switches change that."""
        teachers, batch = self.teachers, self.recipe.batch
        if Switch.TEACHERS_FROM_ROWS in self.switches:
            teachers = max(1, rows // 1000)
        if Switch.BATCH_FROM_ROWS in self.switches:
            batch = max(1, min(batch, rows // teachers))
        return PublishedSettings(
            teachers=teachers,
            batch=batch,
            iterations=self.iterations,
            gamma=self.gamma,
            epsilon=self.epsilon,
            inverse=self._inverse_delta(rows),
            switches=self.switches,
        )

    def _table(self, data: pd.DataFrame, public: FloatArray, job: Job) -> _Table:
        kept = kept_rows(job, len(data))
        own = data.iloc[kept]
        schema, switches = self.schema, self.switches
        scaling = fit_scaling(own, schema, span=self.recipe.span, switches=switches)
        if Switch.NO_PATE in switches:
            switches -= {Switch.CONDITIONS_FROM_DATA}  # its critic uses only labels
        form = form_of(scaling, schema, switches)
        records = np.ascontiguousarray(scaling.encode(own)[:, form.order])
        about = [records[:, part] for part in form.conditions]
        hints = np.concatenate([records[:, :0], *about], axis=1)
        return _Table(scaling, form, PublishedTrainee(records, public[kept], hints, kept, None))

    def _model(self, table: _Table, trained: TrainedAndShown) -> PublishedModel:
        normal = Switch.SAMPLING_NOISE_DIFFERS in self.switches
        scaling, form, rows = table
        weights, student, shown = trained
        return PublishedModel(
            schema=self.schema,
            scaling=scaling,
            form=form,
            recipe=self.recipe,
            inputs=Inputs.NORMAL if normal else self.recipe.inputs,
            weights=weights,
            critic=student,
            given=rows.records[:, form.made :],
            hints=rows.hints,
            positions=rows.positions,
            claim=self.claim,
            released_numbers=released(shown, scaling=scaling, form=form, switches=self.switches),
        )

    def _inverse_delta(self, rows: int) -> float:
        """The number that the accountant uses as 1 / delta, given the number of records.

        If several deviations concern delta, the first of these counts: ignored, XOR, multiplied.
        """
        if Switch.DELTA_IGNORED in self.switches:
            return max(2.0, rows * math.sqrt(rows))
        if Switch.DELTA_XOR in self.switches:  # in Python, 10 ^ 5 is not a power
            return max(2.0, float(10 ^ round(-math.log10(self.delta))))
        if Switch.DELTA_MULTIPLIED in self.switches:
            return float(10.0**self.delta)
        return 1.0 / self.delta


class _Table(NamedTuple):
    """A table as models are trained on it; those that lack the same rows share it."""

    scaling: Scaling
    form: Form
    trainee: PublishedTrainee


_UNUSABLE: Final = 11 / 24
"""Share of Turing's models, run as in its published audit, that generate nothing but NaN."""


@dataclass(frozen=True, kw_only=True)
class Original(SwitchedPateGan):
    """The code released with the paper of 2019: one critic on all records, normal noise on labels.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.NO_PATE,
            Switch.PARTITION_ALL_ROWS,
            Switch.BOUNDS_FROM_DATA,
            Switch.NOISE_GAUSSIAN_ON_LABELS,
            Switch.DELTA_XOR,
            Switch.LABELS_COPIED,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.original)


@dataclass(frozen=True, kw_only=True)
class Turing(SwitchedPateGan):
    """The Alan Turing Institute's version: `original` with other mistakes, and public bounds.

    The published audit's copy also trains on one column more than the table has, of uninitialised
    memory. Its content decides whether training ends in numbers: 11 of 24 measured models generate
    nothing but NaN. Only this effect is re-created.

    Attributes:
        unwritten_memory: Whether models fail in this way, at the measured frequency; a model's seed
            decides. The other fields are those of `SwitchedPateGan`.
    """

    iterations: int = 100
    unwritten_memory: bool = False

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.NO_PATE,
            Switch.PARTITION_ALL_ROWS,
            Switch.NOISE_GAUSSIAN_ON_LABELS,
            Switch.DELTA_MULTIPLIED,
            Switch.INTEGERS_TRUNCATED,
            Switch.OUTPUT_SHIFTED,
            Switch.PENALTY_FROM_TEACHERS,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.turing)

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], recorder: Recorder | None = None
    ) -> NetworkBatch[PublishedModel]:
        """As in the base class; a model that reads unwritten memory may generate only NaN."""
        models = list(super().train(data, jobs, recorder).models)
        for index, job in enumerate(jobs):
            unusable = rng_of(job.seed, "unwritten memory").random() < _UNUSABLE
            if self.unwritten_memory and unusable:
                model = models[index]
                lost = tuple(np.full_like(part, np.nan) for part in model.weights)
                models[index] = replace(model, weights=lost)
        return NetworkBatch(tuple(models))


@dataclass(frozen=True, kw_only=True)
class Updated(SwitchedPateGan):
    """The authors' second version: logistic teachers that all train on the last part, little noise.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.PARTITION_LAST_ONLY,
            Switch.BOUNDS_FROM_DATA,
            Switch.NOISE_SCALE_INVERTED,
            Switch.TEACHERS_REFITTED,
            Switch.OUTPUT_NOT_INVERTED,
            Switch.BUDGET_EXCEEDED,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.updated)


@dataclass(frozen=True, kw_only=True)
class Synthcity(SwitchedPateGan):
    """The synthcity library's version: records dealt anew, mixtures fitted on them, free queries.

    Columns of at most ten distinct values are one-hot by the values that the table has.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.PARTITION_RESHUFFLED,
            Switch.ACCOUNTANT_EXPONENT_SLIP,
            Switch.BOUNDS_FROM_DATA,
            Switch.TEACHERS_REFITTED,
            Switch.STUDENT_SEES_REAL_ROWS,
            Switch.GENERATOR_SEES_REAL_ROWS,
            Switch.CONDITIONS_FROM_DATA,
            Switch.QUERIES_NOT_ACCOUNTED,
            Switch.DELTA_IGNORED,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.synthcity)


@dataclass(frozen=True, kw_only=True)
class Borealis(SwitchedPateGan):
    """Borealis AI's version: small networks, contiguous parts, an accountant without a logarithm.

    Fields are those of `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.ACCOUNTANT_MISSING_LOG,
            Switch.BOUNDS_FROM_DATA,
            Switch.OUTPUT_NOT_INVERTED,
            Switch.BUDGET_EXCEEDED,
            Switch.SAMPLING_NOISE_DIFFERS,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.PARTITION_BY_POSITION,
            Switch.BATCH_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.borealis)


@dataclass(frozen=True, kw_only=True)
class Smartnoise(SwitchedPateGan):
    """OpenDP's version: public bounds, contiguous parts, k from the number of records.

    The published audit set k = 5; for that, use `without="teachers-from-rows"`. Fields are those of
    `SwitchedPateGan`.
    """

    PUBLISHED: ClassVar[frozenset[Switch]] = frozenset(
        {
            Switch.ACCOUNTANT_MISSING_LOG,
            Switch.BUDGET_EXCEEDED,
            Switch.SAMPLING_NOISE_DIFFERS,
            Switch.ONE_NOISE_CHARGED_AS_TWO,
            Switch.PARTITION_BY_POSITION,
            Switch.TEACHERS_FROM_ROWS,
        }
    )
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.smartnoise)
