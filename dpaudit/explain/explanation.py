"""The explanation of a leak: one JSON document, and the same in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpaudit.explain.effect import Effect, FixedAudit
from dpaudit.explain.suspects import TOGETHER
from dpaudit.formatting import auc_text, duration, percent, printable, rounded, rounded_down
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.document import Document
from dpaudit.results.verdict import Verdict

_EFFECTS = {
    Effect.REMOVES: "removes it",
    Effect.UNPROVED: "not shown",
    Effect.REMAINS: "still leaks",
    Effect.INVALID: "invalid",
}


class Before(NamedTuple):
    """The leak as it was found, with as many shadow models as fixed generators are given.

    Attributes:
        attack: The attack that proved most.
        proved: Its bound.
        auc: Its AUC.
    """

    attack: str
    proved: float
    auc: float


@dataclass(frozen=True, kw_only=True)
class Explanation(Document):
    """What fixing each suspect did to a leak.

    Attributes:
        generator: Name of the generator that leaks.
        claim: The claim that it violates.
        confidence: Of each bound by itself.
        shadow_models: Models that each fixed generator was given at most.
        allowed_auc: The largest area under the ROC curve that the claim allows.
        before: The leak.
        conclusion: What is to blame, in one sentence.
        removed_by: The suspects without which it is gone: each alone if there are any, else all.
        fixed: One audit for each suspect.
        reproduce: The command that gives this explanation again.
    """

    schema_version = 1

    generator: str
    claim: PrivacyClaim
    confidence: float
    shadow_models: int
    allowed_auc: float
    before: Before
    conclusion: str
    removed_by: tuple[str, ...]
    fixed: tuple[FixedAudit, ...]
    reproduce: str

    @property
    def _allowed_limits(self) -> str:
        """The areas under the ROC curve that the claim allows, rounded inwards."""
        most = float(rounded_down(self.allowed_auc))
        return f"{rounded(1 - most)} to {rounded(most)}"

    def __str__(self) -> str:
        """The conclusion, a line for each suspect, and what the words mean."""
        width = max(len(one.suspect) for one in self.fixed)
        lines = [
            self.conclusion,
            f"{printable(self.generator)} violates epsilon {rounded(self.claim.epsilon)}: bound "
            f"{rounded_down(self.before.proved)}, AUC {auc_text(self.before.auc)} "
            f"({self.before.attack}); with one suspect fixed:",
        ]
        lines += [f"  {one.suspect:<{width}}  {_in_words(one)}" for one in self.fixed]
        lines.append(
            f"Each bound holds at {percent(self.confidence)} by itself. A fix removes the leak if "
            "none is proved any more and the limits of the AUC lie within what the claim allows, "
            f"{self._allowed_limits}, for every attack of this audit; another attack might find "
            "more. Not shown: none is proved, but those limits are wider."
        )
        return "\n".join(lines)


def removing(fixed: Sequence[FixedAudit]) -> list[FixedAudit]:
    """Those without which the leak is gone: each alone if there are any, else all together."""
    found = [one for one in fixed if one.effect is Effect.REMOVES]
    return [one for one in found if one.suspect != TOGETHER] or found


def conclusion(before: Before, fixed: Sequence[FixedAudit]) -> str:
    """What is to blame for a leak, in one sentence."""
    removed = removing(fixed)
    after = ", ".join(rounded_down(one.audit.proved) for one in removed)
    bounds = f"bound {rounded_down(before.proved)} -> {after}"
    names = {
        effect: " or ".join(one.suspect for one in fixed if one.effect is effect)
        for effect in Effect
    }
    if [one.suspect for one in removed] == [TOGETHER]:
        if len(fixed) == 1:
            return f"fixing all suspects together removes it: {bounds}"
        return f"no fix that was tried removes it alone, all together do: {bounds}"
    if removed:
        suspects = " or ".join(one.suspect for one in removed)
        alone = ", each alone," if len(removed) > 1 else ""
        return f"fixing {suspects}{alone} removes it: {bounds}"
    if unproved := names[Effect.UNPROVED]:
        return (
            f"nothing is shown to remove it; with {unproved} fixed it is not proved any more, "
            "but may be there: try more shadow models"
        )
    if invalid := names[Effect.INVALID]:
        return f"nothing is shown to remove it; with {invalid} fixed the audit is not valid"
    return "no fix that was tried removes it: the leak is elsewhere"


def _in_words(one: FixedAudit) -> str:
    words = _EFFECTS[one.effect]
    if one.effect is Effect.INVALID or one.limits is None:
        return f"{words}: {printable(one.audit.reasons[0])}"
    words += f": bound {rounded_down(one.audit.proved)}, AUC {auc_text(one.auc)}"
    words += f" ({rounded(one.limits.low)} to {rounded(one.limits.high)})"
    if one.effect is Effect.UNPROVED and one.audit.verdict is Verdict.INCONCLUSIVE:
        words += f"; {printable(one.audit.reasons[0])}"
    return f"{words}; {duration(one.audit.seconds)}"
