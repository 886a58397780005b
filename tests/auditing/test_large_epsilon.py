"""The story of a generator with private extremes at epsilon 8, which no attack can contradict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.alternatives import too_small, what_decides
from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec, game_of
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.tables import load
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.verdict import Verdict
from samples import QUICK_ATTACKS

CLAIM = PrivacyClaim(epsilon=8.0)
GAMES: dict[str, dict[str, Any]] = {
    "two worlds": {"attacks": QUICK_ATTACKS},
    "records": {"records": 16},
    "one run": {"one_run": True},
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ages, hours = rng.integers(18, 90, 300), rng.poisson(40, 300)
    return pd.DataFrame({"age": ages, "hours": hours})


class Uniform:
    """Uniform numbers in ranges."""

    def __init__(self, ranges: dict[str, tuple[float, float]]) -> None:
        self.ranges = ranges

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return pd.DataFrame(
            {name: np.rint(rng.uniform(*bounds, n)) for name, bounds in self.ranges.items()}
        )


@dataclass(frozen=True)
class PrivateExtremes:
    """Reads the range of its output off the private table."""

    epsilon: float = 8.0

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Uniform:
        return Uniform({name: (data[name].min(), data[name].max()) for name in data})


for carried in (Uniform, PrivateExtremes):
    carry(carried)


@pytest.mark.parametrize(
    ("game", "effort"),
    [
        ("one run", "quick"),
        *(
            # Audits of records take minutes; `test_probing` holds that they are probed.
            pytest.param(
                game, effort, marks=pytest.mark.slow if game == "records" else pytest.mark.ci
            )
            for game in GAMES
            for effort in ("quick", "standard")
            if (game, effort) != ("one run", "quick")
        ),
    ],
)
def test_private_extremes_are_never_consistent_and_never_silent_on_probes(
    game: str, effort: str, table: pd.DataFrame, tmp_path: Path
) -> None:
    settings = audit_settings(epsilon=8.0, effort=effort, **GAMES[game])
    spec = build_spec(PrivateExtremes(), audited_table(table, None, settings), settings)
    result = run_audit(spec, tmp_path / "run", jobs=1)
    assert result.verdict is Verdict.VIOLATION
    assert [alarm.id for alarm in result.probe_proofs] == ["epsilon-ignored"]
    for text in (str(result), render_html(result), render_markdown(result)):
        assert "epsilon-ignored" in text


def test_an_audit_without_probes_says_so_in_every_form(table: pd.DataFrame, tmp_path: Path) -> None:
    settings = audit_settings(epsilon=8.0, one_run=True, probe=False)
    spec = build_spec(PrivateExtremes(), audited_table(table, None, settings), settings)
    warnings: list[str] = []
    result = run_audit(spec, tmp_path / "run", jobs=1, on_warning=warnings.append)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "not probed: declined (probe=false)" in " ".join(str(result).split())
    for text in (render_html(result), render_markdown(result)):
        assert "Not probed: declined (probe=false)." in text
    assert result.to_document()["probes"]["why_left_out"] == "declined (probe=false)"
    [warning] = warnings
    assert warning.startswith("100 canaries prove at most 3.17 of epsilon 8, which decides nothing")


@pytest.mark.parametrize("game", GAMES)
def test_what_can_decide_is_proposed_in_the_order_of_cost(game: str) -> None:
    settings = audit_settings(**GAMES[game])
    limit = game_of(settings.game).limit(settings, CLAIM)
    population = load(pd.DataFrame({"age": np.arange(40_000)}), None).population
    if game == "records":
        limit = game_of(settings.game).limit(settings.with_game(records=64), CLAIM)
        assert limit > CLAIM.epsilon
        assert too_small(CLAIM, settings, population, limit=limit) is None
    else:
        size = "100 canaries" if game == "one run" else "400 shadow models"
        said = too_small(CLAIM, settings, population, limit=limit)
        assert said is not None
        assert said.startswith(f"{size} prove at most ")
    facts = tuple(what_decides(CLAIM, settings, population))
    marks = ["probes", "`dpaudit replay`", "`records="]
    marks += ["`canaries=14000`"] * (game != "one run")
    for fact, mark in zip(facts, marks, strict=True):
        assert mark in fact
    few = load(pd.DataFrame({"age": np.arange(15)}), None).population
    replaced = PrivacyClaim(epsilon=8.0, neighbours=Neighbours.REPLACE_ONE)
    assert len(list(what_decides(CLAIM, settings, few))) == 2
    assert len(list(what_decides(replaced, settings, population))) == 2
    declined = audit_settings(probe=False, **GAMES[game])
    assert next(what_decides(CLAIM, declined, population)).startswith("`dpaudit probe`")
