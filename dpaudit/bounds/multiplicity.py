"""The number of hypotheses that an audit tests, and the confidence that each of them needs.

A hypothesis is a bound or a p-value computed from the scored trials. Their number is the product of
the attacks, thresholds, directions and targets evaluated on them. A choice made on other trials
(the fitting part) counts as one hypothesis, however many candidates there were.
"""

from __future__ import annotations

from dpaudit.bounds.inputs import check_confidence, whole_number
from dpaudit.model.setting import AT_LEAST_1, check_number


def bonferroni(confidence: float, hypotheses: int) -> float:
    """Confidence that each of several bounds needs for all to hold at once (Bonferroni).

    Theorem (Boole's inequality): K bounds that each fail with probability at most α/K fail
    somewhere with probability at most α, whatever their dependence.

    Args:
        confidence: Confidence that all bounds hold together, in (0, 1).
        hypotheses: Number of bounds, at least 1.

    Returns:
        1 − (1 − confidence)/hypotheses.

    Raises:
        SettingsError: If an argument is out of range.
    """
    check_confidence(confidence)
    number = whole_number("hypotheses", hypotheses)
    check_number("hypotheses", number, AT_LEAST_1)
    return 1.0 - (1.0 - confidence) / number


def attack_confidence(
    overall: float, hypotheses: int, *, sequential: bool, others: float = 0.0
) -> float:
    """Confidence that each bound of an attack needs, in a sequential or a fixed-size audit.

    A sequential audit computes two bounds for each attack, one that holds at any time and one at
    the cap of trials: each has half of the error probability.

    Args:
        overall: Confidence of the audit, in (0, 1).
        hypotheses: Number of hypotheses tested on the scored trials, at least 1.
        sequential: Whether the audit may stop early.
        others: Share of the error probability reserved for something else, in [0, 1).

    Returns:
        1 − (1 − overall)(1 − others)/K, or 1 − (1 − overall)(1 − others)/2K if it is sequential.

    Raises:
        SettingsError: If an argument is out of range.
    """
    check_confidence(overall)
    remaining = 1.0 - (1.0 - overall) * (1.0 - others) if others else overall
    return bonferroni(bonferroni(remaining, 2 if sequential else 1), hypotheses)
