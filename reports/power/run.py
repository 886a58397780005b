"""What every bound proves of simulated leaks, beside the rules of public auditors.

Usage: python -m reports.power.run [MECHANISM ...]   (about 20 minutes on one core; resumes)

Each simulated audit has one attack, whose score is drawn; all rules judge the same scores. Writes
results/power.json after every case, and the tables of README.md; the same numbers every time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.seeds import Stream
from dpaudit.versions import versions
from reports import markdown
from reports.calibration.mechanisms import Kind, Mechanism, gaussian_epsilon
from reports.command import StudyParser, start, write_json
from reports.power.rules import CONFIDENCE, RULES, Guarantee, Rule, simulate

CLAIM: Final = 1.0
AUDITS: Final = {200: 40, 400: 60, 1000: 24, 2000: 16, 4000: 8}
"""Simulated audits by shadow models of both worlds together."""
LARGEST: Final = {8000: 4}
"""Of Gaussian leaks alone."""
CLOSER: Final = {("Laplace ε 1", 2000): 100}
"""More audits where the fair coin and one cut are so close that few of them say too little."""
QUICK: Final = {60: 2}


class Leak(NamedTuple):
    """A mechanism and what its parameter is."""

    part: str
    symbol: str
    value: float

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism at its true epsilon."""
        kind = PARTS[self.part]
        epsilon = gaussian_epsilon(self.value) if kind is Kind.GAUSSIAN else self.value
        return Mechanism(kind, epsilon)

    def __str__(self) -> str:
        return f"{self.part.replace('-', ' ')} {self.symbol} {self.value:g}"


PARTS: Final = {
    "Gaussian": Kind.GAUSSIAN,
    "Laplace": Kind.LAPLACE,
    "randomised-response": Kind.RANDOMISED_RESPONSE,
}
LEAKS: Final = (
    *(Leak("Gaussian", "μ", value) for value in (0.5, 1.0, 2.0, 4.0)),
    *(Leak("Laplace", "ε", value) for value in (1.0, 2.0, 4.0)),
    *(Leak("randomised-response", "ε", value) for value in (1.0, 2.0, 4.0)),
)


def case(leak: Leak, models: int, audits: int) -> dict[str, Any]:
    """What every rule says of audits of one leak with one number of models."""
    mechanism = leak.mechanism
    numbers: dict[str, list[float]] = {rule.name: [] for rule in RULES}
    by_coins = 0
    for draw in range(audits):
        audit = simulate(mechanism, models, Stream(5, "power", f"{leak}/{models}", draw))
        by_coins += audit.fixed.fitted.by_coins
        for rule in RULES:
            numbers[rule.name].append(rule.number(audit))
    return {
        "mechanism": leak.part,
        "leak": str(leak),
        "epsilon": round(mechanism.epsilon, 4),
        "delta": mechanism.delta,
        "models": models,
        "audits": audits,
        "by_coins": by_coins,
        "rules": {
            name: {
                "median": round(float(np.median(own)), 4),
                "above_claim": int((np.array(own) > CLAIM).sum()),
                "above_truth": int((np.array(own) > mechanism.epsilon).sum()),
            }
            for name, own in numbers.items()
        },
    }


def plan(parts: Sequence[str], *, quick: bool) -> Iterator[tuple[Leak, int, int]]:
    """Every case: its leak, models and audits."""
    for leak in LEAKS:
        if leak.part in parts:
            sizes = QUICK if quick else AUDITS
            if leak.part == "Gaussian" and not quick:
                sizes = sizes | LARGEST
            for models, audits in sizes.items():
                yield leak, models, CLOSER.get((str(leak), models), audits)


def page(cases: Sequence[dict[str, Any]]) -> str:
    """The results as three Markdown tables."""
    bounds = [rule for rule in RULES if rule.guarantee is Guarantee.BOUND]
    others = [rule for rule in RULES if rule.guarantee is not Guarantee.BOUND]
    return "\n".join((_proved(cases, bounds), _proved(cases, others), _validity(cases)))


def _proved(cases: Sequence[dict[str, Any]], rules: Sequence[Rule]) -> str:
    """Medians, and the share of audits above the claim, by case and rule."""
    heads = ("leak", "true ε", "models", *(rule.name for rule in rules))
    rows = [
        (
            one["leak"],
            f"{one['epsilon']:.3g}",
            one["models"],
            *(_median_and_share(one["rules"][rule.name], one["audits"]) for rule in rules),
        )
        for one in cases
    ]
    return markdown.table(heads, rows)


def _median_and_share(found: dict[str, Any], audits: int) -> str:
    return f"{found['median']:.2f} ({_percent(found['above_claim'], audits)})"


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %"


def _validity(cases: Sequence[dict[str, Any]]) -> str:
    """How often each rule exceeds the true epsilon, pooled by mechanism."""
    heads = ("rule", "trials counted", "promise", *PARTS.values(), "worst case")
    rows = []
    for rule in RULES:
        shares = []
        for part in PARTS:
            own = [one for one in cases if one["mechanism"] == part]
            above = sum(one["rules"][rule.name]["above_truth"] for one in own)
            shares.append(f"{above} of {sum(one['audits'] for one in own)}")
        worst = max(cases, key=lambda one: one["rules"][rule.name]["above_truth"] / one["audits"])
        above = worst["rules"][rule.name]["above_truth"]
        where = f"{above} of {worst['audits']}: {worst['leak']}, {worst['models']} models"
        promise = str(rule.guarantee)
        rows.append((rule.name, rule.trials, promise, *shares, where if above else "–"))
    return markdown.table(heads, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the cases that the results lack; writes the page's tables if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS))
    run = parser.run_of(parser.parse_args(given))
    path = run.out / "power.json"
    cases: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
    order = [(str(leak), models) for leak, models, _ in plan(tuple(PARTS), quick=run.quick)]
    for leak, models, audits in plan(run.parts, quick=run.quick):
        if any((one["leak"], one["models"]) == (str(leak), models) for one in cases):
            continue
        cases.append(case(leak, models, audits))
        cases.sort(key=lambda one: order.index((one["leak"], one["models"])))
        found = {
            "versions": versions(),
            "claim": CLAIM,
            "confidence": CONFIDENCE,
            "cases": cases,
        }
        write_json(path, found)
        if run.is_whole:
            markdown.replace_table(run.home / "README.md", page(cases))
        print(leak, models, flush=True)


if __name__ == "__main__":
    start(main)
