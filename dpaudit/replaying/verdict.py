"""From findings to a verdict, its reasons, and the record."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

import numpy as np

from dpaudit.formatting import rounded
from dpaudit.game.target import Target
from dpaudit.model.choices import sampler_text
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.replaying.findings import Options, ReplayAccess, ReplayFindings
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.reading import Proof
from dpaudit.replaying.record import (
    GuessesFound,
    NotFollowed,
    PartingFound,
    ReadingFound,
    ReplayRecord,
    StoredFound,
)
from dpaudit.replaying.spending import Spent
from dpaudit.replaying.transcript import PartKind, Unfollowed
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
    if spent.is_unlimited:
        return True
    has_delta = not isinstance(claim, PrivacyClaim) or claim.delta > 0
    return spent.value is not None and spent.value > claim.value * (
        _ROUNDED if has_delta else _EXACT
    )


def is_consistent(claim: Claim, found: ReplayFindings) -> bool:
    """Whether all draws were followed, the worlds never parted, and the steps spend enough less."""
    return not any(True for _ in _open_questions(found)) and not is_overspent(claim, found.spent)


def _open_questions(found: ReplayFindings) -> Iterator[str]:
    """What stands between these findings and CONSISTENT, the most telling first."""
    if found.control is not None:
        yield f"the code is not repeatable, so nothing can be concluded: {found.control}"
    if found.parting is not None and found.control is None:
        yield _parting_reason(found)
    for site in found.fixed_seeds:
        yield f"the noise at {site} has the same seed in every fit, so it is not secret"
    for site in found.few_seeds:
        yield f"the noise at {site} has the same seed in several fits with different seeds"
    for site in found.foreign_seeds:
        yield (
            f"the noise at {site} has a seed that is not made of `seed`: it is as secret as the "
            "time, or whatever else it is made of"
        )
    for first, second in found.shared_noise:
        yield f"the noise at {first} and at {second} is the same, so a difference has none"
    for one in _unfollowed(found)[:3]:
        yield f"{one.site}: {one.why}"
    if found.goes_around and not any(one.noisy or one.choices for one in found.pilots):
        yield "no noise was heard, so what may protect the record was not seen"
    if found.stored:
        place = next(iter(found.stored))
        yield (
            f"`{place}` in the fitted model depends on the record although all noisy answers are "
            "equal; hand out rows, not the model"
        )
    if found.generators and found.moves:
        place = next(iter(found.generators))
        yield (
            f"the fitted model stores what the noise is drawn from (`{place}`): hand out rows, not "
            "the model"
        )
    if found.spent.value is None and not found.spent.is_unlimited and found.control is None:
        yield f"what the steps spend is not known: {found.spent.note}"
    for site in found.fresh_noise[:1]:
        yield f"every call of `sample` draws noise at {site} again, and spends again"
    if found.left_out:
        yield f"`{next(iter(found.left_out))}` in the fitted model could not be compared"
    if found.pilots and not found.moves and found.parting is None and not found.stored:
        yield (
            "this record moved no noisy answer and nothing else, so there was nothing to compare: "
            "try other records (--targets)"
        )
    if not found.pilots and found.control is None:
        yield "no replay ended"


def _parting_reason(found: ReplayFindings) -> str:
    parting = found.parting
    assert parting is not None
    site = next((one for one in parting.sites if one is not None), None)
    where = "" if site is None else f"{site}: "
    return f"{where}{MEANING[parting.kind]} although all noisy answers are equal"


def _unfollowed(found: ReplayFindings) -> list[Unfollowed]:
    """What was not followed, in any replay."""
    lost = [lost for one in found.pilots for lost in one.unfollowed]
    if found.goes_around:
        lost += [bare for one in found.pilots for bare in one.bare]
    return [one for one in dict.fromkeys(lost) if not (one.if_secret and found.public_coins)]


def decide(
    claim: Claim, options: Options, found: ReplayFindings
) -> tuple[Verdict, bool, list[str]]:
    """The verdict, whether it is of the stated proof alone, and the reasons."""
    questions = list(_open_questions(found))
    spent = _spent(found)
    over = is_overspent(claim, spent) and not _unfollowed(found)
    alone = next((alone for one in found.pilots for alone in one.charged_alone), None)
    if over and alone is not None:
        questions.insert(0, f"{alone.site}: {alone.why}; in all that is more than the claim")
        over = False
    if found.is_shown and not found.are_dependent:
        return Verdict.VIOLATION, False, [_shown_reason(found), *questions]
    if found.are_dependent:
        questions.insert(
            0,
            "fits of one process depend on one another (noise drawn at import, or kept between "
            "fits), so they prove nothing together",
        )
    if over and found.control is None:
        price = "without limit" if spent.is_unlimited else rounded(spent.value)
        said = f"the noise steps spend {price}, and the claim is {rounded(claim.value)}"
        if options.proof is not None and not spent.is_upper_limit:
            return Verdict.VIOLATION, True, [said, *questions]
        return Verdict.OVERSPENT, False, [said, *questions]
    if questions:
        return Verdict.INCONCLUSIVE, False, questions
    return Verdict.CONSISTENT, False, [_unseen(found)]


def _spent(found: ReplayFindings) -> Spent:
    """What counts as spent.

    Where data goes around the noise, choices do not count: what is chosen may be another value in
    each world, as the gaps between the sorted values of a table are, so that the probabilities of
    the places in a list are not those of an answer.
    """
    return found.spent_by_noise if found.goes_around else found.spent


def _shown_reason(found: ReplayFindings) -> str:
    if found.proof is not None:
        return _event(found.proof)
    assert found.game is not None
    game = found.game
    return (
        f"a score of {game.score} guessed the world of {game.right} of {game.guesses} fits right "
        f"({game.fits} fits, whose worlds fair coins picked)"
    )


def _event(proof: Proof) -> str:
    """The event of a proof, in words."""
    parts = []
    for one in proof.parts:
        reading = one.reading
        is_high = one.is_above == reading.rises
        side = "at least" if is_high else "below"
        parts.append(
            f"`{reading.number}` is {side} {rounded(one.value)} (the noisy answer of "
            f"{reading.answer.site})"
        )
    return " and ".join(parts)


def _unseen(found: ReplayFindings) -> str:
    count = len(found.transcripts)
    return (
        f"the release was equal in {count} of {count} replays; what happens in less than "
        f"{rounded(3.0 / max(count, 1))} of fits is not seen, nor are other records and tables"
    )


def conclude(
    fits: Fits, options: Options, found: ReplayFindings, *, seconds: float
) -> ReplayRecord:
    """The record of a replay."""
    spec = fits.spec
    verdict, of_proof, reasons = decide(spec.claim, options, found)
    spent = _spent(found)
    is_shown = verdict is Verdict.VIOLATION and not of_proof
    return ReplayRecord(
        verdict=verdict,
        of_proof=of_proof,
        reasons=tuple(reasons),
        generator=spec.generator.name,
        parameters=spec.generator.parameters,
        source=spec.table.source,
        schema_inferred=spec.table.schema.inferred,
        target=_named(spec.target),
        claim=spec.claim,
        spent=None if spent.is_unlimited else spent.value,
        spent_unlimited=spent.is_unlimited,
        spent_note=spent.note,
        spent_is_exact=spent.is_exact,
        proved=_proved(found) if is_shown else 0.0,
        reading=_reading(found) if is_shown else None,
        guesses=_guesses(found),
        confidence=spec.settings.confidence,
        fits=fits.count,
        ledger=spent.lines,
        parting=_parting(found),
        stored=tuple(
            [StoredFound(one, _STORED) for one in found.stored]
            + [StoredFound(one, _GENERATOR) for one in found.generators if found.moves]
        )[:20],
        not_followed=tuple(NotFollowed(str(one.site), one.why) for one in _unfollowed(found)),
        fixed_seeds=tuple(map(str, found.fixed_seeds)),
        few_seeds=tuple(map(str, found.few_seeds)),
        fresh_noise=tuple(map(str, found.fresh_noise)),
        not_compared=tuple(found.left_out)[:20],
        internal=options.internal,
        proof=None if options.proof is None else options.proof.value,
        access=options.access.value,
        public_coins=options.public_coins,
        features=found.features,
        replays=len(found.transcripts),
        seed=spec.settings.seed,
        seconds=seconds,
        seconds_a_fit=float(np.median(fits.seconds)),
        versions=spec.versions,
        reproduce=command_of(fits, options),
        date=today(),
    )


def _proved(found: ReplayFindings) -> float | None:
    if found.proof is not None:
        return None if np.isinf(found.proof.bound) else found.proof.bound
    assert found.game is not None
    return found.game.bound


def _reading(found: ReplayFindings) -> ReadingFound | None:
    if found.proof is None:
        return None
    part = found.proof.parts[0]
    answer = part.reading.answer
    return ReadingFound(
        line=str(answer.site),
        law=answer.laws[0].name,
        released_at=str(part.reading.number),
        threshold=part.value,
        event=_event(found.proof),
        fits=found.proof.fits,
        bound=found.proof.bound,
    )


def _guesses(found: ReplayFindings) -> GuessesFound | None:
    game = found.game
    if game is None:
        return None
    return GuessesFound(
        fits=game.fits,
        guesses=game.guesses,
        right=game.right,
        score=game.score,
        decided=game.is_decided,
    )


def _parting(found: ReplayFindings) -> PartingFound | None:
    parting = found.parting
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
        replays=found.partings,
    )


def _named(target: Target) -> str:
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
