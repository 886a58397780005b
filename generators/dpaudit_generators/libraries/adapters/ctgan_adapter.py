"""CTGAN 0.12.1 of SDV for the reference worker: not differentially private, so without a claim.

It is called as its README does, with as many epochs. The library takes no bounds or categories, so
`defaults="public"` is the same.
"""

from ctgan import CTGAN


class SdvCtgan:
    """A conditional GAN; the schema says which columns are discrete."""

    def __init__(self, *, schema, epochs=10, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.discrete = [c["name"] for c in schema["columns"] if "categories" in c]
        self.epochs = epochs

    def fit(self, data, *, seed):
        """Trains it."""
        self.model = CTGAN(epochs=self.epochs)
        self.model.set_random_state(seed)
        self.model.fit(data, self.discrete)
        return self

    def sample(self, n, *, seed):
        """Records of the generator."""
        self.model.set_random_state(seed)
        return self.model.sample(n)
