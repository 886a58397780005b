"""Chooses the engine that the caller named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import loky

from dpaudit.errors import MissingExtraError, SettingsError
from dpaudit.game.flight import Engine
from dpaudit.game.local import LocalEngine
from dpaudit.model.choices import EngineName


@contextmanager
def opened_engine(name: str, *, jobs: int | None, scheduler: str | None) -> Iterator[Engine]:
    """Opens an engine; what it started or connected to is left at the end.

    Args:
        name: An `EngineName`.
        jobs: Worker processes of this machine; one per available core if None.
        scheduler: Address of a dask scheduler, or the JSON file that it writes.

    Yields:
        The engine.

    Raises:
        SettingsError: If these do not belong together, or `jobs` is not positive.
        MissingExtraError: If dask is not installed.
        ClusterError: If no scheduler answers, or its workers cannot run trials.
    """
    if name not in list(EngineName):
        raise SettingsError(f"`engine` must be one of {', '.join(EngineName)}, got {name!r}")
    if jobs is not None and jobs < 1:
        raise SettingsError(f"`jobs` must be at least 1, got {jobs}")
    if name == EngineName.LOCAL:
        if scheduler is not None:
            raise SettingsError("`scheduler` is for the engine dask: give it as `engine` too")
        yield LocalEngine(jobs or loky.cpu_count())
        return
    if scheduler is None:
        raise SettingsError("the engine dask needs the address of its scheduler: give `scheduler`")
    if jobs is not None:
        raise SettingsError("`jobs` are of this machine: with the engine dask the scheduler says")
    try:
        from dpaudit.game.cluster_flight import cluster_engine
    except ModuleNotFoundError:
        raise MissingExtraError("the engine dask", "distributed", "cluster") from None
    with cluster_engine(scheduler) as engine:
        yield engine
