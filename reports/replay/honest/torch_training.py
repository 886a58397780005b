"""Noise from torch: training by hand, an autoencoder, selections and coins; torch must be there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from dpaudit.model.claim import Neighbours
from reports.replay.honest.bases import (
    BITS,
    VOTES_SCHEMA,
    BitsModel,
    CountsModel,
    NumberModel,
    PlaceModel,
    binary_schema,
    bits_table,
    even_table,
    votes_table,
)
from reports.replay.honest.case import (
    CELLS,
    CELLS_SCHEMA,
    NUMBERS_SCHEMA,
    Case,
    cells_table,
    numbers_table,
)
from reports.replay.honest.exponential import SELECTED, STEEP

DELTA = 1e-5


def generator_of(seed: int) -> torch.Generator:
    """A generator of torch with a seed of its own."""
    return torch.Generator().manual_seed(seed)


class TorchDescent(NumberModel):
    """Full-batch gradient descent on a mean, with noise on the clipped sum."""

    sigma, clip, steps = 4.0, 0.1, 10

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchDescent:
        """Takes ten steps."""
        x, own = torch.tensor(data["x"].to_numpy()), generator_of(seed)
        w = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=1.0)
        for _ in range(self.steps):
            gradients = self._clipped(w.detach() - x)
            w.grad = gradients.sum().reshape(1) / 40
            w.grad.add_(self._noise(own) / 40)
            optimizer.step()
        self.value = float(w.detach().clamp(0.0, 1.0))
        return self

    def _clipped(self, gradients: Any) -> Any:
        return gradients / (gradients.abs() / self.clip).clamp(min=1.0)

    def _noise(self, own: torch.Generator) -> Any:
        return torch.normal(  # fault: torch-descent
            0.0, self.sigma * self.clip, (1,), generator=own, dtype=torch.float64
        )


class TorchOverwritten(TorchDescent):
    """The twin: the step computes gradients again, without noise (opacus#330)."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchOverwritten:
        """Takes ten steps."""
        x, own = torch.tensor(data["x"].to_numpy()), generator_of(seed)
        w = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=1.0)

        def closure() -> float:
            w.grad = self._clipped(w.detach() - x).sum().reshape(1) / 40
            return 0.0

        for _ in range(self.steps):
            closure()
            w.grad = w.grad + self._noise(own) / 40
            optimizer.step(closure)  # fault: torch-descent
        self.value = float(w.detach().clamp(0.0, 1.0))
        return self


class TorchDpSgd(TorchDescent):
    """A linear model by DP-SGD: gradients of single records by vmap, Poisson batches."""

    sigma, clip, steps, rate = 1.5, 0.5, 8, 0.5

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchDpSgd:
        """Takes eight steps."""
        x, own = torch.tensor(data["x"].to_numpy()), generator_of(seed)
        w = torch.zeros(2, dtype=torch.float64)
        gradient_of = torch.func.vmap(torch.func.grad(squared_error), in_dims=(None, 0))
        for _ in range(self.steps):
            batch = x[torch.rand(len(x), generator=own) < self.rate]
            total = self._clipped(gradient_of(w, batch)).sum(0)
            noise = torch.randn(2, generator=own, dtype=torch.float64)  # fault: torch-dp-sgd
            w = w - 0.5 * (total + self.sigma * self.clip * noise) / 20
        self.value = float(w[0].clamp(0.0, 1.0))
        self.weights = w.numpy().copy()
        return self

    def _clipped(self, gradients: Any) -> Any:
        norms = gradients.norm(dim=1, keepdim=True)
        return gradients * (self.clip / norms.clamp(min=1e-12)).clamp(max=1.0)


class TorchUnclipped(TorchDpSgd):
    """The twin: gradients are scaled up and not clipped."""

    def _clipped(self, gradients: Any) -> Any:
        return 2.0 * gradients  # fault: torch-dp-sgd


def squared_error(w: Any, x: Any) -> Any:
    """The loss of one record, of its number and the number's square."""
    return ((w[0] - x) ** 2 + (w[1] - x**2) ** 2) / 2


class Autoencoder:
    """A variational autoencoder by DP-SGD: one reparameterisation draw for each record."""

    sigma, clip, steps, rate = 1.0, 0.5, 4, 0.5

    def fit(self, data: pd.DataFrame, *, seed: int) -> Autoencoder:
        """Takes four steps on Poisson batches."""
        own, x = generator_of(seed), torch.tensor(data.to_numpy(dtype=float), dtype=torch.float32)
        weights = {
            "encode": 0.3 * torch.randn(2, x.shape[1], generator=own),
            "decode": 0.3 * torch.randn(x.shape[1], 1, generator=own),
        }
        gradient_of = torch.func.vmap(torch.func.grad(evidence), in_dims=(None, 0, 0))
        for _ in range(self.steps):
            batch = x[torch.rand(len(x), generator=own) < self.rate]
            draws = torch.randn(len(batch), 1, generator=own)
            gradients = gradient_of(weights, batch, draws)
            norms = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
            factors = (self.clip / norms.clamp(min=1e-12)).clamp(max=1.0)
            for name, gradient in gradients.items():
                total = torch.einsum("n,n...->...", factors, gradient)
                noise = torch.randn(total.shape, generator=own)  # fault: autoencoder
                weights[name] = weights[name] - (total + self.sigma * self.clip * noise) / 10
        self.decoder = weights["decode"]
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        """Decodes random numbers."""
        own = generator_of(seed)
        p = torch.sigmoid(torch.randn(n, 1, generator=own) @ self.decoder.T)
        bits = (torch.rand(p.shape, generator=own) < p).int().numpy()
        return pd.DataFrame(bits, columns=[f"b{place}" for place in range(bits.shape[1])])


class AutoencoderOfLittleNoise(Autoencoder):
    """The twin: a hundredth of the noise."""

    sigma = 0.01


def evidence(weights: Any, x: Any, draw: Any) -> Any:
    """Minus the lower bound on the evidence of one record."""
    mean, log_variance = weights["encode"] @ x
    code = mean + torch.exp(log_variance / 2) * draw
    told = nn.functional.binary_cross_entropy_with_logits(weights["decode"] @ code, x)
    return told + 0.1 * (mean**2 + torch.exp(log_variance) - log_variance - 1.0) / 2


class TorchTopTwo(BitsModel):
    """The two largest noisy votes by `torch.topk`."""

    columns = tuple(f"b{place}" for place in range(BITS))

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchTopTwo:
        """Adds Gaussian noise and takes the top two."""
        votes = torch.tensor(data[list(self.columns)].sum().to_numpy(dtype=np.float64))
        noise = torch.randn(
            BITS, generator=generator_of(seed), dtype=torch.float64
        )  # fault: torch-top
        self._take(votes + 2.0 * noise)  # fault: torch-top
        self.told = [int(place in self.order) for place in range(BITS)]
        return self

    def _take(self, noisy: Any) -> None:
        self.order = torch.topk(noisy, 2).indices.tolist()


class TorchTopTwoKept(TorchTopTwo):
    """The twin: noisy votes are kept."""

    def _take(self, noisy: Any) -> None:
        super()._take(noisy)
        self.noisy_votes = noisy.clone()  # fault: torch-top


class Multinomial(PlaceModel):
    """The exponential mechanism by `torch.multinomial`."""

    rate = 0.5

    def fit(self, data: pd.DataFrame, *, seed: int) -> Multinomial:
        """Selects a cell."""
        counts = np.bincount(data["a"], minlength=CELLS)
        p = torch.softmax(self.rate * torch.tensor(counts, dtype=torch.float64), dim=0)
        drawn = torch.multinomial(p, 1, generator=generator_of(seed))  # fault: multinomial
        self.place = int(drawn)
        return self


class MultinomialSteep(Multinomial):
    """The twin: the exponent is four times as large."""

    rate = 2.0


class TorchLaplace(CountsModel):
    """Laplace noise of `torch.distributions`, with torch's global seed."""

    scale = 1.0

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchLaplace:
        """Adds noise to counts."""
        torch.manual_seed(seed)  # noqa: TID251 - as users write it
        counts = torch.bincount(torch.tensor(data["a"].to_numpy()), minlength=CELLS)
        law = torch.distributions.Laplace(0.0, self.scale)
        self.noisy = (counts + law.sample((CELLS,))).numpy()  # fault: torch-laplace
        return self


class TorchLittleNoise(TorchLaplace):
    """The twin: a scale of .4."""

    scale = 0.4


class TorchResponse(BitsModel):
    """Randomised response of each record by `torch.rand`."""

    columns = ("b0",)
    p = math.e / (1.0 + math.e)

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchResponse:
        """Asks every record."""
        bits = torch.tensor(data["b0"].to_numpy())
        kept = torch.rand(len(bits), generator=generator_of(seed)) < self.p  # fault: torch-response
        self.answers = torch.where(kept, bits, 1 - bits).numpy()  # fault: torch-response
        self.told = [int(self.answers.mean() > 0.5)]
        return self


class TorchResponseMostlyTrue(TorchResponse):
    """The twin: .99."""

    p = 0.99


class TorchGumbel(Multinomial):
    """The exponential mechanism by Gumbel noise of exponential draws of torch."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> TorchGumbel:
        """Selects a cell."""
        counts = torch.tensor(np.bincount(data["a"], minlength=CELLS), dtype=torch.float64)
        own, clocks = generator_of(seed), torch.empty(CELLS, dtype=torch.float64)
        clocks.exponential_(generator=own)  # fault: torch-gumbel
        self.place = int(torch.argmax(self.rate * counts - clocks.log()))  # fault: torch-gumbel
        return self


class TorchGumbelSteep(TorchGumbel):
    """The twin: the exponent is four times as large."""

    rate = 2.0


def _case(name: str, generator: Any, twin: Any, marker: str, **known: Any) -> Case:
    return Case(
        name=name,
        family="torch",
        generator=generator,
        twin=twin,
        twin_marker=f"# fault: {marker}",
        **known,
    )


NUMBERS: dict[str, Any] = {
    "table": numbers_table(),
    "schema": NUMBERS_SCHEMA,
    "target": "row:39",
    "delta": DELTA,
}
EVEN: dict[str, Any] = {
    "table": even_table(),
    "schema": CELLS_SCHEMA,
    "target": "row:12",
    "epsilon": SELECTED,
    "spends": SELECTED,
    "twin_spends": STEEP,
    "twin_shows": STEEP,
    "note": "log of e^r / (3 + e^r) over 1/4, with r = 1/2; the twin has r = 2",
}

CASES = (
    _case(
        "gradient descent in torch",
        TorchDescent,
        TorchOverwritten,
        "torch-descent",
        **NUMBERS,
        epsilon=3.34141,
        spends=3.34141,
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="mu is the root of ten steps over sigma",
    ),
    _case(
        "DP-SGD in torch",
        TorchDpSgd,
        TorchUnclipped,
        "torch-dp-sgd",
        **NUMBERS,
        epsilon=5.221,
        spends=None,
        note="eight sub-sampled Gaussian steps of rate 1/2, by a privacy loss distribution",
    ),
    _case(
        "variational autoencoder",
        Autoencoder,
        AutoencoderOfLittleNoise,
        "autoencoder",
        epsilon=6.679,
        delta=DELTA,
        table=bits_table(4),
        schema=binary_schema([f"b{place}" for place in range(4)]),
        target="row:12",
        note="four sub-sampled Gaussian steps of rate 1/2; other draws have nothing of the data",
    ),
    _case(
        "top two by torch",
        TorchTopTwo,
        TorchTopTwoKept,
        "torch-top",
        epsilon=0.580025,
        table=votes_table(),
        schema=VOTES_SCHEMA,
        target="row:12",
        twin_spends=math.inf,
        twin_shows=math.inf,
        note="probabilities of ordered pairs by one-dimensional integrals",
    ),
    _case("exponential mechanism by torch", Multinomial, MultinomialSteep, "multinomial", **EVEN),
    _case("Gumbel noise of torch", TorchGumbel, TorchGumbelSteep, "torch-gumbel", **EVEN),
    _case(
        "Laplace noise of torch",
        TorchLaplace,
        TorchLittleNoise,
        "torch-laplace",
        epsilon=1.0,
        table=cells_table(),
        schema=CELLS_SCHEMA,
        target="row:39",
        spends=1.0,
        twin_spends=2.5,
        twin_shows=2.5,
        released=True,
        note="one count moves by 1 under a scale of 1",
    ),
    _case(
        "bit by torch",
        TorchResponse,
        TorchResponseMostlyTrue,
        "torch-response",
        epsilon=1.0,
        neighbours=Neighbours.REPLACE_ONE,
        table=bits_table(1),
        schema=binary_schema(["b0"]),
        target="row:12",
        spends=1.0,
        twin_spends=4.59512,
        twin_shows=4.59512,
        note="the largest ratio of the chances of what the target tells",
    ),
)
