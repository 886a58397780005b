"""Whether an audit chooses the better of its two rules, also where a leak shows on one side alone.

Usage: python -m reports.power.choice   (about two minutes on one core)

The rule, fair coin or exact, is chosen on the fitting part; here both are computed on the scored
part of the same simulated audits. Writes results/choice.json and a table of README.md; the same
numbers every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from reports import markdown
from reports.calibration.mechanisms import Kind, Mechanism, gaussian_epsilon
from reports.command import StudyParser, start, write_json
from reports.power.rules import RULES, ScoreModel, simulate

MODELS, AUDITS, QUICK_AUDITS = 400, 60, 2
MARK: Final = "<!-- choice -->"
NAMES: Final = ("dpaudit", "fair coin", "exact")
"""The chosen rule, and both that it is chosen from."""


@dataclass(frozen=True)
class OneSided:
    """Normal noise, raised in a share of the trials with the record: epsilon has no limit.

    Attributes:
        share: In how many trials of world "in" the leak shows.
        shift: How far the score is raised, in standard deviations of the noise.
        noise: Standard deviation of the noise; 0 for none.
    """

    share: float
    shift: float
    noise: float = 1.0
    delta: float = 1e-5

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The score of each trial; shape (n,)."""
        shows = member & (rng.random(len(member)) < self.share)
        scores: FloatArray = self.noise * rng.normal(size=len(member)) + self.shift * shows
        return scores


LEAKS: Final[dict[str, ScoreModel]] = {
    "sure, in 1 of 10": OneSided(0.1, 1.0, noise=0.0),
    "sure, in 1 of 5": OneSided(0.2, 1.0, noise=0.0),
    "sure, in 1 of 2": OneSided(0.5, 1.0, noise=0.0),
    "6 σ, in 1 of 5": OneSided(0.2, 6.0),
    "4 σ, in 1 of 3": OneSided(1 / 3, 4.0),
    "3 σ, in 1 of 2": OneSided(0.5, 3.0),
    "Gaussian μ 1": Mechanism(Kind.GAUSSIAN, gaussian_epsilon(1.0)),
    "Gaussian μ 2": Mechanism(Kind.GAUSSIAN, gaussian_epsilon(2.0)),
    "Laplace ε 2": Mechanism(Kind.LAPLACE, 2.0),
    "Laplace ε 4": Mechanism(Kind.LAPLACE, 4.0),
    "randomised response ε 2": Mechanism(Kind.RANDOMISED_RESPONSE, 2.0),
    "randomised response ε 4": Mechanism(Kind.RANDOMISED_RESPONSE, 4.0),
}


def case(name: str, audits: int) -> dict[str, Any]:
    """The medians of the chosen rule and of both, and how often the fair coin was chosen."""
    rules = {rule.name: rule for rule in RULES if rule.name in NAMES}
    simulated = [
        simulate(LEAKS[name], MODELS, Stream(6, "power", name, draw)) for draw in range(audits)
    ]
    medians = {
        of: float(np.median([rules[of].number(audit) for audit in simulated])) for of in NAMES
    }
    by_coins = sum(audit.fixed.fitted.by_coins for audit in simulated)
    return {"leak": name, "audits": audits, "by_coins": by_coins, **medians}


def page(cases: Sequence[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    heads = ("leak", *NAMES, "fair coin chosen", "below the better one")
    rows = [
        (
            one["leak"],
            *(f"{one[of]:.2f}" for of in NAMES),
            f"{one['by_coins']} of {one['audits']}",
            f"{100 * max(0.0, 1 - one[NAMES[0]] / max(one[of] for of in NAMES[1:])):.0f} %",
        )
        for one in cases
    ]
    return markdown.table(heads, rows)


def main(given: Sequence[str] | None = None) -> None:
    """Runs all cases; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__)
    run = parser.run_of(parser.parse_args(given))
    cases = [case(name, QUICK_AUDITS if run.quick else AUDITS) for name in LEAKS]
    found = {"versions": versions(), "models": MODELS, "cases": cases}
    write_json(run.out / "choice.json", found)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(cases), mark=MARK)


if __name__ == "__main__":
    start(main)
