"""Opacus 1.6.0: a model trained with DP-SGD, whose weight is released."""

import functools
import warnings

import opacus
import pandas as pd
import torch
from opacus.accountants.utils import get_noise_multiplier
from opacus.data_loader import DPDataLoader
from torch.utils.data import DataLoader, TensorDataset


@functools.cache
def noise_multiplier(epsilon, rate):
    """The noise multiplier of `make_private_with_epsilon` for one epoch, computed once."""
    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=1e-5, sample_rate=rate, epochs=1, accountant="rdp"
    )


class Weight:
    """One weight, trained for one epoch with weight decay from a public start; every row has it.

    The library derives rate and number of steps from the number of records in the loader, unless a
    public `rate` is given.
    """

    def __init__(self, *, schema, epsilon=1.0, batch=8, rate=None):
        (self.name,) = [column["name"] for column in schema["columns"]]
        self.epsilon, self.batch, self.rate = epsilon, batch, rate
        self.claim = {"epsilon": epsilon, "delta": 1e-5}

    def fit(self, data, *, seed):
        torch.manual_seed(seed)
        records = TensorDataset(torch.tensor(data.to_numpy(), dtype=torch.float32))
        if self.rate is None:
            loader = DataLoader(records, batch_size=self.batch)
        else:
            loader = DPDataLoader(records, sample_rate=self.rate)
        model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(model.weight, 10.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, optimizer, loader = opacus.PrivacyEngine().make_private(
                module=model,
                optimizer=optimizer,
                data_loader=loader,
                noise_multiplier=noise_multiplier(self.epsilon, 1 / len(loader)),
                max_grad_norm=1.0,
            )
            for (batch,) in loader:
                optimizer.zero_grad()
                (model(batch) ** 2).sum().backward()
                optimizer.step()
        self.weight = next(model.parameters()).item()
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({self.name: [self.weight] * n})
