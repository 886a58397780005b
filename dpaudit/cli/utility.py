"""`dpaudit utility`: how useful a generator's tables are."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import ExitCode, guarded, progress_of, require_folders, show, write_asked

TestOption = Annotated[
    str | None,
    option(
        metavar="FILE",
        help="Real rows to test on. Default: a part of --data that no model is trained on.",
    ),
]

RowsOption = Annotated[
    int | None,
    option(metavar="N", help="Synthetic rows per model. Default: as many as real training rows."),
]
LabelColumn = Annotated[
    str | None, option(metavar="COLUMN", help="Column to predict. Default: the schema's label.")
]
PositiveValue = Annotated[
    str | None,
    option(
        metavar="VALUE",
        help="Value of the label that counts as positive. Default: the second of two.",
    ),
]
TestShare = Annotated[
    float, option(metavar="SHARE", help="Share of --data held out for testing.", shown=True)
]
Classifiers = Annotated[
    list[str] | None,
    option(
        metavar="NAME",
        help="Classifier to train; repeatable. Default: the twelve of the PATE-GAN paper.",
    ),
]


@guarded
def utility(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    epsilon: options.OwnEpsilon = None,
    delta: options.OwnDelta = None,
    test: TestOption = None,
    label: LabelColumn = None,
    positive: PositiveValue = None,
    test_share: TestShare = 0.2,
    repeats: Annotated[
        int, option(metavar="N", help="Models to train, one synthetic table each.", shown=True)
    ] = 10,
    rows: RowsOption = None,
    classifier: Classifiers = None,
    fidelity: Annotated[
        bool, option("--fidelity", help="Also compare columns and pairs of columns (SDMetrics).")
    ] = False,
    confidence: Annotated[
        float, option(metavar="C", help="Confidence of intervals and of beating noise.", shown=True)
    ] = 0.95,
    markdown: options.Markdown = None,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measures how useful synthetic tables are, compared with noise and real data.

    The exit code is 3 if they are not shown to be better than noise.
    """
    from dpaudit.usefulness import UtilitySettings, run_utility
    from dpaudit.usefulness.run import UtilityProgress

    def line(step: UtilityProgress) -> str:
        return f"{step.source}: {step.done} of {step.total}"

    settings = UtilitySettings(
        label=label,
        positive=positive,
        test_share=test_share,
        repeats=repeats,
        rows=rows,
        classifiers=classifier or None,
        fidelity=fidelity,
        confidence=confidence,
        seed=seed,
    )
    require_folders(markdown=markdown)
    report = run_utility(
        generator,
        data,
        settings,
        schema=schema,
        parameters=options.built_with(parameter, epsilon, delta),
        test=test,
        on_progress=progress_of(line, quiet=quiet),
    )
    if markdown is not None:
        write_asked(markdown, report.to_markdown(), option="markdown")
    show(report, json=json, quiet=quiet)
    raise typer.Exit(ExitCode.PASS if report.main.beats_noise else ExitCode.INCONCLUSIVE)
