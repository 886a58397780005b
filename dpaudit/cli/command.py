"""Commands: help in panels, defaults from a file, groups, and usage errors in one line.

A command's module is imported when the command is called, so `dpaudit --help` and a mistyped
command load only Typer, and no command loads what only another one needs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from dpaudit.cli.console import EXIT_CODES, ExitCode, messages
from dpaudit.errors import InputError, SettingsError
from dpaudit.formatting import did_you_mean, error_text
from dpaudit.model.choices import replacement_of
from dpaudit.model.setting import Panel


def option(
    *names: str,
    metavar: str | None = None,
    help: str,
    shown: bool = False,
    panel: Panel | None = None,
    hidden: bool = False,
) -> Any:
    """An option; with `shown` its default is added to its help text."""
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=shown, rich_help_panel=panel, hidden=hidden
    )


HELP_ALL: Final = "--help-all"
SET: Final = "set"
"""The parameter that takes, by name, settings whose own options are hidden."""
_OPTIONS_AGAIN: Final = ("neighbours", "effort")
"""Settings that the previous release took only as `--set NAME=VALUE`."""
_OF_EVERY_TABLE: Final = ("separator", "encoding")
"""Settings whose hidden options stay, because every other command that reads tables shows them."""
_SHOWS_ALL: Final = "dpaudit.help_all"
_ARGUMENTS: Final = "Arguments"
_OWN_PANEL: Final = "Options"
_ORDER: Final = (
    *(_ARGUMENTS, Panel.INPUT, Panel.CLAIM, _OWN_PANEL, Panel.ATTACK, Panel.PLAN),
    *(Panel.MORE_AUDITS, Panel.RULES, Panel.OUTPUT, Panel.MACHINE),
)
"""The panels in the order of the help: inputs, what a command does, where and how it runs."""
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
        brief: Names of the parameters that the help lists; empty for all. A command with a brief
            help takes `HelpAll`.
    """

    brief: frozenset[str] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses several tables where one is read: typer would take the last."""
        table: Any = next((param for param in self.params if param.name == "data"), None)
        given = sum(arg.partition("=")[0] == "--data" for arg in args)
        if table is not None and not table.multiple and given > 1:
            raise typer.BadParameter(
                "one table is read, and several are given; dpaudit audit and dpaudit replay take "
                "several that are linked",
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
            listed = [p for p in listed if p.name in self.brief or not p.expose_value]
        for param in sorted(listed, key=_rank):
            record = param.get_help_record(ctx)
            if record is not None:
                name = _TYPE.sub("", record[0]).ljust(_LONGEST_NAME)
                text = _NOTE.sub(_default_sentence, record[1]).replace("-", _UNBROKEN)
                title = _last(panels) if _is_help(param) else _panel(param)
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
        from dpaudit.auditing.configuration import file_in_use, read_options

        try:
            file = file_in_use(ctx.find_root().params.get("config"), Path.cwd())
            of_file = {} if file is None else read_options(file)
            known = {param.name for param in self.params}
            ctx.default_map = {name: of for name, of in of_file.items() if name in known}
            words, notes = self._by_option(args)
            rest = super().parse_args(ctx, words)
        except InputError as error:
            messages().print(f"error: {error_text(error)}")
            raise typer.Exit(ExitCode.USAGE) from None
        note = messages(quiet=bool(ctx.params.get("quiet")))
        for line in notes:
            note.print(line)
        places = {name: _source(ctx, name) for name in ctx.params}
        _let_effort_win(ctx, places)
        if file is None:
            return rest
        taken = {name for name, place in places.items() if place == "DEFAULT_MAP"}
        taken -= {name for name, of in ctx.params.items() if of is None}
        if "generator" not in taken and "parameters" in taken:
            ctx.params["parameters"] = None  # those of the file belong to the file's generator
            taken.remove("parameters")
        if taken:
            keys = ", ".join(sorted(taken)).replace("_", "-")
            note.print(f"from {os.path.relpath(file)}: {keys}")
        return rest

    def _by_option(self, args: list[str]) -> tuple[list[str], list[str]]:
        """The words with an option, hidden or not, for each `--set NAME=VALUE`.

        Returns:
            The words, and a note on each that is spelled as in earlier releases.

        Raises:
            SettingsError: If an entry is not NAME=VALUE, is repeated, or must be true or false.
        """
        by_name = {_key(param): param for param in self.params if getattr(param, "hidden", False)}
        again = {_key(param): param for param in self.params if param.name in _OPTIONS_AGAIN}
        earlier = [param for name, param in by_name.items() if name not in _OF_EVERY_TABLE]
        former = {flag for param in earlier for flag in (*param.opts, *param.secondary_opts)}
        words, notes, seen, rest = list[str](), list[str](), set[str](), iter(args)
        for word in rest:
            flag, equals, pair = word.partition("=")
            if flag in former:
                notes.append(f"{flag}: written as --set NAME=VALUE from the next release on")
            if not by_name or flag != f"--{SET}" or not (equals or (pair := next(rest, ""))):
                words.append(word)
                continue
            name, equals, text = pair.partition("=")
            option = (by_name | again).get(name)
            if option is None or not equals:
                raise SettingsError(
                    f"--set {pair}: write NAME=VALUE{did_you_mean(name, sorted(by_name))}; NAME is "
                    f"one of {', '.join(sorted(by_name))}"
                )
            if name in seen and not option.multiple:
                raise SettingsError(f"--set {name} is given twice: give it once")
            seen.add(name)
            if name in again:
                notes.append(f"--set {name}: written as --{name} from the next release on")
            words += _option_words(option, name, text)
        return words, notes


def _key(option: Any) -> str:
    """The name of an option in a configuration file."""
    return str(option.name).replace("_", "-")


def _option_words(option: Any, name: str, text: str) -> list[str]:
    """The words of an option with a value.

    Raises:
        SettingsError: If it is a flag and the value is neither true nor false.
    """
    if not option.is_flag:
        return [f"{option.opts[0]}={text}"]
    if text not in ("true", "false"):
        raise SettingsError(f"--set {name}={text}: write {name}=true or {name}=false")
    return list(option.opts if text == "true" else option.secondary_opts)


def _let_effort_win(ctx: Any, places: Mapping[str, str]) -> None:
    """Drops sizes if an effort comes from a source that takes precedence."""
    from dpaudit.auditing.games import EFFORT, sizes_of_effort

    effort = places.get(EFFORT)
    after = _PLACES[_PLACES.index(effort) + 1 :] if effort in _PLACES else ()
    for name in sizes_of_effort().intersection(ctx.params):
        if places.get(name) in after:
            ctx.params[name] = None


def _source(ctx: Any, name: str) -> str:
    source = ctx.get_parameter_source(name)
    return "" if source is None else str(source.name)


def _default_sentence(note: re.Match[str]) -> str:
    """The default that a note of typer names, as a sentence of the help text."""
    defaults = [part for part in note[1].split("; ") if part.startswith("default: ")]
    return "".join(f" Default: {default.removeprefix('default: ')}." for default in defaults)


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


class Command(NamedTuple):
    """The place of a command, and its help.

    Attributes:
        summary: The first line of its help.
        place: MODULE:NAME of its function, or of a `typer.Typer` with commands of its own, in
            `dpaudit.cli`; if empty, module and function have the name of the command.
        configured: Whether it takes defaults from a configuration file.
        examples: Lines at the end of its help.
        brief: Options that its help lists, if not all.
    """

    summary: str
    place: str = ""
    configured: bool = False
    examples: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()

    def imported(self, name: str) -> Any:
        """Imports the function, or the `typer.Typer`, behind the command of this name."""
        own = name.replace("-", "_")
        module, _, attribute = (self.place or f"{own}:{own}").partition(":")
        return getattr(import_module(f"dpaudit.cli.{module}"), attribute)


class SuggestingGroup(TyperGroup):
    """Commands by name; an unknown name gets the closest one as a suggestion."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command that is called."""
        known = self.list_commands(ctx)
        if args[0] not in known and args[0][:1] != "-":
            ctx.fail(f"no such command {args[0]!r}{did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)


class DefaultingGroup(SuggestingGroup):
    """Commands by name; the first one may be called without its name.

    Attributes:
        takes_argument: Whether any unknown word calls the first command, not only an option.
    """

    takes_argument: ClassVar[bool] = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the name of the first command before words of its own."""
        known = [*self.list_commands(ctx), *ctx.help_option_names]
        if args and args[0] not in known and (self.takes_argument or args[0][:1] == "-"):
            args = [known[0], *args]
        return super().parse_args(ctx, args)


def command_group(
    help: str, kind: type[SuggestingGroup] = SuggestingGroup, *, bare: bool = False
) -> typer.Typer:
    """Commands under one name, such as those of `dpaudit env`.

    Args:
        help: Their help.
        kind: How the one that is called is found.
        bare: Whether the name alone is a command, too; else it prints the help.
    """
    return typer.Typer(
        cls=kind,
        add_completion=False,
        help=help,
        no_args_is_help=not bare,
        invoke_without_command=bare,
        rich_markup_mode=None,
    )


class LazyGroup(SuggestingGroup):
    """Commands by name, listed without being imported.

    Attributes:
        sections: The commands by name, under the headings of the help, in its order.
        renamed: The replacements of removed commands.
    """

    sections: ClassVar[Mapping[str, Mapping[str, Command]]] = {}
    renamed: ClassVar[Mapping[str, str]] = {}

    @property
    def known(self) -> dict[str, Command]:
        """All commands by name."""
        return {name: command for part in self.sections.values() for name, command in part.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(self.known)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command that is called; for a removed one names its replacement."""
        if args[0] in self.renamed:
            new = self.renamed[args[0]]
            raise UsageError(f"no such command {args[0]!r}: did you mean `{new}`?")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command; None if there is no such command."""
        entry = self.known.get(cmd_name)
        if entry is None:
            return None
        value = entry.imported(cmd_name)
        if not isinstance(value, typer.Typer):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            kind = ConfiguredCommand if entry.configured else PanelledCommand
            alone.command(cmd_name, cls=kind, epilog="\n".join(entry.examples))(value)
            value = alone
        command = typer.main.get_command(value)
        command.name = cmd_name
        if isinstance(command, PanelledCommand):
            command.brief = frozenset(entry.brief)
        return command

    def main(self, *args: Any, **options: Any) -> Any:
        """Runs the program; a usage error becomes one line."""
        alone = options.pop("standalone_mode", True)
        try:
            code = super().main(*args, **{**options, "standalone_mode": False})
        except UsageError as error:
            if not alone:
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()
            else:
                messages().print(_usage_line(error))
            code = error.exit_code
        if alone:
            sys.exit(code)
        return code

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands, section by section."""
        width = max(map(len, self.known))
        for title, commands in self.sections.items():
            with formatter.section(title):
                rows = [(name.ljust(width), command.summary) for name, command in commands.items()]
                formatter.write_dl(rows)


UsageError: Any = typer.BadParameter.__base__
"""The base class of typer's usage errors; not among its public names."""

TABLE_ENDINGS: Final = (".csv", ".csv.gz", ".parquet", ".pq", ".xlsx", ".tsv")
"""Endings of table files, which belong after --data."""
_EXTRA: Final = re.compile(r"^Got unexpected extra argument.*? \((.*)\)$")
_WANTED: Final = {
    "float_parsing": "a number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "greater_than_equal": "at least {ge}",
    "bool_parsing": "true or false",
}
"""The requirement on a value, by the error type of pydantic, which reads the values."""


def _usage_line(error: Any) -> str:
    """A usage error of typer in the form of all other errors.

    Args:
        error: The error.

    Returns:
        The line. It ends with the help to read, if the error knows its command.
    """
    kind, context, parameter = type(error).__name__, error.ctx, getattr(error, "param", None)
    if kind == "NoSuchOption" and context is not None:
        what = f"no such option {error.option_name}{_suggestion(error.option_name, context)}"
        if error.option_name == "--exit-zero" and "fail_on" in _names(context):
            what = "--exit-zero is no option: give --fail-on never"
    elif kind == "MissingParameter" and parameter is not None:
        what = f"{_with_value(parameter)} is missing"
    elif parameter is not None:
        what = _refusal(error)
    elif kind == "BadOptionUsage":
        what = error.message.removeprefix("Option ").replace("'", "").rstrip(".")
    else:
        what = _EXTRA.sub(r"too many arguments: \1", error.message)
        if what.endswith(TABLE_ENDINGS) and context is not None and "data" in _names(context):
            what += " (a table is given by --data)"
    return f"error: {what}{_help_hint(error)}"


def _names(context: Any) -> list[str]:
    return [param.name for param in context.command.params]


def _suggestion(name: str, context: Any) -> str:
    """Suggests the option of the command whose spelling is closest to an unknown one."""
    params = context.command.get_params(context)
    shown = [param for param in params if not getattr(param, "hidden", False)]
    names = [flag[2:] for param in shown for flag in param.opts if flag.startswith("--")]
    return did_you_mean(name.lstrip("-"), names).replace("'", "'--", 1)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).strip("[]{}")
    if parameter.hidden:
        return f"--{SET} {_key(parameter)}"
    return str(max(parameter.opts, key=len))


def _with_value(parameter: Any) -> str:
    if parameter.param_type_name == "argument" or parameter.metavar is None:
        return _name(parameter)
    return f"{_name(parameter)} {parameter.metavar}"


def _refusal(error: Any) -> str:
    """Says which value is refused, and why."""
    name = _name(error.param)
    errors: list[Any] = getattr(error.__cause__, "errors", list)()
    if not errors:
        return f"{name} is refused: {error.message.rstrip('.')}"
    first = errors[0]
    prefix = error.ctx.auto_envvar_prefix
    if prefix and error.param.resolve_envvar_value(error.ctx) == first["input"]:
        name = f"{prefix}_{error.param.name.upper()}"
    if instead := replacement_of(error.param.name, first["input"]):
        return f"{name}: {first['input']!r} is gone; {instead}"
    if first["type"] in _WANTED:
        wanted = _WANTED[first["type"]].format(**first.get("ctx", {}))
        return f"{name} must be {wanted}, not {first['input']}"
    return f"{name}: {error.message.removeprefix('Value error, ').rstrip('.')}"


def _help_hint(error: Any) -> str:
    """Names the help to read: the full one for an option that the brief one omits."""
    context = error.ctx
    if context is None:
        return ""
    brief = getattr(context.command, "brief", None)
    parameter = getattr(error, "param", None)
    listed = parameter is not None and parameter.name in (brief or ())
    return f"; see {context.command_path} {HELP_ALL if brief and not listed else '--help'}"
