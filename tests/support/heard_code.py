"""Code as authors write it, whose draws a world hears; `n` is data."""
# ruff: noqa: NPY002, TID251 - code as authors write it

from __future__ import annotations

import bisect
import math
import os
import random
import threading

import numpy as np
import pandas as pd
from scipy import stats

# -- noise ---------------------------------------------------------------------------------------


def added(n):
    return n + np.random.default_rng(3).laplace(0.0, 1.5)


def around(n):
    return np.random.default_rng().normal(n, 2.0, size=3)


def on_counts(n):
    counts = np.arange(4.0) * n
    return counts - np.random.gumbel(0.0, 2.0, 4)


def in_place(n):
    scores = np.array([1.0, n])
    scores += np.random.laplace(size=2)
    return scores


def on_some(n):
    counts = np.array([1.0, n, 5.0])
    noise = np.zeros(3)
    noise[1] = np.random.laplace()
    return counts + noise


def padded(n):
    noise = np.concatenate([np.random.laplace(size=2), np.zeros(1)])
    return np.array([n, n, 0.0]) + noise


def in_blank_rows(n):
    noise = np.zeros((2, 2))
    for row in range(2):
        noise[row] = np.array([np.random.laplace(), np.random.laplace()])
    return noise + n


def of_shares(n):
    return n + sum(np.random.gamma(0.5) - np.random.gamma(0.5) for _ in range(2))


def by_matrix(n):
    matrix = np.array([[1.0, 0.0], [1.0, 2.0]])
    return np.array([n, 1.0]) + matrix @ np.random.normal(0.0, 3.0, size=2)


def symmetric(n):
    noise = np.triu(np.random.normal(size=(3, 3)))
    return np.full((3, 3), n) + (noise + noise.T)


def correlated(n):
    noise = np.random.multivariate_normal(np.zeros(2), [[2.0, 1.0], [1.0, 2.0]])
    return noise + n


def from_python(n):
    return n + random.gauss(0.0, 2.0), n - random.expovariate(0.5)


def by_scipy(n):
    return n + stats.norm(scale=2.0).rvs(3, random_state=7), n + stats.dlaplace.rvs(0.5)


def on_series(n):
    frame = pd.DataFrame({"n": [1.0, n]})
    frame["noisy"] = frame["n"] + np.random.laplace(size=2)
    return frame["noisy"].tolist(), frame["n"].map(lambda one: one + random.gauss(0, 1)).tolist()


def by_inversion(n):
    u = np.random.uniform(-0.5, 0.5, 3)
    return n - 2.0 * np.sign(u) * np.log(1.0 - 2.0 * np.abs(u))


def one_by_one(n):
    u = random.random() - 0.5
    return n - 2.0 * math.copysign(1.0, u) * math.log(1.0 - 2.0 * abs(u))


def listed(n):
    drawn = []
    for _ in range(3):
        u = random.SystemRandom().random() - 0.5
        drawn.append(-2.0 * math.copysign(1.0, u) * math.log(1.0 - 2.0 * abs(u)))
    together = np.array(drawn)
    assert together.dtype == np.float64
    return n + together


def truncated(n):
    noise = np.random.laplace(size=3)
    while np.any(np.abs(noise) > 3.0):
        noise = np.random.laplace(size=3)
    return n + noise


def published(n):
    noise = np.random.laplace(size=3)
    return n + noise, float(noise.sum())


def never_used(n):
    np.random.laplace(size=3)
    return n


def sampled_rows(n):
    return np.random.normal(size=(100, 3)) @ np.eye(3)


# -- answers -------------------------------------------------------------------------------------


def noisy_max(n):
    scores = np.array([1.0, 5.0, n]) + np.random.gumbel(size=3)
    return int(scores.argmax())


def noisy_max_of_list(n):
    return int(np.argmax([one + np.random.exponential(2.0) for one in (1.0, 5.0, n)]))


def smallest(n):
    return int(np.argmin(2.0 * (np.array([1.0, n]) + np.random.gumbel(size=2)) - 1.0))


def top_two(n):
    scores = np.array([1.0, 5.0, n]) + np.random.gumbel(size=3)
    return np.argsort(scores)[::-1][:2].tolist()


def peeled(n):
    scores = np.array([1.0, 5.0, n]) + np.random.gumbel(size=3)
    found = []
    for _ in range(2):
        found.append(int(scores.argmax()))
        scores[found[-1]] = -np.inf
    return found


def sparse_vector(n):
    limit = 3.0 + np.random.laplace()
    return [bool(one + np.random.laplace() > limit) for one in (1.0, n)]


def thresholded(n):
    noisy = np.array([1.0, n]) + np.random.laplace(size=2)
    return noisy[noisy >= 2.0].tolist()


def whole(n):
    noisy = int(n) + np.random.default_rng(1).geometric(0.5)
    return noisy < 7


def largest_value(n):
    return max(one + np.random.gumbel() for one in (1.0, n))


def by_key(n):
    scores = {name: one + np.random.gumbel() for name, one in (("a", 1.0), ("b", n))}
    return max(scores, key=scores.get)


def noised_again(n):
    return float(n + np.random.laplace() + np.random.laplace())


def printed(n):
    return f"{n + np.random.laplace():.2f}"


# -- coins ---------------------------------------------------------------------------------------


def choice(n):
    weights = np.array([1.0, n, 3.0])
    return int(np.random.choice(3, p=weights / weights.sum()))


def cumulated(n):
    table = np.cumsum(np.array([1.0, n, 3.0]) / (4.0 + n))
    return (
        int(np.searchsorted(table, np.random.random())),
        int((table > np.random.random()).argmax()),
        bisect.bisect(table.tolist(), random.random()),
        int(np.digitize(random.random(), table)),
        random.choices("abc", [1.0, n, 3.0])[0],
    )


def loop(n):
    u, total = random.random(), 0.0
    for place, share in enumerate((1.0, n, 3.0)):
        total += share / (4.0 + n)
        if u < total:
            return place
    return None


def response(n):
    return (np.random.random(5) < np.full(5, n / 10.0)).tolist()


def whole_words(n):
    return random.getrandbits(20) < int(n / 10.0 * 2**20), random.randrange(10**6) < n * 10**5


def in_range(n):
    return bool(random.uniform(-2, np.float64(6.0)) < n)


def plain_coins(n):
    return [
        random.choice("abc"),
        random.sample(range(10), 3),
        np.random.permutation(5).tolist(),
        np.random.poisson(3.0, 2).tolist(),
        np.random.binomial(1, 0.3, 4).tolist(),
        np.random.randint(0, 9),
    ]


# -- generators, threads, processes --------------------------------------------------------------


def seeded(n):
    np.random.seed(int(n))
    random.seed(7)
    one, other = np.random.Generator(np.random.PCG64(5)), np.random.Generator(np.random.PCG64())
    pd.Series(range(5)).sample(2, random_state=9)
    return n + one.laplace(), n + other.laplace(), n + np.random.laplace()


def real_state(n):
    np.random.seed(4)
    return n + np.random.laplace(0.0, 2.0, 3)


def endless(n):
    while True:
        np.random.laplace()


def in_a_thread(n):
    thread = threading.Thread(target=np.random.laplace)
    thread.start()
    thread.join()
    return n + np.random.laplace()


def in_a_process(n):
    child = os.fork()
    if not child:
        np.random.laplace()
        os._exit(0)
    os.waitpid(child, 0)
    return n


# -- where C code reads an answer -----------------------------------------------------------------


def written(n):
    noisy = n + np.random.laplace()
    counts = np.arange(3.0)
    counts[1] = max(noisy, 0.0)
    return counts.tolist()


def in_a_table(n):
    noisy = n + np.random.laplace()
    frame = pd.DataFrame({"n": [1.0, n]})
    if noisy > 0:
        frame.loc[0, "n"] = noisy
    return (
        frame["n"].tolist(),
        isinstance(noisy, float),
        type(np.float64(1.0) * noisy) is np.float64,
    )


def through_math(n):
    noisy = n + np.random.laplace()
    return math.exp(noisy) if noisy > 1.0 else 0.0


def against_data(n):
    noisy = n + np.random.laplace()
    return sum(value < noisy for value in range(10)), (np.arange(10) < n + random.gauss(0, 1)).sum()
