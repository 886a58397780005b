"""`dpaudit replay`: unmodified code in both worlds with the same noisy answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from dpaudit.cli import options
from dpaudit.cli.console import ExitCode, guarded, messages, show, write_asked

PublicCoins: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--public-coins",
        help="The claim counts on noise alone (PATE, DP-SGD without sampling): other coins "
        "excuse nothing.",
    ),
]
Confidence: TypeAlias = Annotated[
    float, typer.Option(metavar="C", help="One-sided confidence of the bound.")
]


@guarded
def replay(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    parameter: options.Parameters = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    curve: options.Curve = None,
    neighbours: options.Relation = None,
    target: Annotated[
        str,
        typer.Option(
            metavar="RECORD",
            help="Record to leave out: `exposing`, `farthest`, `row:N`, `record:FILE`.",
        ),
    ] = "exposing",
    targets: Annotated[
        int,
        typer.Option(metavar="N", help="Records to try with two fits each; the worst is replayed."),
    ] = 1,
    replays: Annotated[int, typer.Option(metavar="N", help="Counted replays, two fits each.")] = 10,
    sampler: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FUNCTION,law=LAW,scale=NAME",
            help="A noise sampler of your own, MODULE:NAME, its law, and which of its parameters "
            "is the scale (and, with loc=NAME, the value before noise); repeatable.",
            show_default=False,
        ),
    ] = None,
    public_coins: PublicCoins = False,
    rows: options.Rows = None,
    confidence: Confidence = 0.95,
    worker_memory: options.WorkerMemory = None,
    seed: options.Seed = 0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Report to write.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Runs Python code in both worlds with the same noisy answers: its exact privacy loss.

    Needs no change of its code and some 26 fits. Exit codes: 0 consistent with the claim,
    1 violation, 2 wrong use or input, 3 inconclusive.
    """
    from dpaudit.plugins.registry import parse_parameters
    from dpaudit.replaying.report import replay_html
    from dpaudit.replaying.run import replay as replayed
    from dpaudit.results.verdict import Verdict

    record = replayed(
        generator,
        data,
        schema=schema,
        replays=replays,
        targets=targets,
        samplers=[_sampler(one) for one in sampler or ()],
        public_coins=public_coins,
        parameters=parse_parameters(parameter or []),
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        rho=rho,
        curve=curve,
        neighbours=neighbours,
        target=target,
        rows=rows,
        confidence=confidence,
        worker_memory=worker_memory,
        seed=seed,
        on_progress=None if quiet or json else messages().print,
    )
    if html is not None:
        write_asked(html, replay_html(record), option="html")
    show(record, json=json, quiet=quiet)
    codes = {Verdict.VIOLATION: ExitCode.VIOLATION, Verdict.CONSISTENT: ExitCode.PASS}
    raise typer.Exit(codes.get(record.verdict, ExitCode.INCONCLUSIVE))


def _sampler(text: str) -> dict[str, str]:
    """A sampler as an option says it."""
    function, *rest = text.split(",")
    fields = dict(part.partition("=")[::2] for part in rest)
    return {"function": function, **fields}
