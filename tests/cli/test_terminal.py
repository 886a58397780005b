"""What commands print to a terminal: the finding first, then rows, in the words of the field."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.cli.main import app
from dpaudit.formatting import LABEL_WIDTH, TERMINAL_WIDTH
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult

COMMANDS = (
    "audit --plan --epsilon 1",
    pytest.param("audit --plan --epsilon 8 --delta 1e-5 --detect 12", marks=pytest.mark.ci),
    pytest.param(
        "audit --plan --epsilon 1 --one-run --set canaries=50 --detect 3", marks=pytest.mark.ci
    ),
    "audit --plan --epsilon 1 --records 4 --shadow-models 40",
    pytest.param("account --teachers 100 --epsilon 1", marks=pytest.mark.ci),
    "account --teachers 10 --labels 10 --scale 3 --mechanism all",
    "account labels --simulate --teachers 10 --labels 10 --scale 3 --runs 1000",
    "report runs/one --bounds",
    "report runs/one --bounds --confidence 0.9",
    "compare runs/one runs/two",
    "compare runs",
    "report runs/one",
    "bugs",
    "env list",
)
HEADLINE = re.compile(r"[A-Z]+( [A-Z]+)*  \S")
SYMBOLS = re.compile(r"->|<-|=>|>=|<=|~|\w\(s\)|\b[a-z]+_[a-z_]+\b")
"""Arrows, comparisons and identifiers; a plural in brackets."""


@pytest.fixture(autouse=True)
def runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_of: Callable[..., AuditRecord]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, verdict in (("one", "violation"), ("two", "consistent")):
        Path("runs", name).mkdir(parents=True)
        record = record_of(verdict=verdict)
        renamed = replace(record, generator=replace(record.generator, name=f"gan-{name}"))
        AuditResult.of(renamed, folder=None).save(Path("runs", name))


@pytest.mark.usefixtures("invented_numbers")
@pytest.mark.parametrize("words", COMMANDS)
def test_a_terminal_says_the_finding_first_fits_and_has_no_symbols(words: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code in (0, 1, 3), done.output
    first, *lines = done.stdout.splitlines()
    assert HEADLINE.match(first), first
    blank = lines.index("")
    assert [line[:2] for line in lines[:blank]] == ["  "] * blank  # the rest of the headline
    assert all(len(line) <= TERMINAL_WIDTH for line in [first, *lines])
    labels = {line[:LABEL_WIDTH] for line in lines if re.match(r"[a-z][a-z ]{0,8} +\S", line)}
    assert labels, done.stdout
    # without columns of the table, paths and numbers
    own = re.sub(r"STDs_\w+|\S+/\S+|\S+\.\S+", "", done.stdout)
    assert words == "bugs" or SYMBOLS.findall(own) == []
