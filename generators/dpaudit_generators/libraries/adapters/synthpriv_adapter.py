"""synthpriv 0.2.1 for the reference worker.

`defaults="library"` calls it as its README does: the support of each number is read off the table,
and the seed of all noise is in the code (`random_state=0`). `defaults="public"` hands
over bounds and the seed; the library takes no categories.
"""

import contextlib
import io

import pandas as pd
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.dp.gan import DPSGDGenerator
from synthpriv.privacy.mechanisms import DPSGD


class _Synthpriv:
    """One generator of the library; the classes below name theirs."""

    delta = 0.0

    def __init__(self, *, schema, epsilon=1.0, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns, self.is_public = schema["columns"], defaults == "public"
        self.numbers = [column for column in self.columns if "categories" not in column]
        self.claim = {"epsilon": epsilon, "delta": self.delta}

    def made(self, seed):
        """An unfitted generator."""
        raise NotImplementedError

    def fit(self, data, *, seed):
        """Fits it; categories are text, as the library expects."""
        texts = {c["name"]: str for c in self.columns if c not in self.numbers}
        self.model = self.made(seed)
        with contextlib.redirect_stdout(io.StringIO()):
            self.model.fit(data.astype(texts))
        return self

    def sample(self, n, *, seed):
        """Records of the fitted model, of the schema's types and within its bounds."""
        drawn = self.model.sample(n)
        found = {}
        for column in self.columns:
            values = drawn[column["name"]]
            if column in self.numbers:
                values = pd.to_numeric(values).clip(column["lower"], column["upper"])
                values = values.round().astype(int) if column["kind"] == "integer" else values
            else:
                known = {str(one): one for one in column["categories"]}
                values = values.map(known)
            found[column["name"]] = values
        return pd.DataFrame(found)


class DpCopula(_Synthpriv):
    """A Gaussian copula: Laplace histograms and noisy rank correlations."""

    proof = "composition"

    def made(self, seed):
        """An unfitted generator, with bounds and seed if they are public."""
        given = {}
        if self.is_public:
            bounds = {column["name"]: (column["lower"], column["upper"]) for column in self.numbers}
            given = {"bounds": bounds, "random_state": seed}
        return DPCopulaGenerator(privacy=DPSGD(epsilon=self.claim["epsilon"]), **given)


class DpGan(_Synthpriv):
    """A GAN whose critic is trained by the DP-SGD of opacus."""

    delta = 1e-5

    def __init__(self, *, schema, epochs=20, **common):
        if not (isinstance(epochs, int) and epochs > 0):
            raise ValueError(f"epochs is {epochs!r}: use a number above 0")
        super().__init__(schema=schema, **common)
        self.epochs = epochs

    def made(self, seed):
        """An unfitted generator."""
        privacy = DPSGD(epsilon=self.claim["epsilon"], delta=self.delta)
        given = {"random_state": seed} if self.is_public else {}
        return DPSGDGenerator(epochs=self.epochs, privacy=privacy, **given)
