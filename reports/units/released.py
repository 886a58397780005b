"""A released library by patient: OpenDP, told how many rows a patient has, rightly or wrongly.

The attacked patient has ten rows. `dp.unit_of(contributions=10)` scales the noise for them; with
fewer stated the library protects so many rows, and not the patient. Needs the environment
(`dpaudit env create opendp`).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.errors import RegistryError
from dpaudit.external.session import PREFIX
from dpaudit.plugins.named import library_named
from dpaudit.replaying.run import replay
from dpaudit.seeds import Stream
from reports.units.mechanisms import ROWS, SCHEMA, TARGET, visits

AUDITED: Final = (1, ROWS)
"""Rows of a patient that are stated to the library, in turn."""
REPLAYED: Final = (1, ROWS // 2, ROWS)


def audited(number: int, **settings: Any) -> dict[str, Any]:
    """What an audit of the library found, as a row of the results.

    Args:
        number: Which of the audits.
        settings: Of the audit.
    """
    contributions = AUDITED[number % len(AUDITED)]
    began = time.perf_counter()
    result = audit_by_keywords(
        opendp(),
        visits(number),
        schema=SCHEMA,
        seed=Stream(number, "units", "opendp").seed(),
        jobs=1,
        parameters={"contributions": contributions},
        **settings,
    )
    return _row(contributions, result, began)


def replayed(number: int, **settings: Any) -> dict[str, Any]:
    """The same of a replay."""
    contributions = REPLAYED[number % len(REPLAYED)]
    began = time.perf_counter()
    record = replay(
        opendp(),
        visits(number),
        schema=SCHEMA,
        seed=Stream(number, "units", "opendp replays").seed(),
        target=TARGET,
        parameters={"contributions": contributions},
        **settings,
    )
    return _row(contributions, record, began) | {"spent": record.spent}


def opendp() -> str:
    """The generator: a worker of the library's environment.

    Raises:
        RegistryError: If the environment is not there.
    """
    library = library_named("opendp")
    if library is None or library.environment.built is None:
        raise RegistryError("opendp needs an environment: dpaudit env create opendp")
    file = Path(__file__).with_name("opendp_visits.py")
    return f"{PREFIX}{library.environment.built.python} {file}:Visits"


def _row(contributions: int, found: Any, began: float) -> dict[str, Any]:
    return {
        "generator": f"contributions={contributions}",
        "verdict": found.verdict.value,
        "proved": found.proved,
        "seconds": round(time.perf_counter() - began, 1),
    }
