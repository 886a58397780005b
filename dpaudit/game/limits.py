"""How long a batch of trials may take, and how long it has taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from dpaudit.errors import SettingsError
from dpaudit.game.batches import Batch
from dpaudit.game.trial import Outcome, TrialStatus

FLOOR_SECONDS = 3600.0
"""The least limit that is derived from other trials."""
FACTOR = 20
"""A derived limit is this many times the slowest batch so far."""
FIRST_SECONDS = 86_400.0
"""The limit of a batch while none has finished."""
LEAST_SECONDS = 1.0
"""The least limit that can be asked for."""
SLACK = 1.05
"""Workers are stopped once a batch has taken this many times its limit.

Batches that began together then end together: stopping the workers starts the others again.
"""


def check_trial_timeout(seconds: float | None) -> None:
    """Makes sure that a limit can be used.

    Raises:
        SettingsError: If it is below one second or no number.
    """
    if seconds is not None and not seconds >= LEAST_SECONDS:  # nor is NaN
        raise SettingsError(
            f"`trial_timeout` must be at least {LEAST_SECONDS:g} second, got {seconds:g}"
        )


@dataclass
class TimeLimit:
    """The wall time that a batch may take.

    Attributes:
        per_trial: Seconds for each trial of a batch; if None, the limit of a batch is derived:
            `FACTOR` times the slowest so far, at least `FLOOR_SECONDS`; `FIRST_SECONDS` before any
            has finished.
        slowest: Seconds of the slowest batch so far in which a trial finished.
    """

    per_trial: float | None = None
    slowest: float = 0.0

    def of(self, batch: Batch) -> float:
        """The limit of one batch, in seconds."""
        if self.per_trial is not None:
            return self.per_trial * len(batch)
        return max(FLOOR_SECONDS, FACTOR * self.slowest) if self.slowest else FIRST_SECONDS

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Takes in how long one batch took."""
        if any(outcome.status is TrialStatus.FINISHED for outcome in outcomes):
            self.slowest = max(self.slowest, sum(outcome.seconds for outcome in outcomes))


class Stopwatch:
    """Counts the seconds of whatever runs, but not those in which this process did not.

    A coordinator that was suspended (Ctrl-Z, a laptop that slept) must not find its trials late.
    """

    def __init__(self, *, longest_step: float, now: Callable[[], float] = monotonic) -> None:
        """Starts the clock.

        Args:
            longest_step: Seconds that are counted at most between two calls of `advance`.
            now: Seconds that have passed.
        """
        self.seconds: dict[int, float] = {}
        self.idle = 0.0
        self._longest_step = longest_step
        self._now = now
        self._last = now()

    def begin(self, ticket: int) -> None:
        """Counts for this ticket from now on."""
        self.seconds[ticket] = 0.0
        self.idle = 0.0

    def end(self, ticket: int) -> None:
        """Counts no more for this ticket."""
        self.seconds.pop(ticket, None)
        self.idle = 0.0

    def advance(self) -> None:
        """Adds the time since the last call to all that runs; if nothing does, to `idle`."""
        now = self._now()
        step, self._last = min(now - self._last, self._longest_step), now
        for ticket in self.seconds:
            self.seconds[ticket] += step
        self.idle = 0.0 if self.seconds else self.idle + step
