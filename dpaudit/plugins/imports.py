"""The imports of Python source, from its text: nothing is run, and possible imports count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_STATEMENT: Final = re.compile(
    r"(?:^|[:;])[ \t\f]*"
    r"(?:from[ \t]+([^\W\d]\w*)[\w. \t]*[ \t]import\b|import[ \t]+([^#;\n]+))",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"[^\W\d]\w*")
_BY_NAME: Final = frozenset({"import_module", "__import__", "importorskip"})
"""Functions whose first argument is the name of a module."""
_LOADERS: Final = frozenset(
    {
        *("exec_module", "load_module", "load_source", "load_dynamic", "spec_from_file_location"),
        *("SourceFileLoader", "ExtensionFileLoader", "SourcelessFileLoader", "run_path"),
        *("run_module", "entry_points", "iter_entry_points", "load_entry_point"),
    }
)
"""Names of functions that load modules without an import statement."""
_RUNNERS: Final = frozenset({"exec", "eval"})
"""Builtins that run code that may come from anywhere."""
_PROGRAMS: Final = frozenset({"subprocess", "ctypes", "cffi", "runpy", "imp"})
"""Modules that run code other than Python modules."""
_SHELLS: Final = frozenset({"os.system", "os.popen"})
_RUNS: Final = _RUNNERS | {name.partition(".")[2] for name in _SHELLS}
_HINTS: Final = re.compile(
    rf"\b(?:{'|'.join([*_BY_NAME, *_LOADERS, *_RUNNERS, *_SHELLS, 'pytest_plugins'])})\b"
)
_OWN: Final = frozenset({"__name__", "__package__"})


class Imports(NamedTuple):
    """What one file imports.

    Attributes:
        names: Top-level names of modules; those of a docstring may be among them.
        computed: Code that loads modules whose names are not in the text, and its line; empty if
            none.
        runs: As `computed`, of what may run code other than by importing it.
    """

    names: frozenset[str]
    computed: str = ""
    runs: str = ""


@lru_cache(maxsize=2048)
def imports_of(source: bytes) -> Imports:
    """The imports of Python source.

    Args:
        source: The content of a Python file.

    Returns:
        Names of modules, and what hides further ones.
    """
    text = source.decode("utf-8", "replace").replace("\r", "\n").replace("\\\n", " ")
    names = set(_statements(text))
    runs = next((f"import {name}" for name in sorted(names & _PROGRAMS)), "")
    if not _HINTS.search(text):
        return Imports(frozenset(names), runs=runs)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Imports(frozenset(names), runs=runs)  # it cannot be imported either
    nodes = list(ast.walk(tree))
    resolved = {id(call.func): name for call, name in filter(None, map(_called, nodes))}
    names.update(name for name in resolved.values() if name)
    names.update(_pytest_plugins(tree))
    computed = ""
    for node in nodes:
        mentioned = set(_mentions(node)) - ({*_BY_NAME} if id(node) in resolved else set())
        line = f"line {getattr(node, 'lineno', 0)}"
        if not computed and mentioned & (_BY_NAME | _LOADERS):
            computed = f"{min(mentioned & (_BY_NAME | _LOADERS))}, {line}"
        if not runs and mentioned & _RUNS:
            called = ast.unparse(node)
            runs = f"{called}, {line}" if called in _RUNNERS | _SHELLS else ""
    return Imports(frozenset(names), computed, runs)


def _statements(text: str) -> Iterator[str]:
    for origin, listed in _STATEMENT.findall(text):
        if origin:
            yield origin
        for item in listed.split(","):
            found = _NAME.match(item.strip())
            if found is not None:
                yield found[0]


def _called(node: ast.AST) -> tuple[ast.Call, str] | None:
    """A call that imports a module whose name stands in the text, and that name.

    The name is empty for a module of the file's own package.
    """
    if not isinstance(node, ast.Call) or not node.args:
        return None
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    top = _top_level(node.args[0]) if name in _BY_NAME else None
    return None if top is None else (node, top)


def _top_level(node: ast.expr) -> str | None:
    """The top-level name that an expression of a module's name starts with; None if unknown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.partition(".")[0]
    if isinstance(node, ast.Name):
        return "" if node.id in _OWN else None
    if isinstance(node, ast.FormattedValue):
        return _top_level(node.value) if isinstance(node.value, ast.Name) else None
    first = None
    if isinstance(node, ast.JoinedStr) and node.values:
        first = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        first = node.left
    if isinstance(first, ast.Constant) and "." not in str(first.value):
        return None  # the rest may go on with the name
    return None if first is None else _top_level(first)


def _mentions(node: ast.AST) -> Iterable[str]:
    """Names that a node mentions, also as a text that `getattr` may take."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    if isinstance(node, ast.alias) and node.asname not in (None, node.name):
        return (node.name,)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return (node.value,)
    return ()


def _pytest_plugins(tree: ast.Module) -> Iterator[str]:
    """Modules that pytest loads for a file that names them."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any(isinstance(one, ast.Name) and one.id == "pytest_plugins" for one in targets):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value.partition(".")[0]
