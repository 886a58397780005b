"""pytest plugin: the fixture `dp_audit`, the marker `dpaudit`, the option `--dpaudit-skip`.

Loaded in every pytest session of an environment that has dpaudit, so it imports neither torch nor
pandas; the fixture does when a test calls it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from dpaudit.auditing.result import AuditResult
    from dpaudit.model.schema import Schema
    from dpaudit.plugins.protocols import Attack

    DpAudit = Callable[..., AuditResult]

DEFAULT_SHADOW_MODELS = 100


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

    Returns a function `dp_audit(generator, data, *, epsilon=None, delta=None, shadow_models=100,
    ...)` with the arguments of `dpaudit.audit`; what it returns has `assert_no_violation()`. The
    report of each audit stays in the test's temporary folder.
    """
    played: list[Path] = []

    def audit(
        generator: object,
        data: pd.DataFrame | str | Path,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        schema: Schema | str | Path | None = None,
        attacks: Sequence[str | Attack] | None = None,
        shadow_models: int | None = None,
        jobs: int | None = None,
        **options: Any,
    ) -> AuditResult:
        from dpaudit.auditing.entry import DEFAULT_ATTACKS
        from dpaudit.auditing.entry import audit as run_audit

        folder = tmp_path / f"dpaudit-{len(played) + 1}"
        played.append(folder)
        if jobs is None and "PYTEST_XDIST_WORKER" in os.environ:
            jobs = 1  # xdist already keeps every core busy
        if shadow_models is not None:
            options["shadow_models"] = shadow_models
        elif not options.get("one_run"):
            options["shadow_models"] = DEFAULT_SHADOW_MODELS
        return run_audit(
            generator,
            data,
            epsilon=epsilon,
            delta=delta,
            schema=schema,
            attacks=DEFAULT_ATTACKS if attacks is None else attacks,
            jobs=jobs,
            out=folder,
            **options,
        )

    return audit
