"""How the game of an audit ended: the parts of a result that differ from game to game.

An audit's record holds the outcome of one game. Terminal, report, `dpaudit report --bounds` and
`dpaudit explain` ask it through `GameOutcome`, and nothing else knows which game it is: a new one
is a subclass here, and its name in `AuditRecord.game`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from dpaudit.bounds import CoinGuesses, Counts, Threshold
from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.formatting import auc_text, clipped, percent, printable, rounded_down
from dpaudit.model.claim import Claim
from dpaudit.plugins.protocols import World
from dpaudit.results.document import OPTIONAL, NonNegative, Positive, Probability, Whole
from dpaudit.results.structure import MOST_ROWS, Block, ReportTable, left_out


@dataclass(frozen=True, kw_only=True)
class AttackOutcome:
    """What one attack achieved on the scored trials.

    Attributes:
        name: Its name.
        auc: Area under its ROC curve; 0.5 is chance.
        bounds: Lower bounds on epsilon, or on the quantity of the claim, from its errors or its
            guesses, whichever was chosen on other trials, and the Clopper-Pearson bound from its
            errors, which decides nothing; where the selected attack changed on the way, the
            sequential one is from the bets of all that were selected.
        counts: Its errors at its threshold.
        threshold: The scores that it guesses to be "in".
        guesses: Its guesses by weight, where the fair-coin bound is the one that was computed;
            absent where it was not.
        shares: For the combination of all attacks, each attack's share of its weights, largest
            first; absent for every other attack.
    """

    name: str
    auc: Probability
    bounds: Mapping[ValidBound, NonNegative | None]
    counts: Counts
    threshold: Threshold
    guesses: CoinGuesses | None = field(default=None, metadata=OPTIONAL)
    shares: Mapping[str, Probability] | None = field(default=None, metadata=OPTIONAL)


class Scored(Protocol):
    """The fields of a record that the game's outcome reads."""

    @property
    def attack(self) -> str | None:
        """Name of the deciding attack; None if nothing was scored."""

    @property
    def auc(self) -> float | None:
        """Area under its ROC curve."""

    @property
    def counts(self) -> Counts | None:
        """Its errors."""

    @property
    def attacks(self) -> Sequence[AttackOutcome]:
        """Every attack that was scored at a threshold."""

    @property
    def claim(self) -> Claim:
        """The claim under audit."""

    @property
    def shadow_models(self) -> Mapping[World, int]:
        """Trials run in each world."""


def chosen_among(attacks: int, scored: str) -> str:
    """That an AUC is that of the best of several attacks; empty if there was no choice."""
    return f"; best of {attacks} attacks on the same {scored}, so optimistic" if attacks > 1 else ""


class Evidence(NamedTuple):
    """What a bound of one attack is computed from.

    Attributes:
        attack: Name of the attack.
        observed: The kind of observation.
        given: The observations, as `Observed` lists them; None if the result does not hold them.
        recorded: The bound that was recorded; None where all can be computed again.
        chosen: Whether this bound was chosen before the trials were scored.
        estimates: Whether only estimates may use it.
    """

    attack: str
    observed: Observed
    given: tuple[Any, ...] | None
    recorded: float | None = None
    chosen: bool = True
    estimates: bool = False


class GameWords(NamedTuple):
    """Names of a game's parts in a report.

    Attributes:
        attacked: Whose membership is attacked.
        unknown: What the attacker has to find out.
        copies: What the generator of the positive control does.
        separates: What an attack that finds something in a control does.
        units: What is scored, one by one.
        inside: Units of world "in".
        outside: Units of world "out".
        panels: Title of the picture of their scores.
        scores: The meaning of a high score, and how a better attack would change the figure.
    """

    attacked: str
    unknown: str
    copies: str
    separates: str
    units: str
    inside: str
    outside: str
    panels: str
    scores: str


def each_a_unit(unit: str | None) -> str:
    """That each of many records is a unit: ", each all rows of one patient"; else empty."""
    return "" if unit is None else f", each all rows of one {unit}"


class GameOutcome(ABC):
    """How the game of an audit ended."""

    words: ClassVar[GameWords]
    needed: ClassVar[tuple[str, ...]] = (
        "counts",
        "attacks",
        "threshold_rule",
        "threshold",
        "scores",
    )
    """Fields of the record, or of this, that a verdict on the claim needs, as Python names them."""
    unexplained: ClassVar[str] = ""
    """Why `dpaudit explain` does not open such an audit; empty if it does."""
    names_leaks: ClassVar[bool] = False
    """Whether the features that carry the deciding attack are searched for."""
    names_rows: ClassVar[bool] = False
    """Whether its report names attacked rows of the table, as well as that of the target."""
    has_threshold: ClassVar[bool] = True
    """Whether the deciding attack guesses by one threshold, whose errors are counted."""

    @property
    def may_stop(self) -> bool:
        """Whether it may end early, so that each attack has two bounds, with half of the error."""
        return False

    @property
    def has_fixed_independent_trials(self) -> bool:
        """Whether scored trials are independent of one another, and of how many there are."""
        return True

    @property
    def turns(self) -> Mapping[str, int]:
        """Trials that each attack bet on, where the attack that bets changed on the way."""
        return {}

    @property
    @abstractmethod
    def no_clopper_pearson(self) -> str:
        """Why the game has no Clopper-Pearson bound, for attacks without one."""

    @property
    def instead_of_target(self) -> str | None:
        """What is attacked, in a few words; None if it is the target."""
        return None

    @property
    def early_end(self) -> str | None:
        """That it ended before its last trial, in one line; None if it did not."""
        return None

    def disclosed(self, audit: Scored) -> str | None:
        """What guesses of a secret show, in one line; None if none was guessed."""
        return None

    @abstractmethod
    def achieved(self, audit: Scored) -> str | None:
        """The result of the deciding attack, in one line; None if nothing was scored."""

    @abstractmethod
    def models(self, audit: Scored) -> tuple[str, str]:
        """What was trained, for a table of settings: what it is called, and how many."""

    def parts(self, audit: Scored) -> str | None:
        """How many shadow models trained the attacks and how many were scored, in a sentence."""
        return None

    def failed(self, error: str) -> str | None:
        """That its only training failed, in one sentence; None if there are several."""
        return None

    def blocks(self, audit: Scored) -> Iterable[Block]:
        """The parts of a report that no other game has."""
        return ()

    def evidence(self, audit: Scored) -> Iterator[Evidence]:
        """What its bounds are computed from, attack by attack."""
        for attack in audit.attacks:
            if attack.guesses is not None:
                yield Evidence(attack.name, Observed.COINS, tuple(attack.guesses))


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


@dataclass(frozen=True, kw_only=True)
class CanaryOutcome:
    """The result of one attack on the canaries of a one-run audit.

    Attributes:
        name: Its name.
        auc: Area under its ROC curve over all canaries; 0.5 is chance.
        bound: Its lower bound on epsilon, or on the quantity of the claim, corrected for the number
            of attacks.
        right: Whether its guess of each canary's coin is right, the most confident guess first.
    """

    name: str
    auc: Probability
    bound: NonNegative
    right: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class OneRunOutcome(GameOutcome):
    """How a one-run audit ended.

    It has no counts, no threshold and no leaks; its one training counts as a trial of world in, and
    scores are of the canaries that were in and out.

    Attributes:
        name: The game.
        canaries: Records that were each included by a fair coin.
        included: Canaries whose coin fell on in.
        guesses: Number of the deciding attack's most confident guesses that give its bound, which
            accounts for every number that was tried. All canaries until there are guesses.
        correct: Number of these that are right; null if the training failed or did not run.
        gaussian_estimate: Epsilon that assumes a Gaussian trade-off curve, in nats: an estimate,
            not a proof, and never decides. Null at delta 0, for a claim in another quantity, and
            where `correct` is null.
        interference: Share of the information about a canary in exact one- and two-way marginals
            that is lost because the other coins are unknown; computed before the training.
        attacks: The result of each attack; empty without guesses.
        unit: The column of the unit that each canary is; absent in an audit of rows.
    """

    words = GameWords(
        attacked="the canaries",
        unknown="which of the canaries were in the table that a model came from",
        copies="releases its training rows",
        separates="guesses the coins",
        units="canaries",
        inside="canaries trained on",
        outside="canaries left out",
        panels="Included and excluded canaries",
        scores="A high score means that a synthetic record is close to the canary. The better the "
        "attack, the less included and excluded canaries overlap.",
    )
    needed = ("game.correct",)
    unexplained = "a one-run audit: explain trains shadow models; audit without `one_run`"
    has_threshold = False

    name: Literal["one run"] = "one run"
    canaries: Positive
    included: Whole
    guesses: Positive
    correct: Whole | None
    gaussian_estimate: NonNegative | None
    interference: Probability
    attacks: tuple[CanaryOutcome, ...]
    unit: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def no_clopper_pearson(self) -> str:
        """Why there is no such bound: it needs independent trials."""
        return "the canaries of one training are not independent trials"

    @property
    def instead_of_target(self) -> str:
        """How many canaries, and of what."""
        return f"{self.canaries} canaries{each_a_unit(self.unit)}"

    def achieved(self, audit: Scored) -> str | None:
        """The right guesses behind the bound."""
        if self.correct is None:
            return None
        return (
            f"{audit.attack}: AUC {auc_text(audit.auc)}, {self.correct} of {self.guesses} guesses "
            f"right, {self.canaries} canaries in one training"
            f"{self._chosen}"
        )

    @property
    def _chosen(self) -> str:
        """Says that the deciding attack was chosen by its bound; empty if no bound is above 0."""
        attacks = len(self.attacks) if any(attack.bound for attack in self.attacks) else 0
        return chosen_among(attacks, "canaries")

    def models(self, audit: Scored) -> tuple[str, str]:
        """The one training."""
        return "One training", f"{self.canaries} canaries"

    def failed(self, error: str) -> str:
        """Says that the one training failed."""
        return f"The one training failed: {error}"

    def blocks(self, audit: Scored) -> Iterable[Block]:
        """Guesses and the bound of each attack."""
        if self.correct is None:
            return
        rows = [
            (
                "Canaries",
                str(self.canaries),
                f"far from other records{each_a_unit(self.unit)}, each included by a fair coin",
            ),
            ("Included", str(self.included), "in the table that the generator was trained on"),
            (
                "Guesses",
                str(self.guesses),
                "the most confident ones; the bound accounts for the choice of their number",
            ),
            ("Guessed right", str(self.correct), "half of the guesses by chance"),
            (
                "AUC",
                auc_text(audit.auc),
                f"of the scores of all canaries; 0.5 is chance{self._chosen}",
            ),
            *(
                (f"Bound, {attack.name}", rounded_down(attack.bound), f"AUC {auc_text(attack.auc)}")
                for attack in self.attacks
            ),
            (
                "Interference",
                f"{100.0 * self.interference:.0f} %",
                "of what marginals reveal about a canary is lost, as the other coins are unknown",
            ),
        ]
        if self.gaussian_estimate is not None:
            meaning = "an estimate that assumes a Gaussian trade-off curve; never decides"
            rows.append(("Epsilon, estimated", rounded_down(self.gaussian_estimate), meaning))
        yield Block(
            title="One training, many canaries",
            paragraphs=(
                f"The generator was trained once. The attack {audit.attack} guessed from the "
                "synthetic table which canaries were in the training table. A claim limits how "
                "many guesses are right; the bound follows from that limit and accounts for the "
                "choice of their number.",
            ),
            table=ReportTable(("Quantity", "Number", "Meaning"), tuple(rows), frozenset({1})),
        )

    def evidence(self, audit: Scored) -> Iterator[Evidence]:
        """The guesses of each attack in order, and those behind the deciding attack's bound.

        The number of the latter was chosen with the coins known, which only estimates allow.
        """
        for attack in self.attacks:
            yield Evidence(attack.name, Observed.IN_TURN, (attack.right,))
        if self.correct is not None:
            observed = (self.correct, self.guesses, self.canaries)
            yield Evidence(str(audit.attack), Observed.CANARIES, observed, estimates=True)


@dataclass(frozen=True, kw_only=True)
class RecordOutcome:
    """The guesses about one of many records.

    Attributes:
        row: Its row in the table, from 0, or the first row of its unit.
        guesses: Scored models for which its membership was guessed.
        correct: Right guesses.
    """

    row: Whole
    guesses: Whole
    correct: Whole


@dataclass(frozen=True, kw_only=True)
class RecordsOutcome(GameOutcome):
    """How an audit of many records per shadow model ended.

    All models count as trials of world out, and counts and scores are of the coins of all records.

    Attributes:
        name: The game.
        scored: Scored models that finished; a fair coin put each record into each of them or not.
        each: The records, with the guesses of the deciding attack.
        unit: The column of the unit that each record is; absent in an audit of rows.
    """

    words = GameWords(
        attacked="the attacked records",
        unknown="which of the attacked records were in the table that a model came from",
        copies="copies the records that it saw",
        separates="guesses the coins",
        units="coins",
        inside="trained with the record",
        outside="trained without the record",
        panels="Models with a record and without it",
        scores="A high score means that a shadow model was probably trained with the record, a low "
        "one without it. The better the attack, the less the two overlap.",
    )
    names_rows = True
    unexplained = "an audit of many records: explain attacks one; audit without `records`"

    name: Literal["many records"] = "many records"
    scored: Whole
    each: tuple[RecordOutcome, ...]
    unit: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def has_fixed_independent_trials(self) -> bool:
        """Coins of records share their models."""
        return False

    @property
    def no_clopper_pearson(self) -> str:
        """Why there is no such bound: it needs independent trials."""
        return "the coins of one model are not independent trials"

    @property
    def instead_of_target(self) -> str:
        """How many records, and of what."""
        return (
            f"{len(self.each)} records{each_a_unit(self.unit)}, each by a fair coin in every model"
        )

    def achieved(self, audit: Scored) -> str | None:
        """AUC and right guesses, of all records together."""
        if audit.counts is None or audit.attack is None:
            return None
        made, right = (
            sum(getattr(record, name) for record in self.each) for name in ("guesses", "correct")
        )
        return (
            f"{clipped(printable(audit.attack), 20)}: AUC {auc_text(audit.auc)}, "
            f"{right} of {made} guesses right, {len(self.each)} records"
            f"{chosen_among(len(audit.attacks), 'models')}"
        )

    def models(self, audit: Scored) -> tuple[str, str]:
        """Shadow models; all have some of the records."""
        trained = audit.shadow_models[World.OUT]
        return "Shadow models", f"{trained}, each with about half of the records"

    def blocks(self, audit: Scored) -> Iterable[Block]:
        """The records, those guessed best first."""
        if not self.scored:
            return
        ordered = sorted(self.each, key=lambda each: (-each.correct, each.guesses, each.row))
        yield Block(
            title="Many records per shadow model",
            paragraphs=(
                f"A fair coin decided for each shadow model and each of {len(self.each)} records "
                f"whether the model was trained with it{each_a_unit(self.unit)}. On {self.scored} "
                "models that it was not "
                f"fitted on, the attack {audit.attack} guessed these coins; it abstains where it "
                "is unsure.",
                *left_out(ordered, "records"),
            ),
            table=ReportTable(
                ("Row" if self.unit is None else "First row", "Guesses", "Right"),
                tuple(
                    (str(record.row), str(record.guesses), str(record.correct))
                    for record in ordered[:MOST_ROWS]
                ),
                frozenset({1, 2}),  # a row is a name
            ),
        )
