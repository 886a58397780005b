"""Searches for the most vulnerable record, on generators with known answers."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.settings import DEFAULT_ATTACKS
from dpaudit.auditing.two_worlds.target_search import TargetSearchSpec, candidates_of, separations
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.errors import InterruptedRunError, RunFolderError, SettingsError, TargetError
from dpaudit.game.flight import TrialProgress, ignore_progress
from dpaudit.game.pool import LocalEngine
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.target import exposing_first, exposure_scores, find_holders, neighbour_distances
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.game.worlds import halves
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import encode
from dpaudit.model.tables import load
from dpaudit.plugins.protocols import GameView, World
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_markdown
from dpaudit.results.result import result_schema
from dpaudit.versions import versions

FARTHEST, RICHEST, COPIED = 7, 11, 23
FAST: dict[str, Any] = {
    "target": "vulnerable",
    "attacks": ("groundhog-naive,classifier=logistic-regression",),
    "shadow_models": 60,
    "epsilon": 1.0,
    "jobs": 1,
}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """80 records; the farthest one is none that a generator below gives away."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 80),
            "income": rng.normal(30, 4, 80).round(2),
            "city": rng.choice(["Bern", "Ulm", "Graz"], 80),
            "ill": rng.integers(0, 2, 80),
        }
    )
    table.loc[FARTHEST, ["age", "income"]] = [99, 1.0]
    table.loc[RICHEST, "income"] = 60.0
    table.loc[COPIED, "age"] = 78
    return table


def noise(data: pd.DataFrame, n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records that have nothing to do with the data."""
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n_rows),
            "income": rng.normal(30, 4, n_rows),
            "city": rng.choice(["Bern", "Ulm", "Graz"], n_rows),
            "ill": rng.integers(0, 2, n_rows),
        }
    )


def ignores(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks nothing."""
    return noise(data, n_rows, np.random.default_rng(seed))


def tells_highest_income(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks the one record with the highest income, through noise."""
    rng = np.random.default_rng(seed)
    table = noise(data, n_rows, rng)
    table.loc[0, "income"] = data["income"].max() + rng.normal(0, 3)
    return table


def copies_one(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks the one record of its age, in the middle of all others."""
    table = noise(data, n_rows, np.random.default_rng(seed))
    found = data[data["age"] == 78]
    if len(found):
        table.iloc[0] = found.iloc[0]
    return table


def fails(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Gives nothing at all."""
    raise ValueError("no")


for function in (ignores, tells_highest_income, copies_one, fails):
    carry(function)


def asked(generator: object, table: pd.DataFrame, **options: Any) -> Any:
    given = {
        "epsilon": 1.0,
        "target": "vulnerable",
        "attacks": FAST["attacks"],
        "shadow_models": 60,
        **options,
    }
    return build_spec(generator, load(table, None), audit_settings(**given))


def searched(generator: object, table: pd.DataFrame, **options: Any) -> TargetSearchSpec:
    search = asked(generator, table, **options)
    assert isinstance(search, TargetSearchSpec)
    return search


def same(one: Any, other: Any, *, but: tuple[str, ...] = ()) -> bool:
    """Whether two results have the same document, times and salted digests aside."""
    dropped = {"seconds", "date", "data", *but}
    first, second = (
        {key: value for key, value in result.to_document().items() if key not in dropped}
        for result in (one, other)
    )
    return bool(first == second)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("generator", "row"),
    [(tells_highest_income, RICHEST), pytest.param(copies_one, COPIED, marks=pytest.mark.slow)],
)
def test_the_one_record_that_leaks_is_found(
    table: pd.DataFrame, tmp_path: Path, generator: object, row: int
) -> None:
    search = searched(generator, table)
    assert search.candidates[0] == FARTHEST
    assert row in search.candidates
    audit = search.resolve(tmp_path, engine=LocalEngine(1), on_progress=ignore_progress)
    assert audit.target.row == row


@pytest.fixture(scope="module")
def found(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A whole audit of the record found."""
    folder = tmp_path_factory.mktemp("found")
    return audit_by_keywords(tells_highest_income, table, **FAST, out=folder)


@pytest.mark.ci
def test_its_audit_says_how_it_was_found(found: Any) -> None:
    assert found.verdict is dpaudit.Verdict.VIOLATION
    selection = {"candidates": 20, "trainings": 60}
    assert found.to_document()["target"] == {
        "choice": "vulnerable",
        "row": RICHEST,
        "selection": selection,
    }
    jsonschema.validate(found.to_document(), result_schema())
    line = f"row {RICHEST}, the most vulnerable of 20 candidates (60 trainings)"
    assert f"target    {line}" in str(found).splitlines()
    assert line in render_markdown(found)
    assert "--target vulnerable" in found.reproduce


@pytest.mark.ci
def test_it_is_the_audit_of_the_row_named(found: Any, table: pd.DataFrame) -> None:
    named = audit_by_keywords(tells_highest_income, table, **{**FAST, "target": RICHEST})
    assert same(found, named, but=("target", "reproduce"))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_nothing_of_it_tells_of_the_search(table: pd.DataFrame, neighbours: Neighbours) -> None:
    audit = searched(ignores, table, neighbours=neighbours).audit_of(RICHEST)
    named = asked(ignores, table, neighbours=neighbours, target=f"row:{RICHEST}")
    assert audit.specification == named.specification
    assert audit.id == named.id
    assert audit.target.record.equals(named.target.record)
    assert audit.game.missing == named.game.missing
    assert audit.game.data.equals(named.game.data)


@pytest.mark.ci
def test_it_takes_the_trainings_of_one_audit_more(found: Any) -> None:
    for folder, roles in (
        (found.folder / "target", {"target-selection": 60}),
        (found.folder, {"audit": 60, "replay": 1, "null-control": 14, "positive-control": 14}),
    ):
        with closing(sqlite3.connect(folder / STORE_FILE)) as store:
            counts = dict(store.execute("SELECT role, COUNT(*) FROM trial GROUP BY role"))
        assert counts == roles


@pytest.mark.ci
def test_a_generator_that_ignores_its_data_is_not_flagged(table: pd.DataFrame) -> None:
    result = audit_by_keywords(ignores, table, **FAST)
    assert result.target.row in candidates_of(load(table, None))
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.epsilon_lower_bound == 0


@pytest.mark.parametrize(
    "again",  # whether the audit of the record found is interrupted as well
    [pytest.param(False, marks=pytest.mark.ci), pytest.param(True, marks=pytest.mark.slow)],
)
def test_interrupted_searches_resume_and_jobs_do_not_matter(
    table: pd.DataFrame, tmp_path: Path, again: bool
) -> None:
    search = searched(tells_highest_income, table, shadow_models=24)
    stops = [(Role.TARGET_SELECTION, 11), *([(Role.AUDIT, 5)] if again else [])]

    def stop(progress: TrialProgress) -> None:
        if stops and (progress.role, progress.done) == stops[0]:
            del stops[0]
            raise KeyboardInterrupt

    searching = r"(\d+) of 24 shadow models \(target-selection\)"
    with pytest.raises(InterruptedRunError, match=searching) as stopped:
        run_audit(search, tmp_path / "one", jobs=1, on_progress=stop)
    kept = int(re.findall(searching, str(stopped.value))[0])
    assert 11 <= kept < 24  # the whole batch of the eleventh trial
    assert not (tmp_path / "one" / STORE_FILE).exists()
    if again:
        with pytest.raises(InterruptedRunError, match=r"\d+ of 24 shadow models \(audit\)"):
            run_audit(search, tmp_path / "one", jobs=1, on_progress=stop)
    seen: list[TrialProgress] = []
    resumed = run_audit(search, tmp_path / "one", jobs=1 + again, on_progress=seen.append)
    rest = [progress for progress in seen if progress.role is Role.TARGET_SELECTION]
    assert [progress.done for progress in rest[:1]] == ([] if again else [kept])
    left = {Role.AUDIT, Role.REPLAY}
    if not again:
        left |= {Role.TARGET_SELECTION, Role.NULL_CONTROL, Role.POSITIVE_CONTROL}
    assert {progress.role for progress in seen} == left
    whole = run_audit(search, tmp_path / "two", jobs=1)
    assert same(resumed, whole)


def test_the_plan_is_the_size_of_the_audit(table: pd.DataFrame, tmp_path: Path) -> None:
    seen: list[TrialProgress] = []
    search = searched(ignores, table, shadow_models=40)
    assert search.trainings == 40
    assert search.before == "target: 40 trainings, each without a random half of 20 candidates"
    search.resolve(tmp_path, engine=LocalEngine(1), on_progress=seen.append)
    assert seen[-1] == (Role.TARGET_SELECTION, 40, 40, 0)


def test_no_trial_of_a_search_shares_a_stream_with_the_audit(table: pd.DataFrame) -> None:
    search = searched(ignores, table)
    audit = search.audit_of(search.candidates[0])

    def seeds(role: Role, identity: str) -> set[int]:
        payload = Payload(game=search.game, generators={}, attacks=[], root=0, audit=identity)
        return {
            payload.seed(Trial(role, world, number), purpose)
            for world in World
            for number in range(60)
            for purpose in ("fit", "sample", "globals")
        }

    assert search.id != audit.id
    played = [role for role in Role if role is not Role.TARGET_SELECTION]
    for identity in (search.id, audit.id):
        own = seeds(Role.TARGET_SELECTION, identity)
        assert len(own) == 360
        assert not any(own & seeds(role, audit.id) for role in played)


def test_candidates_are_exposing_then_far_without_a_copy_and_a_quarter_at_most(
    table: pd.DataFrame,
) -> None:
    copied = pd.concat([table, table.iloc[[FARTHEST]]], ignore_index=True)
    loaded = load(copied, None)
    candidates = candidates_of(loaded)
    assert len(candidates) == 20
    assert not {FARTHEST, 80} & {*candidates}
    scores = exposure_scores(find_holders(loaded.data, loaded.schema), len(loaded.data))
    exposing = np.flatnonzero(scores)
    assert {*candidates[: len(exposing)]} == {*exposing}
    assert candidates[0] == RICHEST
    assert (np.diff(scores[list(candidates)]) <= 0).all()
    distances = neighbour_distances(encode(loaded.data, loaded.schema))
    of_far = distances[list(candidates[len(exposing) :])]
    assert (np.diff(of_far) <= 0).all()
    others = np.delete(distances, [*candidates, FARTHEST, 80])
    assert others.max() <= of_far[-1]
    wide = load(pd.DataFrame({"x": np.arange(1000.0) ** 2}), None)
    assert candidates_of(wide) == tuple(exposing_first(wide.data, wide.schema)[:64])


def test_a_table_with_too_few_candidates_is_refused(table: pd.DataFrame) -> None:
    twins = pd.concat([table, table.iloc[1:]], ignore_index=True)
    for data, count in ((table.iloc[:7], 1), (twins, 1), (twins.iloc[1:], 0)):
        with pytest.raises(TargetError, match=f"quarter of the table, and finds {count}: name"):
            audit_by_keywords("null", data.reset_index(drop=True), **FAST)


def test_each_candidate_is_in_half_of_the_models() -> None:
    included = halves(60, 5, np.random.default_rng(0))
    assert (included.sum(axis=0) == 30).all()
    assert len(np.unique(included, axis=1).T) == 5


def test_a_trial_lacks_the_candidates_that_it_does_not_include(table: pd.DataFrame) -> None:
    loaded = load(table, None)
    rows = candidates_of(loaded)
    game = searched(ignores, table, rows=33).game
    assert game.view.target["income"].tolist() == table.loc[list(rows), "income"].tolist()
    for number in range(60):
        dropped = game.dropped_rows(World.OUT, number)
        assert {*rows} - {*dropped} == {*np.array(rows)[game.included[number]]}
        expected = table.drop(index=list(dropped))["income"].tolist()
        assert game.table(World.OUT, number)["income"].tolist() == expected
    assert game.rows_requested(World.OUT) == 33


def test_a_game_without_synthetic_rows_is_refused(table: pd.DataFrame) -> None:
    loaded = load(table, None)
    with pytest.raises(SettingsError, match=r"`rows` must be a (whole )?number of at least 1"):
        GameView(
            schema=loaded.schema,
            others=loaded.data,
            target=loaded.data,
            n_rows=0,
            neighbours=Neighbours.ADD_REMOVE,
        )


def test_separations_by_hand() -> None:
    included = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype=bool)
    shared = np.array([1.0, 1.0, 0.0, 0.0])  # the first candidate's world, exactly
    constant = np.full(4, 0.1)
    rounding = 0.1 + np.array([0.0, 0.0, 1e-15, 1e-15])
    overflowing = np.array([1e308, 1e308, -1e308, 1.0])
    own = np.array([[5.0, 0.0, 0.0], [5.0, 1.0, 1.0], [5.0, 0.0, 2.0], [5.0, 1.0, 3.0]])
    features = np.column_stack([shared, constant, rounding, overflowing, own])
    assert separations(features, included).tolist() == pytest.approx([2.0, 2.0, 0.0])
    useless = np.column_stack([constant, rounding, overflowing, np.zeros((4, 3))])
    assert separations(useless, included).tolist() == [0.0, 0.0, 0.0]
    only_own = np.column_stack([own[:, ::-1]])  # what separates the second is the third's
    assert separations(only_own, included).tolist()[0] == pytest.approx(4 / np.sqrt(5))


def test_of_candidates_alike_the_first_is_taken(table: pd.DataFrame, tmp_path: Path) -> None:
    settings = audit_settings(**{name: of for name, of in FAST.items() if name != "jobs"})
    search = build_spec(fails, load(table, None), settings)
    audit = search.resolve(tmp_path, engine=LocalEngine(1), on_progress=ignore_progress)
    assert audit.target_row == FARTHEST


def test_a_generator_that_takes_its_target_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(SettingsError, match="copycat takes the target when it is built"):
        audit_by_keywords("copycat", table, **FAST)


def test_one_run_audits_refuse_it(table: pd.DataFrame) -> None:
    with pytest.raises(SettingsError, match="one run has no `target`: leave out `target`"):
        audit_by_keywords("null", table, target="vulnerable", one_run=True)


def test_folders_of_other_audits_are_refused_before_any_training(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    def none(progress: TrialProgress) -> None:
        raise AssertionError(progress)

    search = searched(ignores, table, shadow_models=20)
    named = search.audit_of(3)
    with RunFolder(tmp_path / "named", spec=named.specification, versions=versions()):
        pass
    with pytest.raises(RunFolderError, match="holds an audit of a target that was named"):
        run_audit(search, tmp_path / "named", on_progress=none)
    search.resolve(tmp_path / "found", engine=LocalEngine(1), on_progress=ignore_progress)
    other = searched(ignores, table, shadow_models=20, confidence=0.9)
    with pytest.raises(RunFolderError, match=r"confidence is 0.95 there and 0.9 here"):
        run_audit(other, tmp_path / "found", on_progress=none)


def test_the_command_prints_the_plan_and_its_progress(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    words = "audit null --data table.csv --target vulnerable --shadow-models 24 --attack"
    done = CliRunner().invoke(app, [*words.split(), *FAST["attacks"], "--out", "run"])
    assert done.exit_code in (ExitCode.PASS, ExitCode.INCONCLUSIVE), done.output
    assert "target: 24 trainings, each without a random half of 20 candidates" in done.stderr
    assert "target: 24 of 24" in done.stderr
    assert "target    row " in done.stdout
    assert "--target vulnerable" in done.stdout.splitlines()[-1]


def test_default_folders_differ_by_choice(table: pd.DataFrame) -> None:
    search = searched(ignores, table, attacks=DEFAULT_ATTACKS)
    audit = search.audit_of(search.candidates[0])
    assert search.default_folder != audit.default_folder
    assert search.reproduce == audit.reproduce
