"""dp-cgans 0.3.0 for the reference worker.

It is called as its README does, with `private=True` and fewer epochs. The library takes no bounds
or categories, so `defaults="public"` is the same. It prints an epsilon at the end of a training,
for delta 2e-6; the adapter claims nothing, so an audit states the epsilon (`--epsilon`).
"""

import contextlib
import io
import os
import tempfile

import numpy as np
import torch
from dp_cgans import DP_CGAN


class DpCgan:
    """A conditional GAN with noise in the gradients of its critic, whose weights are clipped."""

    def __init__(self, *, schema, epochs=5, batch_size=20, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.discrete = [c["name"] for c in schema["columns"] if "categories" in c]
        self.options = {"epochs": epochs, "batch_size": batch_size}

    def fit(self, data, *, seed):
        """Trains it, in a folder of its own: the library makes some in the current one."""
        np.random.seed(seed)
        torch.manual_seed(seed)
        table = data.astype({name: object for name in self.discrete})
        self.model = DP_CGAN(**self.options, private=True, log_frequency=True, cuda=False)
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            try:
                self.model.fit(table)
            finally:
                os.chdir(here)
        return self

    def sample(self, n, *, seed):
        """Records of the generator."""
        np.random.seed(seed)
        torch.manual_seed(seed)
        return self.model.sample(n)
