"""The part of a result that only an audit in two worlds has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from dpaudit.bounds.table import Observed, ValidBound
from dpaudit.formatting import auc_text, clipped, printable
from dpaudit.plugins.protocols import World
from dpaudit.results.document import OPTIONAL, Positive, Whole
from dpaudit.results.game import Evidence, GameOutcome, GameWords, Scored, chosen_among


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
class TwoWorldsOutcome(GameOutcome):
    """How an audit of one record ended, whose shadow models are trained with it or without it.

    Attributes:
        name: The game.
        sequential: How it ended if it could stop early; null if it could not.
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
