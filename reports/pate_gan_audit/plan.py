"""How much of the study is run, and where its results and run folders are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of the study is run, and where.

    Attributes:
        out: Folder of the results, with a folder for each part.
        runs: Folder of run folders, from which stopped audits go on.
        data: Folder of the public tables; None if none was named.
        names: These generators alone; every one that a part has if empty.
        models: Shadow models of each world; as many as for the committed results if None.
        iterations: Cap on the iterations of each training; the part's own if None.
        rows: First rows of the table that are traced; all if None.
        jobs: Worker processes; None for one per core.
        seed: Root of every random stream.
    """

    out: Path
    runs: Path
    data: Path | None = None
    names: tuple[str, ...] = ()
    models: int | None = None
    iterations: int | None = None
    rows: int | None = None
    jobs: int | None = None
    seed: int = 0

    def chosen(self, known: Sequence[str]) -> list[str]:
        """Those of the generators of a part that are asked for."""
        return [name for name in known if not self.names or name in self.names]
