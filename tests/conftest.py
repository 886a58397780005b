"""Shared fixtures: where the reference vectors and the real data sets are."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest

# The same examples in every run, however slow the machine: a failure is the code's, not chance's.
# To search for new ones: HYPOTHESIS_PROFILE=explore pytest
hypothesis.settings.register_profile("repeat", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

# A shell's background jobs ignore Ctrl-C, and so would every program that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester"]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with `vectors/` and `data/`; skips where it is not at hand."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("DPAUDIT_SHARED", default))
    if not folder.is_dir():
        pytest.skip(f"reference vectors not found at {folder}; set DPAUDIT_SHARED to their folder")
    return folder


@pytest.fixture(scope="session")
def real_data(request: pytest.FixtureRequest) -> Path:
    """The folder of real data sets (`DPAUDIT_DATA`, else `data/` beside the vectors)."""
    named = os.environ.get("DPAUDIT_DATA")
    folder = Path(named) if named else request.getfixturevalue("shared") / "data"
    if not folder.is_dir():
        pytest.skip(f"real data sets not found at {folder}; set DPAUDIT_DATA to their folder")
    return folder
