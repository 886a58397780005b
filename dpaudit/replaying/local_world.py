"""A generator of this environment, fitted by the reference worker in a world's process."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any


class Unpickled:
    """The generator in a file that the coordinator wrote.

    Attributes:
        claim: None: the coordinator knows it.
    """

    claim = None

    def __init__(self, *, path: str) -> None:
        """Reads the generator.

        Args:
            path: A pickle of the coordinator's search path, the schema, and the pickled generator.
        """
        search_path, blob = pickle.loads(Path(path).read_bytes())
        sys.path += [entry for entry in search_path if entry not in sys.path]
        self._schema, self._generator = pickle.loads(blob)

    def dpaudit_prepare(self, data: Any) -> Any:
        """Tables as the generator takes them; each fit has a copy of its own."""
        if isinstance(data, dict):
            tables, parts = self._schema.canonical_tables(data), self._schema.tables
            return {name: parts[name].handed(table) for name, table in tables.items()}
        return self._schema.handed(self._schema.canonical(data))

    def fit(self, data: Any, *, seed: int) -> Any:
        """Fits the generator on prepared tables; returns what has the model."""
        fitted = self._generator.fit(data, seed=seed)
        return self._generator if fitted is None else fitted
