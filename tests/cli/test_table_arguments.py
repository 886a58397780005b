"""A table in the place of an argument is answered with the option that takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpaudit.cli.main import app


@pytest.mark.parametrize("command", ["audit", "replay", "probe"])
def test_a_table_in_the_place_of_the_generator_is_said_to_be_one(command: str) -> None:
    result = CliRunner().invoke(app, [command, "people.csv", "--epsilon", "1"])
    assert result.exit_code == 2
    assert "people.csv is a table: name a generator, then --data people.csv" in result.output


def test_a_table_after_the_generator_is_given_by_data() -> None:
    result = CliRunner().invoke(app, ["audit", "gen.py:Gan", "people.parquet"])
    assert result.exit_code == 2
    assert "too many arguments: people.parquet (a table is given by --data)" in result.output


@pytest.mark.parametrize(
    ("cell", "quoted"),
    [("four", "row 30: 'four'"), ("x" * 99, "xxx...xxx"), ("\x1b[2J", r"\x1b[2J")],
)
@pytest.mark.parametrize("command", ["schema", "audit null --epsilon 1", "replay null --epsilon 1"])
def test_an_error_quotes_a_private_value_only_where_that_is_asked_for(
    command: str, cell: str, quoted: str, tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["age", *map(str, range(30)), cell]))
    words = [*command.split(), "--data", str(file)]
    silent = CliRunner().invoke(app, words)
    assert silent.exit_code == 2
    assert "row 30" in silent.output
    assert cell not in silent.output
    shown = CliRunner().invoke(app, [*words, "--show-values"])
    assert shown.exit_code == 2
    assert quoted in shown.output
