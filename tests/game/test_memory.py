"""How much memory started processes have taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dpaudit.game.meter import peak_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux")

MEGABYTE = 10**6
HOLD = "held = b'x' * {size}; {then}; print(); input()"
WAIT = "pass"
LET_GO = "del held"
START = (
    "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], "
    "stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True); "
    "child.stdout.readline(); print(); input(); child.communicate(b'\\n')"
)


@contextmanager
def running(*arguments: str) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield
        child.communicate(b"\n")


@pytest.mark.parametrize("then", [WAIT, LET_GO])
def test_what_a_child_has_held_counts_even_after_it_let_go(then: str) -> None:
    alone = peak_memory()
    with running(HOLD.format(size=600 * MEGABYTE, then=then)):
        found = peak_memory()
    assert alone is not None
    assert found is not None
    assert 600 * MEGABYTE < found - alone < 640 * MEGABYTE


def test_a_descendant_in_another_session_counts() -> None:
    with running(START, HOLD.format(size=600 * MEGABYTE, then=WAIT)):
        found = peak_memory()
    assert found is not None
    assert found > 600 * MEGABYTE
