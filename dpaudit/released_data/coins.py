"""The coin file: which rows a split put into train, by independent fair coins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from dpaudit.errors import DataError
from dpaudit.files import io_reason, parse_json
from dpaudit.plugins.protocols import BoolArray, IntArray

FORMAT: Final = "dpaudit-coins/1"
_KEYS: Final = {"format", "rows", "canaries", "inside", "seed", "train", "holdout"}


@dataclass(frozen=True, kw_only=True)
class CoinFile:
    """Which rows of a table were in train, and the digests of what the split wrote.

    Attributes:
        rows: Rows of the table that was split.
        canaries: The rows that had a coin, ascending, from 0; None if each row had one.
        inside: Whether the coin of each of them put it into train: "1", or "0" for the hold-out.
        seed: The seed of the coins; None if they came from the system's entropy.
        train: SHA-256 of the train file.
        holdout: SHA-256 of the hold-out file.

    Raises:
        DataError: If the parts contradict each other.
    """

    rows: int
    canaries: tuple[int, ...] | None
    inside: str
    seed: int | None
    train: str
    holdout: str

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
        found: BoolArray = np.frombuffer(self.inside.encode(), dtype=np.uint8) == ord("1")
        return found

    @property
    def in_train(self) -> BoolArray:
        """Whether each row of the table is in train; rows without a coin always are."""
        found = np.ones(self.rows, dtype=np.bool_)
        found[self.tossed] = self.coins
        return found

    def to_json(self) -> str:
        """The file's text."""
        canaries = None if self.canaries is None else list(self.canaries)
        document = {
            "format": FORMAT,
            "rows": self.rows,
            "canaries": canaries,
            "inside": self.inside,
            "seed": self.seed,
            "train": self.train,
            "holdout": self.holdout,
        }
        return json.dumps(document) + "\n"

    @staticmethod
    def read(path: Path | str) -> CoinFile:
        """Reads a coin file.

        Raises:
            DataError: If it cannot be read, or is not one.
        """
        try:
            document = parse_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"coin file {path} cannot be read: {io_reason(error)}") from None
        except ValueError as error:
            raise DataError(f"coin file {path} is not JSON: {error}") from None
        if not _is_coin_file(document):
            raise DataError(f"{path} is not a coin file ({FORMAT}): `dpaudit split` writes one")
        canaries = document["canaries"]
        return CoinFile(
            rows=document["rows"],
            canaries=None if canaries is None else tuple(canaries),
            inside=document["inside"],
            seed=document["seed"],
            train=document["train"],
            holdout=document["holdout"],
        )

    def check(self, table: pd.DataFrame | str | Path, *, name: str) -> None:
        """Refuses a table that is not the one this split wrote.

        Args:
            table: The table, or its file.
            name: "train" or "holdout".

        Raises:
            DataError: If its digest is another one, or it cannot be read.
        """
        if digest_of(table) != getattr(self, name):
            where = "in memory" if isinstance(table, pd.DataFrame) else str(table)
            raise DataError(
                f"the {name} table ({where}) is not the one that the coin file belongs to: give "
                f"the files that `dpaudit split` wrote, unchanged"
            )


def csv_bytes(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a CSV file."""
    return table.to_csv(index=False, lineterminator="\n").encode()


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
    if not isinstance(document, Mapping) or set(document) != _KEYS:
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
        and all(isinstance(document[key], str) for key in ("inside", "train", "holdout"))
    )
