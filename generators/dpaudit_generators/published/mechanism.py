"""The published PATE-GANs, as one generator with switches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job
from dpaudit.plugins.recorder import Recorder
from dpaudit_generators.batches import TracedGenerator, whole_table
from dpaudit_generators.published import recipes
from dpaudit_generators.published.accountant import inverse_delta
from dpaudit_generators.published.facts import released_names
from dpaudit_generators.published.fitting import fit_models
from dpaudit_generators.published.model import PublishedBatch, PublishedModel
from dpaudit_generators.published.recipes import Recipe, Recipes
from dpaudit_generators.published.scaling import Span
from dpaudit_generators.published.switches import Switch, switches_named
from dpaudit_generators.published.trainee import PublishedSettings

_AT_ONCE: Final = 32
_EXERCISES: Final = (5, 11, 25, 51)
"""Numbers of teachers in exercises; odd, so that there is no tie."""

_OF_ROWS: Final = frozenset(
    {Switch.BATCH_FROM_ROWS, Switch.TEACHERS_FROM_ROWS, Switch.DELTA_IGNORED}
)
"""Switches that make settings depend on the number of records."""
_PARTS_OF_ROWS: Final = frozenset(
    {Switch.PARTITION_ALL_ROWS, Switch.PARTITION_RESHUFFLED, Switch.PARTITION_LAST_ONLY}
)
"""Switches that make the size of a refitted teacher's part depend on it."""


@dataclass(frozen=True, kw_only=True)
class SwitchedPateGan(TracedGenerator[PublishedModel]):
    """PATE-GAN that keeps its promise, until deviations of published ones are switched on.

    Without switches: public constants and bounds, records dealt to teachers by a keyed hash, a
    stream of its own for each teacher, two Laplace draws on the votes of every label, every label
    charged, and a training that stops before it could exceed the budget, whatever the votes.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget.
        delta: The delta of the budget.
        teachers: Number k of teachers.
        gamma: Inverse scale of the Laplace noise (lambda in the papers).
        iterations: Most iterations of a training.
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
    """The switches that are on unless they are turned off."""
    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")
    _RECIPE: ClassVar[Recipes] = staticmethod(recipes.paper)

    def __post_init__(self) -> None:
        for name in ("also", "without"):
            object.__setattr__(self, name, ",".join(sorted(switches_named(getattr(self, name)))))
        for name, good, wanted in (
            ("epsilon", 0.0 < self.epsilon < np.inf, "a positive number"),
            ("delta", 0.0 < self.delta < 1.0, "a number in (0, 1)"),
            ("gamma", 0.0 < self.gamma < np.inf, "a positive number"),
            ("teachers", self.teachers >= 1, "at least 1"),
            ("iterations", self.iterations >= 1, "at least 1"),
        ):
            if not good:
                raise SettingsError(f"{name} is {getattr(self, name)!r}: use {wanted}")
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
        """The budget, whether it is kept or not."""
        source = "the budget of a moments accountant with data-independent costs"
        if self.switches:
            names = ", ".join(sorted(self.switches))
            source = f"as a published PATE-GAN promises; broken by {names}"
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @property
    def released_facts(self) -> tuple[str, ...]:
        """Names of what its models release: their student's training set, summed up."""
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

        There is little noise, and more than one teacher: where at least two more vote one way than
        the other, the term is below the others with and without its logarithm, and too small with a
        slip in its exponent. Hardly trained teachers agree by chance, so several numbers of them
        are tried. The budget leaves time for this.
        """
        if Switch.NO_PATE in self.switches:
            return ()
        without = ",".join({*switches_named(self.without), Switch.TEACHERS_FROM_ROWS})
        return tuple(
            replace(self, gamma=1.25, epsilon=1e4, iterations=3, teachers=teachers, without=without)
            for teachers in _EXERCISES
        )

    def check(self, data: pd.DataFrame) -> None:
        """Refuses a table that nothing can be learned from; called once, outside the game.

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

    @property
    def models_at_once(self) -> int:
        """How many models train fastest together.

        More of them share the cost of each operation; too many no longer fit a cache.
        """
        return _AT_ONCE

    def batch_key(self, job: Job) -> Hashable:
        """Equal for models of one shape: on as many records, or all, by the switches."""
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
    ) -> PublishedBatch:
        """As `fit_many`, on a table whose columns are the schema's; a recorder is for one job."""
        return fit_models(self, data, jobs, recorder=recorder)

    @property
    def parts_depend_on_rows(self) -> bool:
        """Whether the size of a refitted teacher's part depends on the number of records."""
        return Switch.TEACHERS_REFITTED in self.switches and not _PARTS_OF_ROWS.isdisjoint(
            self.switches
        )

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
        """What a training on so many records is asked for; public unless switches say otherwise."""
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
            inverse=inverse_delta(self.delta, rows=rows, switches=self.switches),
            switches=self.switches,
        )
