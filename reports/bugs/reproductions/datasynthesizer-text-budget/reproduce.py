"""Columns of texts are not counted: Python 3.9, pip install DataSynthesizer==0.1.13 pandas<2."""

import contextlib
import tempfile

import numpy as np
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber

laplace, scales = np.random.laplace, []


def heard(loc: float, scale: float, size: int) -> np.ndarray:
    """The noise of numpy, whose scale is remembered."""
    scales.append(scale)
    return laplace(loc, scale, size)


np.random.laplace = heard
records, columns = 40, ["u", "v", "w", "x", "y", "z"]
with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    table = pd.DataFrame({name: ["text"] * records for name in columns}).assign(sex="f")
    table.to_csv(file.name, index=False)
    with contextlib.redirect_stdout(None):
        DataDescriber().describe_dataset_in_independent_attribute_mode(
            file.name,
            epsilon=1.0,
            attribute_to_datatype=dict.fromkeys(table, "String"),
            attribute_to_is_categorical={name: name == "sex" for name in table},
            attribute_to_is_candidate_key=dict.fromkeys(table, False),
        )
costs = [2 / records / scale for scale in scales]  # a record that is replaced moves two shares
print("epsilon of each column:", *np.round(costs, 3), "in all:", round(sum(costs), 3))
