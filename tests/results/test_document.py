"""Results as documents and back: nothing is lost, nothing is added."""

from __future__ import annotations

import functools
import importlib
import json
import operator
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import AuditResult, Verdict
from dpaudit.bounds import CoinGuesses, Counts
from dpaudit.comparison import ComparedRun, Comparison, Reference
from dpaudit.errors import InputError
from dpaudit.model.claim import (
    ConcentratedClaim,
    CurveClaim,
    DeltaClaim,
    GaussianClaim,
    Neighbours,
    NoClaim,
    PrivacyClaim,
)
from dpaudit.results.document import Document, from_document, to_document
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import result_schema

REPORTS = Path(__file__).parents[2] / "reports"
COMMITTED = sorted(REPORTS.rglob("result.json"))


def test_there_are_committed_results() -> None:
    assert len(COMMITTED) >= 5


def without_later_keys(written: Any, document: Any) -> Any:
    """What was written, less the keys that the document did not have; those must be null."""
    if isinstance(written, list):
        pairs = zip(written, document, strict=True)
        return [without_later_keys(*pair) for pair in pairs]
    if not isinstance(written, dict):
        return written
    assert all(item is None for key, item in written.items() if key not in document)
    kept = {key: item for key, item in written.items() if key in document}
    return {key: without_later_keys(item, document[key]) for key, item in kept.items()}


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.parent.name)
def test_a_committed_result_is_read_and_written_byte_by_byte_but_for_later_keys(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    document = json.loads(text)
    assert next(iter(document)) == "schema_version"
    written = AuditResult.load(file).to_document()
    jsonschema.validate(written, result_schema())
    again = without_later_keys(written, document)
    assert json.dumps(again, indent=2, allow_nan=False) + "\n" == text


@pytest.mark.parametrize(
    "place",
    [
        ("proved",),
        ("bounds", "one_run"),
        ("attacks", 0, "bounds", "exact"),
        ("game", "sequential"),
    ],
)
def test_a_key_that_came_later_is_read_as_null(
    place: tuple[Any, ...], example: dict[str, Any], tmp_path: Path
) -> None:
    example["verdict"] = "invalid"
    *inside, key = place
    part = functools.reduce(operator.getitem, inside, example)
    del part[key]
    (tmp_path / "result.json").write_text(json.dumps(example), encoding="utf-8")
    written = AuditResult.load(tmp_path).to_document()
    assert functools.reduce(operator.getitem, place, written) is None
    part[key] = None
    assert written == example


def test_the_folder_is_not_in_the_document(example: dict[str, Any]) -> None:
    result = AuditResult.of(from_document(AuditRecord, example), folder=Path("run"))
    assert result.to_document() == example
    assert list(result.to_document()) == list(example)


def test_a_target_that_was_named_has_no_selection(
    example: dict[str, Any], record_of: Callable[..., AuditRecord]
) -> None:
    assert "selection" not in to_document(record_of())["target"]
    selection = {"candidates": 64, "trainings": 400}
    target = {"choice": "vulnerable", "row": 1, "selection": selection}
    assert to_document(record_of(target=target))["target"] == target


def test_numbers_have_the_type_of_their_field(example: dict[str, Any]) -> None:
    record = from_document(AuditRecord, {**example, "rows": 686.0, "seconds": 151})
    assert (type(record.rows), record.rows) == (int, 686)
    assert (type(record.seconds), record.seconds) == (float, 151.0)


counts = st.tuples(st.integers(1, 500), st.integers(1, 500)).flatmap(
    lambda n: st.builds(
        Counts, st.integers(0, n[0]), st.integers(0, n[1]), st.just(n[0]), st.just(n[1])
    )
)
guesses = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), max_size=8).map(
    lambda counts: CoinGuesses(
        tuple(right for right, _ in counts),
        tuple(right + wrong for right, wrong in counts),
        1 + sum(right + wrong for right, wrong in counts),
    )
)
claims = st.builds(
    PrivacyClaim,
    epsilon=st.floats(1e-6, 1e6),
    delta=st.floats(0, 0.999),
    neighbours=st.sampled_from(Neighbours),
    source=st.text(),
)
said = {"neighbours": st.sampled_from(Neighbours), "source": st.text()}
levels = st.floats(1e-6, 1e6)
points = st.lists(
    st.tuples(levels, st.floats(0, 0.999)), min_size=1, max_size=3, unique_by=lambda of: of[0]
)
undecided = st.sampled_from([Verdict.INCONCLUSIVE, Verdict.INVALID])
"""The verdicts that need no numbers."""
BY_HAND: dict[Any, st.SearchStrategy[Any]] = {
    Counts: counts,
    CoinGuesses: guesses,
    PrivacyClaim: claims,
    NoClaim: st.builds(NoClaim, delta=st.floats(0, 0.999), **said),
    GaussianClaim: st.builds(GaussianClaim, mu=levels, **said),
    DeltaClaim: claims.map(DeltaClaim.of),
    ConcentratedClaim: st.builds(ConcentratedClaim, rho=levels, **said),
    CurveClaim: st.builds(CurveClaim, points=points, **said),
    Verdict: undecided,
    Any: st.none() | st.booleans() | st.integers() | st.text(),
    str: st.text(),
    bool: st.booleans(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that the result is made of, whatever its numbers mean."""
    limits: Any = None
    if typing.get_origin(kind) is typing.Annotated:
        kind, limits = typing.get_args(kind)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in BY_HAND:
        return BY_HAND[kind]
    if kind in (int, float):
        low, high = (limits.minimum, limits.maximum) if limits else (None, None)
        if kind is int:
            return st.integers(low, high)
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(st.none() if one is type(None) else values(one) for one in inner))
    if origin is typing.Literal:
        return st.sampled_from(inner)
    if origin is tuple:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is Mapping:
        key, value = inner
        if issubclass(key, Enum):
            return st.fixed_dictionaries({one: values(value) for one in key})
        return st.dictionaries(st.text(), values(value), max_size=3)
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    hints = typing.get_type_hints(kind, include_extras=True)
    names = [one.name for one in fields(kind)] if is_dataclass(kind) else kind._fields
    return st.builds(kind, **{name: values(hints[name]) for name in names})


RECORDS = values(AuditRecord)
FITS = jsonschema.Draft202012Validator(result_schema())


@given(RECORDS)
@settings(max_examples=40)
def test_any_record_comes_back_from_its_document(record: AuditRecord) -> None:
    document = AuditResult.of(record, folder=None).to_document()
    text = json.dumps(document, allow_nan=False)
    FITS.validate(json.loads(text))
    again = from_document(AuditRecord, json.loads(text))
    assert again == record
    assert repr(again) == repr(record)  # the same types, to the enumerations within


HOMES = (
    *("comparison", "explain.explanation", "labels.audit"),
    *("probe.run", "released_data.result", "replaying.record", "results.record"),
    "searching.record",
    *("trace.run", "usefulness.report", "auditing.plan"),
    *("evidence.pack", "bugs.run"),
    *("results.accounts", "results.recomputed"),
)
DOCUMENTS = [
    kind
    for home in HOMES
    for kind in vars(importlib.import_module(f"dpaudit.{home}")).values()
    if isinstance(kind, type) and issubclass(kind, Document) and kind.__module__.endswith(home)
]


def test_every_document_of_the_package_is_among_those_tested() -> None:
    package = Path(dpaudit.__file__).parent
    written = {
        name
        for file in package.rglob("*.py")
        for name in re.findall(r"^class (\w+)\(Document\):", file.read_text("utf-8"), re.MULTILINE)
    }
    assert {kind.__name__ for kind in DOCUMENTS} == written
    assert len(written) == len(DOCUMENTS)


BY_HAND_DOCUMENTS = {
    Comparison: st.builds(
        Comparison,
        reference=values(Reference),
        verdict=undecided,
        runs=st.lists(
            values(ComparedRun), min_size=2, max_size=2, unique_by=lambda one: one.name
        ).map(tuple),
        changes=st.just(()),
    )
}


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.__name__)
def test_what_a_command_writes_is_read_back(kind: type[Document], tmp_path: Path) -> None:
    file = tmp_path / "written.json"
    records = BY_HAND_DOCUMENTS[kind] if kind in BY_HAND_DOCUMENTS else values(kind)

    @given(records)
    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    def comes_back(record: Document) -> None:
        file.write_text(record.to_json(), encoding="utf-8")
        assert kind.load(file) == record

    comes_back()
    wrong = json.loads(file.read_text("utf-8"))
    for change, message in ((None, "has schema_version"), ({"x": 1}, "is not .*'x'")):
        file.write_text(json.dumps(wrong | change if change else {}), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            kind.load(file)
    with pytest.raises(InputError, match="no result at"):
        kind.load(tmp_path / "none.json")
