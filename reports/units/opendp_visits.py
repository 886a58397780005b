"""OpenDP 0.16.0 for the reference worker: counts with noise for some rows of a patient.

The library takes the number as `dp.unit_of(contributions=...)`. It runs in the environment of
`dpaudit env create opendp`, which has no dpaudit.
"""

import numpy as np
import opendp.prelude as dp
import pandas as pd

dp.enable_features("contrib")


class Visits:
    """A model of visits; claims epsilon per patient."""

    seedable = False  # the noise is OpenDP's, from the operating system

    def __init__(self, *, schema, contributions, epsilon=1.0):
        self.drugs, self.cost, self.ill = schema["columns"]
        self.contributions, self.epsilon = contributions, epsilon
        self.claim = {"epsilon": epsilon, "unit": schema["unit"]["column"]}

    def fit(self, data, *, seed):
        """Releases the counts."""
        context = dp.Context.compositor(
            data=data["drug"].tolist(),
            privacy_unit=dp.unit_of(contributions=self.contributions),
            privacy_loss=dp.loss_of(epsilon=self.epsilon),
            split_evenly_over=1,
        )
        query = context.query().count_by_categories(self.drugs["categories"], null_category=False)
        self.counts = query.laplace().release()
        return self

    def sample(self, n, *, seed):
        """Draws drugs in proportion to the counts, and the rest uniformly."""
        rng = np.random.default_rng(seed)
        weights = np.maximum(np.asarray(self.counts), 0) + 1e-9
        return pd.DataFrame(
            {
                "drug": rng.choice(self.drugs["categories"], n, p=weights / weights.sum()),
                "cost": rng.uniform(self.cost["lower"], self.cost["upper"], n),
                "ill": rng.choice(self.ill["categories"], n),
            }
        )
