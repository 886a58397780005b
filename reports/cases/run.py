"""What replay and audit say of public bug reports as small generators, broken and honest.

Usage: python -m reports.cases.run --cases DIR   (resumes; half an hour on one core)

`DIR` has for each case bNN.py with the classes, bNN.csv and bNN.json (the schema). Each class is
replayed on the record that the report makes worst; where that is inconclusive, it is audited with
400 models, too. Writes results/cases.json after every class, and the table of README.md.
"""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpaudit import TwoWorlds, audit, replay
from dpaudit.model.claim import Neighbours, StatedClaim
from dpaudit.results.verdict import Verdict
from dpaudit.versions import versions
from reports import markdown
from reports.command import StudyParser, start, write_json

MODELS: Final = 400
FITS: Final = 200
QUICK_FITS: Final = 60
QUICK_MODELS: Final = 40


class Case(NamedTuple):
    """A report.

    Attributes:
        what: The defect, in the table.
        epsilon: The claim.
        row: The record that shows the defect.
        delta: The claim's delta.
        neighbours: The claim's relation.
        public_coins: Whether the claim holds with public sub-samples.
        true: The true epsilon of some classes, in the table.
    """

    what: str
    epsilon: float
    row: int
    delta: float = 0.0
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    public_coins: bool = False
    true: Mapping[str, str] = {}


CASES: Final = {
    "b01": Case(
        "noise on the counts of present categories only",
        1.0,
        82,
        true={"Broken": "δ 0.009 at any ε", "Honest": "1", "Honest2": "1, δ 1e-5"},
    ),
    "b02": Case(
        "a quantile's weights lack the factor 1/2",
        1.0,
        39,
        true={"Broken": "1.86", "Honest": "0.98"},
    ),
    "b04": Case(
        "a scale for frequencies on counts, no noise on empty cells",
        1.0,
        79,
        true={"Broken": "no limit", "Broken2": "no limit", "Honest": "1"},
    ),
    "b06": Case(
        "a share of ρ as a standard deviation",
        0.726,
        0,
        delta=1e-5,
        true={"Broken": "34,900", "Honest": "0.7255"},
    ),
    "b07": Case(
        "the first bit of randomised response is bare",
        1.0,
        0,
        neighbours=Neighbours.REPLACE_ONE,
        true={"Broken": "no limit", "Honest": "1"},
    ),
    "b08": Case(
        "a rejection sampler accepts every proposal (another law, within the claim)",
        0.5,
        21,
        true={"Broken": "0.11", "Honest": "0.47"},
    ),
    "b10": Case(
        "ties at the threshold",
        1.0,
        50,
        delta=0.00493,
        true={"Broken": "δ 0.013", "Broken2": "δ 0.013", "Honest": "δ 0.00493"},
    ),
    "b11": Case("counts wrap", 1.0, 0, true={"Broken": "255", "Honest": "1"}),
    "b13": Case(
        "integer division in a mean's sensitivity",
        1.0,
        39,
        true={"Broken": "1.25", "Honest": "0.98"},
    ),
    "b14": Case(
        "the scale is divided by the number of dimensions",
        1.0,
        0,
        neighbours=Neighbours.REPLACE_ONE,
        true={"Broken": "1.5 to 2", "Honest": "at most 1"},
    ),
    "b15": Case(
        "the last step is not charged",
        1.761,
        49,
        delta=1e-5,
        public_coins=True,
        true={"Broken": "2.445", "Honest": "1.66"},
    ),
    "b16": Case(
        "noise is drawn and overwritten",
        1.061,
        49,
        delta=1e-5,
        public_coins=True,
        true={"Broken": "no limit", "Honest": "1.061"},
    ),
    "b18": Case(
        "late binding: one noise number for all",
        1.061,
        49,
        delta=1e-5,
        public_coins=True,
        true={"Broken": "no limit", "Honest": "1.061"},
    ),
    "b20": Case(
        "a total is clipped instead of its parts (2: a bound is ignored)",
        1.0,
        28,
        true={"Broken": "2", "Broken2": "10", "Honest": "1", "Honest2": "1"},
    ),
}
DELTA_OF: Final = {("b01", "Honest2"): 1e-5}
"""Claims of classes that differ from their case's."""
WITHIN_THE_CLAIM: Final = frozenset({("b08", "Broken")})
"""Defects that break no claim."""


def classes_in(file: Path) -> list[str]:
    """Names of the classes of a case, without running its code."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


def said_of(folder: Path, name: str, variant: str, *, quick: bool) -> dict[str, Any]:
    """What replay, and if need be audit, say of a class."""
    case = CASES[name]
    delta = DELTA_OF.get((name, variant), case.delta)
    subject = f"{folder / name}.py:{variant}"
    files: dict[str, Any] = {
        "data": str(folder / f"{name}.csv"),
        "schema": folder / f"{name}.json",
    }
    claim = {"epsilon": case.epsilon, "delta": delta, "neighbours": case.neighbours}
    started = time.monotonic()
    record = replay(
        subject,
        **files,
        **claim,
        target=f"row:{case.row}",
        public_coins=case.public_coins,
        fits=QUICK_FITS if quick else FITS,
    )
    said = {"case": name, "variant": variant, "replay": record.verdict, "said": record.headline}
    said["seconds"] = round(time.monotonic() - started, 1)
    if record.verdict is Verdict.INCONCLUSIVE:
        models = QUICK_MODELS if quick else MODELS
        game = TwoWorlds(shadow_models=models, target=f"row:{case.row}")
        result = audit(subject, **files, claim=StatedClaim(**claim), game=game, jobs=1)
        said |= {"audit": result.verdict, "proved": result.epsilon_lower_bound}
        said["audit_seconds"] = round(time.monotonic() - started - said["seconds"], 1)
    return said


def is_told(said: Mapping[str, Any]) -> bool:
    """Whether the truth of a class was told: a defect as one, an honest class as consistent."""
    name, variant = said["case"], said["variant"]
    verdict = said.get("audit", said["replay"])
    if variant.startswith("Broken") and (name, variant) not in WITHIN_THE_CLAIM:
        return verdict in (Verdict.VIOLATION, Verdict.OVERSPENT)
    return bool(verdict == Verdict.CONSISTENT)


def case_table(cases: Sequence[Mapping[str, Any]]) -> str:
    """What was said of each class."""
    heads = ("report", "class", "claim", "true ε", "replay", "seconds", "audit", "proved ε", "told")
    rows = []
    for said in cases:
        case = CASES[said["case"]]
        delta = DELTA_OF.get((said["case"], said["variant"]), case.delta)
        rows.append(
            (
                f"{said['case']}: {case.what}",
                said["variant"],
                f"({case.epsilon:g}, {delta:g})",
                case.true[said["variant"]],
                said["replay"],
                f"{said['seconds']:.0f}",
                said.get("audit", "–"),
                f"{said['proved']:.2f}" if "proved" in said else "–",
                "yes" if is_told(said) else "no",
            )
        )
    told = sum(map(is_told, cases))
    return markdown.table(heads, rows) + f"\n{told} of {len(cases)} told right.\n"


def main(given: Sequence[str] | None = None) -> None:
    """Runs what the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__)
    parser.add_argument(
        "--cases", type=Path, metavar="DIR", required=True, help="folder of the cases"
    )
    options = parser.parse_args(given)
    run = parser.run_of(options)
    path = run.out / "cases.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else []
    done = {(said["case"], said["variant"]) for said in cases}
    for name in list(CASES)[: 1 if run.quick else None]:
        for variant in classes_in(options.cases / f"{name}.py"):
            if (name, variant) not in done:
                cases.append(said_of(options.cases, name, variant, quick=run.quick))
                write_json(path, {"versions": versions(), "cases": cases})
                print(name, variant, cases[-1]["replay"], cases[-1].get("audit", ""), flush=True)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", case_table(cases))


if __name__ == "__main__":
    start(main)
