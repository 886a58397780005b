"""What a fitted model discloses beside its synthetic rows, taken before it is dropped."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.errors import TrialError
from dpaudit.plugins.access import Disclosed, Disclosure
from dpaudit.plugins.foreign import patches_apart
from dpaudit.plugins.protocols import FloatArray, GameView

COMPARED: Final = 256
"""Records other than the target that a discriminator scores, at equal distances in the table."""
_METHODS: Final = {
    Disclosure.DISCRIMINATOR: "discriminate",
    Disclosure.PARAMETERS: "parameters",
    Disclosure.RELEASED: "released",
}


def disclosed(model: object, seen: Collection[Disclosure], game: GameView) -> Disclosed:
    """Asks a model for what attacks see of it; whatever it does wrong is the trial's outcome.

    The records that a discriminator scores are the same in both worlds.

    Args:
        model: The fitted model.
        seen: What attacks see.
        game: Names the target, other records and released facts.

    Returns:
        What attacks see and no more.

    Raises:
        TrialError: If the model lacks a method, or gives numbers of another shape or not finite.
    """
    return {one: _asked(model, one, game) for one in Disclosure if one in seen}


def _asked(model: object, what: Disclosure, game: GameView) -> FloatArray:
    name = _METHODS[what]
    method = getattr(model, name, None)
    if not callable(method):
        raise TrialError(f"the model has no method {name}, which its generator says it has")
    arguments, length = [], None
    if what is Disclosure.DISCRIMINATOR:
        rows = _scored(game)
        arguments, length = [rows], len(rows)
    elif what is Disclosure.RELEASED:
        length = len(game.released_facts)
    with patches_apart():
        values = np.array(method(*arguments), dtype=np.float64)
    if values.ndim != 1 or length not in (None, len(values)):
        wanted = "a flat array" if length is None else f"{length} numbers"
        raise TrialError(f"{name} must give {wanted}, it gave shape {values.shape}")
    if not np.isfinite(values).all():
        raise TrialError(f"{name} gave numbers that are not finite")
    return values


def _scored(game: GameView) -> pd.DataFrame:
    """The target and other records."""
    others = game.others
    chosen = np.unique(np.linspace(0, len(others) - 1, min(COMPARED, len(others))).astype(int))
    return game.schema.canonical(pd.concat([game.target, others.iloc[chosen]]))
