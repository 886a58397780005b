"""Types and metadata that the fields of a result share."""

from __future__ import annotations

from typing import Annotated, Final

from dpaudit.results.document import Limits

Whole = Annotated[int, Limits(minimum=0)]
Positive = Annotated[int, Limits(minimum=1)]
NonNegative = Annotated[float, Limits(minimum=0)]
Probability = Annotated[float, Limits(minimum=0, maximum=1)]
Separation = Annotated[float, Limits(minimum=0, maximum=0.5)]

OPTIONAL: Final = {"optional": True}
"""Metadata of a field that is absent from the document where it is None."""
