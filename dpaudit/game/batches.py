"""Batches of trials: those whose models a worker trains together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from dpaudit.errors import DpauditError
from dpaudit.game.trial import Payload, Trial
from dpaudit.model.encoding import width
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import World, trains_many

MEMORY = 256 * 2**20
"""Bytes that the synthetic records of one batch may take."""

Batch = tuple[Trial, ...]
"""Trials that one worker runs in one go."""


def make_batches(
    trials: Sequence[Trial], payload: Payload, generator: object, *, workers: int
) -> list[Batch]:
    """Groups trials into batches of nearly equal size, so that all workers have the same load.

    Args:
        trials: The trials, in the order to run them; a batch keeps that order.
        payload: What they are run from.
        generator: What they train; batches of one unless it is a `BatchGenerator`.
        workers: Number of worker processes.

    Returns:
        The batches; the models of each have one shape and one number of requested rows. Batches
        of one trial where the generator cannot say what it trains together.
    """
    groups: dict[Hashable, list[Trial]] = {}
    try:
        with refusing("it cannot say what it trains together"):
            if not trains_many(generator):
                return [(trial,) for trial in trials]
            most = min(int(generator.models_at_once), affordable(payload))
            for trial in trials:
                key = generator.batch_key(payload.job(trial))
                group = (payload.game.rows_requested(trial.world), key)
                groups.setdefault(group, []).append(trial)
    except DpauditError:  # the generator's: what it cannot train will fail as trials
        return [(trial,) for trial in trials]
    # As few rounds of all workers as possible, and equal shares of them.
    rounds = -(-len(trials) // (workers * max(1, most)))
    size = -(-len(trials) // (workers * rounds))
    return [batch for group in groups.values() for batch in _shares(group, size)]


def affordable(payload: Payload) -> int:
    """The number of models whose synthetic records fit into `MEMORY`, encoded and as values.

    At least 1.
    """
    view = payload.game.view
    rows = max(payload.game.rows_requested(world) for world in World)
    numbers = rows * (width(view.schema) + len(view.schema.columns))
    return max(1, MEMORY // (8 * numbers))


def _shares(trials: Sequence[Trial], size: int) -> list[Batch]:
    """Parts of at most this size, as equal as possible."""
    parts = -(-len(trials) // size)
    bounds = [len(trials) * part // parts for part in range(parts + 1)]
    return [tuple(trials[start:stop]) for start, stop in pairwise(bounds)]
