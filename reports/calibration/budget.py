"""How much of the study to run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much of the study to run.

    Attributes:
        epsilons: True epsilons where outcomes are enumerated.
        simulated: True epsilons where audits are simulated.
        sizes: Trials per world of enumerated cells.
        largest: Trials per world of the largest enumerated cells, at the simulated epsilons.
        draws: Simulated data sets where one costs little.
        near: Simulated data sets, or sequences, where a rule comes near its level.
        long_draws: Simulated sequences.
        length: Their length: trials, or pairs of them for a rule of other tools.
        one_run: Numbers of canaries.
        strength: Simulated audits by models per world, to see what is proved.
        tightness: Simulated audits of a median.
    """

    epsilons: tuple[float, ...]
    simulated: tuple[float, ...]
    sizes: tuple[int, ...]
    largest: int
    draws: int
    near: int
    long_draws: int
    length: int
    one_run: tuple[int, ...]
    strength: dict[int, int]
    tightness: int


FULL = Budget(
    epsilons=(0.1, 0.5, 1.0, 2.0, 4.0),
    simulated=(0.1, 1.0, 4.0),
    sizes=(25, 100, 400),
    largest=1000,
    draws=2000,
    near=4000,
    long_draws=1000,
    length=2000,
    one_run=(25, 100, 1000),
    strength={200: 60, 1000: 25},
    tightness=60,
)
QUICK = Budget(
    epsilons=(1.0,),
    simulated=(1.0,),
    sizes=(25,),
    largest=40,
    draws=60,
    near=40,
    long_draws=40,
    length=300,
    one_run=(25,),
    strength={25: 5},
    tightness=10,
)
