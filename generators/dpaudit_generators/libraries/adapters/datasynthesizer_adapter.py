"""DataSynthesizer 0.1.13 for the reference worker: independent and correlated attribute mode.

`defaults="library"` calls it as the notebooks that its README names do: types, categories and
ranges are read off the table, and the seed is the library's own, 0. `defaults="public"` hands over
types, categories, ranges and the seed.
"""

import json
import os
import tempfile

from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

TYPES = {"continuous": "Float", "integer": "Integer"}


class Independent:
    """A noisy histogram of every column; correlated mode differs in two calls and the degree."""

    proof = "composition"
    describe = DataDescriber.describe_dataset_in_independent_attribute_mode
    generate = DataGenerator.generate_dataset_in_independent_mode
    options = {}

    def __init__(self, *, schema, epsilon=1.0, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns, self.is_public = schema["columns"], defaults == "public"
        self.claim = {"epsilon": epsilon, "delta": 0.0}

    def fit(self, data, *, seed):
        """Describes the table to a file's text."""
        with tempfile.TemporaryDirectory() as folder:
            table, domains, description = (os.path.join(folder, name) for name in "tdo")
            data.to_csv(table, index=False)
            given = public(self.columns, domains, seed) if self.is_public else {}
            describer, epsilon = DataDescriber(), self.claim["epsilon"]
            type(self).describe(describer, table, epsilon=epsilon, **self.options, **given)
            describer.save_dataset_description_to_file(description)
            with open(description) as file:
                self.description = file.read()
        return self

    def sample(self, n, *, seed):
        """Records drawn from the description, in the schema's order of columns."""
        generator, given = DataGenerator(), {"seed": seed} if self.is_public else {}
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(self.description)
            file.flush()
            type(self).generate(generator, n, file.name, **given)
        return generator.synthetic_dataset


class Correlated(Independent):
    """PrivBayes."""

    describe = DataDescriber.describe_dataset_in_correlated_attribute_mode
    generate = DataGenerator.generate_dataset_in_correlated_attribute_mode
    options = {"k": 2}


def public(columns, domains, seed):
    """What the library takes instead of reading it off the table; writes the file of categories."""
    categories = {c["name"]: c["categories"] for c in columns if "categories" in c}
    with open(domains, "w") as file:
        json.dump(categories, file)
    return {
        "attribute_to_datatype": {c["name"]: datatype(c) for c in columns},
        "attribute_to_is_categorical": {c["name"]: c["name"] in categories for c in columns},
        "attribute_to_is_candidate_key": {c["name"]: False for c in columns},
        "categorical_attribute_domain_file": domains,
        "numerical_attribute_ranges": {
            c["name"]: [c["lower"], c["upper"]] for c in columns if "categories" not in c
        },
        "seed": seed,
    }


def datatype(column):
    """The library's name for a column's type."""
    categories = column.get("categories")
    if not categories:
        return TYPES[column["kind"]]
    whole = all(isinstance(value, int) for value in categories)
    return "Integer" if whole else "String"
