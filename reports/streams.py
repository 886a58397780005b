"""Random streams keep the names that generators had when the first results were made."""

from __future__ import annotations

import re
from typing import Final

_EARLIER: Final = {
    "pate-gan": "pate-gan-from-noise",
    "pate-gan-marginals": "pate-gan",
    "pate-gan-marginals-16-bins": "pate-gan-16-bins",
}


def stream_of(source: str) -> str:
    """What names the random streams of a source of tables, so that its results can be made again.

    Args:
        source: The name of a generator, perhaps with more after a space or a comma.
    """
    return re.sub(r"^[\w-]+", lambda name: _EARLIER.get(name[0], name[0]), source)
