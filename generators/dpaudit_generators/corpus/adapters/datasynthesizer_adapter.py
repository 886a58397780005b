"""DataSynthesizer: what its README calls in independent and in correlated mode."""

import contextlib
import json
import os
import tempfile

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator


class Descriptions:
    """Tables and descriptions go through files, as the library asks for."""

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, ranges=True, seed="given", padded=False):
        self.columns = schema["columns"]
        self.epsilon, self.ranges, self.seed, self.padded = epsilon, ranges, seed, padded
        # its noise is scaled with the number of records, which is thereby public
        self.claim = {"epsilon": epsilon, "neighbours": "replace-one"}

    def handed_over(self, folder):
        """Everything that the library would otherwise read off the table."""
        numbers = {c["name"]: [c["lower"], c["upper"]] for c in self.columns if "lower" in c}
        domains = {c["name"]: c["categories"] for c in self.columns if "categories" in c}
        path = os.path.join(folder, "domains.json")
        with open(path, "w") as file:
            json.dump(domains, file)
        names = [column["name"] for column in self.columns]
        kinds = {"continuous": "Float", "integer": "Integer"}
        return {
            "attribute_to_datatype": {
                c["name"]: kinds.get(c["kind"], "String") for c in self.columns
            },
            "attribute_to_is_categorical": {name: name in domains for name in names},
            "attribute_to_is_candidate_key": dict.fromkeys(names, False),
            "categorical_attribute_domain_file": path,
            "numerical_attribute_ranges": numbers,
        }

    def padding(self):
        """Public records: every column's last category is then there in both worlds."""
        return pd.DataFrame({c["name"]: [c["categories"][-1]] for c in self.columns})

    def seeds(self, seed):
        return {} if self.seed == "default" else {"seed": seed}

    def fit(self, data, *, seed):
        self.folder = tempfile.TemporaryDirectory()
        table = os.path.join(self.folder.name, "table.csv")
        if self.padded:
            data = pd.concat([data, self.padding()], ignore_index=True)
        data.to_csv(table, index=False)
        given = self.handed_over(self.folder.name) if self.ranges else {}
        describer = DataDescriber()
        with contextlib.redirect_stdout(None):
            self.describe(describer, table, **given, **self.seeds(seed))
        self.description = os.path.join(self.folder.name, "description.json")
        describer.save_dataset_description_to_file(self.description)
        return self

    def sample(self, n, *, seed):
        generator = DataGenerator()
        self.generate(generator, n, self.description, **self.seeds(seed))
        return generator.synthetic_dataset


class IndependentMode(Descriptions):
    """Each column on its own."""

    def describe(self, describer, table, **given):
        describer.describe_dataset_in_independent_attribute_mode(
            table, epsilon=self.epsilon, **given
        )

    def generate(self, generator, n, description, **given):
        generator.generate_dataset_in_independent_mode(n, description, **given)


class CorrelatedMode(Descriptions):
    """A Bayesian network in which each column has one parent: PrivBayes."""

    proof = None  # its steps spend 1.5 epsilon, also in the twin: not the flaw of its rows

    def describe(self, describer, table, **given):
        describer.describe_dataset_in_correlated_attribute_mode(
            table, k=1, epsilon=self.epsilon, **given
        )

    def generate(self, generator, n, description, **given):
        generator.generate_dataset_in_correlated_attribute_mode(n, description, **given)


class Strings(IndependentMode):
    """Texts of which each number of the table is the length, and one category more.

    Rows have the lengths of synthetic texts. With `padded`, a public record at each bound is added
    to any table; with `counted`, the budget is divided by all columns.
    """

    def __init__(self, *, schema, epsilon=1.0, padded=False, counted=False):
        super().__init__(schema=schema, epsilon=epsilon, padded=padded)
        self.names, self.counted = [column["name"] for column in self.columns], counted

    def handed_over(self, folder):
        path = os.path.join(folder, "domains.json")
        with open(path, "w") as file:
            json.dump({"category": ["a"]}, file)
        names = [*self.names, "category"]
        return {
            "attribute_to_datatype": dict.fromkeys(names, "String"),
            "attribute_to_is_categorical": {name: name == "category" for name in names},
            "attribute_to_is_candidate_key": dict.fromkeys(names, False),
            "categorical_attribute_domain_file": path,
        }

    def padding(self):
        return self.texts({c["name"]: [c["lower"], c["upper"]] for c in self.columns})

    def texts(self, lengths):
        texts = {name: [length * "x" for length in lengths[name]] for name in self.names}
        return pd.DataFrame({**texts, "category": "a"})

    def fit(self, data, *, seed):
        return super().fit(self.texts(data), seed=seed)

    def describe(self, describer, table, **given):
        share = len(self.names) + 1 if self.counted else 1
        describer.describe_dataset_in_independent_attribute_mode(
            table, epsilon=self.epsilon / share, **given
        )

    def sample(self, n, *, seed):
        texts = super().sample(n, seed=seed).drop(columns="category")
        return texts.astype(str).apply(lambda column: column.str.len())
