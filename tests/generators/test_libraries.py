"""The libraries that ship: their pins, adapters and page belong together. None is installed."""

from __future__ import annotations

import ast
from pathlib import Path

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
