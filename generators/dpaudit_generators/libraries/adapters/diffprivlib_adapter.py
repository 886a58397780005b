"""diffprivlib 0.6.6 for the reference worker: generators made of its histograms and models.

The library has no synthesizer: records are drawn here from what it releases. Categories are their
places in the schema. `defaults="library"` leaves ranges, bounds and classes to the library, which
reads them off the table and warns; `defaults="public"` hands them over.
"""

import numpy as np
import pandas as pd
from cells import Cells
from diffprivlib import models, tools


class Released:
    """Base of the classes below: each lets the library release something and draws from it."""

    proof = "composition"
    neighbours = "add-remove"

    def __init__(self, *, schema, epsilon=1.0, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.is_public, self.epsilon = defaults == "public", epsilon
        self.cells = Cells(schema["columns"])
        self.names = list(self.cells.sizes)
        self.ranges = [self.cells.bounds(column) for column in schema["columns"]]
        self.claim = {"epsilon": epsilon, "delta": 0.0, "neighbours": self.neighbours}

    @property
    def seedable(self):
        """Without a seed the library draws from the operating system."""
        return self.is_public


class Histogram(Released):
    """A histogram of every column, each with an equal share of epsilon."""

    def fit(self, data, *, seed):
        """Counts every column: in 10 bins, unless bins are given."""
        table, self.counted = self.cells.numbers(data), []
        for name, ends in zip(self.names, self.ranges, strict=True):
            public = {"range": ends, "bins": self.cells.sizes[name], "random_state": seed}
            given = public if self.is_public else {}
            self.counted.append(
                tools.histogram(table[name], epsilon=self.epsilon / len(self.names), **given)
            )
        return self

    def sample(self, n, *, seed):
        """Each column by itself."""
        rng = np.random.default_rng(seed)
        drawn = [within(edges, places(counts, n, rng), rng) for counts, edges in self.counted]
        return self.cells.records(dict(zip(self.names, drawn, strict=True)))


class HistogramDd(Released):
    """One histogram of all columns: as many cells as the product of their bins."""

    def fit(self, data, *, seed):
        """Counts every cell: 10 bins in each column, unless bins are given."""
        bins = list(self.cells.sizes.values())
        public = {"range": self.ranges, "bins": bins, "random_state": seed}
        given = public if self.is_public else {}
        table = self.cells.numbers(data).to_numpy()
        self.counts, self.edges = tools.histogramdd(table, epsilon=self.epsilon, **given)
        return self

    def sample(self, n, *, seed):
        """A cell for each record."""
        rng = np.random.default_rng(seed)
        cells = np.unravel_index(places(self.counts.ravel(), n, rng), self.counts.shape)
        drawn = [within(edges, at, rng) for edges, at in zip(self.edges, cells, strict=True)]
        return self.cells.records(dict(zip(self.names, drawn, strict=True)))


class NaiveBayes(Released):
    """Gaussian naive Bayes of the first categorical column on all others, which draws them.

    The number of records is public to it, so a record is replaced.
    """

    neighbours = "replace-one"

    def __init__(self, *, schema, **common):
        super().__init__(schema=schema, **common)
        labels = [name for name in self.names if name in self.cells.categories]
        if not labels or len(self.names) < 2:
            raise ValueError("naive Bayes needs a column with categories and another column")
        self.label = labels[0]

    def fit(self, data, *, seed):
        """Fits it."""
        table = self.cells.numbers(data)
        inputs, labels = table.drop(columns=self.label).to_numpy(), table[self.label].astype(int)
        if not self.is_public:
            self.model = models.GaussianNB(epsilon=self.epsilon).fit(inputs, labels)
            return self
        inner = [column for column in self.cells.columns if column["name"] != self.label]
        ends = tuple(np.transpose([self.cells.bounds(column) for column in inner]))
        self.model = models.GaussianNB(epsilon=self.epsilon, bounds=ends, random_state=seed)
        self.model.partial_fit(inputs, labels, classes=np.arange(self.cells.sizes[self.label]))
        return self

    def sample(self, n, *, seed):
        """A class for each record, and the other columns given the class."""
        rng, model = np.random.default_rng(seed), self.model
        of = rng.choice(len(model.classes_), size=n, p=model.class_prior_)
        drawn = rng.normal(model.theta_[of], np.sqrt(model.var_[of]))
        inputs = [name for name in self.names if name != self.label]
        found = pd.DataFrame(drawn, columns=inputs).assign(**{self.label: model.classes_[of]})
        return self.cells.records(found)


class LinearRegression(Released):
    """Linear regression of the last column of numbers on all others, which are drawn evenly.

    The means that it subtracts take the number of records for public, so a record is replaced.
    """

    neighbours = "replace-one"

    def __init__(self, *, schema, **common):
        super().__init__(schema=schema, **common)
        numbers = [name for name in self.names if name not in self.cells.categories]
        if not numbers or len(self.names) < 2:
            raise ValueError("linear regression needs a column of numbers and another column")
        self.label = numbers[-1]
        self.inputs = [name for name in self.names if name != self.label]
        self.ends = dict(zip(self.names, self.ranges, strict=True))

    def fit(self, data, *, seed):
        """Fits it."""
        table = self.cells.numbers(data)
        bounds = tuple(np.transpose([self.ends[name] for name in self.inputs]))
        public = {"bounds_X": bounds, "bounds_y": self.ends[self.label], "random_state": seed}
        given = public if self.is_public else {}
        self.model = models.LinearRegression(epsilon=self.epsilon, **given)
        self.model.fit(table[self.inputs].to_numpy(), table[self.label].to_numpy())
        return self

    def sample(self, n, *, seed):
        """Inputs anywhere between their public bounds, and what the model predicts of them."""
        rng = np.random.default_rng(seed)
        lower, upper = np.transpose([self.ends[name] for name in self.inputs])
        inputs = rng.uniform(lower, upper, size=(n, len(self.inputs)))
        found = pd.DataFrame(inputs, columns=self.inputs)
        return self.cells.records(found.assign(**{self.label: self.model.predict(inputs)}))


def places(counts, n, rng):
    """Cells drawn in proportion to their counts, or evenly if nothing was counted."""
    total = counts.sum()
    return rng.choice(counts.size, size=n, p=counts / total if total > 0 else None)


def within(edges, cells, rng):
    """Numbers drawn evenly from cells between edges."""
    return edges[cells] + rng.random(len(cells)) * np.diff(edges)[cells]
