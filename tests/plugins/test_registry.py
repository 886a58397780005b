"""Names of generators and attacks: what they stand for, and what is said where they do not."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import cloudpickle
import pytest

import dpaudit.plugins.registry as registry
from dpaudit.errors import ClaimError, MissingExtraError, RegistryError
from dpaudit.formatting import did_you_mean
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.registry import (
    ATTACKS,
    GENERATORS,
    build,
    carry,
    names,
    parse_parameters,
    plugins,
    resolve,
)


@dataclass
class Settings:
    size: int
    rate: float = 0.5
    schema: object = None


class Anything:
    def __init__(self, **settings: object) -> None:
        self.settings = settings


class Fussy:
    def __init__(self, size: int = 1) -> None:
        if size < 0:
            raise ClaimError("its own words")
        raise ValueError("no\nsize\nfits")


def function(data: object, n: int, seed: int) -> object:
    return data


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of good and broken plugins."""
    group = GENERATORS
    here = [
        EntryPoint("settings", "collections:Counter", group),
        EntryPoint("broken", "dpaudit_no_such_package:Thing", group),
        EntryPoint("attribute", "json:nothing", group),
    ]

    def entry_points(**selected: str) -> EntryPoints:
        return EntryPoints(here).select(**selected)

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_our_own_are_registered_and_all_load() -> None:
    assert {"null", "copycat", "pate-gan"} <= set(names(GENERATORS))
    assert {"groundhog", "query-target"} <= set(names(ATTACKS))
    for group in (GENERATORS, ATTACKS):
        assert list(plugins(group)) == names(group)
        for name, value in plugins(group).items():
            assert resolve(name, group) is value


@pytest.mark.usefixtures("entries")
def test_a_broken_plugin_is_a_warning_in_lists_and_an_error_by_name() -> None:
    with pytest.warns(UserWarning, match="left out") as caught:
        found = plugins(GENERATORS)
    assert list(found) == ["settings"]
    assert {"broken", "attribute"} == {str(w.message).split("'")[1] for w in caught}
    with pytest.raises(RegistryError, match=r"'broken' \(dpaudit_no_such_package:Thing\) fails"):
        resolve("broken", GENERATORS)
    assert names(ATTACKS) == []


THEIRS = {
    "METADATA": """Name: Theirs
Version: 1
Provides-Extra: gpu
Requires-Dist: no-such-base
Requires-Dist: no-such-package>=1; extra == 'gpu'
Provides-Extra: there
Requires-Dist: numpy; extra == 'there'
Requires-Dist: no-such-backport; python_version < '3' and extra == 'there'
""",
    "entry_points.txt": """[dpaudit.generators]
lazy = fractions:Fraction [gpu]
eager = dpaudit_no_such_package:Thing [gpu]
ready = collections:Counter [there]
""",
}


def test_a_plugin_is_found_when_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert "ready" not in names(GENERATORS)
    (tmp_path / "new").mkdir()
    for name, text in THEIRS.items():
        (tmp_path / "new" / name).write_text(text)
    (tmp_path / "new").rename(tmp_path / "theirs-1.dist-info")
    assert "ready" in names(GENERATORS)


def test_an_entry_point_names_the_extra_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs-1.dist-info").mkdir()
    for name, text in THEIRS.items():
        (tmp_path / "theirs-1.dist-info" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    says = r"needs no-such-package. Install: pip install 'Theirs\[gpu\]'"
    assert resolve("lazy", GENERATORS) is Fraction
    for name in ("lazy", "eager", "fractions:Fraction"):
        with pytest.raises(MissingExtraError, match=f"generator '(lazy|eager)' {says}"):
            build(name, GENERATORS, given={}, offered={})
    with pytest.raises(MissingExtraError, match=f"generator 'eager' {says}"):
        resolve("eager", GENERATORS)
    with pytest.raises(MissingExtraError, match=f"generator 'lazy' {says}"):
        named_generator(Fraction(1), {}, {})
    with pytest.warns(UserWarning, match=f"generator 'eager' {says}"):
        found = plugins(GENERATORS)
    assert found["lazy"] is Fraction
    assert "eager" not in found
    assert build("ready", GENERATORS, given={}, offered={}) == Counter()


def test_an_unknown_name_suggests_and_lists() -> None:
    with pytest.raises(RegistryError) as caught:
        resolve("copy-cat", GENERATORS)
    message = str(caught.value)
    assert message.startswith("unknown generator 'copy-cat'")
    assert "did you mean 'copycat'?" in message
    assert "null" in message
    assert "path/to/file.py:attr" in message
    with pytest.raises(RegistryError, match="unknown attack 'zzz'"):
        resolve("zzz", ATTACKS)


def test_did_you_mean_is_silent_where_nothing_is_close() -> None:
    assert did_you_mean("zzz", ["alpha", "beta"]) == ""
    assert "'alpha'" in did_you_mean("alhpa", ["alpha", "beta"])


def test_module_and_attribute() -> None:
    assert resolve("json:dumps", GENERATORS) is __import__("json").dumps
    with pytest.raises(RegistryError, match=r"json has no 'dupms'.*did you mean 'dumps'"):
        resolve("json:dupms", GENERATORS)
    for name in ("no_such_module:x", "json.no_such:x"):
        with pytest.raises(RegistryError, match="no module"):
            resolve(name, GENERATORS)
    for name in (":x", ".relative:x", "json:", "json"):
        with pytest.raises(RegistryError):
            resolve(name, GENERATORS)


def test_a_module_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_in_this_folder.py").write_text("answer = 42\n")
    (tmp_path / "lacks_something.py").write_text("import no_such_library\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    assert resolve("only_in_this_folder:answer", GENERATORS) == 42
    with pytest.raises(RegistryError, match=r"importing lacks_something fails.*no_such_library"):
        resolve("lacks_something:x", GENERATORS)


FILE = """
from __future__ import annotations
from dataclasses import dataclass
import helper
from pack import inner

@dataclass
class Thing:
    size: int = {size}
    def total(self):
        return self.size + helper.extra() + inner.VALUE
"""


def project(folder: Path, *, size: int) -> Path:
    (folder / "pack").mkdir(parents=True)
    (folder / "thing.py").write_text(FILE.format(size=size))
    (folder / "helper.py").write_text(f"def extra():\n    return {size}\n")
    (folder / "pack" / "__init__.py").write_text("")
    (folder / "pack" / "inner.py").write_text(f"VALUE = {size}\n")
    return folder / "thing.py"


def test_files_of_one_name_keep_apart_with_the_files_beside_them(tmp_path: Path) -> None:
    before = list(sys.path)
    first = resolve(f"{project(tmp_path / 'a', size=1)}:Thing", GENERATORS)
    second = resolve(f"{project(tmp_path / 'b', size=10)}:Thing", GENERATORS)
    assert (first().total(), second().total()) == (3, 30)
    assert sys.path == before
    assert not {"thing", "helper", "pack", "pack.inner"} & set(sys.modules)


def test_what_a_file_defines_travels_to_a_worker(tmp_path: Path) -> None:
    thing = resolve(f"{project(tmp_path / 'a', size=2)}:Thing", GENERATORS)
    blob = tmp_path / "blob"
    blob.write_bytes(cloudpickle.dumps(thing(5)))
    code = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).total())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(blob)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == "9"


def test_a_file_named_like_a_library_module_hides_nothing(tmp_path: Path) -> None:
    import json

    (tmp_path / "json.py").write_text("def mine(): return 'mine'\n")
    assert resolve(f"{tmp_path / 'json.py'}:mine", GENERATORS)() == "mine"
    assert sys.modules["json"] is json
    assert pickle.loads(cloudpickle.dumps(json.dumps)) is json.dumps


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import no_such_library", "no_such_library"),
        ("def broken(:", "SyntaxError"),
        ("import sys; sys.exit('usage: ...')", "SystemExit"),
        ("raise ValueError('two\\nlines')", r"ValueError at mine\.py:1 in <module>: two lines"),
    ],
)
def test_a_file_that_does_not_import_says_why_and_leaves_no_trace(
    tmp_path: Path, code: str, says: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    loaded, search = set(sys.modules), list(sys.path)
    with pytest.raises(RegistryError, match=says) as caught:
        resolve(f"{path}:x", GENERATORS)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sys.path == search
    assert not any("mine" in key for key in set(sys.modules) - loaded)


def test_a_file_or_an_attribute_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="no file"):
        resolve(f"{tmp_path}/none.py:x", GENERATORS)
    (tmp_path / "mine.py").write_text("class Generator: pass\n")
    with pytest.raises(RegistryError, match=r"has no 'Nothing'; it defines Generator$"):
        resolve(f"{tmp_path}/mine.py:Nothing", GENERATORS)
    with pytest.raises(RegistryError, match=r"has no 'Genrator'.*did you mean 'Generator'"):
        resolve(f"{tmp_path}/mine.py:Genrator", GENERATORS)


def built(value: object, monkeypatch: pytest.MonkeyPatch, **given: object) -> object:
    monkeypatch.setattr(registry, "resolve", lambda name, group: value)
    return build("it", GENERATORS, given=given, offered={"schema": "public", "target": "t"})


def test_build_hands_over_what_is_given_and_what_has_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert built(Settings, monkeypatch, size=3) == Settings(3, 0.5, "public")
    assert built(Settings, monkeypatch, size=3, schema="own") == Settings(3, 0.5, "own")
    anything = built(Anything, monkeypatch, size=3)
    assert isinstance(anything, Anything)
    assert anything.settings == {"size": 3}
    assert built(function, monkeypatch) is function
    ready = Settings(1)
    assert built(ready, monkeypatch) is ready


@pytest.mark.parametrize(
    ("value", "given", "says"),
    [
        (Settings, {"size": 1, "raet": 2}, "no parameter 'raet'.*did you mean 'rate'"),
        (Settings, {"size": 1, "zzz": 2}, "It takes: size, rate, schema"),
        (Settings, {"size": "abc"}, "^parameter 'size' of it is 'abc': it takes a whole number$"),
        (Settings, {"size": 1, "rate": ""}, "^parameter 'rate' of it is '': it takes a number$"),
        (Settings, {}, "needs the parameter 'size': give -p size="),
        (
            Fussy,
            {},
            r"cannot be built: ValueError at test_registry\.py:\d+ in __init__: no size fits",
        ),
        (function, {"size": 1}, "is not a class: it takes no parameters"),
        (dict, {}, "signature"),
    ],
)
def test_build_refuses(
    value: object, given: dict, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RegistryError, match=says) as caught:
        built(value, monkeypatch, **given)
    assert "\n" not in str(caught.value)


def test_build_lets_our_own_errors_through(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClaimError, match="its own words"):
        built(Fussy, monkeypatch, size=-1)


def test_parses_parameters() -> None:
    pairs = ["a=1", "b-c=0.5", "d=true", "e=[1, 2]", "f=text", "g=", "h=x=y", 'i="1"', "j=null"]
    assert parse_parameters(pairs) == {
        "a": 1,
        "b_c": 0.5,
        "d": True,
        "e": [1, 2],
        "f": "text",
        "g": "",
        "h": "x=y",
        "i": "1",
        "j": None,
    }
    assert parse_parameters([]) == {}


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (["a"], "key=value"),
        (["=1"], "key=value"),
        ([""], "key=value"),
        (["a-b=1", "a_b=2"], "twice"),
    ],
)
def test_refuses_malformed_parameters(pairs: list[str], says: str) -> None:
    with pytest.raises(RegistryError, match=says):
        parse_parameters(pairs)


def test_what_a_test_module_defines_travels_by_value() -> None:
    carry(Anything(size=1))
    blob = cloudpickle.dumps(Anything(size=1))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).settings)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=blob, capture_output=True, check=True, cwd="/"
    )
    assert done.stdout.decode().strip() == "{'size': 1}"


def test_a_relative_import_of_a_file_is_answered_with_the_name_of_its_module(
    tmp_path: Path,
) -> None:
    file = tmp_path / "package" / "gan.py"
    file.parent.mkdir()
    file.write_text("from . import layers\n")
    with pytest.raises(
        RegistryError, match=r"name the generator package\.gan:NAME, from the folder"
    ):
        registry.resolve(f"{file}:Gan", registry.GENERATORS)
