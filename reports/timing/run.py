"""Audits by the clock: how often is an honest generator flagged on a busy machine?

Usage: python -m reports.timing.run [harness] [null]   (about 45 minutes on a busy machine)

`harness` measures trainings that cannot depend on the record, with and without the noise of
`dpaudit.game.meter`: does the audit's own work differ between the worlds? `null` runs whole audits
of two such generators, while a process that computes is started and stopped at random next to
them, and goes on where it was stopped. Writes results/PART.json. Seconds are measured, so that no
two runs give the same numbers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
from scipy.stats import binomtest

from dpaudit import PrivacyClaim, Schema
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.bounds import aucs
from dpaudit.game import training
from dpaudit.game.pool import workers_ended
from dpaudit.game.trial import Payload, Role, Trial
from dpaudit.model.tables import load
from dpaudit.plugins.access import COSTS
from dpaudit.plugins.protocols import World
from dpaudit.seeds import rng_of
from dpaudit.versions import versions
from dpaudit_attacks.timing import Timing
from dpaudit_generators.toys import NullGenerator
from reports import markdown
from reports.command import Run, StudyParser, start, write_json

PARTS = ("harness", "null")
HEADS = ("generator", "audits", "bound above 0", "99 % interval", "largest bound", "violations")
COLUMNS = tuple("abcdef")
ROWS = 1000
MODELS, AUDITS = 40, 100
"""Shadow models of an audit, and audits of each generator."""
AT_ONCE = 5
"""Audits between two writes of the results."""
COMPUTES, PAUSES = 0.03, 0.09
"""Seconds for which the load computes and pauses, on average."""


def table(rows: int) -> pd.DataFrame:
    """A table of bits; row 5 is the record, of ones alone."""
    values = rng_of(0, "timing/table").integers(0, 2, (rows, len(COLUMNS)))
    values[5] = 1
    return pd.DataFrame(values, columns=list(COLUMNS))


@dataclass(frozen=True)
class Bits:
    """A model of fair bits."""

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Draws `n` records that do not depend on the training."""
        values = rng_of(seed, "rows").integers(0, 2, (n, len(COLUMNS)))
        return pd.DataFrame(values, columns=list(COLUMNS))


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Sorts and averages its table, and draws fair bits."""

    claim: PrivacyClaim = field(default_factory=lambda: PrivacyClaim(epsilon=1.0))

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Bits:
        """Reads the whole table."""
        del seed
        np.sort(data.to_numpy(dtype=np.float64), axis=0).mean(axis=0)
        return Bits()


@contextmanager
def busy_at_random(number: int) -> Iterator[None]:
    """A process that computes next to this one, started and stopped at random moments."""
    load = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    over = threading.Event()

    def toggle() -> None:
        rng = rng_of(number, "timing/load")
        while True:
            for one, mean in ((signal.SIGSTOP, PAUSES), (signal.SIGCONT, COMPUTES)):
                os.kill(load.pid, one)
                if over.wait(float(rng.exponential(mean))):
                    return

    thread = threading.Thread(target=toggle, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        load.kill()
        load.wait()


def audited(generator: Any, number: int, *, neighbours: str, models: int) -> dict[str, Any]:
    """One audit of a generator, whose record is row 5."""
    data = table(ROWS)
    result = audit_by_keywords(
        generator,
        data,
        schema=Schema.infer(data),
        access="timing",
        attacks=["timing"],
        target="row:5",
        neighbours=neighbours,
        shadow_models=models,
        seed=number,
        probe=False,
        jobs=1,
    )
    failed = [check.name for check in result.checks if not check.passed]
    return {
        "proved": result.proved,
        "auc": result.auc,
        "verdict": result.verdict.value,
        "failed checks": failed,
    }


def measure_harness(run: Run) -> None:
    """Writes how far each number separates the worlds, in standard deviations by chance."""
    trainings = 40 if run.quick else 2000
    data = load(table(ROWS), Schema.infer(table(ROWS)))
    found = []
    for name, generator in (("null", NullGenerator(schema=data.schema)), ("reader", Reader())):
        for precision in (training.PRECISION, np.zeros(len(COSTS))):
            training.PRECISION, kept = precision, training.PRECISION
            z = _separations(generator, data, trainings)
            training.PRECISION = kept
            noisy = bool(precision.any())
            found.append({"generator": name, "noise": noisy, "z": dict(zip(COSTS, z, strict=True))})
            print(found[-1], file=sys.stderr)
    document = {"versions": versions(), "trainings": trainings, "rows": ROWS, "found": found}
    write_json(run.out / "harness.json", document)


def _separations(generator: Any, data: Any, trainings: int) -> list[float]:
    settings = audit_settings(target="row:5", access="timing", attacks=["timing"])
    spec = build_spec(generator, data, settings)
    payload = Payload(
        game=spec.game,
        generators={Role.AUDIT: cloudpickle.dumps(generator)},
        attacks=[Timing()],
        root=1,
        audit=spec.id,
    )
    member = rng_of(0, "timing/worlds").integers(2, size=trainings).astype(np.bool_)
    features = []
    for number, inside in enumerate(member):
        trial = Trial(Role.AUDIT, World.IN if inside else World.OUT, number)
        [outcome] = training.run_batch(payload, [trial])
        features.append(outcome.features)
    n_in = int(member.sum())
    deviation = np.sqrt((trainings + 1) / (12 * n_in * (trainings - n_in)))
    return [round(float(z), 2) for z in (aucs(np.array(features), member) - 0.5) / deviation]


def measure_null(run: Run) -> None:
    """Writes bounds of audits of generators that cannot reveal anything: all should be 0."""
    models, audits = (20, 1) if run.quick else (MODELS, AUDITS)
    schema, path = Schema.infer(table(ROWS)), run.out / "null.json"
    cases: dict[str, tuple[Any, str]] = {
        "ignores its table, add-remove": (NullGenerator(schema=schema), "add-remove"),
        "reads its table, replace-one": (Reader(), "replace-one"),
    }
    document = {"versions": versions(), "models": models, "audits": {name: [] for name in cases}}
    if path.is_file():
        document = json.loads(path.read_text(encoding="utf-8"))
    done = document["audits"]
    while (number := min(len(of) for of in done.values())) < audits:
        with workers_ended():
            for own in range(number, min(number + AT_ONCE, audits)):
                for name, (generator, neighbours) in cases.items():
                    if len(done[name]) == own:
                        with busy_at_random(own):
                            one = audited(generator, own, neighbours=neighbours, models=models)
                        done[name].append(one)
                        print(f"{own}: {name}: {one}", file=sys.stderr)
        write_json(path, document)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(done))


def page(audits: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """The audits as a Markdown table: by generator, and all together."""
    rows = {**audits, "both": [one for of in audits.values() for one in of]}
    return markdown.table(HEADS, [_row(name, of) for name, of in rows.items()])


def _row(name: str, audits: Sequence[Mapping[str, Any]]) -> tuple[object, ...]:
    above = sum((one["proved"] or 0.0) > 0.0 for one in audits)
    found = binomtest(above, len(audits)).proportion_ci(0.99)
    interval = f"{100 * found.low:.1f} % to {100 * found.high:.1f} %"
    violations = sum(one["verdict"] == "violation" for one in audits)
    return (
        name,
        len(audits),
        above,
        interval,
        markdown.number(max(one["proved"] or 0.0 for one in audits)),
        violations,
    )


MEASURES = dict(zip(PARTS, (measure_harness, measure_null), strict=True))


def main(given: Sequence[str] | None = None) -> None:
    """Runs the parts that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=PARTS)
    run = parser.run_of(parser.parse_args(given))
    for part in run.parts:
        MEASURES[part](run)


if __name__ == "__main__":
    start(main)
