"""Audits a released synthetic table: the tables in, a finding out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.bounds.inputs import check_confidence
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.model.setting import SEED, check_number
from dpaudit.plugins.protocols import BoolArray, IntArray
from dpaudit.released_data.anonymeter.run import require_environment
from dpaudit.released_data.conclusion import (
    MembershipOutcome,
    ReleasedBound,
    RowCounts,
    conclude,
    linkage_confidence,
    membership_level,
    split_warnings,
    why_no_bound,
)
from dpaudit.released_data.copies import ClosestDistances
from dpaudit.released_data.exchangeability import (
    Exchangeability,
    comparable_rows,
    exchangeability,
)
from dpaudit.released_data.inference import choose_secrets
from dpaudit.released_data.linkage import find_linkage
from dpaudit.released_data.membership import (
    RiskyRow,
    detectable_copies,
    draw_fitting_part,
    enough,
    find_risky_rows,
    phantom_p_value,
    recognise,
    released_bound,
    released_power,
)
from dpaudit.released_data.resemblance import Resemblance, find_resemblance
from dpaudit.released_data.result import ReleasedDataResult
from dpaudit.released_data.scores import (
    CLOSEST,
    ComparedUnits,
    Grouped,
    membership_scores,
    unit_scores,
)
from dpaudit.released_data.split import CoinFile
from dpaudit.released_data.tables import ReleasedTables, load_released
from dpaudit.seeds import rng_of
from dpaudit.versions import __version__, today


class Canaries(NamedTuple):
    """The real rows in an order that does not reveal membership, and the rows that are compared.

    Attributes:
        real: All real rows.
        place: The position of each in train followed by hold-out; shape (rows,).
        rows: The rows whose membership is guessed; shape (n,).
        train: How many rows train has.
        units: The units of these rows; None if each row stands for itself.
    """

    real: pd.DataFrame
    place: IntArray
    rows: IntArray
    train: int
    units: Grouped | None = None

    @property
    def in_train(self) -> BoolArray:
        """Whether each real row is in train; shape (rows,)."""
        return self.place < self.train

    @property
    def inside(self) -> BoolArray:
        """Whether each row that is compared is in train; shape (n,)."""
        return self.in_train[self.rows]

    @property
    def comparable(self) -> bool:
        """Whether rows of both tables are compared."""
        return bool(self.inside.any() and not self.inside.all())

    @property
    def members(self) -> IntArray:
        """Rows of the train table that are compared."""
        return self.place[self.rows[self.inside]]

    @property
    def others(self) -> IntArray:
        """Rows of the hold-out that are compared."""
        return self.place[self.rows[~self.inside]] - self.train

    @property
    def number(self) -> int:
        """How many records are compared: rows, or units."""
        return len(self.rows) if self.units is None else len(self.units.sizes)

    @property
    def compared_units(self) -> ComparedUnits | None:
        """The units of `members` and of `others`."""
        if self.units is None:
            return None
        inside = self.inside
        return ComparedUnits(*(Grouped.by(self.units.of[part]) for part in (inside, ~inside)))


class _Comparison(NamedTuple):
    """The results of comparing train with hold-out rows; empty without a hold-out.

    Attributes:
        membership: How well members are recognised; None if too few rows are compared.
        bound: The bound on epsilon; None without coins.
        riskiest: Rows of train that stand out.
        closest: Distances to the nearest synthetic rows.
        members: Rows of the train table that are compared.
        others: Rows of the hold-out that are compared.
        units: Their units; None if each row stands for itself.
    """

    membership: MembershipOutcome | None = None
    bound: ReleasedBound | None = None
    riskiest: tuple[RiskyRow, ...] = ()
    closest: ClosestDistances | None = None
    members: IntArray | None = None
    others: IntArray | None = None
    units: ComparedUnits | None = None


_NOT_COMPARED: Final = _Comparison()
_LOADED, _COMPARING, _TESTING, _LOOKING = 0.09, 0.25, 0.66, 0.71
"""Shares of the time that have passed when a step begins, with 200,000 rows."""


class _Progress(NamedTuple):
    """What is called with each step, and with the share of the time that has passed."""

    on_step: Callable[[str], None]
    on_share: Callable[[float], None]

    def begin(self, step: str, share: float) -> None:
        """Reports a step that begins."""
        self.on_step(step)
        self.on_share(share)

    def between(self, start: float, end: float) -> Callable[[float], None]:
        """Reports shares of a step that takes from one share of the time to another."""
        return lambda share: self.on_share(start + (end - start) * share)


def _ignore(progress: object) -> None:
    """Reports nothing."""
    del progress


def audit_data(
    synthetic: pd.DataFrame | str | Path,
    train: pd.DataFrame | str | Path,
    holdout: pd.DataFrame | str | Path | None = None,
    *,
    coins: CoinFile | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    secrets: Sequence[str] | None = None,
    anonymeter: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
    on_share: Callable[[float], None] | None = None,
) -> ReleasedDataResult:
    """Audits a released synthetic table without its generator.

    Args:
        synthetic: The synthetic table: a table or a file.
        train: The rows that it was made from.
        holdout: Rows of the same population that it was not made from. Without them copies cannot
            be compared with chance.
        coins: The coin file of `dpaudit.split` that made train and hold-out; with it there is a
            lower bound on epsilon.
        schema: Schema of the tables; by default inferred.
        unit: The column of the units that had a coin each, for bound, claim and copies per unit; by
            default that of the coin file. The synthetic table may lack it.
        drop: Columns that are left out of all tables.
        epsilon: ε of a claim to test, for tables that differ by one added or removed row (or unit);
            needs coins.
        delta: Its δ; by default 0. Without a claim, δ of the bound.
        confidence: Confidence of bound, limits and test, in (0, 1).
        secrets: Columns whose values are guessed for train and hold-out records; by default the
            label and the first columns, 12 in total.
        anonymeter: Whether the attacks of anonymeter run too; they need a hold-out, and its
            environment (`dpaudit env create anonymeter`).
        separator: Separator of CSV files, or of one ("synthetic=;"); by default found out.
        encoding: Encoding of CSV files, or of one ("synthetic=cp1252"); by default found out.
        seed: Root of every random stream; no coin depends on it.
        on_progress: Called with each next step.
        on_share: Called with the share of the time that has passed, as it does with large tables.

    Returns:
        The result.

    Raises:
        InputError: If a table, the coin file or a setting is unusable, or they do not fit together.
    """
    check_confidence(confidence)
    check_number("seed", seed, SEED, whole=True)
    _check_asked(epsilon, delta, coins=coins, holdout=holdout, anonymeter=anonymeter)
    progress = _Progress(on_progress or _ignore, on_share or _ignore)
    progress.begin("reading the tables", 0.0)
    named = dict(synthetic=synthetic, train=train, holdout=holdout, coins=coins, schema=schema)
    csv = {"separator": separator, "encoding": encoding}
    stated = {"epsilon": epsilon, "delta": delta, "confidence": confidence, "seed": seed}
    columns = {"drop": drop, "secret": secrets or ()}
    reproduce = _command(named, {"unit": unit, **csv, **stated}, columns, anonymeter=anonymeter)
    tossed = _read_coins(coins, train, holdout)
    unit = tossed.unit if tossed is not None and unit is None else unit
    tables = load_released(train, synthetic, holdout, schema=schema, unit=unit, drop=drop, **csv)
    _check_units(tables, tossed)
    del train, synthetic, holdout  # large
    result = _run_audit(
        tables,
        tossed,
        epsilon,
        delta=delta or 0.0,
        confidence=confidence,
        secrets=secrets,
        anonymeter=anonymeter,
        seed=seed,
        progress=progress,
    )
    return replace(result, date=today(), reproduce=reproduce)


def _read_coins(
    coins: CoinFile | str | Path | None,
    train: pd.DataFrame | str | Path,
    holdout: pd.DataFrame | str | Path | None,
) -> CoinFile | None:
    """The coins, which must be those of train and hold-out.

    Raises:
        DataError: If they cannot be read, or belong to other tables.
    """
    tossed = CoinFile.read(coins) if isinstance(coins, str | Path) else coins
    if tossed is not None and holdout is not None:
        tossed.check(train, name="train")
        tossed.check(holdout, name="holdout")
    return tossed


def _command(
    files: Mapping[str, object],
    options: Mapping[str, float | str | None],
    columns: Mapping[str, Sequence[str]],
    *,
    anonymeter: bool,
) -> str | None:
    """The command line of an audit, inputs first; None if a table is in memory."""
    given = {name: of for name, of in files.items() if of is not None}
    if not all(isinstance(of, str | Path) for of in given.values()):
        return None
    words = ["dpaudit", "audit-data"]
    for name, of in given.items():
        words += [f"--{name}", str(of)]
    for name, value in options.items():
        words += [] if value is None else [f"--{name}", str(value)]
    words += [
        word for option, of in columns.items() for name in of for word in (f"--{option}", name)
    ]
    return shlex.join([*words, *(["--anonymeter"] if anonymeter else [])])


def _run_audit(
    tables: ReleasedTables,
    coins: CoinFile | None,
    epsilon: float | None,
    *,
    delta: float,
    confidence: float,
    secrets: Sequence[str] | None,
    anonymeter: bool,
    seed: int,
    progress: _Progress,
) -> ReleasedDataResult:
    """Compares train with hold-out rows, then searches for copies, rare values and guesses."""
    claim = (
        None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta, unit=tables.unit)
    )
    secrets = choose_secrets(secrets, tables.schema)  # refused before any work
    progress.on_share(_LOADED)
    canaries = None if tables.holdout is None else canaries_of(tables, coins, seed=seed)
    tested = canaries if coins is None else None  # coins make train and hold-out exchangeable
    exchangeable = None if tested is None else _test_split(tested, tables.schema, seed)
    rows = RowCounts(
        train=len(tables.train),
        synthetic=len(tables.synthetic),
        holdout=None if tables.holdout is None else len(tables.holdout),
        coins=None if coins is None or canaries is None else canaries.number,
        compared=0 if canaries is None else len(canaries.rows),
    )
    warnings = (*tables.warnings, *split_warnings(rows, exchangeable))
    for warning in warnings:
        progress.on_step(f"warning: {warning}")
    compared = _NOT_COMPARED
    if canaries is not None and canaries.comparable:
        step = f"comparing {rows.compared:,} rows with {rows.synthetic:,} synthetic ones"
        progress.begin(step, _COMPARING)
        bound_at = None if coins is None else delta
        compared = _compare(
            tables, canaries, claim, progress, bound_at=bound_at, confidence=confidence, seed=seed
        )
    del canaries  # large
    progress.begin("looking for copies, rare values and values that can be guessed", _LOOKING)
    linkage = find_linkage(
        replace(tables, holdout=None) if compared is _NOT_COMPARED else tables,
        members=compared.members,
        others=compared.others,
        closest=compared.closest,
        units=compared.units,
        secrets=secrets,
        anonymeter=anonymeter,
        seed=seed,
        confidence=linkage_confidence(confidence),
        on_share=progress.between(_LOOKING, 1.0),
    )
    membership, bound = compared.membership, compared.bound
    undecided = membership is None or (exchangeable is not None and exchangeable.unlike_a_split)
    flag = _resemblance(tables, seed) if undecided else None
    concluded = conclude(
        rows, membership, bound, linkage, exchangeable, flag, claim=claim, confidence=confidence
    )
    return ReleasedDataResult(
        finding=concluded.finding,
        reasons=concluded.reasons,
        claim=claim,
        confidence=confidence,
        seed=seed,
        rows=rows,
        sources=tables.sources,
        schema_inferred=tables.schema.inferred,
        warnings=warnings,
        exchangeability=exchangeable,
        membership=membership,
        bound=bound,
        not_a_bound=None if bound else why_no_bound(rows, membership),
        riskiest=compared.riskiest,
        linkage=linkage,
        resemblance=flag,
        unit=tables.unit,
        dpaudit=__version__,
    )


def _test_split(canaries: Canaries, schema: Schema, seed: int) -> Exchangeability:
    """Tests whether train and hold-out are like a random split."""
    rng, inside = rng_of(seed, "exchangeability"), canaries.in_train
    return exchangeability(canaries.real, inside, schema, rng, compared=canaries.rows)


def _resemblance(tables: ReleasedTables, seed: int) -> Resemblance | None:
    """Compares synthetic with training rows where no hold-out decides."""
    rng = rng_of(seed, "resemblance")
    return find_resemblance(tables.train, tables.synthetic, tables.schema, rng)


def _check_asked(
    epsilon: float | None, delta: float | None, *, coins: object, holdout: object, anonymeter: bool
) -> None:
    """Refuses analyses that need a missing coin file, hold-out or anonymeter environment.

    Raises:
        InputError: If something is missing.
    """
    if coins is None and (epsilon is not None or delta is not None):
        raise SettingsError(
            "`epsilon` and `delta` need `coins`: only a split by fair coins (`dpaudit split`) "
            "makes a bound possible; leave them out, or split before training"
        )
    if coins is not None and holdout is None:
        raise SettingsError("`coins` needs `holdout`: give both files that `dpaudit split` wrote")
    if anonymeter:
        if holdout is None:
            raise SettingsError("`anonymeter` needs `holdout`: its risks are compared with one")
        require_environment()


def _check_units(tables: ReleasedTables, coins: CoinFile | None) -> None:
    """Refuses units that had no coins of their own.

    Raises:
        DataError: If rows or other units had the coins.
        SettingsError: If there are no coins.
    """
    if tables.unit is None:
        return
    if coins is None:
        raise SettingsError(
            f"an audit by {tables.unit} needs `coins`: split the next table with "
            "`dpaudit split --unit` before training, or leave out `unit`"
        )
    if coins.unit != tables.unit:
        had = "each row" if coins.unit is None else f"each {coins.unit}"
        raise DataError(
            f"the coin file has a coin for {had}, not for each {tables.unit}: give the unit of the "
            "split, or split the next table with `--unit`"
        )


def canaries_of(tables: ReleasedTables, coins: CoinFile | None, *, seed: int) -> Canaries:
    """The rows that are compared, in an order that does not depend on their membership.

    With coins these are the rows that had one, in the order of the table that was split. Without
    coins they are the rows whose table does not depend on any removal of repeated rows. Those are
    shuffled: if train rows came first, ties would be broken in their favour.

    Args:
        tables: The tables, with a hold-out.
        coins: How they were split; None if unknown.
        seed: For the shuffle.

    Returns:
        The rows.
    """
    assert tables.holdout is not None  # by audit_data
    together = pd.concat([tables.train, tables.holdout], ignore_index=True)
    if coins is None:
        place = rng_of(seed, "order of the real rows").permutation(len(together))
    else:
        dealt = [np.flatnonzero(coins.in_train), np.flatnonzero(~coins.in_train)]
        place = np.argsort(np.concatenate(dealt))
    real = together.iloc[place].reset_index(drop=True)
    of = (
        np.flatnonzero(comparable_rows(values_of_table(real, tables.schema)))
        if coins is None
        else coins.tossed
    )
    units = None
    if tables.owners is not None:
        units = Grouped.by(tables.owners.all[place][of])
    return Canaries(real, place, of, len(tables.train), units)


def _compare(
    tables: ReleasedTables,
    canaries: Canaries,
    claim: PrivacyClaim | None,
    progress: _Progress,
    *,
    bound_at: float | None,
    confidence: float,
    seed: int,
) -> _Comparison:
    """Tests membership and, if coins decided it, bounds epsilon at the given delta."""
    scores = membership_scores(
        canaries.real,
        tables.synthetic,
        tables.schema,
        of=canaries.rows,
        on_share=progress.between(_COMPARING, _TESTING),
    )
    progress.begin("testing membership", _TESTING)
    inside, distances = canaries.inside, -scores.seen[CLOSEST]
    closest = ClosestDistances(distances[inside], distances[~inside])
    first = np.arange(len(inside))  # the first row of each unit, or each row itself
    if canaries.units is not None:
        scores, first = unit_scores(scores, canaries.units), canaries.units.first
        inside = inside[first]
    risky = tuple(
        RiskyRow(int(canaries.place[canaries.rows[first[risky_row.row]]]), risky_row.p_value)
        for risky_row in find_risky_rows(scores.seen, inside, rng_of(seed, "riskiest"))
    )
    membership = bound = None
    fitting = draw_fitting_part(len(inside), rng_of(seed, "fitting part"))
    if enough(inside, fitting):
        recognition = recognise(
            scores.seen, inside, fitting, rng_of(seed, "membership"), confidence=confidence
        )
        membership = MembershipOutcome(
            attack=recognition.attack,
            fitted=int(fitting.sum()),
            scored=int((~fitting).sum()),
            p_value=recognition.p_value,
            auc=recognition.auc,
            rates=recognition.rates,
            phantom_p_value=phantom_p_value(scores.seen, inside, rng_of(seed, "phantom")),
            detectable_copies=detectable_copies(
                scores,
                inside,
                fitting,
                rng_of(seed, "planted copies"),
                level=membership_level(confidence),
            ),
        )
        if bound_at is not None:
            power = released_power(
                len(recognition.right),
                claim_epsilon=0.0 if claim is None else claim.epsilon,
                delta=bound_at,
                confidence=confidence,
            )
            bound = ReleasedBound(
                proved=released_bound(recognition.right, delta=bound_at, confidence=confidence),
                delta=bound_at,
                max_provable=power.max_provable,
                detectable=power.detectable,
            )
    return _Comparison(
        membership=membership,
        bound=bound,
        riskiest=risky,
        closest=closest,
        members=canaries.members,
        others=canaries.others,
        units=canaries.compared_units,
    )
