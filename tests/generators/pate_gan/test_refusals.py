"""Bad input to PATE-GAN: one clear line and exit code 2, before any training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpaudit.cli.main import app
from dpaudit_generators.pate_gan import training

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "kind": "continuous", "lower": 0, "upper": 1},
    {"name": "c", "kind": "categorical", "categories": ["a", "b"]},
    {"name": "label", "kind": "categorical", "categories": ["y", "n"]},
]


@pytest.fixture(autouse=True)
def _no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(*_: object, **__: object) -> None:
        raise AssertionError("a training began")

    monkeypatch.setattr(training, "train", trained)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    labels = rng.choice(["y", "n"], 80)
    return pd.DataFrame({"x": rng.random(80), "c": rng.choice(["a", "b"], 80), "label": labels})


@pytest.mark.parametrize("command", ["synthesize", "audit"])
@pytest.mark.parametrize(
    ("data", "columns", "settings", "told"),
    [
        (table(), COLUMNS, ["teachers=100"], "80 rows for 100 teachers"),
        (table(), COLUMNS, ["delta=0"], "pate-gan: delta must be a number in (0, 1), got 0"),
        (table().assign(z=1), COLUMNS, [], "column 'z' is not in the schema"),
        (table(), [{"name": "x", "kind": "continuous"}, *COLUMNS[1:]], [], "needs `lower` and"),
        (table().assign(label="y"), COLUMNS, [], "label column 'label' holds one class only"),
        (table(), COLUMNS, ["epsilon=0.01"], "pays for no label"),
        (table(), COLUMNS, ["bounds=public"], "bounds is 'public': use schema, private, data"),
        (table(), COLUMNS, ["lambda=1"], "pate-gan has no parameter 'lambda'"),
    ],
    ids=["teachers", "delta", "column", "bounds", "label", "budget", "choice", "parameter"],
)
def test_bad_input_is_refused_in_one_line(
    tmp_path: Path,
    command: str,
    data: pd.DataFrame,
    columns: list[dict[str, Any]],
    settings: list[str],
    told: str,
) -> None:
    data.to_csv(tmp_path / "t.csv", index=False)
    document = {"format": "dpaudit-schema/1", "label": "label", "columns": columns}
    (tmp_path / "s.json").write_text(json.dumps(document))
    words = [command, "pate-gan", "--data", str(tmp_path / "t.csv"), "--out", str(tmp_path / "out")]
    words += ["--schema", str(tmp_path / "s.json")]
    words += [word for setting in settings for word in ("-p", setting)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.stderr.split())
    assert done.stderr.startswith("error: ")
    assert done.stdout == ""
    assert not (tmp_path / "out" / "result.json").exists()
