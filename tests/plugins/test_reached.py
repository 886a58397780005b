"""The code that a file reaches, so that nothing is taken for unchanged that is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.plugins.source import reached_digest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test that imports a package, which imports another one, beside what neither imports."""
    for name in ("synth", "noise", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "synth" / "model.py").write_text("def fit():\n    from noise import laplace\n")
    (tmp_path / "noise" / "laplace.py").write_text("SCALE = 1.0\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_synth.py").write_text("import numpy, os, dpaudit\nimport synth\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("tests/test_synth.py", True),
        ("synth/model.py", True),
        ("noise/laplace.py", True),  # imported by a package, in a function
        ("other/__init__.py", False),
    ],
)
def test_what_is_imported_counts_and_nothing_else(
    project: Path, changed: str, differs: bool
) -> None:
    roots = [project / "tests" / "test_synth.py"]
    before = reached_digest(roots)
    assert reached_digest(roots) == before
    with (project / changed).open("a") as file:
        file.write("# changed\n")
    assert (reached_digest(roots) != before) is differs


def test_installed_packages_are_not_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    original = Path.read_bytes

    def noted(self: Path) -> bytes:
        read.append(self)
        return original(self)

    monkeypatch.setattr(Path, "read_bytes", noted)
    reached_digest([project / "tests" / "test_synth.py"])
    assert {path for path in read if not path.is_relative_to(project)} == set()
    assert project / "noise" / "laplace.py" in read
