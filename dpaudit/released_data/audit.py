"""Audits a released synthetic table: the tables in, a finding out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpaudit.bounds._checks import check_confidence
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import BoolArray, IntArray
from dpaudit.released_data import conclusion
from dpaudit.released_data.anonymeter.environment import built_environment
from dpaudit.released_data.bound import released_bound, released_power
from dpaudit.released_data.coins import CoinFile
from dpaudit.released_data.controls import LEVEL, detectable_copies, phantom, same_population
from dpaudit.released_data.copies import ClosestDistances
from dpaudit.released_data.grades import p_text
from dpaudit.released_data.inference import chosen_secrets
from dpaudit.released_data.linkage import find_linkage
from dpaudit.released_data.membership import enough, parted, recognise
from dpaudit.released_data.result import (
    MembershipOutcome,
    ReleasedBound,
    ReleasedDataResult,
    RowCounts,
)
from dpaudit.released_data.riskiest import RiskyRow, riskiest
from dpaudit.released_data.scores import CLOSEST, MembershipScores, membership_scores
from dpaudit.released_data.tables import ReleasedTables, load_released
from dpaudit.seeds import check_seed, rng_of
from dpaudit.versions import __version__


class Canaries(NamedTuple):
    """The real rows in an order that says nothing of who is in train, and those that are scored.

    Attributes:
        real: All real rows.
        of: Those whose membership is guessed; shape (n,).
        inside: Whether each of these is in train; shape (n,).
        train_row: Its row in the train table, -1 if it is not there; shape (n,).
    """

    real: pd.DataFrame
    of: IntArray
    inside: BoolArray
    train_row: IntArray


class _Tested(NamedTuple):
    """What the tests of membership found."""

    membership: MembershipOutcome
    bound: ReleasedBound | None


def audit_data(
    synthetic: pd.DataFrame | str | Path,
    train: pd.DataFrame | str | Path,
    holdout: pd.DataFrame | str | Path | None = None,
    *,
    coins: CoinFile | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    secrets: Sequence[str] | None = None,
    anonymeter: bool = False,
    seed: int = 0,
    on_progress: Callable[[str], None] | None = None,
) -> ReleasedDataResult:
    """Audits a released synthetic table without its generator.

    Args:
        synthetic: The synthetic table: a table or a file.
        train: The rows that it was made from.
        holdout: Rows of the same population that it was not made from. Without them memory
            cannot be distinguished from chance.
        coins: The coin file of `dpaudit.split` that made train and hold-out; with it there is a
            lower bound on epsilon.
        schema: Schema of the tables; by default inferred.
        epsilon: ε of a claim to hold the table to, for tables that differ by one row more or less;
            needs coins.
        delta: Its δ; by default 0. Without a claim, δ of the bound.
        confidence: Of bound, limits and test, in (0, 1).
        secrets: Columns whose values are guessed of train and hold-out records; by default the
            label and the first columns, 12 in all.
        anonymeter: Whether the attacks of anonymeter run too; they need a hold-out, and its
            environment (`dpaudit env create anonymeter`).
        seed: Root of every random stream; no coin depends on it.
        on_progress: Called with what is done next.

    Returns:
        The result.

    Raises:
        InputError: If a table, the coin file or a setting is unusable, or they do not fit together.
    """
    check_confidence(confidence)
    check_seed(seed)
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
        built_environment()
    claim = None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta or 0.0)
    report = on_progress or (lambda step: None)

    report("reading the tables")
    tossed = CoinFile.read(coins) if isinstance(coins, str | Path) else coins
    if tossed is not None and holdout is not None:
        tossed.check(train, name="train")
        tossed.check(holdout, name="holdout")
    tables = load_released(train, synthetic, holdout, schema=schema)
    del train, synthetic, holdout
    warnings = list(tables.warnings)
    strangers = None if tossed is not None else _strangers(tables, seed)
    if strangers is not None and strangers <= LEVEL:
        warnings.append(
            f"train and hold-out can be told apart without the synthetic table (p "
            f"{p_text(strangers)}): they are not of one population, so nothing can be concluded"
        )
    for warning in warnings:
        report(f"warning: {warning}")
    tested: _Tested | None = None
    risky: tuple[RiskyRow, ...] = ()
    closest: ClosestDistances | None = None
    secrets = chosen_secrets(secrets, tables.schema)
    members = np.arange(len(tables.train))
    if tables.holdout is not None:
        canaries = canaries_of(tables, tossed, seed=seed)
        report(f"comparing {len(canaries.of):,} rows with {len(tables.synthetic):,} synthetic ones")
        scores = membership_scores(canaries.real, tables.synthetic, tables.schema, of=canaries.of)
        report("testing membership")
        tested = _tested(
            scores,
            canaries.inside,
            by_coins=tossed is not None,
            population_p_value=strangers,
            claim=claim,
            delta=delta or 0.0,
            confidence=confidence,
            seed=seed,
        )
        risky = tuple(
            RiskyRow(int(canaries.train_row[one.row]), one.p_value)
            for one in riskiest(scores.seen, canaries.inside, rng_of(seed, "riskiest"))
        )
        members = canaries.train_row[canaries.inside]
        distances = -scores.seen[CLOSEST]
        closest = ClosestDistances(distances[canaries.inside], distances[~canaries.inside])
        del canaries, scores  # large
    report("looking for copies, rare values and values that can be guessed")
    linkage = find_linkage(
        tables,
        members=members,
        closest=closest,
        secrets=secrets,
        anonymeter=anonymeter,
        seed=seed,
        confidence=conclusion.linkage_confidence(confidence),
    )
    rows = RowCounts(
        train=len(tables.train),
        synthetic=len(tables.synthetic),
        holdout=None if tables.holdout is None else len(tables.holdout),
        coins=None if tossed is None else len(tossed.tossed),
    )
    membership = None if tested is None else tested.membership
    bound = None if tested is None else tested.bound
    concluded = conclusion.conclude(
        rows, membership, bound, linkage.proved, claim=claim, confidence=confidence
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
        warnings=tuple(warnings),
        membership=membership,
        bound=bound,
        not_a_bound=None if bound else conclusion.why_no_bound(rows, membership),
        riskiest=risky,
        linkage=linkage,
        dpaudit=__version__,
    )


def canaries_of(tables: ReleasedTables, coins: CoinFile | None, *, seed: int) -> Canaries:
    """The rows whose membership is guessed, in an order that does not depend on it.

    With coins it is the order of the table that was split; else the rows are shuffled. Were train
    rows first, ties would be broken in their favour.

    Args:
        tables: The tables, with a hold-out.
        coins: How they were split; None if it is not known.
        seed: For the shuffle.

    Returns:
        The rows.
    """
    assert tables.holdout is not None  # by audit_data
    together = pd.concat([tables.train, tables.holdout], ignore_index=True)
    size = len(tables.train)
    if coins is None:
        place = rng_of(seed, "order of the real rows").permutation(len(together))
        of = np.arange(len(together))
    else:
        place = np.argsort(
            np.concatenate([np.flatnonzero(coins.in_train), np.flatnonzero(~coins.in_train)])
        )
        of = coins.tossed
    real = together.iloc[place].reset_index(drop=True)
    row = np.where(place < size, place, -1)[of]
    return Canaries(real, of, row >= 0, row)


def _strangers(tables: ReleasedTables, seed: int) -> float | None:
    """The p-value that train and hold-out are of one population; None without a hold-out."""
    if tables.holdout is None:
        return None
    return same_population(tables.train, tables.holdout, tables.schema, rng_of(seed, "population"))


def _tested(
    scores: MembershipScores,
    inside: BoolArray,
    *,
    by_coins: bool,
    population_p_value: float | None,
    claim: PrivacyClaim | None,
    delta: float,
    confidence: float,
    seed: int,
) -> _Tested | None:
    """None if there are too few rows of a kind in a part."""
    fitting = parted(len(inside), rng_of(seed, "fitting part"))
    if not enough(inside, fitting):
        return None
    found = recognise(
        scores.seen, inside, fitting, rng_of(seed, "membership"), confidence=confidence
    )
    membership = MembershipOutcome(
        attack=found.attack,
        fitted=int(fitting.sum()),
        scored=int((~fitting).sum()),
        p_value=found.p_value,
        auc=found.auc,
        rates=found.rates,
        phantom_p_value=phantom(scores.seen, inside, rng_of(seed, "phantom")),
        population_p_value=population_p_value,
        detectable_copies=detectable_copies(
            scores,
            inside,
            fitting,
            rng_of(seed, "planted copies"),
            level=conclusion.membership_level(confidence),
        ),
    )
    if not by_coins:
        return _Tested(membership, None)
    power = released_power(
        len(found.right),
        claim_epsilon=0.0 if claim is None else claim.epsilon,
        delta=delta,
        confidence=confidence,
    )
    bound = ReleasedBound(
        proved=released_bound(found.right, delta=delta, confidence=confidence),
        delta=delta,
        max_provable=power.max_provable,
        detectable=power.detectable,
    )
    return _Tested(membership, bound)
