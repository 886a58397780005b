"""The last edge is a private value: pip install diffprivlib==0.6.6."""

import warnings

import numpy as np
from diffprivlib import tools

table = np.append(np.random.default_rng(1).integers(20, 60, size=99), 87).astype(float)
for name, values in (("with", table), ("without", table[:-1])):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        counts, edges = tools.histogram(values, epsilon=1.0)
    print(f"{name} the record of 87: last edge {edges[-1]}; {said[0].category.__name__}")
