"""`dpaudit replay`: unmodified code in both worlds with the same noisy answers."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.command import HelpAll, option
from dpaudit.cli.console import ExitCode, guarded, messages, require_folders, show, write_pages
from dpaudit.model.choices import CHOICES_OF_TARGET

PublicCoins = Annotated[
    bool,
    option(
        "--public-coins",
        help="Treat all randomness but the noise as public, for claims that rest on noise alone "
        "(PATE, DP-SGD without sampling).",
    ),
]
Target = Annotated[
    str,
    option(
        metavar="RECORD",
        help=f"Record to leave out: {CHOICES_OF_TARGET}, row:N (from 0), record:FILE; with --unit "
        "also unit:VALUE.",
    ),
]
Targets = Annotated[
    int,
    option(metavar="N", help="Records to try, two fits each; the worst is replayed.", shown=True),
]
Samplers = Annotated[
    list[str] | None,
    option(
        "--sampler",
        metavar="FUNCTION,law=LAW,scale=NAME",
        help="Noise sampler of your own code, as MODULE:NAME, with its law and the name of its "
        "scale parameter (loc=NAME: the parameter with the value before noise); repeatable. "
        "Default: those in the configuration file.",
    ),
]
HandOver = Annotated[
    bool,
    option(
        "--hand-over",
        help="Unless the verdict is consistent, find in 32 more fits which features of synthetic "
        "rows the record moves, for `dpaudit audit --after-replay`.",
    ),
]


@guarded
@options.takes_settings(
    *("parameters", "links", "epsilon", "delta", "mu", "rho", "curve", "neighbours", "unit"),
    *("max_rows_per_unit", "worst_case", "neighbours_file", "worker_memory"),
)
def replay(
    *,
    generator: options.GeneratorName,
    data: options.Tables = None,
    schema: options.SchemaFile = None,
    settings: dict[str, Any],
    target: Target = "exposing",
    targets: Targets = 1,
    replays: Annotated[
        int, option(metavar="N", help="Replays for the bound, two fits each.", shown=True)
    ] = 10,
    public_coins: PublicCoins = False,
    samplers: Samplers = None,
    hand_over: HandOver = False,
    rows: options.Rows = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Computes the exact privacy loss of unmodified Python code, line by line.

    Fits the generator with and without one record, about 28 times in all, and gives both fits the
    same noisy answers.
    """
    del help_all  # its callback has answered
    from dpaudit.model.choices import sampler_of
    from dpaudit.replaying.report import replay_page
    from dpaudit.replaying.run import replay as replayed
    from dpaudit.results.verdict import Verdict

    require_folders(html=html, markdown=markdown)
    record = replayed(
        generator,
        data,
        schema=schema,
        replays=replays,
        targets=targets,
        samplers=[sampler_of(one) for one in samplers or ()],
        public_coins=public_coins,
        hand_over=hand_over,
        target=target,
        rows=rows,
        confidence=confidence,
        seed=seed,
        **settings,
        on_progress=None if quiet or json else messages().print,
    )
    write_pages(replay_page(record), html=html, markdown=markdown)
    show(record, json=json, quiet=quiet)
    codes = {Verdict.VIOLATION: ExitCode.VIOLATION, Verdict.CONSISTENT: ExitCode.PASS}
    raise typer.Exit(codes.get(record.verdict, ExitCode.INCONCLUSIVE))
