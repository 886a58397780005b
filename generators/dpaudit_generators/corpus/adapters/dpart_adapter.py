"""dpart 0.1.2: independent columns, with every column's bounds or categories handed over."""

import warnings

import numpy as np
import pandas as pd
from dpart.engines import Independent

BINS = 20


class Columns:
    """Independent columns; with `public` the library infers nothing from the table.

    Numbers are then public bins before the library sees them, and one public record of each
    category or bin is added to any table.
    """

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, public=False):
        self.columns = schema["columns"]
        self.epsilon, self.public = epsilon, public
        self.claim = {"epsilon": epsilon}

    def fit(self, data, *, seed):
        np.random.seed(seed)
        bounds = {
            c["name"]: {"categories": c["categories"]} for c in self.columns if "categories" in c
        }
        numeric = [column for column in self.columns if "lower" in column]
        bins = [f"{number:02}" for number in range(BINS)]
        for column in numeric:
            name, lower, upper = column["name"], column["lower"], column["upper"]
            bounds[name] = {"categories": bins} if self.public else {"min": lower, "max": upper}
            if self.public:
                place = np.floor((data[name] - lower) / (upper - lower) * BINS)
                data[name] = [bins[int(p)] for p in place.clip(0, BINS - 1)]
        if self.public:
            most = max(len(one["categories"]) for one in bounds.values())
            padding = {name: np.resize(bounds[name]["categories"], most) for name in bounds}
            data = pd.concat([data, pd.DataFrame(padding)], ignore_index=True)
        self.model = Independent(bounds=bounds, epsilon=self.epsilon)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(data)
        return self

    def sample(self, n, *, seed):
        np.random.seed(seed)
        table = self.model.sample(n)
        for column in self.columns:
            if self.public and "lower" in column:
                width = (column["upper"] - column["lower"]) / BINS
                place = table[column["name"]].astype(int) + np.random.uniform(size=n)
                table[column["name"]] = column["lower"] + width * place
        return table
