"""`dpaudit probe`: metamorphic black-box checks."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import (
    ExitCode,
    guarded,
    progress_of,
    require_folders,
    show,
    spelled,
    write_pages,
)

Confidence = Annotated[
    float,
    option(
        metavar="C",
        help="Confidence that no probe flags a generator that satisfies its claim.",
        shown=True,
    ),
]


@guarded
def probe(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    only: Annotated[
        list[str] | None, option(metavar="ID", help="Probe to run; repeatable. Default: all.")
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    neighbours: options.Relation = None,
    target: Annotated[
        str | None,
        option(metavar="row:N", help="Record to watch; rows count from 0. Default: none."),
    ] = None,
    rows: options.Rows = None,
    records: Annotated[
        int,
        option(
            metavar="N", help="Maximum number of records; a larger table is sampled.", shown=True
        ),
    ] = 1000,
    fits: Annotated[
        int,
        option(
            metavar="N", help="Maximum number of fits of one probe after its pilot.", shown=True
        ),
    ] = 64,
    confidence: Confidence = 0.99,
    worker_memory: options.WorkerMemory = None,
    seed: options.Seed = 0,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs black-box checks of a generator, a handful of fits each.

    The exit code is 3 if no probe could judge the generator.
    """
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.probe import ProbeResult, ProbeSettings, run_probes
    from dpaudit.probe.result import probe_page

    def line(result: ProbeResult) -> str:
        return f"{result.id}: {result.status} ({result.fits} fits)"

    require_folders(html=html, markdown=markdown)
    settings = ProbeSettings(
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        target=target,
        only=tuple(only or ()),
        rows=rows,
        records=records,
        fits=fits,
        confidence=confidence,
        worker_memory=worker_memory,
        seed=seed,
    )
    report = run_probes(
        generator,
        data,
        settings,
        schema=schema,
        parameters=parse_parameters(parameter or []),
        on_progress=progress_of(line, quiet=quiet),
    )
    write_pages(probe_page(report), html=html, markdown=markdown)
    show(report, json=json, quiet=quiet, text=partial(spelled, options=("fits",)))
    if report.violations:
        raise typer.Exit(ExitCode.VIOLATION)
    if not report.ran:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
