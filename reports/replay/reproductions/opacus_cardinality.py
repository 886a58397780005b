"""opacus 1.6.0: the expected size of a batch is made of the private number of records.

Documented: (epsilon, delta)-DP, with `loss_reduction="mean"` as the default; opacus has open issues
on it (571, 819). A record more or less changes the number that the noisy sums are divided by, and
for 81 records the sampling rate and the noise multiplier, too.
"""

import warnings

import opacus
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
for records in (79, 80, 81):
    module = torch.nn.Linear(3, 1)
    _, optimizer, loader = opacus.PrivacyEngine().make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.05),
        data_loader=DataLoader(TensorDataset(torch.zeros(records, 3)), batch_size=16),
        epochs=5,
        target_epsilon=1.0,
        target_delta=1e-5,
        max_grad_norm=1.0,
    )
    size, noise = optimizer.expected_batch_size, optimizer.noise_multiplier
    print(f"{records} records: rate {loader.sample_rate:.4f}, noise {noise:.4f} / {size}")
    print(f"  = {noise / size:.5f} in every gradient")
