"""What a fitted model releases: a walk that misses nothing that can be compared."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.replaying.listening import marks, observe
from dpaudit.replaying.listening.world import FitOrder


@contextmanager
def _hushed() -> Iterator[None]:
    yield


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Observes a model, and returns numbers, digests, left out places and generators."""

    def look(model: Any, table: Any = None, samples: Any = ()) -> Any:
        world: Any = SimpleNamespace(
            order=FitOrder(samples=samples, watch_state=True),
            hushed=_hushed,
            release_seen=None,
            seeds=set(),
        )
        monkeypatch.setattr(marks, "world", world)
        monkeypatch.setattr(marks, "end_marks", lambda value, *_: value)
        observe.observe(model, pd.DataFrame({"a": [1.0]}) if table is None else table)
        return SimpleNamespace(**world.release_seen)

    return look


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Holder:
    """A model that holds something."""

    held: Any

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        if n > 50:
            raise ValueError("too many")
        return pd.DataFrame({"a": [seed] * n})


def closure_of(value: Any) -> Any:
    return lambda: value


def default_of(value: Any) -> Any:
    def function(given: Any = value) -> Any:
        return given

    return function


class Counts(dict[str, float]):
    """A dictionary with an attribute."""

    def __init__(self, records: float) -> None:
        super().__init__(a=0.0)
        self.records = records


class Sums(list[float]):
    """A list with an attribute."""

    def __init__(self, records: float) -> None:
        super().__init__([0.0])
        self.records = records


def keyword_default_of(value: Any) -> Any:
    def function(*, given: Any = value) -> Any:
        return given

    return function


def function_with(value: Any) -> Any:
    def function() -> None: ...

    vars(function)["cache"] = value
    return function


def frame_with_attributes(value: float) -> Any:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["n"] = value
    return frame


def level_of(value: float) -> Any:
    return pd.Categorical(["a"], categories=["a", f"{value}"])


HELD = {
    "number": (lambda one: one, "model.held"),
    "numpy number": (np.float64, "model.held"),
    "string": (lambda one: f"count {one}", "model.held"),
    "bytes": (lambda one: str(one).encode(), "model.held"),
    "list": (lambda one: [0.0, one], "model.held"),
    "mixed list": (lambda one: ["a", one], "model.held[1]"),
    "tuple of lists": (lambda one: ([1.0], [one]), "model.held[1]"),
    "dict": (lambda one: {"age": one}, "model.held['age']"),
    "keys": (lambda one: {one: 0.0}, "the keys of model.held"),
    "set": (lambda one: {one, "b"}, "model.held"),
    "array": (lambda one: np.array([0.0, one]), "model.held"),
    "array of objects": (lambda one: np.array(["a", one], dtype=object), "model.held"),
    "dates": (
        lambda one: np.array([int(one * 1e6)], dtype="datetime64[s]"),
        "model.held",
    ),
    "frame": (lambda one: pd.DataFrame({"a": [one]}), "model.held['a']"),
    "index": (lambda one: pd.DataFrame({"a": [1]}, index=[one]), "the index of model.held"),
    "series": (lambda one: pd.Series([one]), "model.held"),
    "slots": (Slotted, "model.held.value"),
    "object": (Holder, "model.held.held"),
    "closure": (closure_of, "what model.held closes over (0)"),
    "default": (default_of, "defaults of model.held[0]"),
    "type": (lambda one: np.array([1, 2], dtype=np.int64 if one > 1 else np.int32), "model.held"),
    "length": (lambda one: ["a"] * int(one), "the length of model.held"),
    "attribute of a dict": (Counts, "model.held.records"),
    "attribute of a list": (Sums, "model.held.records"),
    "order of keys": (
        lambda one: dict.fromkeys("ab" if one > 1 else "ba"),
        "the order of the keys of model.held",
    ),
    "mask": (lambda one: np.ma.array([1.0, 2.0], mask=[one > 1, False]), "model.held._mask"),
    "method": (lambda one: Holder(one).sample, "what model.held is a method of.held"),
    "method in C": (lambda one: {"n": one}.get, "what model.held is a method of['n']"),
    "keyword default": (keyword_default_of, "defaults of model.held['given']"),
    "attribute of a function": (function_with, "model.held.cache"),
    "partial": (
        lambda one: functools.partial(lambda given: given, one),
        "the content of model.held[1][1][0]",
    ),
    "deque": (lambda one: deque([one]), "the content of model.held[2][0]"),
    "frame's attributes": (frame_with_attributes, "model.held.attrs['n']"),
    "order of columns": (
        lambda one: pd.DataFrame([[1, 1]], columns=list("ab" if one > 1 else "ba")),
        "the names and types of model.held",
    ),
    "name of a column": (
        lambda one: pd.Series([1.0], name=f"of {one}"),
        "the names and types of model.held",
    ),
    "categories": (level_of, "the names and types of model.held"),
    "categories of a column": (
        lambda one: pd.Series(level_of(one)),
        "the names and types of model.held",
    ),
    "levels": (
        lambda one: pd.MultiIndex.from_product([[0.0, one], [1]])[:1],
        "the names and types of model.held",
    ),
}


@pytest.mark.parametrize("kind", HELD)
def test_whatever_holds_data_differs_at_a_place_that_is_named(seen: Any, kind: str) -> None:
    make, place = HELD[kind]
    first, second = (seen(Holder(make(one))).digests for one in (1.0, 2.0))
    again = seen(Holder(make(1.0))).digests
    assert first == again
    differing = {one for one in {*first, *second} if first.get(one) != second.get(one)}
    assert place in differing or place.removesuffix("[0]") in differing, differing


def test_one_bit_of_a_number_is_a_difference(seen: Any) -> None:
    one, other = seen(Holder(1.0)), seen(Holder(np.nextafter(1.0, 2.0)))
    assert one.digests["model.held"] != other.digests["model.held"]


def test_numbers_are_kept_by_place(seen: Any) -> None:
    found = seen(Holder({"age": np.arange(6.0).reshape(2, 3), "n": 7, "on": True})).numbers
    assert found["model.held['age']"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert found["model.held['n']"].tolist() == [7.0]
    assert found["model.held['on']"].tolist() == [1.0]


def test_generators_are_named_and_not_compared(seen: Any) -> None:
    import random

    held = [np.random.default_rng(1), np.random.RandomState(1), random.Random(1)]
    found = seen(Holder(held))
    assert found.generators == [f"model.held[{at}]" for at in range(3)]


def test_what_cannot_be_seen_into_is_left_out(seen: Any) -> None:
    assert seen(Holder(threading.Lock())).left_out == ["model.held"]
    deep: Any = "a"
    for _ in range(12):
        deep = [deep]
    [place] = seen(Holder(deep)).left_out
    assert place.startswith("model.held[0][0]")


@pytest.mark.parametrize("held", [["a"] * 6000, [np.zeros(150_000), np.zeros(150_000)]])
def test_what_is_beyond_the_largest_number_is_said_to_be_left_out(seen: Any, held: Any) -> None:
    found = seen(Holder([*held, {"n": 1.0}]))
    assert found.left_out
    assert len(found.left_out) <= 20


def test_values_of_long_keys_that_begin_alike_are_all_compared(seen: Any) -> None:
    def digests(first: float) -> Any:
        return seen(Holder({"k" * 300 + "1": first, "k" * 300 + "2": 0.0})).digests

    assert digests(1.0) != digests(2.0)


class DeviceArray:
    """An array of another library, whose slots do not apply to it."""

    __slots__ = ("__weakref__", "values")

    dtype = np.dtype(float)

    def __init__(self, value: Any) -> None:
        self.values = [value]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype or float)


class Unreadable:
    """An object of which nothing can be read."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("closed")


def test_arrays_of_other_libraries_are_numbers_and_what_cannot_be_read_is_named(seen: Any) -> None:
    release = seen(Holder([DeviceArray(2.5), Unreadable(), 7]))
    assert release.numbers["model.held[0]"].tolist() == [2.5]
    assert release.left_out == ["model.held[1]"]
    assert release.numbers["model.held[2]"].tolist() == [7.0]


def test_a_model_that_holds_itself_ends(seen: Any) -> None:
    model = Holder([])
    model.held.append(model)
    assert "the length of model.held" in seen(model).digests


def test_functions_of_modules_are_code(seen: Any) -> None:
    found = seen(Holder([np.clip, closure_of, len, functools.partial(np.clip, a_min=0)]))
    assert not found.left_out
    assert not found.generators


def test_schemas_and_claims_are_public(seen: Any) -> None:
    assert set(seen(Holder(dpaudit.PrivacyClaim(epsilon=1.0))).digests) == {"rows"}


def test_rows_of_a_table_of_several_and_of_records(seen: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})
    found = seen(None, frame)
    assert found.numbers["rows"].tolist() == [1.0, 2.0, 0.5, 1.5]
    assert seen(None, frame.assign(b=["x", "z"])).digests != found.digests
    several = seen(None, {"p": frame, "v": frame})
    assert set(several.digests) == {"rows of p", "rows of v"}
    assert set(seen(None, [{"a": 1}]).digests) == {"rows"}


def test_further_samples_are_compared_and_so_is_their_failure(seen: Any) -> None:
    found = seen(Holder(1.0), samples=[(3, 7), (87, 8)])
    assert found.numbers["3 rows"].tolist() == [7.0, 7.0, 7.0]
    assert "the failure to draw 87 rows" in found.digests


def test_rows_with_another_index_or_other_attributes_differ(seen: Any) -> None:
    table = pd.DataFrame({"a": [1.0, 2.0]})
    moved = table.set_axis([1, 2])
    noted = table.copy()
    noted.attrs["records"] = 40
    more = table.astype({"a": "category"}).assign(a=lambda t: t["a"].cat.add_categories([40.0]))
    tables = (table, moved, noted, more, table.astype({"a": "category"}))
    assert len({seen(None, table=one).digests["rows"] for one in tables}) == len(tables)
