"""dpmm 0.1.9 for the reference worker.

`defaults="library"` calls it as its README does: bounds are handed over, categories are read off
the table. `defaults="public"` hands over categories too. The budget for preprocessing comes on top
of epsilon and is part of the claim.
"""

from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from pandas import CategoricalDtype


class DpmmPipeline:
    """One pipeline of the library; the classes below name theirs."""

    proof = "composition"
    pipeline = None
    seedable = False  # the noise is OpenDP's, from the operating system

    def __init__(self, *, schema, epsilon=1.0, delta=1e-5, proc_epsilon=0.1, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns, self.is_public = schema["columns"], defaults == "public"
        self.options = {"epsilon": epsilon, "delta": delta, "proc_epsilon": proc_epsilon}
        made = self.made()
        spent = made.gen.epsilon + (made.proc.binner_settings["epsilon"] or 0.0)
        self.claim = {"epsilon": spent, "delta": made.gen.delta}

    def made(self):
        """An unfitted pipeline, in one process."""
        return type(self).pipeline(n_jobs=1, **self.options)

    def fit(self, data, *, seed):
        """Fits it; numbers that the schema calls categories are marked by their type."""
        discrete = [column for column in self.columns if "categories" in column]
        domain = {
            column["name"]: {"lower": column["lower"], "upper": column["upper"]}
            for column in self.columns
            if column not in discrete
        }
        if self.is_public:
            domain |= {column["name"]: {"categories": column["categories"]} for column in discrete}
        kinds = {
            column["name"]: CategoricalDtype(column["categories"] if self.is_public else None)
            for column in discrete
        }  # synthetic values are brought back into these types
        self.fitted = self.made()
        self.fitted.fit(data.astype(kinds), domain, random_state=seed)
        return self

    def sample(self, n, *, seed):
        """Records of the fitted pipeline."""
        return self.fitted.generate(n_records=n, random_state=seed)


class DpmmPrivBayes(DpmmPipeline):
    """A Bayesian network."""

    pipeline = PrivBayesPipeline


class DpmmMst(DpmmPipeline):
    """Maximum spanning tree of marginals."""

    pipeline = MSTPipeline


class DpmmAim(DpmmPipeline):
    """Marginals chosen adaptively; at the library's defaults a model can take hours."""

    pipeline = AIMPipeline

    def __init__(self, *, schema, max_model_size=None, rounds=None, n_iters=1000, **common):
        steps = {"rounds": rounds, "n_iters": n_iters}
        for name, value in {"max_model_size": max_model_size, **steps}.items():
            if not (value is None or (isinstance(value, int | float) and value > 0)):
                raise ValueError(f"{name} is {value!r}: use a number above 0")
        self.sizes = {"max_model_size": max_model_size, "gen_kwargs": steps}
        super().__init__(schema=schema, **common)

    def made(self):
        """An unfitted pipeline, whose model is no larger than asked for (MiB)."""
        return self.pipeline(n_jobs=1, **self.options, **self.sizes)
