"""`dpaudit frontier`: privacy and utility of generators over epsilons."""

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
    resumable,
    show,
)
from dpaudit.errors import InputError
from dpaudit.formatting import Row

if TYPE_CHECKING:
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.game.flight import TrialProgress


GeneratorsOption = Annotated[
    list[str],
    typer.Argument(
        metavar="GENERATOR...",
        help="Generators as for `dpaudit audit`, with parameters as NAME,KEY=VALUE. Each takes a "
        "parameter epsilon.",
        show_default=False,
    ),
]

TestOption = Annotated[
    str | None,
    option(
        metavar="FILE",
        help="Real rows to test classifiers on. Default: a part of --data that no model is "
        "trained on.",
    ),
]


@guarded
@options.takes_settings(
    *("delta", "neighbours", "target", "access", "attacks", "shadow_models", "rows", "confidence"),
    *("multiplicity", "sequential", "probe", "worker_memory", "seed"),
)
def frontier(
    *,
    generators: GeneratorsOption,
    data: options.Data,
    epsilons: Annotated[
        str,
        option(
            metavar="E,E...", help="Values of epsilon, one point of the frontier each.", shown=True
        ),
    ] = "1,3,10",
    settings: AuditSettings,
    schema: options.SchemaFile = None,
    test: TestOption = None,
    label: options.LabelColumn = None,
    positive: options.PositiveValue = None,
    test_share: options.TestShare = 0.2,
    repeats: Annotated[
        int, option(metavar="N", help="Synthetic tables per point, for utility.", shown=True)
    ] = 10,
    classifier: options.Classifiers = None,
    jobs: options.Jobs = None,
    out: Annotated[
        Path,
        option(
            metavar="DIR",
            help="Folder of the runs and of the report.",
            shown=True,
            panel=Panel.OUTPUT,
        ),
    ] = Path("runs/frontier"),
    fail_on: options.FailOnVerdict = FailOn.VIOLATION,
    json: options.Json = False,
    quiet: options.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Audits generators at several epsilons and measures the utility of their tables.

    The same command resumes; with the same --out, generators and epsilons can be added. The exit
    code is 3 if a point failed or an audit is invalid, unless another audit found a violation.
    """
    del help_all  # its callback has answered
    from dpaudit.frontiers.plan import FrontierSettings
    from dpaudit.frontiers.run import FRONTIER_FILES, run_frontier
    from dpaudit.usefulness.run import UtilitySettings

    numbers = [one for one in generators if one.replace(".", "", 1).isdecimal()]
    if numbers:
        together = ",".join([epsilons, *numbers])
        raise InputError(f"{numbers[0]} is not a generator: give `epsilons` as {together}")
    chosen = FrontierSettings(
        generators=generators,
        epsilons=_numbers(epsilons),
        audit=settings,
        utility=UtilitySettings(
            label=label,
            positive=positive,
            test_share=test_share,
            repeats=repeats,
            classifiers=classifier or None,
        ),
    )
    with resumable(), _Steps(quiet=quiet) as steps:
        found = run_frontier(
            chosen,
            data,
            out=out,
            schema=schema,
            test=test,
            jobs=jobs,
            on_step=steps.begin,
            on_progress=steps.show,
        )
    report = Row("report", str(out / FRONTIER_FILES[1]), whole=True)
    again = Row("reproduce", found.reproduce, whole=True)
    show(found, json=json, quiet=quiet, rows=[report, again])
    code = exit_code(found.verdict, fail_on)
    if code is ExitCode.PASS and found.failures and fail_on is not FailOn.NEVER:
        code = ExitCode.INCONCLUSIVE
    raise typer.Exit(code)


def _numbers(text: str) -> tuple[float, ...]:
    """The epsilons that an option lists.

    Raises:
        InputError: If one is not a number.
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"`epsilons` is {text!r}: give numbers, as in 1,3,10") from None


class _Steps:
    """Says on standard error what is run, and shows the trials of each audit."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar: ConsoleProgress | None = None

    def __enter__(self) -> _Steps:
        return self

    def __exit__(self, *ended: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def begin(self, words: str) -> None:
        """Begins a step."""
        self._end()
        messages(quiet=self._quiet).print(words)

    def show(self, event: TrialProgress) -> None:
        """Shows a trial of the step."""
        from dpaudit.auditing.progress_bar import ConsoleProgress

        if self._bar is None:
            self._bar = ConsoleProgress(messages(), quiet=self._quiet).__enter__()
        self._bar(event)
