"""dpmm 0.1.9: PrivBayes on columns of categories."""

import numpy as np
import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

STEPS = 20
"""Of the estimation of its model, which costs no privacy: the default takes many times as long."""


class PrivBayes:
    """PrivBayes; with `public`, the categories of each column are handed over.

    With `padded`, one public record of each category is added to any table.
    """

    proof = "composition"
    seedable = False  # the noise is OpenDP's, from the operating system

    def __init__(self, *, schema, epsilon=1.0, delta=1e-5, public=True, padded=False):
        domains = {one["name"]: one["categories"] for one in schema["columns"]}
        self.options = {"epsilon": epsilon, "delta": delta, "n_jobs": 1}
        self.domains, self.public, self.padded = domains, public, padded
        self.claim = {"epsilon": epsilon, "delta": delta}

    def fit(self, data, *, seed):
        if self.padded:
            most = max(map(len, self.domains.values()))
            padding = {name: np.resize(domain, most) for name, domain in self.domains.items()}
            data = pd.concat([data, pd.DataFrame(padding)], ignore_index=True)
        domain = {name: {"categories": domain} for name, domain in self.domains.items()}
        # No numbers, so that nothing is spent on their bins.
        self.model = PrivBayesPipeline(
            **self.options, proc_epsilon=None, gen_kwargs={"n_iters": STEPS}
        )
        self.model.fit(data, domain if self.public else {}, random_state=seed)
        return self

    def sample(self, n, *, seed):
        return self.model.generate(n_records=n, random_state=seed)
