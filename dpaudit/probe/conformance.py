"""Checks that a worker process follows the protocol, for valid and invalid requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.errors import TrialError
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import WorkerSession, short_session
from dpaudit.model.tables import Table
from dpaudit.plugins.release import accept

ROWS: Final = 20
"""Number of rows requested."""
END_SECONDS: Final = 10.0
"""Seconds for a worker to end after its standard input ends."""
_SEED, _OTHER = 11, 12


class Conformance(NamedTuple):
    """One requirement of the protocol.

    Attributes:
        name: What is required.
        passed: Whether the worker did it.
        detail: What it did instead; empty if it passed.
    """

    name: str
    passed: bool
    detail: str = ""


def check_worker(generator: WorkerGenerator, table: Table) -> Iterator[Conformance]:
    """Checks a worker; each check starts after a successful answer.

    Args:
        generator: The worker, which has said hello.
        table: A table to train on.

    Yields:
        One finding for each requirement, in the order in which they are checked.
    """
    data = table.data
    with short_session(generator.start) as session:
        for name, check in (
            ("it synthesizes the rows that are asked for", partial(_synthesizes, session, data)),
            (
                "the same seed gives the same table, another table in between",
                partial(_repeats, session, data),
            ),
            ("another seed gives another table", partial(_varies, session, data)),
            ("a request it does not know is answered with an error", partial(_unknown, session)),
            ("a table that is not there is answered with an error", partial(_absent, session)),
            ("it serves as before after errors", partial(_synthesizes, session, data)),
        ):
            yield _conformance(name, check)
    yield _conformance("a fresh process gives the same table", partial(_fresh, generator, data))
    with short_session(generator.start) as session:
        ended = session.ends_with_its_input(seconds=END_SECONDS)
        late = f"it still ran after {END_SECONDS:g} s"
        yield Conformance("it ends when its standard input does", ended, "" if ended else late)


def _conformance(name: str, check: Callable[[], str]) -> Conformance:
    try:
        detail = check()
    except TrialError as error:
        detail = str(error)
    return Conformance(name, not detail, detail)


def _table(session: WorkerSession, data: pd.DataFrame, seed: int) -> pd.DataFrame:
    given = session.synthesize(data, rows=ROWS, seed=seed)
    return accept(given, session.start.schema, ROWS)


def _synthesizes(session: WorkerSession, data: pd.DataFrame) -> str:
    _table(session, data, _SEED)
    return ""


def _repeats(session: WorkerSession, data: pd.DataFrame) -> str:
    first = _table(session, data, _SEED)
    _table(session, data.iloc[1:].reset_index(drop=True), _OTHER)
    if not session.hello.seedable or first.equals(_table(session, data, _SEED)):
        return ""
    return "the tables differ: something of a training stays behind, or it draws noise of its own"


def _varies(session: WorkerSession, data: pd.DataFrame) -> str:
    if _table(session, data, _SEED).equals(_table(session, data, _OTHER)):
        return "the tables are equal: the seed is not used"
    return ""


def _unknown(session: WorkerSession) -> str:
    return _refused(session, {"op": "sing", "id": -1})


def _absent(session: WorkerSession) -> str:
    return _refused(session, session.request(rows=ROWS, seed=_SEED))  # its table is not written


def _refused(session: WorkerSession, request: dict[str, Any]) -> str:
    answer = session.ask(request, seconds=END_SECONDS)
    if "error" not in answer:
        return f"it answered with {', '.join(sorted(answer))} instead of an error"
    return "" if answer.get("id") == request["id"] else "its answer lacks the request's id"


def _fresh(generator: WorkerGenerator, data: pd.DataFrame) -> str:
    with short_session(generator.start) as used:
        _table(used, data, _OTHER)
        after = _table(used, data, _SEED)
    with short_session(generator.start) as fresh:
        if not fresh.hello.seedable or after.equals(_table(fresh, data, _SEED)):
            return ""
    return "the tables differ: something of an earlier training stays behind"
