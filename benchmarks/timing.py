"""CPU time of calls that take turns, so that a drifting clock rate touches all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Key = TypeVar("Key")


def cpu_seconds(run: Callable[[], object]) -> float:
    """CPU time of one call, seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


def interleaved(
    runs: Mapping[Key, Callable[[], object]], *, repeats: int, warm_up: bool
) -> dict[Key, list[float]]:
    """CPU times of each call, seconds, in rounds that make every call once.

    Args:
        runs: The calls, by any key.
        repeats: Number of rounds that are timed.
        warm_up: Whether a round that is not timed comes first: imports, caches.

    Returns:
        The times [repeats] of each.
    """
    if warm_up:
        for run in runs.values():
            run()
    times: dict[Key, list[float]] = {key: [] for key in runs}
    for _ in range(repeats):
        for key, run in runs.items():
            times[key].append(cpu_seconds(run))
    return times
