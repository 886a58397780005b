"""dpmm 0.1.9: PrivBayes with uniform bins of public bounds."""

from dpmm.pipelines import PrivBayesPipeline


class PrivBayes:
    """Its pipeline; `domain` hands over bounds and categories, so that it warns of nothing."""

    def __init__(self, *, schema, epsilon=1.0, domain=True):
        self.columns = schema["columns"]
        self.epsilon, self.domain = epsilon, domain
        self.claim = {"epsilon": epsilon, "delta": 1e-5}

    def public(self):
        return {
            c["name"]: {"categories": c["categories"]}
            if "categories" in c
            else {"lower": c["lower"], "upper": c["upper"]}
            for c in self.columns
        }

    def fit(self, data, *, seed):
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
            gen_kwargs={"n_iters": 200},
        )
        self.model.fit(data, domain=self.public() if self.domain else None, random_state=seed)
        return self

    def sample(self, n, *, seed):
        return self.model.generate(n_records=n, random_state=seed)
