"""Cuts trials into tiles: those whose models a worker trains together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from dpaudit.game.trial import Payload, Trial
from dpaudit.model.encoding import width
from dpaudit.plugins.protocols import World, trains_many

MEMORY = 256 * 2**20
"""Bytes that the synthetic records of one tile may take."""

Tile = tuple[Trial, ...]
"""Trials that one worker plays in one go."""


def cut(
    trials: Sequence[Trial], payload: Payload, generator: object, *, workers: int
) -> list[Tile]:
    """Cuts trials into tiles of nearly equal size, so that every worker has as many as the others.

    Args:
        trials: The trials, in the order to play them; kept within a tile.
        payload: What they are played from.
        generator: What they train; tiles of one unless it is a `BatchGenerator`.
        workers: Number of worker processes.

    Returns:
        The tiles; of each the models have one shape and one number of requested rows. Of one trial
        each where the generator cannot say what it trains together.
    """
    groups: dict[Hashable, list[Trial]] = {}
    try:
        if not trains_many(generator):
            return [(trial,) for trial in trials]
        most = min(int(generator.models_at_once), affordable(payload))
        for trial in trials:
            key = generator.batch_key(payload.job(trial))
            group = (payload.game.rows_requested(trial.world), key)
            groups.setdefault(group, []).append(trial)
    except Exception:  # noqa: BLE001 - the generator's: what it cannot train will fail as trials
        return [(trial,) for trial in trials]
    # As few rounds of all workers as can be, and equal shares of them.
    rounds = -(-len(trials) // (workers * max(1, most)))
    size = -(-len(trials) // (workers * rounds))
    return [tile for group in groups.values() for tile in _shares(group, size)]


def affordable(payload: Payload) -> int:
    """How many models' synthetic records fit into `MEMORY`, encoded and as values; at least 1."""
    view = payload.game.view
    rows = max(payload.game.rows_requested(world) for world in World)
    numbers = rows * (width(view.schema) + len(view.schema.columns))
    return max(1, MEMORY // (8 * numbers))


def _shares(trials: Sequence[Trial], size: int) -> list[Tile]:
    """Parts of at most this size, as equal as can be."""
    parts = -(-len(trials) // size)
    bounds = [len(trials) * part // parts for part in range(parts + 1)]
    return [tuple(trials[start:stop]) for start, stop in pairwise(bounds)]
