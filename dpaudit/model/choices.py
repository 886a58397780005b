"""Every named choice of the command line and of a project's file, and the grades of findings.

This module imports nothing heavy, because the help of a command needs only names and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from dpaudit.errors import SettingsError
from dpaudit.formatting import did_you_mean

EXPOSING: Final = "exposing"
"""The most exposed record: the one with the most column extremes and unique values."""
FARTHEST: Final = "farthest"
"""The record with the largest mean distance to its nearest neighbours."""
VULNERABLE: Final = "vulnerable"
"""The record that small attacks find easiest; needs extra trainings."""
CLEAR_MAJORITY: Final = 0.8
"""Share of a PATE ensemble's teachers that agree on an uncontested record."""

Choice = TypeVar("Choice", bound=StrEnum)


def member_named(name: str, kind: type[Choice], text: str) -> Choice:
    """The member of an enumeration that a setting names.

    Args:
        name: The setting, for the message.
        kind: The enumeration.
        text: The member's value, or the member.

    Raises:
        SettingsError: If no member has this name.
    """
    try:
        return kind(text)
    except ValueError:
        known = [member.value for member in kind]
        instead = replacement_of(name, text)
        hint = f"; {instead}" if instead else did_you_mean(str(text), known)
        raise SettingsError(f"`{name}`: {text!r} is not one of {', '.join(known)}{hint}") from None


def replacement_of(name: str, value: object) -> str:
    """What to use instead of a choice that an earlier release had; empty for any other value."""
    return _SEARCH_INSTEAD if (name, value) == ("worst_case", "search") else ""


_SEARCH_INSTEAD: Final = (
    "`dpaudit replay GENERATOR --schema FILE --search` finds the worst pair of tables and writes "
    "both, and `dpaudit audit --data WITH --set neighbours-file=WITHOUT` audits them"
)


class Effort(StrEnum):
    """The size of an audit, unless its sizes are given explicitly."""

    QUICK = "quick"
    STANDARD = "standard"
    THOROUGH = "thorough"


class FigureName(StrEnum):
    """The figures of a result."""

    CLAIM = "claim"
    """The bounds next to the claim and to what the audit could reach."""
    ROC = "roc"
    """The ROC curve of the deciding attack."""
    SCORES = "scores"
    """Its scores in both worlds."""


class Access(StrEnum):
    """What the attacker sees of every model.

    Model includes output, and released includes both; timing includes output alone, and everything
    includes all others.
    """

    OUTPUT = "output"
    """Synthetic rows."""
    MODEL = "model"
    """Also what a fitted model makes public: its discriminator, its weights."""
    RELEASED = "released"
    """What the proof of privacy protects, before any post-processing."""
    TIMING = "timing"
    """Rows, and the seconds and memory of every training."""
    EVERYTHING = "everything"
    """What the proof protects, and the seconds and memory of every training."""

    @property
    def parts(self) -> tuple[Access, ...]:
        """The levels that it combines: two for everything, else only itself."""
        return (Access.RELEASED, Access.TIMING) if self is Access.EVERYTHING else (self,)

    @property
    def in_words(self) -> str:
        """What the attacker sees, as it reads after "the attacker sees"."""
        return {
            Access.OUTPUT: "synthetic rows alone",
            Access.MODEL: "rows and what the fitted model discloses",
            Access.RELEASED: "rows, model and what the proof protects",
            Access.TIMING: "rows and the seconds and memory of every training",
            Access.EVERYTHING: "rows, model, what the proof protects, and the seconds and memory "
            "of every training",
        }[self]

    @property
    def of_replay(self) -> str:
        """What the attacker of a replay sees: the fitted model, or rows alone."""
        return "model" if self.includes(Access.MODEL) else "rows"

    def includes(self, other: Access) -> bool:
        """Whether an attacker at this level sees all that an attacker at the other level sees."""
        if Access.EVERYTHING in (self, other):
            return self is Access.EVERYTHING
        if Access.TIMING in (self, other):
            return other in (self, Access.OUTPUT)
        order = list(Access)
        return order.index(self) >= order.index(other)


class ThresholdRule(StrEnum):
    """Where threshold and direction come from; each rule leaves the bound its confidence.

    The best threshold on the scored trials, counted as if it had been fixed, is not offered: its
    bound fails more often than its confidence allows.
    """

    CROSS_VALIDATED = "cross-validated"
    """Chosen on cross-validated scores of the fitting part (`choose_threshold`).

    It costs no trials: those that fit the attack also choose the threshold, and all others are
    scored. The scores used for the choice come from fits on fewer trials than the final one.
    """

    HOLD_OUT = "hold-out"
    """Chosen on trials that are neither fitted nor scored, as in most published audits.

    It costs these trials: the paper's 400/200/400 gives up a third of those that could be scored.
    The scores used for the choice and the scores counted come from the same fit.
    """


class BoundedNumber(StrEnum):
    """The number of an (epsilon, delta) claim that an audit bounds."""

    EPSILON = "epsilon"
    """Epsilon, at the claimed delta."""
    DELTA = "delta"
    """Delta, at the claimed epsilon."""


class Multiplicity(StrEnum):
    """The correction for multiple hypotheses on the scored trials."""

    BONFERRONI = "bonferroni"
    """Every attack is scored, each with its share of the error probability."""
    SELECT = "select"
    """Only the attack with the largest forecast on the fitting part is scored.

    In two worlds the combination of all attacks is a candidate too.
    """


class WorstCase(StrEnum):
    """A pair of neighbouring tables made to show a leak, built from a public schema alone."""

    OPPOSITE = "opposite"
    ONE_HOT = "one-hot"
    NARROW = "narrow"
    MST = "mst"
    MIXED = "mixed"
    REVERSED = "reversed"
    CENTRE = "centre"
    INSIDE = "inside"
    OUTLIER = "outlier"
    MISSING = "missing"
    BATCH = "batch"
    CROWD = "crowd"

    @property
    def meaning(self) -> str:
        """The table in words."""
        return _MEANINGS[self]

    @property
    def has_own_schema(self) -> bool:
        """Whether its table is the same for every audit, which then takes no schema."""
        return self is WorstCase.MST


_MEANINGS = {
    WorstCase.OPPOSITE: "ten equal records, and one that differs from them in every column",
    WorstCase.ONE_HOT: "records spread over every column's values, and one that alone has the last "
    "value of each",
    WorstCase.NARROW: "as opposite, on three columns of the schema at most, the label among them",
    WorstCase.MST: "ten records (0, 0, 0) and one (1, 1, 1) in three binary columns; no schema is "
    "needed",
    WorstCase.MIXED: "ten records of two kinds, and one whose values all occur but not together",
    WorstCase.REVERSED: "ten equal records with the last value of every column, and one with the "
    "first of each",
    WorstCase.CENTRE: "ten equal records in the middle of every column, and one with the last "
    "value of each",
    WorstCase.INSIDE: "five records with the first value of every column, five with the last, and "
    "one between them",
    WorstCase.OUTLIER: "forty records in the first fifth of every column, and one with the last "
    "value of each",
    WorstCase.MISSING: "forty records, all but one of them with missing values wherever they may "
    "be, and one with the last value of every column",
    WorstCase.BATCH: "eight equal records, and one that differs from them in every column and "
    "starts another batch",
    WorstCase.CROWD: "256 equal records, and one that differs from them in every column",
}


class EngineName(StrEnum):
    """Where trials run."""

    LOCAL = "local"
    DASK = "dask"


class FailOn(StrEnum):
    """Least severe verdict that gives a non-zero exit code."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    NEVER = "never"


class Mechanism(StrEnum):
    """The noise mechanisms for a vote of k teachers between two classes."""

    GAUSSIAN = "gaussian"
    """Normal noise on the count of ones (GNMax for two classes, at sigma = s sqrt 2)."""
    LAPLACE = "laplace"
    """Laplace noise on the count of ones."""
    NOISY_MAX = "noisy-max"
    """Laplace noise on each of the two counts: PATE's and PATE-GAN's noisy argmax."""


class Method(StrEnum):
    """How the cost of many labels is proved; each is an upper bound."""

    RDP = "rdp"
    """Rényi divergences add up; converted at the best order."""
    PLD = "pld"
    """Privacy loss distributions of a dominating pair are convolved."""
    TIGHT = "tight"
    """The optimum over adversaries who choose every vote knowing the earlier labels."""
    BEST = "best"
    """The smaller of `RDP` and `PLD`: both in well under a second."""


class Drawing(StrEnum):
    """What is simulated in each run."""

    BITS = "bits"
    """Every label, through `VoteTable.release`: the sampler that a generator draws from."""
    COUNTS = "counts"
    """The number of labels only, binomial with the table's probability: for millions of labels.

    The attack is as strong, but a defect of the sampler would go unseen.
    """


class Assumption(StrEnum):
    """The assumption of an estimate about the mechanism."""

    GAUSSIAN = "gaussian"


class Severity(StrEnum):
    """What follows from a finding of a trace or an alarm of a probe, the most severe first."""

    VIOLATION = "violation"
    """The privacy claim does not hold, or its proof does not."""
    BUG = "bug"
    """The output or the claim is wrong; the privacy claim may still hold."""
    NOTE = "note"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the most severe."""
        return list(Severity).index(self)


LAWS: Final = (
    *("gaussian", "laplace", "discrete_laplace", "discrete_gaussian", "exponential", "gumbel"),
    *("geometric", "gamma", "logistic"),
)
"""Laws available for the user's own samplers (`check_sampler`)."""
_SHAPED: Final = ("geometric", "gamma")
"""Laws with a second parameter, `shape`: a probability of success, or the shape of the gamma."""
_PARAMETER: Final = {"type": ["string", "number"]}
SAMPLER_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["function", "law", "scale"],
    "properties": {
        "function": {"type": "string", "pattern": "^[^:]+:[^:]+$"},
        "law": {"enum": list(LAWS)},
        "scale": _PARAMETER,
        "loc": {"type": "string"},
        "shape": _PARAMETER,
    },
    "if": {"properties": {"law": {"enum": list(_SHAPED)}}},
    "then": {"required": ["shape"]},
}
"""JSON Schema of one sampler."""


def check_sampler(sampler: Mapping[str, Any]) -> None:
    """Checks the declaration of a sampler.

    Args:
        sampler: Its `function` ("module:name"), its `law`, and the names of its parameters for
            `scale` and, if it has them, `loc` and `shape`; a scale or shape that is always the same
            is given as a number.

    Raises:
        SettingsError: If a key is missing or unknown, or the law is unknown.
    """
    keys = list(SAMPLER_SCHEMA["properties"])
    for key in sampler:
        if key not in keys:
            raise SettingsError(
                f"`samplers`: {key!r} is not a key of a sampler{did_you_mean(key, keys)}; there is "
                f"{', '.join(keys)}"
            )
    module, colon, name = str(sampler.get("function", "")).partition(":")
    if not (module and colon and name) or "scale" not in sampler:
        raise SettingsError(
            f"`samplers`: {dict(sampler)!r} is not a sampler: name its function as MODULE:NAME, "
            "its law, and its parameter for the scale, as in mylib.noise:sample,law=laplace,scale=b"
        )
    law = str(sampler.get("law"))
    if law not in LAWS:
        raise SettingsError(
            f"`samplers`: {law!r} is not a law that replay knows{did_you_mean(law, LAWS)}; there "
            f"is {', '.join(LAWS)}"
        )
    if law in _SHAPED and "shape" not in sampler:
        raise SettingsError(
            f"`samplers`: {law} noise needs its parameter for the shape, shape=NAME"
        )


def sampler_of(text: str) -> dict[str, Any]:
    """Reads a sampler as the option `--sampler` names it: FUNCTION,law=LAW,scale=NAME."""
    function, *rest = text.split(",")
    fields = dict(part.partition("=")[::2] for part in rest)
    return {"function": function, **{key: _number(value) for key, value in fields.items()}}


def sampler_text(sampler: Mapping[str, Any]) -> str:
    """Writes a sampler as the option `--sampler` names it and `sampler_of` reads it."""
    rest = (f"{key}={value}" for key, value in sampler.items() if key != "function")
    return ",".join([sampler["function"], *rest])


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
