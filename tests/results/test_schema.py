"""The JSON Schema of `result.json`, made from the types of the result."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from dpaudit.bounds.table import ValidBound
from dpaudit.results.document import is_record, schema_of
from dpaudit.results.record import AuditRecord
from dpaudit.results.result import AuditResult, result_schema

NAMES = [field.name for field in fields(AuditRecord)]
OPTIONAL = {"access", "date", "detectable_gaussian", "fresh", "probes", "proved_without_bits"}
OPTIONAL |= {"reach", "replay"}
"""Absent where it is not known, or where none was run."""

FITS = jsonschema.Draft202012Validator(result_schema())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(result_schema())


def test_every_schema_is_a_fresh_one() -> None:
    result_schema()["properties"].clear()
    assert result_schema()["properties"]


def test_its_keys_are_the_fields_of_the_result_in_order() -> None:
    assert list(result_schema()["properties"]) == ["schema_version", *NAMES]


def test_the_example_and_an_audit_that_never_ran_fit(
    example: dict[str, Any], never_run: AuditRecord
) -> None:
    FITS.validate(example)
    FITS.validate(AuditResult.of(never_run, folder=None).to_document())


@pytest.mark.parametrize("key", ["schema_version", *(n for n in NAMES if n not in OPTIONAL)])
def test_every_key_is_required(key: str, example: dict[str, Any]) -> None:
    del example[key]
    with pytest.raises(jsonschema.ValidationError, match=f"'{key}' is a required property"):
        FITS.validate(example)


NO_BOUNDS = dict.fromkeys(key.value for key in ValidBound)
CLAIM = {"epsilon": 1.0, "delta": 1e-05, "neighbours": "add-remove", "source": "the vendor"}
COUNTS = {"false_negatives": 3, "false_positives": 1, "n_in": 120, "n_out": 120}


@pytest.mark.parametrize(
    "change",
    [
        {"surprise": 1},
        {"verdict": "private"},
        {"schema_version": 1},
        {"bounds": {**NO_BOUNDS, "exact": -1.0}},
        {"bounds": {"exact": 1.0}},
        {"claim": {**CLAIM, "epsilon": "inf"}},
        {"threshold": {"value": 0.5, "direction": "sideways"}},
        {"scores": {"in": ["high"], "out": [0.5]}},
        {"counts": {**COUNTS, "true_negatives": 1}},
        {"target": {"choice": "vulnerable", "row": 1, "selection": None}},
    ],
    ids=str,
)
def test_the_schema_refuses(change: dict[str, Any], example: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        FITS.validate({**example, **change})


def test_bounds_have_every_valid_bound_of_the_table_and_no_estimate() -> None:
    bounds = result_schema()["properties"]["bounds"]["oneOf"][1]
    assert bounds["required"] == list(bounds["properties"]) == [key.value for key in ValidBound]


def inner_kinds(kind: Any) -> Iterator[type]:
    """Every dataclass and NamedTuple that a type is made of."""
    if is_record(kind):
        yield kind
        for hint in typing.get_type_hints(kind).values():
            yield from inner_kinds(hint)
    for argument in typing.get_args(kind):
        yield from inner_kinds(argument)


KINDS = {kind.__name__: kind for kind in inner_kinds(AuditRecord)}


def test_the_result_is_made_of_many_types() -> None:
    assert {"AuditRecord", "PrivacyClaim", "Counts", "Threshold", "Check", "Leak"} <= set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_field_is_described(name: str) -> None:
    schema = schema_of(KINDS[name])
    assert schema["description"]
    for key, value in schema["properties"].items():
        assert len(value["description"].split()) > 1, f"{name}.{key}"
        assert not value["description"].endswith(":")
