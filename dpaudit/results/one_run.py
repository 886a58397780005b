"""The part of a result that only an audit of one training with many canaries has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from dpaudit.bounds.table import Observed
from dpaudit.formatting import auc_text, rounded_down
from dpaudit.results.document import OPTIONAL, NonNegative, Positive, Probability, Whole
from dpaudit.results.game import Evidence, GameOutcome, GameWords, Scored, chosen_among, each_a_unit
from dpaudit.results.structure import Block, ReportTable


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
