"""Real privacy bugs of released software, with the pins, adapters and tables that prove them.

`bugs.toml` lists them. Every table was made by hand to show one flaw; none contains a real person's
record.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpaudit.bugs.bug import Bug, Case, Release, Status
from dpaudit.external.environments import Environment
from dpaudit_generators import libraries

_HERE: Final = Path(__file__).parent
_LISTED: Final = tomllib.loads((_HERE / "bugs.toml").read_text("utf-8"))


def _bug(row: Mapping[str, Any]) -> Bug:
    case = {"tables": row["id"], **row["case"]} if "case" in row else None
    return Bug(**{**row, "status": Status(row["status"]), "case": case and _case(**case)})


def _case(*, broken: Any, twin: Any, adapter: str, tables: str, **fields: Any) -> Case:
    return Case(
        broken=_release(**broken),
        twin=_release(**twin),
        adapter=_HERE / "adapters" / f"{adapter}_adapter.py",
        tables=_HERE / "tables" / tables,
        **fields,
    )


def _release(*, environment: str, **fields: Any) -> Release:
    pythons = _LISTED["environments"]
    if environment in pythons:
        pins = _HERE / "pins" / f"{environment}.txt"
        pinned = Environment(name=environment, pins=pins, pythons=(pythons[environment],))
    else:
        pinned = getattr(libraries, environment.replace("-", "_")).environment
    return Release(environment=pinned, **fields)


BUGS: Final = tuple(map(_bug, _LISTED["bugs"]))
"""The corpus."""
