"""The libraries that ship: their pins, adapters and page belong together. None is installed."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.external.generator import Library
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import libraries

PAGE = Path(__file__).parents[2] / "docs" / "libraries.md"
SHIPPED = [one for one in libraries() if "dpaudit_generators" in str(one.adapter)]


def test_libraries_are_registered() -> None:
    assert [one.name for one in SHIPPED] == [
        *("ctgan", "datasynthesizer", "diffprivlib", "dp-cgans", "dpart", "dpmm", "opacus"),
        *("opendp", "pac-synth", "privsyn-core", "smartnoise-synth", "synthpriv"),
    ]


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
    return module_at(adapter_of("dpmm"))


def adapter_of(name: str) -> Path:
    """The adapter of a library."""
    [library] = (one for one in SHIPPED if one.name == name)
    return library.adapter


def module_at(path: Path) -> Any:
    """A module of the adapters' folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "lower": 0, "upper": 120},
    {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
    {"name": "gain", "kind": "continuous", "lower": -1.0, "upper": 1.0},
]
TABLE = pd.DataFrame(
    {"age": [0, 61, 120], "sex": ["f", "m", "m"], "gain": [-1.0, 0.05, 1.0]},
)


@pytest.fixture
def cells() -> Any:
    return module_at(adapter_of("diffprivlib").with_name("cells.py")).Cells(COLUMNS)


def test_records_fall_into_cells_by_the_schema_alone(cells: Any) -> None:
    assert cells.sizes == {"age": 10, "sex": 2, "gain": 10}
    assert cells.encoded(TABLE).to_numpy().tolist() == [[0, 0, 0], [5, 1, 5], [9, 1, 9]]
    alone = cells.encoded(TABLE[2:])
    assert alone.to_numpy().tolist() == [[9, 1, 9]]


def test_records_from_cells_fall_into_them_again(cells: Any) -> None:
    rng = np.random.default_rng(1)
    drawn = pd.DataFrame({name: rng.integers(0, size, 500) for name, size in cells.sizes.items()})
    records = cells.decoded(drawn, rng)
    again = cells.encoded(records)
    assert (again["sex"] == drawn["sex"]).all()
    assert (again["gain"] == drawn["gain"]).all()
    assert records["age"].dtype.kind == "i"  # rounding may move an age to the next cell
    assert (again["age"] - drawn["age"]).abs().max() <= 1
    assert records["age"].between(0, 120).all()


def test_missing_values_have_no_cell(cells: Any) -> None:
    with pytest.raises(ValueError, match="leave out columns"):
        type(cells)([{**COLUMNS[0], "missing": True}])


@pytest.mark.slow
@pytest.mark.parametrize("defaults", ["library", "public"])
@pytest.mark.parametrize(
    "method",
    [
        *("diffprivlib:histogram", "diffprivlib:histogramdd", "diffprivlib:gaussian-nb"),
        *("privsyn-core:privsyn", "opacus:autoregressive", "opendp:fixed"),
        *("dpart:independent", "dpart:priv-bayes", "dpart:synthpop"),
    ],
)
def test_a_method_makes_records_of_the_schema(method: str, defaults: str) -> None:
    name, _, which = method.partition(":")
    [library] = (one for one in SHIPPED if one.name == name)
    if library.environment.built is None:
        pytest.skip("the environment is not there")
    schema = Schema.from_document({"columns": COLUMNS})
    generator = library.generator(which, schema=schema, parameters={"defaults": defaults})
    table = pd.concat([TABLE] * 20, ignore_index=True)
    found = generator.fit(table, seed=1).sample(30, seed=1)
    assert list(found.columns) == ["age", "sex", "gain"]
    assert len(found) == 30
    assert set(found["sex"]) <= {"f", "m"}
    assert found["age"].between(0, 120).all()
    assert found["gain"].between(-1.0, 1.0).all()
