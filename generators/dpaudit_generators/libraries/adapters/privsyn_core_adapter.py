"""privsyn-core 0.1.1 for the reference worker.

The library takes whole numbers and the size of each column: both are made from the schema.
`defaults="library"` calls it as its README does, which has the seed of the noise in the code
(`random_state=0`); `defaults="public"` hands over the seed. The claim's delta is the library's.
"""

import tempfile

import numpy as np
import pandas as pd
from cells import Cells
from privsyn import PrivSynModel

README = {"update_iterations": 5, "consist_iterations": 25}


class PrivSyn:
    """PrivSyn: noisy marginals, and records that are moved towards them."""

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, delta=1e-6, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.is_public, self.cells = defaults == "public", Cells(schema["columns"])
        self.claim = {"epsilon": epsilon, "delta": delta}

    def fit(self, data, *, seed):
        """Fits it; the library writes what it makes into a folder, which is deleted."""
        given = {"random_state": seed} if self.is_public else {"random_state": 0}
        steps = {} if self.is_public else README
        with tempfile.TemporaryDirectory() as folder:
            model = PrivSynModel(**self.claim, **given, extra_params=steps, artifact_root=folder)
            self.model = model.fit(self.cells.encoded(data), self.cells.sizes)
        return self

    def sample(self, n, *, seed):
        """Records of the fitted model."""
        given = {"seed": seed} if self.is_public else {}
        drawn = self.model.sample(n, **given)
        return self.cells.decoded(pd.DataFrame(drawn), np.random.default_rng(seed))
