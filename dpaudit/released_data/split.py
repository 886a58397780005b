"""Splits a table by fair coins before training, so that one training can be audited later."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.files import io_reason, write_whole
from dpaudit.model.tables import SAMPLE, load_table
from dpaudit.plugins.protocols import BoolArray
from dpaudit.released_data.coins import CoinFile, csv_bytes, digest_of
from dpaudit.seeds import check_seed, rng_of

TRAIN_FILE: Final = "train.csv"
HOLDOUT_FILE: Final = "holdout.csv"
COIN_FILE: Final = "coins.json"
LEAST_COINS: Final = 20
"""Coins of a split, at least: fewer prove nothing."""


class CoinSplit(NamedTuple):
    """A table split by fair coins.

    Attributes:
        train: What the vendor gets.
        holdout: What the vendor must not see.
        coins: Which rows are where; the vendor must not see it either.
    """

    train: pd.DataFrame
    holdout: pd.DataFrame
    coins: CoinFile


def split(
    data: pd.DataFrame | str | Path, *, coins: int | None = None, seed: int | None = None
) -> CoinSplit:
    """Puts each row into train or the hold-out by its own fair coin.

    No coin depends on the rows or on another coin, so that a lower bound on epsilon can be
    computed from the one table that is released.

    Args:
        data: A table or a file.
        coins: How many rows, chosen at random, have a coin; the others are always in train. By
            default each row has one.
        seed: Makes the split repeatable. By default the coins come from the system's entropy; a
            vendor who knows the seed knows the coins.

    Returns:
        Both tables, their rows in the order of the data, and the coin file.

    Raises:
        DataError: If the table cannot be read or has fewer rows than coins.
        SettingsError: If `coins` or `seed` is out of range.
    """
    table = data if isinstance(data, pd.DataFrame) else _as_written(data)
    number = len(table) if coins is None else coins
    if seed is not None:
        check_seed(seed)
    if number < LEAST_COINS:
        what = "`coins` is" if coins is not None else "the rows of the table are"
        raise SettingsError(f"{what} {number}: give at least {LEAST_COINS}")
    if number > len(table):
        raise DataError(f"the table has {len(table)} rows, fewer than `coins`: {number}")
    chosen = None
    if coins is not None:
        chosen = np.sort(rng_of(seed, "rows with a coin").permutation(len(table))[:coins])
    inside = _tossed(number, seed)
    kept = np.ones(len(table), dtype=np.bool_)
    kept[np.arange(len(table)) if chosen is None else chosen] = inside
    train, holdout = table[kept], table[~kept]
    return CoinSplit(
        train=train.reset_index(drop=True),
        holdout=holdout.reset_index(drop=True),
        coins=CoinFile(
            rows=len(table),
            canaries=None if chosen is None else tuple(chosen.tolist()),
            inside="".join(np.where(inside, "1", "0").tolist()),
            seed=seed,
            train=digest_of(train),
            holdout=digest_of(holdout),
        ),
    )


def write_split(found: CoinSplit, folder: Path | str) -> tuple[Path, ...]:
    """Writes train.csv, holdout.csv and coins.json; each is there whole or not at all.

    The coin file comes last, so that a split without it was not finished.

    Args:
        found: The split.
        folder: Where; it is made if it does not exist.

    Returns:
        The files.

    Raises:
        DataError: If one of them exists, or cannot be written.
    """
    place = Path(folder)
    files = tuple(place / name for name in (TRAIN_FILE, HOLDOUT_FILE, COIN_FILE))
    there = [str(file) for file in files if file.exists()]
    if there:
        raise DataError(
            f"{', '.join(there)} is there already: another split would make it worthless; choose "
            "another folder"
        )
    contents: tuple[bytes | str, ...] = (
        csv_bytes(found.train),
        csv_bytes(found.holdout),
        found.coins.to_json(),
    )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file, content in zip(files, contents, strict=True):
            write_whole(file, content, mode=0o666 if file.name == TRAIN_FILE else 0o600)
    except OSError as error:
        raise DataError(
            f"the split cannot be written to {place}: {io_reason(error)}; choose another folder"
        ) from None
    return files


def _tossed(number: int, seed: int | None) -> BoolArray:
    if seed is not None:
        return rng_of(seed, "coins").integers(0, 2, number).astype(np.bool_)
    bits = np.unpackbits(np.frombuffer(secrets.token_bytes(number // 8 + 1), dtype=np.uint8))
    return bits[:number].astype(np.bool_)


def _as_written(source: str | Path) -> pd.DataFrame:
    """A table with its texts as they stand in the file: the vendor gets what the owner has."""
    table = load_table(source)  # refuses what is not a table
    name = str(source)
    if name.startswith(SAMPLE) or name.lower().endswith((".parquet", ".pq")):
        return table
    zipped = name.lower().endswith(".gz")
    return pd.read_csv(
        source, dtype=str, keep_default_na=False, compression="gzip" if zipped else None
    )
