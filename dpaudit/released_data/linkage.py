"""What a synthetic table reveals about single train records, compared with hold-out records.

Copies, rare values and guessed attributes are compared with those of hold-out records in tests that
a random split makes valid. The distance to the closest record, and anonymeter on request, are
reported too but decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.bounds import bonferroni
from dpaudit.formatting import listed
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, IntArray
from dpaudit.released_data.anonymeter.run import AnonymeterFinding, run_anonymeter
from dpaudit.released_data.copies import (
    ClosestDistances,
    Copied,
    Copies,
    Outliers,
    equal_rows,
    find_copies,
    find_outliers,
)
from dpaudit.released_data.inference import Inference, choose_secrets, infer_attributes
from dpaudit.released_data.rows import Encoded, encode, find_nearest
from dpaudit.released_data.scores import ComparedUnits
from dpaudit.released_data.tables import ReleasedTables
from dpaudit.seeds import rng_of

Distances = npt.NDArray[np.floating]

_LOW: Final = 0.05
"""The low quantile that privacy panels use."""
_MARGIN: Final = 0.05
"""A panel fails if the share nearer to train records exceeds one half by more than this."""
_MOST_ASKED: Final = 10_000
"""Largest number of records per table to look up; exact copies are counted among all."""
_MOST_SEARCHED: Final = 100_000
"""Largest number of records searched."""
_FAMILIES: Final = 3
"""Copies, outliers, attribute inference: they share the error probability equally."""


class Linkage(NamedTuple):
    """Findings about single records in a synthetic table.

    Attributes:
        members: Train records that are compared with the hold-out.
        copies: Exact and near copies.
        outliers: Extremes and rare values.
        inference: Guessed attributes.
        panel: The distance to the closest record, as privacy panels show it.
        anonymeter: Findings of anonymeter; None if it was not asked for.
        proved: Findings that depend on which records were trained on, one clause for each kind, if
            a random split made train and hold-out.
        confidence: Probability that all of `proved` holds.
    """

    members: int
    copies: Copies
    outliers: Outliers
    inference: tuple[Inference, ...]
    panel: DistancePanel
    anonymeter: tuple[AnonymeterFinding, ...] | None
    proved: tuple[str, ...]
    confidence: float


def find_linkage(
    tables: ReleasedTables,
    *,
    members: IntArray | None = None,
    others: IntArray | None = None,
    closest: ClosestDistances | None = None,
    units: ComparedUnits | None = None,
    secrets: Sequence[str] | None = None,
    anonymeter: bool = False,
    seed: int,
    confidence: float,
    on_share: Callable[[float], None] = lambda share: None,
) -> Linkage:
    """Compares train with hold-out records by the synthetic table.

    Args:
        tables: The tables.
        members: Rows of the train table that are compared with the hold-out; by default all.
        others: Rows of the hold-out that are compared with them; by default all.
        closest: Distances of both to the nearest synthetic record; None to skip near copies, as
            without a hold-out.
        units: The units of these rows; None if each row stands for itself. With units, copies are
            counted by unit. For rare values and guessed attributes a random row stands for each
            unit, because the tests need independently assigned records.
        secrets: Columns whose values are guessed; None for the label and the first columns.
        anonymeter: Whether anonymeter runs too, which needs a hold-out and its environment.
        seed: Root of every random stream.
        confidence: Probability that all of `proved` holds, in (0, 1).
        on_share: Called with the share of the work that is done.

    Returns:
        The findings.

    Raises:
        InputError: If a secret is no column, or anonymeter cannot run.
        AttackError: If anonymeter fails.
    """
    schema = tables.schema
    names = choose_secrets(secrets, schema)
    members = np.arange(len(tables.train)) if members is None else members
    train, synthetic, holdout = tables.train.iloc[members], tables.synthetic, tables.holdout
    if holdout is not None:
        others = np.arange(len(holdout)) if others is None else others
        holdout = holdout.iloc[others]
    level = bonferroni(confidence, _FAMILIES)
    rng = rng_of(seed, "random splits")
    outliers, copied, synthetic_copied = _find_repeats(
        tables, members, others, closest, units, rng, confidence=level
    )

    def some(table: pd.DataFrame, most: int, purpose: str) -> Encoded:
        return encode(_sample(table, most, rng_of(seed, purpose)), schema)

    alone, alone_too = _draw_row_of_each(units, train, holdout, seed)
    asked = some(alone, _MOST_ASKED, "train records")
    asked_too = None if alone_too is None else some(alone_too, _MOST_ASKED, "hold-out records")
    lone = _sort_lone_first(train, np.flatnonzero(copied.train), asked_too, schema)
    copies = find_copies(
        *_group_by_unit(copied, units),
        synthetic_copied=synthetic_copied,
        riskiest=members[lone].tolist(),
        rng=rng_of(seed, "halves of the hold-out"),
        confidence=level,
    )
    searched = some(synthetic, _MOST_SEARCHED, "synthetic records")
    rng = rng_of(seed, "attribute inference")
    inference = infer_attributes(
        *(asked, searched, asked_too, schema, names, rng), confidence=level, on_share=on_share
    )
    risks: tuple[AnonymeterFinding, ...] | None = None
    if anonymeter and holdout is not None:
        rng = rng_of(seed, "anonymeter")
        risks = run_anonymeter(
            train, synthetic, holdout, schema, secrets=names, rng=rng, confidence=confidence
        )
    panel = _panel(train, searched[:_MOST_ASKED], holdout, schema, seed)
    proved = tuple(_clauses(copies, outliers, inference))
    return Linkage(len(members), copies, outliers, inference, panel, risks, proved, confidence)


def _draw_row_of_each(
    units: ComparedUnits | None, train: pd.DataFrame, holdout: pd.DataFrame | None, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """A row of each unit of train and hold-out; all rows where each stands for itself."""
    if units is None or holdout is None:
        return train, holdout
    rng = rng_of(seed, "a row of each unit")
    return train.iloc[units.train.drawn(rng)], holdout.iloc[units.holdout.drawn(rng)]


def _find_repeats(
    tables: ReleasedTables,
    members: IntArray,
    others: IntArray | None,
    closest: ClosestDistances | None,
    units: ComparedUnits | None,
    rng: np.random.Generator,
    *,
    confidence: float,
) -> tuple[Outliers, Copied, BoolArray]:
    """Values of single records, records with copies, and which synthetic records are copies."""
    schema = tables.schema
    real, out = values_of_table(tables.train, schema), values_of_table(tables.synthetic, schema)
    own, elsewhere, rest = real[members], [np.delete(real, members, axis=0)], None
    if tables.holdout is not None and others is not None:
        spare = values_of_table(tables.holdout, schema)
        rest = spare[others]
        elsewhere.append(np.delete(spare, others, axis=0))
    outliers = find_outliers(
        own,
        out,
        rest,
        schema,
        elsewhere=np.concatenate(elsewhere),
        units=units,
        rng=rng,
        confidence=confidence,
    )
    copied_too = None if rest is None else equal_rows(rest, out)
    return outliers, Copied(equal_rows(own, out), copied_too, closest), equal_rows(out, real)


def _group_by_unit(copied: Copied, units: ComparedUnits | None) -> tuple[Copied, Copied | None]:
    """The records with copies; if units are counted, the units with one, and with two or more."""
    closest = copied.closest
    if units is None or closest is None or copied.holdout is None:
        return copied, None
    by_rows = [
        Copied(
            units.train.any(copied.train, least=rows),
            units.holdout.any(copied.holdout, least=rows),
            ClosestDistances(
                units.train.ranked(closest.train, rows - 1),
                units.holdout.ranked(closest.holdout, rows - 1),
            ),
        )
        for rows in (1, 2)
    ]
    return by_rows[0], by_rows[1]


def _panel(
    train: pd.DataFrame, synthetic: Encoded, holdout: pd.DataFrame | None, schema: Schema, seed: int
) -> DistancePanel:
    """The panel, from equally many records of train and hold-out."""
    most = min(_MOST_SEARCHED, len(train), len(train if holdout is None else holdout))

    def two_nearest(table: pd.DataFrame) -> Distances:
        some = _sample(table, most, rng_of(seed, "records of the panel"))
        two = min(2, len(some))
        return find_nearest(synthetic, encode(some, schema), neighbours=two, exact=False).distances

    return distance_panel(two_nearest(train), None if holdout is None else two_nearest(holdout))


def _sort_lone_first(
    train: pd.DataFrame, rows: IntArray, holdout: Encoded | None, schema: Schema
) -> IntArray:
    """Sorts these rows of the train table, those farthest from all hold-out records first.

    If there are very many, only the first are sorted.
    """
    some, others = rows[:_MOST_ASKED], rows[_MOST_ASKED:]
    if holdout is None or not len(some):
        return rows
    apart = find_nearest(encode(train.iloc[some], schema), holdout, neighbours=1).distances[:, 0]
    return np.concatenate([some[np.argsort(-apart, kind="stable")], others])


def _sample(table: pd.DataFrame, most: int, rng: np.random.Generator) -> pd.DataFrame:
    """At most this many rows, in random order."""
    return table.iloc[rng.permutation(len(table))[:most]]


def _clauses(copies: Copies, outliers: Outliers, inference: Sequence[Inference]) -> Iterator[str]:
    for finding in copies.all:
        if finding.records.proved:
            yield copies.clause(finding)
            break
    if outliers.ends_proved and outliers.ends is not None:
        ends = outliers.ends.train
        yield (
            f"{ends.found} of {ends.of} extremes of numeric columns are those of the training "
            "table, more than a random split explains"
        )
    rare = [column.column for column in outliers.columns if column.repeated.proved]
    if rare:
        named = listed(rare, 5)
        yield f"the synthetic table repeats values that only one training row has: {named}"
    secrets = list(dict.fromkeys(guess.secret for guess in inference if guess.right.proved))
    if secrets:
        yield (
            "values can be guessed from the rest of the row more often in training than in "
            f"hold-out rows: {listed(secrets, 5)}"
        )


class DistanceQuantiles(NamedTuple):
    """Distances of synthetic records to their nearest record of a table.

    Attributes:
        low: Their 5 % quantile.
        median: Their median.
        ratio: The 5 % quantile of the nearest distance over the second nearest one.
        identical: Share of synthetic records that equal a record of the table.
    """

    low: float
    median: float
    ratio: float
    identical: float


class DistancePanel(NamedTuple):
    """The distance to the closest record, as privacy panels of synthetic data show it.

    For comparison only: its figures are averages and low quantiles over all synthetic records, so
    a table with hundreds of copied records may pass.

    Attributes:
        train: Distances to train records.
        holdout: Distances to hold-out records; None without a hold-out.
        nearer_to_train: Share of synthetic records nearer to a train record than to a hold-out
            record, ties by half; None without a hold-out.
        passes: Whether a panel of this kind would call the table safe, which is no evidence of
            safety: that share is at most 5 points above one half; without a hold-out, the 5 %
            quantile is not 0.
    """

    train: DistanceQuantiles
    holdout: DistanceQuantiles | None
    nearer_to_train: float | None
    passes: bool


def distance_panel(to_train: Distances, to_holdout: Distances | None) -> DistancePanel:
    """Summarises distances of synthetic records.

    Args:
        to_train: Distances [m, 2] of each synthetic record to its two nearest train records.
        to_holdout: Distances to its two nearest records of a hold-out as large as the train table;
            None without a hold-out.

    Returns:
        The panel.
    """
    if to_holdout is None:
        own = _quantiles(to_train)
        return DistancePanel(own, None, None, own.low > 0.0)
    ours, theirs = to_train[:, 0], to_holdout[:, 0]
    nearer = float(np.mean(np.where(ours == theirs, 0.5, ours < theirs)))
    return DistancePanel(
        _quantiles(to_train), _quantiles(to_holdout), nearer, nearer <= 0.5 + _MARGIN
    )


def _quantiles(distances: Distances) -> DistanceQuantiles:
    nearest, second = distances[:, 0], distances[:, -1]
    ratios = np.divide(nearest, second, out=np.ones_like(nearest), where=second > 0.0)
    return DistanceQuantiles(
        low=float(np.quantile(nearest, _LOW)),
        median=float(np.median(nearest)),
        ratio=float(np.quantile(ratios, _LOW)),
        identical=float(np.mean(nearest == 0.0)),
    )
