"""Chances of what the honest generators release, where it has few values, by formula."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

import exact_losses as exact
from reports.replay.honest import (
    exponential,
    responses,
    secret_coins,
    sparse_vectors,
    stability,
    training,
)
from reports.replay.honest.case import Case

KEEP = math.e / (1.0 + math.e)
Law = Callable[[pd.DataFrame, Any], exact.Chances]


class Finite(NamedTuple):
    """A release of few values: how a model shows it, and its chances for a table and generator."""

    shown: Callable[[Any], Hashable]
    chances: Law


def counts_of(table: pd.DataFrame) -> Any:
    return np.bincount(table["a"], minlength=4)


def indexed(p: Any) -> exact.Chances:
    return {at: float(one) for at, one in enumerate(p)}


def selected(table: pd.DataFrame, own: Any) -> exact.Chances:
    return indexed(exact.in_proportion(np.exp(own.rate * counts_of(table))))


def flipped(table: pd.DataFrame, own: Any) -> exact.Chances:
    return indexed(exact.permute_and_flip(own.rate * counts_of(table)))


def shifted(table: pd.DataFrame, own: Any) -> exact.Chances:
    p = exact.in_proportion(np.exp(own.rate * counts_of(table)))
    if isinstance(own, exponential.ShiftForgotten):
        return {(at, moved): p[at] * (1 + moved) / 3 for at in range(4) for moved in (0, 1)}
    return indexed((np.roll(p, 1) + p + np.roll(p, -1)) / 3)


def median_chances(x: Any, values: Any, rate: float) -> Any:
    above = np.array([(x > value).sum() for value in values])
    below = np.array([(x < value).sum() for value in values])
    return exact.in_proportion(np.exp(-rate * np.abs(above - below)))


def coarse(table: pd.DataFrame, own: Any) -> exact.Chances:
    values = np.linspace(0.0, 1.0, 41)
    p = median_chances(table["x"].to_numpy(), values, 0.5)
    if isinstance(own, exponential.Fine):
        return dict(zip(values.tolist(), p.tolist(), strict=True))
    return {0.25: float(p[values < 0.25].sum()), 0.75: float(p[values >= 0.25].sum())}


def over_values(table: pd.DataFrame, own: Any) -> exact.Chances:
    x, values = table["x"].to_numpy(), np.linspace(0.0, 1.0, 11)
    distance = np.array([abs(len(x) / 2 - (x < value).sum()) for value in values])
    p = exact.in_proportion(np.exp(-own.epsilon * distance))
    return dict(zip(values.tolist(), p.tolist(), strict=True))


def bisected(table: pd.DataFrame, own: Any) -> exact.Chances:
    found = {}
    for turns in itertools.product((0, 1), repeat=5):
        lower, upper, p = 0.0, 1.0, 1.0
        for turn in turns:
            middle = (lower + upper) / 2
            above = stats.laplace.sf(8.0 - (table["x"] > middle).sum(), scale=own.scale)
            p *= above if turn else 1.0 - above
            lower, upper = (middle, upper) if turn else (lower, middle)
        found[lower] = float(p)
    return found


def votes(table: pd.DataFrame) -> Any:
    return table[["b0", "b1", "b2", "b3"]].sum().to_numpy()


def won(law: Any, places: int = 1, ordered: bool = True) -> Law:
    def chances(table: pd.DataFrame, own: Any) -> exact.Chances:
        found = exact.winners(votes(table), law(scale=own.scale), places)
        if ordered:
            return found
        merged: Counter[Any] = Counter()
        for order, p in found.items():
            merged[tuple(sorted(order))] += p
        return dict(merged)

    return chances


def won_twice(table: pd.DataFrame, own: Any) -> exact.Chances:
    return exact.winners(votes(table), stats.norm(scale=2.0), 2)


def peeled(table: pd.DataFrame, own: Any) -> exact.Chances:
    weights = np.exp(votes(table) / own.scale)
    return {
        (one, two): float(
            weights[one] / weights.sum() * weights[two] / (weights.sum() - weights[one])
        )
        for one, two in itertools.permutations(range(4), 2)
    }


def sought(law: Any = stats.laplace, divided: float | None = None) -> Law:
    def chances(table: pd.DataFrame, own: Any) -> exact.Chances:
        name = type(own).__name__
        bare = name in ("BareThreshold", "ArrayBareThreshold", "ByArgmaxBare")
        times = 1.0 if divided is None else own._divided()
        return exact.sparse(
            table.sum().tolist(),
            6.5,
            None if bare else law(scale=own.of_threshold),
            None if name == "ArrayWithoutNoise" else law(scale=own.of_counts * times),
            own.most,
        )

    return chances


def refreshed(table: pd.DataFrame, own: Any) -> exact.Chances:
    counts = table.sum().tolist()
    bare = isinstance(own, sparse_vectors.RefreshedBare)
    laws = (None if bare else stats.laplace(scale=4.0), stats.laplace(scale=8.0))
    found: Counter[Any] = Counter()
    for first, p in exact.sparse(counts, 6.5, *laws).items():
        if not first:
            found[()] += p
            continue
        later = counts[first[0] + 1 :]
        for second, q in (exact.sparse(later, 6.5, *laws) if later else {(): 1.0}).items():
            found[(*first, *(first[0] + 1 + at for at in second))] += p * q
    return dict(found)


def bit(kept: Callable[[Any], float]) -> Law:
    def chances(table: pd.DataFrame, own: Any) -> exact.Chances:
        true = int(table["b0"].iloc[-1])
        return {true: kept(own), 1 - true: 1.0 - kept(own)}

    return chances


def three_bits(table: pd.DataFrame, own: Any) -> exact.Chances:
    true = table[["b0", "b1", "b2"]].max().to_numpy()  # of the last place, the only ones
    if isinstance(own, responses.OneCoin):
        return {tuple(true.tolist()): own.p, tuple((1 - true).tolist()): 1.0 - own.p}
    keep = [1.0 if isinstance(own, responses.FirstBitBare) else own.p, own.p, own.p]
    return {
        told: math.prod(np.where(true == told, keep, 1.0 - np.array(keep)))
        for told in itertools.product((0, 1), repeat=3)
    }


def unary(one: Callable[[Any], float], zero: Callable[[Any], float]) -> Law:
    def chances(table: pd.DataFrame, own: Any) -> exact.Chances:
        value = int(table["a"].iloc[-1])
        p = [one(own) if at == value else zero(own) for at in range(4)]
        return {
            told: math.prod(q if bit else 1.0 - q for bit, q in zip(told, p, strict=True))
            for told in itertools.product((0, 1), repeat=4)
        }

    return chances


def of_four(kept: Callable[[Any], float]) -> Law:
    def chances(table: pd.DataFrame, own: Any) -> exact.Chances:
        value = int(table["a"].iloc[-1])
        p = kept(own)
        return {
            tuple(int(at == told) for at in range(4)): p if told == value else (1.0 - p) / 3
            for told in range(4)
        }

    return chances


def rappor(bit: int, f: float = responses.Rappor.f) -> float:
    permanent = 1.0 - f if bit else f
    return 0.75 * permanent + 0.25 * (1.0 - permanent)


def ones(table: pd.DataFrame, own: Any) -> exact.Chances:
    true, false = int(table["b0"].sum()), int((table["b0"] == 0).sum())
    convolved = np.convolve(
        stats.binom.pmf(range(true + 1), true, KEEP),
        stats.binom.pmf(range(false + 1), false, 1.0 - KEEP),
    )
    return indexed(convolved)


def hadamard(table: pd.DataFrame, own: Any) -> exact.Chances:
    found: Counter[Any] = Counter()
    for asked in range(4):
        sign = -1 if (asked & int(table["a"].iloc[-1])).bit_count() % 2 else 1
        found[asked, sign] += own.p / 4
        found[asked, -sign] += (1.0 - own.p) / 4
    return dict(found)


def keyed(table: pd.DataFrame, own: Any) -> exact.Chances:
    """Which keys are shown, of a table of keys."""
    counts, passes = table["k"].value_counts(), {}
    for key, count in counts.items():
        if isinstance(own, stability.GaussianKeys):
            passes[key] = stats.norm.sf(own.cut - count, scale=2.0)
        elif isinstance(own, stability.GeometricKeys):
            least = int(own.cut) - count + (0 if isinstance(own, stability.GeometricTies) else 1)
            passes[key] = stats.dlaplace.sf(least - 1, 1.0)
        elif isinstance(own, stability.KeptByChance):
            passes[key] = own._chance(np.array([count]))[0]
        else:
            passes[key] = stats.laplace.sf(own.cut - count, scale=getattr(own, "scale", 1.0))
    found = {(): 1.0}
    for key in sorted(passes):
        kept = {(*one, key): p * passes[key] for one, p in found.items()}
        found = {one: p * (1.0 - passes[key]) for one, p in found.items()} | kept
    if isinstance(own, stability.OrderKept):
        return {(key, "z" in counts): p for key, p in found.items()}
    return found


def exclusive(table: pd.DataFrame, own: Any) -> exact.Chances:
    true, k = int(table["b0"].max()), KEEP
    told = {(0, 0): 0.0}
    for one, two in itertools.product((0, 1), repeat=2):
        told[one, two] = (k if one == true else 1 - k) * (k if two == 0 else 1 - k)
    if isinstance(own, secret_coins.XoredTold):
        return dict(told)
    return {0: told[0, 0] + told[1, 1], 1: told[0, 1] + told[1, 0]}


def compared(table: pd.DataFrame, own: Any) -> exact.Chances:
    large = float(stats.laplace.sf(0.5 - table["b0"].sum(), scale=0.5))
    if isinstance(own, secret_coins.ComparisonTold):
        return {(1,): large, (0,): 1.0 - large}
    one = 0.7 * large + 0.3 * (1.0 - large)
    return {(1,): one, (0,): 1.0 - one}


def teachers_told(table: pd.DataFrame, own: Any) -> exact.Chances:
    parts = []
    for name in ("b0", "b1", "b2"):
        mean = table.groupby("teacher")[name].mean()
        ones = int((mean > 0.5).sum())
        parts.append(label_chances(own, [20 - ones, ones]))
    return {
        told: math.prod(part.get(one, 0.0) for part, one in zip(parts, told, strict=True))
        for told in itertools.product(*parts)
    }


def label_chances(own: Any, found: list[int]) -> exact.Chances:
    if isinstance(own, training.TeachersBare):
        return {int(np.argmax(found)): 1.0}
    if isinstance(own, training.Confident):
        clear = float(stats.norm.sf(11.0 - max(found), scale=4.0))
        unclear = int(np.argmax(found)) - 2 if isinstance(own, training.ConfidentTeacher) else -1
        one = float(stats.norm.sf(0.0, loc=found[1] - found[0], scale=2.0 * math.sqrt(2.0)))
        return {unclear: 1.0 - clear, 0: clear * (1.0 - one), 1: clear * one}
    p = exact.winners(found, stats.laplace(scale=own.scale))
    return {at: p[at,] for at in (0, 1)}


def neighbours(table: pd.DataFrame, own: Any) -> exact.Chances:
    parts = []
    for point in (0.25, 0.9):
        near = table[(table["x"] - point).abs() <= 0.3]["y"]
        votes = [int((near == 0).sum()), int((near == 1).sum())]
        if isinstance(own, training.NeighbourhoodBare):
            parts.append({int(votes[1] > votes[0]): 1.0})
        else:
            p = exact.winners(votes, stats.laplace(scale=own.scale))
            parts.append({at: p[at,] for at in (0, 1)})
    return {
        told: math.prod(part[one] for part, one in zip(parts, told, strict=True))
        for told in itertools.product(*parts)
    }


def split(table: pd.DataFrame, own: Any) -> exact.Chances:
    scores = [
        sum(table[table[name] == side]["y"].value_counts().max() for side in (0, 1))
        for name in ("b0", "b1")
    ]
    return indexed(exact.in_proportion(np.exp(own.rate * (np.array(scores) - max(scores)))))


def place(model: Any) -> Hashable:
    return int(model.place)


def order(model: Any) -> Hashable:
    return tuple(model.order)


def places(model: Any) -> Hashable:
    return tuple(model.places)


def last_told(model: Any) -> Hashable:
    row = np.atleast_1d(np.asarray(model.told)[-1])
    return tuple(int(one) for one in row) if len(row) > 1 else int(row[0])


def kept_keys(model: Any) -> Hashable:
    keys = tuple(sorted(model.kept))
    return (keys, "z" in model.alone) if isinstance(model, stability.OrderKept) else keys


def of_p(own: Any) -> float:
    return float(own.p)


FINITE = {
    **{case.name: Finite(place, selected) for case in exponential.CASES[:9]},
    "permute and flip": Finite(place, flipped),
    "choice, then a random shift": Finite(
        lambda model: (
            (model.place, int(model.is_shifted)) if hasattr(model, "is_shifted") else model.place
        ),
        shifted,
    ),
    "choice released as a half of the range": Finite(
        lambda model: getattr(model, "exact", model.value), coarse
    ),
    "median over values": Finite(lambda model: model.value, over_values),
    "quantile by noisy bisection": Finite(lambda model: model.value, bisected),
    "noisy max, Laplace": Finite(order, won(stats.laplace)),
    "noisy max, exponential": Finite(order, won(stats.expon)),
    "noisy max, Gaussian": Finite(order, won(stats.norm)),
    "noisy max in a loop": Finite(order, won(stats.laplace)),
    "noisy max by key": Finite(order, won(stats.laplace)),
    "least noisy error": Finite(order, won(stats.laplace)),
    "top two by argsort, Laplace": Finite(order, won(stats.laplace, 2)),
    "top two by argsort, Gumbel": Finite(order, won(stats.gumbel_r, 2)),
    "top two by a heap, Gumbel": Finite(order, won(stats.gumbel_r, 2)),
    "set of two by argpartition": Finite(order, won(stats.laplace, 2, ordered=False)),
    "top two by peeling": Finite(order, peeled),
    "sparse vector in a loop": Finite(places, sought()),
    "sparse vector with arrays": Finite(places, sought()),
    "sparse vector by argmax": Finite(places, sought()),
    "sparse vector, three above": Finite(places, sought(divided=3.0)),
    "sparse vector, three above, with arrays": Finite(places, sought()),
    "sparse vector, fresh threshold after each": Finite(places, refreshed),
    "sparse vector, exponential noise": Finite(places, sought(stats.expon)),
    "sparse vector, Gaussian noise": Finite(places, sought(stats.norm)),
    **{
        f"bit {how}": Finite(last_told, bit(of_p))
        for how in (
            "by a uniform number",
            "by binomial flips",
            "by choice",
            "in Python",
            "by the probability of a one",
            "by two coins",
        )
    },
    "three bits": Finite(last_told, three_bits),
    "three bits, a coin each": Finite(last_told, three_bits),
    "unary encoding": Finite(
        last_told,
        unary(
            lambda own: 1.0 if isinstance(own, responses.UnaryBare) else 1.0 - own.f,
            lambda own: own.f,
        ),
    ),
    "RAPPOR": Finite(last_told, unary(lambda own: rappor(1), lambda own: rappor(0))),
    "optimised unary encoding": Finite(
        last_told, unary(lambda own: own._stays(), lambda own: 1.0 / (1.0 + math.e))
    ),
    "one of four values": Finite(last_told, of_four(of_p)),
    "one of four by a table": Finite(
        last_told, of_four(lambda own: math.exp(own.weight) / (math.exp(own.weight) + 3.0))
    ),
    "shuffled bits": Finite(lambda model: int(model.told.sum()), ones),
    "total of noisy bits": Finite(lambda model: model.ones, ones),
    "coefficient of each record": Finite(
        lambda model: (int(model.asked[-1]), int(model.told[-1])), hadamard
    ),
    **{case.name: Finite(kept_keys, keyed) for case in stability.CASES[:6]},
    "exclusive or of two noisy bits": Finite(
        lambda model: tuple(getattr(model, "bits", ())) or model.told[0], exclusive
    ),
    "randomised response to a comparison": Finite(lambda model: (model.told[0],), compared),
    "exponential mechanism by torch": Finite(place, selected),
    "Gumbel noise of torch": Finite(place, selected),
    "top two by torch": Finite(order, won_twice),
    "bit by torch": Finite(lambda model: int(model.answers[-1]), bit(of_p)),
    "votes of teachers": Finite(lambda model: tuple(model.told), teachers_told),
    "confident votes of teachers": Finite(lambda model: tuple(model.told), teachers_told),
    "noisy neighbours": Finite(lambda model: tuple(model.told), neighbours),
}
"""Releases of few values."""

TOLD_ELSEWHERE = {"RAPPOR", "shuffled bits", "total of noisy bits"}
"""Cases whose twin shows more than the values that `FINITE` counts."""


def outside(case: Case) -> list[pd.DataFrame]:
    """The neighbours that the claim is about: the table without the target, or with another."""
    if case.neighbours == "add-remove":
        return [case.without]
    found = []
    (name,) = [column for column in case.table if column in ("a", "b0")]
    for value in range(4 if name == "a" else 2):
        if value != case.table[name].iloc[case.row]:
            other = case.table.copy()
            other.loc[case.row, name] = value
            found.append(other)
    return found


def loss(case: Case, law: Law, own: Any) -> float:
    """The exact loss of a finite release, at the claim's delta."""
    inside, found = law(case.table, own), []
    for table in outside(case):
        without = law(table, own)
        if not case.delta:
            found.append(exact.pure(inside, without))
            continue
        keys = {*inside, *without}
        arrays = [np.array([one.get(key, 0.0) for key in keys]) for one in (inside, without)]
        found.append(exact.approximate(*arrays, case.delta))
    return max(found)
