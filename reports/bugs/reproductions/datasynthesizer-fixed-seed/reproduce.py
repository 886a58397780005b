"""Known noise is subtracted: pip install DataSynthesizer==0.1.13."""

import contextlib
import tempfile

import numpy as np
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

table = pd.DataFrame({"sex": ["f"] * 137 + ["m"] * 163, "a": np.arange(300) % 3})
types, told = {"sex": "String", "a": "Integer"}, []
with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    table.to_csv(file.name, index=False)
    for _ in range(2):
        made = DataDescriber()
        with contextlib.redirect_stdout(None):
            made.describe_dataset_in_independent_attribute_mode(
                file.name, 1.0, attribute_to_datatype=types
            )
        sex = made.data_description["attribute_description"]["sex"]
        told.append(sex["distribution_probabilities"])
print("two fits:", *np.round(told, 6).tolist())
# what follows knows the code, epsilon and the number of records, not the table
noise = np.random.RandomState(0).laplace(0, (2 / 300) / (1.0 / 2), size=2)
total = 1.0 + noise.sum()  # released: (p + noise_1, 1 - p + noise_2), divided by their sum
print("records with 'f':", round(300 * (told[0][0] * total - noise[0]), 6), "of 137")
