"""Randomised response, unary encodings and shuffling; every record answers by coins of its own.

Others have zeros and the target ones, and one record is replaced, so the number of records is
public and every replacement differs from the target.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from reports.replay.honest.bases import Rng, binary_schema, bits_table
from reports.replay.honest.case import CELLS, CELLS_SCHEMA, Case, cells_table

PLACED = Schema.from_document(
    {
        "columns": [
            *({"name": f"b{bit}", "kind": "binary", "categories": [0, 1]} for bit in range(3)),
            {"name": "place", "kind": "integer", "lower": 0, "upper": 12},
        ]
    }
)
KEEP = math.e / (1.0 + math.e)


class Told:
    """A model that has released one noisy row for each record."""

    columns: tuple[str, ...] = ("b0",)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Told:
        """Asks every record."""
        values = data[list(self.columns)].to_numpy()
        self.told = np.asarray(self._tell(values, np.random.default_rng(seed)), int)
        return self

    def _tell(self, values: Any, rng: Rng) -> Any:
        raise NotImplementedError

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws from what records told."""
        rows = np.random.default_rng(seed).integers(0, len(self.told), size=n)
        told = self.told.reshape(len(self.told), -1)
        return pd.DataFrame(told[rows], columns=list(self.columns))


class Response(Told):
    """One bit, told as it is with probability p.

    Attributes:
        p: e / (1 + e) for epsilon 1.
    """

    def __init__(self, p: float = KEEP) -> None:
        self.p = p

    def _tell(self, values: Any, rng: Rng) -> Any:
        kept = rng.random(values.shape) < self.p  # fault: response
        return np.where(kept, values, 1 - values)  # fault: response


class ResponseByFlips(Response):
    """The same with binomial flips."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        flips = rng.binomial(1, 1.0 - self.p, size=values.shape)  # fault: flips
        return values ^ flips  # fault: flips


class ResponseByChoice(Response):
    """The same with a weighted choice between truth and lie."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        true = rng.choice(
            [True, False], size=values.shape, p=[self.p, 1.0 - self.p]
        )  # fault: by-choice
        return np.where(true, values, 1 - values)  # fault: by-choice


class ResponseInPython(Response):
    """The same with Python's random numbers, record by record."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> ResponseInPython:
        """Asks every record."""
        own, told = random.Random(seed), []
        for bit in data["b0"].tolist():
            told.append(bit if own.random() < self.p else 1 - bit)  # fault: in-python
        self.told = np.array(told)
        return self


class ResponseByProbability(Response):
    """The same by comparing a uniform number with the probability of a one."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        chance = values * (2.0 * self.p - 1.0) + (1.0 - self.p)
        return rng.random(values.shape) < chance  # fault: by-probability


class TwoCoins(Response):
    """Warner's way: the first coin asks for the truth, else a fair coin answers."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        truthful = rng.random(values.shape) < 2.0 * self.p - 1.0  # fault: two-coins
        return np.where(truthful, values, rng.integers(0, 2, size=values.shape))  # fault: two-coins


class BitByBit(Told):
    """Three bits of each of 13 places, a third of the budget for each; an empty place has zeros."""

    columns = ("b0", "b1", "b2")
    p = math.exp(1 / 3) / (1.0 + math.exp(1 / 3))

    def fit(self, data: pd.DataFrame, *, seed: int) -> BitByBit:
        """Asks every place."""
        placed = data.set_index("place")[list(self.columns)].reindex(range(13), fill_value=0)
        self.told = self._tell(placed.to_numpy(), np.random.default_rng(seed))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws from what places told."""
        return super().sample(n, seed=seed).assign(place=np.arange(n) % 13)

    def _tell(self, values: Any, rng: Rng) -> Any:
        flips = rng.random(values.shape) >= self.p  # fault: bit-by-bit
        return values ^ self._spared(flips)  # fault: bit-by-bit

    def _spared(self, flips: Any) -> Any:
        return flips


class FirstBitBare(BitByBit):
    """The twin: the first bit is told as it is (opendp#2708)."""

    def _spared(self, flips: Any) -> Any:
        flips[:, 0] = False
        return flips


class OneCoin(BitByBit):
    """Another twin: one coin for all bits of a record."""

    def _spared(self, flips: Any) -> Any:
        return np.repeat(flips[:, :1], 3, axis=1)


class UnaryEncoding(Told):
    """One of four values as four bits, each flipped with probability f (RAPPOR, one time)."""

    columns = ("a",)
    f = 1.0 / (1.0 + math.exp(0.5))

    def fit(self, data: pd.DataFrame, *, seed: int) -> UnaryEncoding:
        """Encodes every record and flips bits."""
        rng, bits = np.random.default_rng(seed), np.eye(CELLS, dtype=int)[data["a"]]
        self.told = self._flipped(bits, rng)
        return self

    def _flipped(self, bits: Any, rng: Rng) -> Any:
        flips = rng.random(bits.shape) < self.f
        return np.where(flips, 1 - bits, bits)  # fault: unary

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws values in proportion to their bits."""
        p = self.told.sum(axis=0) + 1e-9
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.choice(CELLS, size=n, p=p / p.sum())})


class UnaryBare(UnaryEncoding):
    """The twin: only zeros are flipped."""

    def _flipped(self, bits: Any, rng: Rng) -> Any:
        flips = rng.random(bits.shape) < self.f
        return np.where(flips & (bits == 0), 1, bits)  # fault: unary


class Rappor(UnaryEncoding):
    """Permanent flips, then an instantaneous report of them: less is released than is noised."""

    f = 1.0 / (1.0 + math.exp(1.0))

    def _flipped(self, bits: Any, rng: Rng) -> Any:
        permanent = super()._flipped(bits, rng)
        chance = np.where(permanent == 1, 0.75, 0.25)
        return (rng.random(bits.shape) < chance).astype(int)  # fault: rappor


class RapporMemoised(Rappor):
    """The twin: what was to be kept by the client stays in the model."""

    def _flipped(self, bits: Any, rng: Rng) -> Any:
        self.permanent = UnaryEncoding._flipped(self, bits, rng)  # fault: rappor
        return (rng.random(bits.shape) < np.where(self.permanent == 1, 0.75, 0.25)).astype(int)


class OptimisedUnary(UnaryEncoding):
    """A one stays with probability 1/2, a zero turns with 1 / (1 + e)."""

    def _flipped(self, bits: Any, rng: Rng) -> Any:
        chance = np.where(bits == 1, self._stays(), 1.0 / (1.0 + math.e))
        return (rng.random(bits.shape) < chance).astype(int)  # fault: oue

    def _stays(self) -> float:
        return 0.5


class AlwaysOne(OptimisedUnary):
    """The twin: a one always stays."""

    def _stays(self) -> float:
        return 1.0


class KAry(UnaryEncoding):
    """One of four values: the true one, or one of the others."""

    p = math.e / (math.e + CELLS - 1)

    def fit(self, data: pd.DataFrame, *, seed: int) -> KAry:
        """Asks every record."""
        rng, told = np.random.default_rng(seed), []
        for value in data["a"].tolist():
            if rng.random() < self.p:  # fault: k-ary
                told.append(value)
            else:
                told.append((value + int(rng.integers(1, CELLS))) % CELLS)
        self.told = np.eye(CELLS, dtype=int)[told]
        return self


class KAryMostlyTrue(KAry):
    """The twin: .99 instead of e / (e + 3)."""

    p = 0.99


class KAryByTable(UnaryEncoding):
    """The same by a table of probabilities, one weighted choice for each record."""

    weight = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> KAryByTable:
        """Asks every record."""
        rng = np.random.default_rng(seed)
        table = np.exp(self.weight * np.eye(CELLS))
        table /= table.sum(axis=1, keepdims=True)
        told = [rng.choice(CELLS, p=table[value]) for value in data["a"]]  # fault: by-table
        self.told = np.eye(CELLS, dtype=int)[told]
        return self


class KAryHeavy(KAryByTable):
    """The twin: the exponent is 3."""

    weight = 3.0


class Shuffled(Response):
    """Randomised response, then all answers are shuffled: only their number is released."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        told = super()._tell(values, rng)
        return rng.permutation(told)  # fault: shuffled


class NotShuffled(Shuffled):
    """The twin: the shuffled copy is thrown away."""

    def _tell(self, values: Any, rng: Rng) -> Any:
        told = Response._tell(self, values, rng)
        rng.permutation(told)
        return told  # fault: shuffled


class Totals(Response):
    """Randomised response of which only the total is released."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Totals:
        """Asks every record and counts."""
        told = self._tell(data[["b0"]].to_numpy(), np.random.default_rng(seed))
        self.ones = int(told.sum())
        self.told = np.repeat([0, 1], [len(data) - self.ones, self.ones])
        return self


class TotalsWithLabels(Totals):
    """The twin: the total of the true bits is there, too."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> TotalsWithLabels:
        """Asks every record and counts."""
        super().fit(data, seed=seed)
        self.label_ones = int(data["b0"].sum())  # fault: response
        return self


class LocalLaplace(Told):
    """Every record adds Laplace noise to its own number."""

    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> LocalLaplace:
        """Asks every record."""
        noise = np.random.default_rng(seed).laplace(
            scale=self.scale, size=len(data)
        )  # fault: local
        self.told = data["b0"].to_numpy() + noise  # fault: local
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws bits with the mean of what was told."""
        mean = float(np.clip(self.told.mean(), 0.0, 1.0))
        return pd.DataFrame({"b0": np.random.default_rng(seed).binomial(1, mean, size=n)})


class LocalForgotten(LocalLaplace):
    """The twin: the noise has a third of the scale."""

    scale = 1.0 / 3.0


class Hadamard(Told):
    """Each record tells one random coefficient of its value, a sign that is kept with p."""

    columns = ("a",)
    p = KEEP

    def fit(self, data: pd.DataFrame, *, seed: int) -> Hadamard:
        """Asks every record."""
        rng, a = np.random.default_rng(seed), data["a"].to_numpy()
        self.asked = rng.integers(0, CELLS, size=len(a))
        sign = 1 - 2 * (np.bitwise_count(self.asked & a) % 2).astype(int)
        self.told = np.where(rng.random(len(a)) < self.p, sign, -sign)  # fault: hadamard
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws values by the coefficients."""
        signs = 1 - 2 * (np.bitwise_count(self.asked[:, None] & np.arange(CELLS)) % 2).astype(int)
        p = np.maximum((signs * self.told[:, None]).sum(axis=0), 0.0) + 1e-9
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.choice(CELLS, size=n, p=p / p.sum())})


class HadamardMostlyTrue(Hadamard):
    """The twin: .99."""

    p = 0.99


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "table": bits_table(1),
        "schema": binary_schema(["b0"]),
        "target": "row:12",
        "neighbours": Neighbours.REPLACE_ONE,
        "note": "the largest ratio of the chances of what the target tells",
    }
    return Case(
        name=name,
        family="randomised response",
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **(stated | known),
    )


THREE: dict[str, Any] = {
    "table": bits_table(3).assign(place=range(13)),
    "schema": PLACED,
    "neighbours": Neighbours.ADD_REMOVE,
    "spends": 1.0,
}
VALUES: dict[str, Any] = {"table": cells_table(), "schema": CELLS_SCHEMA, "target": "row:39"}
MANY: dict[str, Any] = {
    "table": bits_table(1, 41),
    "target": "row:40",
    "epsilon": 0.411674,
    "delta": 1e-3,
    "spends": 0.998632,
    "note": "by the exact chances of the number of ones; a record's own answer costs .9986",
}
BARE: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": float("inf")}
MOSTLY: dict[str, Any] = {"spends": 1.0, "twin_spends": 4.59512, "twin_shows": 4.59512}


def _bit(name: str, kind: type[Response], marker: str) -> Case:
    return _case(name, kind, lambda: kind(0.99), marker, **MOSTLY)


CASES = (
    _bit("bit by a uniform number", Response, "response"),
    _bit("bit by binomial flips", ResponseByFlips, "flips"),
    _bit("bit by choice", ResponseByChoice, "by-choice"),
    _bit("bit in Python", ResponseInPython, "in-python"),
    _bit("bit by the probability of a one", ResponseByProbability, "by-probability"),
    _case(
        "bit by two coins",
        TwoCoins,
        lambda: TwoCoins(0.99),
        "two-coins",
        twin_shows=4.59512,
    ),
    _case("three bits", BitByBit, FirstBitBare, "bit-by-bit", **THREE, **BARE),
    _case(
        "three bits, a coin each",
        BitByBit,
        OneCoin,
        "bit-by-bit",
        **(THREE | {"table": THREE["table"].assign(b2=0), "epsilon": 2 / 3, "spends": 2 / 3}),
        **BARE,
    ),
    _case("unary encoding", UnaryEncoding, UnaryBare, "unary", **VALUES, spends=1.0, **BARE),
    _case(
        "RAPPOR",
        Rappor,
        RapporMemoised,
        "rappor",
        **(VALUES | {"epsilon": 0.94123, "spends": 2.0}),
        twin_shows=2.0,
    ),
    _case("optimised unary encoding", OptimisedUnary, AlwaysOne, "oue", **VALUES, **BARE),
    _case("one of four values", KAry, KAryMostlyTrue, "k-ary", **VALUES, twin_shows=5.69373),
    _case("one of four by a table", KAryByTable, KAryHeavy, "by-table", **VALUES, twin_shows=3.0),
    _case(
        "shuffled bits",
        Shuffled,
        NotShuffled,
        "shuffled",
        **MANY,
        twin_spends=0.998632,
        twin_shows=0.998632,
    ),
    _case("total of noisy bits", Totals, TotalsWithLabels, "response", **MANY, **BARE),
    _case(
        "noise of each record's own",
        LocalLaplace,
        LocalForgotten,
        "local",
        spends=1.0,
        twin_spends=3.0,
        twin_shows=3.0,
        released=True,
    ),
    _case(
        "coefficient of each record", Hadamard, HadamardMostlyTrue, "hadamard", **VALUES, **MOSTLY
    ),
)
