"""The explanation of a leak: one JSON document, and the same in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpaudit.explain.effect import Effect, FixedAudit, allowed_auc
from dpaudit.explain.suspects import TOGETHER
from dpaudit.formatting import auc_text, duration, percent, printable, rounded, rounded_down
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results.document import to_document
from dpaudit.results.verdict import Verdict

SCHEMA_VERSION = 1

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
class Explanation:
    """What fixing each suspect did to a leak.

    Attributes:
        generator: Name of the generator that leaks.
        claim: The claim that it violates.
        confidence: Of each bound by itself.
        shadow_models: Models that each fixed generator was given at most.
        before: The leak.
        fixed: One audit for each suspect.
        reproduce: The command that gives this explanation again.
    """

    generator: str
    claim: PrivacyClaim
    confidence: float
    shadow_models: int
    before: Before
    fixed: Sequence[FixedAudit]
    reproduce: str

    @property
    def removing(self) -> list[FixedAudit]:
        """The suspects without which the leak is gone: each alone if there are any, else all."""
        found = [one for one in self.fixed if one.effect is Effect.REMOVES]
        return [one for one in found if one.suspect != TOGETHER] or found

    @property
    def conclusion(self) -> str:
        """What is to blame, in one sentence."""
        before, removing = rounded_down(self.before.proved), self.removing
        after = ", ".join(rounded_down(one.result.proved) for one in removing)
        bounds = f"bound {before} -> {after}"
        if [one.suspect for one in removing] == [TOGETHER]:
            if len(self.fixed) == 1:
                return f"fixing all suspects together removes it: {bounds}"
            return f"no fix that was tried removes it alone, all together do: {bounds}"
        if removing:
            names = " or ".join(one.suspect for one in removing)
            alone = ", each alone," if len(removing) > 1 else ""
            return f"fixing {names}{alone} removes it: {bounds}"
        if unproved := self._with(Effect.UNPROVED):
            return (
                f"nothing is shown to remove it; with {unproved} fixed it is not proved any more, "
                "but may be there: try more shadow models"
            )
        if invalid := self._with(Effect.INVALID):
            return f"nothing is shown to remove it; with {invalid} fixed the audit is not valid"
        return "no fix that was tried removes it: the leak is elsewhere"

    @property
    def _allowed_limits(self) -> str:
        """The areas under the ROC curve that the claim allows, rounded inwards."""
        most = float(rounded_down(allowed_auc(self.claim)))
        return f"{rounded(1 - most)} to {rounded(most)}"

    def _with(self, effect: Effect) -> str:
        return " or ".join(one.suspect for one in self.fixed if one.effect is effect)

    def to_document(self) -> dict[str, Any]:
        """The explanation as a JSON object."""
        return {
            "schema_version": SCHEMA_VERSION,
            "generator": self.generator,
            "claim": to_document(self.claim),
            "confidence": self.confidence,
            "shadow_models": self.shadow_models,
            "allowed_auc": allowed_auc(self.claim),
            "before": self.before._asdict(),
            "conclusion": self.conclusion,
            "removed_by": [one.suspect for one in self.removing],
            "suspects": [_entry(one) for one in self.fixed],
            "reproduce": self.reproduce,
        }

    def to_json(self) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_document(), indent=2, allow_nan=False)

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


def _entry(one: FixedAudit) -> dict[str, Any]:
    return {
        "name": one.suspect,
        "effect": one.effect.value,
        "verdict": one.result.verdict.value,
        "reasons": list(one.result.reasons),
        "proved": one.result.proved,
        "auc": one.auc,
        "auc_limits": None if one.limits is None else list(one.limits),
        "max_provable_epsilon": one.result.max_provable_epsilon,
        "detectable_epsilon": one.result.detectable_epsilon,
        "shadow_models": sum(one.result.shadow_models.values()),
        "seconds": one.result.seconds,
        "folder": one.folder,
    }


def _in_words(one: FixedAudit) -> str:
    words = _EFFECTS[one.effect]
    if one.effect is Effect.INVALID or one.limits is None:
        return f"{words}: {printable(one.result.reasons[0])}"
    words += f": bound {rounded_down(one.result.proved)}, AUC {auc_text(one.auc)}"
    words += f" ({rounded(one.limits.low)} to {rounded(one.limits.high)})"
    if one.effect is Effect.UNPROVED and one.result.verdict is Verdict.INCONCLUSIVE:
        words += f"; {printable(one.result.reasons[0])}"
    return f"{words}; {duration(one.result.seconds)}"
