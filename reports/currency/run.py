"""Lower limits on mu, rho and a privacy curve from the same models of a Gaussian mechanism.

Usage: python -m reports.currency.run   (about six minutes on one core)

Writes results/limits.json and the table of README.md; the same numbers every time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import Part, SplitTrials, evaluate, fit_attack
from dpaudit.bounds import guarantee_of
from dpaudit.formatting import rounded_down
from dpaudit.model.claim import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
    PrivacyClaim,
)
from dpaudit.model.column import Column, Kind
from dpaudit.model.gaussian import gaussian_delta, gaussian_epsilon
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, FloatArray, Scorer
from dpaudit.seeds import Stream
from dpaudit_attacks.classifiers import train
from dpaudit_generators.batches import shares_of
from dpaudit_generators.toys import GaussianMarginals, MarginalsModel
from reports import markdown
from reports.command import StudyParser, start, write_json

MU: Final = 0.45
CONFIDENCE: Final = 0.95
DELTA: Final = 1e-5
ROWS: Final = 2000
"""Synthetic rows that each model gives."""
HEADS = (
    "what is released",
    "limit on",
    "true value",
    "proved, median (range)",
    "Clopper-Pearson",
    "above the truth",
)

_COLUMNS = ("a", "b", "c")
_SCHEMA = Schema(
    columns=tuple(Column(name=name, kind=Kind.BINARY, categories=(0, 1)) for name in _COLUMNS)
)
_CURVE_EPSILONS = (0.25, 0.5, 1.0, 2.0)
CLAIMS: tuple[Claim, ...] = (
    GaussianClaim(mu=MU),
    ConcentratedClaim(rho=MU**2 / 2),
    CurveClaim(
        points=tuple(
            CurvePoint(epsilon, gaussian_delta(epsilon, MU)) for epsilon in _CURVE_EPSILONS
        )
    ),
    PrivacyClaim(epsilon=gaussian_epsilon(MU, DELTA), delta=DELTA),
)
"""Claims that a Gaussian mechanism of this mu keeps, and no smaller one."""


class Size(NamedTuple):
    """How many models of each world fit an attack and are scored, and how often that is done.

    In full they are split as those of an audit, of which two in five fit its attacks.
    """

    fitted: int
    scored: int
    repeats: int


FULL, QUICK = Size(1333, 2000, 20), Size(50, 100, 2)


class LinearAttack:
    """Logistic regression on features that are drawn already."""

    def check(self, game: object) -> None:
        """Accepts every game."""

    def feature_names(self, game: object) -> tuple[()]:
        """None: there is no table to name them by."""
        return ()

    def features(self, table: object, game: object) -> FloatArray:
        """Never asked for."""
        raise NotImplementedError

    def fit(self, features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
        """Trains the classifier."""
        return train("logistic-regression", features, member, seed=seed)


def worst_case(*, included: bool) -> pd.DataFrame:
    """A table of 220 records; the target is the only difference, and 1 is rare in all columns."""
    ones = 21 if included else 20
    return _SCHEMA.canonical(pd.DataFrame(dict.fromkeys(_COLUMNS, [1] * ones + [0] * 200)))


def _marginals(model: MarginalsModel, rng: np.random.Generator) -> FloatArray:
    del rng
    return np.concatenate(model.marginals)


def _rows(model: MarginalsModel, rng: np.random.Generator) -> FloatArray:
    """Ones among the rows of each column: all that columns drawn independently tell."""
    ones = [rng.binomial(ROWS, shares_of(noisy)[1]) for noisy in model.marginals]
    return np.array(ones, dtype=np.float64)


RELEASES: dict[str, Callable[[MarginalsModel, np.random.Generator], FloatArray]] = {
    "noisy marginals": _marginals,
    "rows alone": _rows,
}


def repeated(size: Size, repeat: int) -> list[dict[str, Any]]:
    """The limits of one repeat, for each release and claim."""
    generator = GaussianMarginals(schema=_SCHEMA, mu=MU)
    coins = Stream(repeat, "currency", "coins").rng().random(2 * size.scored) < 0.5
    member = np.concatenate([np.arange(2 * size.fitted) % 2 == 0, coins])
    fits = np.arange(len(member)) < 2 * size.fitted
    settings = audit_settings(
        attacks=(LinearAttack(),), shadow_models=len(member), confidence=CONFIDENCE
    )
    tables = {world: worst_case(included=world) for world in (True, False)}
    stream = Stream(repeat, "currency", "models").rng()
    models = [generator.fit(tables[bool(one)], seed=int(stream.integers(2**62))) for one in member]
    found = []
    for release, features_of in RELEASES.items():
        rng = Stream(repeat, "currency", release).rng()
        features = np.stack([features_of(model, rng) for model in models])
        trials = SplitTrials(
            Part(features[fits], member[fits]), Part(features[~fits], member[~fits]), 0, 0
        )
        for claim in CLAIMS:
            guarantee = guarantee_of(claim)
            fitted = fit_attack(
                LinearAttack(),
                trials.fitting,
                settings=settings,
                guarantee=guarantee,
                rng=Stream(repeat, "currency", f"attack/{release}").rng(),
            )
            scored = evaluate(fitted, trials, guarantee=guarantee, confidence=CONFIDENCE)
            found.append(
                {
                    "release": release,
                    "repeat": repeat,
                    "quantity": claim.quantity.value,
                    "claim": claim.in_words,
                    "true": claim.value,
                    "counts": list(scored.counts),
                    "proved": scored.proved,
                    "clopper_pearson": guarantee.clopper_pearson(
                        scored.counts, confidence=CONFIDENCE
                    ),
                }
            )
    print(f"repeat {repeat + 1} of {size.repeats}", flush=True)
    return found


def table(found: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    cells = dict.fromkeys((one["release"], one["quantity"]) for one in found)
    return markdown.table(HEADS, (_row(found, *cell) for cell in cells))


def _row(found: list[dict[str, Any]], release: str, quantity: str) -> Sequence[object]:
    cell = [one for one in found if (one["release"], one["quantity"]) == (release, quantity)]
    limits = [one["proved"] for one in cell]
    median, low, high = (
        rounded_down(value) for value in (statistics.median(limits), min(limits), max(limits))
    )
    truth = cell[0]["true"]
    name = f"epsilon at delta {DELTA:g}" if quantity == "epsilon" else quantity
    return (
        release,
        name,
        f"{truth:.4g}",
        f"{median} ({low} to {high})",
        rounded_down(statistics.median(one["clopper_pearson"] for one in cell)),
        f"{sum(limit > truth for limit in limits)} of {len(limits)}",
    )


def main(given: Sequence[str] | None = None) -> None:
    """Runs the study; writes the numbers, and the table of the page if they are the study's own."""
    parser = StudyParser(__file__, __doc__)
    run = parser.run_of(parser.parse_args(given))
    size = QUICK if run.quick else FULL
    found = [one for repeat in range(size.repeats) for one in repeated(size, repeat)]
    write_json(run.out / "limits.json", found)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", table(found))
    else:
        print(table(found))


if __name__ == "__main__":
    start(main)
