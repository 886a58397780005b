"""Training by hand in numpy, votes of teachers, trees, and loops that stop early."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from dpaudit.model.schema import Schema
from reports.replay.honest.bases import BitsModel, NumberModel, Rng, binary_schema
from reports.replay.honest.case import NUMBERS_SCHEMA, Case, numbers_table

DELTA = 1e-5


class Descent(NumberModel):
    """Noisy gradient descent on a mean; gradients are clipped to 1/10.

    Attributes:
        sigma: Deviation of the noise over the clipping norm.
        clip: The clipping norm.
    """

    clip = 0.1
    steps = 10

    def __init__(self, sigma: float = 4.0) -> None:
        self.sigma = sigma

    def fit(self, data: pd.DataFrame, *, seed: int) -> Descent:
        """Takes ten steps; the last number is released."""
        rng, x, w = np.random.default_rng(seed), data["x"].to_numpy(), 0.0
        for _ in range(self.steps):
            total = self._clipped(w - self._batch(x, rng)).sum()
            w = float(np.clip(w - self._noisy(total, rng) / 40.0, 0.0, 1.0))
        self.value = w
        return self

    def _batch(self, x: Any, rng: Rng) -> Any:
        return x

    def _clipped(self, gradients: Any) -> Any:
        return gradients * np.minimum(1.0, self.clip / np.maximum(np.abs(gradients), 1e-12))

    def _noisy(self, total: float, rng: Rng) -> float:
        return total + rng.normal(0.0, self.sigma * self.clip)  # fault: descent


class DescentNoiseOfMean(Descent):
    """The twin: noise for a mean on a sum, which a number of records too small by 40 makes."""

    def _noisy(self, total: float, rng: Rng) -> float:
        return total + rng.normal(0.0, self.sigma * self.clip / 40.0)  # fault: descent


class DescentNoiseDropped(Descent):
    """Another twin: gradients are computed again after noise was added (opacus#330)."""

    def _noisy(self, total: float, rng: Rng) -> float:
        gradient = total + rng.normal(0.0, self.sigma * self.clip)  # fault: descent
        gradient = total  # fault: descent
        return gradient


class DpSgd(Descent):
    """The same on Poisson batches."""

    rate = 0.25

    def _batch(self, x: Any, rng: Rng) -> Any:
        return x[rng.random(len(x)) < self.rate]

    def _noisy(self, total: float, rng: Rng) -> float:
        return total + rng.normal(0.0, self.sigma * self.clip)  # fault: dp-sgd


class DpSgdUnclipped(DpSgd):
    """The twin: gradients are not clipped."""

    def _clipped(self, gradients: Any) -> Any:
        return gradients  # fault: dp-sgd


class DpSgdBatchByData(DpSgd):
    """Another twin: records with large numbers are always in the batch."""

    def _batch(self, x: Any, rng: Rng) -> Any:
        return x[(rng.random(len(x)) < self.rate) | (x > 0.5)]  # fault: dp-sgd


class EarlyStop(NumberModel):
    """Five steps with Laplace noise, less if a noisy loss is small."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> EarlyStop:
        """Steps until a noisy loss is small."""
        rng, x, w, self.steps = np.random.default_rng(seed), data["x"].to_numpy(), 0.0, 0
        for _ in range(5):
            gradient = np.clip(w - x, -1.0, 1.0).sum() + rng.laplace(scale=10.0)
            w = float(np.clip(w - gradient / 40.0, 0.0, 1.0))
            self.steps += 1
            loss = float(np.clip((w - x) ** 2, 0.0, 1.0).sum())
            if self._criterion(loss, rng) < 3.0:
                break
        self.value = w
        return self

    def _criterion(self, loss: float, rng: Rng) -> float:
        return float(loss + rng.laplace(scale=10.0))  # fault: early


class EarlyStopOnLoss(EarlyStop):
    """The twin: the training loss itself decides, and is kept as a log."""

    def _criterion(self, loss: float, rng: Rng) -> float:
        self.last_loss = loss
        return loss  # fault: early


class TreeSums(NumberModel):
    """Running sums over four days by a binary tree of noisy sums (DP-FTRL)."""

    sigma = 2.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> TreeSums:
        """Adds noise to the nodes, and the nodes to running sums."""
        rng, x = np.random.default_rng(seed), np.clip(data["x"].to_numpy(), 0.0, 1.0)
        days = np.bincount(data["day"], weights=x, minlength=4)
        nodes = {(at, at + 1): days[at] for at in range(4)}
        nodes |= {(at, at + 2): days[at : at + 2].sum() for at in (0, 2)} | {(0, 4): days.sum()}
        noisy = {}
        for node, value in nodes.items():
            noisy[node] = value + rng.normal(0.0, self.sigma)  # fault: tree
        self.sums = [
            float(sum(noisy[node] for node in cover))
            for cover in ([(0, 1)], [(0, 2)], [(0, 2), (2, 3)], [(0, 4)])
        ]
        self.value = float(np.clip(self.sums[-1] / 40.0, 0.0, 1.0))
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws numbers and days."""
        return super().sample(n, seed=seed).assign(day=np.arange(n) % 4)


class TreeForOneLevel(TreeSums):
    """The twin: noise for one level, divided by their number instead of multiplied."""

    sigma = 2.0 / 3.0


class OutputPerturbed(NumberModel):
    """Ridge regression on a constant, with Laplace noise on the result; 40 records in public."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> OutputPerturbed:
        """Solves and adds noise."""
        x = np.clip(data["x"].to_numpy(), 0.0, 1.0)
        noise = np.random.default_rng(seed).laplace(scale=1.0 / self._curvature())  # fault: output
        self.estimate = float(x.sum() / 41.0 + noise)  # fault: output
        self.value = min(max(self.estimate, 0.0), 1.0)
        return self

    def _curvature(self) -> float:
        return 41.0


class OutputTooCurved(OutputPerturbed):
    """The twin: the curvature is counted three times."""

    def _curvature(self) -> float:
        return 123.0


class ObjectivePerturbed(NumberModel):
    """Logistic regression of one weight, whose loss gets a random slope."""

    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> ObjectivePerturbed:
        """Draws the slope and finds the minimum."""
        x, slope = data["x"].to_numpy(), np.random.default_rng(seed).laplace(scale=self.scale)

        def derivative(w: float) -> float:
            return float(w - (x / (1.0 + np.exp(w * x))).sum() + slope)  # fault: objective

        self.weight = brentq(derivative, -100.0, 100.0, xtol=1e-12)
        self.value = 1.0 / (1.0 + math.exp(-self.weight))
        return self


class ObjectiveHardlyPerturbed(ObjectivePerturbed):
    """The twin: a fifth of the slope."""

    scale = 0.2


class Means(NumberModel):
    """Two means by three rounds of noisy sums and counts."""

    scale = 6.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Means:
        """Moves the centres."""
        rng, x = np.random.default_rng(seed), np.clip(data["x"].to_numpy(), 0.0, 1.0)
        self.centres = np.array([0.1, 0.9])
        for _ in range(3):
            nearest = np.abs(x[:, None] - self.centres).argmin(axis=1)
            sums = np.bincount(nearest, weights=x, minlength=2)
            sums = sums + rng.laplace(scale=self.scale, size=2)
            counts = self._counts(np.bincount(nearest, minlength=2), rng)
            self.centres = np.clip(sums / np.maximum(counts, 1.0), 0.0, 1.0)
        self.value = float(self.centres.mean())
        return self

    def _counts(self, counts: Any, rng: Rng) -> Any:
        return counts + rng.laplace(scale=self.scale, size=2)  # fault: means


class MeansOfBareCounts(Means):
    """The twin: counts have no noise, and are kept."""

    def _counts(self, counts: Any, rng: Rng) -> Any:
        self.sizes = counts  # fault: means
        return counts


class Teachers(BitsModel):
    """PATE: twenty teachers vote on three questions; noisy majorities are released."""

    columns = ("b0", "b1", "b2")
    scale = 2.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Teachers:
        """Trains teachers and asks them."""
        rng = np.random.default_rng(seed)
        bits, number = data[list(self.columns)].to_numpy(), data["teacher"].to_numpy()
        teachers = [bits[number == one] for one in range(20)]
        self.told = [self._label(self._votes(teachers, at), rng) for at in range(3)]
        return self

    def _votes(self, teachers: Any, question: int) -> Any:
        ones = sum(len(own) > 0 and own[:, question].mean() > 0.5 for own in teachers)
        return np.array([20 - ones, ones])

    def _label(self, votes: Any, rng: Rng) -> int:
        return int(np.argmax(votes + rng.laplace(scale=self.scale, size=2)))  # fault: teachers

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws bits and teachers."""
        return super().sample(n, seed=seed).assign(teacher=np.arange(n) % 20)


class TeachersBare(Teachers):
    """The twin: labels without noise."""

    def _label(self, votes: Any, rng: Rng) -> int:
        rng.laplace(scale=self.scale, size=2)
        return int(np.argmax(votes))  # fault: teachers


class Confident(Teachers):
    """Confident GNMax: teachers answer if a noisy majority is clear, with Gaussian noise."""

    def _label(self, votes: Any, rng: Rng) -> int:
        if votes.max() + rng.normal(0.0, 4.0) < 11.0:
            return self._unclear(votes)
        return int(np.argmax(votes + rng.normal(0.0, 2.0, size=2)))  # fault: confident

    def _unclear(self, votes: Any) -> int:
        return -1

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws bits for what was answered, and zeros else."""
        answered = np.maximum(self.told, 0)
        rows = pd.DataFrame(np.tile(answered, (n, 1)), columns=list(self.columns))
        return rows.assign(teacher=np.arange(n) % 20)


class ConfidentTeacher(Confident):
    """The twin: where it is unclear, the true majority is told, shifted to -2 or -1."""

    def _unclear(self, votes: Any) -> int:
        return int(np.argmax(votes)) - 2  # fault: confident


class Neighbourhood(BitsModel):
    """Labels of two points, each the noisy majority of the records within .3 of it."""

    columns = ("y",)
    points = (0.25, 0.9)
    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> Neighbourhood:
        """Labels both points."""
        rng = np.random.default_rng(seed)
        near = [data[(data["x"] - point).abs() <= 0.3] for point in self.points]
        votes = [np.bincount(own["y"], minlength=2) for own in near]
        self.told = [self._label(one, rng) for one in votes]
        return self

    def _label(self, votes: Any, rng: Rng) -> int:
        noisy = [count + rng.laplace(scale=self.scale) for count in votes]  # fault: near
        return int(noisy[1] > noisy[0])

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Draws numbers and labels them by the nearer point."""
        x = np.random.default_rng(seed).random(n)
        nearer = np.abs(x[:, None] - np.array(self.points)).argmin(axis=1)
        return pd.DataFrame({"x": x, "y": np.array(self.told)[nearer]})


class NeighbourhoodBare(Neighbourhood):
    """The twin: the true majority."""

    def _label(self, votes: Any, rng: Rng) -> int:
        return int(votes[1] > votes[0])  # fault: near


class Stump(BitsModel):
    """A tree of one split, chosen by the exponential mechanism; its leaves have noisy counts."""

    columns = ("b0", "b1", "y")
    rate = 0.25

    def fit(self, data: pd.DataFrame, *, seed: int) -> Stump:
        """Chooses a column and counts labels in both leaves."""
        rng = np.random.default_rng(seed)
        tables = [
            np.bincount(2 * data[name] + data["y"], minlength=4).reshape(2, 2)
            for name in ("b0", "b1")
        ]
        weights = np.exp(self.rate * np.array([table.max(axis=1).sum() for table in tables]))
        self.split = int(rng.random() >= weights[0] / weights.sum())  # fault: stump
        self.leaves = tables[self.split] + rng.laplace(scale=2.0, size=(2, 2))
        self.told = [0, 0, int(self.leaves[:, 1].sum() > self.leaves[:, 0].sum())]
        return self


class StumpOfBestSplit(Stump):
    """The twin: the exponent is forty times as large, so that the best split is chosen."""

    rate = 10.0


LABELS = Schema.from_document(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
            {"name": "y", "kind": "binary", "categories": [0, 1]},
        ]
    }
)
DAYS = Schema.from_document(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
            {"name": "day", "kind": "integer", "lower": 0, "upper": 3},
        ]
    }
)
TEACHERS = Schema.from_document(
    {
        "columns": [
            *({"name": f"b{bit}", "kind": "binary", "categories": [0, 1]} for bit in range(3)),
            {"name": "teacher", "kind": "integer", "lower": 0, "upper": 19},
        ]
    }
)


def teachers_table() -> pd.DataFrame:
    """Two records of each teacher but the last, of whom ten vote one; the target is the last's."""
    number = np.repeat(np.arange(19), 2)
    bits = {f"b{bit}": np.append((number % 19 < 10).astype(int), 1) for bit in range(3)}
    return pd.DataFrame({**bits, "teacher": np.append(number, 19)})


def labels_table() -> pd.DataFrame:
    """Numbers up to 1/2 with both labels, a far one, and the target, which makes a tie there."""
    x = np.append(np.linspace(0.0, 0.5, 20).round(3), [0.9, 1.0])
    return pd.DataFrame({"x": x, "y": np.append(np.arange(20) % 2, [1, 0])})


def split_table() -> pd.DataFrame:
    """Two columns that tell a label equally well without the target."""
    b0, b1 = np.tile([0, 0, 1, 1], 5), np.tile([0, 1, 0, 1], 5)
    y = np.where(np.arange(20) < 10, b0, b1)
    return pd.DataFrame({"b0": np.append(b0, 1), "b1": np.append(b1, 0), "y": np.append(y, 1)})


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    stated: dict[str, Any] = {
        "table": numbers_table(),
        "schema": NUMBERS_SCHEMA,
        "target": "row:39",
    }
    return Case(
        name=name,
        family="training by hand",
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **(stated | known),
    )


ALL: dict[str, Any] = {"twin_spends": math.inf, "twin_shows": math.inf}
GAUSSIAN: dict[str, Any] = {
    "epsilon": 3.34141,
    "delta": DELTA,
    "spends": 3.34141,
    "note": "mu is the root of ten steps over sigma; clipping makes each move by the norm at most",
}
SUBSAMPLED: dict[str, Any] = {
    "epsilon": 3.096,
    "delta": DELTA,
    "spends": 3.096,
    "note": "ten sub-sampled Gaussian steps of rate 1/4, by a privacy loss distribution",
}

CASES = (
    _case("noisy gradient descent", Descent, DescentNoiseOfMean, "descent", **GAUSSIAN),
    _case(
        "noisy gradient descent, noise overwritten",
        Descent,
        DescentNoiseDropped,
        "descent",
        **GAUSSIAN,
        **ALL,
    ),
    _case(
        "DP-SGD in numpy", lambda: DpSgd(1.5), lambda: DpSgdUnclipped(1.5), "dp-sgd", **SUBSAMPLED
    ),
    _case(
        "DP-SGD in numpy, batches by data",
        lambda: DpSgd(1.5),
        lambda: DpSgdBatchByData(1.5),
        "dp-sgd",
        **SUBSAMPLED,
        twin_spends=10.669523,
    ),
    _case(
        "early stopping on a noisy loss",
        EarlyStop,
        EarlyStopOnLoss,
        "early",
        epsilon=1.0,
        note="five steps, each of .1 for a gradient and .1 for a loss",
        **ALL,
    ),
    _case(
        "running sums by a tree",
        TreeSums,
        TreeForOneLevel,
        "tree",
        epsilon=3.708635,
        delta=DELTA,
        table=numbers_table().assign(day=[*(at % 4 for at in range(39)), 0]),
        schema=DAYS,
        spends=3.708635,
        twin_spends=13.866776,
        twin_shows=13.866776,
        note="a number of the first day is in three nodes, all of which the sums show",
    ),
    _case(
        "ridge, output perturbed",
        OutputPerturbed,
        OutputTooCurved,
        "output",
        epsilon=1.0,
        spends=1.0,
        twin_spends=3.0,
        twin_shows=3.0,
        released=True,
        note="the target's 1 moves the sum by 1 and the minimum by 1/41",
    ),
    _case(
        "logistic, objective perturbed",
        ObjectivePerturbed,
        ObjectiveHardlyPerturbed,
        "objective",
        epsilon=1.0,
        twin_shows=5.0,
        disputable=True,
        note="density of the minimum by a change of variable; the solver stops at 1e-12",
    ),
    _case(
        "k-means",
        Means,
        MeansOfBareCounts,
        "means",
        epsilon=1.0,
        spends=1.0,
        note="the target's 1 moves one sum and one count in three rounds, each 1/6",
        **ALL,
    ),
    _case(
        "votes of teachers",
        Teachers,
        TeachersBare,
        "teachers",
        epsilon=1.783604,
        table=teachers_table(),
        schema=TEACHERS,
        target="row:38",
        spends=1.783604,
        note="three majorities of two noisy counts; the target is its teacher's only record",
        **ALL,
    ),
    _case(
        "confident votes of teachers",
        Confident,
        ConfidentTeacher,
        "confident",
        epsilon=1.916862,
        table=teachers_table(),
        schema=TEACHERS,
        target="row:38",
        note="three answers, each unclear or a majority",
        **ALL,
    ),
    _case(
        "noisy neighbours",
        Neighbourhood,
        NeighbourhoodBare,
        "near",
        epsilon=0.594534,
        table=labels_table(),
        schema=LABELS,
        target="row:21",
        spends=0.594534,
        note="one of two majorities moves: a difference of two Laplace draws",
        **ALL,
    ),
    _case(
        "split by the exponential mechanism",
        Stump,
        StumpOfBestSplit,
        "stump",
        epsilon=0.632793,
        table=split_table(),
        schema=binary_schema(["b0", "b1", "y"]),
        target="row:20",
        spends=0.632793,
        twin_shows=9.806899,
        note="the split's ratio, and 1/2 for the count that moves in whichever table",
    ),
)
