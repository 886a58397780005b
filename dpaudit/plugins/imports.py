"""The imports in Python source, read from its text: nothing is run, and possible imports count."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Final

_STATEMENT: Final = re.compile(
    r"(?:^|[:;])[ \t\f]*"
    r"(?:from[ \t]+([^\W\d]\w*)[\w. \t]*[ \t]import\b|import[ \t]+([^#;\n]+))",
    re.MULTILINE,
)
_LISTED: Final = re.compile(r"(?:^|,)\s*([^\W\d]\w*)")
_PLUGINS: Final = re.compile(
    r"^pytest_plugins\b[^=\n]*=\s*(\[[^\]]*\]|\([^)]*\)|[^\n]*)", re.MULTILINE
)
_BY_NAME: Final = ("import_module", "__import__", "importorskip")
"""Functions whose first argument is the name of a module."""
_NAMED: Final = re.compile(rf"\b(?:{'|'.join(_BY_NAME)})\(\s*[fF]?[\"']([^\W\d]\w*)[.\"']")
_KNOWN_ARGUMENT: Final = re.compile(r"f?'\w+\.|'\w+'$|(?:f'\{)?__(?:name|package)__\b")
"""An expression whose text shows the top-level name of a module."""
_LOADERS: Final = frozenset(
    {
        *("exec_module", "load_module", "load_source", "load_dynamic", "spec_from_file_location"),
        *("SourceFileLoader", "ExtensionFileLoader", "SourcelessFileLoader", "run_path"),
        *("run_module", "entry_points", "iter_entry_points", "load_entry_point", *_BY_NAME),
    }
)
"""Names of functions that load modules without an import statement."""
_RUNNERS: Final = frozenset({"exec", "eval", "os.system", "os.popen"})
_PROGRAMS: Final = frozenset({"subprocess", "ctypes", "cffi", "runpy", "imp"})
"""Modules that run code other than Python modules."""
_HINTS: Final = re.compile(rf"\b(?:{'|'.join([*_LOADERS, *_RUNNERS])})\b")


@lru_cache(maxsize=2048)
def imported_names(source: bytes) -> frozenset[str]:
    """The top-level names of modules that Python source imports; also some named in docstrings."""
    text = _text(source)
    names = set[str]()
    # Most lines have no import, and a search for this word is many times faster than the patterns.
    lines = "\n".join(line for line in text.split("\n") if "import" in line)
    for origin, listed in _STATEMENT.findall(lines):
        names.update([origin] if origin else _LISTED.findall(listed))
    if any(f"{name}(" in text for name in _BY_NAME):
        names.update(_NAMED.findall(text))
    if "pytest_plugins" in text:
        for listed in _PLUGINS.findall(text):
            names.update(re.findall(r"[\"'](\w+)", listed))
    return frozenset(names)


@lru_cache(maxsize=2048)
def hidden_import(source: bytes) -> str:
    """The first code that may load or run code that the text does not name; else empty."""
    if _HINTS.search(_text(source)):
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError):  # it cannot be imported either
            return ""
        names_its_module = {
            id(node.func)
            for node in nodes
            if isinstance(node, ast.Call) and node.args
            if _KNOWN_ARGUMENT.match(ast.unparse(node.args[0]))
        }
        for node in nodes:
            word = _mentioned(node)
            if word in _RUNNERS or (
                word in _LOADERS and not (word in _BY_NAME and id(node) in names_its_module)
            ):
                return f"{word}, line {getattr(node, 'lineno', 0)}"
    return next((f"import {name}" for name in sorted(imported_names(source) & _PROGRAMS)), "")


def _mentioned(node: ast.AST) -> str:
    """The name that an expression mentions, perhaps as a text for `getattr`."""
    match node:
        case ast.Name(id=name) | ast.alias(name=name, asname=str()):
            return name
        case ast.Attribute(attr="system" | "popen"):
            return ast.unparse(node)
        case ast.Attribute(attr=name):
            return (
                "" if name in _RUNNERS else name
            )  # a method, such as a model's `eval`, not the builtin
        case ast.Constant(value=str(text)):
            return "" if text in _RUNNERS else text
    return ""


def _text(source: bytes) -> str:
    """Source as text in which every logical line is one line."""
    return source.decode("utf-8", "replace").replace("\r", "\n").replace("\\\n", " ")
