"""Bugs that no audit of ours proves, and why."""

from __future__ import annotations

from typing import Final

from dpaudit.bugs.bug import Bug, Status

UNPROVED: Final = (
    Bug(
        id="synthcity-bounds",
        package="synthcity",
        versions="0.2.12",
        flaw="bounds and encoders are fitted to the private table",
        source="https://github.com/vanderschaarlab/synthcity/issues/278",
        status=Status.NOT_BUILT,
        note="it pins a torch whose wheels are gigabytes of CUDA; the re-created `synthcity` of "
        "this package has the flaw and is proved",
    ),
    Bug(
        id="dpsynth-sigma",
        package="dpsynth",
        versions="commits of 16 to 22 June 2026",
        flaw="sigma is rho / 3: 0.007 instead of 8.5 at (1, 1e-5)",
        source="https://github.com/google/dpsynth, fixed by 8ecc1a1",
        status=Status.NOT_BUILT,
        note="in the repository only, never on the package index",
    ),
)
"""Bugs without a proof."""
