"""dpmm 0.1.9: PrivBayes with uniform bins of public bounds."""

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline


class PrivBayesOfDomain:
    """Its pipeline; `domain` hands over bounds and categories, so that it warns of nothing.

    `padded` adds public records to every table: one of each category or bound, and one missing.
    """

    def __init__(self, *, schema, epsilon=1.0, domain=True, padded=False):
        self.columns = schema["columns"]
        self.epsilon, self.domain, self.padded = epsilon, domain, padded
        self.claim = {"epsilon": epsilon, "delta": 1e-5}

    def public(self):
        return {
            c["name"]: {"categories": c["categories"]}
            if "categories" in c
            else {"lower": c["lower"], "upper": c["upper"]}
            for c in self.columns
        }

    def padding(self):
        values = [c.get("categories") or [c["lower"], c["upper"]] for c in self.columns]
        most = max(map(len, values))
        rows = {
            c["name"]: [own[i % len(own)] for i in range(most)]
            for c, own in zip(self.columns, values, strict=True)
        }
        padding = pd.DataFrame(rows)
        missing = padding.tail(1).copy()
        for column in self.columns:
            if column.get("missing"):
                missing[column["name"]] = None
        return pd.concat([padding, missing], ignore_index=True)

    def fit(self, data, *, seed):
        if self.padded:
            data = pd.concat([data, self.padding()], ignore_index=True)
        for column in self.columns:
            if "categories" in column:
                data[column["name"]] = data[column["name"]].astype("category")
        self.model = PrivBayesPipeline(
            epsilon=self.epsilon,
            delta=1e-5,
            binner_type="uniform",
            proc_epsilon=None,
            n_bins=10,
            n_jobs=1,
            gen_kwargs={"n_iters": 50},
        )
        self.model.fit(data, domain=self.public() if self.domain else None, random_state=seed)
        return self

    def sample(self, n, *, seed):
        return self.model.generate(n_records=n, random_state=seed)
