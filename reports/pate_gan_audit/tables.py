"""Table 2 as a detection matrix and Table 3: what `dpaudit trace` names, and the settings as run.

Traces the six, `pate-gan-marginals`, the trainer of the six without a deviation, and with every
deviation alone; on Cervical Cancer with its public schema.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import DpauditError
from dpaudit_generators.published import recipes
from dpaudit_generators.published.recipes import Switch
from reports.cervical import SCHEMA_FILE
from reports.command import DPAUDIT
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import BUGS, SIX, VIOLATIONS
from reports.pate_gan_audit.setting import TEACHERS, average_table

CLEAN = ("pate-gan-marginals", "pate-gan-switched")
"""Have no deviation: one with a proof, and the trainer of the six with every switch off."""
ALONE = "switch:"
ENOUGH = 40
"""Iterations of a trace with one deviation: the budget is gone before."""
NAMES = (*SIX, *CLEAN, *(ALONE + switch.value for switch in Switch))
"""Everything that is traced."""


def run(plan: Plan) -> None:
    """Traces what is not kept yet."""
    table = average_table(plan.data).iloc[: plan.rows]
    columns = len(table.columns)
    kept(plan.out / "settings" / "table-3.json", {"columns": columns}, lambda: settings(columns))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "cervical.csv"
        table.to_csv(data, index=False)
        for key in plan.chosen(NAMES):
            question = {
                **traced(key, iterations=plan.iterations),
                "rows": len(table),
                "seed": plan.seed,
            }

            def work(question: Record = question) -> Record:
                return trace(question, data)

            kept(plan.out / "tables" / f"{key.replace(':', '-')}.json", question, work)


def traced(key: str, *, iterations: int | None) -> Record:
    """Generator and parameters of one trace."""
    if key == "pate-gan-marginals":
        return {"generator": key, "parameters": {}}
    given: dict[str, Any] = {"teachers": TEACHERS}
    if iterations is not None:
        given["iterations"] = iterations
    if key.startswith(ALONE):
        also = ",".join(_switched(key.removeprefix(ALONE)))
        return {
            "generator": "pate-gan-switched",
            "parameters": {"iterations": ENOUGH} | given | {"also": also},
        }
    return {"generator": key, "parameters": given}


def _switched(switch: str) -> list[str]:
    """A deviation, and what it needs: without a single critic there is no gradient penalty."""
    return [str(Switch.NO_PATE), switch] if switch == Switch.PENALTY_FROM_TEACHERS else [switch]


def trace(question: Mapping[str, Any], data: Path) -> Record:
    """Runs `dpaudit trace`.

    Args:
        question: Generator, parameters and seed.
        data: The table.

    Returns:
        Its findings, exit code, and what it says otherwise.

    Raises:
        DpauditError: If it fails.
    """
    command = [*DPAUDIT, "trace", question["generator"], "--data", str(data)]
    command += ["--schema", str(SCHEMA_FILE), "--seed", str(question["seed"]), "--json"]
    for name, value in question["parameters"].items():
        command += ["-p", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise DpauditError(
            f"{' '.join(command[len(DPAUDIT) :])} exits {done.returncode}: {done.stderr}"
        )
    return {"exit_code": done.returncode, **json.loads(done.stdout)}


def named(record: Record) -> dict[str, str]:
    """Severity of each finding by its id."""
    return {finding["id"]: finding["severity"] for finding in record["findings"]}


def score(records: Mapping[str, Record]) -> Record:
    """How the findings compare with Table 2.

    Args:
        records: Kept traces by name.

    Returns:
        `named` of `listed` cells of Table 2, the cells that are `missing`; `clean` findings of
        severity violation or bug where there is no deviation; and switches not found `alone`.
    """
    cells = [
        (finding, name)
        for finding, implementations in (VIOLATIONS | BUGS).items()
        for name in implementations
    ]
    found = {name: named(record) for name, record in records.items()}
    missing = [(finding, name) for finding, name in cells if finding not in found.get(name, {})]
    severe = {
        name: [key for key, severity in found[name].items() if severity != "note"]
        for name in CLEAN
        if name in found
    }
    alone = {
        name.removeprefix("switch-"): sorted(keys)
        for name, keys in found.items()
        if name.startswith("switch-")
    }
    return {
        "listed": len(cells),
        "named": len(cells) - len(missing),
        "missing": missing,
        "clean": severe,
        "not_alone": {
            switch: keys for switch, keys in alone.items() if keys != sorted(_switched(switch))
        },
        "switches": len(alone),
    }


def settings(columns: int) -> Record:
    """Table 3 as run: the paper's column and the six, for a table of so many columns."""
    found = {name: getattr(recipes, name)(columns) for name in ("paper", *SIX)}
    return {"settings": {name: dataclasses.asdict(recipe) for name, recipe in found.items()}}
