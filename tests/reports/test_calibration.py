"""The calibration study: it runs, the committed numbers hold, and the pages say what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.calibration import pages, run

ROOT = Path(__file__).resolve().parents[2]
STUDY = ROOT / "reports" / "calibration"


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STUDY / "results" / "rules.json").read_text())
    return found


def significantly_above(cells: list[dict[str, Any]], *, ours: bool) -> list[dict[str, Any]]:
    return [cell for cell in cells if cell["ours"] is ours and cell["low"] > cell["nominal"]]


def test_a_quick_study_flags_as_seldom_as_admitted(tmp_path: Path) -> None:
    run.main(["rules", "pages", "--quick", "--out", str(tmp_path)])
    found = json.loads((tmp_path / "rules.json").read_text())
    cells = found["cells"]
    assert significantly_above(cells, ours=True) == []
    assert {cell["rule"] for cell in significantly_above(cells, ours=False)} >= {
        "joint_beta",
        "Gaussian (GDP) estimate on other mechanisms",
        "largest ratio over thresholds, no interval",
    }
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"rules.json", "rates.svg", "tightness.svg", "speed.svg"}
    assert pages.worst(cells) in pages.readme(found)


def test_no_rule_of_ours_exceeds_its_level(committed: dict[str, Any]) -> None:
    assert significantly_above(committed["cells"], ours=True) == []
    enumerated = [cell for cell in committed["cells"] if not cell["draws"] and cell["ours"]]
    assert max(cell["rate"] / cell["nominal"] for cell in enumerated) > 0.9, "nothing is tight"


def test_every_rule_of_other_tools_that_the_docs_name_violates(committed: dict[str, Any]) -> None:
    violated = {cell["rule"] for cell in significantly_above(committed["cells"], ours=False)}
    assert {
        "all of alpha for each rate",
        "best of ten attacks, uncorrected (clopper_pearson)",
        "best threshold on the test data (Clopper-Pearson)",
        "Clopper-Pearson looked at every 10 pairs",
        "DKW band with Delta-Siege's constant",
    } <= violated


def test_bounds_are_as_tight_as_promised(committed: dict[str, Any]) -> None:
    tightness = {
        (one["rule"], one["where"], one["fitted"], one["scored"]): one["tightness"]
        for one in committed["tightness"]
    }
    preset = "exact, preset threshold"
    assert tightness[preset, "randomised response ε 1", 0, 400] >= 0.84
    assert tightness[preset, "randomised response ε 2", 0, 400] >= 0.87
    cross_validated = "exact, cross-validated threshold"
    assert tightness[cross_validated, "Laplace count ε 1", 399, 399] >= 0.72


def test_the_sequential_proof_comes_as_soon_as_promised(committed: dict[str, Any]) -> None:
    mean = {one["epsilon"]: one["mean"] for one in committed["speed"] if one["nominal"] == 0.05}
    assert max(mean[10.0], mean[5.0]) <= 9
    assert mean[3.0] <= 14
    assert mean[2.0] <= 34


def test_the_pages_say_what_was_measured(committed: dict[str, Any]) -> None:
    assert (STUDY / "README.md").read_text() == pages.readme(committed)
    assert pages.worst(committed["cells"]) in (ROOT / "docs" / "calibration.md").read_text()


def test_a_rule_above_its_level_is_flagged() -> None:
    cell = {"rule": "bold", "ours": False, "where": "here", "n": 25, "rate": 0.2, "draws": 0}
    cells = [cell | {"nominal": 0.05, "low": 0.2, "high": 0.2}]
    assert "| bold | 20.0 % | enumerated | here, n 25 | – | **no** |" in pages.worst(cells)
    honest = [cells[0] | {"rate": 0.04, "low": 0.04, "high": 0.04}]
    assert "| bold | 4.00 % | enumerated | here, n 25 | – | yes |" in pages.worst(honest)
