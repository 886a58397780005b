"""The reference worker: what an audit sees of a generator in a process of its own."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.cli.main import app
from dpaudit.external.generator import WorkerGenerator
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.source import reached, source_digest
from dpaudit.seeds import rng_of
from samples import QUICK_ATTACKS

SCHEMA = Schema(
    columns=(
        Column(name="x", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=True),
        Column(name="n, whole", kind=Kind.INTEGER, lower=0.0, upper=9.0),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a,b", 'c"d', "é")),
        Column(name="k", kind=Kind.CATEGORICAL, categories=(1, 2, 3)),
        Column(name="b", kind=Kind.BINARY, categories=(False, True)),
    )
)
GENERATORS = '''
import random


class Rows:
    """Draws rows of the table with replacement."""

    claim = {"epsilon": 2.0, "delta": 1e-5}
    proof = "composition"

    def __init__(self, keep=1.0, schema=None):
        self.keep, self.names = keep, [c["name"] for c in schema["columns"]]

    def fit(self, data, *, seed):
        print("training")
        self.data = data
        return self

    def sample(self, n, *, seed):
        if self.keep < 0:
            raise ValueError("keep must not be negative")
        draw = random.Random(seed)
        if hasattr(self.data, "iloc"):
            return self.data.iloc[[draw.randrange(len(self.data)) for _ in range(n)]]
        return [draw.choice(self.data) for _ in range(n)]


def first(data, n_rows, seed):
    return data[:1] * n_rows
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(GENERATORS)
    return path


def table(rows: int = 40) -> pd.DataFrame:
    rng = rng_of(0, "table")
    x = rng.random(rows)
    x[::7] = np.nan
    data = {"x": x, "n, whole": rng.integers(10, size=rows)}
    for column in SCHEMA.columns[2:]:
        data[column.name] = rng.choice(np.array(column.categories, dtype=object), rows)
    return SCHEMA.canonical(pd.DataFrame(data))


def command(file: Path, name: str = "Rows", *, bare: bool = False) -> str:
    return (
        f"{sys.executable} {file}:{name}"
        if not bare
        else (f"{sys.executable} -I -S {reference()} {file}:{name}")
    )


def reference() -> str:
    from dpaudit.external import worker

    return worker.__file__


@pytest.mark.parametrize("bare", [False, True], ids=["pandas", "no pandas"])
def test_rows_come_back_as_they_went(file: Path, bare: bool) -> None:
    generator = WorkerGenerator(command=command(file, bare=bare), schema=SCHEMA)
    assert ("arrow" in generator.hello.formats) <= (not bare)
    data = table()
    found = SCHEMA.canonical(generator.fit(data, seed=1).sample(60, seed=2))
    known = {tuple(map(str, row)) for row in data.itertuples(index=False)}
    assert {tuple(map(str, row)) for row in found.itertuples(index=False)} <= known
    assert not SCHEMA.problems(found)


def test_seeds_claims_and_parameters_are_handed_over(file: Path) -> None:
    generator = WorkerGenerator(command=command(file), schema=SCHEMA, parameters={"keep": 0.5})
    assert generator.claim is not None
    assert (generator.claim.epsilon, generator.claim.delta) == (2.0, 1e-5)
    assert generator.proof == "composition"
    data = table()
    one = generator.fit(data, seed=1).sample(20, seed=2)
    assert one.equals(generator.fit(data, seed=1).sample(20, seed=2))
    assert not one.equals(generator.fit(data, seed=1).sample(20, seed=3))
    assert not one.equals(generator.fit(data, seed=4).sample(20, seed=2))
    fresh = WorkerGenerator(
        command=command(file), schema=SCHEMA, parameters={"keep": 0.5}, fresh=True
    )
    assert one.equals(fresh.fit(data, seed=1).sample(20, seed=2))


def test_another_file_is_another_source(file: Path) -> None:
    generator = WorkerGenerator(command=command(file), schema=SCHEMA)
    before = source_digest(generator)
    assert before == source_digest(generator)
    file.write_text(GENERATORS + "\n# edited\n")
    assert source_digest(generator) != before


def test_only_what_runs_in_this_environment_has_imports_that_are_known(
    file: Path, tmp_path: Path
) -> None:
    here = WorkerGenerator(command=command(file), schema=SCHEMA)
    assert here.imports_here
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o700)
    program = shlex.join([str(other), *shlex.split(here.command)[1:]])
    there = WorkerGenerator(command=program, schema=SCHEMA)
    assert not there.imports_here
    assert reached([there]).unknown == "its code runs in a program of its own"
    assert "pandas" in reached([here]).software


@pytest.mark.ci
def test_an_audit_is_the_same_for_any_number_of_workers(file: Path, tmp_path: Path) -> None:
    found = [
        audit_by_keywords(
            f"worker:{command(file)}",
            table(),
            schema=SCHEMA,
            epsilon=1.0,
            delta=1e-5,
            shadow_models=24,
            attacks=QUICK_ATTACKS[1:],
            probe=False,
            jobs=jobs,
            out=tmp_path / str(jobs),
        ).to_document()
        for jobs in (1, 2)
    ]
    assert found[0]["failures"] == {"in": 0, "out": 0}
    for document in found:
        for key in ("seconds", "run_folder", "started", "run", "jobs"):
            document.pop(key, None)
    assert json.dumps(found[0]["attacks"]) == json.dumps(found[1]["attacks"])


@pytest.mark.ci
def test_doctor_worker_says_what_holds(file: Path, tmp_path: Path) -> None:
    data, schema = tmp_path / "table.csv", tmp_path / "schema.json"
    table().to_csv(data, index=False)
    SCHEMA.save(schema)
    words = ["--data", str(data), "--schema", str(schema)]
    good = CliRunner().invoke(app, ["doctor", "--worker", command(file), *words])
    assert good.exit_code == 0, good.output
    assert "Rows: (2, 1e-05)-DP" in good.stdout
    assert good.stdout.count("ok  ") == 8
    missing = CliRunner().invoke(app, ["doctor", "--worker", command(file, "Nobody"), *words])
    assert missing.exit_code == 2
    assert "KeyError" in missing.stderr


@pytest.mark.ci
def test_doctor_worker_says_what_does_not_hold(file: Path, tmp_path: Path) -> None:
    data, schema = tmp_path / "table.csv", tmp_path / "schema.json"
    table().to_csv(data, index=False)
    SCHEMA.save(schema)
    words = ["--data", str(data), "--schema", str(schema)]
    deaf = CliRunner().invoke(
        app, ["doctor", "--worker", command(file, "first", bare=True), *words]
    )
    assert deaf.exit_code == 1
    assert "the seed is not used" in deaf.stdout
    failing = CliRunner().invoke(
        app, ["doctor", "--worker", command(file), *words, "-p", "keep=-1"]
    )
    assert failing.exit_code == 1
    assert re.search(r"ValueError at \w+\.py:\d+ in \w+: keep must not be negative", failing.stdout)
    missing = CliRunner().invoke(app, ["doctor", "--worker", command(file, "Nobody"), *words])
    assert missing.exit_code == 2
    assert "KeyError" in missing.stderr


def test_the_worker_of_the_page_keeps_to_the_protocol(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "worker-protocol.md"
    *_, script = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "worker.sh").write_text(script)
    found = CliRunner().invoke(app, ["doctor", "--worker", f"sh {tmp_path / 'worker.sh'}"])
    assert found.exit_code == 0, found.output
    assert "rows with replacement: no claim" in found.stdout
