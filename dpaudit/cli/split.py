"""`dpaudit split`: a table split by fair coins, before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import guarded, messages, results


@guarded
def split(
    data: options.Data,
    to: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where train.csv, holdout.csv and coins.json go.",
            show_default=False,
        ),
    ],
    coins: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Rows that have a coin, chosen at random; the others are always in train. "
            "Default: all.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="S",
            help="Makes the split repeatable, by whoever knows it. Default: the system's entropy.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Splits a table by fair coins, so that one training on train.csv can be audited later.

    Train on train.csv alone, ask for a number of synthetic rows fixed beforehand, and keep
    holdout.csv and coins.json from the people who train. Then: dpaudit audit-data.
    """
    from dpaudit.released_data import split as tossed
    from dpaudit.released_data import write_split

    found = tossed(data, coins=coins, seed=seed)
    train, holdout, coin_file = write_split(found, to)
    results().print(f"{train}: {len(found.train)} rows, for training")
    results().print(f"{holdout}: {len(found.holdout)} rows, to keep from whoever trains")
    results().print(f"{coin_file}: {len(found.coins.tossed)} coins, to keep from whoever trains")
    messages().print(
        f"then: dpaudit audit-data --synthetic FILE --train {train} --holdout {holdout} --coins "
        f"{coin_file}"
    )
