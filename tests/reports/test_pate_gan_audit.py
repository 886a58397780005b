"""The study of six published PATE-GANs: its parts run, its sentences follow from its numbers."""

from __future__ import annotations

import json
import shutil
import xml.dom.minidom
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.plugins.recorder import Reader
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit_generators.published import Switch, SwitchedPateGan
from reports.pate_gan_audit import (
    access,
    access_exact,
    access_settings,
    access_words,
    audits,
    average,
    kept,
    matrix,
    notes,
    pages,
    pictures,
    published,
    remains,
    run,
    sequential,
    setting,
    tables,
    training,
    worst,
)
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.setting import Game

STUDY = Path(__file__).resolve().parents[2] / "reports" / "pate_gan_audit"
RESULTS = STUDY / "results"
CEILING = 4.681517


def plan(folder: Path, **given: Any) -> Plan:
    return Plan(out=folder, runs=folder / "runs", **given)


def record(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_published_bounds_follow_from_published_errors(published_audits: dict[str, Any]) -> None:
    for ours, theirs in (
        (published.AVERAGE, "average_case_cervical_naive"),
        (published.WORST, "worst_case_querybased"),
    ):
        assert list(ours) == list(published.SIX)
        for name, row in ours.items():
            auc, epsilon, errors = published_audits[theirs][name]
            assert (row.auc, [row.false_negatives, row.false_positives]) == (auc, errors)
            assert row.clopper_pearson == pytest.approx(epsilon, abs=1e-9)
    assert published.AVERAGE["updated"].clopper_pearson == pytest.approx(CEILING, abs=1e-6)
    partitions = published_audits["teacher_partitions_686_records_5_teachers"]
    assert partitions == published.PARTITIONS


def test_table_2_has_19_violations_and_5_bugs() -> None:
    assert sum(map(len, published.VIOLATIONS.values())) == 19
    assert sum(map(len, published.BUGS.values())) == 5


@pytest.mark.slow
def test_generators_without_data_are_caught_by_unequal_rows_alone(tmp_path: Path) -> None:
    def audited(names: str, game: Game, models: int) -> dict[str, dict[str, Any]]:
        chosen = tuple(names.split(","))
        worst.run(plan(tmp_path, names=chosen, models=models), games=[game])
        found = kept.read(tmp_path, "worst")
        return {name: found[f"{name}-{game}"] for name in chosen}

    unequal = audited("constant-row,null", Game.PUBLISHED, 1000)
    assert unequal["constant-row"]["asked"]["rows"] == {"in": 5, "out": 4}
    assert unequal["constant-row"]["auc"] == 1.0
    assert unequal["constant-row"]["clopper_pearson"] == pytest.approx(CEILING, abs=1e-6)
    assert unequal["null"]["clopper_pearson"] > 2.0
    assert audited("random-row", Game.PUBLISHED, 60)["random-row"]["auc"] > 0.9
    for name, equal in audited("constant-row,random-row,null", Game.VALID, 60).items():
        assert equal["asked"]["rows"] == {"in": 5, "out": 5}
        assert equal["proved"] == 0.0, name


def test_what_is_kept_is_not_done_again_unless_asked_otherwise(tmp_path: Path) -> None:
    path, done = tmp_path / "part" / "one.json", []

    def work() -> dict[str, Any]:
        done.append(1)
        return {"found": len(done)}

    assert kept.kept(path, {"models": 10}, work)["found"] == 1
    assert kept.kept(path, {"models": 10}, work)["found"] == 1
    assert kept.kept(path, {"models": 20}, work)["found"] == 2
    assert kept.read(tmp_path, "part")["one"]["found"] == 2


def test_a_valid_game_has_public_bounds() -> None:
    as_published, valid = Game.PUBLISHED, Game.VALID
    for name in published.SIX:
        given = setting.parameters(name, as_published, iterations=7)
        fixed = setting.parameters(name, valid, iterations=7)
        assert "bounds-from-data" not in given.get("without", "")
        assert "bounds-from-data" in fixed["without"]
        assert "bounds-from-data" not in fixed.get("also", "")
        assert given["iterations"] == fixed["iterations"] == 7
    assert "bounds-from-data" in setting.parameters("turing", as_published, iterations=1)["also"]
    schema = setting.average_schema()
    assert all(column.kind.numeric for column in schema.columns)
    assert len(schema.columns) == 29


def test_figure_4_is_one_of_lambda_1() -> None:
    """320,000 queries, nearly all unanimous: the paper's 50k, 30k and 320k."""
    votes = [0, 0, 0, 0, 5_000, 315_000]
    large = training.moments(votes, gamma=1.0)["epsilon"]
    assert large["updated"] == pytest.approx(50e3, rel=0.1)
    assert large["synthcity"] == pytest.approx(30e3, rel=0.15)
    assert large["borealis, smartnoise"] == pytest.approx(320e3, rel=0.1)
    small = training.moments(votes, gamma=0.001)["epsilon"]
    assert len({round(small[who], 9) for who in training.ACCOUNTANTS}) == 1
    assert small["one Laplace draw, exact"] < small["updated"] < 10.0


def test_partitions_are_counted_by_teacher() -> None:
    seen = notes.Notes()
    for index, rows in enumerate(([0, 1, 1], [1, 2])):
        seen.read(Reader.TEACHER, np.array(rows), index=index)
    seen.read(Reader.STUDENT, np.array([9]))
    found = training.partition(seen)
    assert found["distinct"] == [2, 2]
    assert found["shared"] == [1, 1]
    assert found["used"] == 3
    assert found["readers"] == ["student", "teacher"]


def test_the_matrix_is_scored_cell_by_cell() -> None:
    listed = published.VIOLATIONS | published.BUGS

    def found(keys: list[str], severity: str = "violation") -> dict[str, Any]:
        return {"findings": [{"id": key, "severity": severity} for key in keys]}

    six = {
        name: found([key for key, whose in listed.items() if name in whose])
        for name in published.SIX
    }
    perfect = six | {"pate-gan-marginals": found([]), "switch-delta-xor": found(["delta-xor"])}
    score = tables.score(perfect)
    assert (score["named"], score["missing"], score["not_alone"]) == (24, [], {})
    worse = perfect | {
        "original": found([]),
        "pate-gan-marginals": found(["delta-ignored"]),
        "pate-gan-switched": found(["batch-from-rows"], "note"),
        "switch-delta-xor": found(["delta-xor", "no-pate"]),
    }
    score = tables.score(worse)
    assert score["named"] == 24 - 6
    assert score["clean"] == {"pate-gan-marginals": ["delta-ignored"], "pate-gan-switched": []}
    assert score["not_alone"] == {"delta-xor": ["delta-xor", "no-pate"]}
    assert "**missed**" in matrix.table_2(worse)


def test_scored_models_are_those_before_the_proof() -> None:
    counts = {"n_in": 16, "n_out": 16}
    early = {"stopped": {"trials": 48, "stopped_early": True}, "counts": counts, "proved": 1.4}
    assert sequential.scored(early) == {
        "proved_early": True,
        "scored_models": 32,
        "trained_models": 48,
    }
    cap = early | {"stopped": {"trials": 600, "stopped_early": False}}
    assert sequential.scored(cap)["scored_models"] is None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[audits.Asked]:
    """Audits are not run but noted; each finds a violation."""
    calls: list[audits.Asked] = []

    def audit(asked: audits.Asked, plan: Plan) -> dict[str, Any]:
        calls.append(asked)
        counts = {"false_negatives": 0, "false_positives": 0, "n_in": 16, "n_out": 16}
        stopped = {"trials": 48, "stopped_early": True} if asked.sequential else None
        return {"verdict": "violation", "proved": 2.0, "counts": counts, "stopped": stopped}

    monkeypatch.setattr(audits, "audit", audit)
    return calls


def test_the_average_case_is_run_as_published_and_valid(
    asked: list[audits.Asked], tmp_path: Path, data_folder: Path
) -> None:
    small = plan(tmp_path, data=data_folder, models=10)
    average.run(small)
    assert [(call.generator, call.hold_out) for call in asked] == [
        *((name, as_published) for name in published.SIX for as_published in (True, False)),
        ("pate-gan-switched", False),
    ]
    assert {(call.target, call.attack, call.models) for call in asked} == {
        (397, "groundhog-naive", 10)
    }
    average.run(small)
    assert len(asked) == 13, "all are kept"
    turing = plan(tmp_path, data=data_folder, models=20, names=("turing",))
    sequential.run(turing, seeds=2)
    assert [(call.seed, call.models) for call in asked[13:]] == [(0, 20), (1, 20)]
    assert kept.read(tmp_path, "sequential")["turing-1"]["scored_models"] == 32


def test_what_remains_is_fixed_one_deviation_at_a_time(
    asked: list[audits.Asked], tmp_path: Path, data_folder: Path
) -> None:
    worst.run(plan(tmp_path, models=10, names=("borealis",)), games=[Game.VALID])
    assert asked.pop().parameters["gamma"] == 1e-4
    remains.run(plan(tmp_path, data=data_folder, models=10))
    fixed = [set(call.parameters["without"].split(",")) for call in asked]
    always = {"bounds-from-data", "output-not-inverted"}
    assert fixed[0] == always
    assert all(len(one - always) == 1 for one in fixed[1:])
    assert {"accountant-missing-log", "partition-by-position"} <= set.union(*fixed)


def test_an_audit_is_run_and_its_record_kept(tmp_path: Path) -> None:
    null = audits.Asked(
        generator="null",
        table=setting.worst_table(),
        schema=setting.worst_schema(),
        parameters={},
        target=0,
        attack="query-absolute",
        models=10,
        hold_out=True,
        seed=0,
        name="null",
    )
    found = audits.audit(null, plan(tmp_path, jobs=1))
    assert found["controls"] == {"null": True, "positive": True}
    assert found["counts"]["n_in"] == 4
    assert found["shadow_models"] == {"in": 10, "out": 10}
    json.dumps(found)
    assert (tmp_path / "runs" / "null" / "10-0" / "result.json").exists()


@pytest.mark.slow
def test_each_access_level_includes_those_below(tmp_path: Path, data_folder: Path) -> None:
    names = ("labels-copied", "delta-ignored", "pate-gan-switched")
    few = plan(tmp_path, models=20, names=names)
    access.run(few, cases=["worst"])
    found = kept.read(tmp_path, "access")
    copied, ignored = (found[f"worst-{name}"] for name in names[:2])
    assert min(copied["proved"].values()) == copied["attacks"]["output"]["proved"] > 0.9
    assert copied["attacks"]["output"]["auc"] == 1.0
    assert ignored["proved"]["output"] < 0.9 < ignored["proved"]["released"]
    assert sum(copied["trials"].values()) == 40
    assert found["worst-pate-gan-switched"]["proved"]["released"] < 1.0
    access.run(plan(tmp_path, data=data_folder, models=10, iterations=1, names=("borealis",)),
               cases=["average"])  # fmt: skip
    average_case = kept.read(tmp_path, "access")["average-borealis"]
    assert average_case["asked"]["records"] == average_case["asked"]["rows"] == 686
    assert "bounds-from-data" in average_case["asked"]["parameters"]["without"]


def test_every_switch_and_implementation_is_asked_and_explained() -> None:
    asked = {*published.SIX, "pate-gan-switched", *map(str, Switch)}
    assert {*access_settings.SUBJECTS} == {*access_words.WHY} == asked
    assert {*access_settings.WORST} <= asked


def test_what_labels_tell_is_exact() -> None:
    one = access_exact.Labels(1, np.array([0.25, 0.75]), 1, 1.0)
    assert access_exact.epsilon_of(one, delta=0.0) == pytest.approx(np.log(3), abs=1e-5)
    # delta = p - e^epsilon q, so epsilon = ln((p - delta) / q)
    assert access_exact.epsilon_of(one, delta=0.05) == pytest.approx(np.log(0.7 / 0.25), abs=1e-5)
    maybe = one._replace(chance=0.5)  # mixture: .5, .5 against .75, .25
    assert access_exact.epsilon_of(maybe, delta=0.0) == pytest.approx(np.log(2), abs=1e-5)
    many = access_exact.Labels(5000, np.array([0.49, 0.51]), 1, 1.0)
    mu = 0.02 * np.sqrt(5000) / 0.5
    at = access_exact.epsilon_of(many, delta=1e-5)
    gaussian = norm.cdf(mu / 2 - at / mu) - np.exp(at) * norm.cdf(-mu / 2 - at / mu)
    assert gaussian == pytest.approx(1e-5, rel=0.1)


def test_the_budget_buys_the_labels_that_a_training_has(data_folder: Path) -> None:
    table, schema = setting.average_table(data_folder), setting.average_schema()
    for name in ("smartnoise", "pate-gan-switched"):
        generator = build(name, GENERATORS, given={"gamma": 4e-3}, offered={"schema": schema})
        assert isinstance(generator, SwitchedPateGan)
        bought = access_exact.bought(generator, generator.settings_for(len(table)))
        facts = dict(
            zip(generator.released_facts, generator.fit(table, seed=1).released(), strict=True)
        )
        assert facts["labels"] == bought


@pytest.mark.ci
def test_variants_are_run_and_traced(tmp_path: Path, data_folder: Path) -> None:
    tiny = plan(tmp_path, models=10, iterations=2, names=("borealis",))
    worst.run(tiny, games=[Game.PUBLISHED])
    assert kept.read(tmp_path, "worst")["borealis-published"]["counts"]["n_in"] == 4
    few = plan(
        tmp_path, data=data_folder, iterations=8, names=("borealis", "smartnoise", "updated")
    )
    training.run(few, lambdas=[1.0])
    traced = kept.read(tmp_path, "training")
    assert traced["partition-borealis"]["distinct"] == [137, 137, 137, 137, 138]
    assert traced["partition-smartnoise"]["distinct"] == [138, 137, 137, 137, 137]
    assert traced["partition-updated"]["distinct"] == [137] * 5
    assert traced["partition-updated"]["shared"] == [137, 137]
    assert len(traced["losses-updated"]["own"]) == 8
    assert sum(traced["moments-1"]["votes"]) == 8 * 5 * 64
    settings = tables.settings(29)["settings"]
    assert settings["updated"]["generator"]["hidden"] == (116, 116)
    assert "116, 116" in matrix.table_3(
        {"table-3": {"asked": {"columns": 29}, "settings": settings}}
    )


@pytest.mark.ci
def test_the_committed_results_answer_what_is_asked_today(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> dict[str, Any]:
        raise AssertionError("a committed result would be made again")

    for module, name in ((audits, "audit"), (worst, "features_of"), (training, "traced"),
                         (tables, "trace"), (tables, "settings"), (access, "play"),
                         (access_exact, "exact_labels")):  # fmt: skip
        monkeypatch.setattr(module, name, refuse)
    copy = shutil.copytree(RESULTS, tmp_path / "results", ignore=lambda *_: {"quick"})
    run.main(["--data", str(data_folder), "--out", str(copy)])
    for path in RESULTS.glob("*/*.json"):
        assert (copy / path.relative_to(RESULTS)).read_bytes() == path.read_bytes()


def invented() -> dict[str, dict[str, dict[str, Any]]]:
    """Records of every part, as if updated alone leaked in a valid game."""
    parts: dict[str, dict[str, dict[str, Any]]] = {part: {} for part in pages.PARTS}
    for name in published.SIX:
        for game in ("published", "valid"):
            leaks = game == "published" or name == "updated"
            one = {
                "asked": {"generator": name, "game": game, "rows": 686, "models": 1000, "cap": 300},
                "verdict": "violation" if leaks else "consistent",
                "reasons": ["because"],
                "auc": 0.99 if leaks else 0.5,
                "counts": dict(
                    false_negatives=0, false_positives=3 if leaks else 390, n_in=400, n_out=400
                ),
                "exact": 4.4 if leaks else 0.0,
                "clopper_pearson": 4.3 if leaks else 0.0,
                "detectable_epsilon": 1.3,
                "leaks": [{"column": "Age", "feature": "max", "importance": 0.1}] * leaks,
            }
            parts["average"][f"{name}-{game}"] = one
        parts["sequential"][f"{name}-0"] = {
            "asked": {"generator": name, "cap": 300},
            "scored_models": 32,
        }
        parts["training"][f"partition-{name}"] = {
            "asked": {"rows": 686}, "distinct": [137] * 5, "shared": [0, 0], "used": 685,
        }  # fmt: skip
        parts["training"][f"losses-{name}"] = {
            "asked": {"rows": 686}, "own": [0.7, 0.5], "others": [0.8, 0.6], "iterations": 2,
        }  # fmt: skip
    for gamma in (0.001, 1.0):
        found = training.moments([0, 0, 0, 0, 0, 320_000], gamma=gamma)
        parts["training"][f"moments-{gamma:g}"] = found | {
            "asked": {"parameters": {"gamma": gamma}}
        }
    for fix, verdict in (("", "violation"), ("teachers-refitted", "consistent"),
                         ("batch-from-rows", "violation")):  # fmt: skip
        parts["remains"][f"average-updated-{fix or 'nothing'}"] = {
            "asked": {"case": "average", "generator": "updated", "fix": fix, "models": 200},
            "auc": 0.9, "exact": 3.0, "verdict": verdict,
        }  # fmt: skip
    return parts


@pytest.mark.ci
def test_sentences_and_figures_follow_from_the_numbers(tmp_path: Path) -> None:
    found = invented()
    page = pages.readme(found)
    assert "for 6 of 6" in page
    assert "for 1 of 6 (updated)" in page
    assert "removes it: `teachers-refitted`." in page
    assert "through bounds read off each world's table, by the harness" in page
    assert "Figure 4 was not made at λ 0.001" in page
    pictures.draw(found, tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == [f"figure-{n}.svg" for n in (12, 2, 3, 4, 5)]
    for path in tmp_path.iterdir():
        svg = xml.dom.minidom.parse(str(path)).documentElement
        assert svg is not None
        assert svg.getAttribute("role") == "img"
        first, second = [node.nodeName for node in svg.childNodes][:2]
        assert (first, second) == ("title", "desc")


def test_the_page_says_what_was_measured() -> None:
    found = {part: kept.read(RESULTS, part) for part in pages.PARTS}
    assert (STUDY / "README.md").read_text() == pages.readme(found)
