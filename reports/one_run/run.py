"""One training, many canaries: what it proves, how often it accuses, what interference costs.

Usage: python -m reports.one_run.run [PART ...]   (about 20 minutes on one core; resumes)

Parts: rules (a fixed fifth of guesses against guesses in turn, on simulated scores), honest (false
violations of mechanisms that keep their claim exactly, games without controls), audits (the same by
whole audits), fixed-noise (a chain of noisy counts that claims epsilon 1), interference (one canary
against many). Writes results/*.json, and the tables of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.one_run.attack import in_then_out, surest_first
from dpaudit.auditing.settings import CANARY_ATTACKS
from dpaudit.bounds import auc, one_run, one_run_in_turn
from dpaudit.model.column import Column, Kind
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.model.schema import Schema
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_generators.toys import GaussianMarginals, LaplaceHistogram
from reports import markdown
from reports.command import StudyParser, start, write_json
from reports.one_run.chain import CHAIN_SCHEMA, COLUMNS, NoisyChain, chain_table
from reports.one_run.games import FIFTH, games
from reports.one_run.lone import lone_aucs

DELTA, CONFIDENCE = 1e-5, 0.95
SHARE = 1.0 - (1.0 - CONFIDENCE) / len(CANARY_ATTACKS)
FIXED = NoisyChain(scale=0.3)
"""Its true epsilon is 5 / 0.3 = 16.7 for the noisy counts."""
Rng = np.random.Generator
Rows = list[dict[str, Any]]
Bools = Any


def _released(m: int, rng: Rng, share: float) -> Bools:
    """Whether guesses are right where this share of the included canaries is seen for sure."""
    coins = rng.random(m) < 0.5
    scores = coins * (rng.random(m) < share) + rng.uniform(0.0, 0.5, m)
    order, inside = in_then_out(scores)
    return coins[order] == inside


def _normal(m: int, rng: Rng, mu: float) -> Bools:
    coins = rng.random(m) < 0.5
    order, inside = surest_first(mu * (rng.normal(size=m) + mu * coins - mu / 2.0))
    return coins[order] == inside


SCORES: dict[str, Callable[[int, Rng], Bools]] = {
    "resampled rows (63 % of included canaries seen)": lambda m, rng: _released(m, rng, 0.632),
    "all rows released": lambda m, rng: _released(m, rng, 1.0),
    "10 % of included canaries seen": lambda m, rng: _released(m, rng, 0.1),
    "normal scores, mu 1": lambda m, rng: _normal(m, rng, 1.0),
    "normal scores, mu 2": lambda m, rng: _normal(m, rng, 2.0),
}


def rules(quick: bool) -> Rows:
    """Median bounds of both rules on the same guesses."""
    rows: Rows = []
    for name, draw in SCORES.items():
        for m in (100, 500):
            rng = Stream(5, "", f"one-run/{name}", m).rng()
            drawn = [draw(m, rng) for _ in range(2 if quick else 40)]
            k = round(FIFTH * m)
            fifth = [
                one_run(int(of[:k].sum()), k, m, delta=DELTA, confidence=CONFIDENCE) for of in drawn
            ]
            turn, share = (
                [one_run_in_turn(of, delta=DELTA, confidence=level) for of in drawn]
                for level in (CONFIDENCE, SHARE)
            )
            rows.append({"scores": name, "canaries": m, "draws": len(drawn)})
            for key, found in (("fifth", fifth), ("turn", turn), ("share", share)):
                rows[-1][key] = round(float(np.median(found)), 2)
    return rows


TOWNS, TOWN_ROWS = 150, 300
TOWN_SCHEMA = Schema(
    columns=(
        Column(name="town", kind=Kind.CATEGORICAL, categories=tuple(range(TOWNS))),
        Column(name="sex", kind=Kind.BINARY, categories=("f", "m")),
        Column(name="old", kind=Kind.BINARY, categories=("no", "yes")),
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0),
    )
)


def town_table() -> pd.DataFrame:
    """Two records of each town."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "town": np.arange(TOWN_ROWS) % TOWNS,
            "sex": rng.choice(["f", "m"], TOWN_ROWS),
            "old": rng.choice(["no", "yes"], TOWN_ROWS, p=[0.9, 0.1]),
            "x": rng.random(TOWN_ROWS),
        }
    )


def _of_toy(toy: Any) -> Callable[[pd.DataFrame, int, int], pd.DataFrame]:
    return lambda data, n, seed: toy.fit(data, seed=seed).sample(n, seed=seed)


HISTOGRAM = LaplaceHistogram(schema=TOWN_SCHEMA, column="town", epsilon=1.0)
MU = 1.0


def honest(quick: bool) -> Rows:
    """How often mechanisms at exactly their claim are accused."""
    draws, rows = (5 if quick else 1000), []
    trainings = 5 if quick else 300
    coins_alone: dict[str, tuple[float, float, Callable[[Bools, Rng], Any]]] = {
        "randomised response": (1.0, 0.0, _respond),
        "Laplace noise on each coin": (1.0, 0.0, _laplace),
        "Gaussian noise on each coin": (gaussian_epsilon(MU, DELTA), DELTA, _gaussian),
        "randomised response that reveals with probability delta": (1.0, 1e-3, _revealing),
    }
    for name, (epsilon, delta, odds_of) in coins_alone.items():
        rng = Stream(6, "", f"one-run/{name}", 0).rng()
        flagged = 0
        for _ in range(draws):
            coins = rng.random(100) < 0.5
            order, inside = surest_first(odds_of(coins, rng))
            right = coins[order] == inside
            flagged += one_run_in_turn(right, delta=delta, confidence=CONFIDENCE) > epsilon
        rows.append({"mechanism": name, "epsilon": epsilon, "draws": draws, "flagged": flagged})
    claim = gaussian_epsilon(MU, DELTA)
    marginals = GaussianMarginals(schema=TOWN_SCHEMA, mu=MU)
    chain = NoisyChain(scale=COLUMNS - 1.0)
    for name, generator, table, schema, epsilon, delta in (
        ("noisy histogram", _of_toy(HISTOGRAM), town_table(), TOWN_SCHEMA, 1.0, 0.0),
        ("Gaussian marginals", _of_toy(marginals), town_table(), TOWN_SCHEMA, claim, DELTA),
        ("noisy chain", chain, chain_table(300), CHAIN_SCHEMA, 1.0, 0.0),
    ):
        given = {"epsilon": epsilon, "delta": delta, "canaries": 100, "rows": 3000}
        found = games(generator, table, schema, number=trainings, **given)
        flagged = sum(one.proved > epsilon for one in found)
        rows.append({"mechanism": name, "epsilon": epsilon, "draws": trainings, "flagged": flagged})
    return rows


def _respond(coins: Bools, rng: Rng) -> Any:
    """Randomised response at epsilon 1; as sure of every coin."""
    return np.where((rng.random(len(coins)) < expit(1.0)) == coins, 1.0, -1.0)


def _laplace(coins: Bools, rng: Rng) -> Any:
    output = coins + rng.laplace(size=len(coins))
    return np.abs(output) - np.abs(output - 1.0)


def _gaussian(coins: Bools, rng: Rng) -> Any:
    return rng.normal(size=len(coins)) + MU * coins - MU / 2.0


def _revealing(coins: Bools, rng: Rng) -> Any:
    odds = _respond(coins, rng)
    return np.where(rng.random(len(coins)) < 1e-3, np.where(coins, 9.0, -9.0), odds)


def audits(quick: bool) -> Rows:
    """Whole audits, controls included, of the noisy histogram at exactly its claim."""
    draws, flagged = (2 if quick else 100), 0
    for seed in range(draws):
        result = audit_by_keywords(
            HISTOGRAM,
            town_table(),
            schema=TOWN_SCHEMA,
            one_run=True,
            canaries=100,
            rows=1000,
            seed=seed,
            jobs=1,
        )
        flagged += result.verdict is dpaudit.Verdict.VIOLATION
    return [{"mechanism": "noisy histogram", "epsilon": 1.0, "draws": draws, "flagged": flagged}]


def fixed_noise(quick: bool) -> Rows:
    """What one training proves of a generator that claims 1, with noise for more."""
    rows: Rows = []
    for records, canaries, factor in (
        (500, 100, 1),
        (500, 100, 10),
        (2000, 100, 10),
        (2000, 300, 10),
    ):
        given = {"epsilon": 1.0, "delta": DELTA, "canaries": canaries, "rows": records * factor}
        number = 2 if quick else 30
        found = list(games(FIXED, chain_table(records), CHAIN_SCHEMA, number=number, **given))
        row: dict[str, Any] = {
            "records": records,
            "canaries": canaries,
            "synthetic rows": records * factor,
        }
        for key in ("nearest", "proved"):
            bounds = [getattr(one, key) for one in found]
            row[key] = round(float(np.median(bounds)), 2)
            row[f"{key} violations"] = sum(bound > 1.0 for bound in bounds)
        rows.append({**row, "draws": number})
    return rows


def interference(quick: bool) -> Rows:
    """AUC of the attack on marginals: one canary against many, on the same records."""
    return lone_aucs(FIXED, chain_table(500), CHAIN_SCHEMA, quick=quick, auc_of=auc)


PARTS: dict[str, Callable[[bool], Rows]] = {
    "rules": rules,
    "honest": honest,
    "audits": audits,
    "fixed-noise": fixed_noise,
    "interference": interference,
}


def page(found: dict[str, Rows]) -> str:
    """The results as Markdown tables."""
    parts = []
    for name, rows in found.items():
        lines = (["–" if of is None else _short(of) for of in row.values()] for row in rows)
        parts.append(f"\n**{name}**\n\n{markdown.table(list(rows[0]), lines)}")
    return "".join(parts)


def _short(value: object) -> object:
    return f"{value:.3g}" if isinstance(value, float) else value


def main(given: Sequence[str] | None = None) -> None:
    """Runs the parts that the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS))
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "found.json"
    found = json.loads(path.read_text())["parts"] if path.exists() else {}
    for name in run.parts:
        if name not in found:
            found[name] = PARTS[name](run.quick)
        done = {name: found[name] for name in PARTS if name in found}
        write_json(path, {"versions": versions(), "parts": done})
        if run.is_whole:
            markdown.replace_table(run.home / "README.md", page(done))
        print(name, found[name], flush=True)


if __name__ == "__main__":
    start(main)
