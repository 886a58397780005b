"""The program `dpaudit`."""

from __future__ import annotations

import os
import sys
from typing import Annotated, ClassVar, Final, NoReturn

import typer

from dpaudit.cli.console import ExitCode, end_program
from dpaudit.cli.lazy import Command, LazyGroup
from dpaudit.formatting import error_line
from dpaudit.plugins.exits import refuse_exits
from dpaudit.versions import __version__

_EXAMPLES: Final = (
    "dpaudit audit pate-gan --data sample:breast-cancer --epsilon 1 --delta 1e-5",
    "dpaudit audit my.py:Gan -p hidden=64 --data t.csv --schema t.json --epsilon 1",
    "dpaudit audit my.py:Gan --data t.csv --epsilon 1 --target row:397 --jobs 4",
    "dpaudit audit my.py:Gan --schema t.json --epsilon 1 --worst-case opposite",
    "dpaudit audit slow.py:Gan --data t.csv --epsilon 1 --one-run --canaries 200",
)
_BRIEF: Final = (
    *("generator", "data", "schema", "parameters", "epsilon", "delta"),
    *("effort", "shadow_models", "target", "attacks", "sequential", "one_run"),
    *("confidence", "seed", "jobs", "out", "fail_on", "json", "quiet", "help_all"),
)
"""Options of `audit` that a first audit needs; `--help-all` lists the others, too."""


class Commands(LazyGroup):
    """The commands as `dpaudit --help` lists them."""

    sections: ClassVar = {
        "Audit a generator": {
            "demo": Command("demo", "demo", "Two toys, one that keeps its promise, in a minute."),
            "plan": Command(
                "plan", "plan", "What can an audit of which size prove, at what cost?", True
            ),
            "audit": Command(
                "audit",
                "audit",
                "Attacks shadow models and bounds epsilon.",
                True,
                _EXAMPLES,
                _BRIEF,
            ),
            "replay": Command(
                "replay", "replay", "Exact privacy loss of Python code, line by line.", True
            ),
            "probe": Command("probe", "probe", "Cheap checks from outside, a handful of fits."),
            "trace": Command(
                "trace", "trace", "Checks what a PATE-like generator's training does."
            ),
            "utility": Command("utility", "utility", "What are its tables good for?"),
            "frontier": Command("frontier", "frontier", "Privacy and utility over epsilons."),
            "audit-labels": Command(
                "audit_labels", "audit_labels", "Attacks the label bits of a PATE ensemble."
            ),
        },
        "Audit a released table, without its generator": {
            "split": Command("split", "split", "By fair coins, before training: train, hold-out."),
            "audit-data": Command("audit_data", "audit_data", "Does it reveal who was in train?"),
        },
        "Find out more of a run": {
            "report": Command("report", "report", "Writes the reports of a run again."),
            "explain": Command(
                "explain", "explain", "Which suspect, once fixed, removes the leak?"
            ),
            "bounds": Command("bounds", "bounds", "Recomputes every bound of a run."),
            "compare": Command("compare", "compare", "Several runs side by side."),
            "history": Command("compare", "history", "The runs of a folder, version by version."),
        },
        "Released libraries": {
            "env": Command("env", "env", "Their pinned environments: list, create, remove."),
            "bisect": Command("bisect", "bisect", "Audits one release after another."),
            "bugs": Command("bugs", "bugs", "Real privacy bugs, and their proofs."),
            "check-worker": Command(
                "check_worker", "check_worker", "Does a worker keep to dpaudit-worker/1?"
            ),
        },
        "Besides": {
            "synthesize": Command("synthesize", "synthesize", "Writes synthetic rows as CSV."),
            "account": Command("account", "account", "What labels of a PATE ensemble cost."),
            "list": Command("list", "list_registered", "Generators, attacks, libraries, bounds."),
            "show": Command("show", "show", "What a name stands for, with its parameters."),
            "doctor": Command("doctor", "doctor", "Checks this installation."),
        },
    }


app = typer.Typer(
    name="dpaudit",
    cls=Commands,
    help="Settles whether a differentially private synthetic data generator keeps its promise.",
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
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|none",
            help="Configuration of audit, plan and replay. Default: dpaudit.toml or "
            "[tool.dpaudit] of pyproject.toml, here or above.",
            show_default=False,
        ),
    ] = None,
) -> None:
    del version  # its callback has answered
    del config  # the command that is configured reads it


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
