"""`dpaudit probe`: metamorphic black-box checks."""

from __future__ import annotations

from functools import partial

import typer

from dpaudit.cli import options
from dpaudit.cli.console import (
    ExitCode,
    guard,
    progress_of,
    require_folders,
    show,
    spell_options,
    write_pages,
)
from dpaudit.probe.catalogue import ProbeSettings


@guard
@options.reads_tables
@options.takes_settings()
def probe(
    *,
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    settings: ProbeSettings,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs black-box checks of a generator, a handful of fits each.

    The exit code is 2 if the generator fails in every probe, and 3 if no probe applies.
    """
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.probe import ProbeResult, run_probes
    from dpaudit.probe.result import ProbeStatus, probe_page

    def line(result: ProbeResult) -> str:
        return f"{result.id}: {result.status} ({result.fits} fits)"

    require_folders(html=html, markdown=markdown)
    report = run_probes(
        generator,
        data,
        settings,
        schema=schema,
        parameters=parse_parameters(parameter or []),
        on_progress=progress_of(line, quiet=quiet),
    )
    write_pages(probe_page(report), html=html, markdown=markdown)
    show(report, json=json, quiet=quiet, text=partial(spell_options, options=("fits",)))
    if report.violations:
        raise typer.Exit(ExitCode.VIOLATION)
    if not report.ran:
        failed = report.of(ProbeStatus.FAILED)
        raise typer.Exit(ExitCode.USAGE if failed else ExitCode.INCONCLUSIVE)
