"""What many labels cost together."""

from __future__ import annotations

from typing import Final

from dpaudit.account._checks import check_delta
from dpaudit.account.bernoulli import Steps, divergences
from dpaudit.account.conversion import ORDERS, epsilon_from_rdp
from dpaudit.account.pld import pld_epsilon
from dpaudit.account.tight import tight_epsilon
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Method

_PROOFS: Final = {
    Method.RDP: "Rényi divergences of the labels added up",
    Method.PLD: "privacy loss distributions of the labels convolved",
    Method.TIGHT: "optimum over adaptive votes by dynamic programming over the privacy loss",
    Method.BEST: "the smaller of added Rényi divergences and convolved privacy losses",
}


def epsilon_of_labels(steps: Steps, *, labels: int, delta: float, method: Method) -> float:
    """Epsilon of T labels whose votes may depend on earlier labels in any way.

    Args:
        steps: The pairs of distributions that neighbouring tables can cause for one label.
        labels: The number T of labels, at least 0.
        delta: The delta of the statement, in [0, 1).
        method: How it is proved.

    Returns:
        Epsilon in nats; infinity if nothing can be proved.

    Raises:
        SettingsError: If the number of labels or delta is outside its range.
    """
    if labels < 0:
        raise SettingsError(f"`labels` is {labels}: use a count, at least 0")
    check_delta(delta)
    if labels == 0 or len(steps.ones) == 0:
        return 0.0  # also for a table with infinite divergence
    if delta == 0.0:
        return labels * steps.largest_loss  # pure: the limit of infinite order, by any method
    rdp = epsilon_from_rdp(ORDERS, labels * divergences(steps, ORDERS).max(axis=0), delta=delta)
    if method is Method.RDP or not steps.finite:
        return rdp
    if method is Method.TIGHT:
        return tight_epsilon(steps, labels=labels, delta=delta, at_most=rdp)
    pld = pld_epsilon(steps, labels=labels, delta=delta)
    return pld if method is Method.PLD else min(rdp, pld)


def proof_of(method: Method) -> str:
    """How the cost is proved, in words for a claim."""
    return _PROOFS[method]
