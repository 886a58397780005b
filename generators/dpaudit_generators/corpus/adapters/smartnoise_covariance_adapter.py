"""smartnoise-synth 1.0.8 and 1.0.5: the covariances of its linear regression."""

from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import snsynth


def covariances():
    """The library's class, from its file: the package around it needs a scikit-learn of 2020."""
    file = Path(snsynth.__file__).parent / "models" / "dp_covariance.py"
    return run_path(str(file))["DPcovariance"]


class Variances:
    """The covariances of two columns, of which it writes the variances as rows.

    Noise is scaled with the number of records, which is thereby public: one is replaced.
    """

    def __init__(self, *, schema, epsilon=1.0, upper=10.0):
        self.names = [column["name"] for column in schema["columns"]]
        self.bounds = pd.DataFrame({name: [0.0, upper] for name in self.names})
        self.claim = {"epsilon": epsilon, "neighbours": "replace-one"}

    def fit(self, data, *, seed):
        np.random.seed(seed)
        model = covariances()(len(data), self.names, self.bounds.copy(), self.claim["epsilon"])
        self.first, _, self.second = model.release(data.astype(float))
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame([[self.first, self.second]] * n, columns=self.names)
