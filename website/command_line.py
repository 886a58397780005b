"""The reference of the command line: what `--help` says of every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from dpaudit.cli.main import Commands, app

_CODES = """\
| exit code | means |
|---|---|
| 0 | no violation found, or what was asked for is done |
| 1 | a violation |
| 2 | wrong use or input |
| 3 | inconclusive, or a run that cannot be trusted |
| 4 | an internal error |
"""


def page() -> str:
    """The page, from the program itself."""
    root: Any = typer.main.get_command(app)
    parts = [
        "# Command line\n",
        "Written by `python -m website` from the program. Results go to standard output, progress "
        "and messages to standard error. A command that differs in its exit codes says so.\n",
        _CODES,
    ]
    for title, commands in Commands.sections.items():
        parts.append(f"## {title}\n")
        for name in commands:
            parts += _command(f"dpaudit {name}", root.get_command(None, name))
    return "\n".join(parts)


def _command(path: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=path)
    yield f"### {path}\n"
    if command.help:
        yield f"{command.help.strip()}\n"
    inside = getattr(command, "commands", None)
    if inside:
        for name, one in inside.items():
            yield from _command(f"{path} {name}", one)
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{path} {usage}\n```\n"
    rows = [row for row in map(_row, command.params, [context] * len(command.params)) if row]
    if rows:
        yield "| | |\n|---|---|\n" + "".join(rows)


def _row(parameter: Any, context: Any) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    name, text = (part.replace("|", "\\|") for part in record)
    return f"| `{' '.join(name.split())}` | {' '.join(text.split())} |\n"
