"""A table in the place of an argument is answered with the option that takes it."""

from __future__ import annotations

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
