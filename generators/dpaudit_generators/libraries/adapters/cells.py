"""Records as numbers and back, by the public schema alone, for libraries that only take numbers."""

import numpy as np
import pandas as pd


class Cells:
    """Codes categories by their places in the schema, and numbers by bins of equal width."""

    def __init__(self, columns, bins=10):
        if any(column.get("missing") for column in columns):
            raise ValueError("missing values have no place here: leave out columns that have them")
        self.columns, self.bins = columns, bins
        self.categories = {c["name"]: c["categories"] for c in columns if "categories" in c}
        self.sizes = {c["name"]: len(c.get("categories", range(bins))) for c in columns}

    def bounds(self, column):
        """The range of a column's numbers; categories have steps of 1."""
        if column["name"] in self.categories:
            return -0.5, self.sizes[column["name"]] - 0.5
        return column["lower"], column["upper"]

    def numbers(self, data):
        """The table with categories as their places."""
        places = {
            name: data[name].map({value: place for place, value in enumerate(values)})
            for name, values in self.categories.items()
        }
        return data.assign(**places).astype(float)

    def encoded(self, data):
        """The cells of each record."""
        found = self.numbers(data)
        for column in self.columns:
            (lower, upper), size = self.bounds(column), self.sizes[column["name"]]
            cells = np.floor((found[column["name"]] - lower) / (upper - lower) * size)
            found[column["name"]] = cells.clip(0, size - 1)
        return found.astype(int)

    def decoded(self, cells, rng):
        """Records drawn evenly from their cells."""
        found = {}
        for column in self.columns:
            (lower, upper), size = self.bounds(column), self.sizes[column["name"]]
            place = (np.asarray(cells[column["name"]]) + rng.random(len(cells))) / size
            found[column["name"]] = lower + place * (upper - lower)
        return self.records(pd.DataFrame(found))

    def records(self, numbers):
        """A table of numbers as one of the schema's types and values."""
        found = {}
        for column in self.columns:
            values = np.asarray(numbers[column["name"]], dtype=float)
            if column["name"] in self.categories:
                last = self.sizes[column["name"]] - 1
                places = np.rint(values).clip(0, last).astype(int)
                found[column["name"]] = np.asarray(column["categories"], dtype=object)[places]
                continue
            values = values.clip(column["lower"], column["upper"])
            whole = column["kind"] == "integer"
            found[column["name"]] = np.rint(values).astype(int) if whole else values
        return pd.DataFrame(found)
