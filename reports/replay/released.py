"""Methods of released libraries, replayed at their defaults and with everything public.

Table, schema and the number of records are those of the study from outside, reports/third_party.
The adapters of libraries state how their claims are proved.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.errors import DpauditError
from dpaudit.formatting import clipped
from dpaudit.model.schema import Schema
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replay
from dpaudit.results.verdict import Verdict
from dpaudit.versions import today
from reports.data import table_file
from reports.replay.kept import ReplayStoppedError, kept, stopped_after
from reports.third_party.run import CASES, SCHEMA, Case

MOST_OF_AN_ERROR: Final = 200
"""Characters of an error that the results keep."""
METHODS: Final = (
    "datasynthesizer:independent",
    "datasynthesizer:correlated",
    "dpmm:mst",
    "dpmm:priv-bayes",
    "smartnoise-synth:mst",
    "smartnoise-synth:patectgan",
    "smartnoise-synth:dpgan",
    "smartnoise-synth:dpctgan",
    "smartnoise-synth:pategan",
    "smartnoise-synth:aim",
    "diffprivlib:histogram",
    "diffprivlib:histogramdd",
    "diffprivlib:gaussian-nb",
    "diffprivlib:linear-regression",
    "privsyn-core:privsyn",
    "synthpriv:dp-copula",
    "synthpriv:dp-gan",
    "dpart:independent",
    "dpart:priv-bayes",
    "dpart:synthpop",
    "pac-synth:aggregate-seeded",
    "dp-cgans:dp-cgan",
    "opacus:autoregressive",
    "dpmm:aim",
    "opendp:fixed",
    "opendp:mst",
    "opendp:aim",
    "smartnoise-synth:mwem",
)
"""The methods, slow ones last."""
COLUMNS: Final = {"smartnoise-synth:mwem": ("sex", "capital_gain")}
"""The only columns of a slow method: its queries are many where cells are."""
REPLACED: Final = frozenset(("datasynthesizer",))
"""Libraries whose proof is of tables that differ in one value of one record.

DataSynthesizer scales its noise by the number of records, as PrivBayes does (Zhang et al. 2014).
"""
MINUTES: Final = 15
"""Minutes after which a replay is stopped: its row then says so."""
QUICK: Final = 20
"""Fits of a quick version."""


class Setting(NamedTuple):
    """A method and how it is set.

    Attributes:
        method: LIBRARY:METHOD.
        defaults: "library", as its README calls it, or "public", with bounds and categories.
    """

    method: str
    defaults: str

    def __str__(self) -> str:
        """As results name it."""
        return f"{self.method}, {self.defaults}"


SETTINGS: Final = tuple(
    Setting(method, defaults)
    for method in METHODS
    for defaults in CASES.get(method, Case()).defaults
)


def schema_of(method: str) -> Schema:
    """The public schema under which a method is replayed."""
    names = COLUMNS.get(method, SCHEMA.names)
    return Schema(columns=tuple(column for column in SCHEMA.columns if column.name in names))


def released_case(
    setting: Setting, folder: Path | None, *, quick: bool = False, release: str = ""
) -> dict[str, Any]:
    """What a replay says of a method; the error where it cannot be replayed.

    Args:
        setting: The method.
        folder: The folder of public tables.
        quick: Whether to make few fits.
        release: The library's release; the pinned one if empty.
    """
    case = CASES.get(setting.method, Case())
    found: dict[str, Any] = {"method": str(setting), "records": case.records, "date": today()}
    schema = schema_of(setting.method)
    table = pd.read_csv(table_file("adult", folder))[list(schema.names)]
    claim: Mapping[str, Any] = case.claim
    library, _, method = setting.method.partition(":")
    if library in REPLACED:
        claim = {"epsilon": 1.0, "neighbours": "replace-one"}

    def replayed(access: str) -> ReplayRecord:
        with stopped_after(MINUTES):
            return replay(
                f"{library}@{release}:{method}" if release else setting.method,
                table.head(case.records),
                schema=schema,
                fits=QUICK if quick else None,
                parameters={"defaults": setting.defaults},
                access=access,
                **claim,
            )

    try:
        record = replayed("model")
        found["result"] = kept(record)
        if record.verdict is Verdict.VIOLATION and not record.of_proof:
            found["rows"] = replayed("rows").verdict.value  # who gets rows alone may see less
    except (DpauditError, ReplayStoppedError) as error:
        text = str(error).replace(str(Path.home()), "~")  # a path of this machine says nothing
        return {**found, "error": clipped(text, MOST_OF_AN_ERROR)}
    return found
