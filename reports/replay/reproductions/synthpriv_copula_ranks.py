"""synthpriv 0.2.1, dp-copula: removing a record moves its rank correlation more than allowed for.

Documented: pure differential privacy; an entry moves by at most B^2 / n, as one term of the sum
goes. But u = (rank + 0.5) / n, so removing a record changes the rank of every other record too.
What would fix it: noise for the change of all ranks, or a rank statistic of known sensitivity,
such as Kendall's tau.
"""

import numpy as np
import pandas as pd
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.privacy.mechanisms import DPSGD


class NoNoise:
    """Stands for the generator of random numbers: it adds nothing and remembers the last scale."""

    def laplace(self, loc, scale, size=None):
        """Zero."""
        self.scale = scale
        return loc if size is None else np.zeros(size)


values = np.linspace(10.0, 90.0, 19)
table = pd.DataFrame({"a": [*values, 1.0], "b": [*values, 99.0]})
found = []
for rows in (table, table.drop(index=19)):
    model = DPCopulaGenerator(DPSGD(epsilon=1.0), bounds={"a": (0, 100), "b": (0, 100)})
    model._rng = NoNoise()
    model.fit(rows)
    found.append(model._corr[0, 1])
    print(f"{len(rows)} records: correlation {found[-1]:.4f} + Laplace({model._rng.scale:.4f})")
moved, budget = abs(found[0] - found[1]), model.components["corr"]
print(f"moved by {moved:.4f}: epsilon {moved / model._rng.scale:.3f}; its budget is {budget:g}")
