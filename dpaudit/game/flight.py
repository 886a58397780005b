"""What an engine does: hands batches of trials to workers and says how each batch ended."""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from dpaudit.game.batches import Batch
from dpaudit.game.limits import TimeLimit
from dpaudit.game.trial import Outcome, Payload


class BatchLoss(Enum):
    """Why a batch ended without outcomes."""

    DIED = "its worker died, perhaps through it"
    LATE = "it was over its time"
    STOPPED = "its worker was stopped for a reason that lies elsewhere"


class Landing(NamedTuple):
    """How a batch ended.

    Attributes:
        batch: Which one.
        outcomes: Of its trials, in the order of the batch; none if it was lost.
        loss: Why it was lost; None if it was not.
    """

    batch: Batch
    outcomes: tuple[Outcome, ...] = ()
    loss: BatchLoss | None = None


class Flight(Protocol):
    """Batches handed to workers and not ended yet."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def takes(self, *, suspect: bool) -> bool:
        """Whether to hand over another batch now.

        Args:
            suspect: Whether it was lost with its worker before: its next worker must run nothing
                else, so that a second death is its own doing.
        """
        ...

    def submit(self, batch: Batch, *, suspect: bool) -> None:
        """Hands over a batch; `suspect` as for `takes`."""
        ...

    def collect(self) -> list[Landing]:
        """Waits until a batch ends, or several do; an empty list while none can run.

        Raises:
            DpauditError: What an attack or the engine's workers raise.
        """
        ...


class Engine(Protocol):
    """Workers that run trials: processes of this machine, or of a cluster."""

    @property
    def workers(self) -> int:
        """How many there are."""
        ...

    def flight(
        self, payload: Payload, *, folder: Path, log: Path, limit: TimeLimit
    ) -> AbstractContextManager[Flight]:
        """Opens a flight.

        Args:
            payload: What the trials are run from.
            folder: The run folder.
            log: Its file that takes whatever generators print.
            limit: How long a batch may take; it learns while the flight goes on.

        Raises:
            InputError: If the workers cannot run these trials.
            RegistryError: If an attack cannot be pickled for workers.
        """
        ...

    def renewed(self, trials: int) -> Engine:
        """The engine for so many trials in new processes, where none before has left anything."""
        ...

    def stop(self) -> None:
        """Ends whatever the workers are doing, at once."""
        ...
