"""`dpaudit audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.command import HelpAll, Panel, option
from dpaudit.cli.console import (
    ExitCode,
    FailOn,
    exit_code,
    guarded,
    messages,
    results,
    resumable,
    write_asked,
)
from dpaudit.errors import InputError, SettingsError
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

JUnit = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="JUnit XML file to write: claim, controls and checks as test cases.",
        panel=Panel.OUTPUT,
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
AfterReplay = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Result of `dpaudit replay --json`, to attack the features that its record moves; the "
        "only attack unless --attack names others.",
        panel=Panel.ATTACK,
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
    after_replay: AfterReplay = None,
    out: Out = None,
    junit: JUnit = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    exit_zero: Annotated[
        bool, option("--exit-zero", help="Exit with 0 whatever the verdict.", panel=Panel.OUTPUT)
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    jobs: options.Jobs = None,
    engine: options.EngineKind = EngineName.LOCAL,
    scheduler: options.Scheduler = None,
    trial_timeout: options.TrialTimeout = None,
    help_all: HelpAll = False,
) -> None:
    """Audits a generator: trains shadow models with and without one record and attacks them.

    The same command resumes an interrupted run.
    """
    del help_all  # its callback has answered
    from dpaudit.auditing.games import audited_table, build_spec, kind_of

    if junit is not None and not junit.parent.is_dir():
        raise InputError(f"no folder {junit.parent}: make it, or give another `junit`")
    if after_replay is not None:
        settings = kind_of(settings.game).after_replay(settings, after_replay)
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
    machine = Machine(jobs=jobs, engine=engine, scheduler=scheduler, trial_timeout=trial_timeout)
    result = _audited(spec, folder, machine, quiet=quiet)
    output = results()
    code = exit_code(result.verdict, fail_on)
    if junit is not None:
        write_asked(junit, junit_xml(result, fails=code is not ExitCode.PASS), option="junit")
    summarise(result)
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        output.print(headline(result))
    else:
        _show(result, folder)
    raise typer.Exit(ExitCode.PASS if exit_zero else code)


def _audited(spec: AuditSpec, folder: Path, machine: Machine, *, quiet: bool) -> AuditResult:
    """Runs an audit and says on standard error where, and how far it is."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.auditing.reuse import judged_before, judged_in

    errors = messages(quiet=quiet)
    if not quiet:
        probes = "; probes first (--no-probe: none)" if spec.probe_fits else ""
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
