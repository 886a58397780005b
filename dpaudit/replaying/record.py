"""The findings of a replay as an object, a JSON document and text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from dpaudit.errors import SettingsError
from dpaudit.formatting import (
    Row,
    aligned,
    duration,
    headed,
    percent,
    rounded,
    rounded_down,
    rounded_up,
    row_lines,
    wrapped,
)
from dpaudit.model.currencies import Claim
from dpaudit.plugins.protocols import Attack
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.rows import MovedFeature
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import INFERRED, PUBLIC_SCHEMA, claim_and_relation
from dpaudit.results.verdict import Verdict


class PartingFound(NamedTuple):
    """Where the worlds diverge although all answers are equal.

    Attributes:
        kind: How: "rows", "steps", "shapes", "operands", "draws", "noise reused" or "failure".
        place: File and line in world "in"; null if there is none.
        other_place: The same in world "out", where it differs.
        inside: What world "in" does there.
        outside: What world "out" does there; empty if `inside` says how both differ.
        meaning: What this means, in one sentence.
        replays: Number of counted replays in which the worlds diverge.
    """

    kind: str
    place: str | None
    other_place: str | None
    inside: str
    outside: str
    meaning: str
    replays: int


class NotFollowed(NamedTuple):
    """A draw that replay could not follow.

    Attributes:
        place: File and line.
        why: Why not.
    """

    place: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ReplayRecord(Document):
    """All that a replay found.

    Attributes:
        verdict: "violation", "consistent" or "inconclusive".
        reasons: Why, the most important first.
        generator: The generator's name.
        parameters: Its parameters.
        source: Where the table came from.
        schema_inferred: Whether bounds and categories were inferred from the table.
        target: The record by which the worlds differ: "row:N" where it was searched for.
        claim: The claim under replay.
        proved: The lower limit on the quantity of the claim that the counted replays prove; null if
            it is unlimited, because a loss is infinite.
        computed: Cost of the observed steps in the quantity of the claim, at the observed
            distances; null if the cost of a step is unknown.
        computed_note: Why it is null, or below what is proved; else null. Absent from results
            written before it was recorded.
        confidence: One-sided confidence of the bound.
        replays: Replays that were counted.
        fits: Total number of fits, including the control and the pilot.
        detectable: The minimum detectable epsilon (80 % power) of a Gaussian leak; null for claims
            in other quantities.
        ledger: The cost of each line, most expensive first.
        parting: Where the worlds diverge, if they do.
        not_followed: Draws that could not be followed.
        fixed_seeds: Lines whose noise has the same seed in every fit.
        rows_differ: Whether the synthetic rows differ as well.
        guesses: Further fits whose world the rows identified, without an error; the bound is then
            that of the rows. Null if no such game was won.
        public_coins: Whether coins other than noise count as public.
        features: Features of synthetic tables that the record moves, for an audit after this
            replay; null if there was no search: it is consistent, or `hand_over` was off.
        seed: Root of every random stream.
        seconds: Time, in seconds.
        seconds_a_fit: Median time of a fit in both worlds, in seconds.
        versions: Versions of dpaudit and its libraries, and of the release under replay.
        reproduce: The command that reproduces this.
        date: Day on which the replay ended, in UTC; absent from results written before it was
            recorded.
    """

    schema_version = 1

    verdict: Verdict
    reasons: tuple[str, ...]
    generator: str
    parameters: Mapping[str, Any]
    source: str
    schema_inferred: bool
    target: str
    claim: Claim
    proved: float | None
    computed: float | None
    computed_note: str | None = field(default=None, metadata=OPTIONAL)
    confidence: float
    replays: int
    fits: int
    detectable: float | None
    ledger: tuple[LedgerLine, ...]
    parting: PartingFound | None
    not_followed: tuple[NotFollowed, ...]
    fixed_seeds: tuple[str, ...]
    rows_differ: bool
    guesses: int | None
    public_coins: bool
    features: tuple[MovedFeature, ...] | None
    seed: int
    seconds: float
    seconds_a_fit: float
    versions: Mapping[str, str]
    reproduce: str
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)

    def assert_no_violation(self) -> None:
        """Raises unless the replay is consistent with the claim.

        Raises:
            AssertionError: If a violation was found, or the replay was inconclusive; the message is
                the report.
        """
        __tracebackhide__ = True
        if self.verdict is not Verdict.CONSISTENT:
            raise AssertionError(str(self))

    def attack(self) -> Attack:
        """The attack that this replay hands to an audit: the features that the record moves.

        Raises:
            SettingsError: If there are none.
        """
        if not self.features:
            raise SettingsError(
                "this replay hands no features over: it found no difference in synthetic tables; "
                "audit with the default attacks"
            )
        named = json.dumps([one[:3] for one in self.features])
        return cast(Attack, build("after-replay", ATTACKS, given={"record": named}, offered={}))

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        claimed = f"claimed {self.claim.quantity} {rounded(self.claim.value)}"
        if self.verdict is Verdict.INCONCLUSIVE:
            return f"INCONCLUSIVE  {claimed}; {self.reasons[0]}"
        proved = "has no limit" if self.proved is None else f"at least {rounded_down(self.proved)}"
        sure = "exact" if self.is_exact else f"{percent(self.confidence)} confidence"
        return f"{self.verdict.upper()}  {claimed}, {self.quantity_noun} {proved} ({sure})"

    @property
    def is_exact(self) -> bool:
        """Whether the bound needs no statistics: a claim without delta."""
        return getattr(self.claim, "delta", None) == 0 and self.guesses is None

    @property
    def quantity_noun(self) -> str:
        """What is bounded."""
        of_what = "transcript" if self.guesses is None else "synthetic rows"
        return f"{self.claim.quantity} of the {of_what}"

    def __str__(self) -> str:
        """The verdict, the ledger and the draws that could not be followed; 80 columns."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from headed(self.headline, self._rows())
        if self.parting is not None:
            yield ""
            yield from wrapped(
                f"The worlds diverge at {self.parting.place or 'the synthetic rows'}: "
                f"{self.parting.meaning}."
            )
            yield from row_lines(_parted(self.parting))
        if self.features:
            moved = ", ".join(map(str, self.features[:3]))
            yield from row_lines(
                [
                    Row("rows", f"the record moves {moved}"),
                    Row("then", "prove it from rows: `dpaudit audit --after-replay FILE`"),
                ]
            )
        if self.ledger:
            yield ""
            yield from ledger_lines(self.ledger)
        if self.not_followed:
            yield ""
            yield "not followed"
            for one in self.not_followed[:10]:
                yield from wrapped(f"{one.place}: {one.why}", first="  ", rest="    ")

    def _rows(self) -> Iterator[Row]:
        yield Row("claim", claim_and_relation(self.claim))
        yield Row("bound", self.bound_text)
        if self.computed is not None or self.computed_note is not None:
            yield Row("computed", self.computed_text)
        yield Row("target", self.target)
        if self.detectable is not None:
            yield Row("power", self.power_text)
        pair = f"{rounded(self.seconds_a_fit)} s for a pair"
        yield Row("fits", f"{self.fits} in {duration(self.seconds)}, {pair}")
        for reason in self.unsaid_reasons:
            yield Row("why", reason)
        if self.schema_inferred:
            yield Row("warning", f"{INFERRED}: {PUBLIC_SCHEMA}")
        yield Row("next", self.next_step)

    @property
    def unsaid_reasons(self) -> tuple[str, ...]:
        """The reasons of the verdict that the headline does not give."""
        return self.reasons[self.verdict is Verdict.INCONCLUSIVE :]

    @property
    def next_step(self) -> str:
        """What to do next."""
        if self.verdict is Verdict.INCONCLUSIVE:
            coins = ", or take coins as public (--public-coins) if the proof does,"
            return (
                f"repair what the verdict names{'' if self.public_coins else coins} and replay "
                "again; what a replay cannot follow, a black-box audit tests (dpaudit audit)"
            )
        if self.verdict is not Verdict.VIOLATION:
            return (
                "replay other records (--target) and tables; audit what replay does not follow "
                "(dpaudit audit)"
            )
        if self.parting is not None and self.parting.place is not None:
            return "repair the line at which the two fits diverge, then replay again"
        if self.parting is not None:
            return "find what reaches the synthetic rows without noise, repair it, replay again"
        return (
            "compare noise scale and distances of the first line of the ledger with the proof, "
            "repair the code, then replay again"
        )

    @property
    def bound_text(self) -> str:
        """The lower limit, in words."""
        proved = "no limit" if self.proved is None else f"at least {rounded_down(self.proved)}"
        if self.guesses is not None:
            return f"{proved} (from {self.guesses} fits whose world the rows identified)"
        how = (
            "exact, from the transcripts"
            if self.is_exact
            else f"from {self.replays} counted replays"
        )
        rows = "the rows differ as well" if self.rows_differ else "the rows may show less"
        return f"{proved} for the noisy answers ({how}); {rows}"

    @property
    def power_text(self) -> str:
        """What would have been detected, in words."""
        if self.is_exact:
            return "detects every loss above the claim in the transcripts that were drawn"
        return f"detects epsilon {rounded_up(self.detectable)} with 80 % power (Gaussian leak)"

    @property
    def computed_text(self) -> str:
        """What the steps cost together, in words."""
        if self.computed is None:
            return f"not known: {self.computed_note}"
        delta = getattr(self.claim, "delta", None)
        at = f" at delta {delta:g}" if delta else ""
        cost = f"{self.claim.quantity} {rounded(self.computed)}{at}"
        note = "" if self.computed_note is None else f"; {self.computed_note}"
        return f"{cost}: all steps at the observed distances{note}"


def _parted(found: PartingFound) -> list[Row]:
    """What each world does where they diverge."""
    if found.outside:
        return [Row("in", found.inside), Row("out", found.outside)]
    return [Row("rows", found.inside)]


def ledger_lines(lines: tuple[LedgerLine, ...]) -> Iterator[str]:
    """The ledger as a table of at most 80 columns."""
    rows = [("line", "law", "times", "scale", "moved", "cost", "share")]
    for one in lines[:20]:
        scale = "" if one.scale is None else rounded(one.scale)
        moved = "" if one.scale is None else rounded(one.l2 if one.mu is not None else one.l1)
        numbers = (str(one.times), scale, moved, cost(one), percent(round(one.share, 2)))
        rows.append((one.place, one.law, *numbers))
    yield from aligned(rows, numeric=range(2, 7))
    for one in lines[:20]:
        if one.other_scale is not None:
            scales = f"{one.scale:.7g} and {one.other_scale:.7g}"
            yield from wrapped(f"{one.place}: the scale depends on the data: {scales}", rest="  ")
        if one.sampling is not None:
            chance = f"which has the record with probability {one.sampling:.4g}"
            yield from wrapped(f"{one.place}: from a secret sub-sample, {chance}", rest="  ")
    if len(lines) > 20:
        yield f"{len(lines) - 20} more lines are in the JSON document"


def cost(line: LedgerLine) -> str:
    """The cost of a line: mu for Gaussian noise, else its largest loss."""
    if line.mu is not None:
        return f"mu {rounded(line.mu)}"
    return "no limit" if line.epsilon is None else f"eps {rounded(line.epsilon)}"
