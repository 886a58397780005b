"""What the programs for maintainers print, each in the environment of its release."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.bugs.bug import bug_named
from dpaudit.errors import RegistryError
from dpaudit.external.environments import Environment, clean_environment
from dpaudit_generators.libraries import diffprivlib, smartnoise_synth
from reports import markdown

FOLDER: Final = Path(__file__).parents[1] / "bugs" / "reproductions"
NO_BUGS: Final = {
    "diffprivlib-ranges": diffprivlib.environment,
    "smartnoise-dpctgan-frequencies": smartnoise_synth.environment,
    "smartnoise-mst-total": smartnoise_synth.environment,
}
"""The environment of each finding that is no row of the corpus."""
PROGRAMS: Final = tuple(sorted(one.name for one in FOLDER.iterdir()))


def reproduced(name: str) -> dict[str, Any]:
    """What a program prints.

    Args:
        name: Of its folder.

    Raises:
        RegistryError: If its environment is missing, or it is neither a bug's nor in `NO_BUGS`.
    """
    environment = _environment(name)
    if environment.built is None:
        raise RegistryError(f"{name} needs `dpaudit env create {environment.name}`")
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [environment.built.python, str(FOLDER / name / "reproduce.py")],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
            env=clean_environment(),
        )
    return {"program": name, "printed": ended.stdout.splitlines()}


def _environment(name: str) -> Environment:
    """The environment with the release whose flaw a program shows."""
    if name in NO_BUGS:
        return NO_BUGS[name]
    case = bug_named(name).case
    assert case is not None
    return case.broken.environment


def reproduced_table(cases: Sequence[dict[str, Any]]) -> str:
    """What each program prints."""
    rows = [
        (
            f"[{one['program']}](../bugs/reproductions/{one['program']}/reproduce.py)",
            "<br>".join(" ".join(line.split()) for line in one["printed"]),
        )
        for one in cases
    ]
    return markdown.table(("program", "prints"), rows)
