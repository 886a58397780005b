"""The libraries that ship: their pins, adapters and page belong together. None is installed."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dpaudit.external.libraries import Library
from dpaudit.plugins.named import libraries

PAGE = Path(__file__).parents[2] / "docs" / "libraries.md"
SHIPPED = [one for one in libraries() if "dpaudit_generators" in str(one.adapter)]


def test_libraries_are_registered() -> None:
    assert [one.name for one in SHIPPED] == ["ctgan", "datasynthesizer", "dpmm", "smartnoise-synth"]


@pytest.mark.parametrize("library", SHIPPED, ids=lambda one: one.name)
def test_a_library_has_its_pins_adapter_and_page(library: Library) -> None:
    pinned = [line.partition("==")[0].lower() for line in library.environment.requirements]
    assert library.distribution in pinned
    assert library.adapter.stem not in pinned, "it would hide the package that it imports"
    tree = ast.parse(library.adapter.read_text(encoding="utf-8"))
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(library.methods.values()) <= classes
    page = PAGE.read_text(encoding="utf-8")
    for method in library.methods:
        assert f"`{library.name}:{method}`" in page


@pytest.mark.parametrize("library", SHIPPED, ids=lambda one: one.name)
def test_methods_of_an_adapter_are_short(library: Library) -> None:
    tree = ast.parse(library.adapter.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.body[0].lineno < 16, node.name


class AskedPipeline:
    """Stands for a pipeline of dpmm: keeps what it was asked for."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked
        self.gen = SimpleNamespace(epsilon=asked["epsilon"], delta=asked["delta"])
        self.proc = SimpleNamespace(binner_settings={"epsilon": asked["proc_epsilon"]})


@pytest.fixture
def dpmm(monkeypatch: pytest.MonkeyPatch) -> Any:
    pipelines = ModuleType("dpmm.pipelines")
    for name in ("AIMPipeline", "MSTPipeline", "PrivBayesPipeline"):
        setattr(pipelines, name, AskedPipeline)
    monkeypatch.setitem(sys.modules, "dpmm", ModuleType("dpmm"))
    monkeypatch.setitem(sys.modules, "dpmm.pipelines", pipelines)
    [library] = (one for one in SHIPPED if one.name == "dpmm")
    spec = importlib.util.spec_from_file_location("dpmm_adapter_under_test", library.adapter)
    assert spec is not None
    assert spec.loader is not None
    adapter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(adapter)
    return adapter


def test_aim_hands_over_what_decides_its_time_and_claims_what_it_spends(dpmm: Any) -> None:
    aim = dpmm.DpmmAim(schema={"columns": []}, epsilon=2.0, max_model_size=1, rounds=60)
    asked = aim.made().asked
    assert asked["max_model_size"] == 1
    assert asked["gen_kwargs"] == {"rounds": 60, "n_iters": 1000}
    assert aim.claim == {"epsilon": 2.1, "delta": 1e-5}
    assert "gen_kwargs" not in dpmm.DpmmMst(schema={"columns": []}).made().asked


@pytest.mark.parametrize("wrong", [{"max_model_size": "abc"}, {"rounds": 0}, {"n_iters": -1}])
def test_aim_refuses_sizes_before_any_training(dpmm: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*: use a number above 0"):
        dpmm.DpmmAim(schema={"columns": []}, **wrong)
