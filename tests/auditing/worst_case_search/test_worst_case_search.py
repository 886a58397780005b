"""Searches for the worst case that shows most, on generators with known answers."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords, run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.two_worlds.worst_case_search import (
    WorstCaseSearchSpec,
    per_world,
    rounds,
    separation,
    survivors,
)
from dpaudit.cli.main import app
from dpaudit.errors import InterruptedRunError, RunFolderError, SchemaError, SettingsError
from dpaudit.game.flight import TrialProgress, ignore_progress
from dpaudit.game.local import LocalEngine
from dpaudit.game.store import STORE_FILE, RunFolder
from dpaudit.game.trial import Outcome, Payload, Role, Trial, TrialStatus
from dpaudit.model.choices import WorstCase
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import World
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_markdown
from dpaudit.versions import versions

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.CONTINUOUS, lower=0, upper=100),
        Column(name="town", kind=Kind.CATEGORICAL, categories=("Bern", "Graz", "Ulm")),
    )
)
FAST: dict[str, Any] = {
    "schema": SCHEMA,
    "worst_case": "search",
    "attacks": ("groundhog-naive,classifier=logistic-regression",),
    "shadow_models": 60,
    "epsilon": 1.0,
    "jobs": 1,
}


def drawn(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Records that have nothing to do with any data."""
    return pd.DataFrame(
        {"age": rng.uniform(0, 50, n_rows), "town": rng.choice(["Bern", "Graz", "Ulm"], n_rows)}
    )


def counts_batches(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks how many batches of eight it takes, which one record changes at 8 records alone."""
    table = drawn(n_rows, np.random.default_rng(seed))
    table.loc[0, "age"] = 60.0 + -(-len(data) // 8) if len(data) < 10 else 60.0
    return table


def clips_at_quantiles(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks the largest age if there are many different ones."""
    table = drawn(n_rows, np.random.default_rng(seed))
    if data["age"].nunique() > 20:
        table.loc[0, "age"] = data["age"].max()
    return table


def noisy_mean(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Satisfies epsilon 1: the number of records in Ulm, at most 40 of it, with Laplace noise."""
    rng = np.random.default_rng(seed)
    table = drawn(n_rows, rng)
    count = min(int((data["town"] == "Ulm").sum()), 40)
    table.loc[0, "age"] = np.clip(50 + count + rng.laplace(0, 1.0), 0, 100)
    return table


def fails_without(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Fails unless a record is in Graz, and leaks nothing else."""
    if not (data["town"] == "Graz").any():
        raise ValueError("nobody in Graz")
    return drawn(n_rows, np.random.default_rng(seed))


for function in (counts_batches, clips_at_quantiles, noisy_mean, fails_without):
    carry(function)


def searched(generator: object, **given: Any) -> WorstCaseSearchSpec:
    asked = {name: value for name, value in {**FAST, **given}.items() if name != "jobs"}
    schema = asked.pop("schema")
    settings = audit_settings(**asked)
    search = build_spec(generator, audited_table(None, schema, settings), settings)
    assert isinstance(search, WorstCaseSearchSpec)
    return search


def same(one: Any, other: Any) -> bool:
    """Whether two results have the same document, times, salted digests and search aside."""
    documents = [result.to_document() for result in (one, other)]
    for document in documents:
        document["target"].pop("selection", None)
        for name in ("seconds", "date", "data"):
            del document[name]
    return bool(documents[0] == documents[1])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A whole audit of the worst case found."""
    out = tmp_path_factory.mktemp("found") / "run"
    return audit_by_keywords(counts_batches, **FAST, out=out)


@pytest.mark.ci
def test_a_leak_that_shows_on_one_kind_of_table_is_found(found: Any) -> None:
    assert found.verdict is dpaudit.Verdict.VIOLATION
    assert found.target.choice == "worst-case:batch"
    named = audit_by_keywords(counts_batches, **{**FAST, "worst_case": "opposite"})
    assert named.verdict is dpaudit.Verdict.CONSISTENT


@pytest.mark.parametrize(
    ("generator", "worst_case"),
    [
        pytest.param(clips_at_quantiles, "outlier", marks=pytest.mark.ci),
        (fails_without, "reversed"),
    ],
)
def test_the_table_on_which_a_leak_shows_is_found(
    tmp_path: Path, generator: object, worst_case: str
) -> None:
    audit = searched(generator).resolve(
        tmp_path / "run", engine=LocalEngine(1), on_progress=ignore_progress
    )
    shown = {"reversed": ("one-hot", "inside", "centre", "outlier")}.get(worst_case, ())
    assert audit.target.choice.removeprefix("worst-case:") in (worst_case, *shown)


def test_the_report_names_the_table_and_the_record(found: Any) -> None:
    line = "worst-case:batch, which shows most of 9 candidates (152 trainings)"
    assert line in " ".join(str(found).split())
    page = render_markdown(found)
    assert line in page
    assert WorstCase.BATCH.meaning in page
    assert found.target.selection.trainings == 152
    assert "--worst-case batch" in found.reproduce


@pytest.mark.ci
def test_it_is_the_audit_of_the_worst_case_named(found: Any) -> None:
    assert same(found, audit_by_keywords(counts_batches, **{**FAST, "worst_case": "batch"}))


def test_no_training_of_the_search_is_counted(found: Any) -> None:
    for folder, roles in (
        (found.folder / "worst-case", {"target-selection": 152}),
        (found.folder, {"audit": 60, "replay": 1, "null-control": 14, "positive-control": 14}),
    ):
        with closing(sqlite3.connect(folder / STORE_FILE)) as store:
            assert roles == dict(
                store.execute("SELECT role, COUNT(*) FROM trial GROUP BY role").fetchall()
            )


def test_no_trial_of_a_search_shares_a_stream_with_an_audit() -> None:
    search = searched(noisy_mean)

    def seeds(role: Role, audit: str) -> set[int]:
        payload = Payload(
            game=search.timed_audit.game, generators={}, attacks=[], root=0, audit=audit
        )
        return {
            payload.seed(Trial(role, world, number), purpose)
            for world in World
            for number in range(search.per_world)
            for purpose in ("fit", "sample", "globals")
        }

    ids = [one.id for one in search.candidates]
    assert len({search.id, *ids}) == len(ids) + 1
    own = set().union(*(seeds(Role.TARGET_SELECTION, one) for one in ids))
    assert not any(own & seeds(Role.AUDIT, one) for one in ids)


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(9))
def test_an_honest_mechanism_is_not_flagged(seed: int) -> None:
    """Null test: what is chosen among candidates is not what is counted."""
    result = audit_by_keywords(noisy_mean, **FAST, seed=seed)
    assert result.verdict is dpaudit.Verdict.CONSISTENT
    assert result.proved < 1.0


@pytest.mark.ci
def test_interrupted_searches_resume_and_jobs_do_not_matter(tmp_path: Path) -> None:
    search = searched(counts_batches, shadow_models=20)
    stops = [11, 130]

    def stop(progress: TrialProgress) -> None:
        if stops and progress.role is Role.TARGET_SELECTION and progress.done == stops[0]:
            del stops[0]
            raise KeyboardInterrupt

    for done in list(stops):
        with pytest.raises(InterruptedRunError, match=rf"{done} of 152 shadow models"):
            run_audit(search, tmp_path / "one", jobs=1, on_progress=stop)
    resumed = run_audit(search, tmp_path / "one", jobs=2)
    assert same(resumed, run_audit(search, tmp_path / "two", jobs=1))


def test_a_folder_of_a_named_worst_case_is_refused(tmp_path: Path) -> None:
    search = searched(noisy_mean)
    named = search.candidates[0]
    with RunFolder(tmp_path / "run", spec=named.stored_specification, versions=versions()):
        pass
    with pytest.raises(RunFolderError, match="a worst case that was named: give another `out`"):
        run_audit(search, tmp_path / "run", jobs=1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"data": pd.DataFrame({"age": [1.0], "town": ["Ulm"]})}, "leave out `data`"),
        ({"schema": None}, "the worst case search is built from a schema alone: give `schema`"),
        ({"schema": Schema(columns=SCHEMA.columns, inferred=True)}, "needs a public schema"),
        ({"target": "vulnerable"}, "leave out `target`"),
        ({"neighbours_file": "other.csv"}, "leave out one"),
        ({"one_run": True}, "has no `attacks`, `shadow_models`, `worst_case`|has no .*worst_case"),
        ({"worst_case": "serach"}, "serach"),
    ],
)
def test_what_does_not_go_together_is_refused_before_training(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises((SettingsError, SchemaError), match=message):
        audit_by_keywords("null", **{**FAST, **given})


@pytest.mark.parametrize("candidates", range(2, 14))
@pytest.mark.parametrize("models", [20, 100, 400, 1000])
def test_rounds_halve_the_candidates_at_about_the_cost_of_the_audit(
    candidates: int, models: int
) -> None:
    each = rounds(candidates, models)
    assert each[0] >= 4
    assert list(each) == sorted(each)
    left = candidates
    for _ in each:
        left = survivors(left)
    assert left == 1
    assert 2 * per_world(candidates, each) <= max(models, 17 * candidates + 24)


@pytest.mark.ci
def test_the_search_shows_its_progress(tmp_path: Path) -> None:
    seen: list[TrialProgress] = []
    search = searched(noisy_mean, shadow_models=20)
    assert search.before == "worst case: 152 trainings, shared by 9 candidates"
    search.resolve(tmp_path / "run", engine=LocalEngine(1), on_progress=seen.append)
    assert seen[-1] == (Role.TARGET_SELECTION, 152, 152, 0)


def test_separation_by_hand() -> None:
    trials = [Trial(Role.TARGET_SELECTION, world, n) for n in range(4) for world in World]

    def of(values: dict[World, list[float | None]]) -> float:
        found = {
            trial: Outcome(
                trial=trial,
                status=TrialStatus.FAILED if value is None else TrialStatus.FINISHED,
                features=None if value is None else np.array([0.0, value]),
            )
            for trial, value in ((one, values[one.world][one.number]) for one in trials)
        }
        return separation(trials, _Stored(found))  # type: ignore[arg-type]

    assert of({World.IN: [1, 1, 1, 1], World.OUT: [0, 0, 0, 0]}) == pytest.approx(2)
    assert of({World.IN: [1, 0, 1, 0], World.OUT: [1, 0, 1, 0]}) == 0
    assert of({World.IN: [1] * 4, World.OUT: [None] * 4}) == pytest.approx(2)
    assert of({World.IN: [None] * 4, World.OUT: [None] * 4}) == 0
    assert of({World.IN: [1, 1, 1, 1], World.OUT: [1, 1, 1, 0]}) == pytest.approx(0.25 / 0.33, 0.01)


class _Stored(dict[Trial, Outcome]):
    """Outcomes as an open run folder gives them."""

    def __getitem__(self, trial: Trial) -> Any:
        found = super().__getitem__(trial)
        return type("_Ended", (), {"finished": found.features is not None, "rows": None})

    def features(self, trials: list[Trial]) -> Any:
        return np.array([super(_Stored, self).__getitem__(one).features for one in trials])


@pytest.mark.ci
def test_the_command_says_what_is_searched_and_found(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    SCHEMA.save(schema)
    words = ["audit", "copycat", "--schema", str(schema), "--worst-case", "search"]
    words += ["--epsilon", "1", "--shadow-models", "40", "--attack", FAST["attacks"][0]]
    done = CliRunner().invoke(app, [*words, "--jobs", "1", "--out", str(tmp_path / "run")])
    assert done.exit_code == 1, done.stderr
    assert "worst case: 152 trainings, shared by 9 candidates" in done.stderr
    assert "target    worst-case:" in done.stdout
    assert "reproduce dpaudit audit copycat --worst-case " in done.stdout
    assert "--worst-case search" not in done.stdout
