"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.auditing.plan import Multiplicity
from dpaudit.bounds import ThresholdRule
from dpaudit.model.claim import Neighbours

GeneratorName = Annotated[
    str,
    typer.Argument(
        metavar="GENERATOR",
        help="Registered name (see `dpaudit list generators`), module:attr, or file.py:attr.",
        show_default=False,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Table: CSV (also .gz), Parquet, or sample:breast-cancer.",
        show_default=False,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Public schema (JSON, also SDV metadata). Inferred from the table if not given.",
        show_default=False,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--parameter",
        metavar="KEY=VALUE",
        help="A parameter of the generator; repeatable.",
        show_default=False,
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        metavar="E",
        help="Epsilon of the claim under audit. Default: the generator's own.",
        show_default=False,
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        metavar="D",
        help="Delta of the claim. Default: the generator's own, else 0.",
        show_default=False,
    ),
]
Relation = Annotated[
    Neighbours | None,
    typer.Option(
        help="How D and D' differ. Default: as the claim says, else add-remove.",
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="farthest|vulnerable|row:N|record:FILE",
        help="The attacked record; rows count from 0. vulnerable: the one that small attacks find "
        "easiest, for as many trainings as --shadow-models.",
    ),
]
Attacks = Annotated[
    list[str] | None,
    typer.Option(
        "--attack",
        metavar="NAME[,KEY=VALUE]",
        help="Attack; repeatable, each costs confidence. Default: groundhog and query-target.",
        show_default=False,
    ),
]
ShadowModels = Annotated[
    int, typer.Option(metavar="N", help="Models to train, both worlds together.")
]
Rows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Synthetic rows per model. Default: the rows of the table.",
        show_default=False,
    ),
]
Confidence = Annotated[float, typer.Option(metavar="C", help="One-sided confidence of the bound.")]
Threshold = Annotated[
    ThresholdRule, typer.Option(help="Where thresholds are chosen, always on unscored trials.")
]
MultiplicityRule = Annotated[
    Multiplicity,
    typer.Option(help="Several attacks: score all and correct, or select one beforehand."),
]
Sequential = Annotated[
    bool,
    typer.Option(
        "--sequential", help="Look after every batch, stop once proved; --shadow-models is a cap."
    ),
]
OneRun = Annotated[
    bool,
    typer.Option("--one-run", help="Train once, with many canaries; for slow generators."),
]
Canaries = Annotated[
    int | None,
    typer.Option(
        metavar="M",
        help="With --one-run: records that are each in by a fair coin. Default: 100.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="J", help="Worker processes. Default: one per core.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress; one line of result.")]
