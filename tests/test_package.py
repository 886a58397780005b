"""The package as a newcomer finds it: names, version, signature, program."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import MISSING, fields
from importlib.metadata import version

import dpaudit
from dpaudit import AuditSettings


def test_completion_offers_every_public_name() -> None:
    assert "audit" in dir(dpaudit)
    assert set(dpaudit.__all__) <= set(dir(dpaudit))
    assert callable(dpaudit.audit)


def test_the_version_is_the_installed_one_everywhere() -> None:
    assert dpaudit.__version__ == version("dpaudit")
    done = subprocess.run(
        [sys.executable, "-m", "dpaudit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"dpaudit {dpaudit.__version__}\n"
    assert done.stderr == ""


def test_the_signature_of_audit_lists_every_setting_with_its_default() -> None:
    shown = inspect.signature(dpaudit.audit).parameters
    own = ["generator", "data", "schema", "jobs", "engine", "scheduler", "trial_timeout"]
    own += ["out", "progress", "on_progress"]
    assert list(shown) == [*own, *(one.name for one in fields(AuditSettings))]
    for one in fields(AuditSettings):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        assert shown[one.name].default == default
        assert shown[one.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys; import dpaudit; "
        "print(sorted({'matplotlib', 'jinja2', 'numpy', 'pandas', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_program_starts_without_what_few_commands_need() -> None:
    code = (
        "import sys; import dpaudit.cli.main, dpaudit.auditing.two_worlds.session; "
        "import dpaudit.report.render; "
        "heavy = {'joblib', 'matplotlib', 'scipy.stats', 'sklearn', 'torch'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
