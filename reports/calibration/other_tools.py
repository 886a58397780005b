"""The rules of other tools, and the estimates: how often they exceed the true epsilon."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpaudit.bounds import clopper_pearson, exact, jeffreys, joint_beta
from reports.calibration import peers
from reports.calibration.boundary import Rule, boundary
from reports.calibration.budget import Budget
from reports.calibration.cells import NOMINALS, Cell, enumerated, simulated, stream
from reports.calibration.mechanisms import Kind, Mechanism
from reports.calibration.sections import TARGETS

RR, LAPLACE = Kind.RANDOMISED_RESPONSE, Kind.LAPLACE


def counted(budget: Budget) -> Iterator[Cell]:
    """Rules for a preset threshold: every outcome enumerated."""
    full = len(budget.epsilons) > 1
    leaks = [Mechanism(kind, e) for kind in (RR, LAPLACE) for e in budget.epsilons]
    unsplit = [(m, n) for m in leaks for n in budget.sizes]
    gaussian = [(m, n) for m in leaks for n in budget.sizes if n <= 100]
    jeffreys_cells = list(unsplit)
    joint = [(Mechanism(RR, 1.0), 25)]
    if full:
        # Where the published measurements of these rules were taken.
        unsplit += [(Mechanism(RR, 4.0), 1000), (Mechanism(RR, 3.0), 2000)]
        unsplit += [(Mechanism(RR, 5.0), 10000)]
        jeffreys_cells += [(Mechanism(RR, 4.0), 1000)]
        joint = [(Mechanism(RR, e), 100) for e in (1.0, 2.0, 4.0)]
        joint += [(Mechanism(RR, 4.0), 400)]
    plans: list[tuple[str, Rule, list[tuple[Mechanism, int]]]] = [
        ("all of alpha for each rate", peers.unsplit, unsplit),
        ("Gaussian (GDP) estimate on other mechanisms", peers.gaussian_estimate, gaussian),
        ("jeffreys", jeffreys, jeffreys_cells),
        ("joint_beta", joint_beta, joint),
    ]
    for name, rule, grid in plans:
        for mechanism, n in grid:
            for threshold, rates in mechanism.preset().items():
                for nominal in NOMINALS[: 1 if rule is joint_beta else 2]:
                    at = boundary(rule, n, mechanism.epsilon, mechanism.delta, 1.0 - nominal)
                    yield enumerated(
                        name, ours=False, where=f"{mechanism}, {threshold}", n=n,
                        nominal=nominal, rate=at.rate(*rates),
                    )  # fmt: skip
    n = 400 if full else 25
    for mechanism in [Mechanism(RR, e) for e in budget.epsilons]:
        for name, rule in (("clopper_pearson", clopper_pearson), ("exact", exact)):
            for nominal in NOMINALS:
                at = boundary(rule, n, mechanism.epsilon, mechanism.delta, 1.0 - nominal)
                one = at.rate(*mechanism.preset()["the bit"])
                yield enumerated(
                    f"best of ten attacks, uncorrected ({name})", ours=False,
                    where=f"{mechanism}, independent, each on a budget of its own", n=n,
                    nominal=nominal, rate=1.0 - (1.0 - one) ** TARGETS,
                )  # fmt: skip


def on_test_data(budget: Budget) -> Iterator[Cell]:
    """The best threshold of the scored trials, counted as if it had been fixed before."""
    full = len(budget.epsilons) > 1
    rules = {
        "best threshold on the test data (Clopper-Pearson)": (peers.clopper_pearson_limits, True),
        "best threshold on the test data (Jeffreys)": (peers.jeffreys_limits, True),
        "DKW band with Delta-Siege's constant": (peers.delta_siege_limits, False),
        "largest ratio over thresholds, no interval": (peers.no_interval, False),
    }
    for n in (100, 399, 999) if full else (25,):
        for mechanism in [Mechanism(LAPLACE, e) for e in budget.epsilons]:
            draws = 2000 if full else 60
            scores = [mechanism.scores(n, rng) for rng in [stream("test", mechanism, n)] * draws]
            for name, (limits, both) in rules.items():
                for nominal in NOMINALS:
                    own = limits(n, nominal)
                    count = sum(
                        peers.best_on_test(one, own, delta=0.0, both_directions=both)
                        > mechanism.epsilon
                        for one in scores
                    )
                    yield simulated(
                        name, ours=False, where=str(mechanism), n=n,
                        nominal=nominal, violations=count, draws=draws,
                    )  # fmt: skip


def peeking(budget: Budget) -> Iterator[Cell]:
    """Clopper-Pearson recomputed every ten pairs, at full confidence every time."""
    draws = 2 * budget.long_draws
    for mechanism in [Mechanism(RR, e) for e in budget.epsilons]:
        rates = mechanism.preset()["the bit"]
        rng = stream("peeking", mechanism)
        shape = (draws, budget.length)
        fp = np.cumsum(rng.random(shape) < rates.fpr, axis=1, dtype=np.int64)
        fn = np.cumsum(rng.random(shape) < rates.fnr, axis=1, dtype=np.int64)
        for nominal in NOMINALS:
            exceeded = peers.peeking(
                fn, fp, looks=range(10, budget.length + 1, 10),
                epsilon=mechanism.epsilon, delta=0.0, alpha=nominal,
            )  # fmt: skip
            yield simulated(
                "Clopper-Pearson looked at every 10 pairs", ours=False, where=str(mechanism),
                n=budget.length, nominal=nominal, violations=int(exceeded.sum()), draws=draws,
            )  # fmt: skip
