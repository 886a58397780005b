"""Methods of released libraries, replayed at their defaults and with everything public.

Table, schema and the number of records are those of the study from outside, reports/third_party.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.errors import DpauditError
from dpaudit.formatting import clipped
from dpaudit.model.schema import Schema
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.run import replay
from dpaudit.versions import today
from reports.data import table_file
from reports.third_party.run import CASES, SCHEMA, Case

MOST_OF_AN_ERROR: Final = 200
"""Characters of an error that the results keep."""
COUNTED: Final = {
    "datasynthesizer:independent": 20,
    "datasynthesizer:correlated": 20,
    "dpmm:mst": 10,
    "dpmm:priv-bayes": 3,
    "smartnoise-synth:mst": 3,
    "smartnoise-synth:patectgan": 3,
    "smartnoise-synth:dpgan": 10,
    "smartnoise-synth:dpctgan": 3,
    "smartnoise-synth:pategan": 3,
    "smartnoise-synth:aim": 3,
    "diffprivlib:histogram": 10,
    "diffprivlib:histogramdd": 3,
    "diffprivlib:gaussian-nb": 10,
    "diffprivlib:linear-regression": 10,
    "privsyn-core:privsyn": 10,
    "synthpriv:dp-copula": 10,
    "synthpriv:dp-gan": 3,
    "dpart:independent": 10,
    "dpart:priv-bayes": 10,
    "dpart:synthpop": 10,
    "pac-synth:aggregate-seeded": 3,
    "dp-cgans:dp-cgan": 3,
    "opacus:autoregressive": 3,
    "dpmm:aim": 3,
    "opendp:fixed": 1,
    "opendp:mst": 1,
    "opendp:aim": 1,
    "smartnoise-synth:mwem": 3,
}
"""Counted replays of each method: fewer of slow ones, which come last."""
COLUMNS: Final = {"smartnoise-synth:mwem": ("sex", "capital_gain")}
"""The only columns of a slow method: its queries are many where cells are."""
MINUTES: Final = 25
"""Minutes after which a replay is stopped: its row then says so."""


KEPT: Final = (
    *("verdict", "reasons", "claim", "proved", "computed", "replays", "fits", "seconds"),
    *("ledger", "parting", "not_followed", "fixed_seeds", "rows_differ", "guesses", "versions"),
)
"""Of a record, what the results keep: no paths of the machine that made it."""


def kept(record: ReplayRecord) -> dict[str, Any]:
    """What the results keep of a record."""
    document = record.to_document()
    return {name: document[name] for name in KEPT}


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
    for method in COUNTED
    for defaults in CASES.get(method, Case()).defaults
)


class ReplayStoppedError(Exception):
    """A replay took more than its minutes; no error of dpaudit, which a replay would handle."""


@contextmanager
def stopped_after(minutes: float) -> Iterator[None]:
    """Ends what it encloses after some minutes.

    Raises:
        ReplayStoppedError: When they are over.
    """

    def stop(*_: object) -> None:
        raise ReplayStoppedError(f"stopped after {minutes:g} minutes")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def released_case(
    setting: Setting, folder: Path | None, *, quick: bool = False, release: str = ""
) -> dict[str, Any]:
    """What a replay says of a method; the error where it cannot be replayed.

    Args:
        setting: The method.
        folder: The folder of public tables.
        quick: Whether to count one replay only.
        release: The library's release; the pinned one if empty.
    """
    case = CASES.get(setting.method, Case())
    found: dict[str, Any] = {"method": str(setting), "records": case.records, "date": today()}
    names = COLUMNS.get(setting.method, SCHEMA.names)
    schema = Schema(columns=tuple(one for one in SCHEMA.columns if one.name in names))
    table = pd.read_csv(table_file("adult", folder))[list(schema.names)]
    claim: Mapping[str, Any] = case.claim
    library, _, method = setting.method.partition(":")
    try:
        with stopped_after(MINUTES):
            record = replay(
                f"{library}@{release}:{method}" if release else setting.method,
                table.head(case.records),
                schema=schema,
                replays=1 if quick else COUNTED[setting.method],
                parameters={"defaults": setting.defaults},
                **claim,
            )
    except (DpauditError, ReplayStoppedError) as error:
        text = str(error).replace(str(Path.home()), "~")  # a path of this machine says nothing
        return {**found, "error": clipped(text, MOST_OF_AN_ERROR)}
    return {**found, "result": kept(record)}
