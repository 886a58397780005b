"""Opacus: its noise is torch's and is followed; secret sub-sampling is reported as not followed."""

from __future__ import annotations

from typing import Any

from .. import marks
from ..channel import site


def install(library: Any) -> None:
    """Reports where a sub-sample amplifies: the protection of its secret coins is not counted."""
    plain = library.DPOptimizer.add_noise

    def add_noise(self: Any) -> Any:
        if marks.world.hears:
            marks.world.tell("subsample", site(), "DP-SGD: batches count as public")
        return plain(self)

    library.DPOptimizer.add_noise = add_noise
