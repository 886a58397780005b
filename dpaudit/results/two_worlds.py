"""The part of a result that only an audit in two worlds has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.formatting import auc_text, clipped, percent, printable, rounded_down
from dpaudit.plugins.protocols import World
from dpaudit.results.document import OPTIONAL, NonNegative, Positive, Probability, Whole
from dpaudit.results.game import Evidence, GameOutcome, GameWords, Scored, chosen_among
from dpaudit.results.structure import Block, ReportTable


@dataclass(frozen=True, kw_only=True)
class SequentialOutcome:
    """How a sequential audit ended.

    Attributes:
        trials: Trials run, of both worlds together; attacks were first fitted on 16 of them.
        cap: Largest number of trials.
        stopped_early: Whether a violation was proved before the cap.
        guessed_by: Trials that each attack bet on for the sequential bound, where the selected
            attack changed on the way; absent where one attack bet on all, or none.
    """

    trials: Whole
    cap: Positive
    stopped_early: bool
    guessed_by: Mapping[str, Positive] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class RightGuesses:
    """How often a secret was guessed right from the releases of one world.

    Attributes:
        right: Releases from which it was guessed right.
        releases: Scored releases.
        least: Lower end of the exact (Clopper-Pearson) interval for the share of right guesses.
        most: Upper end; both ends hold together at the confidence of the audit.
    """

    right: Whole
    releases: Positive
    least: Probability
    most: Probability

    @property
    def share(self) -> float:
        """The share of right guesses."""
        return self.right / self.releases

    @property
    def ends(self) -> str:
        """The interval in words."""
        return f"{percent(round(self.least, 3))} to {percent(round(self.most, 3))}"


@dataclass(frozen=True, kw_only=True)
class SecretOutcome:
    """How well the target's value in one column is guessed from its others and a release.

    Attributes:
        column: The column.
        tolerance: For a number or a date, the largest error of a right guess, as a share of the
            column's range; absent for a category, which must be guessed exactly.
        inside: Guesses from releases made with the record.
        outside: Guesses from releases made without it.
        difference: Share of right guesses with the record, minus the share without it.
        proved: Lower bound on epsilon, or on the quantity of the claim, from these guesses; it
            holds together with those of other attacks.
    """

    column: str
    tolerance: Probability | None = field(default=None, metadata=OPTIONAL)
    inside: RightGuesses
    outside: RightGuesses
    difference: float
    proved: NonNegative

    @property
    def in_words(self) -> str:
        """The finding in one sentence for those who decide."""
        near = "" if self.tolerance is None else f" within {percent(self.tolerance)} of its range"
        inside, outside = (percent(round(of.share, 2)) for of in (self.inside, self.outside))
        return (
            f"Knowing the rest of this person's record, an attacker guesses {self.column!r} "
            f"right{near} in {inside} of releases with the record and in {outside} without it; "
            "what people like this person have in common, not their record, explains the "
            f"{outside}."
        )

    def bound(self, noun: str) -> str:
        """The difference between the worlds, and what it proves of a quantity."""
        points = f"{100 * self.difference:+.1f} percentage points"
        proved = f"{noun} at least {rounded_down(self.proved)}" if self.proved else "nothing"
        return f"{points}, which proves {proved}"

    def block(self, noun: str) -> Block:
        """The section of a report.

        Args:
            noun: What the bound is about, such as epsilon.
        """
        worlds = (("with the record", self.inside), ("without it", self.outside))
        rows = tuple(
            (name, f"{of.right} of {of.releases}", percent(round(of.share, 3)), of.ends)
            for name, of in worlds
        )
        return Block(
            title=f"Guessing {self.column!r}",
            paragraphs=(
                self.in_words,
                "A decision tree that is grown on each release guesses the value. The difference "
                f"is {self.bound(noun)}; the error probability is shared with the attack on "
                "membership.",
            ),
            table=ReportTable(
                ("Releases", "Guessed right", "Share", "Exact interval"), rows, frozenset({1, 2, 3})
            ),
        )


@dataclass(frozen=True, kw_only=True)
class TwoWorldsOutcome(GameOutcome):
    """How an audit of one record ended, whose shadow models are trained with it or without it.

    Attributes:
        name: The game.
        sequential: How it ended if it could stop early; null if it could not.
        secret: How well a secret was guessed; absent if none was.
    """

    words = GameWords(
        attacked="the target",
        unknown="whether the target was in the table that a model came from",
        copies="copies the target",
        separates="distinguishes members from non-members",
        units="models",
        inside="trained with the target",
        outside="trained without the target",
        panels="Models with the target and without it",
        scores="A high score means that a shadow model was probably trained with the target, a low "
        "one without it. The better the attack, the less the two overlap.",
    )
    names_leaks = True

    name: Literal["two worlds"] = "two worlds"
    sequential: SequentialOutcome | None
    secret: SecretOutcome | None = field(default=None, metadata=OPTIONAL)

    @property
    def may_stop(self) -> bool:
        """Whether it is sequential."""
        return self.sequential is not None

    @property
    def has_fixed_independent_trials(self) -> bool:
        """False for a sequential audit, whose results decided the number of trials."""
        return self.sequential is None

    @property
    def turns(self) -> Mapping[str, int]:
        """Bets by attack, in a sequential audit whose selected attack changed; else empty."""
        return (self.sequential and self.sequential.guessed_by) or {}

    @property
    def early_end(self) -> str | None:
        """That a sequential audit stopped."""
        run = self.sequential
        if run is None or not run.stopped_early:
            return None
        return (
            f"stopped early, after {run.trials} of at most {run.cap} shadow models; attacks "
            "were fitted on the first 16"
        )

    @property
    def no_clopper_pearson(self) -> str:
        """Why there is no such bound: it needs a number of trials that was fixed beforehand."""
        if self.sequential is None:
            return "the result was written without it"
        return "the audit stopped early"

    def achieved(self, audit: Scored) -> str | None:
        """AUC and error rates of the deciding attack."""
        counts = audit.counts
        if counts is None or audit.attack is None:
            return None
        trained = self._trained(audit)
        by = "" if trained is None else f"; {trained} models trained it"
        return (
            f"{clipped(printable(audit.attack), 20)}: AUC {auc_text(audit.auc)}, "
            f"FNR {counts.false_negatives}/{counts.n_in}, "
            f"FPR {counts.false_positives}/{counts.n_out}{by}"
            f"{chosen_among(len(audit.attacks), 'models')}"
        )

    def parts(self, audit: Scored) -> str | None:
        """How many models each part has; None for a sequential audit, which trains as it goes."""
        counts, trained = audit.counts, self._trained(audit)
        if counts is None or trained is None:
            return None
        return (
            f"Of {sum(audit.shadow_models.values())} shadow models {trained} trained the attacks "
            f"and {counts.n_in + counts.n_out} were scored: {counts.n_in} with the target (FNR is "
            f"of these) and {counts.n_out} without it (FPR)."
        )

    def _trained(self, audit: Scored) -> int | None:
        """Models that trained the attacks and were not scored; None if that is no fixed number."""
        if audit.counts is None or self.sequential is not None:
            return None
        rest = sum(audit.shadow_models.values()) - audit.counts.n_in - audit.counts.n_out
        return rest if rest > 0 else None

    def models(self, audit: Scored) -> tuple[str, str]:
        """Shadow models of each world."""
        trained = audit.shadow_models
        return "Shadow models", f"{trained[World.IN]} with the target, {trained[World.OUT]} without"

    def disclosed(self, audit: Scored) -> str | None:
        """How often the secret was guessed right in each world, and what that proves."""
        secret = self.secret
        if secret is None:
            return None
        inside, outside, name = secret.inside, secret.outside, printable(repr(secret.column))
        return (
            f"{name} guessed right in {inside.right} of {inside.releases} releases with the record "
            f"({inside.ends}), {outside.right} of {outside.releases} without it ({outside.ends}): "
            f"{secret.bound(audit.claim.quantity.noun)}"
        )

    def blocks(self, audit: Scored) -> Iterator[Block]:
        """What guesses of a secret show."""
        if self.secret is not None:
            yield self.secret.block(audit.claim.quantity.noun)

    def evidence(self, audit: Scored) -> Iterator[Evidence]:
        """For each attack, its errors or guesses, whichever rule was chosen, and its bets.

        If the run has no bound for a fixed number of trials, their results decided that number,
        even if the cap was reached: such a bound would not be valid. One of the two rules was
        chosen before the trials were scored: the better of both, chosen afterwards, would not be
        valid either.
        """
        for attack in audit.attacks:
            counts = tuple(attack.counts)
            if attack.guesses is not None:
                yield Evidence(attack.name, Observed.COINS, tuple(attack.guesses))
                yield Evidence(attack.name, Observed.COUNTS, counts, chosen=False)
            elif attack.bounds[ValidBound.EXACT] is not None:
                yield Evidence(attack.name, Observed.COUNTS, counts)
            if self.sequential is not None:
                recorded = attack.bounds[ValidBound.SEQUENTIAL]
                yield Evidence(attack.name, Observed.BETS, None, recorded=recorded)
