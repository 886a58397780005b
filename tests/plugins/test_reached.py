"""All that code reaches, so that nothing is taken for unchanged that is not."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from dpaudit.model.tables import load
from dpaudit.plugins.named import FunctionGenerator
from dpaudit.plugins.registry import GENERATORS, build, load_module
from dpaudit.plugins.source import Reached, reached


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test that imports a package, which imports another one, beside what neither imports."""
    for name in ("synth", "noise", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / "synth" / "model.py").write_text("def fit():\n    from noise import laplace\n")
    (tmp_path / "noise" / "laplace.py").write_text("SCALE = 1.0\n")
    (tmp_path / "spread").mkdir()  # a package without __init__
    (tmp_path / "spread" / "part.py").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_synth.py").write_text(
        "import numpy, os, dpaudit\nimport synth\nif synth: import spread.part as part, beside\n"
    )
    (tmp_path / "tests" / f"beside{EXTENSION_SUFFIXES[0]}").write_bytes(b"compiled")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def of_test(project: Path) -> Reached:
    return reached([], files=[project / "tests" / "test_synth.py"])


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("tests/test_synth.py", True),
        (f"tests/beside{EXTENSION_SUFFIXES[0]}", True),
        ("synth/model.py", True),
        ("noise/laplace.py", True),  # imported by a package, in a function
        ("spread/part.py", True),
        ("other/__init__.py", False),
    ],
)
def test_code_that_is_imported_counts_and_nothing_else(
    project: Path, changed: str, differs: bool
) -> None:
    before = of_test(project)
    assert of_test(project) == before
    assert before.unknown == ""
    with (project / changed).open("a") as file:
        file.write("# changed\n")
    assert (of_test(project).code != before.code) is differs


def test_code_that_is_moved_is_the_same(project: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere.py"
    moved.write_text("x = 1\n")
    before = reached([], files=[moved]).code
    (tmp_path / "deep").mkdir()
    assert reached([], files=[moved.rename(tmp_path / "deep" / moved.name)]).code == before


Installer = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """Installs a distribution of one module, as pip would."""
    monkeypatch.syspath_prepend(tmp_path / "site-packages")

    def install(
        name: str, version: str = "1.0", *, source: str = "", requires: str = "", mark: str = ""
    ) -> Path:
        site = tmp_path / "site-packages"
        for old in site.glob(f"{name}-*.dist-info"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text(source)
        lines = [f"Requires-Dist: {one}" for one in requires.split(", ") if one]
        head = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines]
        (info / "METADATA").write_text("\n".join(head) + "\n\nWords.\n")
        (info / "RECORD").write_text(f"{name}.py,sha256=abc{mark},3\n{info.name}/RECORD,,\n")
        return site / f"{name}.py"

    return install


def of_source(tmp_path: Path, source: str) -> Reached:
    (tmp_path / "test_mine.py").write_text(source)
    return reached([], files=[tmp_path / "test_mine.py"])


def versions_of(found: Reached) -> Mapping[str, str]:
    return {name: of.partition(" build ")[0] for name, of in found.software.items()}


def test_byte_code_of_a_lone_file_is_no_module(
    tmp_path: Path, install: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every folder of byte code on the path would count, and the first run changes it."""
    monkeypatch.syspath_prepend(tmp_path)
    install("mylib")
    install("user", source="import mylib\n", requires="mylib")
    record = tmp_path / "site-packages/mylib-1.0.dist-info/RECORD"
    record.write_text(f"__pycache__/mylib.cpython-311.pyc,,\n{record.read_text()}")
    before = of_source(tmp_path, "import user\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/test_mine.cpython-311.pyc").write_bytes(b"compiled")
    assert of_source(tmp_path, "import user\n") == before


@pytest.mark.parametrize(
    ("upgrade", "shown"),
    [
        ({"version": "2.0"}, "mylib"),
        ({"source": "leak = True\n"}, "mylib (files)"),  # edited where it is installed
        ({"mark": "other"}, "mylib"),  # the same version, built anew
        ({"requires": "numpy"}, "mylib"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_another_release_or_build_of_an_imported_library_counts(
    tmp_path: Path, install: Installer, upgrade: dict[str, str], shown: str
) -> None:
    install("mylib")
    install("unrelated")
    before = of_source(tmp_path, "import mylib\n")
    assert versions_of(before)["mylib"] == "1.0"
    install("mylib", **upgrade)
    after = of_source(tmp_path, "import mylib\n")
    assert after.software[shown] != before.software[shown]
    assert after.unknown == ""
    assert {**after.software, shown: before.software[shown]} == before.software


def test_every_installed_distribution_counts_by_its_release(
    tmp_path: Path, install: Installer
) -> None:
    """Imported or not, for a library may load it by any name; by its files if it is imported."""
    install("mylib")
    install("unrelated")
    before = of_source(tmp_path, "import mylib\n")
    install("unrelated", source="leak = True\n")
    assert of_source(tmp_path, "import mylib\n") == before
    install("unrelated", "2.0")
    after = of_source(tmp_path, "import mylib\n")
    assert after.code == before.code
    assert after != before


def test_the_version_of_an_editable_install_does_not_count(
    tmp_path: Path, install: Installer
) -> None:
    """It may be that of the last commit; the code that is imported counts by its content."""
    install("mylib")
    note = tmp_path / "site-packages/mylib-1.0.dist-info/direct_url.json"
    note.write_text('{"url": "file:///here", "dir_info": {"editable":true}}')
    assert "mylib" not in of_source(tmp_path, "import mylib\n").software


@pytest.mark.parametrize(
    "library",
    [
        {"requires": 'other-lib>=1 ; python_version > "3"'},
        {"source": "def fit():\n    from otherlib import noise\n"},  # undeclared
        {"source": "import importlib\nimportlib.import_module('otherlib.noise')\n"},
        {"source": "import importlib\nimportlib.import_module(f'otherlib.{name}')\n"},
        {"requires": "between"},
        {"requires": "between[fast]"},
    ],
)
def test_what_a_library_requires_or_imports_counts(
    tmp_path: Path, install: Installer, library: dict[str, str]
) -> None:
    extra = "[" in library.get("requires", "")
    install("between", requires="otherlib; extra == 'Fast'" if extra else "otherlib")
    install("other_lib", source="")
    install("otherlib", source="")
    install("mylib", **library)
    (tmp_path / "helper.py").write_text("import mylib\n")  # her own module, beside the test
    before = of_source(tmp_path, "import helper\n")
    install("other_lib", "2.0")
    install("otherlib", "2.0")
    after = of_source(tmp_path, "import helper\n")
    assert after != before
    assert "2.0" in versions_of(after).values()


@pytest.mark.parametrize(
    "source",
    [
        "import importlib\n\n\ndef load(name):\n    return importlib.import_module(name)\n",
        "from importlib.metadata import entry_points\nPLUGINS = entry_points(group='mylib')\n",
    ],
)
def test_of_a_library_that_computes_what_it_imports_everything_installed_counts(
    tmp_path: Path, install: Installer, source: str
) -> None:
    install("mylib", source=source)
    install("plugin")
    found = of_source(tmp_path, "import mylib\n")
    assert versions_of(found)["plugin"] == "1.0"
    assert found.unknown == ""


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import importlib\nimportlib.import_module(NAME)\n", "import_module, line 2"),
        ("from importlib import import_module as load\nload('mylib')\n", "import_module, line 1"),
        ("__import__(NAME)\n", "__import__, line 1"),
        ("import importlib\ngetattr(importlib, 'import_module')(x)\n", "import_module, line 2"),
        ("import importlib\nimportlib.import_module(f'my{NAME}')\n", "import_module, line 2"),
        ("import runpy\nrunpy.run_path(FILE)\n", "run_path, line 2"),
        ("exec(open(FILE).read())\n", "exec, line 1"),
        ("import os\nos.system('Rscript synth.R')\n", "os.system, line 2"),
        ("import subprocess\n", "import subprocess"),
        ("import sys\nsys.path.append(FOLDER)\nimport there\n", "test_mine.py changes sys.path"),
    ],
)
def test_the_graph_of_code_that_computes_its_imports_is_unknown(
    tmp_path: Path, install: Installer, source: str, why: str
) -> None:
    install("plugin")
    found = of_source(tmp_path, source)
    assert why in found.unknown
    assert "test_mine.py" in found.unknown
    assert "plugin" in found.software


@pytest.mark.parametrize(
    "source",
    [
        "import importlib\nimportlib.import_module('mylib')\n",
        "import importlib\nimportlib.import_module('mylib.' + name)\n",
        "__import__('mylib')\n",
        "import pytest\nmylib = pytest.importorskip('mylib')\n",
        "pytest_plugins = ['mylib.fixtures']\n",
        "import os; import mylib\n",
        "import os, \\\n    mylib as m\n",
        "if True: from mylib.part import (\n    x,\n)\n",
        "try:\n    import mylib\nexcept ImportError:\n    mylib = None\n",
    ],
)
def test_names_that_the_text_tells_are_followed(
    tmp_path: Path, install: Installer, source: str
) -> None:
    install("mylib")
    install("unrelated")
    found = of_source(tmp_path, source)
    assert "mylib (files)" in found.software
    assert found.unknown == ""
    assert "unrelated (files)" not in found.software


def test_what_is_installed_later_counts(tmp_path: Path, install: Installer) -> None:
    source = "try:\n    import mylib\nexcept ImportError:\n    mylib = None\n"
    before = of_source(tmp_path, source)
    install("mylib")
    assert of_source(tmp_path, source) != before


def test_an_editable_library_counts_by_its_content(tmp_path: Path) -> None:
    """In a process that starts with the .pth file, which pip writes for an editable install."""
    environment, source = tmp_path / "site-packages", tmp_path / "source"
    for folder in (environment / "mylib-1.0.dist-info", source / "mylib"):
        folder.mkdir(parents=True)
    info = environment / "mylib-1.0.dist-info"
    (info / "METADATA").write_text("Name: mylib\nVersion: 1.0\n")
    (info / "RECORD").write_text("__editable__.mylib.pth,sha256=abc,9\n")
    (environment / "__editable__.mylib.pth").write_text(f"{source}\n")
    (source / "mylib" / "__init__.py").write_text("LEAK = False\n")
    test = tmp_path / "test_mine.py"
    test.write_text("import mylib\n")
    program = (
        "import site, sys, pathlib\n"
        f"site.addsitedir({str(environment)!r})\n"
        "from dpaudit.plugins.source import reached\n"
        f"print(reached([], files=[pathlib.Path({str(test)!r})]))\n"
    )

    def found() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        return done.stdout

    before = found()
    assert found() == before
    (source / "mylib" / "__init__.py").write_text("LEAK = True\n")
    assert found() != before


def test_installed_packages_without_metadata_count_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "mylib" / "__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    before = of_source(tmp_path, "import mylib\n")
    package.write_text("leak = True\n")
    assert of_source(tmp_path, "import mylib\n") != before


def test_an_archive_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "mylib.zip", "w") as archive:
        archive.writestr("zipped.py", "")
    monkeypatch.syspath_prepend(str(tmp_path / "mylib.zip"))
    assert "zipped is imported from no file" in of_source(tmp_path, "import zipped\n").unknown


def test_an_object_reaches_what_its_classes_and_functions_do(
    tmp_path: Path, install: Installer
) -> None:
    source = "class Gen:\n    pass\n\n\ndef synth(data, n_rows, seed, level=1):\n    pass\n"
    install("mylib", source=source)
    mylib = importlib.import_module("mylib")
    (tmp_path / "mine.py").write_text("import mylib\n\n\nclass Own(mylib.Gen):\n    pass\n")
    own = load_module(str(tmp_path / "mine.py")).Own()
    try:
        for value in (
            mylib.Gen(),
            mylib.synth,
            functools.partial(mylib.synth, level=2),
            FunctionGenerator(mylib.synth),
            FunctionGenerator(functools.partial(mylib.synth, level=2)),
            own,
        ):
            found = reached([value])
            assert "mylib (files)" in found.software, value
            assert found.unknown == "", value
    finally:
        del sys.modules["mylib"]
    made: dict[str, type] = {}
    exec("class Made:\n    pass\n", {"__name__": "nowhere"}, made)
    assert "Made has no source file" in reached([made["Made"]()]).unknown


def test_code_in_another_program_is_known_by_its_files_or_its_releases(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text("import pandas\n")
    worker = {"source_files": (tmp_path / "worker.py",)}
    assert "program of its own" in reached([SimpleNamespace(**worker)]).unknown
    assert reached([SimpleNamespace(**worker, imports_here=True)]).unknown == ""
    assert reached([SimpleNamespace(**worker, audited_releases={"x": "1"})]).unknown == ""


def test_what_an_audit_runs_on_is_always_there_and_takes_no_time(tmp_path: Path) -> None:
    of_source(tmp_path, "")
    start = time.process_time()
    found = of_source(tmp_path, "import torch, sklearn.linear_model, pandas, dpaudit\n")
    assert time.process_time() - start < 0.5
    assert versions_of(found)["pandas"] == pd.__version__
    assert {"numpy", "scipy", "torch", "scikit-learn"} <= found.software.keys()


@pytest.mark.parametrize("name", ["null", "pate-gan-marginals"])
def test_a_generator_of_dpaudit_can_be_kept_from_a_clone(name: str) -> None:
    # Its whole package counts, adapters of other environments included.
    schema = load("sample:breast-cancer", None).schema
    generator = build(name, GENERATORS, given={}, offered={"schema": schema})
    assert reached([generator]).unknown == ""
