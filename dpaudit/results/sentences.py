"""Every sentence about a verdict: terminal, HTML, Markdown and pytest read them here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from dpaudit.bounds.table import BOUNDS, BoundEntry, ValidBound
from dpaudit.formatting import counted, percent, printable, rounded, rounded_down, rounded_up
from dpaudit.game.target import Exposure, Fact
from dpaudit.model.choices import EXPOSING, FARTHEST, Access
from dpaudit.model.claim import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    DeltaClaim,
    GaussianClaim,
    NoClaim,
    PrivacyClaim,
    Quantity,
)
from dpaudit.results.leaks import Carrier, carrier, leaks_in
from dpaudit.results.phrases import (
    CURVE_FACTOR,
    FLOATING_POINT_REMEDY,
    IN_FLOATING_POINT,
    INFERRED,
    PUBLIC_SCHEMA,
    changed_odds,
    detects_beyond_limit,
    detects_from,
    per_unit,
)
from dpaudit.results.record import AuditBrief, AuditRecord, ProbeAlarm, TargetOfAudit, proofs_of
from dpaudit.results.verdict import Power, Verdict, exceeds_claim

NOT_EVIDENCE: Final = "not evidence of privacy"
"""Stands alone in a headline, and after "it is" and "This is" in sentences."""
HEADLINE_GAP: Final = "  "
"""Between the verdict and the finding of a headline."""
SCHEMA_INFERRED: Final = f"{INFERRED}: this audit cannot see what they reveal; {PUBLIC_SCHEMA}"
PROVES_NOTHING: Final = (
    "The audit is invalid: these numbers prove nothing; they help to find out why."
)
CONFIDENTIAL: Final = "This report points at single rows of the table: treat it as confidential."
JUDGED_BEFORE: Final = "Its shadow models were judged before, so its bound proves nothing"
COINS_GUESSED: Final = (
    "For each model, a fair coin decided whether it was trained with the target; under epsilon-DP "
    "a guess of that coin is right with probability at most e^epsilon / (1 + e^epsilon). "
)
"""Why right guesses bound epsilon."""
WITHHELD: Final = "withheld"
"""Stands for a bound above the claim that proves no violation."""
EXPOSES_NOTHING: Final = "no record alone has an extreme or unique value, so the farthest"
ELSEWHERE: Final = "attacks look at every column, and the leak shows in others"
"""Why a leak is not where the target stands out."""
EXPOSURES_NAMED: Final = 8
"""Facts of a target that one sentence names; `result.json` has all."""
CLOPPER_PEARSON: Final = next(entry for entry in BOUNDS if entry.key is ValidBound.CLOPPER_PEARSON)
_MOST_DIGITS = 15
_POINTS_NAMED = 3


class Conclusion(NamedTuple):
    """What a headline says of a result that is no audit of shadow models.

    Attributes:
        verdict: The verdict.
        claim: The claim under audit.
        proved: The bound that decides; None if nothing was scored.
        confidence: Its one-sided confidence.
        power: What could have been proved; None if nothing was scored.
        probe_alarms: What probes before the audit warn of.
        failed_parts: What made the audit invalid.
        is_floating_point: Whether only the last bits of numbers prove the violation.
    """

    verdict: Verdict
    claim: Claim
    proved: float | None
    confidence: float
    power: Power | None
    probe_alarms: tuple[ProbeAlarm, ...] = ()
    failed_parts: tuple[str, ...] = ()
    is_floating_point: bool = False


def verdict_words(result: AuditRecord | AuditBrief) -> str:
    """The verdict, and whether it is in floating point."""
    return f"{result.verdict}{_where(result)}"


def _where(result: AuditRecord | AuditBrief | Conclusion) -> str:
    return IN_FLOATING_POINT if result.is_floating_point else ""


class ClaimAndProof(NamedTuple):
    """Claimed and proved value, with enough digits to show their difference."""

    claimed: str
    proved: str


def headline(result: AuditRecord | Conclusion) -> str:
    """The verdict in one line that begins with it in capitals, and its caveat."""
    claimed, proved = claim_and_proof(result.claim, result.proved)
    noun = result.claim.quantity.noun
    unknown = noun if isinstance(result.claim, NoClaim) else f"{noun} {claimed}"
    about = noun if isinstance(result.claim, NoClaim) else f"claimed {noun} {claimed}"
    level = f"{percent(result.confidence)} confidence"
    empirical = f"empirical {noun} at least {proved} ({level})"
    if result.verdict is Verdict.VIOLATION:
        named = _proving_probes(result)
        evidence = f"{named} (empirical {noun} at least {proved}, {level})" if named else empirical
        return f"VIOLATION{_where(result)}{HEADLINE_GAP}claimed {noun} {claimed}, {evidence}"
    # A bound above the claim was withheld.
    undisputed = result.proved is not None and not exceeds_claim(result)
    text = {
        Verdict.CONSISTENT: f"no violation of {noun} {claimed} found{_caveat(result)}",
        Verdict.INCONCLUSIVE: f"{about} not decided{f'; {empirical}' if undisputed else ''}",
        Verdict.INVALID: f"{failed_part(result)}; nothing is known about {unknown}",
        Verdict.MEASURED: f"{empirical}; no claim was given",
    }[result.verdict]
    return f"{result.verdict.upper()}{HEADLINE_GAP}{text}"


def lead(result: AuditRecord) -> tuple[str, ...]:
    """Plain sentences: what was claimed, what was proved, and what could have been."""
    if isinstance(result.claim, NoClaim):
        return _without_claim(result)
    claimed, proved = claim_and_proof(result.claim, result.proved)
    claim = f"The generator claims {_claimed(result.claim, claimed)}{per_unit(result.claim)}."
    true = (
        f"With {percent(result.confidence)} confidence the true {result.claim.quantity.noun} is at "
        f"least {proved}"
    )
    is_curve = result.claim.quantity is Quantity.FACTOR
    promise = "this privacy curve" if is_curve else f"{result.claim.quantity.noun} {claimed}"
    explained = (f"{CURVE_FACTOR}.",) if is_curve else ()
    if result.verdict is Verdict.VIOLATION:
        return (
            *_violation(result, claim, true),
            *_without_bits(result),
            f"Do not rely on {promise} for tables of this generator, including those already "
            "released.",
            *explained,
            *probes_alarm(result),
            *((_upper_limit(result),) if exceeds_claim(result) else ()),
        )
    if result.verdict is Verdict.CONSISTENT:
        allowed = f"{true}, which the claim of {claimed} allows."
        return (
            f"{claim} No violation was found. This is {NOT_EVIDENCE}. "
            f"{allowed if result.proved else 'The attacks proved no leak of any size.'} "
            f"{power(result)} Smaller leaks, other {_others(result)} and stronger attackers are "
            "not ruled out.",
            *explained,
            *probes_alarm(result),
            *attempts(result),
        )
    if result.verdict is Verdict.INCONCLUSIVE:
        return (
            f"{claim} This audit could not decide: it neither contradicts the claim nor supports "
            "it.",
            *probes_alarm(result),
            *attempts(result),
            f"{JUDGED_BEFORE}." if is_withheld(result) else power(result),
        )
    return (
        f"{claim} This audit says nothing about it: {failed_part(result)}.",
        *probes_alarm(result),
    )


def _others(result: AuditRecord) -> str:
    """What else could have been attacked."""
    return "records" if result.claim.unit is None else "units"


def _violation(result: AuditRecord, claim: str, true: str) -> tuple[str, ...]:
    """What shows that a claim does not hold: the bound, or else probes before the audit."""
    if exceeds_claim(result):
        return (
            f"{claim} This audit shows that it does not hold: an attacker who sees "
            f"{(result.access or Access.OUTPUT).in_words} learns more than the claim allows. "
            f"{true}{in_odds(result)}.",
        )
    return (f"{claim} {_proofs(result)}", f"The attacks prove less: {true[0].lower()}{true[1:]}.")


def _without_bits(result: AuditRecord) -> tuple[str, ...]:
    """What is proved without the last bits of numbers, where these carry a violation."""
    if result.proved_without_bits is None:
        return ()
    proved = f"{result.claim.quantity.noun} at least {rounded_down(result.proved_without_bits)}"
    if not result.is_floating_point:
        return (f"Without the last bits of numbers the same models prove {proved}.",)
    return (
        "The violation is in floating point: without the last bits of numbers the same models "
        f"prove {proved}, which the claim allows. To end it, {FLOATING_POINT_REMEDY}.",
    )


def gravest_in_odds(audits: Mapping[str, AuditBrief]) -> tuple[str, ...]:
    """The largest violation among several audits in one sentence; empty without a violation.

    Args:
        audits: What they found, by name.
    """
    violations = [
        (name, audit)
        for name, audit in audits.items()
        if audit.verdict is Verdict.VIOLATION and exceeds_claim(audit)
    ]
    if not violations:
        return ()
    name, worst = max(violations, key=lambda each: each[1].proved or 0.0)
    _, proved = claim_and_proof(worst.claim, worst.proved)
    return (
        f"{printable(name)}: with {percent(worst.confidence)} confidence the true "
        f"{worst.claim.quantity.noun} is at least {proved}{in_odds(worst)}.",
    )


def in_odds(result: AuditRecord | AuditBrief) -> str:
    """How far a bound that proves a violation changes odds, as the end of a sentence; or empty."""
    violated = result.verdict is Verdict.VIOLATION and exceeds_claim(result)
    return changed_odds(result.claim, result.proved) if violated else ""


def compared_bound(result: AuditRecord) -> tuple[str, ...]:
    """How the Clopper-Pearson bound relates to the deciding one, in a few sentences.

    It holds at the confidence of its share of the error probability: the threshold of its counts
    was fixed on other trials. The larger of two such bounds holds only at the sum of both shares,
    unless they fail together, as it and the exact one do.
    """
    entry, counts = result.decided_by, result.counts
    if entry is None:
        return ()
    if result.clopper_pearson is None or counts is None:
        return (f"There is no Clopper-Pearson bound: {result.game.no_clopper_pearson}.",)
    error = (1.0 - result.confidence) / (2.0 if result.game.may_stop else 1.0)
    because = (
        "the exact one holds together with it and is never lower"
        if entry.key is ValidBound.EXACT
        else f"the {entry.label} rule was chosen before these models were scored, and the larger "
        "of two bounds does not hold at the confidence of each"
    )
    corrected = result.multiplicity.hypotheses
    too = f", is corrected for {corrected} attacks too," if corrected > 1 else ""
    guessed = guesses(result, entry)
    weighed = "" if guessed is None else f" ({guessed})"
    coins = COINS_GUESSED if entry.key is ValidBound.FAIR_COIN else ""
    return (
        f"{capitalised(entry.label)} {entry.short}{weighed}, {CLOPPER_PEARSON.label} "
        f"{CLOPPER_PEARSON.short}. {coins}The Clopper-Pearson bound is the one that other audits "
        f"report. It is computed from the errors of the deciding attack at its threshold (FNR "
        f"{counts.false_negatives}/{counts.n_in}, FPR {counts.false_positives}/{counts.n_out})"
        f"{too} and holds at {percent(round(1.0 - error, 12))} confidence. It does not decide: "
        f"{because}.",
    )


def bound_difference(entry: BoundEntry) -> str:
    """Why a bound differs from the Clopper-Pearson one, in one line."""
    return f"{entry.label} {entry.short}, {CLOPPER_PEARSON.label} {CLOPPER_PEARSON.short}"


def guesses(result: AuditRecord, entry: BoundEntry) -> str | None:
    """The guesses behind a fair-coin bound of the deciding attack; None for other bounds."""
    coins = next((of.guesses for of in result.attacks if of.name == result.attack), None)
    if coins is None or entry.key is not ValidBound.FAIR_COIN:
        return None
    made = sum(coins.made)
    abstains = f", abstains on {coins.trials - made}" if coins.trials > made else ""
    return f"{sum(coins.right)} of {made} right{abstains}"


def reaches_limit(result: AuditRecord) -> bool:
    """Whether the attack made no error, so that the bound is the upper limit for its models."""
    if not result.proved or result.power is None:
        return False
    errors = result.counts and result.counts.false_negatives + result.counts.false_positives
    return not errors and math.isclose(result.proved, result.power.max_provable)


def _without_claim(result: AuditRecord) -> tuple[str, ...]:
    """`lead` for an audit without a claim."""
    opening = "No claim was given, so there is none to contradict."
    if result.verdict is Verdict.MEASURED:
        return (
            f"{opening} With {percent(result.confidence)} confidence the true epsilon is at least "
            f"{rounded_down(result.proved)}. It may be far larger: other {_others(result)} and "
            "stronger attackers are not ruled out.",
            *attempts(result),
            power(result),
        )
    if result.verdict is Verdict.INVALID:
        outcome = f"This audit says nothing about the generator: {failed_part(result)}"
    else:
        outcome = JUDGED_BEFORE if is_withheld(result) else "This audit could not measure epsilon"
    return (f"{opening} {outcome}.",)


def is_withheld(result: AuditRecord) -> bool:
    """Whether a bound above the claim proves nothing, because its trials were judged before."""
    return exceeds_claim(result) and any(check.withholds for check in result.checks)


def probes_alarm(result: AuditRecord) -> tuple[str, ...]:
    """What the probes before the audit found in addition to what decides; may be empty."""
    texts = [_proofs(result)] if result.probe_proofs and exceeds_claim(result) else []
    if result.other_alarms:
        named = alarms_named(result.other_alarms)
        texts.append(
            f"Probes before the audit raised an alarm: {named}. It is no part of the verdict."
        )
    return tuple(texts)


def probe_reason(alarm: ProbeAlarm) -> str:
    """What an alarm proves, and how improbable that is under the claim."""
    return (
        f"probe {alarm.id} proves a violation: {alarm.shows}; under that claim the probability "
        f"of what it saw is at most {rounded_up(alarm.p_value)}"
    )


def _proofs(result: AuditRecord) -> str:
    """A sentence for each probe that proves a violation."""
    return " ".join(f"{capitalised(probe_reason(alarm))}." for alarm in result.probe_proofs)


def _proving_probes(result: AuditRecord | Conclusion) -> str:
    """The probes that prove a violation; empty if no probe does, or if the bound does."""
    names = [alarm.id for alarm in proofs_of(result.probe_alarms)]
    if exceeds_claim(result) or not names:
        return ""
    several = len(names) > 1
    return f"probe{'s' * several} {_joined(names)} prove{'s' * (not several)} a violation"


def alarms_named(alarms: Sequence[ProbeAlarm]) -> str:
    """The alarms of probes: "row-count-leaks (bug) and seed-ignored (violation)"."""
    return _joined([f"{alarm.id} ({alarm.severity})" for alarm in alarms])


def access(result: AuditRecord) -> str:
    """What the attacker saw: "synthetic rows alone (output)"."""
    level = result.access or Access.OUTPUT
    return f"the attacker sees {level.in_words} ({level})"


def attempts(result: AuditRecord) -> tuple[str, ...]:
    """What an audit tried without proving a violation, in one sentence; may be empty."""
    if not result.attacks:
        return ()
    return (f"Tried: {attacks_tried(result)}; target: {target(result)}.",)


def attacks_tried(result: AuditRecord) -> str:
    """The attacks and the models: "groundhog and query-target on 400 shadow models"."""
    names = _joined(list(result.tried_attacks))
    return f"{names} on {sum(result.shadow_models.values())} shadow models"


def power(result: AuditRecord) -> str:
    """What the audit could have detected, in one sentence."""
    if result.power is None:
        return "Nothing was scored, so this audit could not have detected a leak."
    limit = f"no audit of this size proves more than {rounded_down(result.power.max_provable)}"
    if isinstance(result.claim, NoClaim):
        return f"{capitalised(limit)}."
    reached = f"This audit {detects_from(result.power, result.claim)}"
    return f"{reached}." if detects_beyond_limit(result.power) else f"{reached}; {limit}."


def _upper_limit(result: AuditRecord) -> str:
    """By how much the truth may exceed the bound, in one sentence."""
    noun = result.claim.quantity.noun
    if reaches_limit(result):
        unit = "shadow models" if result.game.has_threshold else result.game.words.units
        return (
            f"The attack made no error, so the bound is all that this many {unit} can prove: the "
            f"true {noun} may be much larger."
        )
    if result.power is None:
        return power(result)
    limit = rounded_down(result.power.max_provable)
    return f"No audit of this size proves more than {limit}; the true {noun} may be larger."


def as_clearly(quantity: Quantity) -> str:
    """The leak for which an audit's power is computed."""
    if quantity is Quantity.EPSILON:
        return "as clearly as in randomised response"
    return "as clearly at one threshold as that allows"


def claim_text(claim: Claim) -> str:
    """The claim in a few words, for tables."""
    if isinstance(claim, PrivacyClaim):
        named = f"epsilon {rounded(claim.epsilon)}, delta {rounded(claim.delta)}"
    else:
        named = claim.in_words
    return f"{named}{per_unit(claim)}"


def _claimed(claim: Claim, claimed: str) -> str:
    """What is claimed, in a sentence."""
    match claim:
        case PrivacyClaim():
            return f"({claimed}, {rounded(claim.delta)})-differential privacy"
        case DeltaClaim():
            return f"({rounded(claim.at_epsilon)}, {claimed})-differential privacy"
        case GaussianClaim():
            return f"Gaussian differential privacy with mu {claimed}"
        case ConcentratedClaim():
            return f"zero-concentrated differential privacy with rho {claimed}"
        case NoClaim():
            return "nothing"
        case CurveClaim():
            points = "; ".join(
                f"epsilon {rounded(epsilon)} and delta {rounded(delta)}"
                for epsilon, delta in claim.points[:_POINTS_NAMED]
            )
            more = len(claim.points) - _POINTS_NAMED
            rest = f"; and {more} more points" if more > 0 else ""
            return f"differential privacy at every point of a curve ({points}{rest})"


def claim_and_proof(claimed: Claim, bound: float | None) -> ClaimAndProof:
    """Claim and bound, with enough digits that a bound above the claim reads as one."""
    if isinstance(claimed, NoClaim):
        return ClaimAndProof("none", rounded_down(bound))
    claim = claimed.value
    pair = ClaimAndProof(rounded(claim), rounded_down(bound))
    if bound is None:
        return pair
    digits = 4
    while bound > claim and float(pair.proved) <= float(pair.claimed) and digits <= _MOST_DIGITS:
        pair = ClaimAndProof(rounded(claim, digits=digits), rounded_down(bound, digits=digits))
        digits += 1
    return pair


def failed_part(result: AuditRecord | Conclusion) -> str:
    """What made an audit invalid: "the null control and 1 more failed"."""
    if not result.failed_parts:
        return "the audit is not valid"
    first, *others = result.failed_parts
    more = f" and {len(others)} more" if others else ""
    return printable(f"{first}{more} failed")


def target(result: AuditRecord) -> str:
    """The target and how it was chosen: "row 3, the most exposed record: sole maximum of age"."""
    repeats = result.target.repeats
    others = "" if repeats is None else f"; {counted(repeats, 'other row')} equal to it"
    return f"{_target_text(result)}{others}"


def leaks_elsewhere(result: AuditRecord) -> bool:
    """Whether a proved leak is in none of the columns for which its target was chosen."""
    chosen = [exposure.column for exposure in result.target.exposures or ()]
    named = carrier(result.leaks, result.checks) in (Carrier.FEATURES, Carrier.MANY)
    return bool(chosen) and result.proves_leak and named and not leaks_in(result.leaks, chosen)


def same_tables(target: TargetOfAudit) -> str:
    """Says that the target may rarely or never change the output, and which record does.

    Empty if it does. A few models are evidence, not proof: rare leaks can escape them.
    """
    same = target.same_tables
    if same is None:
        return ""
    place = "" if target.rows_of_unit is None else "the unit of "
    record = "the target" if target.row is None else f"{place}row {target.row}"
    text = (
        f"{record} may rarely or never change the synthetic table: with each of {same.seeds} "
        "seeds, training with it and without it gave the same one"
    )
    if same.other is not None:
        return f"{text}; row {same.other} changes it (--target row:{same.other})"
    if same.compared:
        return f"{text}; {counted(same.compared, 'other record')} together do not change it either"
    return text


def hidden_target(result: AuditRecord) -> str:
    """`same_tables` for an audit's target; empty if the audit proved a leak."""
    return "" if result.proves_leak else same_tables(result.target)


def _target_text(result: AuditRecord) -> str:
    choice, row, selection = result.target.choice, result.target.row, result.target.selection
    if result.game.instead_of_target is not None:
        return result.game.instead_of_target
    if result.target.rows_of_unit is not None:
        return _unit_text(result, result.target.rows_of_unit)
    place = "not a row of the table" if row is None else f"row {row}"
    if selection is not None:
        return (
            f"{place}, the most vulnerable of {selection.candidates} candidates "
            f"({selection.trainings} trainings)"
        )
    compared, exposures = result.target.compared, result.target.exposures
    if choice == EXPOSING and exposures is None:
        return f"{place}, the most exposed record"
    if choice == EXPOSING and exposures:
        return f"{place}, the most exposed record: {exposure_text(exposures)}"
    if choice in (EXPOSING, FARTHEST):
        why = f": {EXPOSES_NOTHING}" if choice == EXPOSING else ", the farthest record"
        how = "" if compared is None else f" of {compared} that are far from samples of the table"
        return f"{place}{why}{how}"
    return place if choice == f"row:{row}" else f"{choice} ({place})"


def _unit_text(result: AuditRecord, rows: int) -> str:
    """The attacked unit: "10 rows of one patient_id (from row 3), the most exposed unit"."""
    target = result.target
    named = f"{counted(rows, 'row')} of one {result.claim.unit} (from row {target.row})"
    if target.choice == EXPOSING:
        why = f": {exposure_text(target.exposures)}" if target.exposures else ""
        return f"{named}, the most exposed unit{why}"
    if target.choice == FARTHEST:
        return f"{named}, the unit of the farthest record"
    return f"{named}, {target.choice}"


def one_row_each(result: AuditRecord) -> str:
    """Says that units make no difference, because each has one row; else empty."""
    if result.data.units != result.data.rows:
        return ""
    return f"every {result.claim.unit} has one row, so this equals an audit of rows"


def exposure_text(exposures: Sequence[Exposure]) -> str:
    """Why a record is exposed: "sole maximum of age and income; only missing value in city"."""
    if not exposures:
        return EXPOSES_NOTHING
    named, more = exposures[:EXPOSURES_NAMED], len(exposures) - EXPOSURES_NAMED
    order = list(dict.fromkeys(exposure.fact for exposure in named))
    by_fact = groupby(sorted(named, key=lambda x: order.index(x.fact)), lambda x: x.fact)
    words = [
        f"{fact} {'of' if fact in (Fact.MAXIMUM, Fact.MINIMUM) else 'in'} "
        f"{_joined([exposure.column for exposure in group])}"
        for fact, group in by_fact
    ]
    return "; ".join([*words, *([f"{more} more"] if more > 0 else [])])


def _caveat(result: AuditRecord | Conclusion) -> str:
    """The caveat of "no violation found": alarms of probes, and the power."""
    count = len(result.probe_alarms)
    alarm = f", but {counted(count, 'probe')} raised an alarm" if count else ""
    reached = "" if result.power is None else f"{detects_from(result.power, result.claim)}; "
    return f"{alarm}; {reached}{NOT_EVIDENCE}"


def capitalised(label: str) -> str:
    """A label with its first letter capitalised and the others unchanged."""
    return label[0].upper() + label[1:]


def _joined(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
