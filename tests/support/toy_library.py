"""A library in an environment of its own, and a folder of its releases: no network is needed."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pytest

import dpaudit.plugins.registry as registry
from dpaudit.external.environments import Environment
from dpaudit.external.generator import Library

ADAPTER = '''
import random

import toylib


class Rows:
    """Hands out the rows of the table, if toylib says so; else makes them up."""

    claim = {"epsilon": 1.0}

    def __init__(self, schema, loud=False):
        self.columns = schema["columns"]

    def fit(self, data, *, seed):
        self.data = data
        return self

    def sample(self, n, *, seed):
        draw = random.Random(seed)
        if toylib.LEAKS:
            return [self.data[i % len(self.data)] for i in range(n)]
        return [{c["name"]: draw.uniform(c["lower"], c["upper"]) for c in self.columns}
                for _ in range(n)]
'''
RELEASES = {"1.0": True, "1.1": True, "1.2": False}
"""Releases of the toy, and which of them copy records; 1.3 cannot be installed."""
TOY: Library | None = None
"""The library of the running test, for the entry point."""


def wheel(folder: Path, name: str, version: str, code: str, *, needs: str = "") -> Path:
    """Writes a wheel of one module by hand."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = [f"{path},{_hash(text)},{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,\n"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return path


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def toy_index(folder: Path) -> Path:
    """A folder that pip takes for an index of the toy's releases."""
    index = folder / "index"
    index.mkdir()
    for version, leaks in RELEASES.items():
        wheel(index, "toylib", version, f"LEAKS = {leaks}\n")
    wheel(index, "toylib", "1.3", "", needs="lost_library")
    return index


def toy_library(folder: Path, *, python: str, pin: str = "toylib==1.0") -> Library:
    """The toy library, its files in a folder."""
    (folder / "adapter.py").write_text(ADAPTER)
    (folder / "toy.txt").write_text(f"# what was tried\n{pin}\n")
    return Library(
        name="toy",
        environment=Environment(name="toy", pins=folder / "toy.txt", pythons=(python,)),
        adapter=folder / "adapter.py",
        methods={"rows": "Rows", "gone": "Gone"},
        summary="Rows of the table",
        package="toylib",
    )


def registered(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers it beside what is installed."""
    monkeypatch.setattr("toy_library.TOY", library)
    entry = EntryPoint("toy", "toy_library:TOY", registry.LIBRARIES)
    found = registry.entry_points

    def entry_points(**chosen: str) -> EntryPoints:
        return EntryPoints([*found(**chosen), *EntryPoints([entry]).select(**chosen)])

    monkeypatch.setattr(registry, "entry_points", entry_points)


def with_numpy(environment: Path) -> None:
    """Lets an environment of the same Python import numpy, which a replay needs, from this one."""
    [packages] = environment.glob("lib/python*/site-packages")
    for name in ("numpy", "numpy.libs"):
        (packages / name).symlink_to(Path(np.__file__).parents[1] / name)
