"""opacus 1.6.0 for the reference worker: an autoregressive network, trained by its DP-SGD.

The library has no synthesizer: the network gives the cell of each column from those before it, one
record at a time, so that its loss is a sum over records. `defaults="library"` calls
`make_private_with_epsilon` as the README does, which takes the sampling rate and the expected size
of a batch from the number of records; `defaults="public"` hands over a rate and sums gradients.
"""

import warnings

import numpy as np
import opacus
import pandas as pd
import torch
from cells import Cells
from opacus.data_loader import DPDataLoader
from torch.utils.data import DataLoader, TensorDataset


class Network(torch.nn.Module):
    """Logits of each column's cells, from the cells of the columns before it."""

    def __init__(self, sizes, width):
        super().__init__()
        self.sizes, known = sizes, 1
        self.parts = torch.nn.ModuleList()
        for size in sizes:
            layers = torch.nn.Linear(known, width), torch.nn.ReLU(), torch.nn.Linear(width, size)
            self.parts.append(torch.nn.Sequential(*layers))
            known += size

    def forward(self, records):
        """The logits; the last column is not read."""
        known, found = torch.ones(len(records), 1), []
        for place, (size, part) in enumerate(zip(self.sizes, self.parts, strict=True)):
            found.append(part(known))
            cells = torch.nn.functional.one_hot(records[:, place], size).float()
            known = torch.cat([known, cells], dim=1)
        return found


class Autoregressive:
    """A network trained for some epochs with Poisson batches, gradients clipped to norm 1."""

    def __init__(
        self, *, schema, epsilon=1.0, delta=1e-5, epochs=5, batch=16, rate=0.2, defaults="library"
    ):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.is_public, self.cells = defaults == "public", Cells(schema["columns"])
        self.epochs, self.batch, self.rate = epochs, batch, rate
        self.claim = {"epsilon": epsilon, "delta": delta}

    def fit(self, data, *, seed):
        """Trains it."""
        torch.seed() if seed is None else torch.manual_seed(seed)
        records = TensorDataset(torch.tensor(self.cells.encoded(data).to_numpy()))
        self.network = Network(list(self.cells.sizes.values()), width=16)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # noise is not cryptographic, which the library says
            network, optimizer, loader = self.made_private(records)
            for _ in range(self.epochs):
                for (batch,) in loader:
                    optimizer.zero_grad()
                    self.loss(network, batch).backward()
                    optimizer.step()
        return self

    def made_private(self, records):
        """Network, optimizer and batches as the library makes them private."""
        if self.is_public:
            loader = DPDataLoader(records, sample_rate=self.rate)
        else:
            loader = DataLoader(records, batch_size=self.batch)
        return opacus.PrivacyEngine().make_private_with_epsilon(
            module=self.network,
            optimizer=torch.optim.SGD(self.network.parameters(), lr=0.05),
            data_loader=loader,
            epochs=self.epochs,
            target_epsilon=self.claim["epsilon"],
            target_delta=self.claim["delta"],
            max_grad_norm=1.0,
            loss_reduction="sum" if self.is_public else "mean",
        )

    def loss(self, network, batch):
        """The negative log likelihood: the sum over records, or the mean as by default."""
        reduction = "sum" if self.is_public else "mean"
        parts = enumerate(network(batch))
        entropy = torch.nn.functional.cross_entropy
        return sum(entropy(one, batch[:, place], reduction=reduction) for place, one in parts)

    def sample(self, n, *, seed):
        """Column by column."""
        torch.seed() if seed is None else torch.manual_seed(seed)
        records = torch.zeros((n, len(self.cells.sizes)), dtype=torch.long)
        with torch.no_grad():
            for place in range(records.shape[1]):
                shares = torch.softmax(self.network(records)[place], dim=1)
                records[:, place] = torch.multinomial(shares, 1)[:, 0]
        drawn = pd.DataFrame(records.numpy(), columns=list(self.cells.sizes))
        return self.cells.decoded(drawn, np.random.default_rng(seed))
