"""What is proved of noisy marginals whose claim is exact, and how often more than is true.

Usage: python -m reports.marginals.run [PART ...]   (about half an hour on one core; resumes)

Parts: limits (models are fitted in both worlds as in an audit, and attacked, cut and bounded by its
code; engine, store and controls, which take more time than the models, are left out, and the
attacker sees the noisy counts), audits (whole ones). Writes results/*.json as it goes, and the
tables of README.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.account.conversion import gaussian_mu
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import Part, SplitTrials, evaluate, fit_attack
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, audited_table, build_two_worlds
from dpaudit.bounds import guarantee_of
from dpaudit.formatting import rounded_down
from dpaudit.model.choices import Access
from dpaudit.plugins.access import ModelAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray, Job, World
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_generators.marginals import Marginals
from reports import cervical, markdown
from reports.command import Run, StudyParser, start, write_json
from reports.marginals import audits

TABLES = ("cervical-cancer",)
PARTS: Final = ("limits", "audits")
AT_ONCE: Final = 500
"""Models that are fitted together."""
HEADS = (
    "table",
    "tree",
    "claim",
    "models",
    "proved, median (range)",
    "share of the claim",
    "above the claim",
)
WHOLE: Final = (
    "Whole audits of Cervical Cancer at mu 2; what the table does not name is the default:"
)


@dataclass(frozen=True)
class Case:
    """Audits of one claim.

    Attributes:
        tree: Which pairs are counted.
        budget: In which currency, and how much: what is claimed and true.
        models: Shadow models of each.
        repeats: How many audits.
        settings: Other choices of the audit.
    """

    tree: str
    budget: dict[str, float]
    models: int
    repeats: int
    settings: dict[str, Any] = field(default_factory=lambda: {"target": cervical.TARGET})

    @property
    def where(self) -> str:
        """The table."""
        return str(self.settings.get("worst_case", "Cervical Cancer"))

    @property
    def name(self) -> str:
        """Names it in results and in random streams."""
        budget = " ".join(f"{name} {value:.4g}" for name, value in self.budget.items())
        return f"limits, {self.tree} of {self.where}, {budget}, {self.models} models"


CASES: Final = (
    Case("independent", {"mu": 2.0}, 1000, 100, {"worst_case": "mst"}),
    Case("label", {"mu": 2.0}, 1000, 11),
    Case("label", {"mu": gaussian_mu(epsilon=1.0, delta=1e-5)}, 10_000, 5),
    Case("label", {"mu": gaussian_mu(epsilon=1.0, delta=1e-5)}, 20_000, 5),
    Case("label", {"mu": gaussian_mu(epsilon=1.0, delta=1e-5)}, 40_000, 5),
    Case("deviations", {"mu": 2.0}, 1000, 20),
)


@dataclass(frozen=True)
class Prepared:
    """A case and its table.

    Attributes:
        case: The case.
        table: The table of Cervical Cancer.
    """

    case: Case
    table: pd.DataFrame

    @cached_property
    def audit(self) -> TwoWorldSpec:
        """The audit, before any model is fitted."""
        settings = audit_settings(
            parameters={"tree": self.case.tree, **self.case.budget},
            access=Access.RELEASED,
            attacks=("released",),
            shadow_models=self.case.models,
            rows=1,
            **self.case.settings,
        )
        mine = "worst_case" not in self.case.settings
        schema = cervical.SCHEMA_FILE if mine else None
        table = audited_table(self.table if mine else None, schema, settings)
        return build_two_worlds("marginals", table, settings)

    def result(self, seed: int) -> dict[str, float]:
        """What is proved, and what is claimed and true."""
        settings, claim = self.audit.settings, self.audit.claim
        fitted, scored = 2 * settings.game.fitted, settings.game.scored
        coins = Stream(seed, self.case.name, "coins").rng().random(scored) < 0.5
        member = np.concatenate([np.arange(fitted) % 2 == 0, coins])
        features = self._features(member, seed)
        trials = SplitTrials(
            Part(features[:fitted], member[:fitted]), Part(features[fitted:], member[fitted:]), 0, 0
        )
        guarantee = guarantee_of(claim)
        attack = fit_attack(
            self.audit.attacks[0].attack,
            trials.fitting,
            settings=settings,
            guarantee=guarantee,
            rng=Stream(seed, self.case.name, "attack").rng(),
        )
        found = evaluate(attack, trials, guarantee=guarantee, confidence=settings.confidence)
        return {"proved": found.proved, "claimed": claim.value}

    def _features(self, member: BoolArray, seed: int) -> FloatArray:
        generator, attack = self.audit.generator.generator, self.audit.attacks[0].attack
        game = self.audit.game
        assert isinstance(generator, Marginals)
        assert isinstance(attack, ModelAttack)
        jobs = []
        for number, one in enumerate(member):
            world = World.IN if one else World.OUT
            own = Stream(seed, self.case.name, "fit", number, world).seed()
            jobs.append(Job(world, number, game.dropped_rows(world, number), own))
        found = []
        for first in range(0, len(jobs), AT_ONCE):
            models = generator.fit_many(game.data, jobs[first : first + AT_ONCE]).models
            found += [attack.model_features(model.released(), game.view) for model in models]
        return np.stack(found)


def page(results: Path) -> str:
    """What a folder of results holds, as two Markdown tables."""
    limits, whole = (audits.stored(results / f"{part}.json") for part in PARTS)
    return f"{_limits(limits)}\n{WHOLE}\n\n{audits.page(whole)}"


def _limits(found: dict[str, Any]) -> str:
    cases = [(case, found["cases"].get(case.name, [])) for case in CASES]
    return markdown.table(HEADS, (_row(case, results) for case, results in cases if results))


def _row(case: Case, results: list[dict[str, float]]) -> Sequence[object]:
    limits, claimed = [one["proved"] for one in results], results[0]["claimed"]
    median, low, high = (
        rounded_down(limit) for limit in (statistics.median(limits), min(limits), max(limits))
    )
    return (
        case.where,
        case.tree,
        ", ".join(f"{name} {value:.4g}" for name, value in case.budget.items()),
        case.models,
        f"{median} ({low} to {high})",
        f"{statistics.median(limits) / claimed:.2f}",
        f"{sum(limit > claimed for limit in limits)} of {len(limits)}",
    )


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's tables if they are the study's own."""
    parser = StudyParser(__file__, __doc__, parts=PARTS, tables=TABLES)
    run = parser.run_of(parser.parse_args(given))
    table = cervical.published_table(run.data)
    for part in run.parts:
        {"limits": complete, "audits": audits.complete}[part](run, table)
    text = page(run.out)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", text)
    else:
        print(text)


def complete(run: Run, table: pd.DataFrame) -> None:
    """Computes the limits that the results lack, writing them after each.

    Args:
        run: What was asked for.
        table: The table of Cervical Cancer.

    Raises:
        OSError: If they cannot be written.
    """
    path = run.out / "limits.json"
    found = audits.stored(path)
    found["versions"] = versions()
    for case in CASES:
        results = found["cases"].setdefault(case.name, [])
        prepared, repeats = Prepared(case, table), 1 if run.quick else case.repeats
        while len(results) < repeats:
            results.append(prepared.result(len(results)))
            write_json(path, found)
            print(f"{case.name}: {len(results)} of {repeats}, {results[-1]}", flush=True)


if __name__ == "__main__":
    start(main)
