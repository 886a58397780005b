"""The study of rankings: its measures on lists with a known answer, and its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reports.markdown import MARK
from reports.ranking import run as study
from reports.ranking.permuted import Permuted
from reports.repeats import REAL

REAL_SCORES = {"a": 0.9, "b": 0.8, "c": 0.7, "mean": 0.8}


def row(synthetic: list[float], transfer: list[float]) -> dict[str, Any]:
    names = ("a", "b", "c")
    return {
        "auroc": {
            "C": {**dict(zip(names, synthetic, strict=True)), "mean": 0.5},
            "B": {**dict(zip(names, transfer, strict=True)), "mean": 0.5},
        }
    }


@pytest.mark.parametrize(
    ("synthetic", "transfer", "expected"),
    [
        ([0.9, 0.6, 0.5], [0.5, 0.6, 0.7], (1.0, 1.0, 0.0, 0.1)),
        ([0.5, 0.6, 0.9], [0.9, 0.6, 0.5], (0.0, 0.0, 1.0, -0.1)),
        ([1.0, 1.0, 1.0], [0.5, 0.5, 0.5], (0.0, 0.5, 0.5, 0.0)),
        ([1.0, 1.0, 0.5], [0.6, 0.5, 0.5], (2 / 3, 5 / 6, 5 / 6, 0.05)),
    ],
)
def test_rankings_with_a_known_answer(
    synthetic: list[float], transfer: list[float], expected: tuple[float, ...]
) -> None:
    found = study.agreement(row(synthetic, transfer), {"auroc": {"A": REAL_SCORES}})
    assert found == pytest.approx(expected)


def test_real_records_are_handed_out_once() -> None:
    table = pd.DataFrame({"x": range(20)})
    model = Permuted().fit(table, seed=0)
    assert sorted(model.sample(20, seed=1)["x"]) == list(range(20))
    assert list(model.sample(20, seed=1)["x"]) != list(model.sample(20, seed=2)["x"])
    with pytest.raises(ValueError, match="21 are asked for"):
        model.sample(21, seed=1)


def test_the_page_says_what_beats_noise() -> None:
    rng = np.random.default_rng(0)

    def rows(good: bool) -> dict[str, Any]:
        lists = [[0.9, 0.8, 0.7] if good else list(rng.random(3)) for _ in range(12)]
        return {str(number): row(one, one) for number, one in enumerate(lists)}

    found = {
        REAL: {"0": {"auroc": {"A": REAL_SCORES}}},
        study.FRESH: rows(True),
        study.NOISE: rows(False),
        "marginals, 1": rows(True),
        "pate-gan-marginals, 1": {**rows(False), "11": {"error": "no"}},
    }
    page = study.page(found)
    [line] = [one for one in page.splitlines() if one.startswith("| marginals, 1 ")]
    assert line.split("|")[2].strip() == "1.000 (1.000 to 1.000)"
    assert [cell.strip() for cell in line.split("|")[-3:-1]] == ["0 %", "0.500"]
    said = [one for one in page.splitlines() if one.startswith("- ")]
    assert len(said) == 4
    assert all("marginals, 1" in one and "pate-gan" not in one for one in said)
    assert "3 classifiers; real AUROC from 0.700 to 0.900" in page


def test_the_committed_page_follows_from_the_results() -> None:
    home = Path(study.__file__).parent
    found = json.loads((home / "results" / "repeats.json").read_text())["repeats"]
    assert (home / "README.md").read_text().split(MARK)[1] == f"\n{study.page(found)}"


def test_sources_have_controls_and_budgets() -> None:
    found = [source.name for source in study.sources(quick=False)]
    assert found[:4] == [REAL, study.FRESH, study.NOISE, study.CONSTANT]
    assert {"marginals, 1", "marginals, 10", "pate-gan-marginals, 10", "gan"} <= set(found)
