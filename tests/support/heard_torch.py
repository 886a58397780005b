"""Code that draws with torch, whose draws a world hears; `n` is data."""
# ruff: noqa: NPY002, TID251 - code as authors write it

from __future__ import annotations

import numpy as np
import torch


def _model(n):
    model = torch.nn.Linear(2, 1, bias=False)
    model(torch.full((3, 2), float(n))).sum().backward()
    return model


def added_to_gradients(n):
    torch.manual_seed(3)
    model = _model(n)
    for parameter in model.parameters():
        parameter.grad += torch.randn_like(parameter) * 0.5
    return model.weight.grad.tolist()


def like_opacus(n):
    generator = torch.Generator()
    generator.manual_seed(int(n))
    model = _model(n)
    grad = model.weight.grad
    noise = torch.normal(mean=0, std=1.5, size=grad.shape, generator=generator)
    model.weight.grad = (grad + noise).view_as(grad)
    return model.weight.grad.tolist()


def assigned_first(n):
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.randn(1, 2) * 3.0
    model.weight.grad += torch.ones(1, 2) * n
    assert type(model.weight.grad) is torch.Tensor
    return model.weight.grad.tolist()


def after_an_autoencoder(n):
    values = torch.full((4, 3), float(n))
    encoder, decoder = torch.nn.Linear(3, 4), torch.nn.Linear(2, 3)
    hidden = encoder(values)
    middle, log_variance = hidden[:, :2], hidden[:, 2:]
    drawn = middle + torch.randn_like(middle) * torch.exp(0.5 * log_variance)
    ((decoder(drawn) - values) ** 2).sum().backward()
    decoder.bias.grad += torch.randn(3) * 0.5
    with torch.no_grad():
        return decoder(torch.randn(3, 2)).tolist()


def moved(n):
    noise = torch.cat([torch.randn(1, 3), torch.randn(1, 3)]).t().reshape(-1)[:2]
    filled = torch.empty(2).exponential_(2.0)
    return (noise + n).tolist(), (n - filled).tolist(), float(filled.mul_(3.0).sum() + n)


def from_numpy(n):
    return (torch.ones(2) * n + torch.from_numpy(np.random.laplace(size=2)).float()).tolist()


def distributions(n):
    law = torch.distributions.Laplace(torch.zeros(1), torch.full((1,), 2.0))
    return (law.sample() + n).tolist(), (torch.distributions.Normal(0.0, 3.0).sample() + n).item()


def clipped(n):
    return (torch.randn(3).clamp(-1.0, 1.0) + n).tolist()


def coins(n):
    return [
        torch.rand(3).tolist(),
        torch.bernoulli(torch.full((4,), 0.5)).tolist(),
        torch.multinomial(torch.tensor([0.2, 0.8]), 3, replacement=True).tolist(),
        torch.randperm(4).tolist(),
        torch.nn.functional.dropout(torch.ones(5)).tolist(),
    ]
