"""`dpaudit account check`: a stated epsilon compared with what mechanism calls cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.console import FailOn, exit_code, guarded, show
from dpaudit.errors import InputError
from dpaudit.files import io_reason, parse_json

if TYPE_CHECKING:
    from dpaudit.results.accounts import AccountCheck


@guarded
def check(
    calls: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON list of mechanism calls, or the JSON of a replay.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="Stated epsilon. Default: that of the file.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            metavar="D", help="Its delta. Default: that of the file, or 0.", show_default=False
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compares a stated epsilon with what recorded mechanism calls cost.

    The cost comes from dpaudit, from dp-accounting, and from Opacus where it is installed and its
    formulae apply. A violation needs a lower limit above the stated epsilon; exit code 3 means that
    no accountant covers the calls with it, and none refutes it. Nothing is trained.
    """
    try:
        document = parse_json(calls.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"no calls at {calls}: {io_reason(error)}; give a JSON file") from None
    except ValueError:
        raise InputError(f"{calls} is not JSON: give a list of mechanism calls") from None
    if isinstance(document, dict) and "ledger" in document:
        found = _of_replay(calls, epsilon, delta)
    else:
        found = _of_list(document, calls, epsilon, delta)
    show(found, json=json, quiet=quiet)
    raise typer.Exit(exit_code(found.verdict, FailOn.INCONCLUSIVE))


def _of_list(document: Any, path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    from dpaudit.account.calls import calls_of
    from dpaudit.results.accounts import check_account

    given = calls_of(document, str(path))
    stated = given.epsilon if epsilon is None else epsilon
    if stated is None:
        raise InputError(f"{path} states no epsilon: give it, `epsilon`")
    at = (given.delta or 0.0) if delta is None else delta
    return check_account(given.calls, epsilon=stated, delta=at, source=str(path))


def _of_replay(path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    from dpaudit.model.claim import PrivacyClaim
    from dpaudit.replaying.ledger import recorded_calls
    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.results.accounts import Replayed, check_account
    from dpaudit.results.verdict import Verdict

    replay = ReplayRecord.load(path)
    claim = replay.claim if isinstance(replay.claim, PrivacyClaim) else None
    stated = claim.epsilon if claim is not None and epsilon is None else epsilon
    at = claim.delta if claim is not None and delta is None else delta
    if stated is None or at is None:
        raise InputError(
            f"{path} claims {replay.claim.in_words}: state `epsilon` and `delta` to compare"
        )
    proved, computed = 0.0, None  # of an inconclusive replay, or at another delta
    if claim is not None and at == claim.delta:
        computed = replay.computed
        if replay.verdict is not Verdict.INCONCLUSIVE:
            proved = math.inf if replay.proved is None else replay.proved
    recorded = recorded_calls(replay.ledger)
    unknown = "the worlds diverge" if replay.parting is not None else recorded.unknown
    return check_account(
        recorded.calls,
        epsilon=stated,
        delta=at,
        source=str(path),
        replay=Replayed(proved, computed, unknown),
    )
