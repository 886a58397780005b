"""`dpaudit explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.auditing.run_options import Machine
from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guard, messages, show, suggest_resuming
from dpaudit.formatting import Row
from dpaudit.model.setting import Option


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
