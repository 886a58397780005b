"""Splits a table by fair coins before training, so that one training can be audited later."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.errors import DataError, SettingsError
from dpaudit.files import io_reason, parse_json, write_whole
from dpaudit.model.column import Unit
from dpaudit.model.setting import SEED, check_number
from dpaudit.model.table_files import MISSING_MARKS, SEPARATOR, csv_written
from dpaudit.model.tables import load_table
from dpaudit.plugins.protocols import BoolArray, IntArray
from dpaudit.seeds import rng_of

FORMAT: Final = "dpaudit-coins/1"
_KEYS: Final = {"format", "rows", "canaries", "inside", "seed", "train", "holdout"}
TRAIN_FILE: Final = "train.csv"
HOLDOUT_FILE: Final = "holdout.csv"
COIN_FILE: Final = "coins.json"
LEAST_COINS: Final = 20
"""Smallest number of coins of a split; fewer prove nothing."""


class CoinSplit(NamedTuple):
    """A table split by fair coins.

    Attributes:
        train: The table for the vendor.
        holdout: The rows that the vendor must not see.
        coins: The place of each row; the vendor must not see it either.
        number: How many coins were tossed: one for each row, or for each unit.
    """

    train: pd.DataFrame
    holdout: pd.DataFrame
    coins: CoinFile
    number: int


def split(
    data: pd.DataFrame | str | Path,
    *,
    coins: int | None = None,
    unit: str | None = None,
    seed: int | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> CoinSplit:
    """Puts each row, or all rows of each unit, into train or the hold-out by a fair coin.

    No coin depends on the rows or on another coin, so a lower bound on epsilon can be computed from
    the one released table.

    Args:
        data: A table or a file.
        coins: How many rows (or units), chosen at random, have a coin; the others are always in
            train. By default each has one.
        unit: The column that says whose rows belong together, such as patient_id: each unit has a
            coin, and the bound is per unit. By default each row has one.
        seed: Makes the split repeatable. By default the coins come from the system's entropy; a
            vendor who knows the seed knows the coins.
        separator: What is between the fields of a CSV file; by default it is found out.
        encoding: Its encoding; by default it is found out.

    Returns:
        Both tables, their rows in the order of the data, and the coin file.

    Raises:
        DataError: If the table cannot be read, has fewer rows than coins, or its units are missing
            or all the same.
        SettingsError: If `coins` or `seed` is out of range, or separator or encoding has no
            meaning.
    """
    if isinstance(data, pd.DataFrame):
        table = data
    else:
        with csv_written(separator, encoding):
            table = load_table(data, unchanged=True)  # the vendor gets the owner's texts
    owners = np.arange(len(table)) if unit is None else _owners(table, unit)
    of, noun = len(np.bincount(owners)), "rows" if unit is None else "units"
    number = of if coins is None else coins
    if seed is not None:
        check_number("seed", seed, SEED, whole=True)
    if number < LEAST_COINS:
        what = "`coins` is" if coins is not None else f"the {noun} of the table are"
        raise SettingsError(f"{what} {number}: give at least {LEAST_COINS}")
    if number > of:
        raise DataError(f"the table has {of} {noun}, fewer than `coins`: {number}")
    chosen = np.arange(of)
    if coins is not None:
        chosen = np.sort(rng_of(seed, "rows with a coin").permutation(of)[:coins])
    dealt = np.ones(of, dtype=np.bool_)
    dealt[chosen] = _toss_coins(number, seed)
    kept, tossed = dealt[owners], np.isin(owners, chosen)
    train, holdout = table[kept], table[~kept]
    return CoinSplit(
        train=train.reset_index(drop=True),
        holdout=holdout.reset_index(drop=True),
        coins=CoinFile(
            rows=len(table),
            canaries=None if coins is None else tuple(np.flatnonzero(tossed).tolist()),
            inside="".join(np.where(kept[tossed], "1", "0").tolist()),
            seed=seed,
            train=digest_of(train),
            holdout=digest_of(holdout),
            unit=unit,
        ),
        number=number,
    )


def _owners(table: pd.DataFrame, column: str) -> IntArray:
    """The unit of each row, numbered in order of appearance.

    Raises:
        DataError: If the column is missing, constant, or missing in a row.
    """
    unit = Unit(column=column)
    if column in table:
        table = table[[column]].where(~table[[column]].isin(MISSING_MARKS))
    if problems := unit.problems(table):
        raise DataError(f"{problems[0]}: give another `unit`, or correct the table")
    return unit.codes(table)


def write_split(split: CoinSplit, folder: Path | str) -> tuple[Path, ...]:
    """Writes train.csv, holdout.csv and coins.json, each completely or not at all.

    The coin file comes last, so a split without it is incomplete.

    Args:
        split: The split.
        folder: The folder, created if it does not exist.

    Returns:
        The files.

    Raises:
        DataError: If one of them exists, or cannot be written.
    """
    place = Path(folder)
    contents: dict[str, bytes | str] = {
        TRAIN_FILE: csv_bytes(split.train),
        HOLDOUT_FILE: csv_bytes(split.holdout),
        COIN_FILE: split.coins.to_json(),
    }
    files = tuple(place / name for name in contents)
    there = [str(file) for file in files if file.exists()]
    if there:
        raise DataError(
            f"{', '.join(there)} is there already: another split would make it worthless; choose "
            "another folder"
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for file, content in zip(files, contents.values(), strict=True):
            write_whole(file, content, mode=0o666 if file.name == TRAIN_FILE else 0o600)
    except OSError as error:
        raise DataError(
            f"the split cannot be written to {place}: {io_reason(error)}; choose another folder"
        ) from None
    return files


def _toss_coins(number: int, seed: int | None) -> BoolArray:
    if seed is not None:
        return rng_of(seed, "coins").integers(0, 2, number).astype(np.bool_)
    bits = np.unpackbits(np.frombuffer(secrets.token_bytes(number // 8 + 1), dtype=np.uint8))
    return bits[:number].astype(np.bool_)


@dataclass(frozen=True, kw_only=True)
class CoinFile:
    """Which rows of a table a split put into train, and the digests of the files it wrote.

    Attributes:
        rows: Rows of the table that was split.
        canaries: The rows that had a coin, ascending, from 0; None if each row had one. Rows of a
            unit have the same one.
        inside: For each of them "1" if its coin put it into train, "0" for the hold-out.
        seed: The seed of the coins; None if they came from the system's entropy.
        train: SHA-256 of the train file.
        holdout: SHA-256 of the hold-out file.
        unit: The column of the units that had a coin each; None if rows had one each.

    Raises:
        DataError: If the fields contradict each other.
    """

    rows: int
    canaries: tuple[int, ...] | None
    inside: str
    seed: int | None
    train: str
    holdout: str
    unit: str | None = None

    def __post_init__(self) -> None:
        tossed = np.arange(self.rows) if self.canaries is None else np.array(self.canaries)
        fits = (
            len(tossed) == len(self.inside)
            and set(self.inside) <= {"0", "1"}
            and not (np.diff(tossed) < 1).any()
            and (not len(tossed) or 0 <= tossed[0] <= tossed[-1] < self.rows)
        )
        if not fits:
            raise DataError("the coin file contradicts itself: use it as `dpaudit split` wrote it")

    @property
    def tossed(self) -> IntArray:
        """The rows that had a coin, ascending."""
        if self.canaries is None:
            return np.arange(self.rows)
        return np.array(self.canaries, dtype=np.int64)

    @property
    def coins(self) -> BoolArray:
        """Whether each of them is in train."""
        coins: BoolArray = np.frombuffer(self.inside.encode(), dtype=np.uint8) == ord("1")
        return coins

    @property
    def in_train(self) -> BoolArray:
        """Whether each row of the table is in train; rows without a coin always are."""
        in_train = np.ones(self.rows, dtype=np.bool_)
        in_train[self.tossed] = self.coins
        return in_train

    def to_json(self) -> str:
        """The text of the file."""
        fields = {key: value for key, value in vars(self).items() if key != "unit"}
        unit = {} if self.unit is None else {"unit": self.unit}
        return json.dumps({"format": FORMAT, **fields, **unit}) + "\n"

    @staticmethod
    def read(path: Path | str) -> CoinFile:
        """Reads a coin file.

        Raises:
            DataError: If it cannot be read, or is not a coin file.
        """
        try:
            document = parse_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"coin file {path} cannot be read: {io_reason(error)}") from None
        except ValueError:
            raise DataError(
                f"coin file {path} is not JSON: give the coins.json of `dpaudit split`"
            ) from None
        if not _is_coin_file(document):
            raise DataError(f"{path} is not a coin file ({FORMAT}): `dpaudit split` writes one")
        fields = {key: value for key, value in document.items() if key != "format"}
        canaries = fields.pop("canaries")
        return CoinFile(canaries=None if canaries is None else tuple(canaries), **fields)

    def check(self, table: pd.DataFrame | str | Path, *, name: str) -> None:
        """Refuses a table that is not the one this split wrote.

        Args:
            table: The table, or its file.
            name: "train" or "holdout".

        Raises:
            DataError: If its digest differs, or it cannot be read.
        """
        if digest_of(table) != getattr(self, name):
            where = "in memory" if isinstance(table, pd.DataFrame) else str(table)
            raise DataError(
                f"the {name} table ({where}) is not the one that the coin file belongs to: give "
                f"the files that `dpaudit split` wrote, unchanged"
            )


def csv_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a CSV file, with the separator of the file that it is from."""
    separator = table.attrs.get(SEPARATOR, ",")
    return table.to_csv(index=False, lineterminator="\n", sep=separator).encode()


def digest_of(table: pd.DataFrame | str | Path) -> str:
    """SHA-256 of a file, or of the CSV file that a table makes.

    Raises:
        DataError: If the file cannot be read.
    """
    if isinstance(table, pd.DataFrame):
        return hashlib.sha256(csv_bytes(table)).hexdigest()
    try:
        with open(table, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{table} cannot be read: {io_reason(error)}") from None


def _is_coin_file(document: Any) -> bool:
    """Whether a document has the keys of a coin file with values of their types."""
    if not isinstance(document, Mapping) or set(document) - {"unit"} != _KEYS:
        return False
    canaries, seed = document["canaries"], document["seed"]
    return (
        document["format"] == FORMAT
        and type(document["rows"]) is int
        and document["rows"] >= 0
        and (
            canaries is None
            or (isinstance(canaries, list) and all(type(row) is int for row in canaries))
        )
        and (seed is None or type(seed) is int)
        and isinstance(document.get("unit"), str | None)
        and all(isinstance(document[key], str) for key in ("inside", "train", "holdout"))
    )
