"""The program `dpaudit`."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli.account import account
from dpaudit.cli.audit import audit
from dpaudit.cli.audit_labels import audit_labels
from dpaudit.cli.bounds import bounds
from dpaudit.cli.doctor import doctor
from dpaudit.cli.explain import explain
from dpaudit.cli.list import list_registered
from dpaudit.cli.plan import plan
from dpaudit.cli.probe import probe
from dpaudit.cli.report import report
from dpaudit.cli.show import show
from dpaudit.cli.synthesize import synthesize
from dpaudit.cli.trace import trace
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
app.command()(trace)
app.command()(report)
app.command()(bounds)
app.command()(account)
app.command("audit-labels")(audit_labels)
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


def main() -> None:
    """Entry point of the console script."""
    app()
