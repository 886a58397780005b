"""Every path of an audit, thousands of times: how often it flags, and how often it catches.

A path is what an audit does from its outcomes to its bound: two worlds with one attack or several,
bets, claims in other quantities, many records, one training, a released table, failures. Each is
put to mechanisms exactly at its claim, and to ones that leak as much as its plan states to be
caught with 80 % power. Only trainings and tables are simulated.

Results are written after every few audits, and the same command goes on. What is complete stays,
whatever the code is now (the page says which code made it), until it is asked for again; only
where another leak is stated by now, leaks are simulated again.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import loky
import numpy as np

from dpaudit.auditing import plan
from dpaudit.auditing.one_run.attack import guess
from dpaudit.auditing.one_run.plan import power as one_run_power
from dpaudit.auditing.records.attack import evaluate_records, fit_records
from dpaudit.auditing.records.plan import power as records_power
from dpaudit.auditing.settings import AuditSettings
from dpaudit.bounds.guarantee import TradeOffGuarantee, guarantee_of
from dpaudit.bounds.limits import rejecting_region
from dpaudit.game.records import draw_included
from dpaudit.model.choices import Access, Multiplicity, ThresholdRule
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.currencies import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
)
from dpaudit.model.gaussian import gaussian_delta
from dpaudit.plugins.named import NamedAttack
from dpaudit.plugins.protocols import BoolArray, FloatArray
from dpaudit.released_data.bound import released_bound, released_power
from dpaudit.released_data.membership import enough, parted, recognise
from dpaudit.released_data.scores import ATTACKS
from dpaudit.results.verdict import Power
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_attacks.models import ReleasedFacts
from reports.calibration.audits import code_digest, mapped
from reports.calibration.cells import Cell, simulated
from reports.calibration.failing import Failing, How
from reports.calibration.mechanisms import GAUSSIAN_DELTA, Kind, Mechanism
from reports.calibration.pipeline import FirstFeature, fixed_on, worlds_of
from reports.calibration.simulated import Seen, SimulatedAudit, proved, simulated_audit
from reports.command import write_json

NOMINAL: Final = 0.05
CLAIMED: Final = 1.0
"""Epsilon, mu or factor of every claim; of zCDP rho is half of it, that of the same Gaussian."""
MODELS: Final = 100
"""Shadow models of both worlds together, two fifths of which fit the attack."""
RECORDS: Final = 6
CANARIES: Final = 100
ROWS: Final = 400
"""Rows with a coin of a released table, half of which are scored."""
AT_ONCE: Final = 250
"""Audits between two writes of the results."""


class Size(NamedTuple):
    """How many audits.

    Attributes:
        honest: Of a mechanism at its claim.
        failing: The same where trials fail.
        leaking: Of a leak that is to be caught.
        cases: Of how many cases a path; None for all.
    """

    honest: int
    failing: int
    leaking: int
    cases: int | None = None


FULL: Final = Size(honest=3000, failing=2000, leaking=500)
QUICK: Final = Size(honest=1, failing=1, leaking=1, cases=1)


class Simulation(Protocol):
    """One path: an audit that can be simulated again and again."""

    def exceeds(self, mechanism: Any, level: float, seed: int) -> bool:
        """Whether one audit of a mechanism proves more than a level."""
        ...

    def power(self) -> Power:
        """What the path states that it catches."""
        ...


@dataclass(frozen=True, kw_only=True)
class TwoWorlds:
    """Shadow models in two worlds.

    Attributes:
        claim: The claim.
        settings: What differs from one attack and `MODELS` shadow models.
        facts: Names of the released facts, where attacks see them.
    """

    claim: PrivacyClaim
    settings: dict[str, Any] = field(default_factory=dict)
    facts: tuple[str, ...] = ()

    @cached_property
    def audit(self) -> SimulatedAudit:
        """The audit, but for its seed."""
        given = {"shadow_models": MODELS, "attacks": (FirstFeature(),)} | self.settings
        return simulated_audit(AuditSettings(**given), self.claim, facts=self.facts)

    def exceeds(self, mechanism: Seen | Failing, level: float, seed: int) -> bool:
        """Whether the largest bound of any attack does."""
        audit = replace(self.audit, settings=replace(self.audit.settings, seed=seed))
        return proved(audit, mechanism, audit.stream("trials").rng()) > level

    def power(self) -> Power:
        """That of `dpaudit plan`."""
        return plan.power(self.audit.settings, self.claim)


@dataclass(frozen=True, kw_only=True)
class TradeOffs:
    """Shadow models in two worlds, for a claim that is not stated in epsilon.

    Whether the limit exceeds a level is decided by the outcomes of which it does, to within 0.2 %
    of the level: a limit on rho alone takes half a second.

    Attributes:
        claim: The claim.
    """

    claim: GaussianClaim | ConcentratedClaim | CurveClaim

    @cached_property
    def settings(self) -> AuditSettings:
        """One attack on `MODELS` shadow models."""
        return AuditSettings(shadow_models=MODELS, attacks=(FirstFeature(),))

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the limit on mu, rho or the factor does."""
        rng, settings = Stream(seed, "simulated", "trials").rng(), self.settings
        guarantee = guarantee_of(self.claim)
        assert isinstance(guarantee, TradeOffGuarantee)
        member = worlds_of(settings, rng)
        one = fixed_on(
            mechanism.seen(member, rng), member, 2 * settings.fitted, settings, guarantee, rng
        )
        confidence = settings.attack_confidence
        errors = one.counts
        most = _refuting(level, errors.n_in, errors.n_out, guarantee, confidence)
        return errors.false_negatives <= most[errors.false_positives]

    def power(self) -> Power:
        """That of `dpaudit plan`."""
        return plan.power(self.settings, self.claim)


@cache
def _refuting(
    level: float, n_in: int, n_out: int, guarantee: TradeOffGuarantee, confidence: float
) -> list[int]:
    """By false positives, the most false negatives of which the limit exceeds a level."""
    most: list[int] = rejecting_region(
        level, n_in, n_out, guarantee.trade_off, confidence
    ).most_fn.tolist()
    return most


@dataclass(frozen=True, kw_only=True)
class ManyRecords:
    """Models that serve several records, each with its own coin.

    Attributes:
        claim: The claim.
        failing: Whether a model fails where randomised response says that it has the first record,
            whose own answer is noise.
    """

    claim: PrivacyClaim
    failing: bool = False

    @cached_property
    def settings(self) -> AuditSettings:
        """One attack on `RECORDS` records."""
        return AuditSettings(shadow_models=MODELS, records=RECORDS, attacks=(FirstFeature(),))

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the bound on the guesses of all records does."""
        rng, settings = Stream(seed, "simulated", "trials").rng(), self.settings
        first = 2 * settings.fitted
        included = draw_included(MODELS, fitted=first, records=RECORDS, rng=rng)
        shown = np.stack([mechanism.seen(coins, rng) for coins in included.T], axis=1)
        lost = np.zeros(MODELS, dtype=np.bool_)
        if self.failing:
            lost = shown[:, 0] > 0.5
            shown[:, 0] = rng.normal(size=MODELS)
        fits, scores = np.arange(MODELS) < first, ~lost & (np.arange(MODELS) >= first)
        fits &= ~lost
        if fits.sum() < 2 or not scores.any():
            return False
        asked = {"delta": self.claim.delta, "confidence": settings.attack_confidence}
        features = shown[:, :, None]
        fitted = fit_records(
            NamedAttack("score", FirstFeature()),
            features[fits],
            included[fits],
            trainings=settings.scored,
            rng=rng,
            **asked,
        )
        failed = settings.scored - int(scores.sum())
        found = evaluate_records(fitted, features[scores], included[scores], failed=failed, **asked)
        return found.proved > level

    def power(self) -> Power:
        """That of `dpaudit plan --records`."""
        return records_power(self.settings, self.claim)


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """One training with a coin for each of many canaries, whose guesses are looked at in turn.

    Attributes:
        claim: The claim.
    """

    claim: PrivacyClaim

    @cached_property
    def settings(self) -> AuditSettings:
        """`CANARIES` canaries."""
        return AuditSettings(one_run=True, canaries=CANARIES)

    def exceeds(self, mechanism: Mechanism, level: float, seed: int) -> bool:
        """Whether the largest bound of the three attacks does: score, score with noise, odds."""
        rng = Stream(seed, "simulated", "trials").rng()
        coins = rng.random(CANARIES) < 0.5
        scores = mechanism.seen(coins, rng)
        noisy = scores + 0.3 * scores.std() * rng.normal(size=CANARIES)
        found = guess(np.concatenate([scores, noisy, mechanism.log_odds(scores)]), coins)
        asked = {"delta": self.claim.delta, "confidence": self.settings.attack_confidence}
        return any(one.bound(**asked) > level for one in found)

    def power(self) -> Power:
        """That of `dpaudit plan --one-run`."""
        return one_run_power(CANARIES, self.claim, self.settings.attack_confidence)


@dataclass(frozen=True, kw_only=True)
class Released:
    """One released table, whose rows were split by a coin for each (`dpaudit audit-data`).

    Attributes:
        claim: The claim.
    """

    claim: PrivacyClaim

    def exceeds(self, mechanism: Seen, level: float, seed: int) -> bool:
        """Whether the bound on the guesses of the attack that was chosen does."""
        rng = Stream(seed, "simulated", "trials").rng()
        inside = rng.random(ROWS) < 0.5
        fitting = parted(ROWS, rng)
        if not enough(inside, fitting):
            return False
        shown = mechanism.seen(inside, rng)
        noisy = shown + 0.3 * shown.std() * rng.normal(size=(len(ATTACKS) - 1, ROWS))
        scores = dict(zip(ATTACKS, [shown, *noisy], strict=True))
        found = recognise(scores, inside, fitting, rng, confidence=1.0 - NOMINAL)
        return self._bound(found.right) > level

    def _bound(self, right: BoolArray) -> float:
        return released_bound(right, delta=self.claim.delta, confidence=1.0 - NOMINAL)

    def power(self) -> Power:
        """That of the report."""
        return released_power(
            ROWS // 2,
            claim_epsilon=self.claim.epsilon,
            delta=self.claim.delta,
            confidence=1.0 - NOMINAL,
        )


@dataclass(frozen=True)
class Answer:
    """One bit about each trial, wrong with the same probability in both worlds.

    Attributes:
        error: The probability.
    """

    error: float

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The bits; shape (n,)."""
        wrong = rng.random(len(member)) < self.error
        return (member != wrong).astype(np.float64)


@dataclass(frozen=True)
class Shifted:
    """A normal score, larger in world "in" by `mu` standard deviations."""

    mu: float

    def seen(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        """The scores; shape (n,)."""
        shown: FloatArray = rng.normal(size=len(member)) + self.mu * member
        return shown


@dataclass(frozen=True, kw_only=True)
class Case:
    """One mechanism on one path.

    Attributes:
        path: The path.
        mechanism: The mechanism, in words.
        simulation: How its audits go.
        at: The mechanism of a level: exactly at a claim of that level.
        claimed: The level of the claim.
        stated: Of the power of the path, the level of this mechanism that is caught with 80 %; None
            where none is stated.
        reveals: Whether it reveals anything; else its true level is 0.
    """

    path: str
    mechanism: str
    simulation: Simulation
    at: Callable[[float], Any]
    claimed: float = CLAIMED
    stated: Callable[[Power], float | None] | None = None
    reveals: bool = True

    @property
    def name(self) -> str:
        """Names it in results and in random streams."""
        return f"{self.path}: {self.mechanism}"

    @property
    def fails(self) -> bool:
        """Whether its trials may fail."""
        return self.path.startswith("failures")

    @property
    def level(self) -> float:
        """What no bound should often exceed."""
        return self.claimed if self.reveals else 0.0

    def run(self, numbers: Sequence[int], leak: float | None) -> int:
        """Runs some audits, by their numbers.

        Args:
            numbers: Which.
            leak: The level at which it leaks; None if it is at its claim.

        Returns:
            How many prove more than is true, or, of a leak, than is claimed.
        """
        mechanism = self.at(self.claimed if leak is None else leak)
        above = self.level if leak is None else self.claimed
        role = self.name if leak is None else f"{self.name}, leaking"
        return sum(
            self.simulation.exceeds(mechanism, above, Stream(n, "paths", role).seed())
            for n in numbers
        )


def _best(power: Power) -> float | None:
    return power.detectable


def _gaussian(power: Power) -> float | None:
    return power.detectable_gaussian


def _cases() -> Iterator[Case]:
    claim = PrivacyClaim(epsilon=CLAIMED)
    bit = partial(Case, mechanism=RESPONSE, at=_response, stated=_best)
    nothing = partial(Case, mechanism="null", at=_null, reveals=False)
    plain = TwoWorlds(claim=claim)
    yield bit(path="default", simulation=plain)
    yield Case(path="default", mechanism="Laplace count", simulation=plain, at=_laplace)
    yield Case(
        path="default",
        mechanism=f"Gaussian count, delta {GAUSSIAN_DELTA:g}",
        simulation=TwoWorlds(claim=PrivacyClaim(epsilon=CLAIMED, delta=GAUSSIAN_DELTA)),
        at=_gaussian_count,
        stated=_gaussian,
    )
    yield nothing(path="default", simulation=plain)
    large = TwoWorlds(claim=claim, settings={"shadow_models": 8 * MODELS})
    yield Case(
        path=f"default, {8 * MODELS} models",
        mechanism="Laplace count",
        simulation=large,
        at=_laplace,
    )
    for path, settings in SETTINGS.items():
        yield bit(path=path, simulation=TwoWorlds(claim=claim, settings=settings))
    facts = ("answer", "answer and noise", "answer and more noise")
    seen = {"access": Access.RELEASED, "attacks": (ReleasedFacts(),)}
    yield bit(path="released", simulation=TwoWorlds(claim=claim, settings=seen, facts=facts))
    yield from _other_quantities()
    for path, simulation in (
        ("many records", ManyRecords(claim=claim)),
        ("one run in turn", OneRun(claim=claim)),
        ("released table with coins", Released(claim=claim)),
    ):
        yield bit(path=path, simulation=simulation)
        yield nothing(path=path, simulation=simulation)
    yield from _failures(claim)


def _other_quantities() -> Iterator[Case]:
    curve = tuple(CurvePoint(epsilon, gaussian_delta(epsilon, CLAIMED)) for epsilon in CURVE)
    for path, claim, shift, stated in (
        ("mu", GaussianClaim(mu=CLAIMED), Shifted, _best),
        ("rho", ConcentratedClaim(rho=CLAIMED**2 / 2.0), _shifted_at_rho, _gaussian),
        ("curve", CurveClaim(points=curve), Shifted, None),
    ):
        case = partial(Case, path=path, simulation=TradeOffs(claim=claim), claimed=claim.value)
        yield case(mechanism=RESPONSE, at=_Balanced(claim), stated=_best)
        yield case(mechanism="Gaussian count", at=shift, stated=stated)


def _failures(claim: PrivacyClaim) -> Iterator[Case]:
    yield Case(
        path="failures, many records",
        mechanism=How.EXCEPTION.value,
        simulation=ManyRecords(claim=claim, failing=True),
        at=_response,
    )
    for path, ways in FAILING.items():
        simulation = TwoWorlds(claim=claim, settings=SETTINGS.get(path, {}))
        for how in ways:
            yield Case(
                path=f"failures, {path}",
                mechanism=how.value,
                simulation=simulation,
                at=partial(Failing, how),
                stated=_best if how is How.EXCEPTION else None,
            )


RESPONSE: Final = "randomised response"
TWO: Final[dict[str, Any]] = {"attacks": (FirstFeature(),) * 2}
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "two attacks": TWO,
    "select": TWO | {"multiplicity": Multiplicity.SELECT},
    "hold-out": {"threshold": ThresholdRule.HOLD_OUT},
    "sequential": {"sequential": True},
}
"""Of the paths in two worlds but the default one."""
FAILING: Final = {
    "default": (How.EXCEPTION, How.ROW, How.RARE_EXCEPTION, How.ROWS, How.EITHER),
    "select": (How.EXCEPTION, How.RARE_EXCEPTION, How.EITHER),
    "sequential": (How.EXCEPTION, How.RARE_EXCEPTION),
}
"""The paths that trials which fail can reach, and how they fail there."""
CURVE: Final = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Epsilons of the privacy curve, that of a Gaussian mechanism."""


def _response(epsilon: float) -> Mechanism:
    return Mechanism(Kind.RANDOMISED_RESPONSE, epsilon)


def _laplace(epsilon: float) -> Mechanism:
    return Mechanism(Kind.LAPLACE, epsilon)


def _gaussian_count(epsilon: float) -> Mechanism:
    return Mechanism(Kind.GAUSSIAN, epsilon)


def _null(level: float) -> Mechanism:
    del level
    return Mechanism(Kind.NULL, 0.0)


def _shifted_at_rho(rho: float) -> Shifted:
    return Shifted(math.sqrt(2.0 * rho))


class _Balanced(NamedTuple):
    """Makes the randomised response that is exactly at a level of a claim's quantity."""

    claim: Claim

    def __call__(self, level: float) -> Answer:
        return Answer(guarantee_of(self.claim).balanced_error(level))


CASES: Final = {case.name: case for case in _cases()}
PATHS: Final = tuple(dict.fromkeys(case.path for case in CASES.values()))


class Task(NamedTuple):
    """Some audits of one case, by their numbers, at the claim or at the leak that is stated."""

    case: str
    numbers: range
    leak: float | None


def run_task(task: Task) -> int:
    """Runs some audits; gives how many exceed."""
    return CASES[task.case].run(task.numbers, task.leak)


def measure(
    size: Size, jobs: int | None, out: Path, *, paths: Sequence[str] = PATHS, again: bool = False
) -> dict[str, Any]:
    """Runs the audits that the results do not have yet.

    Args:
        size: How many.
        jobs: Processes; None for one per core.
        out: File of the results.
        paths: The paths to run; results of others are kept as they are.
        again: Whether to forget what was found on these paths.

    Returns:
        Counts by case.
    """
    found = _stored(out, size, paths, again=again)
    tasks = list(_tasks(found["cases"], size, paths))
    with mapped(min(jobs or loky.cpu_count(), len(tasks)), run_task) as run:
        for task, exceeding in zip(tasks, run(tasks), strict=True):
            case = found["cases"][task.case]
            counts = case["honest"] if task.leak is None else case["leaking"]
            counts["audits"] += len(task.numbers)
            counts["above"] += exceeding
            write_json(out, found)
            print(f"{task.case}: {counts['above']} of {counts['audits']}", flush=True)
    write_json(out, found)
    return found


def _stored(out: Path, size: Size, paths: Sequence[str], *, again: bool) -> dict[str, Any]:
    """The results so far, of the paths to run without what is to be made again."""
    earlier = json.loads(out.read_text(encoding="utf-8"))["cases"] if out.is_file() else {}
    cases: dict[str, Any] = {}
    of_path = Counter[str]()
    for name, case in CASES.items():
        kept = earlier.get(name, {})
        of_path[case.path] += 1
        if case.path in paths and (size.cases is None or of_path[case.path] <= size.cases):
            stated = case.stated and case.stated(case.simulation.power())
            if again:
                kept = {}
            if kept.get("stated") != stated:
                kept.pop("leaking", None)
            kept = {
                "path": case.path,
                "mechanism": case.mechanism,
                "level": case.level,
                "honest": _counts(kept.get("honest"), size.failing if case.fails else size.honest),
                "stated": stated,
                "leaking": _counts(kept.get("leaking"), 0 if stated is None else size.leaking),
            }
        if kept:
            cases[name] = kept
    return {"versions": versions(), "nominal": NOMINAL, "models": MODELS, "cases": cases}


def _counts(kept: dict[str, Any] | None, wanted: int) -> dict[str, Any]:
    """What was counted, unless other code did so and did not come to its end."""
    code = code_digest(*FILES)
    if kept and (kept["audits"] >= wanted or kept["code"] == code):
        return kept
    return {"audits": 0, "above": 0, "code": code}


FILES: Final = ("paths.py", "simulated.py", "failing.py", "mechanisms.py", "pipeline.py")
"""Files of the study that decide what is found."""


def _tasks(cases: dict[str, Any], size: Size, paths: Sequence[str]) -> Iterator[Task]:
    """What is left to run."""
    for name, found in cases.items():
        case = CASES[name]
        if case.path in paths:
            wanted = size.failing if case.fails else size.honest
            yield from _parted(name, found["honest"]["audits"], wanted, None)
            if found["stated"] is not None:
                yield from _parted(name, found["leaking"]["audits"], size.leaking, found["stated"])


def _parted(name: str, done: int, wanted: int, leak: float | None) -> Iterator[Task]:
    for start in range(done, wanted, AT_ONCE):
        yield Task(name, range(start, min(start + AT_ONCE, wanted)), leak)


def rate(case: dict[str, Any], counted: str = "honest") -> Cell:
    """How often a case proved more than is true, or, of its leak, than is claimed.

    Args:
        case: One of the results.
        counted: "honest" or "leaking".
    """
    counts = case[counted]
    return simulated(
        case["path"],
        ours=True,
        where=case["mechanism"],
        n=MODELS // 2,
        nominal=NOMINAL,
        violations=counts["above"],
        draws=counts["audits"],
    )


def problems(found: dict[str, Any]) -> list[str]:
    """One line for each rate that is significantly above the nominal one."""
    cells = [rate(case) for case in found["cases"].values() if case["honest"]["audits"]]
    return [
        f"{cell.rule}, {cell.where}: more than is true in {cell.rate:.1%} of {cell.draws}, at "
        f"least {cell.low:.1%} with 99 % confidence"
        for cell in cells
        if cell.low > cell.nominal
    ]
