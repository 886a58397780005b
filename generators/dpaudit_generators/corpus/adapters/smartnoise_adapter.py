"""smartnoise-synth 1.0.8 and 1.0.5."""

import contextlib
import random
import warnings
from pathlib import Path
from runpy import run_path

import numpy as np
import pandas as pd
import snsynth
import torch
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, TableTransformer


class Synthesis:
    """A synthesizer of the library; its bounds are the schema's."""

    seedable = False  # part of the noise comes from the operating system

    def __init__(self, *, schema, epsilon=1.0):
        self.columns = schema["columns"]
        self.epsilon = epsilon
        self.claim = {"epsilon": epsilon, "delta": self.delta, "neighbours": "replace-one"}

    def fit(self, data, *, seed):
        np.random.seed(seed)
        random.seed(seed)
        torch.manual_seed(seed)
        with contextlib.redirect_stdout(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.fitted(data)
        return self

    def sample(self, n, *, seed):
        return self.model.sample(n)


class MwemOfBins(Synthesis):
    """MWEM over public bins."""

    delta = 0.0

    def __init__(self, *, schema, epsilon=1.0, padded=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.padded = padded

    def fitted(self, data):
        edges = {c["name"]: (c["lower"], c["upper"]) for c in self.columns}
        bins = [BinTransformer(bins=10, lower=low, upper=high) for low, high in edges.values()]
        if self.padded:  # public records at both bounds, whatever the table is
            data = pd.concat([data, pd.DataFrame(edges)], ignore_index=True)
        model = Synthesizer.create("mwem", epsilon=self.epsilon, iterations=4)
        model.fit(data, transformer=TableTransformer(bins))
        return model


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
