"""`dpaudit audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import FailOn, exit_code, guarded, messages, results, resumable
from dpaudit.game.choices import EngineName

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Run folder. Default: runs/ and a name made of the audit.",
        show_default=False,
    ),
]

Table = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Table: CSV (also .gz), Parquet, or sample:breast-cancer. A worst case has its own.",
        show_default=False,
    ),
]


@guarded
@options.takes_settings()
def audit(
    *,
    generator: options.GeneratorName,
    data: Table = None,
    settings: AuditSettings,
    schema: options.SchemaFile = None,
    jobs: options.Jobs = None,
    engine: options.EngineKind = EngineName.LOCAL,
    scheduler: options.Scheduler = None,
    trial_timeout: options.TrialTimeout = None,
    out: Out = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="Least severe verdict that fails.")
    ] = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits a generator: trains shadow models in both worlds, attacks, bounds epsilon.

    With --one-run: trains once on a table that holds each of many canaries by a fair coin, and
    guesses the coins.

    The same command resumes an interrupted run. Exit codes: 0 no violation found, 1 violation,
    2 wrong use or input, 3 inconclusive or invalid, 4 internal error.
    """
    from dpaudit.auditing.build import build_spec
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.pairs import audited_table
    from dpaudit.auditing.probing import is_probed
    from dpaudit.auditing.target_search.spec import TargetSearchSpec
    from dpaudit.cli.progress import ConsoleProgress
    from dpaudit.results.advice import next_step
    from dpaudit.results.result import REPORT_FILE

    table = audited_table(data, schema, settings)
    spec = build_spec(generator, table, settings)
    folder = out or spec.default_folder
    errors = messages()
    if not quiet:
        probes = "; probes first (--no-probe: none)" if is_probed(settings) else ""
        errors.print(f"auditing {generator} on {table.source}; run folder {folder}{probes}")
        if isinstance(spec, TargetSearchSpec):
            errors.print(spec.plan)
    with resumable(), ConsoleProgress(errors, quiet=quiet) as progress:
        result = run_audit(
            spec,
            folder,
            jobs=jobs,
            engine=engine,
            scheduler=scheduler,
            trial_timeout=trial_timeout,
            on_progress=progress,
        )
    output = results()
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        output.print(str(result).splitlines()[0])
    else:
        output.print(str(result))
        output.print(f"report: {folder / REPORT_FILE}")
        step = next_step(result, run=str(folder))
        output.print(f"next: {step.command or step.why}")
        output.print(f"reproduce: {spec.reproduce}")
    raise typer.Exit(exit_code(result.verdict, fail_on))
