"""Samples never leave the range of the private values: Python 3.9, pip install dpart==0.1.2."""

import warnings

import numpy as np
import pandas as pd
from dpart.engines import Independent

TRIALS = 30
warnings.simplefilter("ignore")
others = [number / 2 for number in range(40)]
for own, values in (("without it", others), ("with 99", [*others, 99.0])):
    np.random.seed(0)
    above = 0
    for _ in range(TRIALS):
        model = Independent(bounds={"x": {"min": 0, "max": 100}}, epsilon=1.0)
        model.fit(pd.DataFrame({"x": values}))
        above += bool((model.sample(41)["x"] > 20).any())
    print(f"{own}: a sample above 20 in {above} of {TRIALS} synthetic tables")
