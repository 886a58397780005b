"""Stability histograms: keys that occur get noise, and are shown if they reach a cut-off.

The target alone has the key "z", so it is seen with probability delta at any epsilon; the
claim of a second group is that of a record whose key others share.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from dpaudit.model.schema import Schema
from reports.replay.honest.bases import Rng
from reports.replay.honest.case import Case

DELTA = 0.01
CUT = 1.0 + math.log(1.0 / (2.0 * DELTA))
KEYS = ("u", "v", "w", "z")
SCHEMA = Schema.from_document(
    {"columns": [{"name": "k", "kind": "categorical", "categories": list(KEYS)}]}
)


def keys_table() -> pd.DataFrame:
    """Keys of thirty records, two of them common; the target, the last, alone has "z"."""
    return pd.DataFrame({"k": ["u"] * 16 + ["v"] * 11 + ["w"] * 3 + ["z"]})


class Keyed:
    """A model that has released noisy counts of keys."""

    cut = CUT

    def fit(self, data: pd.DataFrame, *, seed: int) -> Keyed:
        """Counts keys, adds noise and cuts off."""
        counts = data["k"].value_counts().sort_index()
        self.kept = self._keep(counts, np.random.default_rng(seed))
        return self

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        raise NotImplementedError

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws keys in proportion to what was released."""
        keys = list(self.kept) or ["u"]
        weights = np.maximum([float(self.kept.get(key, 1.0)) for key in keys], 1e-9)
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"k": rng.choice(keys, size=n, p=weights / weights.sum())})


class LaplaceKeys(Keyed):
    """Laplace noise of scale 1 and a cut-off at 1 + ln(1 / (2 delta))."""

    scale = 1.0

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        noisy = counts + rng.laplace(scale=self.scale, size=len(counts))  # fault: keys
        return {key: float(value) for key, value in noisy.items() if value > self.cut}


class LowCut(LaplaceKeys):
    """The twin: the cut-off is 1."""

    cut = 1.0


class LittleNoise(LaplaceKeys):
    """The twin for a shared key: a scale of .4."""

    scale = 0.4


class LoopKeys(Keyed):
    """The same in Python."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> LoopKeys:
        """Counts keys, adds noise and cuts off."""
        rng, self.kept = np.random.default_rng(seed), {}
        for key, count in self._ordered(Counter(data["k"])):
            noisy = count + rng.laplace()  # fault: loop-keys
            if noisy >= self.cut:
                self.kept[key] = noisy
        return self

    def _ordered(self, counts: Counter[str]) -> Any:
        return sorted(counts.items())


class OrderKept(LoopKeys):
    """The twin: keys stay in the order of their true counts, and a key that is alone is named."""

    def _ordered(self, counts: Counter[str]) -> Any:
        self.alone = [key for key, count in counts.items() if count == 1]  # fault: loop-keys
        return counts.most_common()


class GaussianKeys(Keyed):
    """Gaussian noise of deviation 2, with a cut-off that a key of one record passes by delta."""

    cut = 1.0 + 2.0 * float(norm.isf(DELTA))

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        noisy = counts + rng.normal(0.0, 2.0, len(counts))  # fault: gaussian-keys
        return dict(noisy[noisy > self.cut])


class GaussianLowCut(GaussianKeys):
    """The twin: half a deviation above 1."""

    cut = 2.0


class GeometricKeys(Keyed):
    """Discrete Laplace noise: a key is kept above the cut-off, not at it."""

    cut = 5.0

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        p = 1.0 - math.exp(-1.0)
        noisy = counts + rng.geometric(p, len(counts)) - rng.geometric(p, len(counts))
        return {key: int(noisy[key]) for key in counts.index if self._passes(noisy[key])}

    def _passes(self, noisy: int) -> bool:
        return bool(noisy > self.cut)  # fault: ties


class GeometricTies(GeometricKeys):
    """The twin: at the cut-off, too."""

    def _passes(self, noisy: int) -> bool:
        return bool(noisy >= self.cut)  # fault: ties


class NamesOnly(Keyed):
    """Names without counts: noisy counts decide which."""

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        noisy = counts + rng.laplace(size=len(counts))  # fault: names
        return dict.fromkeys(counts.index[noisy.to_numpy() > self.cut], 1.0)


class NamesLowCut(NamesOnly):
    """The twin: the cut-off is 1."""

    cut = 1.0


class KeptByChance(Keyed):
    """A key of n records is named with a probability that grows from delta by factors of e."""

    def _keep(self, counts: Any, rng: Rng) -> dict[str, float]:
        coins = rng.random(len(counts))  # fault: chance
        named = coins < self._chance(counts.to_numpy())  # fault: chance
        return dict.fromkeys(counts.index[named], 1.0)

    def _chance(self, counts: Any) -> Any:
        """At most e times the chance of one record less, plus delta, for being named or not."""
        chance = [0.0]
        for _ in range(max(counts)):
            rising = math.e * chance[-1] + DELTA
            chance.append(min(rising, 1.0 - (1.0 - chance[-1] - DELTA) / math.e, 1.0))
        return np.array(chance)[counts]


class KeptByCount(KeptByChance):
    """The twin: in proportion to the count."""

    def _chance(self, counts: Any) -> Any:
        return np.minimum(counts / 3.0, 1.0)  # fault: chance


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    stated: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": DELTA,
        "target": "row:30",
        "note": "the target's key is seen with probability delta, and the rest is equal",
    }
    return Case(
        name=name,
        family="stability histograms",
        generator=generator,
        table=keys_table(),
        schema=SCHEMA,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **(stated | known),
    )


SHARED: dict[str, Any] = {
    "target": "row:29",
    "note": "the count moves by 1; below the cut-off nothing is shown",
}
INFINITE: dict[str, Any] = {"twin_shows": math.inf}

CASES = (
    _case("keys, Laplace", LaplaceKeys, LowCut, "keys", **INFINITE),
    _case("keys, Laplace, in a loop", LoopKeys, OrderKept, "loop-keys", **INFINITE),
    _case("keys, Gaussian", GaussianKeys, GaussianLowCut, "gaussian-keys", **INFINITE),
    _case(
        "keys, discrete",
        GeometricKeys,
        GeometricTies,
        "ties",
        **(INFINITE | {"delta": 0.00493, "note": "P(1 + noise > 5) is .004927"}),
    ),
    _case("names of keys, Laplace", NamesOnly, NamesLowCut, "names", **INFINITE),
    _case("names of keys by chance", KeptByChance, KeptByCount, "chance", **INFINITE),
    _case(
        "shared key, Laplace",
        LaplaceKeys,
        LittleNoise,
        "keys",
        **(SHARED | {"delta": 0.0, "released": True, "spends": 1.0}),
        twin_spends=2.5,
        twin_shows=2.5,
    ),
)
