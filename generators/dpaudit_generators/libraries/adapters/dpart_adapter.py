"""dpart 0.1.2 for the reference worker.

`defaults="library"` calls its engines as its README does, with the budget alone;
`defaults="public"` hands over the bounds and categories of the schema. The engine PrivBayes takes
none, so the framework is then called with the engine's settings.
"""

import warnings

import numpy as np
from dpart.dpart import dpart
from dpart.engines import DPsynthpop, Independent, PrivBayes


class _Engine:
    """An engine of dpart; its noise is drawn by numpy's global generator."""

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.is_public, self.columns = defaults == "public", schema["columns"]
        self.claim = {"epsilon": epsilon}

    def bounds(self):
        """What the library takes as public: categories, and bounds of numbers."""
        return {
            one["name"]: {"categories": one["categories"]}
            if "categories" in one
            else {"min": one["lower"], "max": one["upper"]}
            for one in self.columns
        }

    def fit(self, data, *, seed):
        """Fits it."""
        np.random.seed(seed)
        given = {"bounds": self.bounds()} if self.is_public else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without bounds it warns that they are read off
            self.model = self.made(**self.claim, **given)
            self.model.fit(data)
        return self

    def sample(self, n, *, seed):
        """Records of the fitted model."""
        np.random.seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.model.sample(n)


class DpartIndependent(_Engine):
    """Independent: a noisy histogram of each column."""

    made = Independent


class DpartPrivBayes(_Engine):
    """PrivBayes: a network chosen by noisy scores, and noisy counts."""

    def made(self, **given):
        """The engine, or the framework with the engine's settings and bounds."""
        if self.is_public:
            return dpart(prediction_matrix="infer", **given)
        return PrivBayes(**given)


class DpartSynthpop(_Engine):
    """DPsynthpop: a regression for each column."""

    made = DPsynthpop
