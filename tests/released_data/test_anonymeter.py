"""anonymeter itself is not installed here: a script in its place answers, but for the slow test."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import AttackError, DataError, RegistryError
from dpaudit.external.environments import BuiltEnvironment
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.released_data.anonymeter import run as module
from dpaudit.released_data.anonymeter.run import (
    ENVIRONMENT,
    AnonymeterFinding,
    require_environment,
    run_anonymeter,
)

SCHEMA = Schema(
    columns=(
        Column(name="a b", kind=Kind.INTEGER, lower=-50, upper=50, missing=True),
        Column(name="class", kind=Kind.CATEGORICAL, categories=("x", 1, "é")),
        Column(name="c", kind=Kind.CONTINUOUS, lower=-1.0, upper=1.0),
    )
)
ECHO = """
import json, sys
import pandas as pd
request = json.loads(sys.stdin.readline())
names = ("train", "synthetic", "holdout")
tables = {n: pd.read_csv(request[n], keep_default_na=False) for n in names}
said = {
    n: [len(t), int(t.duplicated().sum()), t.min(numeric_only=True).min()]
    for n, t in tables.items()
}
said["request"] = {k: request[k] for k in ("numeric", "halves", "secrets", "attacks", "confidence")}
said["columns"] = {c: sorted(map(str, set(tables["train"][c])))[-1] for c in ("c0m", "c1")}
one = {"kind": "k", "secret": None, "attacks": 1, "train": 1, "holdout": 0, "baseline": 0,
       "risk": 0.5, "low": 0.1, "high": 0.9, "notes": [json.dumps(said)]}
print(json.dumps({"findings": [one]}))
"""


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-50, 51, n).astype(float)
    numbers[rng.random(n) < 0.2] = np.nan
    classes = rng.choice(np.array(["x", 1, "é"], dtype=object), n)
    found = pd.DataFrame({"a b": numbers, "class": classes, "c": rng.uniform(-1, 1, n)})
    return SCHEMA.canonical(found)


def asked(train: pd.DataFrame, holdout: pd.DataFrame) -> tuple[AnonymeterFinding, ...]:
    return run_anonymeter(
        train,
        table(90, 3),
        holdout,
        SCHEMA,
        secrets=["a b"],
        rng=np.random.default_rng(0),
        confidence=0.9,
    )


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that takes the place of the script, run by this interpreter."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    built = BuiltEnvironment(tmp_path, "3", {})
    monkeypatch.setattr(BuiltEnvironment, "python", Path(sys.executable))
    monkeypatch.setattr(module, "require_environment", lambda: built)
    script = tmp_path / "script.py"
    monkeypatch.setattr(module, "_SCRIPT", script)
    return script


def test_tables_are_sent_as_the_library_takes_them(answers: Path) -> None:
    answers.write_text(ECHO)
    train = pd.concat([table(80, 1), table(10, 1)], ignore_index=True)  # ten twice
    (finding,) = asked(train, table(70, 2))
    assert (finding.kind, finding.risk, finding.high) == ("k", 0.5, 0.9)
    said = json.loads(finding.notes[0])
    for name, rows in (("train", 70), ("synthetic", 90), ("holdout", 70)):
        assert said[name] == [rows, 0, pytest.approx(0.0, abs=0.1)]  # no number is negative
    assert said["request"]["numeric"] == ["c0", "c2"]
    assert said["request"]["secrets"] == [{"name": "a b", "columns": ["c0", "c0m"]}]
    one, other = said["request"]["halves"]
    assert sorted([*one, *other]) == ["c0", "c0m", "c1", "c2"]
    assert (said["request"]["attacks"], said["request"]["confidence"]) == (70, 0.9)
    assert said["columns"] == {"c0m": "there", "c1": "k2"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise ValueError('of its own')", "of its own"),
        ("input(); print('hello')", "no JSON object"),
        ("input(); print('{}')", "'findings'"),
        ('input(); print(\'{"findings": [{"kind": 1}]}\')', "notes"),
    ],
)
def test_what_goes_wrong_there_is_said_in_one_line(answers: Path, text: str, said: str) -> None:
    answers.write_text(text)
    with pytest.raises(AttackError, match=said) as caught:
        asked(table(80, 1), table(70, 2))
    assert "\n" not in str(caught.value)


def test_few_distinct_records_are_refused(answers: Path) -> None:
    same = pd.concat([table(5, 1)] * 30, ignore_index=True)
    with pytest.raises(DataError, match="there are 5"):
        asked(same, table(70, 2))


def test_without_its_environment_it_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RegistryError, match="run: dpaudit env create anonymeter"):
        require_environment()


def test_the_command_line_knows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from dpaudit.cli.main import app

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    listed = CliRunner().invoke(app, ["env", "list"])
    assert "missing: dpaudit env create anonymeter" in listed.output
    assert "anonymeter==1.1.0" in ENVIRONMENT.requirements


@pytest.mark.slow  # needs its environment: dpaudit env create anonymeter
def test_the_library_finds_a_copied_table_and_nothing_in_another_sample() -> None:
    train, holdout = table(400, 1), table(400, 2)

    def found(synthetic: pd.DataFrame) -> dict[str, AnonymeterFinding]:
        findings = run_anonymeter(
            train,
            synthetic,
            holdout,
            SCHEMA,
            secrets=["class"],
            rng=np.random.default_rng(0),
            confidence=0.95,
        )
        return {one.kind: one for one in findings}

    copied = found(train)
    assert len(copied) == 4
    assert all(one.low > 0.05 for one in copied.values())
    assert copied == found(train)  # seeded
    assert all(one.low == 0.0 for one in found(table(400, 3)).values())
