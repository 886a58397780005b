"""Releases of diffprivlib 0.6.6 other than tables, each written as rows of the table's columns.

Bounds come from the public schema, so the library has nothing to warn about.
"""

import numpy as np
import pandas as pd
from diffprivlib import models, tools


class Drawn:
    """The output of a fitted model is drawn once, in training; `sample` writes it as rows.

    Noise of means is scaled with the number of records, which is thereby public: one is replaced.
    """

    proof = "composition"
    neighbours = "replace-one"

    def __init__(self, *, schema, epsilon=1.0):
        self.columns = schema["columns"]
        self.names = [column["name"] for column in self.columns]
        self.epsilon = epsilon
        self.claim = {"epsilon": epsilon, "neighbours": self.neighbours}

    def bounds(self, names):
        chosen = [column for column in self.columns if column["name"] in names]
        return tuple([column[side] for column in chosen] for side in ("lower", "upper"))

    def inputs(self, n, names):
        """Public inputs, the same for every model: evenly spaced between the bounds."""
        lower, upper = self.bounds(names)
        return np.linspace(lower, upper, n)


class Regression(Drawn):
    """Predictions of a linear regression of the last column on the others, on public inputs."""

    def __init__(self, *, schema, epsilon=1.0, symmetric=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.symmetric = symmetric

    def fit(self, data, *, seed):
        *inputs, label = self.names
        lower, upper = self.bounds(inputs)
        if self.symmetric:
            lower = [-side for side in upper]
        self.model = models.LinearRegression(
            epsilon=self.epsilon,
            bounds_X=(lower, upper),
            bounds_y=self.bounds([label]),
            fit_intercept=False,
            random_state=seed,
        ).fit(data[inputs].to_numpy(float), data[label].to_numpy(float))
        return self

    def sample(self, n, *, seed):
        *inputs, label = self.names
        rows = self.inputs(n, inputs)
        return pd.DataFrame(rows, columns=inputs).assign(**{label: self.model.predict(rows)})


class Classes(Drawn):
    """The classes that a fitted naive Bayes knows, repeated."""

    def __init__(self, *, schema, epsilon=1.0, public=False, padded=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.public, self.padded = public, padded

    def fit(self, data, *, seed):
        *inputs, label = self.names
        domain = np.sort(self.columns[-1]["categories"])
        if self.padded:  # public records: one of each class, at the lower bounds
            padding = pd.DataFrame({label: domain}).assign(
                **dict(zip(inputs, self.bounds(inputs)[0], strict=True))
            )
            data = pd.concat([data, padding], ignore_index=True)
        values, labels = data[inputs].to_numpy(float), data[label].to_numpy()
        model = models.GaussianNB(
            epsilon=self.epsilon, bounds=self.bounds(inputs), random_state=seed
        )
        if self.public:
            model.partial_fit(values, labels, classes=domain)
        else:
            model.fit(values, labels)
        self.model = model
        return self

    def sample(self, n, *, seed):
        *inputs, label = self.names
        which = np.arange(n) % len(self.model.classes_)
        rows = pd.DataFrame(self.released(which, inputs), columns=inputs)
        return rows.assign(**{label: self.model.classes_[which]})

    def released(self, which, inputs):
        return np.tile(self.bounds(inputs)[0], (len(which), 1))


class Priors(Classes):
    """Each class's share of the records, repeated; inputs have no other columns."""

    def released(self, which, inputs):
        return np.tile(self.model.class_prior_[which, np.newaxis], len(inputs))


class Everywhere(np.ndarray):
    """Labels that seem to have every cluster, also one without records."""

    def __contains__(self, cluster):
        return True


class NoisyKMeans(models.KMeans):
    """K-means that adds noise for every cluster: count and sums are 0 where there is no record."""

    def _update_centers(self, X, centers, labels, dims, total_iters, random_state):  # noqa: N803
        labels = labels.view(Everywhere)
        return super()._update_centers(X, centers, labels, dims, total_iters, random_state)


class OrderedKMeans(NoisyKMeans):
    """The same with the budgets of counts and sums as its proof has them: 0.6.6 exchanges them."""

    def _split_epsilon(self, dims, total_iters, rho=0.225):
        return super()._split_epsilon(dims, total_iters, rho)[::-1]


class Centres(Drawn):
    """Centres of two clusters."""

    neighbours = "add-remove"  # its counts have noise for one record that comes or goes

    def __init__(self, *, schema, epsilon=1.0, noisy=False, ordered=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.kind = OrderedKMeans if ordered else NoisyKMeans if noisy else models.KMeans

    def fit(self, data, *, seed):
        self.model = self.kind(
            2, epsilon=self.epsilon, bounds=self.bounds(self.names), random_state=seed
        ).fit(data.to_numpy(float))
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame(self.model.cluster_centers_, columns=self.names)


class MeanOfPresent(Drawn):
    """The mean of a column's values, missing ones left out, repeated in every row."""

    def __init__(self, *, schema, epsilon=1.0, filled=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.filled = filled

    def fit(self, data, *, seed):
        (name,) = self.names
        lower, upper = (side[0] for side in self.bounds([name]))
        values = data[name].to_numpy(float)
        mean = tools.nanmean
        if self.filled:  # missing values count as the lower bound: the sum keeps its terms
            values, mean = np.nan_to_num(values, nan=lower), tools.mean
        self.mean = mean(values, epsilon=self.epsilon, bounds=(lower, upper), random_state=seed)
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({self.names[0]: [self.mean] * n})


class Edges(Drawn):
    """The edges of a histogram's bins, which the library chooses itself, repeated."""

    neighbours = "add-remove"  # its counts have noise for one record that comes or goes

    def __init__(self, *, schema, epsilon=1.0, bins="auto"):
        super().__init__(schema=schema, epsilon=epsilon)
        self.bins = bins

    def fit(self, data, *, seed):
        (name,) = self.names
        lower, upper = (side[0] for side in self.bounds([name]))
        values = data[name].to_numpy(float)
        self.edges = tools.histogram(
            values, epsilon=self.epsilon, bins=self.bins, range=(lower, upper), random_state=seed
        )[1]
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({self.names[0]: np.resize(self.edges, n)})


class SumOfPresent(Drawn):
    """The sum of a column's values, missing ones left out, repeated in every row."""

    def __init__(self, *, schema, epsilon=1.0, filled=False):
        super().__init__(schema=schema, epsilon=epsilon)
        self.filled = filled

    def fit(self, data, *, seed):
        (name,) = self.names
        lower, upper = (side[0] for side in self.bounds([name]))
        values = data[name].to_numpy(float)
        if self.filled:  # missing values count as the lower bound
            values = np.nan_to_num(values, nan=lower)
        self.value = tools.nansum(
            values, epsilon=self.epsilon, bounds=(lower, upper), random_state=seed
        )
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({self.names[0]: [self.value] * n})


class Median(SumOfPresent):
    """The median of a column, repeated in every row."""

    def fit(self, data, *, seed):
        (name,) = self.names
        lower, upper = (side[0] for side in self.bounds([name]))
        values = data[name].to_numpy(float)
        if self.filled:
            values = np.nan_to_num(values, nan=lower)
        self.value = tools.median(
            values, epsilon=self.epsilon, bounds=(lower, upper), random_state=seed
        )
        return self
