"""The badge of an audit, in the JSON form that shields.io takes from an endpoint."""

from __future__ import annotations

import json
from typing import Final

from dpaudit.formatting import rounded_up
from dpaudit.model.claim import NoClaim
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import claim_and_proof, is_withheld, verdict_words
from dpaudit.results.verdict import Verdict

_COLORS: Final = {
    Verdict.VIOLATION: "red",
    Verdict.CONSISTENT: "blue",  # not green: it is no evidence of privacy
    Verdict.MEASURED: "blue",
}


def badge(result: AuditRecord) -> str:
    """Verdict, claim and bound, power and day as a document for shields.io's endpoint badge.

    Args:
        result: The record of an audit.

    Returns:
        The JSON, with the keys schemaVersion, label, message and color.
    """
    claimed, proved = claim_and_proof(result.claim, result.proved)
    noun, least = result.claim.quantity.noun, result.power and result.power.detectable
    parts = [verdict_words(result)]
    if not isinstance(result.claim, NoClaim):
        parts.append(f"{noun} {claimed}")
    if result.proves_leak and not is_withheld(result):
        parts.append(f"at least {proved}")
    if least is not None and not isinstance(result.claim, NoClaim):
        parts.append(f"detects {rounded_up(least)}")
    parts += [result.date] if result.date else []
    shown = {
        "schemaVersion": 1,
        "label": "differential privacy audit",
        "message": ", ".join(parts),
        "color": _COLORS.get(result.verdict, "lightgrey"),
    }
    return json.dumps(shown, indent=2) + "\n"
