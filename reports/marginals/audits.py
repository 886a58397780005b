"""Whole audits of noisy marginals at their exact claim: game, controls, checks and verdict."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from scipy.stats import binomtest

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.formatting import rounded_down
from dpaudit.game.pool import workers_ended
from dpaudit.plugins.access import Access
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from reports import cervical, markdown
from reports.command import Run, write_json

MU: Final = 2.0
"""What is claimed and true."""
CONFIDENCE: Final = 0.99
"""Of the interval of how often limits are above the claim."""
AT_ONCE: Final = 10
"""Audits that share their worker process."""
HEADS = (
    "what the attacker sees",
    "models",
    "proved, median (range)",
    "verdicts",
    "above the claim",
    "99 % interval",
)


@dataclass(frozen=True)
class Audits:
    """Audits that differ in their seed alone.

    Attributes:
        access: What the attacker sees; all other settings are the defaults.
        models: Shadow models of each audit.
        repeats: How many audits.
    """

    access: Access
    models: int
    repeats: int

    @property
    def name(self) -> str:
        """Names them in results and in random streams."""
        return f"audits, {self.access}, {self.models} models"

    def run(self, number: int, table: pd.DataFrame) -> dict[str, Any]:
        """One of them: its verdict, and what is proved; none if a control failed."""
        result = audit_by_keywords(
            "marginals",
            table,
            schema=cervical.SCHEMA_FILE,
            parameters={"mu": MU},
            access=self.access,
            shadow_models=self.models,
            seed=Stream(number, self.name, "audit").seed(),
            jobs=1,
            progress=False,
        )
        return {"verdict": result.verdict.value, "proved": result.proved}


AUDITS: Final = (
    Audits(Access.RELEASED, models=300, repeats=100),
    Audits(Access.OUTPUT, models=100, repeats=50),
)


def complete(run: Run, table: pd.DataFrame) -> dict[str, Any]:
    """Runs the audits that the results lack, writing them after every few.

    Args:
        run: What was asked for.
        table: The table of Cervical Cancer.

    Returns:
        All results.

    Raises:
        OSError: If they cannot be written.
    """
    path = run.out / "audits.json"
    found = stored(path)
    found["versions"] = versions()
    for case in AUDITS:
        results = found["cases"].setdefault(case.name, [])
        repeats = 1 if run.quick else case.repeats
        while len(results) < repeats:
            with workers_ended():
                for number in range(len(results), min(len(results) + AT_ONCE, repeats)):
                    results.append(case.run(number, table))
            write_json(path, found)
            print(f"{case.name}: {len(results)} of {repeats}, {_above(results)} above", flush=True)
    return found


def stored(path: Path) -> dict[str, Any]:
    """The results that a file holds; none if there is no file."""
    if not path.exists():
        return {"cases": {}}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def page(found: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    cases = [(case, found["cases"].get(case.name, [])) for case in AUDITS]
    return markdown.table(HEADS, (_row(case, results) for case, results in cases if results))


def _row(case: Audits, results: Sequence[dict[str, Any]]) -> Sequence[object]:
    limits = [one["proved"] or 0.0 for one in results]
    middle, low, high = (
        rounded_down(limit) for limit in (statistics.median(limits), min(limits), max(limits))
    )
    verdicts = Counter(one["verdict"] for one in results)
    counted = binomtest(_above(results), len(results)).proportion_ci(CONFIDENCE, "exact")
    return (
        case.access,
        case.models,
        f"{middle} ({low} to {high})",
        ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())),
        f"{_above(results)} of {len(results)}",
        f"{100.0 * counted.low:.2f} % to {100.0 * counted.high:.1f} %",
    )


def _above(results: Sequence[dict[str, Any]]) -> int:
    """How many limits lie above what is true; where nothing is proved none does."""
    return sum((one["proved"] or 0.0) > MU for one in results)
