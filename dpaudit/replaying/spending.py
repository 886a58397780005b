"""What the steps of a fit spend together, as a proof by composition charges them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.model.claim import (
    Claim,
    CurveClaim,
    GaussianClaim,
    Neighbours,
    PrivacyClaim,
    require_claim,
)
from dpaudit.replaying.charges import StepCharge, charges_of
from dpaudit.replaying.costs import (
    CostPart,
    GaussianCost,
    OpenCost,
    PureCost,
    TableCost,
    amplify,
    epsilon_at,
    is_huge,
    pure_epsilon,
    shorten,
)
from dpaudit.replaying.laws import kind_of
from dpaudit.replaying.ledger import LedgerLine, ledger
from dpaudit.replaying.transcript import NoisyStep, Question, Site, Transcript

_EQUAL: Final = 1e-6
"""Relative error up to which replays cost the same."""
_NOT_AMPLIFIED: Final = "as if sub-samples were public"
_SIMPLY: Final = "losses too large to compose are summed up"
_SHOWN: Final = "no limit: a key that only one world has may be shown"
_LARGEST: Final = "some steps by their largest losses"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What the observed steps cost together, for this pair of tables.

    Attributes:
        value: In the quantity of the claim; None if it is not known or has no limit.
        delta: What is spent of delta on keys that only one world has, at any epsilon.
        is_unlimited: Whether it has no limit.
        note: Why it is not known or has no limit, or in what way it is an upper limit.
        is_exact: Whether it is the cost of the answers, not an upper limit or one of several costs.
        limited: The lines for which a proof may charge less, as for scores that are not released.
        lines: The ledger of the costliest replay.
    """

    value: float | None = None
    delta: float = 0.0
    is_unlimited: bool = False
    note: str | None = None
    is_exact: bool = False
    limited: frozenset[Site] = frozenset()
    lines: tuple[LedgerLine, ...] = ()

    @property
    def is_upper_limit(self) -> bool:
        """Whether a proof may charge less."""
        return bool(self.limited)

    def limit(self, limits: Mapping[str, Set[Site]]) -> Spent:
        """The same as an upper limit: why, and for which lines a proof may charge less."""
        note = "; ".join(filter(None, (*limits, self.note)))
        limited = self.limited.union(*limits.values())
        return replace(
            self, note=note or None, is_exact=self.is_exact and not limits, limited=limited
        )

    def not_known(self, why: str) -> Spent:
        """The same as an unknown cost, and why; what has no limit stays so."""
        return self if self.is_unlimited else replace(self, value=None, note=why, is_exact=False)


def spend(
    transcripts: Sequence[Transcript],
    claim: Claim,
    *,
    public_coins: bool,
    unamplified: Collection[Site] = (),
    internal: Collection[tuple[str, int]] = (),
    others: Sequence[Transcript] = (),
    deltas: Mapping[Site, float] = MappingProxyType({}),
) -> Spent:
    """What a proof by composition charges for the observed steps.

    Args:
        transcripts: Replays; the costliest counts.
        claim: The claim. For a privacy curve, the factor by which its epsilons must be multiplied.
        public_coins: Whether sub-samples are public, so that they do not amplify privacy.
        unamplified: Lines that sub-samples do not amplify.
        internal: Files and lines whose answers are not released; they are not charged.
        others: Further replays, in which laws and scales may differ from these.
        deltas: The delta that each line spends on keys that only one world has.

    Raises:
        ClaimError: If there is no claim.
    """
    require_claim(claim, method="a replay")
    if not transcripts:
        return Spent()
    is_internal = partial(_is_among, lines=internal)
    hidden = not public_coins and claim.neighbours is Neighbours.ADD_REMOVE
    replays = []
    deltas = {site: delta for site, delta in deltas.items() if not is_internal(site)}
    delta = _join_deltas(deltas.values())
    every = [*transcripts, *others]
    several_laws = _steps_with_several(_kind_of, every)
    several_scales = _steps_with_several(_scales_of, every)
    steps = chain.from_iterable(transcript.noisy for transcript in every)
    scaled = {step.site for step in steps if step.key in several_scales}
    for transcript in (*transcripts, *_edges_with(several_scales, others)):
        transcript = _as_charged(transcript, unamplified, several_laws)
        chances: dict[int | None, float] = {None: 1.0}
        for at, toss in enumerate(transcript.tosses):
            chances[at] = toss.chance if hidden else 1.0
        charges = charges_of(transcript, is_internal=is_internal)
        lines = ledger(transcript, charges, chances, deltas, is_internal=is_internal)
        counted = [charge for charge in charges.charges if not is_internal(charge.site)]
        total = _total(counted, claim, chances, delta)
        if transcript.parting is not None and total.value < math.inf:
            total = _Total(math.nan, "the worlds part before the end")
        notes = [] if total.note is None else [total.note]
        limits = dict(charges.limits)
        if math.isfinite(total.value):
            replaces = not (hidden or public_coins) and any(
                charge.toss is not None for charge in counted
            )
            if replaces or (unamplified and not public_coins):
                notes.append(_NOT_AMPLIFIED)
            limits |= {note: {charge.site for charge in counted} for note in notes}
            notes = list(limits)
        is_left_out = bool(transcript.tosses) and not any(toss.is_in for toss in transcript.tosses)
        limited_lines = {*scaled, *chain.from_iterable(limits.values())}
        replays.append(_Replay(total.value, notes, limited_lines, lines, is_left_out))
    value, notes, limited, lines, _ = max(replays, key=_rank)
    is_known = math.isfinite(value)
    if is_known and not all(
        _are_alike(lines, replay.lines) for replay in replays if not replay.is_left_out
    ):
        notes = [f"the costliest of {len(replays)} replays", *notes]
    return Spent(
        value=value if is_known else None,
        delta=delta,
        is_unlimited=value == math.inf,
        note="; ".join(notes) or None,
        is_exact=is_known and not notes,
        limited=frozenset(limited),
        lines=lines,
    )


def _is_among(site: Site, lines: Collection[tuple[str, int]]) -> bool:
    """Whether a line is one of these, by the ends of their files' paths."""
    file = "/" + site.file.replace("\\", "/")
    return any(
        site.line == line and file.endswith("/" + name.replace("\\", "/").lstrip("/"))
        for name, line in lines
    )


def _steps_with_several(
    kind: Callable[[NoisyStep], object], transcripts: Sequence[Transcript]
) -> set[Question]:
    """Steps that are of several kinds in different replays."""
    kinds = defaultdict(set)
    for transcript in transcripts:
        for step in transcript.noisy:
            kinds[step.key].add(kind(step))
    return {key for key, seen in kinds.items() if len(seen) > 1}


def _edges_with(steps: Collection[Question], others: Sequence[Transcript]) -> list[Transcript]:
    """Replays at the edges of uniform draws with any of these steps.

    Where a scale is drawn, it may be smaller there than in all other replays.
    """
    return [
        other
        for other in others
        if other.is_coin_edge
        and other.parting is None
        and any(step.key in steps for step in other.noisy)
    ]


def _kind_of(step: NoisyStep) -> object:
    """The law up to its scale; times a random sign, say, noise has no known law."""
    return kind_of(None if step.laws is None else step.laws[0])


def _scales_of(step: NoisyStep) -> object:
    """The scales; where they are drawn or follow answers, a proof may charge less than the most."""
    return step.scales.inside.tobytes()


def _as_charged(
    transcript: Transcript, unamplified: Collection[Site], several_laws: Collection[Question]
) -> Transcript:
    """The same without the record's own coins at some lines, and without some steps' laws."""

    def without_coin(step: Any) -> Any:
        return replace(step, toss=None) if step.site in unamplified else step

    noisy = [
        replace(step, laws=None) if step.key in several_laws else step
        for step in map(without_coin, transcript.noisy)
    ]
    return replace(transcript, noisy=noisy, choices=list(map(without_coin, transcript.choices)))


class _Total(NamedTuple):
    """The cost of a replay.

    Attributes:
        value: Infinite if it has no limit, NaN if it is not known.
        note: Why, or in what way it is an upper limit.
    """

    value: float
    note: str | None = None


class _Replay(NamedTuple):
    """The cost of a replay, with its lines.

    Attributes:
        value: As in `_Total`.
        notes: Why it is not known or has no limit, or in what way it is an upper limit.
        limited: The lines for which it, or a cost without limit, is an upper limit.
        lines: The ledger.
        is_left_out: Whether the record's own coins put it out of every sub-sample.
    """

    value: float
    notes: list[str]
    limited: Set[Site]
    lines: tuple[LedgerLine, ...]
    is_left_out: bool


def _rank(replay: _Replay) -> tuple[int, float]:
    """The costliest is the largest: without limit before not known, and that before a number."""
    if math.isnan(replay.value):
        return 1, 0.0
    return (2, 0.0) if replay.value == math.inf else (0, replay.value)


def _are_alike(lines: Sequence[LedgerLine], others: Sequence[LedgerLine]) -> bool:
    """Whether shifts, scales and costs of two replays agree."""

    def numbers(line: LedgerLine) -> list[float | None]:
        return [line.epsilon, line.mu, line.l1, line.l2, line.scale, line.other_scale]

    by_place = [{(line.place, line.law): numbers(line) for line in own} for own in (lines, others)]
    return by_place[0].keys() == by_place[1].keys() and all(
        (number is None) == (other is None)
        and (
            number is None
            or other is None
            or math.isclose(number, other, rel_tol=_EQUAL, abs_tol=1e-9)
        )
        for key, own in by_place[0].items()
        for number, other in zip(own, by_place[1][key], strict=True)
    )


def _join_deltas(deltas: Iterable[float]) -> float:
    """The chance that at least one of some independent draws shows its key."""
    with np.errstate(divide="ignore"):
        return float(-np.expm1(np.sum(np.log1p(-np.array(list(deltas))))))


def _left_of(delta: float, spent: float) -> float:
    """What is left of a delta; 0 up to rounding."""
    return delta - spent if spent < delta * (1.0 - _EQUAL) else 0.0


def _total(
    charges: Sequence[StepCharge],
    claim: Claim,
    chances: Mapping[int | None, float],
    delta: float,
) -> _Total:
    """The cost of all charges in the quantity of a claim, if this delta is spent as well."""
    if isinstance(claim, PrivacyClaim):
        return _epsilon(charges, _left_of(claim.delta, delta), chances)
    if delta > 0 and not (
        isinstance(claim, CurveClaim)
        and all(delta * (1.0 - _EQUAL) <= point.delta for point in claim.points)
    ):
        return _Total(math.inf, _SHOWN)
    if isinstance(claim, CurveClaim):
        each = [
            (_epsilon(charges, _left_of(point.delta, delta), chances), point.epsilon)
            for point in claim.points
        ]
        factors = [total._replace(value=total.value / at) for total, at in each]
        return max(
            factors, key=lambda factor: math.inf if math.isnan(factor.value) else factor.value
        )
    is_mu = isinstance(claim, GaussianClaim)

    def square(charge: StepCharge) -> float:
        return charge.times * (charge.cost.mu**2 if is_mu else charge.cost.rho)

    values = [square(charge) for charge in charges]
    total = math.inf if math.inf in values else sum(values)
    if not math.isfinite(total):
        return _open_total(total, charges, square)
    exact = GaussianCost if is_mu else (GaussianCost, TableCost)
    note = _join_notes(
        (_NOT_AMPLIFIED, any(chances[charge.toss] < 1.0 for charge in charges)),
        (_LARGEST, not all(isinstance(charge.cost, exact) for charge in charges)),
    )
    return _Total(math.sqrt(total) if is_mu else total, note)


def _epsilon(
    charges: Sequence[StepCharge], delta: float, chances: Mapping[int | None, float]
) -> _Total:
    """Epsilon at delta of all charges."""
    if delta == 0:
        losses = [(charge.toss, charge.cost.epsilon * charge.times) for charge in charges]
        value = pure_epsilon(losses, chances)
        if math.isfinite(value):
            return _Total(value)
        return _open_total(value, charges, lambda charge: charge.cost.epsilon)
    parts, is_amplified = _parts(charges, chances)
    value = epsilon_at(parts, delta)
    if not math.isfinite(value):
        return _open_total(value, charges, _at_delta)
    is_large = is_huge(parts)
    note = _join_notes(
        (_NOT_AMPLIFIED, not is_amplified or (is_large and any(part.chance < 1 for part in parts))),
        (_SIMPLY, is_large),
        (_LARGEST, any(isinstance(part.cost, PureCost) for part in parts)),
    )
    return _Total(value, note)


def _join_notes(*notes: tuple[str, bool]) -> str | None:
    return "; ".join(text for text, holds in notes if holds) or None


def _at_delta(charge: StepCharge) -> float:
    """Infinite or NaN for charges that may have no epsilon at a delta above 0."""
    cost = charge.cost
    if isinstance(cost, OpenCost):
        return cost.at_delta
    return cost.epsilon if isinstance(cost, TableCost) else 0.0


def _open_total(
    value: float, charges: Sequence[StepCharge], size: Callable[[StepCharge], float]
) -> _Total:
    """A cost without limit, or that is not known, with the first line that makes it so."""
    alike = math.isinf if value == math.inf else math.isnan
    charge = next((charge for charge in charges if alike(size(charge))), None)
    if charge is None:
        return _Total(value, "a step costs more than accountants compose")
    if isinstance(charge.cost, OpenCost):
        why = charge.cost.why
    elif isinstance(charge.cost, TableCost):
        why = f"an outcome at {charge.site} that only one world has"
    elif math.isnan(value):
        why = f"the cost of the noise at {charge.site} is not known"
    else:
        why = f"Gaussian noise at {charge.site} has no epsilon at delta 0"
    return _Total(value, f"no limit: {why}" if value == math.inf else why)


def _parts(
    charges: Sequence[StepCharge], chances: Mapping[int | None, float]
) -> tuple[Counter[CostPart], bool]:
    """The parts of a composition, and whether all sub-samples are amplified.

    The steps that one coin decides are one part: Gaussian ones by their joint shift, any one of a
    single number or choice, others by their largest losses together.
    """
    parts: Counter[CostPart] = Counter()
    square, is_amplified = 0.0, True
    by_toss: dict[int | None, list[StepCharge]] = defaultdict(list)
    for charge in charges:
        by_toss[charge.toss if chances[charge.toss] < 1.0 else None].append(charge)
    # one coin decides all of its steps, so they are amplified together, not one by one
    for toss, own in by_toss.items():
        gaussian = [charge.cost.far**2 for charge in own if isinstance(charge.cost, GaussianCost)]
        others = [charge for charge in own if not isinstance(charge.cost, GaussianCost)]
        losses = sum(charge.cost.epsilon * charge.times for charge in others)
        if toss is not None and not others:
            parts[CostPart(GaussianCost(shorten(math.sqrt(sum(gaussian)))), chances[toss])] += 1
        elif toss is not None and not gaussian and len(others) == others[0].times == 1:
            parts[CostPart(others[0].cost, chances[toss])] += 1
        elif toss is not None and not gaussian and math.isfinite(losses):
            parts[CostPart(PureCost(shorten(amplify(losses, chances[toss]))))] += 1
        else:
            is_amplified &= toss is None
            square += sum(gaussian)
            for charge in others:
                parts[CostPart(charge.cost)] += charge.times
    if square > 0:
        parts[CostPart(GaussianCost(math.sqrt(square)))] += 1
    return parts, is_amplified
