"""Every finding by its stable name, and the results of checks: found, passed or skipped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from dpaudit.model.choices import Severity

PATE_GAN: Final = "Jordon, Yoon and van der Schaar 2019 (PATE-GAN), Algorithm 1"
PATE: Final = "Papernot et al. 2017 (PATE)"
MOMENTS: Final = "Abadi et al. 2016, Theorem 2"
DP_SGD: Final = "Abadi et al. 2016"
AUDIT: Final = "Ganev, Annamalai and De Cristofaro 2025"
TABLE_2: Final = f"{AUDIT}, Table 2"
GAUSSIAN: Final = "Dwork and Roth 2014, Theorem A.1"
_DEAL = "each record belongs to one of k fixed, disjoint parts, and each teacher reads its own only"
_PUBLIC = "settings are constants, public before the table is seen"
_DELTA = "delta is the one that is claimed"
_POST = "only the teachers, whose votes are noised, read private records"


class Entry(NamedTuple):
    """The description of a finding.

    Attributes:
        correct: What a correct implementation does.
        reference: Where that is proved or stated.
        severity: What follows from it.
    """

    correct: str
    reference: str
    severity: Severity = Severity.VIOLATION


_READERS: Final = {
    "no-pate": Entry(
        "k teachers read the records; the generator learns from a student that reads only "
        "generated records with noisy labels",
        f"{TABLE_2} (PATE); {PATE_GAN}, lines 2 and 9 to 17",
    ),
    "partition-all-rows": Entry(_DEAL, f"{TABLE_2} (partition); {PATE}, section 2.1"),
    "partition-last-only": Entry(_DEAL, f"{TABLE_2} (partition); {PATE}, section 2.1"),
    "partition-reshuffled": Entry(
        f"{_DEAL}: in all iterations the same",
        f"{TABLE_2} (partition); {PATE}, section 2.1",
    ),
    "partition-overlapping": Entry(_DEAL, f"{PATE}, section 2.1"),
    "partition-by-position": Entry(
        "a record's teacher depends on that record alone (a keyed hash), so that removing one "
        "changes one teacher and moves one vote",
        f"{PATE}, Theorem 2: neighbouring tables differ in one teacher's vote",
    ),
    "rows-never-used": Entry(
        "every record belongs to a teacher", PATE_GAN + ", line 2", Severity.NOTE
    ),
    "student-sees-real-rows": Entry(_POST, f"{PATE_GAN}, lines 22 to 25"),
    "generator-sees-real-rows": Entry(_POST, f"{PATE_GAN}, lines 26 to 28"),
    "conditions-from-data": Entry(
        "the conditions of generated records are drawn from public or noised frequencies",
        f"{PATE_GAN}, lines 26 to 28",
    ),
}
_NOISE: Final = {
    "noise-gaussian-on-labels": Entry(
        "Laplace noise of scale 1 / lambda on each count of votes; the label is the larger",
        f"{TABLE_2} (noise); {PATE}, section 2.2",
    ),
    "noise-scale-inverted": Entry(
        "noise of scale 1 / lambda, for the lambda that the accountant takes",
        f"{TABLE_2} (noise); {PATE}, section 2.2",
    ),
    "noise-wrong-scale": Entry(
        "noise of the scale that is accounted for", f"{PATE}, section 2.2; {GAUSSIAN}"
    ),
    "noise-wrong-law": Entry(
        "noise of the distribution that is accounted for", f"{PATE}, section 2.2"
    ),
    "labels-not-from-votes": Entry(
        "a label is 1 with the probability that the accounted mechanism has at that vote",
        f"{PATE}, Lemma 4 (an equality for two classes)",
    ),
}
_ACCOUNTING: Final = {
    "accountant-missing-log": Entry(
        "the smallest of the data-independent terms and the logarithm of Theorem 3's sum",
        f"{TABLE_2} (accountant); {PATE}, Theorem 3",
    ),
    "accountant-exponent-slip": Entry(
        "q exp(2 lambda l) in Theorem 3's sum", f"{TABLE_2} (accountant); {PATE}, Theorem 3"
    ),
    "accountant-disagrees": Entry(
        "log moments that bound the privacy loss of the votes that were cast, and the epsilon "
        "that follows from them",
        f"{PATE}, Theorems 2 and 3; {MOMENTS}",
    ),
    "one-noise-charged-as-two": Entry(
        "with one Laplace variable on the count of ones a label is wrong with probability "
        "exp(-lambda gap / 2) / 2; q = (2 + lambda gap) / (4 exp(lambda gap)) is that of two",
        f"{PATE}, Lemma 4",
    ),
    "queries-not-accounted": Entry(
        "every label that is released is charged, a discarded one too",
        f"{PATE_GAN}, lines 16 to 21",
    ),
    "budget-exceeded": Entry(
        "the cost of the next labels is added before they are drawn, and training stops if "
        "that is too much",
        "Rogers, Roth, Ullman and Vadhan 2016 (privacy filters)",
    ),
    "delta-xor": Entry(
        "1 / delta is 10 ** 5 for delta 1e-5; 10 ^ 5 is 15, an exclusive or",
        f"{TABLE_2} (delta); {GAUSSIAN}; {MOMENTS}",
    ),
    "delta-multiplied": Entry(
        "delta divides: ln(1.25 / delta), ln(1 / delta); 10 ** delta is about 1",
        f"{TABLE_2} (delta); {GAUSSIAN}; {MOMENTS}",
    ),
    "delta-ignored": Entry(_DELTA, f"{MOMENTS}; {AUDIT}, Table 3"),
}
_GRADIENTS: Final = {
    "gradients-not-clipped": Entry(
        "each record's gradient is scaled down to the clipping norm",
        f"{DP_SGD}, Algorithm 1",
    ),
    "gradient-part-not-clipped": Entry(
        "all that a record adds to the sum is clipped together, its part of a gradient penalty too",
        f"{DP_SGD}, Algorithm 1",
    ),
    "batches-not-sampled": Entry(
        "each record is in a batch independently, with the accountant's probability",
        f"{DP_SGD}, Algorithm 1 and Theorem 1",
    ),
    "gradient-noise-skipped": Entry(
        "noise is added to the sum of every batch, an empty one too",
        f"{DP_SGD}, Algorithm 1",
    ),
    "gradient-noise-scale": Entry(
        "noise on gradients is normal, of the noise multiplier times the clipping norm",
        f"{DP_SGD}, Algorithm 1",
    ),
    "gradient-steps-not-accounted": Entry(
        "the claim covers every step that is taken", f"{DP_SGD}, Theorem 1"
    ),
}
_TABLE: Final = {
    "bounds-from-data": Entry(
        "the numbers that scale a column are public, or released with noise",
        f"{TABLE_2} (metadata)",
    ),
    "labels-copied": Entry(
        "labels are generated, or drawn from noised frequencies",
        f"{TABLE_2} (label distribution)",
    ),
    "teachers-from-rows": Entry(
        f"{_PUBLIC}: one record more must not change every part", f"{AUDIT}, Table 3"
    ),
    "batch-from-rows": Entry(_PUBLIC, "Dwork and Roth 2014, Definition 2.4"),
    "constant-from-rows": Entry(_PUBLIC, "Dwork and Roth 2014, Definition 2.4"),
}
_QUALITY: Final = {
    "penalty-from-teachers": Entry(
        "the gradient penalty has weight 10", "Gulrajani et al. 2017, Algorithm 1", Severity.BUG
    ),
    "gradient-penalty": Entry(
        "the gradient penalty has weight 10", "Gulrajani et al. 2017, Algorithm 1", Severity.NOTE
    ),
    "teachers-refitted": Entry(
        "teachers are networks whose training goes on from iteration to iteration",
        f"{TABLE_2} (teachers); {PATE_GAN}, lines 8 to 10",
        Severity.BUG,
    ),
    "output-not-inverted": Entry(
        "numbers are on the scale of the table", f"{TABLE_2} (processing)", Severity.BUG
    ),
    "output-shifted": Entry(
        "numbers are scaled back by the range: lower + u (upper - lower)",
        "the inverse of (x - lower) / (upper - lower)",
        Severity.BUG,
    ),
    "integers-truncated": Entry(
        "whole numbers are rounded to the nearest", f"{TABLE_2} (processing)", Severity.BUG
    ),
    "sampling-noise-differs": Entry(
        "the generator is sampled with inputs from the distribution it was trained with",
        PATE_GAN + ", lines 11 and 26",
        Severity.BUG,
    ),
}
PARTS: Final[Mapping[str, Mapping[str, Entry]]] = MappingProxyType(
    {
        "Who reads what": _READERS,
        "Noise": _NOISE,
        "Accounting": _ACCOUNTING,
        "DP-SGD": _GRADIENTS,
        "What the table decides": _TABLE,
        "Quality": _QUALITY,
    }
)
"""Every finding under the part of a training that it is about."""
CATALOGUE: Final[Mapping[str, Entry]] = MappingProxyType(
    {id_: entry for part in PARTS.values() for id_, entry in part.items()}
)
"""Every finding by its name."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A deviation that a trace shows.

    Attributes:
        id: Its stable name, a key of `CATALOGUE`.
        severity: What follows from it.
        evidence: What was seen, in words and numbers.
        numbers: The same numbers by name.
        correct: What a correct implementation does.
        reference: Where that is proved or stated.
    """

    id: str
    severity: Severity
    evidence: str
    numbers: Mapping[str, float]
    correct: str
    reference: str


class Passed(NamedTuple):
    """A check that looked for a deviation and did not find it.

    Attributes:
        id: Id of the deviation.
    """

    id: str


class Skipped(NamedTuple):
    """A check that could not run.

    Attributes:
        id: Id of the deviation that it looks for.
        why: The reason, in words.
    """

    id: str
    why: str


CheckOutcome: TypeAlias = Finding | Passed | Skipped
"""The outcome of a check for an id; of several, the most severe finding counts, then a pass."""


def flaw(id_: str, evidence: str, **numbers: float) -> Finding:
    """A finding, completed from the catalogue.

    Args:
        id_: A key of `CATALOGUE`.
        evidence: What was seen.
        numbers: The numbers of the evidence; those that are not finite are left out, because JSON
            cannot hold them.

    Returns:
        The finding.
    """
    entry = CATALOGUE[id_]
    return Finding(
        id=id_,
        severity=entry.severity,
        evidence=evidence,
        numbers={name: float(value) for name, value in numbers.items() if math.isfinite(value)},
        correct=entry.correct,
        reference=entry.reference,
    )
