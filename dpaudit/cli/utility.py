"""`dpaudit utility`: how useful a generator's tables are."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import ExitCode, guard, messages, require_folders, show, write_named
from dpaudit.usefulness.settings import UtilitySettings

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
