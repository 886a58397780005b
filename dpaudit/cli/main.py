"""The program `dpaudit`."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from dpaudit.cli.account import account
from dpaudit.cli.audit import audit
from dpaudit.cli.audit_labels import audit_labels
from dpaudit.cli.bisect import bisect
from dpaudit.cli.bounds import bounds
from dpaudit.cli.bugs import bugs
from dpaudit.cli.check_worker import check_worker
from dpaudit.cli.compare import compare, history
from dpaudit.cli.console import ExitCode, end_program
from dpaudit.cli.doctor import doctor
from dpaudit.cli.env import env
from dpaudit.cli.explain import explain
from dpaudit.cli.list import list_registered
from dpaudit.cli.plan import plan
from dpaudit.cli.probe import probe
from dpaudit.cli.report import report
from dpaudit.cli.show import show
from dpaudit.cli.synthesize import synthesize
from dpaudit.cli.trace import trace
from dpaudit.formatting import error_line
from dpaudit.plugins.foreign import refuse_exits
from dpaudit.versions import __version__

app = typer.Typer(
    name="dpaudit",
    help="Settles whether a differentially private synthetic data generator keeps its promise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(audit)
app.command()(plan)
app.command()(probe)
app.command()(synthesize)
app.command()(explain)
app.command()(bisect)
app.command()(trace)
app.command()(report)
app.command()(compare)
app.command()(history)
app.command()(bounds)
app.command()(account)
app.command("audit-labels")(audit_labels)
app.command("check-worker")(check_worker)
app.add_typer(env, name="env")
app.add_typer(bugs, name="bugs")
app.command("list")(list_registered)
app.command()(show)
app.command()(doctor)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpaudit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    del version  # its callback has answered


def _occupy_streams() -> None:
    """Puts something harmless where standard input, output or error was closed, for workers too.

    Else the next files that are opened take their places, and whatever foreign code prints.
    `sys.stdout` stays None, so that a result that cannot be printed is noted.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            os.set_inheritable(nowhere, True)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end


def main() -> NoReturn:
    """Entry point of the console script.

    Foreign code may neither end the program, as its exit code would say nothing, nor keep it from
    ending.
    """
    refuse_exits()
    _occupy_streams()
    try:
        app()
        code: object = ExitCode.PASS
    except SystemExit as end:
        code = ExitCode.PASS if end.code is None else end.code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - an error that could not be reported
        sys.stderr.write(f"internal error: {error_line(error)}\n")
        code = ExitCode.INTERNAL
    end_program(int(code) if isinstance(code, int) else ExitCode.INTERNAL)
