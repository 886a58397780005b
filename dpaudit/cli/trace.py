"""`dpaudit trace`: white-box findings about a generator that records its training."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import (
    ExitCode,
    guard,
    messages,
    require_folders,
    show,
    spell_options,
    write_pages,
)


@guard
@options.reads_tables
def trace(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    epsilon: options.OwnEpsilon = None,
    delta: options.OwnDelta = None,
    rows: options.Rows = None,
    seed: Annotated[int, option(metavar="S", help="Seed of every training.", shown=True)] = 0,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Checks how a generator trains by PATE or DP-SGD: data access, votes, gradients, noise, cost.

    Trains it a few times, on the table and on changed copies of it. Only violations change the
    exit code; bugs and notes do not.
    """
    from dpaudit.trace import trace as traced
    from dpaudit.trace.run import trace_page

    require_folders(html=html, markdown=markdown)
    report = traced(
        generator,
        data,
        schema=schema,
        parameters=options.built_with(parameter, epsilon, delta),
        rows=rows,
        seed=seed,
        on_progress=None if quiet else messages().print,
    )
    write_pages(trace_page(report), html=html, markdown=markdown)
    show(report, json=json, quiet=quiet, text=partial(spell_options, options=("schema",)))
    raise typer.Exit(ExitCode.VIOLATION if report.violated else ExitCode.PASS)
