"""A run folder belongs to the software of its run: what is installed, and what is imported."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import RunFolderError
from dpaudit.game.store import RunFolder
from dpaudit.model.tables import load

GENERATOR = "import mylib\n\n\ndef synth(data, n_rows, seed):\n    return mylib.made(data)\n"
TABLE = pd.DataFrame({"age": range(20, 40)})


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    """Leaves no module behind that other tests install under the same name."""
    yield
    for name in ("mylib", "otherlib"):
        sys.modules.pop(name, None)


def install(site: Path, name: str, version: str, source: str = "") -> None:
    for old in site.glob(f"{name}-*.dist-info"):
        shutil.rmtree(old)
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (site / f"{name}.py").write_text(source)
    (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text(f"{name}.py,sha256={version},1\n")


def spec_of(name: str) -> AuditSpec:
    for module in ("mylib", "otherlib"):
        sys.modules.pop(module, None)
    settings = audit_settings(epsilon=1.0, shadow_models=40, attacks=("groundhog-naive",))
    return build_spec(name, load(TABLE, None), settings)


def open_folder(path: Path, name: str) -> None:
    spec = spec_of(name)
    RunFolder(path, spec=spec.stored_specification, versions=spec.software).close()


@pytest.mark.parametrize("place", ["mine.py:synth", "mylib:made"])
@pytest.mark.parametrize("upgraded", ["mylib", "otherlib", "unrelated"])
def test_a_run_is_not_resumed_with_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, upgraded: str
) -> None:
    """Nor of what it does not import as far as can be read: a library may load it by any name."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(GENERATOR)
    source = "import otherlib\n\n\ndef made(data, n_rows, seed):\n    return data\n"
    install(site, "mylib", "1.0", source)
    install(site, "otherlib", "1.0")
    install(site, "unrelated", "1.0")
    open_folder(tmp_path / "run", place)
    open_folder(tmp_path / "run", place)
    install(site, upgraded, "2.0", source if upgraded == "mylib" else "")
    said = f"{upgraded} 1.0 build [0-9a-f]+, this is 2.0 build [0-9a-f]+: install that version"
    with pytest.raises(RunFolderError, match=said):
        open_folder(tmp_path / "run", place)


def test_another_release_with_other_code_is_named_beside_the_generator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path / "site")
    source = "def made(data, n_rows, seed):\n    return data\n"
    install(tmp_path / "site", "mylib", "1.0", source)
    open_folder(tmp_path / "run", "mylib:made")
    install(tmp_path / "site", "mylib", "2.0", f"{source}\n")
    said = "import has changed; mylib is 1.0 build [0-9a-f]+ there and 2.0 build [0-9a-f]+ here"
    with pytest.raises(RunFolderError, match=said):
        open_folder(tmp_path / "run", "mylib:made")


def test_a_run_is_not_resumed_with_other_code_of_an_imported_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not installed, elsewhere than the generator's file."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "mylib.py").write_text("")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text(GENERATOR)
    monkeypatch.syspath_prepend(tmp_path / "path")
    name = f"{tmp_path / 'own' / 'mine.py'}:synth"
    open_folder(tmp_path / "run", name)
    open_folder(tmp_path / "run", name)
    (tmp_path / "path" / "mylib.py").write_text("LEAK = True\n")
    with pytest.raises(RunFolderError, match="what they import has changed"):
        open_folder(tmp_path / "run", name)
