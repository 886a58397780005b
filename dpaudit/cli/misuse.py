"""Usage errors in one line: what was wrong, where, and which help to read."""

from __future__ import annotations

import re
from typing import Any, Final

import typer

from dpaudit.cli.command import HELP_ALL
from dpaudit.formatting import did_you_mean

UsageError: Any = typer.BadParameter.__base__
"""The base class of typer's usage errors; not among its public names."""

_EXTRA: Final = re.compile(r"^Got unexpected extra argument.*? \((.*)\)$")
_WANTED: Final = {
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "greater_than_equal": "at least {ge}",
    "bool_parsing": "true or false",
}
"""The requirement on a value, by the error type of pydantic, which reads the values."""


def one_line(error: Any) -> str:
    """A usage error of typer in the form of all other errors.

    Args:
        error: The error.

    Returns:
        The line. It ends with the help to read, if the error knows its command.
    """
    kind, context, parameter = type(error).__name__, error.ctx, getattr(error, "param", None)
    if kind == "NoSuchOption" and context is not None:
        what = f"no such option {error.option_name}{_close(error.option_name, context)}"
    elif kind == "MissingParameter" and parameter is not None:
        what = f"{_with_value(parameter)} is missing"
    elif parameter is not None:
        what = _refused(error)
    elif kind == "BadOptionUsage":
        what = error.message.removeprefix("Option ").replace("'", "").rstrip(".")
    else:
        what = _EXTRA.sub(r"too many arguments: \1", error.message)
    return f"error: {what}{_read_on(error)}"


def _close(name: str, context: Any) -> str:
    """The option of the command that is spelled most like an unknown one."""
    parameters = context.command.get_params(context)
    names = [flag[2:] for one in parameters for flag in one.opts if flag.startswith("--")]
    return did_you_mean(name.lstrip("-"), names).replace("'", "'--", 1)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).strip("[]{}")
    return str(max(parameter.opts, key=len))


def _with_value(parameter: Any) -> str:
    if parameter.param_type_name == "argument" or parameter.metavar is None:
        return _name(parameter)
    return f"{_name(parameter)} {parameter.metavar}"


def _refused(error: Any) -> str:
    """Which value is refused, and why."""
    name = _name(error.param)
    found: list[Any] = getattr(error.__cause__, "errors", list)()
    if not found:
        return f"{name} is refused: {error.message.rstrip('.')}"
    first = found[0]
    prefix = error.ctx.auto_envvar_prefix
    if prefix and error.param.resolve_envvar_value(error.ctx) == first["input"]:
        name = f"{prefix}_{error.param.name.upper()}"
    if first["type"] in _WANTED:
        wanted = _WANTED[first["type"]].format(**first.get("ctx", {}))
        return f"{name} must be {wanted}, not {first['input']}"
    return f"{name}: {error.message.removeprefix('Value error, ').rstrip('.')}"


def _read_on(error: Any) -> str:
    """The help to read: the long one for an option that the short one omits."""
    context = error.ctx
    if context is None:
        return ""
    brief = getattr(context.command, "brief", None)
    parameter = getattr(error, "param", None)
    listed = parameter is not None and parameter.name in (brief or ())
    return f"; see {context.command_path} {HELP_ALL if brief and not listed else '--help'}"
