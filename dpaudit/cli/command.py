"""A command whose help has panels and examples, and one that takes defaults from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from dpaudit.cli.console import messages
from dpaudit.cli.exits import EXIT_CODES, ExitCode
from dpaudit.cli.panels import Panel
from dpaudit.errors import InputError
from dpaudit.formatting import error_text

HELP_ALL: Final = "--help-all"
_SHOWS_ALL: Final = "dpaudit.help_all"
_ARGUMENTS: Final = "Arguments"
_OWN_PANEL: Final = "Options"
_ORDER: Final = (
    *(_ARGUMENTS, Panel.INPUT, Panel.CLAIM, _OWN_PANEL, Panel.ATTACK),
    *(Panel.MORE_AUDITS, Panel.RULES, Panel.OUTPUT, Panel.MACHINE),
)
"""The panels in the order of the help: what a command reads, what it does, where and how."""
_NOTE: Final = re.compile(r"  \[(.*)\]$")
"""What typer adds to a help text: the default, the smallest value, whether it is required.

The usage line shows what is required; a configured command may find the argument in its file.
"""
_TYPE: Final = re.compile(r"(?<=[A-Z.]) <[\w\[\]|-]+>$")
"""What typer adds to the name of an argument."""
_UNBROKEN: Final = "\N{NON-BREAKING HYPHEN}"
"""Stands for the hyphens of a help text until its lines are wrapped, so that names stay whole."""
_PLACES: Final = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")
"""The sources of an option's value, in order of precedence."""
_LONGEST_NAME: Final = 23
"""Largest width of an option and its value with its help on the same line."""


def _show_all(ctx: typer.Context, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(HELP_ALL, is_eager=True, callback=_show_all, help="Show every option and exit."),
]
"""The option that lists every option of a command whose help is brief."""


class PanelledCommand(TyperCommand):
    """A command whose help lists its options by panel, what it reads first, then examples.

    Its epilog holds the examples, one on each line.

    Attributes:
        brief: Names of the parameters that the help lists; all if there are none. A command that
            has some takes `HelpAll`.
    """

    brief: frozenset[str] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses several tables where one is read: typer would take the last."""
        table: Any = next((one for one in self.params if one.name == "data"), None)
        given = sum(one.partition("=")[0] == "--data" for one in args)
        if table is not None and not table.multiple and given > 1:
            raise typer.BadParameter(
                "one table is read, and several are given; dpaudit audit and dpaudit replay take "
                "several, with --link",
                ctx,
                table,
            )
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line; a required argument has no brackets."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub("[{}]", "", piece).replace("." * 6, "...") for piece in pieces]

    def get_help(self, ctx: Any) -> str:
        """The help as text."""
        return str(super().get_help(ctx)).replace(_UNBROKEN, "-")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments, then the options, panel by panel."""
        panels: dict[str, list[tuple[str, str]]] = {}
        listed = self.get_params(ctx)
        if self.brief and not ctx.meta.get(_SHOWS_ALL):
            listed = [one for one in listed if one.name in self.brief or not one.expose_value]
        for one in sorted(listed, key=_rank):
            record = one.get_help_record(ctx)
            if record is not None:
                name = _TYPE.sub("", record[0]).ljust(_LONGEST_NAME)
                text = _NOTE.sub(_default_sentence, record[1]).replace("-", _UNBROKEN)
                title = _last(panels) if _is_help(one) else _panel(one)
                panels.setdefault(title, []).append((name, text))
        for title, rows in panels.items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_LONGEST_NAME)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Writes the exit codes, which are the same for every command, and the examples."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code.value), text) for code, text in EXIT_CODES.items()])
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class ConfiguredCommand(PanelledCommand):
    """A command whose options take defaults from the environment and a configuration file.

    The command line comes first, then variables such as DPAUDIT_AUDIT_EPSILON, then the file
    (`dpaudit.auditing.configuration`), then the defaults. An effort takes precedence with its
    sizes, too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the file before the words of the command."""
        asked_for_help = not {*ctx.help_option_names, HELP_ALL}.isdisjoint(args)
        if ctx.resilient_parsing or asked_for_help:
            return super().parse_args(ctx, args)
        ctx.auto_envvar_prefix = f"DPAUDIT_{(self.name or '').upper()}"
        from dpaudit.auditing.configuration import configured, in_use

        file: Path | None = None
        try:
            file = in_use(ctx.find_root().params.get("config"), Path.cwd())
            if file is not None:
                known = {one.name for one in self.params}
                options = configured(file).items()
                ctx.default_map = {name: of for name, of in options if name in known}
        except InputError as error:
            messages().print(f"error: {error_text(error)}")
            raise typer.Exit(ExitCode.USAGE) from None
        rest = super().parse_args(ctx, args)
        _let_effort_win(ctx)
        if file is None:
            return rest
        given = [name for name, of in ctx.params.items() if of is not None]
        of_file = {name for name in given if _source(ctx, name) == "DEFAULT_MAP"}
        if "generator" not in of_file and "parameters" in of_file:
            ctx.params["parameters"] = None  # they are those of the generator of the file
            of_file.remove("parameters")
        if of_file and not ctx.params.get("quiet"):
            _say(file, sorted(of_file))
        return rest


def _say(file: Path, names: list[str]) -> None:
    keys = ", ".join(names).replace("_", "-")
    messages().print(f"from {os.path.relpath(file)}: {keys}")


def _let_effort_win(ctx: Any) -> None:
    """Drops sizes if an effort comes from a source that takes precedence."""
    from dpaudit.auditing.games import EFFORT, sizes_of_effort

    effort = _source(ctx, EFFORT)
    after = _PLACES[_PLACES.index(effort) + 1 :] if effort in _PLACES else ()
    for name in sizes_of_effort().intersection(ctx.params):
        if _source(ctx, name) in after:
            ctx.params[name] = None


def _source(ctx: Any, name: str) -> str:
    source = ctx.get_parameter_source(name)
    return "" if source is None else str(source.name)


def _default_sentence(note: re.Match[str]) -> str:
    """The default that a note of typer names, as a sentence of the help text."""
    defaults = [one for one in note[1].split("; ") if one.startswith("default: ")]
    return "".join(f" Default: {one.removeprefix('default: ')}." for one in defaults)


def _rank(param: Any) -> int:
    """The place of an option's panel in the help; options of the help itself come last."""
    return len(_ORDER) if _is_help(param) else _ORDER.index(_panel(param))


def _last(panels: Mapping[str, object]) -> str:
    """The panel of the options of the help: the last one with options."""
    last = next(reversed([*panels]), _ARGUMENTS)
    return _OWN_PANEL if last == _ARGUMENTS else last


def _is_help(param: Any) -> bool:
    return not param.expose_value or HELP_ALL in param.opts


def _panel(param: Any) -> str:
    if param.param_type_name == "argument":
        return _ARGUMENTS
    panel: str | None = getattr(param, "rich_help_panel", None)
    return panel or _OWN_PANEL
