"""What the number of records decides: pip install opacus==1.6.0 scipy."""

import warnings

import numpy as np
import opacus
import torch
from scipy.stats import chi2
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
scales = {}
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
    scales[records] = noise / size
    print(f"{records} records: {len(loader)} steps, rate {loader.sample_rate:.4f},", end=" ")
    print(f"noise {noise:.4f} / {size} = {scales[records]:.5f} in every gradient")

square = (scales[79] / scales[80]) ** 2  # their likelihood ratio: linear in a chi-square number
epsilons = np.arange(0.0, 200.0, 0.1)
for numbers in (4, 822, 25 * 822):
    least = (epsilons + numbers * np.log(square) / 2) / ((square - 1) / 2)
    delta = chi2.sf(least, numbers) - np.exp(epsilons + chi2.logsf(least * square, numbers))
    print(f"79 against 80, {numbers} noisy numbers: epsilon {epsilons[delta > 1e-5].max():.1f}")
