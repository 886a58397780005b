"""PrivBayes has next to no noise: Python 3.9, pip install DataSynthesizer==0.1.4 pandas<1.5."""

import numpy as np
import pandas as pd
from DataSynthesizer.lib.PrivBayes import get_noisy_distribution_of_attributes

EPSILON = 1.0
for records in (60, 600, 6000):
    table = pd.DataFrame({"x": np.arange(records) % 2, "y": np.arange(records) // 2 % 2})
    exact = records / 4
    noise = [
        get_noisy_distribution_of_attributes(["x", "y"], table, EPSILON)["count"] - exact
        for _ in range(200)
    ]
    scale = np.abs(np.concatenate(noise)).mean()  # of Laplace noise
    print(f"{records} records: scale {scale:.5f}; two counts move by 1: epsilon {2 / scale:.0f}")
print("epsilon given:", EPSILON)
