"""dpart 0.1.2: categories of independent columns, and noise of a regression's residuals."""

import warnings

import numpy as np
import pandas as pd
from dpart.engines import DPsynthpop, Independent
from dpart.methods import LinearRegression


class Fitted:
    """A fitted engine of the library; with `padded`, public records are added to any table."""

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, padded=False):
        self.columns, self.padded = schema["columns"], padded
        self.claim = {"epsilon": epsilon}

    def fit(self, data, *, seed):
        np.random.seed(seed)
        if self.padded:
            data = pd.concat([data, self.padding()], ignore_index=True)
        self.model = self.engine()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(data)
        return self

    def sample(self, n, *, seed):
        np.random.seed(seed)
        return self.model.sample(n)


class Categories(Fitted):
    """Independent columns whose categories are handed over; padded: one record of each."""

    def padding(self):
        return pd.DataFrame({c["name"]: c["categories"] for c in self.columns})

    def engine(self):
        bounds = {c["name"]: {"categories": c["categories"]} for c in self.columns}
        return Independent(bounds=bounds, epsilon=self.claim["epsilon"])


class Residuals(Fitted):
    """One column, by a regression on a constant; padded: records at both bounds.

    With `unit`, numbers lie between 0 and 1 before the library sees them.
    """

    def __init__(self, *, schema, epsilon=1.0, unit=False):
        super().__init__(schema=schema, epsilon=epsilon, padded=True)
        # its noise is scaled with the number of records, which is thereby public
        self.claim = {"epsilon": epsilon, "neighbours": "replace-one"}
        (column,) = self.columns
        self.name, self.lower, self.upper = (column[key] for key in ("name", "lower", "upper"))
        self.unit = unit

    def padding(self):
        return pd.DataFrame({self.name: self.ends})

    def engine(self):
        lower, upper = self.ends
        method = LinearRegression(bounds_X=(0, 1), bounds_y=self.ends, fit_intercept=False)
        return DPsynthpop(
            epsilon=self.claim["epsilon"],
            methods={self.name: method},
            bounds={self.name: {"min": lower, "max": upper}},
        )

    def fit(self, data, *, seed):
        self.ends = (0.0, 1.0) if self.unit else (self.lower, self.upper)
        if self.unit:
            data = (data - self.lower) / (self.upper - self.lower)
        return super().fit(data, seed=seed)

    def sample(self, n, *, seed):
        table = super().sample(n, seed=seed)
        return self.lower + table * (self.upper - self.lower) if self.unit else table
