"""Environments of the corpus and where its files lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dpaudit.bugs.bug import Case, Release
from dpaudit.external.environments import Environment
from dpaudit_generators.libraries import datasynthesizer, smartnoise_synth

_HERE: Final = Path(__file__).parent


def environment(name: str, *pythons: str) -> Environment:
    """The environment of a release, named as its file of pins.

    Args:
        name: Such as "opacus-1.6.0".
        pythons: Minor versions of Python that the pins are for.
    """
    return Environment(name=name, pins=_HERE / "pins" / f"{name}.txt", pythons=pythons)


DIFFPRIVLIB: Final = environment("diffprivlib-0.6.6", "3.11")
DATASYNTHESIZER_OLD: Final = environment("datasynthesizer-0.1.4", "3.9")
DATASYNTHESIZER: Final = datasynthesizer.environment
DPART: Final = environment("dpart-0.1.2", "3.9")
SMARTNOISE: Final = smartnoise_synth.environment
OPACUS: Final = environment("opacus-1.6.0", "3.11")


def case(
    name: str, method: str, tables: str, broken: Release, twin: Release, **settings: Any
) -> Case:
    """A case whose files are this package's own.

    Args:
        name: Of the adapter: `adapters/NAME_adapter.py`.
        method: Its class.
        tables: Of the tables: `tables/TABLES.csv` and what belongs to it.
        broken: The release with the bug.
        twin: The same without it.
        settings: Of the audit.
    """
    return Case(
        broken=broken,
        twin=twin,
        adapter=_HERE / "adapters" / f"{name}_adapter.py",
        method=method,
        tables=_HERE / "tables" / tables,
        settings=settings,
    )
