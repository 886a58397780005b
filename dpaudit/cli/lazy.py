"""A group of commands whose modules are imported when they are called.

So `dpaudit --help` and a mistyped command cost no more than Typer, and no command imports what only
another one needs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperGroup

from dpaudit.cli.command import ConfiguredCommand, PanelledCommand
from dpaudit.cli.console import messages
from dpaudit.cli.misuse import UsageError, one_line
from dpaudit.formatting import did_you_mean


class Command(NamedTuple):
    """The module of a command, and its help.

    Attributes:
        module: Its module in `dpaudit.cli`.
        attribute: Its function there, or a `typer.Typer` with commands of its own.
        summary: The first line of its help.
        configured: Whether it takes defaults from a configuration file.
        examples: Lines at the end of its help.
        brief: Options that its help lists, if that is not all of them.
    """

    module: str
    attribute: str
    summary: str
    configured: bool = False
    examples: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()


class SuggestingGroup(TyperGroup):
    """Commands by name; an unknown name gets the closest one as a suggestion."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the command that is called."""
        known = self.list_commands(ctx)
        if args[0] not in known and args[0][:1] != "-":
            ctx.fail(f"no such command {args[0]!r}{did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)


class DefaultingGroup(SuggestingGroup):
    """Commands by name, the first of which may be called without its name.

    Attributes:
        takes_argument: Whether any other word begins the first command, too, not only an option.
    """

    takes_argument: ClassVar[bool] = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the name of the first command before words of its own."""
        known = [*self.list_commands(ctx), *ctx.help_option_names]
        if args and args[0] not in known and (self.takes_argument or args[0][:1] == "-"):
            args = [known[0], *args]
        return super().parse_args(ctx, args)


class LazyGroup(SuggestingGroup):
    """Commands by name, listed without being imported.

    Attributes:
        sections: The commands by name, under the headings of the help, in its order.
    """

    sections: ClassVar[Mapping[str, Mapping[str, Command]]] = {}

    @property
    def known(self) -> dict[str, Command]:
        """All commands by name."""
        return {name: one for part in self.sections.values() for name, one in part.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return list(self.known)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports a command; None if there is no such command."""
        found = self.known.get(cmd_name)
        if found is None:
            return None
        value = getattr(import_module(f"dpaudit.cli.{found.module}"), found.attribute)
        if not isinstance(value, typer.Typer):
            alone = typer.Typer(rich_markup_mode=None, add_completion=False)
            kind = ConfiguredCommand if found.configured else PanelledCommand
            alone.command(cmd_name, cls=kind, epilog="\n".join(found.examples))(value)
            value = alone
        command = typer.main.get_command(value)
        command.name = cmd_name
        if isinstance(command, PanelledCommand):
            command.brief = frozenset(found.brief)
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
                messages().print(one_line(error))
            code = error.exit_code
        if alone:
            sys.exit(code)
        return code

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands, section by section."""
        width = max(map(len, self.known))
        for title, commands in self.sections.items():
            with formatter.section(title):
                rows = [(name.ljust(width), one.summary) for name, one in commands.items()]
                formatter.write_dl(rows)
