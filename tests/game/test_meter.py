"""What a call costs: seconds and memory of this process and of those it starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time, sleep

import numpy as np
import pytest

from dpaudit.game import meter
from dpaudit.game.meter import CallCost, measure_cost

MIB = 2**20
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def cost_of(call: Callable[[], object]) -> CallCost:
    return measure_cost(call)[1]


def compute(seconds: float) -> None:
    end = process_time() + seconds
    while process_time() < end:
        pass


def test_what_is_called_returns_and_raises_as_before() -> None:
    assert measure_cost(lambda: 7)[0] == 7
    with pytest.raises(ZeroDivisionError):
        measure_cost(lambda: 1 / 0)


def test_processor_time_shows_computing_and_wall_time_waiting_too() -> None:
    computed, waited = cost_of(lambda: compute(0.1)), cost_of(lambda: sleep(0.1))
    assert computed.processor == pytest.approx(0.1, abs=0.05)
    assert computed.wall >= 0.09
    assert waited.wall >= 0.1
    assert waited.processor < 0.05


@LINUX
def test_what_child_processes_compute_counts_while_they_run_and_after() -> None:
    loop = "import time\ninput()\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        begin, answer = child.stdin, child.stdout

        def asked() -> None:
            begin.write("\n")
            begin.flush()
            answer.readline()

        running = cost_of(asked)
        assert 0.15 < running.processor < 0.5  # its start is counted only if it was late
        ended = cost_of(lambda: child.communicate("\n"))
        assert ended.processor < 0.15  # what it had computed before is not counted again


@LINUX
def test_memory_shows_the_peak_that_was_given_back() -> None:
    small, large = cost_of(lambda: None), cost_of(lambda: np.ones(64 * MIB // 8).sum())
    assert small.memory < 8 * MIB
    assert large.memory == pytest.approx(64 * MIB, abs=8 * MIB)
    again = cost_of(lambda: np.ones(64 * MIB // 8).sum())
    assert again.memory == pytest.approx(64 * MIB, abs=8 * MIB)  # and not what is held already


def test_where_the_system_shows_no_peaks_memory_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(meter, "_PROCESSES", tmp_path / "nowhere")
    monkeypatch.setattr(meter, "clock_gettime", None)
    found = cost_of(lambda: np.ones(16 * MIB // 8).sum())
    assert found.memory == 0.0
    assert found.wall > 0.0
