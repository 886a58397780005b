"""A record that goes changes all ranks: pip install synthpriv==0.2.1."""

import logging

import numpy as np
import pandas as pd
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.privacy.mechanisms import DPSGD


class NoNoise:
    """In place of the generator of random numbers: adds nothing, remembers the last scale."""

    def laplace(self, loc: float, scale: float, size: int | None = None) -> object:
        """The value without noise."""
        self.scale = scale
        return loc if size is None else np.zeros(size)


logging.disable()
table = pd.DataFrame({"x": [*range(1, 20), 99.0], "y": [*range(1, 20), 0.0]})
found = []
for rows in (table, table.drop(index=19)):
    model = DPCopulaGenerator(DPSGD(epsilon=1.0), bounds={"x": (0, 100), "y": (0, 100)})
    model._rng = NoNoise()
    model.fit(rows)
    found.append(model._corr[0, 1])
    print(f"{len(rows)} records: correlation {found[-1]:.4f} + Laplace({model._rng.scale:.4f})")
moved, budget = abs(found[0] - found[1]), model.components["corr"]
print(f"moved by {moved:.4f}: epsilon {moved / model._rng.scale:.3f}; its budget is {budget:g}")
