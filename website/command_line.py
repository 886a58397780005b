"""The reference of the command line: what `--help` says of every command."""

from __future__ import annotations

from collections.abc import Iterator
from enum import EnumType
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
    yield f"### {path}\n"
    if command.help:
        yield f"{command.help.strip()}\n"
    inside = getattr(command, "commands", None)
    if inside:
        for name, one in inside.items():
            yield from _command(f"{path} {name}", one)
        return
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = " ".join([path, "[OPTIONS]", *map(_argument, arguments)])
    yield f"```text\n{usage}\n```\n"
    rows = [_row(one) for one in command.params if not getattr(one, "hidden", False)]
    if rows:
        yield "| option | meaning |\n|---|---|\n" + "".join(rows)


def _argument(parameter: Any) -> str:
    """A word of the usage line, in brackets if it may be left out."""
    word = (parameter.metavar or parameter.name.upper()).strip("[]{}")
    return word if parameter.required else f"[{word}]"


def _row(parameter: Any) -> str:
    """One row, of what every version of Typer knows of a parameter."""
    if parameter.param_type_name == "argument":
        name = _argument(parameter)
    else:
        name = " / ".join(", ".join(one) for one in _spellings(parameter) if one)
        if not parameter.is_flag:
            name += f" {_value(parameter)}"
    text = " ".join((parameter.help or "").split())
    shown = parameter.show_default and parameter.default not in (None, False, ()) and text
    if shown and not callable(parameter.default):
        text += f" Default: {_default(parameter)}."
    return f"| `{_escaped(name)}` | {_escaped(text)} |\n"


def _spellings(parameter: Any) -> tuple[list[str], list[str]]:
    """Short before long; then what switches a flag off."""
    return sorted(parameter.opts, key=len), sorted(parameter.secondary_opts, key=len)


def _value(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    described = getattr(parameter, "type_descriptor", None)  # of newer versions of Typer
    if described is None:
        choices = getattr(parameter.type, "choices", ())
    else:
        annotation = described.annotation
        choices = list(annotation) if isinstance(annotation, EnumType) else ()
    return "|".join(str(getattr(one, "value", one)) for one in choices) or "VALUE"


def _default(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return str(max(parameter.opts, key=len))
    return str(getattr(parameter.default, "value", parameter.default))


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
