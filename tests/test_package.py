"""The package as a newcomer finds it: names, version, signature, program."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib.metadata import version

import pytest

import dpaudit


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


def test_audit_has_at_most_fourteen_parameters_with_the_defaults_of_the_settings() -> None:
    shown = inspect.signature(dpaudit.audit).parameters
    assert len(shown) <= 14
    for name in ("rows", "confidence", "seed"):
        assert shown[name].default == getattr(dpaudit.audit_settings(), name)
    for name, one in shown.items():
        if name not in ("generator", "data"):
            assert one.kind is inspect.Parameter.KEYWORD_ONLY


def test_a_claim_and_a_game_are_objects_or_plain_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[dpaudit.AuditSettings] = []

    def stop(generator: object, table: object, settings: dpaudit.AuditSettings) -> None:
        built.append(settings)
        raise dpaudit.InputError("enough")

    monkeypatch.setattr("dpaudit.auditing.entry.build_spec", stop)
    monkeypatch.setattr("dpaudit.auditing.entry.audited_table", lambda *_: None)
    machine = dpaudit.Machine(jobs=2, worker_memory=4.0)
    stated = dpaudit.PrivacyClaim(epsilon=1.0, delta=1e-5)
    points = dpaudit.CurveClaim(points=((1.0, 1e-5),))  # type: ignore[arg-type]
    few = dpaudit.TwoWorlds(shadow_models=40, target="row:3")
    for given in (
        {"epsilon": 1.0, "delta": 1e-5},
        {"claim": stated, "game": few, "jobs": machine},
        {"claim": dpaudit.GaussianClaim(mu=1.0), "game": dpaudit.OneRun(canaries=30)},
        {"claim": points, "game": dpaudit.ManyRecords(records=4)},
    ):
        with pytest.raises(dpaudit.InputError, match="enough"):
            dpaudit.audit("null", **given)  # type: ignore[arg-type]
    plain = dpaudit.audit_settings
    added = {"neighbours": "add-remove"}
    assert built == [
        plain(epsilon=1.0, delta=1e-5),
        plain(epsilon=1.0, delta=1e-5, shadow_models=40, target=3, worker_memory=4.0, **added),
        plain(mu=1.0, one_run=True, canaries=30, **added),
        plain(curve="1:1e-5", records=4, **added),
    ]
    with pytest.raises(dpaudit.InputError, match="`claim` and `epsilon` state one claim each"):
        dpaudit.audit("null", claim=stated, epsilon=1.0)


HEAVY = ["jinja2", "joblib", "jsonschema", "matplotlib", "numpy", "pandas", "scipy.stats"]
HEAVY += ["sklearn", "torch"]
TABLES = ["numpy", "pandas"]
PAGES = ["jinja2", *TABLES]
LOADED = {
    "dpaudit": [],
    "dpaudit.results.sentences": TABLES,
    "dpaudit.results.summary": TABLES,
    "dpaudit.report": TABLES,
    "dpaudit.results.result": TABLES,
    "dpaudit.cli.main": TABLES,
    "dpaudit.auditing.two_worlds.game": TABLES,
    "dpaudit.report.render": PAGES,
    "dpaudit_generators.pate": PAGES,
    "dpaudit_generators.toys": PAGES,
    "dpaudit_generators.marginals": PAGES,
    "dpaudit_generators.pate_gan": PAGES,
}
"""What is loaded, of what takes long to load, when all modules to this one are imported."""


def test_importing_loads_nothing_heavy_before_it_is_needed() -> None:
    code = (
        "import importlib, json, sys\n"
        "heavy, modules = json.loads(sys.argv[1]), json.loads(sys.argv[2])\n"
        "found = {}\n"
        "for module in modules:\n"
        "    importlib.import_module(module)\n"
        "    found[module] = [name for name in heavy if name in sys.modules]\n"
        "print(json.dumps(found))\n"
    )
    words = [sys.executable, "-c", code, json.dumps(HEAVY), json.dumps([*LOADED])]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == LOADED
