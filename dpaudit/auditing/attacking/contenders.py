"""Which attacks are scored: each fixed on the fitting part, as many as there are hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dpaudit.auditing.attacking.endings import ENDINGS, features_of_ending
from dpaudit.auditing.attacking.fitting import Fitted, FittingScore, fit_attack
from dpaudit.auditing.attacking.parts import Part, gather
from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.auditing.two_worlds import TwoWorldSpec
from dpaudit.bounds import Counts, clopper_pearson
from dpaudit.game.trial import Outcome, TrialStatus
from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray


class FeatureSlice(NamedTuple):
    """An attack on tables and where its features lie in the vector of a trial."""

    attack: NamedAttack
    place: slice

    def of(self, outcome: Outcome) -> FloatArray | None:
        """This attack's features of one trial; None if it failed."""
        return None if outcome.features is None else outcome.features[self.place]


class EndingFeatures(NamedTuple):
    """The attack on how trials end.

    Attributes:
        rows: Synthetic rows that every trial was asked for.
        attack: The attack.
    """

    rows: int
    attack: NamedAttack = ENDINGS

    def of(self, outcome: Outcome) -> FloatArray:
        """Its features of one trial, whether that finished or failed."""
        return features_of_ending(outcome, rows=self.rows)


@dataclass(frozen=True)
class Contender:
    """An attack that is fixed on some trials and not scored on others yet.

    Attributes:
        features: The attack and its features of a trial.
        fitted: Its classifier and threshold.
        hypothesis: As of `Attacked`.
        promise: What it reached on the trials that it was fixed on, those that failed counted as
            its errors if it cannot use them.
    """

    features: FeatureSlice | EndingFeatures
    fitted: Fitted
    hypothesis: str
    promise: FittingScore


def feature_slices(audit: TwoWorldSpec) -> list[FeatureSlice]:
    """Every attack with the place of its features."""
    found, start = [], 0
    for named in audit.attacks:
        stop = start + len(named.attack.feature_names(audit.game.view))
        found.append(FeatureSlice(named, slice(start, stop)))
        start = stop
    return found


def contenders(
    audit: TwoWorldSpec,
    worlds: Sequence[Sequence[Outcome]],
    fitting: Sequence[BoolArray],
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    purpose: str,
) -> list[Contender]:
    """The attacks that are scored, one for each hypothesis, each fixed on the fitting part.

    How trials end is attacked where some of the fitting part failed. That is no further hypothesis:
    on the fitting part it takes the place of the attack that promises least, if it promises more.
    Where attacks are selected, only the one that promises most is scored.

    Args:
        audit: The audit.
        worlds: Outcomes of world "in", then of "out", by trial number.
        fitting: For each world, which of them are in the fitting part.
        settings: How hypotheses are counted, and how thresholds are chosen.
        claim: The claim to hold it to.
        purpose: Of the random streams.

    Returns:
        Empty if too few trials of the fitting part finished and none of them failed.
    """
    lost = [
        count_failed([o for o, fits in zip(ended, mask, strict=True) if fits])
        for ended, mask in zip(worlds, fitting, strict=True)
    ]

    def fixed(features: FeatureSlice | EndingFeatures, *, lost: Sequence[int]) -> Contender | None:
        part = gather(vectors(features, worlds), fitting, fitting=True)
        if part is None:
            return None
        attack = features.attack
        fitted = fit(attack, part, audit, settings, claim, purpose=purpose)
        promise = _promise(fitted, part, lost, claim, settings)
        return Contender(features, fitted, attack.name, promise)

    on_tables = [fixed(features, lost=lost) for features in feature_slices(audit)]
    found = [one for one in on_tables if one is not None]
    if any(lost):
        on_endings = fixed(EndingFeatures(audit.game.view.n_rows), lost=(0, 0))
        assert on_endings is not None  # it uses every trial
        found = _with_endings(found, on_endings, audit, settings)
    if found and settings.multiplicity is Multiplicity.SELECT:
        return [max(found, key=lambda one: one.promise)]
    return found


def _with_endings(
    found: Sequence[Contender], endings: Contender, audit: TwoWorldSpec, settings: AuditSettings
) -> list[Contender]:
    """The attacks with the one on how trials end among them, if that is worth a place."""
    if not found:
        return [replace(endings, hypothesis=audit.attacks[0].name)]
    if settings.multiplicity is Multiplicity.SELECT:
        return [*found, endings]
    least = min(found, key=lambda one: one.promise)
    if endings.promise <= least.promise:
        return list(found)
    seated = replace(endings, hypothesis=least.hypothesis)
    return [seated if one is least else one for one in found]


def _promise(
    fitted: Fitted,
    part: Part,
    lost: Sequence[int],
    claim: PrivacyClaim,
    settings: AuditSettings,
) -> FittingScore:
    """What an attack promises once trials that it could not use count as its errors."""
    share = (fitted.counts.n_in + fitted.counts.n_out) / len(part.member)  # chose the threshold
    more_in, more_out = (round(share * count) for count in lost)
    counts = Counts(
        fitted.counts.false_negatives + more_in,
        fitted.counts.false_positives + more_out,
        fitted.counts.n_in + more_in,
        fitted.counts.n_out + more_out,
    )
    bound = clopper_pearson(*counts, delta=claim.delta, confidence=settings.attack_confidence)
    return fitted.promise._replace(bound=bound)


def vectors(
    features: FeatureSlice | EndingFeatures, worlds: Sequence[Sequence[Outcome]]
) -> list[list[FloatArray | None]]:
    """Features of every trial of both worlds; None where an attack cannot use one."""
    return [[features.of(outcome) for outcome in ended] for ended in worlds]


def count_failed(outcomes: Sequence[Outcome]) -> int:
    """How many trials failed."""
    return sum(outcome.status is not TrialStatus.FINISHED for outcome in outcomes)


def fit(
    named: NamedAttack,
    fitting: Part,
    audit: TwoWorldSpec,
    settings: AuditSettings,
    claim: PrivacyClaim,
    *,
    purpose: str,
) -> Fitted:
    """Fixes one attack on some trials, with the streams of one purpose."""
    return fit_attack(
        named.attack,
        fitting,
        rule=settings.threshold,
        delta=claim.delta,
        confidence=settings.attack_confidence,
        rng=audit.stream(f"{purpose}/{named.name}").rng(),
    )
