import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from dpaudit.errors import DataError, SettingsError
from dpaudit.model.tables import load_table
from dpaudit.released_data.split import CoinFile, digest_of, split, write_split


def table(n: int = 100) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(n), "c": ["a", "b"] * (n // 2)})


def test_every_row_is_in_one_part_in_its_order() -> None:
    found = split(table(), seed=1)
    assert sorted([*found.train.x, *found.holdout.x]) == list(range(100))
    assert found.train.x.is_monotonic_increasing
    assert found.holdout.x.is_monotonic_increasing
    assert found.train.x.tolist() == np.flatnonzero(found.coins.in_train).tolist()


def test_rows_without_a_coin_are_always_in_train() -> None:
    outs = np.zeros(100)
    for seed in range(40):
        found = split(table(), coins=30, seed=seed)
        assert len(found.coins.tossed) == 30
        out = found.holdout.x.to_numpy()
        assert set(out) <= set(found.coins.tossed)
        outs[out] += 1
    assert outs.sum() > 0
    assert (outs > 0).sum() > 90  # the rows with a coin are others each time


def test_coins_are_fair_and_independent() -> None:
    # Chance of each bound below: under one in a million.
    coins = split(table(20_000)).coins.coins
    low, high = binom.ppf([5e-7, 1 - 5e-7], 20_000, 0.5)
    assert low <= coins.sum() <= high
    repeats = (coins[1:] == coins[:-1]).sum()
    assert binom.ppf(5e-7, 19_999, 0.5) <= repeats <= binom.ppf(1 - 5e-7, 19_999, 0.5)


def test_a_seed_repeats_the_split_and_nothing_else_does() -> None:
    assert split(table(), seed=3).coins == split(table(), seed=3).coins
    assert split(table(), seed=3).coins.inside != split(table(), seed=4).coins.inside
    assert split(table()).coins.inside != split(table()).coins.inside
    assert split(table(), seed=3).coins.seed == 3


def test_files_hold_the_texts_of_the_data(tmp_path: Path) -> None:
    source = tmp_path / "data.csv"
    rows = [f"0{i}, 1.50,?," for i in range(50)]
    source.write_text("\n".join(["code,price,mark,empty", *rows]) + "\n")
    files = write_split(split(source, seed=1), tmp_path / "parts")
    train, holdout, coins = files
    lines = [file.read_text().splitlines()[1:] for file in (train, holdout)]
    assert sorted(lines[0] + lines[1]) == sorted(rows)
    assert coins.stat().st_mode & 0o077 == 0
    found = CoinFile.read(coins)
    found.check(train, name="train")
    found.check(holdout, name="holdout")
    assert found.train == digest_of(train)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_files_are_read_as_the_data_are(tmp_path: Path, separator: str) -> None:
    source = tmp_path / "data.csv"
    rows = [separator.join([f'"{1 + i % 9},00{i % 7}"', f"{i % 3}"]) for i in range(50)]
    source.write_text("\n".join([separator.join("nk"), *rows]) + "\n")
    parts = split(source, seed=1)
    train, holdout, _ = write_split(parts, tmp_path / "parts")
    read = [load_table(file)["n"] for file in (train, holdout)]
    assert sorted(pd.concat(read)) == sorted(load_table(source)["n"])
    assert digest_of(parts.train) == digest_of(train)


def test_another_table_is_not_the_one_of_the_coins(tmp_path: Path) -> None:
    found = split(table(), seed=1)
    found.coins.check(found.train, name="train")
    train = write_split(found, tmp_path)[0]
    train.write_text(train.read_text().replace("a", "b", 1))
    with pytest.raises(DataError, match="not the one that the coin file belongs to"):
        found.coins.check(train, name="train")
    with pytest.raises(DataError, match="holdout table"):
        found.coins.check(found.train, name="holdout")


def test_a_split_is_not_overwritten(tmp_path: Path) -> None:
    write_split(split(table()), tmp_path)
    with pytest.raises(DataError, match="is there already"):
        write_split(split(table()), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"inside": "01"},
        {"inside": "x" * 100},
        {"rows": -1},
        {"rows": 99},
        {"canaries": [0] * 100},
        {"canaries": list(range(1, 101))},
        {"format": "dpaudit-coins/2"},
        {"more": 1},
    ],
)
def test_a_file_that_is_no_coin_file_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "coins.json"
    path.write_text(json.dumps(json.loads(split(table()).coins.to_json()) | change))
    with pytest.raises(DataError, match="coin file"):
        CoinFile.read(path)


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(SettingsError, match="at least 20"):
        split(table(10))
    with pytest.raises(SettingsError, match="`coins` is 5"):
        split(table(), coins=5)
    with pytest.raises(DataError, match="fewer than `coins`"):
        split(table(), coins=101)
    with pytest.raises(SettingsError, match="seed"):
        split(table(), seed=-1)
