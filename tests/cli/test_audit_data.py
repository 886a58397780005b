import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpaudit.cli.main import app


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({f"x{i}": rng.normal(size=800).round(6) for i in range(3)})
    rows.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def called(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(of) for of in arguments])
    return done.exit_code, done.stdout, done.stderr


def test_split_train_and_audit(folder: Path) -> None:
    parts = folder / "parts"
    code, out, err = called("split", "--data", folder / "data.csv", "--to", parts, "--seed", 1)
    assert code == 0
    assert "train.csv" in out
    assert "dpaudit audit-data" in err
    train = pd.read_csv(parts / "train.csv")
    leaky = train.sample(frac=1.0, random_state=1)
    leaky.to_csv(folder / "s.csv", index=False)
    tables = ("--synthetic", folder / "s.csv", "--train", parts / "train.csv")
    coins = ("--holdout", parts / "holdout.csv", "--coins", parts / "coins.json")
    written = ("--html", folder / "r.html", "--markdown", folder / "r.md")
    code, out, _ = called("audit-data", *tables, *coins, "--epsilon", 1, *written)
    assert code == 1
    assert out.startswith("VIOLATION")
    assert "VIOLATION" in (folder / "r.md").read_text()
    assert "<html" in (folder / "r.html").read_text()
    code, out, err = called("audit-data", *tables, *coins, "--json", "-q")
    assert code == 1
    assert json.loads(out)["finding"] == "leak"
    assert err == ""
    code, out, _ = called("audit-data", *tables, "-q")
    assert code == 3
    assert len(out.splitlines()) == 1
    code, out, err = called("audit-data", *tables)
    assert err.startswith("reading the tables\n")
    assert len(err.splitlines()) <= 10
    _, facts, _ = out.split("\n\n", 2)
    assert "\nnext      " in facts  # before the findings, as in every report
    command = facts.splitlines()[-1].strip()
    assert command.startswith("dpaudit split --data ")  # whole, to be copied


def test_a_stated_separator_is_used_and_repeated(folder: Path) -> None:
    for name in ("s", "t"):
        rows = pd.read_csv(folder / "data.csv").sample(40, random_state=len(name))
        rows.to_csv(folder / f"{name}.csv", index=False, sep="^")
    tables = ("--synthetic", folder / "s.csv", "--train", folder / "t.csv")
    code, _, err = called("audit-data", *tables, "--separator", ";")
    assert code == 2
    code, out, _ = called("audit-data", *tables, "--separator", "^", "--json", "-q")
    assert code == 3
    assert " --separator '^' " in json.loads(out)["reproduce"]
    pd.read_csv(folder / "data.csv").head(40).to_csv(folder / "plain.csv", index=False)
    mixed = ("--synthetic", folder / "s.csv", "--train", folder / "plain.csv")
    code, _, err = called("audit-data", *mixed)
    assert code == 2
    assert "or name its separator: --separator synthetic=CHARACTER" in err
    assert called("audit-data", *mixed, "--separator", "synthetic=^", "-q")[0] == 3
    split = ("split", "--data", folder / "t.csv", "--separator", "^", "--to", folder / "parts")
    assert called(*split)[0] == 0
    assert (folder / "parts" / "train.csv").read_text().startswith("x0^x1^x2\n")
    code, _, err = called("schema", "--data", folder / "t.csv", "--encoding", "utf-16")
    assert code == 2
    assert "correct --encoding, or leave it out" in err


def test_what_does_not_fit_is_an_error_in_one_line(folder: Path) -> None:
    called("split", "--data", folder / "data.csv", "--to", folder / "parts")
    train, holdout = folder / "parts" / "train.csv", folder / "parts" / "holdout.csv"
    pd.read_csv(train).rename(columns={"x1": "y"}).to_csv(folder / "s.csv", index=False)
    tables = ("--synthetic", folder / "s.csv", "--train", train)
    code, _, err = called("audit-data", *tables, "-q")
    assert code == 2
    assert "the synthetic table lacks column 'x1'" in err
    code, _, err = called("audit-data", *tables, "--epsilon", 1, "--holdout", holdout, "-q")
    assert code == 2
    assert "--epsilon" in err
    assert "--coins" in err
    code, _, err = called("split", "--data", folder / "data.csv", "--to", folder / "parts")
    assert code == 2
    assert "is there already" in err
