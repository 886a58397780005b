"""The study of the number of teachers: its page, and that it measures only what lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reports.repeats as repeats
from reports.command import Run
from reports.markdown import MARK
from reports.number_of_teachers import run as study


def rows(*means: float) -> dict[str, Any]:
    return {
        str(number): {"auroc": {"B": {"mean": mean, "lda": mean}}, "auprc": 0.1}
        for number, mean in enumerate(means)
    }


def test_the_page_has_means_intervals_and_the_best_number() -> None:
    found = {study.NOISE: rows(0.4, 0.5, 0.6), "marginals alone, 1": rows(0.8, 0.9)}
    for place, teachers in enumerate(study.TEACHERS):
        low = 0.5 + 0.05 * place
        found[f"noise, 1, {teachers}"] = rows(low, low + 0.001, low + 0.002)
    found["noise, 10, 5"] = {"0": {"error": "no"}}
    page = study.page(found)
    assert "| pate-gan | 5 | 0.501 (0.499 to 0.503) ~ | – |" in page
    assert "| pate-gan | 200 | 0.751 (0.749 to 0.753) | – |" in page
    assert "in 1 the generator failed" in page
    [said] = [line for line in page.splitlines() if line.startswith("- ")]
    assert "best 200 teachers, worst 5" in said
    p_value = float(said.split("p = ")[1].split()[0])
    assert p_value < 1e-4


def test_the_committed_page_follows_from_the_results() -> None:
    home = Path(study.__file__).parent
    found = json.loads((home / "results" / "repeats.json").read_text())["repeats"]
    assert (home / "README.md").read_text().split(MARK)[1] == f"\n{study.page(found)}"


def test_every_number_of_teachers_is_asked_for_at_every_budget() -> None:
    found = {source.name: source for source in study.sources(quick=False)}
    expected = 1 + len(study.EPSILONS) * (1 + len(study.STARTS) * len(study.TEACHERS))
    assert len(found) == expected
    given = {"epsilon": 10.0, "delta": 1e-5, "teachers": 20}
    assert found["noise, 10, 20"][1:] == ("pate-gan", given)
    assert found["marginals, 10, 20"][1:] == ("pate-gan-marginals", given)


def test_results_are_resumed_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, int]] = []

    class Done:
        def __init__(self, row: dict[str, Any]) -> None:
            self.result = lambda: row

    class Pool:
        def __init__(self, *given: object, **named: object) -> None: ...
        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *ended: object) -> None: ...
        def submit(self, function: object, task: repeats.TableTask) -> Done:
            asked.append((task.source.name, task.number))
            return Done({"seconds": 0.1, "auroc": {}})

    monkeypatch.setattr(repeats, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(repeats, "as_completed", list)
    monkeypatch.setattr(repeats, "experiment", lambda *given: None)
    sources = [repeats.Source(repeats.REAL), repeats.Source("b"), repeats.Source("a")]
    (tmp_path / "x.json").write_text(json.dumps({"repeats": {"b": {"0": {"seconds": 1}}}}))
    run = Run(home=tmp_path, out=tmp_path)
    found = repeats.complete(run, "x.json", sources, repeats=2, rows=10)
    assert asked == [("real", 0), ("a", 0), ("b", 1), ("a", 1)]
    assert found["b"]["0"] == {"seconds": 1}
    written = json.loads((tmp_path / "x.json").read_text())["repeats"]
    assert list(written) == ["real", "b", "a"]
    repeats.complete(run, "x.json", sources, repeats=2, rows=10)
    assert len(asked) == 4
