"""privsyn-core 0.1.1: whole numbers, with the size of each column handed over."""

import tempfile

from privsyn import PrivSynModel


class Whole:
    """PrivSyn; without `seeded` its noise has the seed of the README, `random_state=0`."""

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, delta=1e-6, seeded=True):
        self.sizes = {c["name"]: int(c["upper"]) + 1 for c in schema["columns"]}
        self.seeded = seeded
        self.claim = {"epsilon": epsilon, "delta": delta}

    def fit(self, data, *, seed):
        with tempfile.TemporaryDirectory() as folder:
            model = PrivSynModel(
                **self.claim,
                random_state=seed if self.seeded else 0,
                extra_params={"update_iterations": 5, "consist_iterations": 25},
                artifact_root=folder,
            )
            self.model = model.fit(data, self.sizes)
        return self

    def sample(self, n, *, seed):
        return self.model.sample(n, seed=seed)
