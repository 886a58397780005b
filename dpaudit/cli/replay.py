"""`dpaudit replay`: unmodified code in both worlds with the same noisy answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from dpaudit.cli import options
from dpaudit.cli.command import HelpAll, option
from dpaudit.cli.console import (
    exit_code,
    guarded,
    messages,
    require_folders,
    show,
    write_pages,
)
from dpaudit.model.choices import CHOICES_OF_TARGET, Access, FailOn

Fits = Annotated[
    int | None,
    option(
        metavar="N",
        help="Fits to read answers off the release, and for guesses. Default: 400, fewer if they "
        "take over two minutes, but at least 60.",
    ),
]
Proof = Annotated[
    str | None,
    option(
        metavar="composition",
        help="How the claim is proved: by composition of its noise steps. Steps that spend more "
        "then violate that proof. Default: what the generator states, if anything.",
    ),
]
Internal = Annotated[
    list[str] | None,
    option(
        metavar="FILE:LINE",
        help="Line whose noisy answers are not released, so that what it spends is left out; "
        "`FILE:LINE: why` says why in the report; repeatable.",
    ),
]
AccessOption = Annotated[
    str,
    option(
        metavar="LEVEL",
        help="What the attacker sees: model (default; the fitted model and synthetic rows), or "
        "rows.",
    ),
]

PublicCoins = Annotated[
    bool,
    option(
        "--public-coins",
        help="Treat secret sub-samples as public, so that sampling does not lower what is spent: "
        "for claims that rest on noise alone.",
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
    option(
        metavar="N", help="Records to try, two fits each; the costliest is replayed.", shown=True
    ),
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
        help="Unless the verdict is consistent, find in 16 more fits which features of synthetic "
        "rows the record moves, for `dpaudit audit --set after-replay=FILE`.",
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
    fits: Fits = None,
    proof: Proof = None,
    internal: Internal = None,
    access: AccessOption = Access.MODEL.value,
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
    """Shows what unmodified Python code spends, line by line, and what its release shows.

    Fits the generator with and without one record and gives both fits the same noisy answers. The
    ledger says what a proof by composition charges for them. A violation needs more: some hundred
    further fits show whether the release itself leaks more than the claim.
    """
    del help_all  # its callback has answered
    from dpaudit.model.choices import sampler_of
    from dpaudit.replaying.report import replay_page
    from dpaudit.replaying.run import replay as replayed

    require_folders(html=html, markdown=markdown)
    with _shown_progress(messages(quiet=quiet or json)) as progress:
        record = replayed(
            generator,
            data,
            schema=schema,
            fits=fits,
            targets=targets,
            samplers=[sampler_of(one) for one in samplers or ()],
            public_coins=public_coins,
            proof=proof,
            internal=internal or (),
            access=Access(access).of_replay if access in list(Access) else access,
            hand_over=hand_over,
            target=target,
            rows=rows,
            confidence=confidence,
            seed=seed,
            **settings,
            on_progress=progress,
        )
    write_pages(replay_page(record), html=html, markdown=markdown)
    show(record, json=json, quiet=quiet)
    raise typer.Exit(exit_code(record.verdict, FailOn.INCONCLUSIVE))


@contextmanager
def _shown_progress(console: Console) -> Iterator[Callable[[str], None]]:
    """What shows progress: a line that changes on a terminal, the first of each stage elsewhere."""
    if console.is_terminal:
        with console.status("replay") as status:
            yield status.update
        return
    stages: set[str] = set()

    def print_stage(line: str) -> None:
        stage = re.sub(r"[\d:].*", "", line)
        if stage not in stages:
            console.print(line)
        stages.add(stage)

    yield print_stage
