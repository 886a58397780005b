"""A payload as bytes: what comes back, and whether arrays are copied."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import RegistryError
from dpaudit.game.worker import ALIGNMENT, pack, search_path, unpack


def _table(rows: int = 1000) -> pd.DataFrame:
    words = pd.Series([f"word {row % 7}" for row in range(rows)], dtype="string")
    return pd.DataFrame({"number": np.arange(float(rows)), "count": range(rows), "word": words})


@given(st.lists(st.integers(0, 200), max_size=5))
def test_what_was_packed_comes_back(lengths: list[int]) -> None:
    arrays = [np.arange(length, dtype=np.uint8) for length in lengths]
    [found, words] = unpack(memoryview(pack([arrays, "text"])))  # type: ignore[misc]
    assert words == "text"
    assert len(found) == len(arrays)
    for one, other in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_of_numbers_and_strings_comes_back() -> None:
    found = unpack(memoryview(pack(_table())))
    pd.testing.assert_frame_equal(found, _table())  # type: ignore[arg-type]


def test_arrays_are_views_at_aligned_places() -> None:
    content = bytearray(pack([np.zeros(3), np.ones(1000)]))
    _, found = unpack(memoryview(content))  # type: ignore[misc]
    whole = np.frombuffer(content, dtype=np.uint8)
    assert np.shares_memory(found, whole)
    assert (found.ctypes.data - whole.ctypes.data) % ALIGNMENT == 0


def test_writing_to_a_mapped_array_changes_this_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "payload"
    path.write_bytes(pack(np.ones(1000)))
    before = path.read_bytes()
    with path.open("rb") as file:
        found = unpack(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)))
    assert isinstance(found, np.ndarray)
    found[0] = 5.0
    assert path.read_bytes() == before


def test_what_cannot_be_pickled_is_named() -> None:
    with pytest.raises(RegistryError, match="the table cannot be pickled"):
        pack(one for one in ())


def test_workers_import_from_the_working_directory_where_this_process_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "hook.of.an.editable.install", *sys.path])
    assert search_path()[:2] == (str(tmp_path), "hook.of.an.editable.install")
