"""`dpaudit split`: a table split by fair coins, before training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from dpaudit.cli import options
from dpaudit.cli.console import guard, messages, results
from dpaudit.model.setting import Option


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """How a table is split.

    Attributes:
        to: Folder for train.csv, holdout.csv and coins.json.
        coins: Number of rows (or units) split by a fair coin, chosen at random; the others go to
            train. Default: all.
        unit: Column that says whose rows each row is, such as patient_id: one coin deals all rows
            of a unit, and the bound is per unit. Default: a coin for each row.
        seed: Seed of the split; keep it secret, like the coins. Default: the system's entropy.
    """

    to: Annotated[Path, Option("FOLDER")]
    coins: Annotated[int | None, Option("N")] = None
    unit: Annotated[str | None, Option("COLUMN")] = None
    seed: Annotated[int | None, Option("S")] = None


@guard
@options.takes_settings()
def split(
    *,
    data: options.Data,
    how: SplitOptions,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
) -> None:
    """Splits a table by fair coins, so that a release trained on train.csv can be audited.

    Train on train.csv alone and fix the number of synthetic rows beforehand. Keep holdout.csv and
    coins.json from the people who train. Then run `dpaudit audit-data`.
    """
    from dpaudit.released_data import split as tossed
    from dpaudit.released_data import write_split

    parts = tossed(
        data,
        coins=how.coins,
        unit=how.unit,
        seed=how.seed,
        separator=separator,
        encoding=encoding,
    )
    train, holdout, coin_file = write_split(parts, how.to)
    results().print(f"{train}: {len(parts.train)} rows, for training")
    results().print(f"{holdout}: {len(parts.holdout)} rows, to keep from the people who train")
    results().print(f"{coin_file}: {parts.number} coins, to keep from the people who train")
    messages().print(
        f"then: dpaudit audit-data --synthetic FILE --train {train} --holdout {holdout} --coins "
        f"{coin_file}"
    )
