"""The program `dpaudit`."""

from __future__ import annotations

import os
import sys
from typing import Annotated, ClassVar, Final, NoReturn

import typer

from dpaudit.cli.command import Command, LazyGroup
from dpaudit.cli.console import ExitCode, end_program
from dpaudit.formatting import error_line
from dpaudit.plugins.exits import go_on_apart, refuse_exits
from dpaudit.versions import __version__

_EXAMPLES: Final = (
    "dpaudit audit pate-gan --data sample:breast-cancer --epsilon 1 --delta 1e-5",
    "dpaudit audit my.py:Gan -p hidden=64 --data t.csv --epsilon 1 --delta 1e-5",
    "dpaudit audit my.py:Gan --data t.csv --schema t.json --target row:397",
    "dpaudit audit my.py:Gan --data t.csv --effort quick",
    "dpaudit audit slow.py:Gan --data t.csv --epsilon 1 --delta 1e-5 --one-run",
)
_REPLAY: Final = (
    *("data", "schema", "epsilon", "delta", "attacks", "confidence", "json", "help_all"),
    *("generator", "parameters", "target", "targets", "fits", "proof", "internal"),
    *("access", "public_coins", "samplers", "seed", "html", "quiet"),
)
"""Options of `replay` that a first replay needs; `--help-all` lists the others, too."""


_TRAIN_HERE: Final = {"probe", "synthesize", "trace", "utility"}
"""Commands that train in their own process, not in workers."""


class Commands(LazyGroup):
    """The commands as `dpaudit --help` lists them."""

    sections: ClassVar = {
        "Audit a generator": {
            "demo": Command(
                "Two toy audits in a minute: one finds a violation.", place="audit:demo"
            ),
            "audit": Command(
                "Empirical epsilon of a generator, from shadow models.",
                configured=True,
                examples=_EXAMPLES,
            ),
            "replay": Command(
                "Privacy cost of Python code, line by line.",
                configured=True,
                brief=_REPLAY,
            ),
            "probe": Command(
                "Cheap black-box checks, a handful of fits each.", place="diagnosis:probe"
            ),
            "trace": Command("Checks of training by PATE or DP-SGD.", place="diagnosis:trace"),
            "utility": Command(
                "Utility compared with noise and real data.", place="diagnosis:utility"
            ),
        },
        "Audit a released table, without its generator": {
            "split": Command("Random split into train and hold-out.", place="tables:split"),
            "audit-data": Command(
                "Members and copies in a released table.", place="tables:audit_data"
            ),
        },
        "Runs and reports": {
            "report": Command(
                "Report of a run, written again; figures and bounds.", place="runs:report"
            ),
            "explain": Command(
                "Cause of a violation: the fix that removes the leak.", place="diagnosis:explain"
            ),
            "evidence": Command("A run as one file that others can check.", place="runs:evidence"),
            "compare": Command(
                "Several runs side by side, or version by version.", place="runs:compare"
            ),
        },
        "Released libraries": {
            "env": Command("Pinned environments: list, create, remove.", place="libraries:env"),
            "bugs": Command("Real privacy bugs and their proofs.", place="libraries:bugs"),
        },
        "Utilities": {
            "schema": Command("Schema of a table, to be edited.", place="tables:schema"),
            "synthesize": Command(
                "Synthetic rows as CSV, and their claim.", place="tables:synthesize"
            ),
            "account": Command("Privacy cost of labels, their audit, and recorded calls."),
            "list": Command(
                "Generators, attacks, libraries, bounds; one of them in full.",
                place="installation:list_registered",
            ),
            "doctor": Command(
                "State of this installation, or of a worker.", place="installation:doctor"
            ),
        },
    }

    renamed: ClassVar = {
        "plan": "dpaudit audit --plan",
        "show": "dpaudit list NAME",
        "history": "dpaudit compare FOLDER",
        "bounds": "dpaudit report RUN --bounds",
        "audit-labels": "dpaudit account labels --simulate",
        "check-worker": "dpaudit doctor --worker COMMAND",
        "frontier": "dpaudit audit -p epsilon=E for each E, then dpaudit compare FOLDER",
        "bisect": "dpaudit audit LIBRARY@VERSION:METHOD for each, then dpaudit compare FOLDER",
    }


app = typer.Typer(
    name="dpaudit",
    cls=Commands,
    help="Audits synthetic data generators that claim differential privacy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpaudit {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|none",
            help="Configuration of audit and replay; none: no file. Default: dpaudit.toml, "
            "or [tool.dpaudit] in pyproject.toml, in this folder or above it in a git "
            "repository.",
            show_default=False,
        ),
    ] = None,
) -> None:
    del version  # its callback has answered
    del config  # the command that is configured reads it


def _occupy_streams() -> None:
    """Replaces standard input, output or error by the null device if closed, for workers too.

    Otherwise the next opened files get these descriptors, and receive what foreign code prints.
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

    Foreign code may neither end the program, whose exit code would then mean nothing, nor keep it
    from ending.
    """
    if _TRAIN_HERE.intersection(sys.argv[1:2]):
        go_on_apart()
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
