"""`dpaudit audit-data`: a released table without its generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import (
    exit_code,
    guard,
    messages,
    require_folders,
    show,
    write_pages,
)
from dpaudit.model.choices import FailOn
from dpaudit.model.setting import Option, Panel


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """What is known of a release, and what is asked of it.

    Attributes:
        synthetic: Released synthetic table: CSV, Parquet or Excel.
        train: Real rows that it was trained on.
        holdout: Real rows of the same population that it was not trained on, repeated rows
            included.
        coins: coins.json of `dpaudit split`, for a lower bound on epsilon.
        unit: Column of the units that had a coin each (`dpaudit split --unit`): bound, claim and
            copies are per unit. Default: that of the coin file.
        drop: Column that is left out of all tables.
        separator: What is between the fields of all CSV files: one character, or tab; of one of
            them as in synthetic=tab. Default: found out.
        encoding: Encoding of all CSV files, such as cp1252; of one of them as in synthetic=cp1252.
            Default: found out.
        epsilon: Claimed epsilon, adding or removing one record (or all rows of one unit); needs
            `coins`. Default: no claim.
        delta: Claimed delta. Default: 0.
        secrets: Column whose values are guessed. Default: the first 12.
        anonymeter: Also run Anonymeter's attacks; needs `dpaudit env create anonymeter`.
    """

    synthetic: Annotated[str, Option("FILE", panel=Panel.INPUT)]
    train: Annotated[str, Option("FILE", panel=Panel.INPUT)]
    holdout: Annotated[str | None, Option("FILE", panel=Panel.INPUT)] = None
    coins: Annotated[Path | None, Option("FILE", panel=Panel.INPUT)] = None
    unit: Annotated[str | None, Option("COLUMN", panel=Panel.INPUT)] = None
    drop: Annotated[tuple[str, ...], Option("COLUMN", panel=Panel.INPUT)] = ()
    separator: Annotated[str | None, Option("CHARACTER", panel=Panel.INPUT)] = None
    encoding: Annotated[str | None, Option("NAME", panel=Panel.INPUT)] = None
    epsilon: Annotated[float | None, Option("E", panel=Panel.CLAIM)] = None
    delta: Annotated[float | None, Option("D", panel=Panel.CLAIM)] = None
    secrets: Annotated[Sequence[str] | None, Option("COLUMN", ("--secret",))] = None
    anonymeter: bool = False


@guard
@options.takes_settings()
def audit_data(
    *,
    tables: ReleaseOptions,
    schema: options.SchemaFile = None,
    confidence: options.Confidence = 0.95,
    html: options.Html = None,
    markdown: options.Markdown = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    seed: options.Seed = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits a released synthetic table: does it reveal who was in the training data?"""
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.released_data import audit_data as audited
    from dpaudit.released_data.result import released_page

    require_folders(html=html, markdown=markdown)
    errors = messages(quiet=quiet)
    with ConsoleProgress(errors, quiet=quiet) as progress:
        result = audited(
            **vars(tables),
            schema=schema,
            confidence=confidence,
            seed=seed,
            on_progress=errors.print,
            on_share=lambda share: progress.show("percent", round(100 * share), 100, lines=0),
        )
        progress.show("percent", 100, 100, lines=0)
    write_pages(released_page(result), html=html, markdown=markdown)
    show(result, json=json, quiet=quiet)
    raise typer.Exit(exit_code(result.finding.verdict, fail_on))
