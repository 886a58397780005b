"""Short scripts for maintainers, in `reproductions/`, and what each prints."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from dpaudit.errors import RegistryError
from dpaudit.external.environments import clean_environment
from dpaudit.plugins.named import library_named
from reports import markdown

SCRIPTS: Final = {
    "privsyn_core_seed": "privsyn-core",
    "datasynthesizer_seed": "datasynthesizer",
    "diffprivlib_ranges": "diffprivlib",
    "opacus_cardinality": "opacus",
    "smartnoise_mst_total": "smartnoise-synth",
    "smartnoise_dpctgan_frequencies": "smartnoise-synth",
    "synthpriv_copula_ranks": "synthpriv",
}
"""The library of each script."""
_FOLDER: Final = Path(__file__).parent / "reproductions"


def reproduced(name: str) -> dict[str, Any]:
    """What a script prints in its library's environment.

    Args:
        name: Of the script.

    Raises:
        RegistryError: If the environment is missing.
    """
    library = library_named(SCRIPTS[name])
    if library is None or library.environment.built is None:
        raise RegistryError(f"{name} needs `dpaudit env create {SCRIPTS[name]}`")
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [library.environment.built.python, str(_FOLDER / f"{name}.py")],
            check=True,
            capture_output=True,
            text=True,
            cwd=folder,
            env=clean_environment(),
        )
    return {"script": name, "library": SCRIPTS[name], "printed": ended.stdout.splitlines()}


def reproduced_table(cases: Sequence[dict[str, Any]]) -> str:
    """What each script prints."""
    rows = [
        (
            f"[{one['script']}](reproductions/{one['script']}.py)",
            "<br>".join(" ".join(line.split()) for line in one["printed"]),
        )
        for one in cases
    ]
    return markdown.table(("script", "prints"), rows)
