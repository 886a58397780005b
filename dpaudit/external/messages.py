"""The messages of `dpaudit-worker/1`, and what a worker may answer.

One JSON object per line. dpaudit asks `hello` once and then `synthesize` for each shadow model; a
worker answers each in turn. docs/worker-protocol.md is the page for authors of workers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dpaudit.errors import ClaimError, TrialError
from dpaudit.files import parse_json
from dpaudit.formatting import clipped, one_line
from dpaudit.model.claim import Neighbours, PrivacyClaim

PREFIX: Final = "worker:"
FRESH_PREFIX: Final = "fresh-worker:"
"""What names of generators begin with that are commands of workers."""
PROTOCOL: Final = "dpaudit-worker/1"
CSV: Final = "csv"
ARROW: Final = "arrow"
FORMATS: Final = (CSV, ARROW)
FILE: Final = "dpaudit: the file as it was written"
"""The attribute of a table that was read from a file: its bytes."""
MOST_LINE: Final = 2**20
"""Bytes of an answer, at most."""
_SHOWN: Final = 200


class WorkerError(TrialError):
    """A worker process did not answer as the protocol says."""


class SynthesisError(TrialError):
    """A worker answered that it could not synthesize; it goes on.

    Args:
        answer: What it answered.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        place, message = answer.get("at"), clipped(one_line(str(answer.get("message", ""))), _SHOWN)
        at = f" at {place}" if place else ""
        super().__init__(clipped(one_line(f"{answer.get('error')}{at}"), _SHOWN), message)
        if "traceback" in answer:
            self.add_note(str(answer["traceback"]))


class Hello(NamedTuple):
    """A worker's description of itself.

    Attributes:
        name: What it calls its generator.
        claim: What the generator promises; None if nothing.
        seedable: Whether the same seed gives the same bytes.
        formats: Formats of tables that it reads and writes, CSV among them.
    """

    name: str
    claim: PrivacyClaim | None
    seedable: bool
    formats: tuple[str, ...]


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent."""
    return json.dumps(message, allow_nan=False).encode() + b"\n"


def answer_of(line: bytes) -> dict[str, Any]:
    """A line from a worker as a message.

    Raises:
        WorkerError: If it is no JSON object.
    """
    try:
        answer = parse_json(line.decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        shown = clipped(one_line(line.decode("utf-8", "replace")), _SHOWN)
        raise WorkerError(
            "the worker answered no JSON object: print to standard error, never to standard output",
            repr(shown),
        )
    return answer


def hello_of(answer: Mapping[str, Any]) -> Hello:
    """Reads what a worker says of itself.

    Raises:
        WorkerError: If it is not as the protocol says; says what is wrong.
    """
    if "error" in answer:
        raise WorkerError(f"the worker does not start: {_said(answer)}")
    if answer.get("protocol") != PROTOCOL:
        shown = clipped(repr(answer.get("protocol")), _SHOWN)
        raise WorkerError(f"the worker speaks {shown}, not {PROTOCOL!r}")
    name, seedable = answer.get("name"), answer.get("seedable", True)
    formats = answer.get("formats", [CSV])
    if not isinstance(name, str) or not isinstance(seedable, bool):
        raise WorkerError("the worker's hello needs a text `name` and a true or false `seedable`")
    if not isinstance(formats, list) or CSV not in formats:
        raise WorkerError(f"the worker's hello must list {CSV!r} among its `formats`")
    known = tuple(one for one in FORMATS if one in formats)
    return Hello(one_line(name), _claim(answer.get("claim"), one_line(name)), seedable, known)


def check_answer(answer: Mapping[str, Any], request: int) -> None:
    """Checks the answer to a request to synthesize.

    Raises:
        SynthesisError: If the worker says that it failed.
        WorkerError: If it answers another request, or neither that it is done nor that it failed.
    """
    if answer.get("id") != request:
        shown = clipped(repr(answer.get("id")), _SHOWN)
        raise WorkerError(f"the worker answered request {shown} instead of {request}")
    if "error" in answer:
        raise SynthesisError(answer)
    if answer.get("done") is not True:
        raise WorkerError('the worker answered neither "done": true nor an "error"')


def _said(answer: Mapping[str, Any]) -> str:
    return str(SynthesisError(answer))


_OF_CLAIMS: Final = frozenset(("epsilon", "delta", "neighbours", "unit"))


def _claim(stated: object, name: str) -> PrivacyClaim | None:
    if stated is None:
        return None
    if not isinstance(stated, dict) or not set(stated) <= _OF_CLAIMS:
        raise WorkerError(
            "the worker's claim must have `epsilon`, `delta`, `neighbours` and `unit` alone"
        )
    if not isinstance(stated.get("unit"), str | None):
        raise WorkerError("the worker's claim must have a column name as `unit`, or none")
    try:
        return PrivacyClaim(
            epsilon=stated["epsilon"],
            delta=stated.get("delta", 0.0),
            neighbours=Neighbours(stated.get("neighbours", Neighbours.ADD_REMOVE)),
            source=f"said by the worker of {name}",
            unit=stated.get("unit"),
        )
    except (ClaimError, KeyError, ValueError, TypeError) as error:
        raise WorkerError(f"the worker's claim has no meaning: {error}") from None
