"""Table 2 as a detection matrix and Table 3: what `dpaudit trace` names, and the settings as run.

Usage: python tables.py DATA_FOLDER [--only original,switch:delta-xor,...]

Traces the six, the reference PATE-GAN, the trainer of the six without a deviation, and with every
deviation alone; on Cervical Cancer with its public schema.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kept import Record, arguments, checked_names, kept, names
from published import BUGS, SIX, VIOLATIONS
from setting import SCHEMA_FILE, TEACHERS, average_table

from dpaudit_generators.published.switches import Switch

CLEAN = ("pate-gan", "pate-gan-switched")
"""Have no deviation: the reference, and the trainer of the six with every switch off."""
ALONE = "switch:"
ENOUGH = 40
"""Iterations of a trace with one deviation: the budget is gone before."""
DPAUDIT = [sys.executable, "-c", "from dpaudit.cli.main import main; main()"]


def main(given: list[str] | None = None) -> None:
    """Traces what is not kept yet."""
    known = [*SIX, *CLEAN, *(ALONE + switch.value for switch in Switch)]
    parser = arguments(__doc__)
    parser.add_argument("--only", type=names, default=known)
    parser.add_argument(
        "--iterations", type=int, help="of all; by default the six's own, and 40 with one deviation"
    )
    parser.add_argument("--rows", type=int, help="the first rows of the table alone")
    asked = parser.parse_args(given)
    table = average_table(asked.data).head(asked.rows)
    columns = len(table.columns)
    kept(
        asked.results / "settings" / "table-3.json", {"columns": columns}, lambda: settings(columns)
    )
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "cervical.csv"
        table.to_csv(data, index=False)
        for key in checked_names(asked.only, known):
            question = {
                **traced(key, iterations=asked.iterations),
                "rows": len(table),
                "seed": asked.seed,
            }
            kept(
                asked.results / "tables" / f"{key.replace(':', '-')}.json",
                question,
                lambda question=question: trace(question, data),
            )


def traced(key: str, *, iterations: int | None) -> Record:
    """Generator and parameters of one trace."""
    if key == "pate-gan":
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
    """Runs `dpaudit trace`; its findings, exit code, and what it says otherwise."""
    command = [*DPAUDIT, "trace", question["generator"], "--data", str(data)]
    command += ["--schema", str(SCHEMA_FILE), "--seed", str(question["seed"]), "--json"]
    for name, value in question["parameters"].items():
        command += ["-p", f"{name}={value}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command[3:])} exits {done.returncode}: {done.stderr}")
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
    grave = {
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
        "clean": grave,
        "not_alone": {
            switch: keys for switch, keys in alone.items() if keys != sorted(_switched(switch))
        },
        "switches": len(alone),
    }


def settings(columns: int) -> Record:
    """Table 3 as run: the paper's column and the six, for a table of so many columns."""
    from dpaudit_generators.published import recipes

    found = {name: getattr(recipes, name)(columns) for name in ("paper", *SIX)}
    return {"settings": {name: dataclasses.asdict(recipe) for name, recipe in found.items()}}


if __name__ == "__main__":
    main()
