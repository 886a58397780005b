"""pac-synth 0.0.8 of Microsoft for the reference worker: compiled code, with its own noise.

The library takes text. `defaults="library"` gives it every value of the table as it is written;
`defaults="public"` numbers in ten cells of equal width. Delta, which the library would derive from
a noisy number of records, is handed over.
"""

import numpy as np
import pandas as pd
from cells import Cells
from pacsynth import Dataset, DpAggregateSeededParametersBuilder, DpAggregateSeededSynthesizer


class AggregateSeeded:
    """Noisy counts of combinations, and records made of those that are frequent enough."""

    seedable = False  # the noise is the library's, from the operating system

    def __init__(self, *, schema, epsilon=1.0, delta=1e-5, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns, self.cells = schema["columns"], Cells(schema["columns"])
        self.is_public = defaults == "public"
        self.claim = {"epsilon": epsilon, "delta": delta}

    def fit(self, data, *, seed):
        """Fits it to text."""
        table = self.cells.encoded(data) if self.is_public else data
        builder = DpAggregateSeededParametersBuilder().epsilon(self.claim["epsilon"])
        self.model = DpAggregateSeededSynthesizer(builder.delta(self.claim["delta"]).build())
        self.model.fit(Dataset.from_data_frame(table.astype(str)))
        return self

    def sample(self, n, *, seed):
        """Records of the fitted model; what it leaves empty is drawn from the public domain."""
        drawn = Dataset.raw_data_to_data_frame(self.model.sample(n))
        rng = np.random.default_rng(seed)
        found = {c["name"]: self._filled(drawn[c["name"]], c, rng) for c in self.columns}
        if self.is_public:
            return self.cells.decoded(pd.DataFrame(found), rng)
        return pd.DataFrame(found)

    def _filled(self, values, column, rng):
        """A column of text as numbers and categories of the schema, without gaps."""
        if self.is_public:
            known = {str(code): code for code in range(self.cells.sizes[column["name"]])}
        elif "categories" in column:
            known = {str(one): one for one in column["categories"]}
        else:
            anything = rng.uniform(column["lower"], column["upper"], size=len(values))
            numbers = pd.to_numeric(values.where(values != "")).fillna(pd.Series(anything))
            return numbers.round().astype(int) if column["kind"] == "integer" else numbers
        anything = rng.choice(list(known), size=len(values))
        return pd.Series(np.where(values == "", anything, values)).map(known)
