"""Small generators in the style of a library, for replays: how each draws noise is the point."""

from __future__ import annotations

import hashlib
import random
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import stats

from dpaudit.model.claim import Neighbours, PrivacyClaim

CELLS = 4


def table() -> pd.DataFrame:
    """A table whose last record is alone in the last cell."""
    rng = np.random.default_rng(3)
    cells = np.append(rng.integers(0, CELLS - 1, size=39), CELLS - 1)
    return pd.DataFrame({"a": cells, "x": np.linspace(0.0, 1.0, 40)})


def shares(counts: Any) -> Any:
    """Noisy counts as probabilities."""
    kept = np.maximum(counts, 0.0) + 1e-9
    return kept / kept.sum()


def pointing_at(place: int) -> Any:
    """Probabilities that show one place."""
    p = np.full(CELLS, 0.1)
    p[place] = 1.0 - 0.1 * (CELLS - 1)
    return p


class Counting:
    """Fits probabilities of the cells of column `a`."""

    epsilon: ClassVar[float] = 1.0
    delta: ClassVar[float] = 0.0
    neighbours: ClassVar[Neighbours] = Neighbours.ADD_REMOVE

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Counting:
        self.rng = np.random.default_rng(seed)
        self.rows = len(data)
        self.values = data["a"].to_numpy()
        self.p = self.train(np.bincount(self.values, minlength=CELLS))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"a": rng.choice(CELLS, size=n, p=self.p), "x": np.zeros(n)})

    def train(self, counts: Any) -> Any:
        raise NotImplementedError


class LaplaceCounts(Counting):
    """Laplace noise on all counts at once."""

    def train(self, counts: Any) -> Any:
        return shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))


class HalfTheNoise(Counting):
    """The same count by count, one of them with half the noise."""

    def train(self, counts: Any) -> Any:
        noisy = [count + self.rng.laplace(scale=1.0) for count in counts[:-1]]
        noisy.append(counts[-1] + self.rng.laplace(scale=0.5))
        return shares(np.array(noisy))


class GaussianCounts(Counting):
    """Gaussian noise of mu 1."""

    epsilon, delta = 4.3771781, 1e-5

    def train(self, counts: Any) -> Any:
        return shares(counts + self.rng.normal(0.0, 1.0, size=CELLS))


class SharedNoise(GaussianCounts):
    """Five shares of that noise, which are summed before anybody sees them."""

    def train(self, counts: Any) -> Any:
        parts = [
            (counts if at == 0 else 0 * counts) + self.rng.normal(0, 5**-0.5, CELLS)
            for at in range(5)
        ]
        return shares(np.sum(parts, axis=0))


class NoisyMax(Counting):
    """Report noisy max with Laplace noise of twice the scale."""

    def train(self, counts: Any) -> Any:
        return pointing_at(int(np.argmax(counts + self.rng.laplace(0.0, 2.0, size=CELLS))))


class ExponentialMechanism(Counting):
    """A cell drawn with probability in proportion to exp(count / 2)."""

    def train(self, counts: Any) -> Any:
        weights = np.exp(0.5 * (counts - counts.max()))
        return pointing_at(int(self.rng.choice(CELLS, p=weights / weights.sum())))


class SparseVector(Counting):
    """The first count above a noisy threshold."""

    def train(self, counts: Any) -> Any:
        threshold = 15.0 + self.rng.laplace(0.0, 2.0)
        place = 0
        for place in range(CELLS):
            if counts[place] + self.rng.laplace(0.0, 4.0) > threshold:
                break
        return pointing_at(place)


class RandomisedResponse(Counting):
    """Each record answers by a coin of its own."""

    neighbours = Neighbours.REPLACE_ONE

    def train(self, counts: Any) -> Any:
        bits = self.values % 2
        kept = self.rng.random(len(bits)) < np.e / (1.0 + np.e)
        told = np.where(kept, bits, 1 - bits)
        return shares(np.array([np.sum(told == 0), np.sum(told == 1), 0, 0]))


class NoiseReused(Counting):
    """One draw of noise for all counts."""

    def train(self, counts: Any) -> Any:
        noise = self.rng.laplace(0.0, 1.0)
        return shares(np.array([count + noise for count in counts]))


class ShareReused(GaussianCounts):
    """Two shares of noise are summed in one answer, and one of them alone is in another."""

    def train(self, counts: Any) -> Any:
        first, second = self.rng.normal(0, 1, CELLS), self.rng.normal(0, 1, CELLS)
        together = counts + (first + second)
        return shares(together + (counts + first))


class MixedNoise(GaussianCounts):
    """The sum of two laws, which has no name here."""

    def train(self, counts: Any) -> Any:
        return shares(counts + (self.rng.laplace(0, 9, CELLS) + self.rng.gumbel(0, 9, CELLS)))


class SummedShares(Counting):
    """Noise of three parties, summed by Python's own `sum` before the counts are added."""

    def train(self, counts: Any) -> Any:
        return shares(counts + sum(self.rng.laplace(size=CELLS) for _ in range(3)))


class TooSmallShares(Counting):
    """The same, each with four fifths of the noise: no sum of them has a larger scale."""

    def train(self, counts: Any) -> Any:
        return shares(counts + sum(self.rng.laplace(scale=0.8, size=CELLS) for _ in range(3)))


class SharesOfUnlikeScale(Counting):
    """One large and one small share, each with a part of the counts."""

    def train(self, counts: Any) -> Any:
        large = counts // 2 + self.rng.laplace(scale=1.0, size=CELLS)
        return shares(large + ((counts - counts // 2) + self.rng.laplace(scale=0.4, size=CELLS)))


class SummedNumbers(Counting):
    """Shares of noise number by number, with a sum that begins at 0."""

    def train(self, counts: Any) -> Any:
        noisy = []
        for count in counts:
            total = 0
            for _ in range(2):
                total += self.rng.laplace()
            noisy.append(count + total)
        return shares(np.array(noisy))


class TwiceTheAnswer(Counting):
    """Noise on nothing, multiplied, before the counts are added."""

    def train(self, counts: Any) -> Any:
        noise = 0 * counts + self.rng.laplace(scale=0.5, size=CELLS)
        return shares(counts[::-1] + 2.0 * noise[::-1])


class MeanOfRows(GaussianCounts):
    """A noisy count over the number of records, whose claim has room for what that changes."""

    epsilon: ClassVar[float] = 2.0
    scale: ClassVar[float] = 5.0

    def train(self, counts: Any) -> Any:
        share = (counts[-1] + self.rng.normal(0.0, self.scale)) / self.rows
        return shares(np.array([1.0, 1.0, 1.0, 1.0 + min(max(float(share), 0.0), 1.0)]))


class NoisierMeanOfRows(MeanOfRows):
    """The same with too little noise."""

    scale = 1.0


class ReleasedOverRows(GaussianCounts):
    """A noisy count that is released, and once more over the number of records."""

    epsilon: ClassVar[float] = 1.0

    def train(self, counts: Any) -> Any:
        noisy = counts[-1] + self.rng.normal(0.0, 5.0)
        first = float(noisy.clip(0.1, 9.0))
        return shares(np.array([first, float(noisy / self.rows) ** 2, 1.0, 1.0]))


class FirstReleased(Counting):
    """Noise on nothing of which the first element is released; the counts of others follow."""

    def train(self, counts: Any) -> Any:
        noise = 0 * counts + self.rng.laplace(size=CELLS)
        first = noise[0].clip(0.0, 1.0)
        noisy = noise + np.where(np.arange(CELLS) == CELLS - 1, counts, 0)
        return shares(noisy + first)


class OneByOne(Counting):
    """Noise on nothing, to whose elements the counts are added one by one: not followed."""

    def train(self, counts: Any) -> Any:
        noise = 0 * counts + self.rng.laplace(scale=0.9, size=CELLS)
        return shares(np.array([counts[cell] + noise[cell] for cell in range(CELLS)]))


class Accumulated(Counting):
    """Shares of noise in an array that begins with zeros: not followed."""

    def train(self, counts: Any) -> Any:
        total = np.zeros(CELLS)
        for _ in range(2):
            total += self.rng.laplace(scale=0.9, size=CELLS)
        return shares(counts + total)


class TwoOfThem(Counting):
    """Two different cells drawn by the exponential mechanism, each with half of epsilon."""

    scale: ClassVar[float] = 0.25

    def train(self, counts: Any) -> Any:
        weights = np.exp(self.scale * np.minimum(counts, 1))
        picked = self.rng.choice(CELLS, size=2, replace=False, p=weights / weights.sum())
        return shares(np.isin(np.arange(CELLS), picked).astype(float))


class TwoOfThemByCounts(TwoOfThem):
    """The same with six times what each may cost."""

    scale = 1.5


def of_the_last(counts: Any) -> float:
    """Of a coin that says whether the last cell is empty, by randomised response of epsilon 1."""
    return float(np.e / (1.0 + np.e) if counts[-1] > 0 else 1.0 / (1.0 + np.e))


class IdleCoin(Counting):
    """A coin that follows the data and is never looked at."""

    def train(self, counts: Any) -> Any:
        fell = self.rng.random() < of_the_last(counts)
        del fell
        return shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))


class EqualSides(Counting):
    """A branch with two equal sides."""

    def train(self, counts: Any) -> Any:
        noisy = shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))
        return noisy if self.rng.random() < of_the_last(counts) else noisy + 0.0


class UnequalSides(Counting):
    """The same with two sides that differ."""

    def train(self, counts: Any) -> Any:
        noisy = shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))
        return noisy if self.rng.random() < of_the_last(counts) else noisy[::-1]


class OneLineOfCoins(Counting):
    """Two coins of one line: the first is never looked at, the other one decides."""

    used: ClassVar[bool] = False

    def train(self, counts: Any) -> Any:
        fell = [bool(self.rng.random() < of_the_last(counts)) for _ in range(2)]
        return pointing_at(int(fell[1]) + 2 * int(self.used and fell[0]))


class OneLineOfUsedCoins(OneLineOfCoins):
    """The same, both used: epsilon 2."""

    used = True


class DrawnByCounts(Counting):
    """A cell drawn in proportion to the counts: an empty one never is."""

    def train(self, counts: Any) -> Any:
        return pointing_at(int(self.rng.choice(CELLS, p=counts / counts.sum())))


class IdleChoice(Counting):
    """A cell drawn by the counts and forgotten."""

    def train(self, counts: Any) -> Any:
        self.rng.choice(CELLS, p=counts / counts.sum())
        return shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))


class IdleNumber(Counting):
    """A noisy count in a sentence that nobody reads."""

    def train(self, counts: Any) -> Any:
        text = f"{counts[-1] + self.rng.laplace(scale=0.2)}"
        del text
        return shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))


class IdleNumberOfALeak(HalfTheNoise):
    """The same beside too little noise."""

    def train(self, counts: Any) -> Any:
        text = f"{counts[-1] + self.rng.laplace(scale=0.2)}"
        del text
        return super().train(counts)


class TwoThatAreFilled(Counting):
    """Two cells drawn by the exact counts: the last one is empty without the record."""

    def train(self, counts: Any) -> Any:
        picked = self.rng.choice(CELLS, size=2, replace=False, p=counts / counts.sum())
        return shares(np.isin(np.arange(CELLS), picked).astype(float))


class SpreadAroundNoisyMean(Counting):
    """A noisy mean, and the noisy spread around it: what is known of the mean protects nothing."""

    def train(self, counts: Any) -> Any:
        mean = (self.values.sum() + self.rng.laplace(0.0, 6.0)) / 40
        limit = max(mean, CELLS - 1 - mean) ** 2
        spread = ((self.values - mean) ** 2).sum() + self.rng.laplace(0.0, 1000.0)
        return shares(np.array([1.0, 1.0, 1.0 + limit, 1.0 + abs(float(spread))]))


class ClippedAtNoisyLimit(Counting):
    """Values are cut at a noisy limit before their noisy sum."""

    def train(self, counts: Any) -> Any:
        limit = 2.0 + counts[0] / 100 + self.rng.laplace(0.0, 0.02)
        total = np.clip(self.values, 0.0, limit).sum() + self.rng.laplace(0.0, 20.0)
        return shares(np.array([1.0, 1.0, 1.0, 1.0 + abs(float(total))]))


class UnusedAnswer(Counting):
    """Half of epsilon is spent on the counts; a noisy count of all rows is never used."""

    def train(self, counts: Any) -> Any:
        self.total = counts.sum() + self.rng.laplace(0.0, 2.0)
        return shares(counts + self.rng.laplace(0.0, 2.0, size=CELLS))


class WeighedByNoisyCount(Counting):
    """Each value times a noisy count, before their noisy sum: the count is used as a number."""

    def train(self, counts: Any) -> Any:
        weight = counts[0] + self.rng.laplace(0.0, 2.0)
        total = (self.values * weight).sum() + self.rng.laplace(0.0, 2000.0)
        return shares(np.array([1.0, 1.0, 1.0, 1.0 + abs(float(total))]))


class FixedSeed(Counting):
    """The seed is in the code."""

    def train(self, counts: Any) -> Any:
        return shares(counts + np.random.default_rng(7).laplace(0.0, 1.0, size=CELLS))


class PublicOffset(Counting):
    """Counts start from public numbers of a fixed seed; their noise is drawn by another one."""

    def train(self, counts: Any) -> Any:
        public = np.random.default_rng(7)
        prior, cells = public.normal(size=CELLS), public.choice(CELLS, p=np.full(CELLS, 1 / CELLS))
        start = random.Random(7).gauss(0.0, 1.0) + float(stats.norm.rvs(random_state=7)) + cells
        return shares(counts + prior + start + self.rng.laplace(0.0, 1.0, size=CELLS))


class ScaleByRows(Counting):
    """The scale of the noise follows the number of records."""

    def train(self, counts: Any) -> Any:
        return shares(counts / self.rows + self.rng.laplace(0.0, 2.0 / self.rows, size=CELLS))


class OneCountPlain(Counting):
    """The last count gets no noise."""

    def train(self, counts: Any) -> Any:
        noisy = counts.astype(float)
        noisy[:-1] += self.rng.laplace(0.0, 1.0, size=CELLS - 1)
        return shares(noisy)


class DataDecidesTheLoop(Counting):
    """Adds noise once more for each record of the first cell."""

    def train(self, counts: Any) -> Any:
        noisy = counts + self.rng.laplace(0.0, 1.0, size=CELLS)
        for _ in range(counts[0]):
            noisy = noisy + self.rng.laplace(0.0, 0.01)
        return shares(noisy)


class FromPython(Counting):
    """Noise of Python's own random numbers."""

    def train(self, counts: Any) -> Any:
        import random

        rng = random.Random(int(self.rng.integers(2**31)))
        noisy = [count + rng.expovariate(1.0) - rng.expovariate(1.0) for count in counts]
        return shares(np.array(noisy))


class ByHand(Counting):
    """Laplace noise by inverting its distribution function, one branch for each half."""

    def train(self, counts: Any) -> Any:
        u = self.rng.random(CELLS)
        return shares(counts + np.where(u < 0.5, np.log(2.0 * u), -np.log(2.0 - 2.0 * u)))


class NoNoise(Counting):
    """The counts as they are: what is drawn from them has known probabilities."""

    def train(self, counts: Any) -> Any:
        return shares(counts)


class Copier(Counting):
    """Hands out records of the table, picked by chance."""

    def train(self, counts: Any) -> Any:
        return shares(0 * counts)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        picked = np.random.default_rng(seed).integers(0, self.rows - 1, size=n)
        return pd.DataFrame({"a": self.values[::-1][picked], "x": np.zeros(n)})


class Forgetful(Counting):
    """Depends on something that differs between processes."""

    def train(self, counts: Any) -> Any:
        import os

        other = len(os.environ.get("DPAUDIT_WORLD", ""))  # any difference of the two processes
        return shares(counts + other + self.rng.laplace(0.0, 1.0, size=CELLS))


class Compiled(Counting):
    """Noise of a sampler that nobody hooks, from the seed that it was handed."""

    def train(self, counts: Any) -> Any:
        words = hashlib.sha256(str(self.given).encode()).digest()[:CELLS]
        return shares(counts + np.array([word / 25.0 for word in words]))

    def fit(self, data: pd.DataFrame, *, seed: int) -> Counting:
        self.given = seed
        return super().fit(data, seed=seed)


class Buffered(Counting):
    """Noise that is copied into a plain buffer, which a tensor is made of."""

    def train(self, counts: Any) -> Any:
        import torch

        buffer = np.zeros((2, CELLS))
        buffer[0] = self.rng.laplace(0.0, 1.0, size=CELLS)
        noisy = torch.from_numpy(np.stack([counts, np.zeros(CELLS)])) + torch.from_numpy(buffer)
        return shares(noisy[0].numpy())


class RawWords(Counting):
    """Rows by raw words of a bit generator, after the noise."""

    def train(self, counts: Any) -> Any:
        words = self.rng.bit_generator.random_raw(8)
        self.first = int(words[0] % np.uint64(CELLS))
        return shares(counts + self.rng.laplace(0.0, 1.0, size=CELLS))


class Exposed(Counting):
    """Rows that show the largest value, and coins."""

    def train(self, counts: Any) -> Any:
        return shares(0 * counts)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        x = np.random.default_rng(seed).random(n)
        return pd.DataFrame({"a": np.full(n, self.values.max()), "x": x})


class InTorch(Counting):
    """One answer of every kind of torch's noise, each from a line of its own."""

    epsilon, delta = 50.0, 1e-5

    def train(self, counts: Any) -> Any:
        import torch

        c = torch.from_numpy(counts).double()
        buffer, filled = torch.empty(CELLS, dtype=torch.float64), torch.empty(CELLS)
        torch.normal(0.0, 1.0, (CELLS,), out=buffer)  # by out
        noises = [
            buffer,
            torch.distributions.Normal(torch.zeros(CELLS), torch.ones(CELLS)).sample(),  # normal
            torch.distributions.Normal(0.0, 1.0).rsample((CELLS,)),  # reparametrised
            torch.distributions.Laplace(0.0, 1.0).sample((CELLS,)),  # laplace
            torch.distributions.Gumbel(0.0, 1.0).sample((CELLS,)),  # gumbel
            torch.stack([torch.randn(()) for _ in range(CELLS)]),  # stacked
            torch.cat([torch.randn(1), torch.randn(1, 3)[0]]).view(2, 2).T.flip(0).flatten(),
            torch.randn(CELLS, generator=torch.Generator().manual_seed(self.rows * 0 + 5)),  # own
            torch.nn.init.normal_(filled),  # filled
            torch.as_tensor(self.rng.normal(size=(1, CELLS)))[0].to("cpu", torch.float32),  # numpy
        ]
        answers = [(c + noise.double()).numpy() for noise in noises]
        place = torch.multinomial(torch.softmax(c / 2, 0), 1)  # exponential
        order = torch.randint(10, (3,)).sum() + torch.empty(3).uniform_().sum()
        batches = torch.utils.data.DataLoader(torch.arange(4), batch_size=2, shuffle=True)
        coins = float(order) + float(next(iter(batches))[0])
        return shares(np.abs(np.mean(answers, axis=0)) + float(place) + coins)


class NoiseFirstInTorch(Counting):
    """Counts that are added to tensors with noise in them, and noise that the records scale."""

    def train(self, counts: Any) -> Any:
        import torch

        c = torch.from_numpy(counts).double()
        noisy = torch.ones(CELLS).double() + _laplace(torch, 2.0)
        noisy += c  # the record's own count comes after one that it has no part in
        scaled = (c * self.rows + _laplace(torch, 2.0) * self.rows) / self.rows
        return shares((noisy + scaled).numpy())


class NoisyMaxInTorch(Counting):
    """The smallest of noisy counts that are scaled and shifted after the noise."""

    def train(self, counts: Any) -> Any:
        import torch

        noisy = torch.from_numpy(counts).double() + _laplace(torch, 2.0)
        return pointing_at(int((-(noisy / 10.0 - 3.0)).argmin()))


class SharesInTorch(Counting):
    """One large and one small share, each with a part of the counts, as rows that are summed."""

    def train(self, counts: Any) -> Any:
        import torch

        c = torch.from_numpy(counts)
        parts = [(c // 2).double() + _laplace(torch, 1.0), c - c // 2 + _laplace(torch, 0.4)]
        return shares(torch.stack(parts).sum(dim=0).numpy())


class GaussianSharesInTorch(GaussianCounts):
    """Gaussian noise of mu 1 in two shares, one after the other."""

    def train(self, counts: Any) -> Any:
        import torch

        noisy = torch.from_numpy(counts).double() + 0.6 * torch.randn(CELLS)
        noisy -= 0.8 * torch.randn(CELLS)
        return shares(noisy.numpy())


class DividedInTorch(Counting):
    """Noisy counts divided by the number of records, in place: that number has no noise."""

    def train(self, counts: Any) -> Any:
        import torch

        noisy = torch.from_numpy(counts).double() + _laplace(torch, 1.0)
        noisy /= self.rows
        return shares(noisy.numpy())


def _laplace(torch: Any, scale: float) -> Any:
    return torch.distributions.Laplace(torch.zeros(CELLS).double(), scale).sample()


class ByOpacus(Counting):
    """A linear model, trained by Opacus."""

    epsilon, delta = 30.0, 1e-5
    neighbours = Neighbours.REPLACE_ONE
    poisson = False

    def fit(self, data: pd.DataFrame, *, seed: int) -> Counting:
        import torch
        from opacus import PrivacyEngine

        rows = torch.tensor(data.to_numpy(), dtype=torch.float32)
        model = torch.nn.Linear(2, 1)
        batch = 10 if self.poisson else len(rows)
        model, optimiser, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(rows, batch_size=batch),
            noise_multiplier=1.5,
            max_grad_norm=2.0,
            poisson_sampling=self.poisson,
        )
        for batch in loader:
            optimiser.zero_grad()
            ((model(batch) - 1.0) ** 2).mean().backward()
            optimiser.step()
        weights = torch.cat([one.detach().flatten() for one in model.parameters()])
        self.p = shares(np.abs(np.append(weights.numpy(), 1.0)))
        return self


class ByOpacusSampled(ByOpacus):
    """The same, in batches of records that each come by a coin of their own."""

    poisson = True


class InThreads(Counting):
    """Noise drawn in a thread."""

    def train(self, counts: Any) -> Any:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            return shares(
                pool.submit(lambda: counts + self.rng.laplace(0.0, 1.0, size=CELLS)).result()
            )


SHARED = np.random.default_rng()


class GlobalGenerator(Counting):
    """Noise of a generator that is made once, when the module is imported."""

    def train(self, counts: Any) -> Any:
        return shares(counts + SHARED.laplace(0.0, 1.0, size=CELLS))


class RandomProjection(Counting):
    """Multiplies data by secret noise, which may protect it."""

    def train(self, counts: Any) -> Any:
        return shares(np.abs(self.rng.normal(size=(CELLS, CELLS)) @ counts))


class OwnSampler(Counting):
    """Noise of a sampler that the user names."""

    def train(self, counts: Any) -> Any:
        from listened_noise import sample_laplace

        return shares(counts + sample_laplace(int(self.rng.integers(2**31)), 1.0, CELLS))
