"""`dpaudit audit-data`: a released table without its generator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import (
    exit_code,
    guarded,
    messages,
    require_folders,
    show,
    write_asked,
)
from dpaudit.model.choices import FailOn
from dpaudit.model.setting import Panel


def _table(help: str) -> object:
    return option(metavar="FILE", help=help, panel=Panel.INPUT)


EpsilonOption = Annotated[
    float | None,
    option(
        metavar="E",
        help="Claimed epsilon, adding or removing one record (or all rows of one unit); needs "
        "--coins. Default: no claim.",
        panel=Panel.CLAIM,
    ),
]

UnitOption = Annotated[
    str | None,
    option(
        metavar="COLUMN",
        help="Column of the units that had a coin each (`dpaudit split --unit`): bound, claim and "
        "copies are per unit. Default: that of the coin file.",
        panel=Panel.INPUT,
    ),
]

SecretsOption = Annotated[
    list[str] | None,
    option(
        "--secret",
        metavar="COLUMN",
        help="Column whose values are guessed; repeatable. Default: the first 12.",
    ),
]


AnonymeterOption = Annotated[
    bool,
    option(
        "--anonymeter", help="Also run Anonymeter's attacks; needs `dpaudit env create anonymeter`."
    ),
]


@guarded
def audit_data(
    synthetic: Annotated[str, _table("Released synthetic table: CSV (also .gz), Parquet.")],
    train: Annotated[str, _table("Real rows that it was trained on.")],
    holdout: Annotated[
        str | None,
        _table(
            "Real rows of the same population that it was not trained on, repeated rows included. "
            "Default: none."
        ),
    ] = None,
    coins: Annotated[
        Path | None,
        _table("coins.json of `dpaudit split`, for a lower bound on epsilon. Default: none."),
    ] = None,
    schema: options.SchemaFile = None,
    unit: UnitOption = None,
    epsilon: EpsilonOption = None,
    delta: Annotated[
        float | None, option(metavar="D", help="Claimed delta. Default: 0.", panel=Panel.CLAIM)
    ] = None,
    secrets: SecretsOption = None,
    anonymeter: AnonymeterOption = False,
    confidence: options.Confidence = 0.95,
    html: options.Html = None,
    markdown: options.Markdown = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits a released synthetic table: does it reveal who was in the training data?"""
    from dpaudit.released_data import audit_data as audited

    require_folders(html=html, markdown=markdown)
    result = audited(
        synthetic,
        train,
        holdout,
        coins=coins,
        schema=schema,
        unit=unit,
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        secrets=secrets,
        anonymeter=anonymeter,
        seed=seed,
        on_progress=None if quiet else messages().print,
    )
    if html is not None:
        write_asked(html, result.to_html(), option="html")
    if markdown is not None:
        write_asked(markdown, result.to_markdown(), option="markdown")
    show(result, json=json, quiet=quiet)
    raise typer.Exit(exit_code(result.finding.verdict, fail_on))
