"""pytest plugin: the fixture `dp_audit`, the marker `dpaudit`, the option `--dpaudit-skip`.

Loaded in every pytest session of an environment that has dpaudit, so it imports neither torch nor
pandas; the fixture does when a test calls it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from dpaudit.auditing.settings import SettingsGiven
    from dpaudit.game.progress import OnProgress
    from dpaudit.model.schema import Schema
    from dpaudit.results.result import AuditResult

    class AuditOptions(SettingsGiven, total=False):
        """What an audit in a test takes: all of `dpaudit.audit` but its folder."""

        schema: Schema | str | Path | None
        jobs: int | None
        engine: str
        scheduler: str | None
        trial_timeout: float | None
        on_progress: OnProgress

    DpAudit = Callable[..., AuditResult]

SHADOW_MODELS = 100
"""Fewer than the default of `dpaudit.audit`: a test should end within a minute or two."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Registers `--dpaudit-skip` and its ini twin."""
    group = parser.getgroup("dpaudit", "privacy audits")
    text = "skip tests that audit privacy (the fixture dp_audit or the marker dpaudit)"
    group.addoption("--dpaudit-skip", action="store_true", default=None, help=text)
    parser.addini("dpaudit_skip", type="bool", default=False, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    config.addinivalue_line("markers", "dpaudit: a privacy audit; skipped with --dpaudit-skip")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips audits where that was asked for.

    Raises:
        pytest.UsageError: If the marker was given arguments.
    """
    marker = item.get_closest_marker("dpaudit")
    if marker is not None and (marker.args or marker.kwargs):
        raise pytest.UsageError(f"{item.nodeid}: the marker dpaudit takes no arguments")
    audits = marker is not None or "dp_audit" in getattr(item, "fixturenames", ())
    asked = item.config.getoption("--dpaudit-skip")
    if audits and (item.config.getini("dpaudit_skip") if asked is None else asked):
        pytest.skip("privacy audits are skipped (--dpaudit-skip)")


@pytest.fixture
def dp_audit(tmp_path: Path) -> DpAudit:
    """Audits a generator inside a test.

    Returns a function with the arguments of `dpaudit.audit`, whose default for `shadow_models` is
    100; what it returns has `assert_no_violation()`. The report of each audit stays in the test's
    temporary folder.
    """
    folders: list[Path] = []

    def audit(
        generator: object,
        data: pd.DataFrame | str | Path | None = None,
        **options: Unpack[AuditOptions],
    ) -> AuditResult:
        from dpaudit.auditing.entry import audit as run

        folders.append(tmp_path / f"dpaudit-{len(folders) + 1}")
        if "PYTEST_XDIST_WORKER" in os.environ and options.get("engine") != "dask":
            options.setdefault("jobs", 1)  # xdist already keeps every core busy
        if not options.get("one_run"):
            options.setdefault("shadow_models", SHADOW_MODELS)
        return run(generator, data, **options, out=folders[-1])

    return audit
