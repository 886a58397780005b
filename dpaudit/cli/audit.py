"""`dpaudit audit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.auditing.run_options import Machine, Outputs
from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import (
    ExitCode,
    exit_code,
    guard,
    messages,
    require_folders,
    results,
    spell_options,
    suggest_resuming,
    write_named,
)
from dpaudit.errors import SettingsError
from dpaudit.files import MOST_OF_SUMMARY, append_to_step_summary
from dpaudit.formatting import Row, row_lines
from dpaudit.model.choices import FailOn
from dpaudit.model.setting import Option, Panel

if TYPE_CHECKING:
    from dpaudit.auditing.spec import AuditSpec
    from dpaudit.results.record import AuditRecord
    from dpaudit.results.result import AuditResult


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to do with the settings of an audit.

    Attributes:
        plan: Print what this audit can detect, without training; without GENERATOR by the claim
            alone.
        detect: Epsilon (or mu, rho) to detect: `plan` says how many models that takes.
        out: Run folder. Default: runs/, named for the audit.
    """

    plan: Annotated[bool, Option(panel=Panel.PLAN)] = False
    detect: Annotated[float | None, Option("E", panel=Panel.PLAN)] = None
    out: Annotated[Path | None, Option("DIR", panel=Panel.OUTPUT)] = None


@guard
@options.takes_settings()
def audit(
    *,
    generator: options.GeneratorToPlan = None,
    data: options.Tables = None,
    schema: options.SchemaFile = None,
    settings: AuditSettings,
    run: RunOptions,
    outputs: Outputs,
    json: options.Json = False,
    quiet: options.Quiet = False,
    machine: Machine,
) -> None:
    """Audits a generator: trains shadow models with and without one record and attacks them.

    The same command resumes an interrupted run.
    """
    from dpaudit.auditing.games import audited_table, build_spec, game_of

    time_one = outputs.time_one
    junit = None if outputs.junit is None else Path(outputs.junit)
    require_folders(junit=junit)
    if outputs.after_replay is not None:
        settings = game_of(settings.game).after_replay(settings, Path(outputs.after_replay))
    if run.plan:
        from dpaudit.cli.plan import plan as print_plan

        print_plan(
            settings,
            *(generator, data, schema),
            detect=run.detect,
            time_one=time_one,
            jobs=machine.jobs,
            json=json,
            quiet=quiet,
        )
        return
    if run.detect is not None or time_one:
        name = "time_one" if run.detect is None else "detect"
        raise SettingsError(f"`{name}` belongs to a plan: give `plan`")
    if generator is None:
        raise SettingsError("GENERATOR is missing; see dpaudit audit --help")
    from dpaudit.report.render import junit_xml
    from dpaudit.results.sentences import headline
    from dpaudit.results.verdict import Verdict

    spec = build_spec(generator, audited_table(data, schema, settings), settings)
    folder = run.out or spec.default_folder
    result = _run_audit(spec, folder, machine, quiet=quiet)
    output = results()
    code = exit_code(result.verdict, outputs.fail_on)
    if junit is not None:
        strictly = FailOn.INCONCLUSIVE if outputs.fail_on is FailOn.NEVER else outputs.fail_on
        fails = exit_code(result.verdict, strictly) is not ExitCode.PASS
        write_named(junit, junit_xml(result, fails=fails), option="junit")
    summarise(result)
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        why = result.reasons[:1] if result.verdict is Verdict.INCONCLUSIVE else ()
        output.print("; ".join([headline(result), *why]))
    else:
        _show(result, folder)
    raise typer.Exit(code)


def _run_audit(spec: AuditSpec, folder: Path, machine: Machine, *, quiet: bool) -> AuditResult:
    """Runs an audit, and reports its folder and progress on standard error."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.auditing.reuse import judged_before, judged_in

    errors = messages(quiet=quiet)
    if not quiet:
        probes = "" if spec.not_probed else "; probes first (--set probe=false: none)"
        audited = f"{spec.generator.name} on {spec.table.source}"
        errors.print(f"auditing {audited}; run folder {folder}{probes}")
        if spec.before:
            errors.print(spec.before)
        elif earlier := judged_before(spec, folder):
            errors.print(f"warning: {judged_in(earlier)}; audit with another --seed")

    def warned(text: str) -> None:
        errors.print(f"warning: {spell_options(text).replace('`', '')}")

    with suggest_resuming(), ConsoleProgress(errors, quiet=quiet) as progress:
        return run_audit(spec, folder, jobs=machine, on_progress=progress, on_warning=warned)


def _show(result: AuditResult, folder: Path) -> None:
    """Prints a result, its report's place, the next step, and the command that repeats it."""
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

    If it cannot be written, a note goes to standard error and the exit code stays as it is.
    """
    from dpaudit.report.render import render_excerpt

    excerpt = render_excerpt(result, most_bytes=MOST_OF_SUMMARY - 2)
    if reason := append_to_step_summary(excerpt + "\n\n"):
        messages().print(f"note: {reason}")
