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
        draws: Simulated audits by trials per world.
        long_draws: Simulated sequences of pairs.
        pairs: Their length.
        sequential_caps: Simulated sequential audits by cap, in pairs.
        one_run: Numbers of canaries.
        checked: Simulated audits of a cell that are also put through `evaluate`.
    """

    epsilons: tuple[float, ...]
    simulated: tuple[float, ...]
    sizes: tuple[int, ...]
    largest: int
    draws: dict[int, int]
    long_draws: int
    pairs: int
    sequential_caps: dict[int, int]
    one_run: tuple[int, ...]
    checked: int


FULL = Budget(
    epsilons=(0.1, 0.5, 1.0, 2.0, 4.0),
    simulated=(0.1, 1.0, 4.0),
    sizes=(25, 100, 400),
    largest=1000,
    draws={25: 2000, 100: 2000, 400: 2000, 1000: 2000},
    long_draws=1000,
    pairs=2000,
    sequential_caps={100: 1000, 400: 400},
    one_run=(25, 100, 1000),
    checked=5,
)
QUICK = Budget(
    epsilons=(1.0,),
    simulated=(1.0,),
    sizes=(25,),
    largest=40,
    draws={25: 60},
    long_draws=40,
    pairs=300,
    sequential_caps={40: 30},
    one_run=(25,),
    checked=2,
)
