"""The findings of a replay as an object, a JSON document and a page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from dpaudit.errors import SettingsError
from dpaudit.formatting import (
    Row,
    duration,
    listed,
    percent,
    rounded,
    rounded_down,
)
from dpaudit.model.claim import Claim, PrivacyClaim
from dpaudit.plugins.protocols import Attack
from dpaudit.plugins.registry import ATTACKS, build
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.ledger_page import costliest_lines, draw_lines, ledger_block
from dpaudit.replaying.moved_features import MovedFeature
from dpaudit.report.page import REPLAY, Page, Step, again, facts_block, page_text
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.phrases import INFERRED, PUBLIC_SCHEMA, but_for, claim_and_relation, odds
from dpaudit.results.sentences import CONFIDENTIAL, HEADLINE_GAP
from dpaudit.results.structure import Block
from dpaudit.results.verdict import Verdict


class ReadingFound(NamedTuple):
    """A noisy answer that is read off the release.

    Attributes:
        line: File and line of its noise.
        law: The law of its noise.
        released_at: The released number that follows it, such as "model.tables['age'][3]".
        threshold: Where the released number is cut.
        event: What was tested in each fit, in words.
        fits: Fits of their own noise, in both worlds; none contradicted it.
        bound: The lower bound, in the quantity of the claim.
    """

    line: str
    law: str
    released_at: str
    threshold: float
    event: str
    fits: int
    bound: float


class GuessesFound(NamedTuple):
    """A game in which a score of the release guesses the world of each fit.

    Attributes:
        fits: Fits, those from which the score was learnt included.
        guesses: Guesses; in the other fits it abstained.
        right: Right ones.
        score: What it looks at, in words.
        decided: Whether they refute the claim.
    """

    fits: int
    guesses: int
    right: int
    score: str
    decided: bool


class PartingFound(NamedTuple):
    """Where the worlds part although all answers are equal.

    Attributes:
        kind: How: "steps", "shapes", "operands", "draws", "seeds", "rows" or "failure".
        place: File and line in world "in"; null if there is none.
        other_place: The same in world "out", where it differs.
        inside: What world "in" does there.
        outside: What world "out" does there; empty if `inside` says how both differ.
        meaning: What this means, in one sentence.
        replays: Number of replays in which the worlds part.
    """

    kind: str
    place: str | None
    other_place: str | None
    inside: str
    outside: str
    meaning: str
    replays: int


class StoredFound(NamedTuple):
    """State of the fitted model that differs between the worlds under equal answers.

    Attributes:
        place: Where, such as "model.data".
        meaning: What this means, in words.
    """

    place: str
    meaning: str


class NotFollowed(NamedTuple):
    """A draw that replay could not follow.

    Attributes:
        place: File and line.
        why: Why not.
    """

    place: str
    why: str


class InternalLine(NamedTuple):
    """A line whose answers are declared not to be released.

    Attributes:
        place: File and line.
        why: Why they are not, in the user's words; may be empty.
    """

    place: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ReplayRecord(Document):
    """All that a replay found.

    Attributes:
        verdict: "violation", "overspent", "consistent" or "inconclusive".
        of_proof: Whether a violation rests on the stated proof alone: the steps spend more than the
            claim, and the release was not shown to leak more.
        reasons: Why, the most important first.
        generator: The generator's name.
        parameters: Its parameters.
        source: Where the table came from.
        schema_inferred: Whether bounds and categories were inferred from the table.
        target: The record by which the worlds differ: "row:N" where it was searched for.
        claim: The claim under replay.
        spent: What a proof by composition charges for the observed steps, in the quantity of the
            claim; null if it is not known or has no limit.
        spent_delta: The delta that is spent on keys that only one world has, at any epsilon; what
            it leaves of the claim's delta is that of `spent`. Null if there is no such key.
        spent_unlimited: Whether `spent` has no limit.
        spent_note: Why it is null, or what it rests on; null if there is nothing to say.
        spent_is_exact: Whether shifts and scales were the same in every replay.
        spent_is_upper_limit: Whether a proof by composition may charge less; `spent_note` says why.
        proved: The lower bound that the release shows, in the quantity of the claim; 0 if nothing
            was shown, null if it has no limit.
        reading: The noisy answer that was read off the release; null if none was.
        guesses: The game of guesses; null if it was not played.
        confidence: One-sided confidence of `proved`.
        fits: Total number of fits.
        ledger: The cost of each line, most expensive first.
        parting: Where the worlds part, if they do.
        stored: State of the model that the record changes although all answers are equal.
        not_followed: Draws that could not be followed.
        fixed_seeds: Lines whose noise has the same seed in every fit.
        few_seeds: Lines whose noise has the same seed in some fits that got different seeds.
        fresh_noise: Lines at which `sample` draws noise again at every call.
        not_compared: Places of the release that could not be compared.
        internal: Lines declared internal, which `spent` leaves out.
        proof: How the claim is proved, as stated: "composition"; null if it was not stated.
        access: What the attacker sees: "model" (the fitted model and rows) or "rows".
        public_coins: Whether coins other than noise count as public.
        features: Features of synthetic tables that the record moves, for an audit after this
            replay; null if there was no search: it is consistent, or `hand_over` was off.
        replays: Pairs of fits with equal answers.
        seed: Root of every random stream.
        seconds: Time, in seconds.
        seconds_a_fit: Median time of a fit in both worlds, in seconds.
        versions: Versions of dpaudit and its libraries, and of the release under replay.
        reproduce: The command that reproduces this.
        date: Day on which the replay ended, in UTC.
    """

    schema_version = 2
    called = "a record of a replay"
    kept_in = "the JSON of `dpaudit replay --json`"

    verdict: Verdict
    of_proof: bool
    reasons: tuple[str, ...]
    generator: str
    parameters: Mapping[str, Any]
    source: str
    schema_inferred: bool
    target: str
    claim: Claim
    spent: float | None
    spent_unlimited: bool
    spent_note: str | None
    spent_is_exact: bool
    spent_is_upper_limit: bool
    proved: float | None
    reading: ReadingFound | None
    guesses: GuessesFound | None
    confidence: float
    fits: int
    ledger: tuple[LedgerLine, ...]
    parting: PartingFound | None
    stored: tuple[StoredFound, ...]
    not_followed: tuple[NotFollowed, ...]
    fixed_seeds: tuple[str, ...]
    few_seeds: tuple[str, ...]
    fresh_noise: tuple[str, ...]
    not_compared: tuple[str, ...]
    internal: tuple[InternalLine, ...]
    proof: str | None
    access: str
    public_coins: bool
    features: tuple[MovedFeature, ...] | None
    replays: int
    seed: int
    seconds: float
    seconds_a_fit: float
    versions: Mapping[str, str]
    reproduce: str
    spent_delta: float | None = None
    date: str | None = field(default=None, compare=False, metadata=OPTIONAL)

    def assert_no_violation(self) -> None:
        """Raises unless the replay is consistent with the claim.

        Raises:
            AssertionError: On every other verdict; the message is the report.
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
        named = json.dumps([feature[:3] for feature in self.features])
        return cast(Attack, build("after-replay", ATTACKS, given={"record": named}, offered={}))

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        noun, value, cost = self.claim.quantity.noun, rounded(self.claim.value), self._cost
        least, sure = self._at_least, percent(self.confidence)
        word, clause = self.verdict.upper(), f"; {self.reasons[0]}" if self.reasons else ""
        if self.verdict is Verdict.CONSISTENT:
            clause = f", the code spends {cost}"
        elif self.verdict is Verdict.OVERSPENT:
            clause = (
                f", the code spends {cost}; the release was not shown to leak more than {value}"
            )
        elif self.of_proof:
            word, clause = f"{word} OF THE PROOF", f", its noise steps spend {cost}"
        elif self.verdict is Verdict.VIOLATION:
            clause = f", empirical {noun} {least} ({sure} confidence), {self._shown_by}"
        return f"{word}  claimed {noun} {value}{clause}"

    @property
    def _cost(self) -> str:
        """What the steps spend; with more digits where a few would read as the claim."""
        if self.spent is None:
            unknown = "without limit" if self.spent_unlimited else "an unknown amount"
            return f"{unknown}{self._and_delta}"
        alike = rounded(self.spent) == rounded(self.claim.value) and self.spent > self.claim.value
        but = " without internal lines" if any(line.internal for line in self.ledger) else ""
        most = "at most " if self.spent_is_upper_limit else ""
        return f"{most}{rounded(self.spent, digits=6 if alike else 3)}{self._and_delta}{but}"

    @property
    def _and_delta(self) -> str:
        """The delta that is spent on keys that only one world has."""
        return "" if self.spent_delta is None else f" and delta {rounded(self.spent_delta)}"

    @property
    def _at_least(self) -> str:
        return "has no limit" if self.proved is None else f"at least {rounded_down(self.proved)}"

    @property
    def _shown_by(self) -> str:
        """What the bound was shown by."""
        won = self.guesses if self.guesses is not None and self.guesses.decided else None
        place = "rows" if self.reading is None else self.reading.released_at
        if won is None:
            in_model = place.startswith("model")
            return f"read off the {'fitted model' if in_model else 'synthetic rows'}"
        where = "release" if self.access == "model" else "synthetic rows"
        return f"from the {where} by {won.right} of {won.guesses} guesses"

    def __str__(self) -> str:
        """The verdict, the ledger and the draws that could not be followed; 80 columns."""
        return page_text(replay_page(self))

    @property
    def rows(self) -> tuple[Row, ...]:
        """All facts but the reasons, with their labels."""
        rows = [
            Row("claim", claim_and_relation(self.claim)),
            Row("spent", self._spent),
            Row("release", self._release),
            Row("attacker", f"sees {self.seen}"),
            Row("target", self.target),
            Row(
                "fits",
                f"{self.fits} in {duration(self.seconds)}, {rounded(self.seconds_a_fit)} s a pair",
            ),
        ]
        for meaning in dict.fromkeys(state.meaning for state in self.stored):
            stored = [state.place for state in self.stored if state.meaning == meaning]
            rows.append(Row("stored", f"{listed(stored)}: {meaning}"))
        for label, places, meaning in (
            ("seeds", self.fixed_seeds, "has the same seed in every fit"),
            ("seeds", self.few_seeds, "has the same seed in fits that got different seeds"),
            ("sample", self.fresh_noise, "is drawn again, and spent again, at each call of sample"),
        ):
            if places:
                rows.append(Row(label, f"noise of {listed(places)} {meaning}"))
        for place, why in self.internal:
            declared = f"{place} is declared internal{f' ({why})' if why else ''}"
            is_there = any(line.internal and line.place == place for line in self.ledger)
            left_out = "what it spends is left out" if is_there else "no such line spends anything"
            rows.append(Row("internal", f"{declared}: {left_out}"))
        if self.not_compared:
            rows.append(Row("skipped", f"not compared: {listed(self.not_compared)}"))
        if self.features:
            moved = f"the record moves {listed(self.features)}"
            rows.append(
                Row("rows", f"{moved}: prove it by `dpaudit audit --set after-replay=FILE`")
            )
        if self.schema_inferred:
            rows.append(Row("warning", f"{INFERRED}: {PUBLIC_SCHEMA}"))
        return tuple(rows)

    @property
    def unsaid_reasons(self) -> tuple[str, ...]:
        """The reasons of the verdict that neither the headline nor the rows give."""
        return self.reasons[1:]

    @property
    def seen(self) -> str:
        """What the attacker sees, in words."""
        return "synthetic rows" if self.access == "rows" else "the fitted model and synthetic rows"

    @property
    def _spent(self) -> str:
        """What the steps spend together, and what that rests on."""
        note = f"; {self.spent_note}" if self.spent_note else ""
        if self.spent is None:
            unknown = "without limit" if self.spent_unlimited else "not known"
            return f"{unknown}{self._and_delta}{note}"
        delta = getattr(self.claim, "delta", None)
        at = f" at delta {delta:g}" if delta and self.spent_delta is None else ""
        scores = any(line.counts_as == "selected" for line in self.ledger)
        seen = f"the distances{' and scores' if scores else ''} seen"
        same = " (the same in every replay)" if self.spent_is_exact else ""
        return f"{self.claim.quantity.noun} {self._cost}{at}, at {seen}{same}{note}"

    @property
    def _release(self) -> str:
        """What the release shows, or how hard it was tried."""
        clauses, noun = [], self.claim.quantity.noun
        if self.reading is not None:
            event, fits, bound = self.reading[-3:]
            clauses.append(f"{noun} at least {rounded_down(bound)}: {event}; all {fits} fits agree")
        if self.guesses is not None:
            fits, guesses, right, score, decided = self.guesses
            shown = f"{noun} {self._at_least}" if decided else "not shown to exceed the claim"
            by = f" by {score}" if score else ""
            clauses.append(f"{shown}: {right} of {guesses} guesses right{by} ({fits} fits)")
        if self.verdict is Verdict.CONSISTENT:
            clauses += [reason.removeprefix("the release was ") for reason in self.reasons[:1]]
        return "; ".join(clauses) or "not tested"

    @property
    def next_step(self) -> str:
        """What to do next."""
        if self.verdict is not Verdict.VIOLATION:
            prove = "say that the claim is proved by composition (--proof composition), "
            prove = prove if self.proof is None and not self.spent_is_upper_limit else ""
            return {
                Verdict.CONSISTENT: "replay other records (--target) and tables; audit what replay "
                "does not follow (dpaudit audit)",
                Verdict.OVERSPENT: f"{prove}declare a line internal if its answers are not "
                "released (--internal FILE:LINE), or audit (dpaudit audit)",
            }.get(
                self.verdict,
                "repair what the verdict names and replay again; what a replay cannot follow is "
                "tested from outside: dpaudit probe, then dpaudit audit",
            )
        if self.parting is not None and not self.of_proof:
            line = self.parting.place or "what reaches the release without noise"
            return f"repair {line}, then replay again"
        if self.stored and self.reading is None and not self.of_proof:
            return (
                f"take {self.stored[0].place} out of the fitted model, or hand out rows alone "
                "(--access rows replays that)"
            )
        line = self.ledger[0].place if self.ledger else "the noise"
        if self.reading is not None and not self.of_proof:
            line = self.reading.line
        return f"compare {line} with the proof, repair the code or the claim, then replay again"


def replay_page(record: ReplayRecord) -> Page:
    """Arranges the report of a replay, with a bar for each line of code."""
    word, _, finding = record.headline.partition(HEADLINE_GAP)
    lines, numbers = record.ledger, facts_block("Numbers", record.rows)
    parting, not_followed = tuple(_parting(record)), tuple(_not_followed(record))
    ledger = [ledger_block(lines)] if lines else []
    return Page(
        verdict=record.verdict,
        word=word,
        finding=finding,
        about=f"Replay of {record.generator} on {record.source}",
        date=record.date,
        lead=tuple(_lead(record)),
        result=costliest_lines(lines) if lines else replace(numbers, title="Result"),
        next_step=Step((_sentence(record.next_step),)),
        findings=(
            *([numbers] if lines else []),
            *parting,
            *ledger,
            *not_followed,
            _threat_model(record),
        ),
        clauses=REPLAY,
        reproduce=again(record.source, record.reproduce),
        origin=f"dpaudit {record.versions['dpaudit']} replay",
        draw=lambda picture: draw_lines(lines),
        facts=(*record.rows, *(Row("why", reason) for reason in record.unsaid_reasons)),
        terminal=(*parting, *ledger, *not_followed),
    )


def _lead(record: ReplayRecord) -> Iterator[str]:
    shown = record.verdict is Verdict.VIOLATION and not record.of_proof
    if shown and isinstance(record.claim, PrivacyClaim):
        proved = math.inf if record.proved is None else record.proved
        yield (
            f"For some outputs, an attacker who sees {record.seen} can change the odds that this "
            f"record was used by a factor of at least {odds(proved, up=False)}. The claim allows "
            f"{odds(record.claim.epsilon, up=True)}{but_for(record.claim)}."
        )
    yield (
        "Replay fitted the unmodified code with and without one record, with the same noisy "
        "answers both times, and computed what a proof by composition charges for them."
    )
    if record.of_proof or record.verdict is Verdict.OVERSPENT:
        yield (
            "That is more than the claim, so such a proof does not hold for this code. The release "
            "was not shown to leak more than the claim: it may show less than the noisy answers."
        )
    for reason in record.unsaid_reasons:
        yield _sentence(reason)
    if record.target.startswith("row:"):
        yield CONFIDENTIAL


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}.".replace("`", "")


def _parting(record: ReplayRecord) -> Iterator[Block]:
    """Where the worlds part, and what each does there."""
    if record.parting is None:
        return
    _, place, _, inside, outside, meaning, _ = record.parting
    items = (f"in: {inside}", f"out: {outside}") if outside else (f"both: {inside}",)
    sentence = f"{place or 'The release'}: {meaning}."
    yield Block(title="Where the worlds part", paragraphs=(sentence,), items=items)


def _not_followed(record: ReplayRecord) -> Iterator[Block]:
    if record.not_followed:
        items = tuple(f"{draw.place}: {draw.why}" for draw in record.not_followed)
        yield Block(title="Not followed", items=items)


def _threat_model(record: ReplayRecord) -> Block:
    return Block(
        title="Threat model",
        paragraphs=(
            f"The attacker sees {record.seen}. Only what these show refutes the claim itself; what "
            "the code spends is what somebody could learn who saw every noisy answer.",
            "Leaks of other records and tables, and through draws that replay does not follow, are "
            "not ruled out.",
        ),
    )
