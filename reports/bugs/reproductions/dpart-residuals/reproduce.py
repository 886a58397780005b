"""The spread of residuals has next to no noise: Python 3.9, pip install dpart==0.1.2."""

import warnings

import numpy as np
import pandas as pd
from dpart.engines import DPsynthpop
from dpart.methods import LinearRegression

warnings.simplefilter("ignore")
ENDS = (0.0, 1000.0)
for own in (0.0, 1000.0):  # neighbouring tables: one value of 43 differs
    np.random.seed(0)
    found = []
    for _ in range(20):
        method = LinearRegression(bounds_X=(0, 1), bounds_y=ENDS, fit_intercept=False)
        bounds = {"x": {"min": ENDS[0], "max": ENDS[1]}}
        model = DPsynthpop(epsilon=1.0, bounds=bounds, methods={"x": method})
        model.fit(pd.DataFrame({"x": [0.0] * 40 + [own, *ENDS]}))
        found.append(method.sigma)
    print(f"own value {own:g}: the noisy spread is {min(found):.2f} to {max(found):.2f} in 20 fits")
