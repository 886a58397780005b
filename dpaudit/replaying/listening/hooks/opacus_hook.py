"""Opacus: its noise is torch's, which is followed; a secret sub-sample is said not to be."""

from __future__ import annotations

from typing import Any

from .. import marks
from ..channel import site


def install(library: Any) -> None:
    """Says where a sub-sample amplifies: what its secret coins hide is not counted."""
    plain = library.DPOptimizer.add_noise

    def add_noise(self: Any) -> Any:
        if marks.world.hears:
            marks.world.tell("subsample", site(), "DP-SGD: batches are taken to be public")
        return plain(self)

    library.DPOptimizer.add_noise = add_noise
