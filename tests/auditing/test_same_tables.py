"""Whether both worlds give the same tables: what is said before an audit, and when nothing is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.two_worlds import target_search
from dpaudit.auditing.two_worlds.game import TwoWorldsGame
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.auditing.two_worlds.target_search import (
    SAME_TABLES_FILE,
    _comparison,
    compare_tables,
)
from dpaudit.cli.main import app
from dpaudit.game.store import RunFolder
from dpaudit.game.trial import Payload, Role
from dpaudit.model.tables import load
from dpaudit.plugins.registry import carry
from dpaudit.report.render import render_markdown
from dpaudit.results.record import SameTables, TargetOfAudit
from dpaudit.results.result import result_schema
from dpaudit.results.sentences import same_tables as in_words
from dpaudit.versions import versions
from samples import QUICK_ATTACKS

PLAIN, OLDEST, RICHEST = 5, 11, 23


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, 80), "income": rng.normal(30, 4, 80)})
    table.loc[OLDEST, "age"] = 90
    table.loc[RICHEST, "income"] = 60.0
    return table


def noise(n_rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(20, 60, n_rows), "income": rng.normal(30, 4, n_rows)})


def ignores(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Honest: nothing of the data."""
    return noise(n_rows, seed)


def constant(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Honest: always the same table."""
    return noise(n_rows, 0)


def reads_highest_income(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Leaks one record and no other."""
    table = noise(n_rows, seed)
    table.loc[0, "income"] = data["income"].max()
    return table


def noisy_mean(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Every record moves a number that noise is added to."""
    table = noise(n_rows, seed)
    noised = data["age"].mean() + np.random.default_rng(seed).laplace()
    return table.assign(income=table["income"] + noised)


def labels_rows(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """The values tell nothing, the index does."""
    table = noise(n_rows, seed)
    table.index += int(data["age"].max())
    return table


def secure(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Noise that no seed decides."""
    return noise(n_rows, int.from_bytes(os.urandom(4), "big"))


def fails(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Gives nothing."""
    raise ValueError("private")


def needs_most_rows(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Honest, but fails on a table that lacks several records."""
    if len(data) < 79:
        raise ValueError("private")
    return noise(n_rows, seed)


def counts_missing(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    """Tables that lack several records show; those that lack one do not."""
    return noise(n_rows, seed + (len(data) < 79))


@dataclass
class Flips:
    """Of two tables one, whatever the seed: the sequence says which."""

    sequence: list[int]
    seedable: bool = True
    trained: list[int] = field(default_factory=list)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Flips:
        """Takes the next."""
        self.trained.append(len(data))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Gives it."""
        return noise(n, self.sequence[len(self.trained) - 1])

    def __reduce__(self) -> tuple[Any, ...]:
        return _the_one, ()


_ONE: list[Flips] = []


def _the_one() -> Flips:
    return _ONE[-1]


for carried in (
    *(ignores, constant, reads_highest_income, noisy_mean, labels_rows, secure, fails),
    *(needs_most_rows, counts_missing),
):
    carry(carried)


def spec_of(generator: object, table: pd.DataFrame, **settings: Any) -> TwoWorldSpec:
    given = {"target": PLAIN, "shadow_models": 100, "epsilon": 1.0, **settings}
    spec = build_spec(generator, load(table, None), audit_settings(**given))
    assert isinstance(spec, TwoWorldSpec)
    return spec


def payload_of(spec: TwoWorldSpec) -> Payload:
    return TwoWorldsGame().payload(spec, Role.AUDIT)


def compared(generator: object, table: pd.DataFrame, **settings: Any) -> SameTables | None:
    spec = spec_of(generator, table, **settings)
    return _comparison(spec, payload_of(spec))()


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_record_that_changes_the_table_is_proposed_for_one_that_does_not(
    table: pd.DataFrame, relation: str
) -> None:
    found = compared(reads_highest_income, table, neighbours=relation)
    assert found == SameTables(seeds=2, other=RICHEST)


def test_the_record_that_shows_is_no_reason_to_speak(table: pd.DataFrame) -> None:
    assert compared(reads_highest_income, table, target=RICHEST) is None


def test_a_record_from_a_file_is_compared_too(table: pd.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "record.csv"
    table.iloc[[PLAIN]].assign(income=31.0).to_csv(file, index=False)
    found = compared(reads_highest_income, table, target=f"record:{file}")
    assert found == SameTables(seeds=2, other=RICHEST)


@pytest.mark.parametrize("honest", [ignores, constant])
def test_of_a_generator_that_ignores_its_data_no_record_is_proposed(
    honest: object, table: pd.DataFrame
) -> None:
    found = compared(honest, table)
    assert found in (SameTables(seeds=2, compared=19), SameTables(seeds=2, compared=20))
    target = TargetOfAudit(choice="row:5", row=PLAIN, same_tables=found)
    assert in_words(target) == (
        "row 5 may rarely or never change the synthetic table: with each of 2 seeds, "
        "training with it and without it gave the same one; "
        f"{found.compared} other records together do not change it either"
    )


@pytest.mark.parametrize("silent", [noisy_mean, labels_rows, secure, fails])
def test_nothing_is_said_where_worlds_differ_or_cannot_be_compared(
    silent: object, table: pd.DataFrame
) -> None:
    assert compared(silent, table, target=OLDEST) is None


@pytest.mark.parametrize("odd", [needs_most_rows, counts_missing])
def test_no_record_is_proposed_that_was_not_seen_to_change_the_table(
    odd: object, table: pd.DataFrame
) -> None:
    found = compared(odd, table)
    assert found == SameTables(seeds=2)
    target = TargetOfAudit(choice="row:5", row=None, same_tables=found)
    assert in_words(target) == (
        "the target may rarely or never change the synthetic table: with each of 2 seeds, "
        "training with it and without it gave the same one"
    )


def test_worlds_that_agree_by_chance_are_not_the_same(table: pd.DataFrame) -> None:
    for sequence, fits in (([0, 1], 2), ([0, 0, 1, 0], 4), ([0, 0, 1, 1, 1], 5)):
        _ONE.append(Flips(sequence))
        assert compared(_ONE[-1], table) is None
        assert len(_ONE[-1].trained) == fits


@pytest.mark.parametrize(("models", "seeds", "most"), [(100, 2, 13), (400, 4, 17)])
def test_few_models_are_trained(models: int, seeds: int, most: int) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 60, 400), "income": rng.normal(30, 4, 400)})
    _ONE.append(Flips([*[0] * (2 * seeds + 1), *[1] * 20]))  # then whatever is left out shows
    found = compared(_ONE[-1], table, shadow_models=models)
    assert found is not None
    assert found.seeds == seeds
    assert found.other is not None
    assert 0 <= most - len(_ONE[-1].trained) <= 1
    assert min(_ONE[-1].trained) >= 400 - 64


def test_where_time_is_short_nothing_is_said(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_search, "MOST_SECONDS", -1.0)
    assert compared(reads_highest_income, table) is None


def test_small_audits_and_secure_noise_are_left_alone(table: pd.DataFrame, tmp_path: Path) -> None:
    _ONE.append(Flips([0] * 20, seedable=False))
    for name, generator, models in (("few", ignores, 98), ("secure", _ONE[-1], 100)):
        spec = spec_of(generator, table, shadow_models=models)
        folder = tmp_path / name
        with RunFolder(folder, spec=spec.stored_specification, versions=versions()) as store:
            assert compare_tables(spec, payload_of(spec), store, jobs=1) is None
        assert not (folder / SAME_TABLES_FILE).exists()
    assert _ONE[-1].trained == []


def test_a_run_folder_keeps_what_was_found(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = spec_of(reads_highest_income, table)
    payload = payload_of(spec)
    with RunFolder(tmp_path, spec=spec.stored_specification, versions=versions()) as store:
        found = compare_tables(spec, payload, store, jobs=1)
        assert found == SameTables(seeds=2, other=RICHEST)
        file = tmp_path / SAME_TABLES_FILE
        assert file.stat().st_mode & 0o077 == 0
        monkeypatch.setattr(target_search, "run_errand", lambda *_, **__: None)
        assert compare_tables(spec, payload, store, jobs=1) == found
        for damage in ("", "[]", "{}"):
            file.write_text(damage)
            assert compare_tables(spec, payload, store, jobs=1) is None
            assert json.loads(file.read_text()) is None


def test_an_audit_says_so_before_its_trials_and_in_its_result(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    Path("leaky.py").write_text(
        "import numpy as np\n"
        "import pandas as pd\n\n\n"
        "def reads(data, n, seed):\n"
        "    rng = np.random.default_rng(seed)\n"
        "    age, income = rng.integers(20, 60, n), rng.normal(30, 4, n)\n"
        "    made = pd.DataFrame({'age': age, 'income': income})\n"
        "    made.loc[0, 'income'] = data['income'].max()\n"
        "    return made\n"
    )
    words = ["audit", "leaky.py:reads", "--data", "table.csv", "--epsilon", "1", "--jobs", "1"]
    words += ["--target", "row:5", "--shadow-models", "100", "--attack", QUICK_ATTACKS[0]]
    done = CliRunner().invoke(app, [*words, "--out", "run"])
    said = (
        "row 5 may rarely or never change the synthetic table: with each of 2 seeds, "
        "training with it and without it gave the same one; "
        "row 23 changes it (--target row:23)"
    )
    assert f"warning: {said}" in " ".join(done.stderr.split())
    assert said in " ".join(done.stdout.split())
    document = json.loads(Path("run/result.json").read_text())
    jsonschema.validate(document, result_schema())
    assert document["target"]["same_tables"] == {"seeds": 2, "compared": 0, "other": RICHEST}
    assert (
        "row 5 may rarely or never change the synthetic table" in Path("run/report.md").read_text()
    )
    quiet = CliRunner().invoke(app, [*words, "--out", "run", "-q"])
    assert "may rarely or never change the synthetic table" not in quiet.stderr


@pytest.mark.ci
def test_the_comparison_changes_no_number_of_an_audit(
    table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {
        **{"target": PLAIN, "shadow_models": 100, "epsilon": 1.0, "jobs": 1},
        "attacks": QUICK_ATTACKS[:1],
    }
    looked = audit_by_keywords(reads_highest_income, table, **settings)
    assert looked.target.same_tables == SameTables(seeds=2, other=RICHEST)
    assert "may rarely or never change the synthetic table" in render_markdown(looked)
    monkeypatch.setattr(target_search, "FEWEST_MODELS", 1000)
    blind = audit_by_keywords(reads_highest_income, table, **settings)
    assert blind.target.same_tables is None
    assert looked.scores == blind.scores
    for name in ("proved", "bounds", "verdict", "checks", "controls", "leaks"):
        assert getattr(looked, name) == getattr(blind, name)
