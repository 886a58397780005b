"""Noisy gradient descent written by hand, as users write it: the model is used row by row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpaudit.model.claim import Neighbours, PrivacyClaim


class Descent:
    """Four steps of clipped gradients with noise of 2: mu 1 if no gradient is shorter than 1.

    `x` is a linear function of `a` in the synthetic rows, with noise of each row.
    """

    steps: ClassVar[int] = 4

    def __init__(self, scale: float = 2.0) -> None:
        self.scale = scale
        self.weights: Any = np.zeros(2)

    @property
    def claim(self) -> PrivacyClaim:
        return PrivacyClaim(epsilon=4.378, delta=1e-5, neighbours=Neighbours.ADD_REMOVE)

    def fit(self, data: pd.DataFrame, *, seed: int) -> Descent:
        self.rng = np.random.default_rng(seed)
        inputs = np.column_stack([np.ones(len(data)), data["a"]])
        self.weights = self.train(inputs, data["x"].to_numpy(float))
        return self

    def train(self, inputs: Any, outputs: Any) -> Any:
        weights = np.zeros(2)
        for _ in range(self.steps):
            noisy = self.summed(weights, inputs, outputs) + self.rng.normal(0.0, self.scale, 2)
            weights = weights - 0.02 * noisy
        return weights

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        """The sum of the rows' gradients, each clipped to length 1."""
        raise NotImplementedError

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        a = rng.random(n)
        x = self.weights[0] + self.weights[1] * a + rng.normal(0.0, 0.1, n)
        return pd.DataFrame({"a": a, "x": np.clip(x, 0.0, 1.0)})


def clipped(gradients: Any) -> Any:
    return gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True))


class ToMeans(Descent):
    """Each row's distance to the model: rows of data are subtracted from one noisy vector."""

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        rows = np.column_stack([inputs[:, 1], outputs])
        return clipped(weights - rows).sum(axis=0)


class AroundCentres(ToMeans):
    """Each synthetic row lies around one of two noisy numbers, which a coin picks."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        return np.clip(super().train(inputs, outputs), -9.0, 9.0)

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        a = self.weights[rng.integers(2, size=n)] + rng.normal(0.0, 0.1, n)
        return pd.DataFrame({"a": np.clip(a, 0.0, 1.0), "x": np.zeros(n)})


class ByMatrix(Descent):
    """The residuals of all rows by one matrix product."""

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        return clipped(inputs * (inputs @ weights - outputs)[:, None]).sum(axis=0)


class ByRows(Descent):
    """One row at a time, and one number at a time."""

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        total = np.zeros(2)
        for row, output in zip(inputs, outputs, strict=True):
            error = row[0] * weights[0] + row[1] * weights[1] - output
            total += clipped(np.array([[error * row[0], error * row[1]]]))[0]
        return total


class ToQuantile(Descent):
    """How many values are below a noisy limit: many of them are compared with one number."""

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        return np.array([float((outputs < weights[0] + 0.5).sum()) - 20.0, 0.0])


class InTorch(Descent):
    """Tensors, with the gradient by formula."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        import torch

        rows, aims = torch.from_numpy(inputs).float(), torch.from_numpy(outputs).float()
        weights = torch.zeros(2)
        for _ in range(self.steps):
            gradients = (rows @ weights - aims).unsqueeze(1) * rows
            gradients = gradients / gradients.norm(dim=1, keepdim=True).clamp(min=1.0)
            noisy = gradients.sum(0) + torch.normal(0.0, self.scale, size=(2,))
            weights = weights - 0.02 * noisy
        return weights.numpy()


class ToMeansInTorch(Descent):
    """Rows of data are subtracted from one noisy tensor."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        import torch

        rows = torch.from_numpy(np.column_stack([inputs[:, 1], outputs])).float()
        weights = torch.zeros(2)
        for _ in range(self.steps):
            gradients = weights - rows
            gradients = gradients / gradients.norm(dim=1, keepdim=True).clamp(min=1.0)
            weights = weights - 0.02 * (gradients.sum(0) + self.scale * torch.randn(2))
        return weights.numpy()


class ByAutograd(Descent):
    """A leaf that is changed in place, with the gradient of each row by autograd."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        import torch

        rows, aims = torch.from_numpy(inputs).float(), torch.from_numpy(outputs).float()
        weights = torch.zeros(2, requires_grad=True)
        for _ in range(self.steps):
            total = torch.zeros(2)
            for row, aim in zip(rows, aims, strict=True):
                (own,) = torch.autograd.grad((row @ weights - aim) ** 2, weights)
                total += own * min(1.0, 1.0 / (own.norm().item() + 1e-9))
            with torch.no_grad():
                weights -= 0.02 * (total + torch.randn(2) * self.scale)
        return weights.detach().numpy()


class OnBatches(ByMatrix):
    """Batches of a fixed size, drawn by coins that are taken to be public."""

    def summed(self, weights: Any, inputs: Any, outputs: Any) -> Any:
        rows = self.rng.choice(len(inputs), size=20, replace=False)
        return super().summed(weights, inputs[rows], outputs[rows])


class FromARow(OnBatches):
    """The first of the synthetic rows is a random row of the data."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> FromARow:
        super().fit(data, seed=seed)
        self.first = data.iloc[[self.rng.choice(len(data))]]
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        rest = super().sample(n - 1, seed=seed)
        return pd.concat([self.first, rest], ignore_index=True)


class ByInversion(ToMeans):
    """The noise is scipy's inverse distribution function of uniform draws."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        from scipy import stats

        total = self.summed(np.zeros(2), inputs, outputs)
        return -0.02 * (total + stats.norm.ppf(self.rng.random(2), scale=self.scale))


class AroundTheNetwork(Descent):
    """Rows by a residual network: its input noise goes through it and around it."""

    def train(self, inputs: Any, outputs: Any) -> Any:
        import torch

        total = clipped(np.column_stack([inputs[:, 1], outputs])).sum(axis=0)
        return torch.from_numpy(total) + torch.normal(0.0, self.scale / 2.0, size=(2,))

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        import torch

        noise = torch.randn(n, 2)
        hidden = torch.tanh(noise @ (0.1 * torch.eye(2))) + noise
        rows = torch.sigmoid(0.1 * hidden + self.weights / 40.0)
        return pd.DataFrame(rows.numpy(), columns=["a", "x"])
