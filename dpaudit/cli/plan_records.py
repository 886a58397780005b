"""`dpaudit plan --records`: how many records to train together, and what that costs each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dpaudit.auditing.records.interference import Caught, caught_with, most_sensitive
from dpaudit.auditing.settings import AuditSettings
from dpaudit.formatting import rounded_up
from dpaudit.model.currencies import Claim, require_add_remove, require_epsilon

ALTERNATIVES = (1, 4, 16, 64)


def choices(settings: AuditSettings, claim: Claim, *, rows: int | None) -> list[Caught]:
    """What as many models catch with some numbers of records.

    Args:
        settings: Those of the audit.
        claim: The claim under audit.
        rows: Rows of the table; None if none was handed in.

    Returns:
        One for each number that the table allows, the one asked for among them.

    Raises:
        ClaimError: If the claim is not one of epsilon and add-remove neighbours.
        SettingsError: If the table is too small for the number of records.
    """
    stated = require_epsilon(claim, method="`records`")
    require_add_remove(stated.neighbours, method="`records`")
    most = max(ALTERNATIVES)
    if rows is not None:
        from dpaudit.auditing.records.spec import LARGEST_SHARE, check_records

        check_records(settings.records, rows=rows)
        most = int(LARGEST_SHARE * rows)
    numbers = {settings.records, *(k for k in ALTERNATIVES if k <= most)}
    return caught_with(sorted(numbers), settings, stated)


def document(found: Sequence[Caught]) -> list[dict[str, Any]]:
    """The same for JSON."""
    return [
        {
            "records": one.records,
            "guesses": one.guesses,
            "detectable_mu_apart": one.apart,
            "detectable_mu_together": one.together,
        }
        for one in found
    ]


def lines(found: Sequence[Caught], settings: AuditSettings) -> Iterator[str]:
    """The same as a table, with what is best."""
    models = settings.shadow_models
    yield f"mu of a Gaussian leak of every record that {models} models catch with 80 % power:"
    yield f"{'records':>13}  {'guesses':>7}  each shifts its own statistic  all shift one"
    for one in found:
        mark = "  <- asked" if one.records == settings.records else ""
        yield (
            f"{one.records:>13}  {one.guesses:>7}  {_shown(one.apart):>29}  "
            f"{_shown(one.together):>13}{mark}"
        )
    apart = most_sensitive({one.records: one.apart for one in found})
    together = most_sensitive({one.records: one.together for one in found})
    if apart is not None:
        yield ""
        best = f"best: {_counted(apart)} if each shifts its own statistic"
        yield best if together is None else f"{best}, {_counted(together)} if all shift one"


def _shown(mu: float | None) -> str:
    return "no leak" if mu is None else f">= {rounded_up(mu)}"


def _counted(records: int) -> str:
    return "one record" if records == 1 else f"{records} records"
