"""`dpaudit probe`: metamorphic checks from outside."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guarded, progress_of, require_folders, show, write_pages


@guarded
def probe(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID", help="A probe to run; repeatable. Default: all.", show_default=False
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    neighbours: options.Relation = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="row:N",
            help="A record to watch; rows count from 0. Default: none.",
            show_default=False,
        ),
    ] = None,
    rows: options.Rows = None,
    records: Annotated[
        int, typer.Option(metavar="N", help="Most records to probe; a sample of a larger table.")
    ] = 1000,
    fits: Annotated[
        int, typer.Option(metavar="N", help="Most fits of one probe after its pilot.")
    ] = 64,
    confidence: Annotated[
        float,
        typer.Option(metavar="C", help="That no probe flags a generator which keeps its claim."),
    ] = 0.99,
    worker_memory: options.WorkerMemory = None,
    seed: options.Seed = 0,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Checks a generator from outside: a handful of fits for each probe, no instrumentation.

    Exits with 3 if no probe could judge the generator.
    """
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.probe import ProbeResult, ProbeSettings, run_probes
    from dpaudit.probe.page import probe_page

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
    show(report, json=json, quiet=quiet, text=options.spelled)
    if report.violations:
        raise typer.Exit(ExitCode.VIOLATION)
    if not report.ran:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
