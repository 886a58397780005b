"""From findings to a verdict, its reasons, and the record."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

import numpy as np

from dpaudit.formatting import rounded, rounded_apart
from dpaudit.game.target import Target
from dpaudit.model.choices import sampler_text
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.replaying.findings import Options, ReplayAccess, ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.reading import Proof
from dpaudit.replaying.record import (
    NotFollowed,
    PartingFound,
    ReadingFound,
    ReplayRecord,
    StoredFound,
)
from dpaudit.replaying.spending import Spent
from dpaudit.replaying.transcript import PartKind
from dpaudit.results.verdict import Verdict
from dpaudit.versions import today

_ROUNDED: Final = 1.01
"""Steps may spend this many times a claim with delta: claims and compositions are rounded."""
_EXACT: Final = 1.0 + 1e-6
"""The same of a claim without delta."""
MEANING: Final = {
    PartKind.STEPS: "what the code does next depends on the record, without noise",
    PartKind.SHAPES: "the number of noisy values depends on the record",
    PartKind.OPERANDS: "a value without noise depends on the record",
    PartKind.DRAWS: "a sampler's parameters depend on the record",
    PartKind.SEEDS: "the seed of a generator depends on the record",
    PartKind.ROWS: "the synthetic rows differ",
    PartKind.FAILURE: "the generator fails in only one world",
}
_STORED: Final = (
    "it differs between the worlds although all noisy answers are equal: hand out rows, not the "
    "model"
)
_GENERATOR: Final = (
    "a generator of random numbers, its state, or the seed of noise, which undoes the noise: hand "
    "out rows, not the model"
)


def is_overspent(claim: Claim, spent: Spent) -> bool:
    """Whether the steps spend more than a claim."""
    if spent.is_unlimited or is_over_delta(claim, spent):
        return True
    has_delta = not isinstance(claim, PrivacyClaim) or claim.delta > 0
    return spent.value is not None and spent.value > claim.value * (
        _ROUNDED if has_delta else _EXACT
    )


def is_over_delta(claim: Claim, spent: Spent) -> bool:
    """Whether keys that only one world has are shown with a larger chance than a claim's delta."""
    return isinstance(claim, PrivacyClaim) and spent.delta > claim.delta * _ROUNDED


def is_consistent(claim: Claim, findings: ReplayFindings) -> bool:
    """Whether all draws were followed, the worlds never parted, and the steps spend enough less."""
    return not any(True for _ in _open_questions(findings)) and not is_overspent(
        claim, findings.spent
    )


def _open_questions(findings: ReplayFindings) -> Iterator[str]:
    """What stands between these findings and CONSISTENT, the most telling first."""
    if findings.control is not None:
        yield f"the code is not repeatable, so nothing can be concluded: {findings.control}"
    if findings.parting is not None and findings.control is None:
        yield _parting_reason(findings)
    for site in findings.fixed_seeds:
        yield f"the noise at {site} has the same seed in every fit, so it is not secret"
    for site in findings.few_seeds:
        yield f"the noise at {site} has the same seed in several fits with different seeds"
    for site in findings.foreign_seeds:
        yield (
            f"the noise at {site} has a seed that is not made of `seed`: it is as secret as the "
            "time, or whatever else it is made of"
        )
    for first, second in findings.shared_noise:
        yield f"the noise at {first} and at {second} is the same, so a difference has none"
    for draw in findings.lost_draws[:3]:
        yield f"{draw.site}: {draw.why}"
    if findings.goes_around and not any(pilot.noisy or pilot.choices for pilot in findings.pilots):
        yield "no noise was heard, so what may protect the record was not seen"
    if findings.stored:
        place = next(iter(findings.stored))
        yield (
            f"`{place}` in the fitted model depends on the record although all noisy answers are "
            "equal; hand out rows, not the model"
        )
    if findings.generators and findings.moves:
        place = next(iter(findings.generators))
        yield (
            f"the fitted model stores what the noise is drawn from (`{place}`): hand out rows, not "
            "the model"
        )
    if (
        findings.spent.value is None
        and not findings.spent.is_unlimited
        and findings.control is None
        and findings.not_charged is None
    ):
        yield f"what the steps spend is not known: {findings.spent.note}"
    for site in findings.fresh_noise[:1]:
        yield f"every call of `sample` draws noise at {site} again, and spends again"
    if findings.left_out:
        yield f"`{next(iter(findings.left_out))}` in the fitted model could not be compared"
    if findings.pilots and not findings.moves and findings.parting is None and not findings.stored:
        yield (
            "this record moved no noisy answer and nothing else, so there was nothing to compare: "
            "try other records (--targets)"
        )
    if not findings.pilots and findings.control is None:
        yield "no replay ended"


def _parting_reason(findings: ReplayFindings) -> str:
    parting = findings.parting
    assert parting is not None
    site = next((site for site in parting.sites if site is not None), None)
    where = "" if site is None else f"{site}: "
    return f"{where}{MEANING[parting.kind]} although all noisy answers are equal"


def decide(
    claim: Claim, options: Options, findings: ReplayFindings
) -> tuple[Verdict, bool, list[str]]:
    """The verdict, whether it is of the stated proof alone, and the reasons."""
    questions = list(_open_questions(findings))
    spent = findings.spent
    over = is_overspent(claim, spent) and not findings.lost_draws
    alone = next((alone for pilot in findings.pilots for alone in pilot.charged_alone), None)
    if over and alone is not None:
        questions.insert(0, f"{alone.site}: {alone.why}; in all that is more than the claim")
        over = False
    if findings.is_shown and not findings.are_dependent:
        return Verdict.VIOLATION, False, [_shown_reason(findings), *questions]
    if findings.are_dependent:
        questions.insert(
            0,
            "fits of one process depend on one another (noise drawn at import, or kept between "
            "fits), so they prove nothing together",
        )
    if over and findings.control is None:
        reason = _overspent_reason(claim, spent)
        if options.proof is not None and not spent.is_upper_limit:
            return Verdict.VIOLATION, True, [reason, *questions]
        return Verdict.OVERSPENT, False, [reason, *questions]
    if questions:
        return Verdict.INCONCLUSIVE, False, questions
    return Verdict.CONSISTENT, False, [_limits(findings)]


def _overspent_reason(claim: Claim, spent: Spent) -> str:
    if isinstance(claim, PrivacyClaim) and is_over_delta(claim, spent):
        allowed = f"the claim's is {rounded(claim.delta)}"
        chance = rounded_apart(spent.delta, claim.delta)
        return f"keys that only one world has spend delta {chance}, and {allowed}"
    price = "without limit"
    if spent.value is not None and not spent.is_unlimited:
        most = "at most " if spent.is_upper_limit else ""
        price = f"{most}{rounded_apart(spent.value, claim.value)}"
    return f"the noise steps spend {price}, and the claim is {rounded(claim.value)}"


def _shown_reason(findings: ReplayFindings) -> str:
    if findings.proof is not None:
        return _event(findings.proof)
    assert findings.game is not None
    game = findings.game.guesses
    return (
        f"a score of {game.score} guessed the world of {game.right} of {game.guesses} fits right "
        f"({game.fits} fits, whose worlds fair coins picked)"
    )


def _event(proof: Proof) -> str:
    """The event of a proof, in words."""
    parts = []
    for part in proof.parts:
        reading = part.reading
        is_high = part.is_above == reading.rises
        side = "at least" if is_high else "below"
        parts.append(
            f"`{reading.number}` is {side} {rounded(part.value)} (the noisy answer of "
            f"{reading.answer.site})"
        )
    return " and ".join(parts)


def _limits(findings: ReplayFindings) -> str:
    count = len(findings.transcripts)
    return (
        f"the release was equal in {count} of {count} replays; what happens in less than "
        f"{rounded(3.0 / max(count, 1))} of fits is not seen, nor are other records and tables"
    )


def conclude(
    fits: Fits, options: Options, findings: ReplayFindings, *, seconds: float
) -> ReplayRecord:
    """The record of a replay."""
    spec = fits.spec
    verdict, of_proof, reasons = decide(spec.claim, options, findings)
    spent = findings.spent
    is_shown = verdict is Verdict.VIOLATION and not of_proof
    return ReplayRecord(
        verdict=verdict,
        of_proof=of_proof,
        reasons=tuple(reasons),
        generator=spec.generator.name,
        parameters=spec.generator.parameters,
        source=spec.table.source,
        schema_inferred=spec.table.schema.inferred,
        target=_target_option(spec.target),
        claim=spec.claim,
        spent=None if spent.is_unlimited else spent.value,
        spent_delta=spent.delta if findings.deltas else None,
        spent_unlimited=spent.is_unlimited,
        spent_note=spent.note,
        spent_is_exact=spent.is_exact,
        spent_is_upper_limit=spent.is_upper_limit,
        proved=_shown_bound(findings) if is_shown else 0.0,
        reading=_reading(findings) if is_shown else None,
        guesses=None if findings.game is None else findings.game.guesses,
        confidence=spec.settings.confidence,
        fits=fits.count,
        ledger=spent.lines,
        parting=_parting(findings),
        stored=tuple(
            [StoredFound(place, _STORED) for place in findings.stored]
            + [StoredFound(place, _GENERATOR) for place in findings.generators if findings.moves]
        )[:20],
        not_followed=tuple(NotFollowed(str(draw.site), draw.why) for draw in findings.lost_draws),
        fixed_seeds=tuple(map(str, findings.fixed_seeds)),
        few_seeds=tuple(map(str, findings.few_seeds)),
        fresh_noise=tuple(map(str, findings.fresh_noise)),
        not_compared=tuple(findings.left_out)[:20],
        internal=options.internal,
        proof=None if options.proof is None else options.proof.value,
        access=options.access.value,
        public_coins=options.public_coins,
        features=findings.features,
        replays=len(findings.transcripts),
        seed=spec.settings.seed,
        seconds=seconds,
        seconds_a_fit=float(np.median(fits.seconds)),
        versions=spec.versions,
        reproduce=command_of(fits, options),
        date=today(),
    )


def _shown_bound(findings: ReplayFindings) -> float | None:
    if findings.proof is not None:
        return None if np.isinf(findings.proof.bound) else findings.proof.bound
    assert findings.game is not None
    return findings.game.bound


def _reading(findings: ReplayFindings) -> ReadingFound | None:
    if findings.proof is None:
        return None
    part = findings.proof.parts[0]
    answer = part.reading.answer
    return ReadingFound(
        line=str(answer.site),
        law=answer.laws[0].name,
        released_at=str(part.reading.number),
        threshold=part.value,
        event=_event(findings.proof),
        fits=findings.proof.fits,
        bound=findings.proof.bound,
    )


def _parting(findings: ReplayFindings) -> PartingFound | None:
    parting = findings.parting
    if parting is None:
        return None
    places = [None if site is None else str(site) for site in parting.sites]
    return PartingFound(
        kind=parting.kind.value,
        place=places[0] or places[1],
        other_place=places[1] if places[1] != places[0] else None,
        inside=parting.values[0],
        outside=parting.values[1],
        meaning=MEANING[parting.kind],
        replays=len(findings.partings),
    )


def _target_option(target: Target) -> str:
    """The target as an option's value: its row if it was searched for in the table."""
    is_named = ":" in target.choice or target.row is None
    return target.choice if is_named else f"row:{target.row}"


def command_of(fits: Fits, options: Options) -> str:
    """The command that repeats a replay."""
    words = ["--public-coins"] if options.public_coins else []
    if options.fits is not None:
        words += ["--fits", str(options.fits)]
    if options.proof is not None:
        words += ["--proof", options.proof.value]
    if options.access is not ReplayAccess.MODEL:
        words += ["--access", options.access.value]
    for line in options.internal:
        words += ["--internal", f"{line.place}: {line.why}" if line.why else line.place]
    for sampler in options.samplers:
        words += ["--sampler", sampler_text(sampler)]
    return shlex.join(fits.spec.command_of("replay", [*fits.spec.pair_options, *words]))
