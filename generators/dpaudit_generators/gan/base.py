"""What the GANs with one hidden layer have in common: how many of them are trained together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from dpaudit.model.encoding import encode, width
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Job
from dpaudit_generators.batches import TableGenerator, kept_rows
from dpaudit_generators.gan.model import GanModel
from dpaudit_generators.gan.settings import GanSettings
from dpaudit_generators.networks.model import NetworkBatch

if TYPE_CHECKING:
    from torch import Tensor

    from dpaudit_generators.gan.training import GanObserver, GanTrainee
    from dpaudit_generators.networks.rows import Head

_CACHED: Final = 2**18
"""Most numbers that all models trained together should hold in a step."""
_MOST_AT_ONCE: Final = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class StackedGan(GanSettings, TableGenerator[GanModel]):
    """A GAN of which many models are trained together.

    Attributes:
        schema: The public schema; bounds and categories come from it alone.
    """

    schema: Schema

    discloses: ClassVar[tuple[str, ...]] = ("discriminator", "parameters")

    @property
    def models_at_once(self) -> int:
        """How many models train fastest together."""
        columns = width(self.schema) + 1
        held = 4 * self.batch * (columns + self.critic_hidden) + 2 * self.critic_hidden * columns
        return max(1, min(_MOST_AT_ONCE, _CACHED // held))

    def train(
        self, data: pd.DataFrame, jobs: Sequence[Job], observer: GanObserver | None = None
    ) -> NetworkBatch[GanModel]:
        """As `fit_many`, on a table whose columns are the schema's, followed by an observer."""
        from dpaudit_generators.gan.training import GanTrainee
        from dpaudit_generators.networks.rows import Head

        head = Head(self.schema)
        trainees = [GanTrainee(kept_rows(job, len(data)), job.seed) for job in jobs]
        return NetworkBatch(tuple(self._models(self.encoded(data), trainees, head, observer)))

    def encoded(self, data: pd.DataFrame) -> Tensor:
        """Records as networks take them; a value beyond the bounds counts as the bound.

        Args:
            data: A table with the schema's columns.

        Returns:
            Rows [n, D] with a column of ones.
        """
        from dpaudit_generators.gan.training import with_ones
        from dpaudit_generators.networks.rows import Head

        rows = np.clip(encode(data, self.schema), 0.0, 1.0)
        return with_ones(rows[:, Head(self.schema).order])

    @abstractmethod
    def _models(
        self,
        rows: Tensor,
        trainees: Sequence[GanTrainee],
        head: Head,
        observer: GanObserver | None,
    ) -> list[GanModel]:
        """Trains on encoded records."""
