"""A file is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from dpaudit.files import write_whole


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_text_is_utf_8_with_its_own_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_whole(path, "ε\r\nδ\n")
    assert path.read_bytes() == b"\xce\xb5\r\n\xce\xb4\n"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_are_those_of_any_new_file(tmp_path: Path, umask: int, mode: int) -> None:
    path = tmp_path / "x"
    before = os.umask(umask)
    try:
        write_whole(path, b"one")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("fails", [full, interrupted])
def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., None]
) -> None:
    path = tmp_path / "x"
    write_whole(path, b"one")
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises((OSError, KeyboardInterrupt)):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "x", b"one")


def test_writers_at_once_do_not_touch_each_other_s_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ready, move = tmp_path / "x", Barrier(2), os.replace
    moved: list[bytes] = []

    def move_once_both_are_written(temporary: Path, place: Path) -> None:
        ready.wait(timeout=10)
        moved.append(temporary.read_bytes())
        ready.wait(timeout=10)
        move(temporary, place)

    monkeypatch.setattr(os, "replace", move_once_both_are_written)
    contents = [b"a" * 1000, b"b" * 10]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda content: write_whole(path, content), contents))
    assert sorted(moved) == contents
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
