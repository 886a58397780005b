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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import loky

from dpaudit.bounds.guarantee import guarantee_of
from dpaudit.formatting import percent
from dpaudit.model.choices import Access, Multiplicity, ThresholdRule
from dpaudit.model.claim import (
    Claim,
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
    PrivacyClaim,
)
from dpaudit.model.gaussian import gaussian_delta
from dpaudit.results.verdict import Power
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_attacks.models import ReleasedFacts
from reports.calibration.audits import code_digest, mapped
from reports.calibration.cells import Cell, simulated
from reports.calibration.failing import Failing, How
from reports.calibration.mechanisms import GAUSSIAN_DELTA, Answer, Kind, Mechanism, Shifted
from reports.calibration.pipeline import FirstFeature
from reports.calibration.simulations import (
    CONFIDENCE,
    MODELS,
    ManyRecords,
    OneRun,
    Released,
    Simulation,
    TradeOffs,
    TwoWorlds,
)
from reports.command import write_json

NOMINAL: Final = round(1.0 - CONFIDENCE, 6)
CLAIMED: Final = 1.0
"""Epsilon, mu or factor of every claim; of zCDP rho is half of it, that of the same Gaussian."""
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
    "two attacks": TWO | {"multiplicity": Multiplicity.BONFERRONI},
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


FILES: Final = (
    "paths.py",
    "simulations.py",
    "simulated.py",
    "failing.py",
    "mechanisms.py",
    "pipeline.py",
)
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
        f"{cell.rule}, {cell.where}: more than is true in {percent(round(cell.rate, 3))} "
        f"of {cell.draws}, at least {percent(round(cell.low, 3))} with 99 % confidence"
        for cell in cells
        if cell.low > cell.nominal
    ]
