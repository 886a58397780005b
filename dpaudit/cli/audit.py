"""`dpaudit audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.command import Panel, option
from dpaudit.cli.console import (
    ExitCode,
    FailOn,
    exit_code,
    guarded,
    messages,
    require_folders,
    results,
    resumable,
    write_asked,
)
from dpaudit.errors import SettingsError
from dpaudit.files import MOST_OF_SUMMARY, append_to_step_summary
from dpaudit.formatting import Row, row_lines
from dpaudit.model.choices import EngineName

if TYPE_CHECKING:
    from dpaudit.auditing.entry import Machine
    from dpaudit.auditing.spec import AuditSpec
    from dpaudit.results.record import AuditRecord
    from dpaudit.results.result import AuditResult

Out = Annotated[
    Path | None,
    option(
        metavar="DIR", help="Run folder. Default: runs/, named for the audit.", panel=Panel.OUTPUT
    ),
]

Plan = Annotated[
    bool,
    option(
        "--plan",
        help="Print what this audit can detect, without training; without GENERATOR by the claim "
        "alone.",
        panel=Panel.PLAN,
    ),
]
Detect = Annotated[
    float | None,
    option(
        metavar="E",
        help="Epsilon (or mu, rho) to detect: --plan says how many models that takes.",
        panel=Panel.PLAN,
    ),
]
TimeOne = Annotated[
    bool,
    option(
        "--time-one",
        help="Train one model of GENERATOR for --plan, to estimate the cost.",
        panel=Panel.PLAN,
    ),
]


@guarded
@options.takes_settings()
def audit(
    *,
    generator: options.GeneratorToPlan = None,
    data: options.Tables = None,
    schema: options.SchemaFile = None,
    settings: AuditSettings,
    plan: Plan = False,
    detect: Detect = None,
    time_one: TimeOne = False,
    after_replay: str | None = None,
    out: Out = None,
    junit: str | None = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
    jobs: options.Jobs = None,
    engine: str = EngineName.LOCAL,
    scheduler: str | None = None,
    trial_timeout: float | None = None,
) -> None:
    """Audits a generator: trains shadow models with and without one record and attacks them.

    The same command resumes an interrupted run.
    """
    from dpaudit.auditing.games import audited_table, build_spec, kind_of

    require_folders(junit=None if junit is None else Path(junit))
    if after_replay is not None:
        settings = kind_of(settings.game).after_replay(settings, Path(after_replay))
    if plan:
        from dpaudit.cli.plan import plan as print_plan

        print_plan(
            settings,
            *(generator, data, schema),
            detect=detect,
            time_one=time_one,
            jobs=jobs,
            json=json,
            quiet=quiet,
        )
        return
    if detect is not None or time_one:
        name = "time_one" if detect is None else "detect"
        raise SettingsError(f"`{name}` belongs to a plan: give `plan`")
    if generator is None:
        raise SettingsError("GENERATOR is missing; see dpaudit audit --help")
    from dpaudit.auditing.entry import Machine
    from dpaudit.report.render import junit_xml
    from dpaudit.results.sentences import headline

    spec = build_spec(generator, audited_table(data, schema, settings), settings)
    folder = out or spec.default_folder
    machine = Machine(
        jobs=jobs, engine=EngineName(engine), scheduler=scheduler, trial_timeout=trial_timeout
    )
    result = _audited(spec, folder, machine, quiet=quiet)
    output = results()
    code = exit_code(result.verdict, fail_on)
    if junit is not None:
        strictly = FailOn.INCONCLUSIVE if fail_on is FailOn.NEVER else fail_on
        fails = exit_code(result.verdict, strictly) is not ExitCode.PASS
        write_asked(Path(junit), junit_xml(result, fails=fails), option="junit")
    summarise(result)
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        output.print(headline(result))
    else:
        _show(result, folder)
    raise typer.Exit(code)


def _audited(spec: AuditSpec, folder: Path, machine: Machine, *, quiet: bool) -> AuditResult:
    """Runs an audit and says on standard error where, and how far it is."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.auditing.reuse import judged_before, judged_in

    errors = messages(quiet=quiet)
    if not quiet:
        probes = "; probes first (--set probe=false: none)" if spec.probe_fits else ""
        audited = f"{spec.generator.name} on {spec.table.source}"
        errors.print(f"auditing {audited}; run folder {folder}{probes}")
        if spec.before:
            errors.print(spec.before)
        elif earlier := judged_before(spec, folder):
            errors.print(f"warning: {judged_in(earlier)}; audit with another --seed")

    def warned(text: str) -> None:
        errors.print(f"warning: {text}")

    with resumable(), ConsoleProgress(errors, quiet=quiet) as progress:
        return run_audit(spec, folder, jobs=machine, on_progress=progress, on_warning=warned)


def _show(result: AuditResult, folder: Path) -> None:
    """Prints a result, where its report is, what to do next, and the command that repeats it."""
    from dpaudit.results.advice import next_step
    from dpaudit.results.result import report_row

    step = next_step(result, run=str(folder))
    rows = [
        report_row(folder),
        Row("next", step.command or step.why, whole=bool(step.command)),
        Row("cost", step.cost),
        *(Row("then", then) for then in step.then),
        Row("reproduce", result.reproduce, whole=True),
    ]
    lines = row_lines(row for row in rows if row.fact)
    results().print("\n".join([str(result), *lines]))


def summarise(result: AuditRecord) -> None:
    """Appends an audit's report to the summary of the job, in a step of GitHub Actions.

    A summary that cannot be written is noted on standard error; the exit code says what was found.
    """
    from dpaudit.report.render import render_excerpt

    excerpt = render_excerpt(result, most_bytes=MOST_OF_SUMMARY - 2)
    if reason := append_to_step_summary(excerpt + "\n\n"):
        messages().print(f"note: {reason}")
