"""What a practitioner weighs: the cost of a plan of labels, and how good its labels are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dpaudit.account._checks import check_positive_delta
from dpaudit.account.calibration import LabelPlan
from dpaudit.account.vote_table import vote_table
from dpaudit.errors import SettingsError
from dpaudit.model.choices import CLEAR_MAJORITY, Mechanism, Method

USUAL_LABELS: Final = (10, 100, 1000, 10_000)
"""Numbers of labels that span what students of PATE and PATE-GAN ask for."""

USUAL_CONSENSUS: Final = (CLEAR_MAJORITY, 0.95)
"""A clear majority, and almost all teachers."""

COIN_FLIP: Final = 0.6
"""A label that is right less often than this at a clear majority teaches a student next to
nothing: it carries less than 3 % of a bit."""

_ROUNDING: Final = 1e-9
"""A plan for an accuracy of 0.6 hits it up to rounding, and is not warned of."""


class Quality(NamedTuple):
    """How good a label is.

    Attributes:
        consensus: Share of the teachers that agree.
        right: Probability that the label follows them.
    """

    consensus: float
    right: float


class Prospect(NamedTuple):
    """One row of the practitioner's table.

    Attributes:
        plan: Noise, number of labels and what they spend.
        proof: What proves `plan.epsilon`: `RDP`, `PLD` or `TIGHT`.
        qualities: How good a label is, by share of the teachers that agree, increasing.
    """

    plan: LabelPlan
    proof: Method
    qualities: tuple[Quality, ...]

    @property
    def near_coin_flips(self) -> bool:
        """Whether a label is right with probability below 0.6 even at a clear majority."""
        return self.plan.table.accuracy(CLEAR_MAJORITY) < COIN_FLIP - _ROUNDING


def prospect(
    plan: LabelPlan,
    *,
    method: Method | str = Method.BEST,
    consensus: Sequence[float] = USUAL_CONSENSUS,
) -> Prospect:
    """The row of a plan in the practitioner's table.

    Args:
        plan: The plan, from `calibrate` or `priced`.
        method: The method that priced it.
        consensus: Shares of the teachers that agree, each in [0.5, 1].

    Returns:
        The row.

    Raises:
        SettingsError: If a share or the method is unknown.
    """
    table = plan.table
    proof = _method(method)
    if proof is Method.BEST:
        by_rdp = table.epsilon(plan.labels, delta=plan.delta, method=Method.RDP)
        proof = Method.RDP if by_rdp <= plan.epsilon else Method.PLD
    qualities = tuple(Quality(share, table.accuracy(share)) for share in sorted({*consensus}))
    return Prospect(plan, proof, qualities)


def priced(
    *,
    mechanism: Mechanism,
    k: int,
    labels: int,
    scale: float,
    delta: float,
    method: Method | str = Method.BEST,
) -> LabelPlan:
    """The plan of given noise and a given number of labels: `calibrate` the other way round.

    Args:
        mechanism: Which noise decides the votes.
        k: Number of teachers, at least 1.
        labels: Number T of labels, at least 1.
        scale: Of the noise, in votes, positive and finite.
        delta: The delta of the statement, in (0, 1).
        method: How the cost is proved.

    Returns:
        The plan, with its epsilon.

    Raises:
        SettingsError: If an argument is outside its range.
    """
    if labels < 1:
        raise SettingsError(f"`labels` is {labels}: use a count, at least 1")
    check_positive_delta(delta)
    table = vote_table(mechanism, k, scale).quantised()
    epsilon = table.epsilon(labels, delta=delta, method=_method(method))
    return LabelPlan(mechanism, k, labels, scale, epsilon, delta)


def _method(name: Method | str) -> Method:
    try:
        return Method(name)
    except ValueError:
        raise SettingsError(f"`method` is {name!r}: use {', '.join(Method)}") from None
