"""This project's generators: what their steps cost in a replay, and what they claim.

Records are such that the worst case of a generator is met, as far as there is one in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from dpaudit.model.schema import Schema
from dpaudit.model.tables import load
from dpaudit.replaying.run import replay
from dpaudit_generators.pate_g import PateG
from reports.replay.kept import kept

QUICK: Final = 20
"""Fits of a quick version."""


class Own(NamedTuple):
    """A generator, and the record by which it is replayed.

    Attributes:
        name: What results call it.
        generator: Its name, or what makes it of the schema and public rows.
        parameters: Of a named one.
        target: The record.
        targets: How many of the most exposed records are tried, if not one that is named.
        public_coins: Whether its proof relies on noise alone, as those of PATE do.
    """

    name: str
    generator: str | Callable[[Schema, pd.DataFrame], object]
    parameters: Mapping[str, Any] = {}
    target: str = "exposing"
    targets: int = 1
    public_coins: bool = False


def _pate_g(schema: Schema, public: pd.DataFrame) -> object:
    return PateG(schema=schema, public=public)


GENERATORS: Final = (
    Own("laplace-histogram", "laplace-histogram"),
    Own("gaussian-marginals", "gaussian-marginals"),
    Own("marginals of the label", "marginals", {"tree": "label"}),
    Own("marginals of deviations", "marginals", {"tree": "deviations"}, target="row:212"),
    Own("pate-gan-marginals", "pate-gan-marginals", target="row:461", public_coins=True),
    Own("pate-gan", "pate-gan", targets=8, public_coins=True),
    Own("pate-gan, 400 teachers", "pate-gan", {"teachers": 400}, targets=8, public_coins=True),
    Own("pate-g, half of the table public", _pate_g, targets=8, public_coins=True),
    Own("dp-gan, 40 steps", "dp-gan", {"rounds": 4}),
)
"""What is replayed; `dp-gan` with fewer steps, whose noise its claim then sets."""


def own_case(own: Own, *, quick: bool) -> dict[str, Any]:
    """What a replay says of a generator."""
    table = load("sample:breast-cancer", None)
    data, generator = table.data, own.generator
    made: object = generator
    if not isinstance(generator, str):
        data, made = data[::2].reset_index(drop=True), generator(table.schema, data[1::2])
    record = replay(
        made,
        data,
        schema=table.schema,
        parameters=own.parameters,
        fits=QUICK if quick else None,
        public_coins=own.public_coins,
        **({"targets": own.targets} if own.targets > 1 else {"target": own.target}),
    )
    return {"generator": own.name, "result": kept(record)}
