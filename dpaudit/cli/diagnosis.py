"""`dpaudit probe`, `trace`, `explain` and `utility`: what else is asked of a generator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.auditing.settings import Machine
from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import (
    ExitCode,
    guard,
    messages,
    progress_of,
    require_folders,
    show,
    spell_options,
    suggest_resuming,
    write_named,
    write_pages,
)
from dpaudit.formatting import Row
from dpaudit.model.setting import Option
from dpaudit.probe.catalogue import ProbeSettings
from dpaudit.usefulness.settings import UtilitySettings


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
    from dpaudit.probe.run import ProbeStatus, probe_page

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


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """What is fixed, one at a time.

    Attributes:
        suspect: Suspect to fix: a fix that the generator offers, row-order, all-together. Default:
            every one.
        shadow_models: Shadow models for each suspect. Default: as many as the run has, up to 400;
            more where the leak needs them.
    """

    suspect: Annotated[tuple[str, ...], Option("NAME")] = ()
    shadow_models: Annotated[int | None, Option("N")] = None


@guard
@options.takes_settings(without=("worker_memory",))
def explain(
    *,
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run folder of an audit that found a violation.")
    ],
    suspects: Suspects,
    machine: Machine,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Explains a violation: repeats the audit with one suspect fixed at a time.

    Suspects are the fixes that the generator offers, the order of the table's rows (shuffled in
    each training), and all of them together. The same command resumes an interrupted run. The exit
    code is 0 if a fix removes the leak, 3 if none does.
    """
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.explain import ROW_ORDER, inquire
    from dpaudit.game.pool import workers_ended

    inquiry = inquire(run_folder, suspects=suspects.suspect, shadow_models=suspects.shadow_models)
    errors = messages(quiet=quiet)
    if list(inquiry.suspects) == [ROW_ORDER] and not suspects.suspect:
        errors.print(f"{inquiry.run.audit.generator.name} offers no fixes of its own")
    names = ", ".join(inquiry.suspects)
    errors.print(f"suspects: {names}; {inquiry.settings.game.shadow_models} shadow models each")
    fixed = []
    with suggest_resuming(), workers_ended():
        for place, name in enumerate(inquiry.suspects, start=1):
            errors.print(f"{place} of {len(inquiry.suspects)}: {name} fixed")
            with ConsoleProgress(errors, quiet=quiet) as progress:
                fixed.append(inquiry.audit_fixed(name, jobs=machine, on_progress=progress))
    explanation = inquiry.conclude(fixed)
    report = Row("report", str(inquiry.report), whole=True)
    again = Row("reproduce", explanation.reproduce, whole=True)
    show(explanation, json=json, quiet=quiet, rows=[report, again])
    raise typer.Exit(ExitCode.PASS if explanation.removed_by else ExitCode.INCONCLUSIVE)


TestOption = Annotated[
    str | None,
    option(
        metavar="FILE",
        help="Real rows to test on. Default: a part of --data that no model is trained on.",
    ),
]


@guard
@options.reads_tables
@options.takes_settings()
def utility(
    *,
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    epsilon: options.OwnEpsilon = None,
    delta: options.OwnDelta = None,
    test: TestOption = None,
    settings: UtilitySettings,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measures how useful synthetic tables are, compared with noise and real data.

    The exit code is 3 if they are not shown to be better than noise.
    """
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.usefulness import run_utility

    require_folders(markdown=markdown)
    with ConsoleProgress(messages(), quiet=quiet) as progress:
        report = run_utility(
            generator,
            data,
            settings,
            schema=schema,
            parameters=options.built_with(parameter, epsilon, delta),
            test=test,
            on_progress=lambda step: progress.show(*step),
        )
    if markdown is not None:
        write_named(markdown, report.to_markdown(), option="markdown")
    show(report, json=json, quiet=quiet)
    raise typer.Exit(ExitCode.PASS if report.main.beats_noise else ExitCode.INCONCLUSIVE)
