"""The deviations of published PATE-GANs, one switch each.

Ganev, Annamalai and De Cristofaro 2025, "The Elusive Pursuit of Reproducing PATE-GAN", Table 2 and
appendix E; those below the empty line are not in Table 2. A switch has the name of the finding by
which `dpaudit trace` reports it. Without switches the generator satisfies its claim.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean


class Switch(StrEnum):
    """One deviation from a correct PATE-GAN."""

    NO_PATE = "no-pate"
    """One critic reads real records and the generator learns from it: no votes, no accountant."""
    PARTITION_ALL_ROWS = "partition-all-rows"
    """Every teacher (every step of a single critic) draws from all records."""
    PARTITION_LAST_ONLY = "partition-last-only"
    """k parts are built, but every teacher trains on the last."""
    PARTITION_RESHUFFLED = "partition-reshuffled"
    """Records are dealt anew in every iteration."""
    ACCOUNTANT_MISSING_LOG = "accountant-missing-log"
    """min(cap, t) where min(cap, log t) is correct."""
    ACCOUNTANT_EXPONENT_SLIP = "accountant-exponent-slip"
    """q exp(2 g (l - 1) + 1), cut off at 0, where q exp(2 g l) is correct."""
    BOUNDS_FROM_DATA = "bounds-from-data"
    """The numbers that scale a numeric column are read off the table."""
    NOISE_GAUSSIAN_ON_LABELS = "noise-gaussian-on-labels"
    """Normal noise on labels that are 0 or 1, thresholded at 1/2, instead of noise on counts."""
    NOISE_SCALE_INVERTED = "noise-scale-inverted"
    """Laplace noise of scale gamma where the accountant assumes 1 / gamma."""
    DELTA_XOR = "delta-xor"
    """10 XOR 5 = 15 instead of 1 / delta = 10 ** 5."""
    DELTA_MULTIPLIED = "delta-multiplied"
    """10 ** delta instead of 1 / delta."""
    LABELS_COPIED = "labels-copied"
    """Records are generated given the labels of the training table, one by one."""
    TEACHERS_REFITTED = "teachers-refitted"
    """Teachers are logistic regressions fitted from scratch in every iteration."""
    OUTPUT_NOT_INVERTED = "output-not-inverted"
    """Numbers stay in [0, 1]."""
    INTEGERS_TRUNCATED = "integers-truncated"
    """Whole numbers are rounded down."""

    PARTITION_BY_POSITION = "partition-by-position"
    """Contiguous parts, so removing a record moves others from one teacher to the next."""
    TEACHERS_FROM_ROWS = "teachers-from-rows"
    """k = max(1, n // 1000)."""
    BATCH_FROM_ROWS = "batch-from-rows"
    """The batch is at most n // k."""
    STUDENT_SEES_REAL_ROWS = "student-sees-real-rows"
    """The student is trained on real records as well."""
    GENERATOR_SEES_REAL_ROWS = "generator-sees-real-rows"
    """The generator is trained on real records as well."""
    CONDITIONS_FROM_DATA = "conditions-from-data"
    """Records are generated given one-hot values of real records."""
    QUERIES_NOT_ACCOUNTED = "queries-not-accounted"
    """Labels of a batch are not charged if at least half of them are 1."""
    DELTA_IGNORED = "delta-ignored"
    """1 / (n sqrt n) instead of delta."""
    BUDGET_EXCEEDED = "budget-exceeded"
    """The budget is checked only after it is spent."""
    ONE_NOISE_CHARGED_AS_TWO = "one-noise-charged-as-two"
    """One Laplace draw on the count of ones, charged as PATE's noisy argmax with two."""
    SAMPLING_NOISE_DIFFERS = "sampling-noise-differs"
    """Trained with uniform inputs, sampled with normal ones."""
    OUTPUT_SHIFTED = "output-shifted"
    """Numbers are scaled back by their upper bound instead of the range."""
    PENALTY_FROM_TEACHERS = "penalty-from-teachers"
    """The gradient penalty of a single critic (`no-pate`) has weight k instead of 10."""


def switches_named(names: str | Iterable[str]) -> frozenset[Switch]:
    """The switches of these names.

    Args:
        names: The names, or one text with commas between them.

    Raises:
        SettingsError: If one of them is not the name of a switch.
    """
    listed = names.split(",") if isinstance(names, str) else names
    wanted = [stripped for name in listed if (stripped := name.strip())]
    known = [str(switch) for switch in Switch]
    for name in wanted:
        if name not in known:
            raise SettingsError(
                f"there is no switch {name!r}{did_you_mean(name, known)}: use {', '.join(known)}"
            )
    return frozenset(map(Switch, wanted))
