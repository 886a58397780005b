"""What results keep of a replay, and how tables show it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dpaudit.formatting import percent
from dpaudit.replaying.record import ReplayRecord
from reports import markdown

KEPT: Final = (
    *("verdict", "of_proof", "reasons", "target", "claim", "spent", "spent_unlimited"),
    *("spent_note", "spent_is_exact", "proved", "reading", "guesses", "replays", "fits", "seconds"),
    *("ledger", "parting", "stored", "not_followed", "fixed_seeds", "few_seeds", "fresh_noise"),
    *("not_compared", "proof", "access", "public_coins", "versions"),
)
"""Of a record, what results keep: no paths of the machine that made it."""
CLOSE: Final = 0.05
"""How far from the claim, as a share of it, what is spent still counts as at it."""
HEADS: Final = ("verdict", "claim", "spent", "shown", "first reason", "costliest line", "fits")


def kept(record: ReplayRecord) -> dict[str, Any]:
    """What results keep of a record."""
    document = record.to_document()
    return {name: document[name] for name in KEPT}


def findings_table(first: str, cases: Sequence[Mapping[str, Any]]) -> str:
    """One row for each case: its name, which is its first field, and what one replay found."""
    # rows of the replay's first edition, which judged noisy answers, are not shown
    shown_rows = [one for one in cases if "of_proof" in one.get("result", {"of_proof": 0})]
    rows = [(next(iter(one.values())), *_cells(one)) for one in shown_rows]
    return markdown.table((first, *HEADS), rows)


def _cells(one: Mapping[str, Any]) -> tuple[object, ...]:
    if "result" not in one:
        return "–", "–", "–", "–", one["error"].replace("|", "\\|"), "–", "–"
    found = one["result"]
    line = next(iter(found["ledger"]), None)
    costliest = "–"
    if line is not None:
        costliest = f"{line['place']} ({line['law']}, {percent(round(line['share'], 2))})"
    return (
        f"{found['verdict']}{' of the proof' if found['of_proof'] else ''}"
        + (f" (rows alone: {one['rows']})" if "rows" in one else ""),
        _claimed(found["claim"]),
        spent(found),
        shown(found),
        (found["reasons"] or ["–"])[0].replace("|", "\\|"),
        costliest,
        f"{found['fits']} in {found['seconds']:.0f} s",
    )


def value_of(claim: Mapping[str, Any]) -> float:
    """The number that a claim limits."""
    return float(next(claim[name] for name in ("epsilon", "mu", "rho") if name in claim))


def _claimed(claim: Mapping[str, Any]) -> str:
    sign = "μ " if "mu" in claim else "ρ " if "rho" in claim else ""
    return f"{sign}{value_of(claim):.4g}"


def spent(found: Mapping[str, Any]) -> str:
    """What the steps spend, and whether it is below, at or above the claim."""
    if found["spent_unlimited"]:
        return "no limit"
    if found["spent"] is None:
        return "not known"
    share = found["spent"] / value_of(found["claim"])
    where = "below" if share < 1 - CLOSE else "at" if share < 1 + CLOSE else "above"
    return f"{found['spent']:.4g} ({where})"


def shown(found: Mapping[str, Any]) -> str:
    """What the release shows, and how that was found."""
    bound = "no limit" if found["proved"] is None else f"{found['proved']:.3g}"
    if found["reading"] is not None:
        return f"{bound}, read"
    if found["guesses"] is not None:
        return f"{bound}, {found['guesses']['right']} of {found['guesses']['guesses']} guesses"
    return bound


class ReplayStoppedError(KeyboardInterrupt):
    """A replay took more than its minutes: an interrupt, which foreign code cannot swallow."""


@contextmanager
def stopped_after(minutes: float) -> Iterator[None]:
    """Ends what it encloses after some minutes.

    Raises:
        ReplayStoppedError: When they are over.
    """

    def stop(*_: object) -> None:
        raise ReplayStoppedError(f"stopped after {minutes:g} minutes")

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
