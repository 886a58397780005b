"""An attack on all canaries at once: what the marginals of the synthetic table say of their coins.

A generator that measures marginals with too little noise shows a canary as an excess in the cells
that hold it, however its rows look. The attacker knows every record but the canaries, and so how
many records each cell holds but for them. As in the counts of MAMA-MIA (Golob et al. 2024), a cell
says the more the fewer records are expected in it; as in linear reconstruction (Dinur and Nissim
2003), the coins of all canaries that share a cell are estimated together, so that one is not taken
for another.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from dpaudit.auditing.one_run.cells import codes_of, joint_codes, marginals_of
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import FloatArray, GameView

_PRIOR: Final = 0.25
"""Variance of a fair coin."""
_LEAST_VARIANCE: Final = 0.05
"""Least variance of a count: a cell that must be empty is no proof if the model is not exact."""
_HALVINGS: Final = 40


class CanaryMarginals:
    """Scores each canary by the log odds of its coin, from one- and two-way marginals.

    The counts of all cells are taken for independent and normal: the mean is what the known records
    and the included canaries put there, at the scale of the table trained on; the variance is that
    of drawing synthetic rows, and beside it one for each marginal, as large as its residuals say
    (Paule and Mandel 1982). A marginal that the generator does not keep so counts for little. What
    comes out orders the guesses; no bound relies on it.
    """

    def features(self, table: pd.DataFrame, game: GameView) -> FloatArray:
        """Scores [m] of the canaries; larger means "in", 0 that nothing is known."""
        schema = game.schema
        coded = [
            codes_of(values_of_table(rows, schema), schema)
            for rows in (game.others, game.target, table)
        ]
        tables, cells = tuple(codes for codes, _ in coded), coded[0][1]
        known_rows, canaries, drawn = (len(codes) for codes in tables)
        scale = (known_rows + canaries / 2.0) / max(1, drawn)
        inverse = np.zeros((canaries, canaries))
        evidence = np.zeros(canaries)
        for marginal in marginals_of(schema):
            joint = list(joint_codes(tables, cells, marginal))
            found, place = np.unique(np.concatenate(joint), return_inverse=True)
            size, parts = len(found), np.split(place, np.cumsum([known_rows, canaries]))
            known, own, seen = (np.bincount(part, minlength=size).astype(float) for part in parts)
            residual = scale * seen - known - own / 2.0
            sampling = np.maximum(scale * (known + own / 2.0), _LEAST_VARIANCE)
            beyond = extra_variance(residual, sampling + own * _PRIOR)
            weight = 1.0 / (sampling + beyond)
            rows = parts[1]
            of_cell = csr_array(
                (np.ones(canaries), (np.arange(canaries), rows)), shape=(canaries, size)
            )
            inverse += (of_cell * weight[None, :] @ of_cell.T).toarray()
            evidence += (weight * residual)[rows]
        covariance = np.linalg.inv(inverse + np.eye(canaries) / _PRIOR)
        scores: FloatArray = (covariance @ evidence) / np.diag(covariance)
        return scores


def extra_variance(residual: FloatArray, variance: FloatArray) -> float:
    """The variance that residuals have beyond their own, by Paule and Mandel (1982).

    Args:
        residual: Residuals [cells].
        variance: What variance each has at least, above 0; same shape.

    Returns:
        The number that, added to every variance, makes the mean squared standardised residual 1; 0
        where it is at most 1 without.
    """
    square = residual**2

    def mean(extra: float) -> float:
        return float(np.mean(square / (variance + extra)))

    if mean(0.0) <= 1.0:
        return 0.0
    low, high = 0.0, float(square.max())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if mean(middle) > 1.0 else (low, middle)
    return high
