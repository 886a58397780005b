"""Environments of libraries: made once, complete or not there, and audited by name."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.cli.installation import _environment_findings
from dpaudit.cli.main import app
from dpaudit.errors import RegistryError
from dpaudit.external.environments import (
    HASHED,
    MARKER,
    PINS,
    Environment,
    create_environment,
    environments_folder,
    existing_environments,
    find_interpreter,
    pip_reason,
    remove_environments,
)
from dpaudit.external.generator import Library, adapter_account
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.source import source_digest
from dpaudit.seeds import rng_of
from samples import QUICK_ATTACKS
from toy_library import registered, toy_index, toy_library
from toy_library import wheel as toy_wheel

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
SCHEMA = Schema(
    columns=tuple(Column(name=n, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for n in "xy")
)


def table() -> pd.DataFrame:
    values = rng_of(0, "table").random((30, 2))
    values[7] = 1.0
    return SCHEMA.canonical(pd.DataFrame(values, columns=["x", "y"]))


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache, and an index that is a folder, for all tests here: making environments is slow."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(toy_index(folder)))
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        yield folder


@pytest.fixture
def toy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    library = toy_library(home, python=HERE)
    registered(library, monkeypatch)
    return library


def bare(folder: Path, name: str = "bare", **changes: object) -> Environment:
    (folder / "none.txt").write_text("# nothing\n\n")
    made = Environment(name=name, pins=folder / "none.txt", pythons=(HERE,))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_an_environment_is_made_once(tmp_path: Path, home: Path) -> None:
    environment, steps = bare(tmp_path), list[str]()
    assert environment.built is None
    built = create_environment(environment, on_step=steps.append)
    assert built == environment.built
    assert len(steps) == 1
    assert built.python_version.startswith(HERE)
    assert built.python.is_file()
    before = (built.folder / MARKER).stat().st_mtime_ns
    assert create_environment(environment, on_step=steps.append) == built
    assert (built.folder / MARKER).stat().st_mtime_ns == before
    assert len(steps) == 1
    assert environments_folder().stat().st_mode & 0o077 == 0


def test_half_an_environment_is_none(tmp_path: Path, home: Path) -> None:
    environment = bare(tmp_path, "half")
    built = create_environment(environment)
    (built.folder / "left over").touch()
    (built.folder / MARKER).unlink()
    assert environment.built is None
    assert run("env", "list").stdout.count("not complete: ") == 1
    assert not (create_environment(environment).folder / "left over").exists()


def test_other_pins_are_another_environment(tmp_path: Path) -> None:
    (tmp_path / "pins.txt").write_text("a==1\nb_c==2  # why\n")
    one = Environment(name="one", pins=tmp_path / "pins.txt", pythons=(HERE,))
    assert one.requirements == ("a==1", "b_c==2")
    other = one.with_release("B-c", "3.0")
    assert other.requirements == ("a==1", "B-c==3.0")
    assert other.folder != one.folder
    assert other.name == "one@3.0"
    with pytest.raises(RegistryError, match="pins no d"):
        one.with_release("d", "1")
    with pytest.raises(RegistryError, match=r"'\.\./\.\.' is not a version of a"):
        one.with_release("a", "../..")
    (tmp_path / "pins.txt").write_text("a>=1\n")
    with pytest.raises(RegistryError, match="'a>=1' is not a pin: write name==version"):
        _ = replace(one, pythons=()).requirements
    with pytest.raises(RegistryError, match=r"gone\.txt cannot be read: No such file"):
        _ = replace(one, pins=tmp_path / "gone.txt").requirements
    with pytest.raises(RegistryError, match="cannot name an environment"):
        _ = replace(one, name="../one").folder


def of_pins(folder: Path, text: str) -> Environment:
    (folder / "pins.txt").write_text(text)
    return Environment(name="pinned", pins=folder / "pins.txt", pythons=(HERE,))


def sha256(digit: str) -> str:
    return f"--hash=sha256:{digit * 64}"


def test_hashes_change_neither_pins_nor_folder(tmp_path: Path) -> None:
    plain = of_pins(tmp_path, "a==1\nB_c==2\n")
    folder = plain.folder
    assert plain.hashed == ()
    hashed = of_pins(
        tmp_path,
        f"# both\na==1 \\\n    {sha256('0')}  # why\n"
        f"B_c==2 \\\n    {sha256('1')} \\\n    {sha256('2')}\n",
    )
    assert hashed.requirements == ("a==1", "B_c==2")
    assert hashed.folder == folder
    assert hashed.hashed == (f"a==1 {sha256('0')}", f"B_c==2 {sha256('1')} {sha256('2')}")
    other = hashed.with_release("b-c", "3")
    assert other.requirements == ("a==1", "b-c==3")
    assert other.hashed == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a==1 {sha256('0')}\nb==2\n", "b==2 has no hash and other pins have: give all of them"),
        (f"b==2\na==1 {sha256('0')}\n", "b==2 has no hash and other pins have"),
        (f"a==1 {sha256('0')}0\n", "0' of a==1 is not a hash: write --hash=sha256: and 64 hex"),
        (f"a==1 {sha256('g')}\n", "of a==1 is not a hash"),
        ("a==1 --hash=md5:0\n", "'--hash=md5:0' of a==1 is not a hash"),
        (f"a==1 {sha256('0')} x\n", "x' of a==1 is not a hash"),
        (f"a==1\n{sha256('0')}\n", "' is not a pin: write name==version"),
        (f"a {sha256('0')}\n", "'a' is not a pin"),
    ],
)
def test_slips_in_hashes(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RegistryError, match=re.escape(said)) as error:
        _ = of_pins(tmp_path, text).requirements
    assert "\n" not in str(error.value)


@pytest.mark.ci
def test_pip_checks_the_hashes(home: Path, tmp_path: Path) -> None:
    wheel = home / "index" / "toylib-1.0-py3-none-any.whl"
    good = f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    wrong = of_pins(tmp_path, f"toylib==1.0 {sha256('0')}\n")
    with pytest.raises(RegistryError) as said:
        create_environment(wrong)
    assert str(said.value).startswith(
        f"environment pinned cannot be made: {wheel.as_uri()} is not the file that was pinned as "
        "toylib==1.0: see where pip takes it from (pip config list), or, if you trust it, add its"
    )
    assert "\n" not in str(said.value)
    assert not wrong.folder.exists()
    of_release = create_environment(wrong.with_release("toylib", "1.1"))
    assert of_release.packages["toylib"] == "1.1"
    built = create_environment(of_pins(tmp_path, f"toylib==1.0 \\\n {sha256('0')} \\\n {good}\n"))
    assert built.folder == wrong.folder
    assert (built.folder / PINS).read_text() == "toylib==1.0\n"
    assert (built.folder / HASHED).read_text() == f"toylib==1.0 {sha256('0')} {good}\n"


@pytest.mark.slow
def test_a_local_build_goes_before_the_file_of_an_index(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip knows the hash of the latter, and of no file in a folder."""
    public, local = (toy_wheel(tmp_path, "toytorch", version, "") for version in ("1.0", "1.0+cpu"))
    (tmp_path / "local").mkdir()
    local = local.rename(tmp_path / "local" / local.name)
    digests = [hashlib.sha256(one.read_bytes()).hexdigest() for one in (public, local)]
    page = tmp_path / "index.html"
    page.write_text(f"<!DOCTYPE html><a href='{public.as_uri()}#sha256={digests[0]}'>torch</a>")
    environment = of_pins(
        tmp_path, "toytorch==1.0 " + " ".join(f"--hash=sha256:{one}" for one in digests)
    )
    monkeypatch.setenv("PIP_FIND_LINKS", f"{page} {local.parent}")
    assert create_environment(environment).packages["toytorch"] == "1.0+cpu"
    assert remove_environments("pinned")
    monkeypatch.setenv("PIP_FIND_LINKS", str(page))
    assert create_environment(environment).packages["toytorch"] == "1.0"


@pytest.mark.slow
def test_what_is_no_pin_comes_without_a_hash(home: Path, tmp_path: Path) -> None:
    """As the CUDA libraries do that only some builds of a pinned release ask for."""
    made = toy_wheel(home / "index", "built_for_cuda", "1.0", "", needs="toylib==1.1")
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    built = create_environment(of_pins(tmp_path, f"built_for_cuda==1.0 --hash=sha256:{digest}\n"))
    assert built.packages["toylib"] == "1.1"


@pytest.mark.ci
def test_a_library_is_audited_by_name(
    toy: Library, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run("audit", "toy:rows", "--data", "sample:breast-cancer")
    assert missing.exit_code == 2
    assert missing.stderr.endswith("which is not there yet; run: dpaudit env create toy\n")
    listed = run("list", "libraries").stdout
    assert "  Rows of the table (run: dpaudit env create toy)\n    toy:rows, toy:gone\n" in listed
    assert "missing: dpaudit env create toy\n" in run("env", "list").stdout

    made = run("env", "create", "toy")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith(f"toy is ready: Python {HERE}.")
    assert run("env", "create", "toy").stdout.startswith("toy is there already: ")
    assert (
        "  Rows of the table (ready)\n    toy:rows, toy:gone\n" in run("list", "libraries").stdout
    )

    result = audit_by_keywords(
        "toy:rows", table(), schema=SCHEMA, shadow_models=80, attacks=QUICK_ATTACKS[1:],
        target="row:7", probe=False, jobs=1,
    )  # fmt: skip
    assert result.verdict == "violation"
    assert result.claim.epsilon == 1.0
    assert result.versions["toy: toylib"] == "1.0"
    assert result.versions["toy: python"].startswith(HERE)
    assert result.generator.name == "toy:rows"
    assert " toy:rows " in result.reproduce


def test_slips_are_answered_in_one_line(toy: Library, home: Path) -> None:
    create_environment(toy.environment)
    words = ("--data", "sample:breast-cancer", "--set", "probe=false")
    for name, said in {
        "toy:row": "toy has no method 'row' (did you mean 'rows'?); there is toy:rows, toy:gone",
        "toy": "toy is a library: name one of its methods; there is toy:rows, toy:gone",
        "toyy:rows": "no module 'toyy' (did you mean 'toy'?): name an importable module",
        "toy:gone": "toy:gone: the worker does not start: KeyError: 'Gone'",
        "toy@..:rows": "'..' is not a version of toylib",
    }.items():
        found = run("audit", name, *words)
        assert found.exit_code == 2, found.output
        assert said in found.stderr
        assert found.stderr.count("\n") == 1
    found = run("audit", "toy:rows", *words, "-p", "quiet=true")
    assert found.exit_code == 2
    assert found.stderr == (
        "error: toy:rows: the worker does not start: TypeError: Rows has no parameter 'quiet'; it "
        "takes: loud\n"
    )
    assert "did you mean 'toy'" in run("env", "create", "toi").stderr
    assert "no environment 'toi' to remove" in run("env", "remove", "toi").stderr


def test_the_source_of_a_library_is_its_adapter_and_its_pins(toy: Library) -> None:
    def digest() -> str | None:
        named = named_generator("toy:rows", {}, {"schema": SCHEMA}, worker_memory=8)
        return source_digest(named.generator)

    create_environment(toy.environment)
    before = digest()
    assert before == digest()
    toy.adapter.write_text(toy.adapter.read_text() + "\n# edited\n")
    edited = digest()
    assert edited != before
    built = toy.environment.built
    assert built is not None
    (built.folder / PINS).write_text("toylib==1.1\n")
    assert digest() != edited
    (built.folder / PINS).write_text("toylib==1.0\n")
    assert digest() == edited


def test_memory_is_limited(toy: Library, proc: Path) -> None:
    create_environment(toy.environment)
    words = ("doctor", "--worker", "toy:rows", "--worker-memory")
    small = run(*words, "0.001")
    assert small.exit_code == 2
    assert "toy:rows: the worker " in small.stderr
    assert run(*words, "0").stderr == "error: --worker-memory must be a number above 0, got 0.0\n"


@pytest.mark.ci
def test_what_pip_cannot_install_is_said(home: Path, tmp_path: Path) -> None:
    (tmp_path / "pins.txt").write_text("toylib==9.9\n")
    environment = Environment(name="missing", pins=tmp_path / "pins.txt", pythons=(HERE,))
    with pytest.raises(RegistryError, match=r"pip finds no toylib==9\.9, and PIP_NO_INDEX") as said:
        create_environment(environment)
    assert "\n" not in str(said.value)
    assert environment.folder.with_name(f"{environment.folder.name}.log").read_text()
    assert not environment.folder.exists()


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "WARNING: Retrying after connection broken by 'NewConnectionError'\n"
            "ERROR: No matching distribution found for a==1",
            "offline",
        ),
        ("ERROR: No matching distribution found for a==1", "has no a==1 for this Python"),
        ("  ERROR: Failed building wheel for a\n", "a cannot be built from source here"),
        (
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you\n"
            "    a==1 from https://index/a-1.tar.gz#sha256=0 (from -r hashes.txt (line 1)):\n"
            "        Expected sha256 0\n",
            "https://index/a-1.tar.gz is not the file that was pinned as a==1",
        ),
        ("ERROR: [Errno 28] No space left on device", "no space left"),
        ("ERROR: Cannot install a==1 and b==2 because\nmore", "Cannot install a==1 and b==2"),
        ("Segmentation fault\n", "Segmentation fault"),
        ("", "it says nothing"),
    ],
)
def test_why_pip_failed(log: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    assert said in pip_reason(log)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(RegistryError, match=r"cannot be made in .*Not a directory.*XDG_CACHE_HOME"):
        create_environment(bare(tmp_path))
    assert existing_environments() == {}


def interpreter(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_interpreters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_interpreter("toy", ("2.7", HERE)) == Path(sys.executable)
    first, second, pyenv = (tmp_path / name for name in ("first", "second", "pyenv"))
    for folder in (first, second, pyenv / "versions" / "3.99.4" / "bin"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{first}:{second}")
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))
    with pytest.raises(RegistryError, match=r"needs Python 3\.99, and there is no python3\.99"):
        find_interpreter("toy", ("3.99",))
    broken = interpreter(first, "python3.99", "exit 127")
    with pytest.raises(RegistryError, match=r"there is no python3\.99 on PATH"):
        find_interpreter("toy", ("3.99",))
    with pytest.raises(RegistryError, match="is not a Python interpreter that runs"):
        find_interpreter("toy", ("3.99",), given=broken)
    interpreter(second, "python3.99", "echo 3.99; exit 1")
    with pytest.raises(RegistryError, match=r"second/python3\.99 lacks venv or ensurepip"):
        find_interpreter("toy", ("3.99",))
    good = interpreter(pyenv / "versions" / "3.99.4" / "bin", "python3.99", "echo 3.99")
    assert find_interpreter("toy", ("3.99",)) == good
    with pytest.raises(RegistryError, match=r"is Python 3\.99, and the pins of toy are for 3\.98"):
        find_interpreter("toy", ("3.98",), given=good)
    assert find_interpreter("toy", ("3.99",), given=good) == good


def test_environments_are_removed(tmp_path: Path, home: Path) -> None:
    environment = bare(tmp_path, "removed")
    folder = create_environment(environment).folder
    older = folder.with_name("removed-0123456789abcdef")
    older.mkdir()
    beside = create_environment(bare(tmp_path, "removed-not")).folder
    found = run("env", "remove", "removed")
    assert found.exit_code == 0, found.output
    assert found.stdout.count("deleted ") == 2
    assert not folder.exists()
    assert not older.exists()
    assert beside.exists()


def test_the_marker_says_what_is_installed(toy: Library) -> None:
    built = create_environment(toy.environment)
    assert built.packages["toylib"] == "1.0"
    assert json.loads((built.folder / MARKER).read_text())["packages"]["toylib"] == "1.0"
    assert np.all([key == key.lower() for key in built.packages])


def test_a_library_is_probed(toy: Library, home: Path) -> None:
    create_environment(toy.environment)
    data, schema = home / "table.csv", home / "schema.json"
    table().to_csv(data, index=False)
    SCHEMA.save(schema)
    words = ("--data", str(data), "--schema", str(schema), "--only", "rows-copied-verbatim")
    found = run("probe", "toy:rows", *words)
    assert found.exit_code == 1, found.output
    assert "rows-copied-verbatim" in found.stdout


def test_methods_are_shown_without_their_library(toy: Library) -> None:
    shown = run("list", "toy:rows")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("toy:rows\n\nmethod    Hands out the rows of the table")
    assert shown.stdout.endswith("  default\nloud                       False\n")
    assert "toy is a library: name one of its methods" in run("list", "toy").stderr
    assert "has no class Gone" in run("list", "toy:gone").stderr
    assert "did you mean 'toy'" in run("list", "toyy").stderr


def test_parameters_of_a_class_and_its_base(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text(
        "import lost_library\n"
        "class Base:\n"
        "    def __init__(self, *, schema, epsilon=1.0, defaults='library'): ...\n"
        "class Same(Base): 'Its words.'\n"
        "class More(Base):\n"
        "    def __init__(self, delta, epsilon=2, **rest): ...\n"
        "class Less(Base):\n"
        "    def __init__(self): ...\n"
        "class Circle(Circle): ...\n"
        "class Other(lost_library.Thing): ...\n"
    )

    def of(name: str) -> dict[str, str | None]:
        return dict(adapter_account(tmp_path / "adapter.py", name).parameters)

    assert of("Same") == {"epsilon": "1.0", "defaults": "'library'"}
    assert adapter_account(tmp_path / "adapter.py", "Same").summary == "Its words."
    assert of("More") == {"delta": None, "epsilon": "2", "defaults": "'library'"}
    assert of("Less") == of("Circle") == of("Other") == {}
    (tmp_path / "adapter.py").write_text("class:\n")
    with pytest.raises(RegistryError, match=r"adapter\.py cannot be read: invalid syntax"):
        of("Same")


def test_the_doctor_sees_environments(
    toy: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines() -> dict[str, bool]:
        return {text: good for good, text in _environment_findings() if " toy" in text}

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert lines() == {"environment toy is not there; to make it: dpaudit env create toy": True}
    toy.environment.pins.write_text("")
    registered(replace(toy, environment=replace(toy.environment)), monkeypatch)
    built = create_environment(replace(toy.environment))
    assert lines() == {f"environment toy: Python {built.python_version}, {built.folder}": True}
    again = "; run: dpaudit env remove toy, then env create"
    built.python.unlink()
    interpreter(built.folder / "bin", "python", 'echo \'{"python": "3.99.1"}\'')
    now = f"environment toy: {built.python} is Python 3.99.1 now{again}"
    assert lines() == {now: False}
    interpreter(built.folder / "bin", "python", "exit 1")
    assert lines() == {f"environment toy: {built.python} does not run{again}": False}
    toy.environment.pins.write_text("what?\n")
    registered(replace(toy, environment=replace(toy.environment)), monkeypatch)
    [(said, good)] = lines().items()
    assert not good
    assert "'what?' is not a pin" in said
