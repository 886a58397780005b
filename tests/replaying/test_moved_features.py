"""The features that a replay hands over, and the audit that attacks them alone."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpaudit
import parted
from dpaudit.auditing.games import audit_settings, game_of
from dpaudit.cli.main import app
from dpaudit.errors import SettingsError
from dpaudit.replaying.moved_features import MOST_FEATURES, moved_features
from dpaudit.replaying.record import ReplayRecord
from dpaudit.results.verdict import Verdict
from samples import game_view

pytestmark = pytest.mark.usefixtures("worlds")

SCHEMA = dpaudit.Schema.from_document(parted.SCHEMA)


def replayed(generator: Any, **settings: Any) -> ReplayRecord:
    settings = {"fits": 1, "hand_over": True, **settings}
    return dpaudit.replay(generator, parted.table(), schema=SCHEMA, target="row:59", **settings)


@pytest.fixture(scope="module")
def leak() -> ReplayRecord:
    """A replay that hands features over."""
    return replayed(parted.OneCountPlain())


def after_replay(file: Path, **keywords: Any) -> dpaudit.TwoWorlds:
    """The game of an audit after a replay."""
    settings = audit_settings(**keywords)
    game: dpaudit.TwoWorlds = game_of(settings.game).after_replay(settings, file).game
    return game


def pairs(shift: float) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Tables of two columns, made with the same random numbers but for a shift of `x`."""
    made = []
    for seed in range(6):
        drawn = np.random.default_rng(seed).uniform(0.2, 0.8, size=(50, 2))
        plain = pd.DataFrame(drawn, columns=["x", "y"])
        made.append((plain.assign(x=plain["x"] + shift), plain))
    return made


def test_what_moves_is_named_and_nothing_else() -> None:
    numeric = {"kind": "continuous", "lower": 0.0, "upper": 1.0}
    schema = dpaudit.Schema.from_document(
        {"columns": [{"name": "x", **numeric}, {"name": "y", **numeric}]}
    )
    view = game_view(schema, pairs(0.0)[0][0].head(1), n_rows=50)
    assert moved_features(pairs(0.0), view) == ()
    found = moved_features(pairs(0.1), view)
    assert 1 <= len(found) <= MOST_FEATURES
    assert {one.column for one in found} <= {"x", "x & y", "whole rows"}
    mean = next((one for one in found if one.feature == "mean"), None)
    assert mean is not None
    assert mean.inside - mean.outside == pytest.approx(0.1)
    assert mean.pairs == 6
    assert moved_features(pairs(0.1)[:1], view) == ()


def test_a_replay_hands_over_the_features_of_its_leak(leak: ReplayRecord, tmp_path: Path) -> None:
    record = leak
    assert record.verdict is not Verdict.CONSISTENT
    assert record.features
    assert {one.column for one in record.features} == {"x"}
    assert "the record moves" in str(record)
    file = tmp_path / "replay.json"
    file.write_text(record.to_json())
    game = after_replay(file, shadow_models=40)
    assert game.target == "row:59"
    assert game.attacks == (f"after-replay,record={file}",)
    beside = after_replay(file, attacks=("form",), target="row:3")
    assert beside.attacks == ("form", f"after-replay,record={file}")
    assert beside.target == "row:3"
    with pytest.raises(SettingsError, match="two worlds"):
        after_replay(file, one_run=True)


@pytest.mark.ci
def test_a_consistent_replay_hands_nothing_over(tmp_path: Path) -> None:
    class Noisy(parted.OneCountPlain):
        def numbers(self, rng: np.random.Generator, n: int) -> Any:
            return rng.random(n)

    record = replayed(Noisy(), access="rows")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.features is None
    assert replayed(parted.OneCountPlain(), hand_over=False).features is None
    with pytest.raises(SettingsError, match="hands no features over"):
        record.attack()
    file = tmp_path / "replay.json"
    file.write_text(record.to_json())
    with pytest.raises(dpaudit.InputError, match="hands no features over"):
        dpaudit.audit(
            Noisy(),
            parted.table(),
            schema=SCHEMA,
            game=dpaudit.TwoWorlds(attacks=(f"after-replay,record={file}",)),
        )


@pytest.mark.ci
def test_the_worst_case_of_a_replay_is_that_of_the_audit_after_it(tmp_path: Path) -> None:
    file = tmp_path / "replay.json"
    file.write_text(json.dumps({"target": "worst-case:crowd"}))
    game = after_replay(file)
    assert (game.worst_case, game.target) == ("crowd", "exposing")
    named = after_replay(file, worst_case="batch")
    assert named.worst_case == "batch"


@pytest.mark.ci
def test_the_command_audits_after_a_replay(tmp_path: Path) -> None:
    data, schema, file = (tmp_path / name for name in ("t.csv", "t.json", "replay.json"))
    parted.table().to_csv(data, index=False)
    schema.write_text(json.dumps(parted.SCHEMA))
    words = [f"{parted.__file__}:RowsAsConstant", "--data", str(data), "--schema", str(schema)]
    ended = CliRunner().invoke(
        app, ["replay", *words, "--fits", "1", "--target", "row:59", "--hand-over", "--json"]
    )
    file.write_text(ended.stdout)
    given = ["--set", f"after-replay={file}", "--shadow-models", "60", "--jobs", "1", "--json"]
    ended = CliRunner().invoke(app, ["audit", *words, *given, "--out", str(tmp_path / "run")])
    result = json.loads(ended.stdout)
    assert result["verdict"] != "invalid", ended.stderr
    assert f"after-replay,record={file}" in result["reproduce"]
    assert "query-target" not in ended.stdout
    assert "--target row:59" in result["reproduce"]
    file.write_text("{}")
    ended = CliRunner().invoke(app, ["audit", *words, *given])
    assert ended.exit_code == 2
    assert "is no record of a replay" in ended.stderr


def test_features_of_another_schema_are_refused(leak: ReplayRecord) -> None:
    attack: Any = leak.attack()
    other = dpaudit.Schema.from_document(
        {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": parted.CELLS - 1}]}
    )
    view = game_view(other, pd.DataFrame({"a": [3]}), n_rows=4)
    with pytest.raises(SettingsError, match="another schema"):
        attack.check(view)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["OneCountPlain", "RowsAsConstant"])
def test_the_handed_over_attack_misses_no_leak(name: str) -> None:
    """The default attacks prove as much in the median, but nothing in some audits."""
    generator = getattr(parted, name)()
    proved: dict[str, list[float]] = {"after": [], "default": []}
    for attacks in ([replayed(generator).attack()], None):
        game = dpaudit.TwoWorlds(
            target="row:59",
            shadow_models=100,
            probe=False,
            **({} if attacks is None else {"attacks": attacks}),
        )
        for seed in range(8):
            result = dpaudit.audit(
                generator, parted.table(), schema=SCHEMA, game=game, seed=seed, jobs=1
            )
            proved["default" if attacks is None else "after"].append(result.proved or 0.0)
    assert min(proved["after"]) > 0.1
    assert median(proved["after"]) > 0.75 * median(proved["default"])
