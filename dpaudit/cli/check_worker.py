"""`dpaudit check-worker`: whether a worker process conforms to the protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import Panel, option
from dpaudit.cli.console import ExitCode, guarded, results
from dpaudit.formatting import labelled


@guarded
def check_worker(
    worker: Annotated[
        str,
        typer.Argument(
            metavar="COMMAND",
            help="Program and arguments as one string, such as '/path/venv/bin/python "
            "my.py:Generator'; or LIBRARY:METHOD.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        option(
            metavar="FILE",
            help="Table to train on: CSV (also .gz), Parquet, or sample:breast-cancer.",
            shown=True,
            panel=Panel.INPUT,
        ),
    ] = "sample:breast-cancer",
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    worker_memory: options.WorkerMemory = None,
) -> None:
    """Checks that a worker conforms to the protocol dpaudit-worker/1.

    The exit code is 1 if it does not, 2 if it does not start.
    """
    from dpaudit.external.generator import WorkerGenerator
    from dpaudit.external.session import PREFIX
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import library_named, named_generator
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.probe.conformance import check_worker as checks

    table = load(data, schema)
    library = library_named(worker.rpartition(":")[0] or worker)
    generator = named_generator(
        worker if library else f"{PREFIX}{worker.removeprefix(PREFIX)}",
        parse_parameters(parameter or []),
        {"schema": table.schema},
        worker_memory=worker_memory,
    ).generator
    assert isinstance(generator, WorkerGenerator)
    output, passed = results(), True
    claim = generator.claim.in_words if generator.claim else "no claim"
    output.print(f"{generator.hello.name}: {claim}; tables as {', '.join(generator.hello.formats)}")
    for finding in checks(generator, table):
        passed &= finding.passed
        lines = labelled("ok" if finding.passed else "PROBLEM", finding.name, width=9)
        if finding.detail:
            lines += labelled("", finding.detail, width=9)
        output.print("\n".join(lines))
    if not passed:
        raise typer.Exit(ExitCode.VIOLATION)
