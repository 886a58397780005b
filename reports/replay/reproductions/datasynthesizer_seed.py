"""DataSynthesizer 0.1.13, `seed=0` by default: the noise is a public constant.

Documented: epsilon-differential privacy, and `seed` for reproducibility. At the default an attacker
draws the same noise and subtracts it: the counts come out exactly.
"""

import os
import tempfile

import numpy as np
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

path = os.path.join(tempfile.mkdtemp(), "t.csv")
table = pd.DataFrame({"sex": ["f"] * 137 + ["m"] * 163, "a": np.arange(300) % 3})
table.to_csv(path, index=False)
types, told = {"sex": "String", "a": "Integer"}, []
for _ in range(2):
    made = DataDescriber()
    made.describe_dataset_in_independent_attribute_mode(path, 1.0, attribute_to_datatype=types)
    told.append(made.data_description["attribute_description"]["sex"]["distribution_probabilities"])
print("two fits:", *np.round(told, 6).tolist())
# what follows knows the code, epsilon and the number of records, not the table
noise = np.random.RandomState(0).laplace(0, (2 / 300) / (1.0 / 2), size=2)
# released: (p + noise_1, 1 - p + noise_2), divided by their sum
total = 1.0 + noise.sum()
print("records with 'f':", round(300 * (told[0][0] * total - noise[0]), 6), "of 137")
