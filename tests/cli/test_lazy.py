"""Commands are imported when they are called for."""

from __future__ import annotations

import inspect
import subprocess
import sys

from typer.testing import CliRunner

from dpaudit.cli.main import Commands, app

HEAVY = ("numpy", "pandas", "scipy", "torch", "sklearn")


def test_no_help_imports_a_heavy_package() -> None:
    code = f"""
import sys
from dpaudit.cli.main import Commands, app

words = [[name] for part in Commands.sections.values() for name in part]
words += [["env", "create"], ["bugs", "run"]]
for line in ([], *words):
    app([*line, "--help"], standalone_mode=False)
    print("imported:", *line, *[name for name in {HEAVY} if name in sys.modules])
import dpaudit.replaying.launching
print("imported:", *[name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("imported:")]
    commands = [name for part in Commands.sections.values() for name in part]
    assert found == [[], *([name] for name in commands), ["env", "create"], ["bugs", "run"], []]
    assert "Empirical epsilon of a generator, from shadow models." in done.stdout


def test_every_command_is_listed_in_one_line_and_answers() -> None:
    listed = CliRunner().invoke(app, ["--help"]).stdout
    commands = [one for part in Commands.sections.values() for one in part.items()]
    assert len({name for name, _ in commands}) == len(commands) >= 19
    for name, command in commands:
        assert any(
            line.split(maxsplit=1) == [name, command.summary] for line in listed.splitlines()
        )
        assert inspect.getdoc(command.imported(name))
        answered = CliRunner().invoke(app, [name, "--help"])
        assert answered.exit_code == 0
        assert f"Usage: dpaudit {name} " in answered.stdout
