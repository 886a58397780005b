"""A category appears only if a record has it: Python 3.9, pip install dpart==0.1.2."""

import warnings

import numpy as np
import pandas as pd
from dpart.engines import Independent

TRIALS = 30
warnings.simplefilter("ignore")
columns = [f"c{number}" for number in range(10)]
others = pd.DataFrame({name: ["a", "b"] * 300 for name in columns})
own = pd.DataFrame({name: ["z"] for name in columns})
for name, table in (("without it", others), ("with z", pd.concat([others, own]))):
    np.random.seed(0)
    seen = 0
    for _ in range(TRIALS):
        bounds = {column: {"categories": ["a", "b", "z"]} for column in columns}
        model = Independent(bounds=bounds, epsilon=1.0)
        model.fit(table.reset_index(drop=True))
        seen += bool((model.sample(100) == "z").to_numpy().any())
    print(f"{name}: 'z' appears in {seen} of {TRIALS} synthetic tables")
