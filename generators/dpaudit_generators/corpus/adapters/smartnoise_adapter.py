"""smartnoise-synth 1.0.8."""

import contextlib
import random
import warnings

import numpy as np
import pandas as pd
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

    proof = "composition"
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
