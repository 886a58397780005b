"""Tests whether the draws of samplers follow the laws by which a replay charges them."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy

from dpaudit.plugins.protocols import World
from dpaudit.replaying.findings import ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.transcript import Unfollowed

_REDRAWN: Final = 450_000
"""The natural fit in which samplers are drawn from again."""
_REDRAWS: Final = 10_000
_NOT_ITS_LAW: Final = 1e-6
"""Below this p-value, over all samplers, one does not follow its law."""


def test_samplers(fits: Fits, findings: ReplayFindings) -> None:
    """Tests whether the draws of libraries and of named samplers follow the laws that are charged.

    The Kolmogorov-Smirnov test of all draws by their distribution function; whole numbers are
    spread evenly over their steps of it.
    """
    if not any(pilot.has_samplers for pilot in findings.pilots):
        return
    fits.say("draws of each sampler, to test its law")
    [fit] = fits.natural([(World.OUT, _REDRAWN)], redraws=_REDRAWS)
    for noise in fit.transcript.redrawn:
        if noise.law is None or not noise.law.has_cdf:
            continue
        # a sampler that is given its seed draws the same again
        drawn = noise.drawn[: None if np.any(noise.drawn != noise.drawn[0]) else 1]
        places = noise.law.cdf(drawn)
        if noise.law.whole:
            below = noise.law.cdf(drawn - 1.0)
            places = below + fits.rng("steps", 0).random(places.shape) * (places - below)
        p_value = float(scipy.stats.kstest(places.ravel(), "uniform").pvalue)
        if p_value < _NOT_ITS_LAW / len(fit.transcript.redrawn):
            why = (
                f"{places.size:,} draws of this sampler do not follow the law by which it is "
                f"charged, {noise.law.name} of scale {np.max(noise.law.scale):.4g} "
                f"(Kolmogorov-Smirnov, p = {p_value:.0e})"
            )
            findings.pilots[-1].unfollowed.append(Unfollowed(noise.site, why))
