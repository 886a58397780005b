"""What was published: Table 2, and the results of the audits (Figure 5), as numbers.

Ganev, Annamalai and De Cristofaro 2025, "The Elusive Pursuit of Reproducing PATE-GAN". Bounds were
re-derived from the released result files: the errors below give them back to the last digit
(`tests/reports/test_pate_gan_audit.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from dpaudit.bounds import clopper_pearson, joint_beta

SIX = ("original", "updated", "synthcity", "turing", "borealis", "smartnoise")
"""The implementations, in the paper's order."""
EPSILON, DELTA = 1.0, 1e-5
SCORED = 400
"""Trials of each world that the published audits scored."""
CONFIDENCE = 0.95

VIOLATIONS: dict[str, tuple[str, ...]] = {
    "no-pate": ("original", "turing"),
    "partition-all-rows": ("original", "turing"),
    "partition-last-only": ("updated",),
    "partition-reshuffled": ("synthcity",),
    "accountant-exponent-slip": ("synthcity",),
    "accountant-missing-log": ("borealis", "smartnoise"),
    "bounds-from-data": ("original", "updated", "synthcity", "borealis"),
    "noise-gaussian-on-labels": ("original", "turing"),
    "noise-scale-inverted": ("updated",),
    "delta-xor": ("original",),
    "delta-multiplied": ("turing",),
    "labels-copied": ("original",),
}
"""Table 2, the 19 privacy violations: finding and implementations."""
BUGS: dict[str, tuple[str, ...]] = {
    "teachers-refitted": ("updated", "synthcity"),
    "output-not-inverted": ("updated", "borealis"),
    "integers-truncated": ("turing",),
}
"""Table 2, the 5 other bugs."""

PARTITIONS = {
    "original": "every teacher sees all 686",
    "updated": "all five see the same 137",
    "synthcity": "670 to 675 each, pairwise overlap 655 to 663",
    "turing": "every teacher sees all 686",
    "borealis": "disjoint, 137 x 4 + 138",
    "smartnoise": "disjoint, 138 + 137 x 4",
}
"""Figure 2: distinct records seen by each of 5 teachers."""


class Row(NamedTuple):
    """One published audit: its AUC, and its errors up to swapping the two kinds."""

    auc: float
    false_negatives: int
    false_positives: int

    @property
    def clopper_pearson(self) -> float:
        """The bound as published: tail probability 0.025 for each rate."""
        return clopper_pearson(
            self.false_negatives,
            self.false_positives,
            SCORED,
            SCORED,
            delta=DELTA,
            confidence=CONFIDENCE,
        )

    @property
    def joint_beta(self) -> float:
        """The Bayesian estimate from the same errors."""
        return joint_beta(
            self.false_negatives,
            self.false_positives,
            SCORED,
            SCORED,
            delta=DELTA,
            confidence=CONFIDENCE,
        )


AVERAGE = {
    "original": Row(0.975, 2, 159),
    "updated": Row(1.0, 0, 0),
    "synthcity": Row(1.0, 0, 199),
    "turing": Row(0.7326, 2, 330),
    "borealis": Row(0.9828, 0, 15),
    "smartnoise": Row(1.0, 0, 0),
}
"""Figure 5b: GroundHog with naive features on Cervical Cancer, target 397."""
WORST = {
    "original": Row(1.0, 0, 0),
    "updated": Row(0.7857, 0, 356),
    "synthcity": Row(1.0, 0, 0),
    "turing": Row(1.0, 0, 0),
    "borealis": Row(0.9885, 0, 44),
    "smartnoise": Row(1.0, 0, 0),
}
"""Figure 5a: queries on the worst-case table."""
