"""smartnoise-synth 1.0.8 and 1.0.5: the covariances of its linear regression."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import snsynth

# The package around the file imports a module that scikit-learn has not had since 0.24.
around = ModuleType("snsynth.models")
around.__path__ = [str(Path(snsynth.__file__).parent / "models")]
sys.modules["snsynth.models"] = around
from snsynth.models.dp_covariance import DPcovariance  # noqa: E402


class Variances:
    """The covariances of two columns, of which it writes the variances as rows.

    Noise is scaled with the number of records, which is thereby public: one is replaced.
    """

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, upper=10.0):
        self.names = [column["name"] for column in schema["columns"]]
        self.bounds = pd.DataFrame({name: [0.0, upper] for name in self.names})
        self.claim = {"epsilon": epsilon, "neighbours": "replace-one"}

    def fit(self, data, *, seed):
        np.random.seed(seed)
        model = DPcovariance(len(data), self.names, self.bounds.copy(), self.claim["epsilon"])
        self.first, _, self.second = model.release(data.astype(float))
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame([[self.first, self.second]] * n, columns=self.names)
