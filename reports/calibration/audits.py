"""Whole audits of generators that keep their claims exactly: how often is one falsely flagged?

Every path of an audit, each with several mechanisms of `honest`, through `dpaudit.audit`: game,
controls, features, attacks, thresholds, bounds, checks, verdict, reports. An audit flags falsely if
the bound that it proves exceeds the true epsilon, whatever its verdict makes of that.

Results are written after every few audits, and those that are there are not run again, whatever the
code is now; the page says which code made them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import loky
import pandas as pd

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings
from dpaudit.formatting import percent
from dpaudit.game.pool import workers_ended
from dpaudit.model.schema import Schema
from dpaudit.plugins.source import source_digest
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_generators.marginals import Marginals
from dpaudit_generators.pate_gan import PateGan
from reports.calibration import honest
from reports.calibration.cells import Cell, simulated
from reports.command import write_json

NOMINAL = 0.05
AT_LEAST = 1000
"""Audits of the whole study."""
AT_ONCE = 5
"""Audits between two writes of the results; they share their worker processes."""


class Size(NamedTuple):
    """How many audits of a case, with how many shadow models, and of how many cases a path."""

    audits: int
    shadow_models: int
    cases: int | None = None


FULL = Size(audits=30, shadow_models=200)
DEFAULTS = Size(audits=160, shadow_models=100)
"""Of `DEFAULT_CASES` alone."""
QUICK = Size(audits=1, shadow_models=20, cases=1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One honest generator on one path of an audit.

    Attributes:
        path: The path.
        mechanism: What is audited, in words.
        generator: The generator.
        truth: The claim that it keeps exactly, which the audit must judge by.
        settings: Those of the audit that make the path.
        reveals: Whether it reveals anything; else its true epsilon is 0.
        table: Makes the audited table.
        schema: Of the table.
    """

    path: str
    mechanism: str
    generator: Any
    truth: dpaudit.PrivacyClaim
    settings: dict[str, Any] = field(default_factory=dict)
    reveals: bool = True
    table: Callable[[], pd.DataFrame] = honest.count_table
    schema: Schema = honest.COUNT_SCHEMA

    @property
    def name(self) -> str:
        """Names it in results and in random streams."""
        return f"{self.path}: {self.mechanism}"

    @property
    def true_epsilon(self) -> float:
        """What no bound should often exceed."""
        return self.truth.epsilon if self.reveals else 0.0

    def run(self, number: int, size: Size) -> Audited:
        """Runs one of its audits.

        Raises:
            RuntimeError: If the audit was of another claim.
        """
        one_run = "one_run" in self.settings
        models: dict[str, Any] = {} if one_run else {"shadow_models": size.shadow_models}
        result = audit_by_keywords(
            self.generator,
            self.table(),
            schema=self.schema,
            seed=Stream(number, "calibration", self.name).seed(),
            confidence=1.0 - NOMINAL,
            jobs=1,
            **models,
            **self.settings,
        )
        judged = result.claim
        is_truth = isinstance(judged, dpaudit.PrivacyClaim) and (
            (judged.epsilon, judged.delta) == (self.truth.epsilon, self.truth.delta)
        )
        # Without a bound no model was trained: a control failed, as it may once in a thousand.
        if result.proved is not None and not is_truth:
            raise RuntimeError(f"{self.name}: audited as {judged}, not as {self.truth}")
        bound = result.epsilon_lower_bound
        return Audited(bound, bound > self.true_epsilon, result.verdict.value)


class Audited(NamedTuple):
    """What one audit gave."""

    bound: float
    above: bool
    verdict: str


class Task(NamedTuple):
    """Some audits of one case, by their numbers."""

    case: str
    numbers: tuple[int, ...]
    size: Size


def _claim(epsilon: float = 1.0, delta: float = 0.0) -> dpaudit.PrivacyClaim:
    return dpaudit.PrivacyClaim(epsilon=epsilon, delta=delta, source="exact")


def _counts(
    path: str, mechanism: str, *, truth: dpaudit.PrivacyClaim | None = None, **settings: Any
) -> Case:
    """A case of a generator that releases a count."""
    draw, default = MECHANISMS[mechanism]
    claim = truth or default
    return Case(
        path=path,
        mechanism=mechanism,
        generator=honest.Counts(claim=claim, mechanism=draw),
        truth=claim,
        settings={"attacks": (honest.ReleasedMean(),)} | settings,
        reveals=draw not in (honest.nothing, honest.constant),
    )


DEFAULT_ATTACKS = "default, the default attacks"
MECHANISMS: dict[str, tuple[honest.Mechanism, dpaudit.PrivacyClaim]] = {
    "randomised response": (honest.randomised_response, _claim()),
    "Laplace count": (honest.laplace, _claim()),
    "geometric count": (honest.geometric, _claim()),
    "report noisy max": (honest.noisy_max, _claim()),
    "Gaussian count": (honest.gaussian, _claim(1.0, 1e-5)),
    "null": (honest.nothing, _claim()),
}
"""Name, how the count is made private, and the claim that is exact."""


def _cases() -> Iterator[Case]:
    two_attacks = (honest.ReleasedMean(), honest.FoldedMean())
    for mechanism in MECHANISMS:
        yield _counts("default", mechanism)
    yield from _default_attacks()
    yield _counts("hold-out", "randomised response", threshold="hold-out")
    for mechanism in ("randomised response", "Laplace count", "geometric count", "null"):
        yield _counts("select", mechanism, attacks=two_attacks, multiplicity="select")
    for mechanism in ("randomised response", "geometric count", "report noisy max"):
        yield _counts("sequential", mechanism, sequential=True)
    yield from _one_run()
    yield from _many_records()
    yield from _failures("failures in one world", attacks=(honest.ReleasedMean(),))
    yield from _fitted_claims()
    tenth = _claim(1.0, 0.1)
    yield _counts("delta 0.1", "Gaussian count", truth=tenth)
    yield _mass("delta 0.1", tenth)
    yield _mass("delta 0.1", tenth, sequential=True)


def _default_attacks() -> Iterator[Case]:
    attacks = {"attacks": audit_settings().game.attacks}
    for mechanism in MECHANISMS:
        yield _counts(DEFAULT_ATTACKS, mechanism, **attacks)
    yield Case(
        path=DEFAULT_ATTACKS,
        mechanism="constant output",
        generator=honest.Counts(claim=_claim(), mechanism=honest.constant),
        truth=_claim(),
        settings=attacks,
        reveals=False,
    )
    yield from _failures(DEFAULT_ATTACKS, **attacks)
    claim = _claim(1.0, 1e-5)
    budget: dict[str, Any] = {"epsilon": claim.epsilon, "delta": claim.delta}
    pate_gan = PateGan(
        schema=honest.LABELLED_SCHEMA,
        **budget,
        teachers=4,
        rounds=4,
        teacher_steps=2,
        student_steps=2,
        generator_steps=2,
        batch=16,
    )
    marginals = Marginals(schema=honest.LABELLED_SCHEMA, **budget)
    for name, generator in (("reference PATE-GAN", pate_gan), ("noisy marginals", marginals)):
        yield Case(
            path=DEFAULT_ATTACKS,
            mechanism=name,
            generator=generator,
            truth=claim,
            settings=attacks | budget,
            table=honest.labelled_table,
            schema=honest.LABELLED_SCHEMA,
        )


def _mass(path: str, truth: dpaudit.PrivacyClaim, **settings: Any) -> Case:
    return Case(
        path=path,
        mechanism="world revealed with probability delta"
        + (", sequential" if "sequential" in settings else ""),
        generator=honest.Counts(claim=truth, mechanism=honest.leak),
        truth=truth,
        settings={"attacks": (honest.ReleasedMean(),)} | settings,
    )


def _one_run() -> Iterator[Case]:
    settings = {"one_run": True, "canaries": honest.CANARIES}
    for name, draw, truth in (
        ("randomised response", honest.randomised_response, _claim()),
        ("randomised response, epsilon 0.3", honest.randomised_response, _claim(0.3)),
        ("world revealed with probability 0.01", honest.leak, _claim(0.5, 0.01)),
        ("null", honest.nothing, _claim()),
    ):
        yield Case(
            path="one run",
            mechanism=name,
            generator=honest.AnswersEach(claim=truth, mechanism=draw),
            truth=truth,
            settings=settings,
            reveals=draw is not honest.nothing,
            table=honest.id_table,
            schema=honest.ID_SCHEMA,
        )


def _many_records() -> Iterator[Case]:
    for name, draw in (
        ("randomised response", honest.randomised_response),
        ("null", honest.nothing),
    ):
        yield Case(
            path="many records",
            mechanism=name,
            generator=honest.AnswersEach(claim=_claim(), mechanism=draw),
            truth=_claim(),
            settings={"records": 8, "attacks": ("form",)},
            reveals=draw is not honest.nothing,
            table=honest.id_table,
            schema=honest.WIDE_ID_SCHEMA,
        )


def _failures(path: str, **settings: Any) -> Iterator[Case]:
    for name, how in (
        ("randomised response by exception", {}),
        ("randomised response by a missing row", {"by_rows": True}),
        ("a rare exception", {"rare": True}),
        ("a rare missing row", {"rare": True, "by_rows": True}),
    ):
        yield Case(
            path=path,
            mechanism=name,
            generator=honest.Fails(claim=_claim(), **how),
            truth=_claim(),
            settings=settings,
        )


def _fitted_claims() -> Iterator[Case]:
    half, settings = _claim(0.5, 1e-5), {"attacks": (honest.ReleasedMean(),)}
    for name, draw, own, truth in (
        ("randomised response", honest.randomised_response, _claim(), _claim(1.0, 1e-5)),
        ("world revealed with probability delta", honest.leak, _claim(0.4, 0.1), _claim(0.5, 0.1)),
    ):
        yield Case(
            path="fitted claims",
            mechanism=name,
            generator=honest.Counts(claim=half, mechanism=draw, own=own),
            truth=truth,
            settings=settings,
        )
    yield Case(
        path="fitted claims",
        mechanism="one that each model draws",
        generator=honest.Mixture(claim=_claim(0.5)),
        truth=_claim(),
        settings=settings,
    )


CASES = {case.name: case for case in _cases()}
DEFAULT_CASES = tuple(case for case in CASES.values() if case.path == DEFAULT_ATTACKS)


def measure(
    size: Size, jobs: int | None, out: Path, *, cases: Sequence[Case] = tuple(CASES.values())
) -> dict[str, Any]:
    """Runs the audits that the results do not have yet.

    Args:
        size: How many.
        jobs: Processes, each of which runs one audit at a time; None for one per core.
        out: File of the results.
        cases: Of which generators, on which paths.

    Returns:
        Bounds and verdicts by case.
    """
    found = _stored(out, size, cases)
    tasks = list(_tasks(found, size))
    with mapped(min(jobs or loky.cpu_count(), len(tasks)), run_task) as run:
        code = code_digest("audits.py", "honest.py")
        for task, audited in zip(tasks, run(tasks), strict=True):
            _add(found["cases"][task.case], audited, code)
            write_json(out, found)
            done = sum(len(case["bounds"]) for case in found["cases"].values())
            print(
                f"{done} audits; {task.case}: {found['cases'][task.case]['above']} above",
                flush=True,
            )
    write_json(out, found)
    return found


def _stored(out: Path, size: Size, cases: Sequence[Case]) -> dict[str, Any]:
    """The results so far; none of audits of another size."""
    chosen: list[Case] = []
    per_path: dict[str, int] = {}
    for case in cases:
        per_path[case.path] = per_path.get(case.path, 0) + 1
        if size.cases is None or per_path[case.path] <= size.cases:
            chosen.append(case)
    found: dict[str, Any] = {
        "versions": versions(),
        "nominal": NOMINAL,
        "shadow_models": size.shadow_models,
        "cases": {
            case.name: {
                "path": case.path,
                "mechanism": case.mechanism,
                "true_epsilon": case.true_epsilon,
                "delta": case.truth.delta,
                "above": 0,
                "codes": [],
                "verdicts": {},
                "bounds": [],
            }
            for case in chosen
        },
    }
    if out.is_file():
        earlier = json.loads(out.read_text(encoding="utf-8"))
        if all(earlier.get(key) == found[key] for key in ("nominal", "shadow_models")):
            known = earlier["cases"]
            found["cases"] = {name: known.get(name, new) for name, new in found["cases"].items()}
    return found


@cache
def code_digest(*files: str) -> str:
    """A digest of all that decides what an audit gives, but for libraries.

    Args:
        files: Files of this study that do.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update((source_digest(audit_settings()) or "").encode())
    for name in files:
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


def _tasks(found: dict[str, Any], size: Size) -> Iterator[Task]:
    """What is left to run, of every case in turn."""
    for start in range(0, size.audits, AT_ONCE):
        for name, case in found["cases"].items():
            first = max(start, len(case["bounds"]))
            numbers = tuple(range(first, min(start + AT_ONCE, size.audits)))
            if numbers:
                yield Task(name, numbers, size)


@contextmanager
def mapped(processes: int, function: Callable[[Any], Any]) -> Iterator[Any]:
    """A `map` of a function over tasks, in order.

    Args:
        processes: Processes that share the tasks; up to 1, they are run here.
        function: The function.

    Yields:
        What maps a list of tasks.
    """
    if processes <= 1:
        yield lambda tasks: map(function, tasks)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            yield lambda tasks: pool.map(function, tasks)
        except BaseException:
            pool.shutdown(cancel_futures=True)  # else all that is left would run first
            raise


def run_task(task: Task) -> list[Audited]:
    """Runs some audits one after the other."""
    with workers_ended():
        return [CASES[task.case].run(number, task.size) for number in task.numbers]


def _add(case: dict[str, Any], audited: Iterable[Audited], code: str) -> None:
    if code not in case["codes"]:
        case["codes"].append(code)
    for one in audited:
        case["bounds"].append(round(one.bound, 4))
        case["above"] += one.above
        case["verdicts"][one.verdict] = case["verdicts"].get(one.verdict, 0) + 1


def rates(found: dict[str, Any]) -> list[Cell]:
    """How often bounds were above the true epsilon: of every case, every path, and all together."""
    cases = list(found["cases"].values())
    paths = list(dict.fromkeys(case["path"] for case in cases))
    groups = [(case["path"], case["mechanism"], [case]) for case in cases]
    groups += [
        (path, "all of them", [case for case in cases if case["path"] == path]) for path in paths
    ]
    groups.append(("every path", "all of them", cases))
    return [
        simulated(
            path,
            ours=True,
            where=mechanism,
            n=found["shadow_models"],
            nominal=found["nominal"],
            violations=sum(case["above"] for case in own),
            draws=sum(len(case["bounds"]) for case in own),
        )
        for path, mechanism, own in groups
        if any(case["bounds"] for case in own)
    ]


def problems(found: dict[str, Any], *, at_least: int = AT_LEAST) -> list[str]:
    """What keeps the results from showing that honest generators are flagged seldom enough.

    Args:
        found: The results.
        at_least: How many audits it takes.

    Returns:
        One line for each rate that is significantly above the nominal one, and for too few audits.
    """
    cells = rates(found)
    lines = [
        f"{cell.rule}, {cell.where}: above the true epsilon in "
        f"{percent(round(cell.rate, 3))} of {cell.draws}, at least "
        f"{percent(round(cell.low, 3))} with 99 % confidence"
        for cell in cells
        if cell.low > cell.nominal
    ]
    if cells[-1].draws < at_least:
        lines.append(f"{cells[-1].draws} audits: at least {at_least} show anything")
    return lines
