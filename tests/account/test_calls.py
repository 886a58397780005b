"""Mechanism calls as JSON: what a file may hold, and what the message says of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.account.accountants import Call, CallLaw, Calls, Sampling, calls_of
from dpaudit.errors import InputError

GAUSSIAN = {"law": "gaussian", "scale": 2}


def test_a_list_and_an_object_hold_calls() -> None:
    call = Call(law=CallLaw.GAUSSIAN, scale=2)
    assert calls_of([GAUSSIAN], "f") == Calls((call,))
    whole = {"calls": [GAUSSIAN], "epsilon": 1, "delta": 1e-5}
    assert calls_of(whole, "f") == Calls((call,), 1, 1e-5)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("geometric", CallLaw.DISCRETE_LAPLACE),
        ("discrete-gaussian", CallLaw.DISCRETE_GAUSSIAN),
        ("discrete_laplace", CallLaw.DISCRETE_LAPLACE),
    ],
)
def test_laws_have_other_spellings(name: str, law: CallLaw) -> None:
    assert calls_of([{"law": name, "scale": 2}], "f").calls[0].law is law


def test_randomised_response_has_a_probability() -> None:
    document = [{"law": "randomized-response", "probability": 0.75}]
    [call] = calls_of(document, "f").calls
    assert call == Call(law=CallLaw.RANDOMISED_RESPONSE, probability=0.75)


def test_shuffled_batches_are_named() -> None:
    document = [{**GAUSSIAN, "sampling": "shuffled", "sampling_rate": 0.1}]
    [call] = calls_of(document, "f").calls
    assert call.sampling is Sampling.SHUFFLED
    assert call.batches == 10


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("text", "f has no list of calls"),
        ({"calls": 3}, "f has no list of calls"),
        ([], "f has no calls: give at least one"),
        ({"calls": [GAUSSIAN], "eps": 1}, "f: 'eps' is not one of calls, epsilon, delta"),
        ({"calls": [GAUSSIAN], "delta": "1e-5"}, "f: delta is '1e-5': give a number"),
        ([GAUSSIAN, 3], "f: call 2 is 3: give an object with its law"),
        ([{"scale": 1}], "f: call 1: `law` is missing: give one of gaussian, "),
        ([{**GAUSSIAN, "scal": 1}], "f: call 1: no field 'scal' (did you mean 'scale'?)"),
        ([{"law": "gauss", "scale": 1}], "f: call 1: `law`: 'gauss' is not one of gaussian, "),
        ([{"law": "laplace"}], "f: call 1: `scale` is missing: laplace noise needs it"),
        ([{**GAUSSIAN, "scale": -1}], "f: call 1: `scale` must be a number above 0, got -1"),
        ([{**GAUSSIAN, "scale": "1"}], "f: call 1: `scale` must be a number above 0, got '1'"),
        ([{**GAUSSIAN, "scale": True}], "f: call 1: `scale` must be a number above 0, got True"),
        ([{**GAUSSIAN, "sensitivity": 0}], "f: call 1: `sensitivity` must be a number above 0"),
        (
            [{**GAUSSIAN, "sampling_rate": 2}],
            "f: call 1: `sampling_rate` must be a number in",
        ),
        ([{**GAUSSIAN, "steps": 1.5}], "f: call 1: `steps` must be a whole number of at least 1"),
        (
            [{**GAUSSIAN, "steps": 0}],
            "f: call 1: `steps` must be a whole number of at least 1",
        ),
        ([{**GAUSSIAN, "sampling": "x"}], "f: call 1: `sampling`: 'x' is not one of poisson, "),
        (
            [{**GAUSSIAN, "sampling": "shuffled", "sampling_rate": 0.3}],
            "f: call 1: `sampling` is shuffled, which takes gaussian noise and a `sampling_rate`",
        ),
        (
            [{"law": "exponential", "scale": 1, "sampling_rate": 0.3}],
            "f: call 1: `sampling_rate` is not known for exponential",
        ),
        (
            [{"law": "geometric", "scale": 1, "sensitivity": 1.5}],
            "f: call 1: `sensitivity` is 1.5: discrete laplace noise is for whole numbers",
        ),
        (
            [{"law": "laplace", "scale": 1, "other_scale": 2}],
            "f: call 1: `other_scale` is known for gaussian noise only",
        ),
        (
            [{"law": "randomised response", "probability": 0.3, "categories": 3}],
            "f: call 1: `probability` must be a number in (0.333333, 1), got 0.3: of the true",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(document: Any, words: str) -> None:
    with pytest.raises(InputError) as refused:
        calls_of(document, "f")
    assert str(refused.value).startswith(words)
    assert "\n" not in str(refused.value)
