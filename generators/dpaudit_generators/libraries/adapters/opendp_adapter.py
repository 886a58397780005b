"""OpenDP 0.16.0 with mbi for the reference worker: contingency tables, and records drawn from them.

Cuts of numbers come from the schema, as the library's examples have them. `defaults="library"`
leaves categories out, which the library then finds with a part of epsilon and delta;
`defaults="public"` hands them over, and delta is 0.
"""

import itertools
from abc import ABC, abstractmethod

import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl

BINS = 10

dp.enable_features("contrib")


class OpenDpTable(ABC):
    """A contingency table by one algorithm; the classes below name theirs."""

    proof = "composition"
    seedable = False  # the noise is OpenDP's, from the operating system

    def __init__(self, *, schema, epsilon=1.0, delta=1e-5, defaults="library"):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns = schema["columns"]
        named = {c["name"]: c["categories"] for c in self.columns if "categories" in c}
        self.cuts = {c["name"]: cuts(c) for c in self.columns if "categories" not in c}
        self.keys = named if defaults == "public" else {}
        left_out = any(name not in self.keys for name in named)
        self.claim = {"epsilon": epsilon, "delta": delta if left_out else 0.0}

    @abstractmethod
    def algorithm(self):
        """The algorithm that releases the table."""

    def fit(self, data, *, seed):
        """Releases the table."""
        np.random.seed(seed)
        names = [column["name"] for column in self.columns]
        loss = {name: value for name, value in self.claim.items() if value}
        context = dp.Context.compositor(
            data=pl.LazyFrame({name: data[name].tolist() for name in names}),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(**loss),
        )
        query = context.query(**loss).select(*names)
        made = query.contingency_table(keys=self.keys, cuts=self.cuts, algorithm=self.algorithm())
        self.table = made.release()
        return self

    def sample(self, n, *, seed):
        """Records of the table; what lies beyond the outer cuts is moved to the bounds.

        A category that the library did not find has no name: one of the schema is drawn.
        """
        np.random.seed(seed)
        drawn = self.table.synthesize(rows=n)
        found = pd.DataFrame({name: drawn[name].to_list() for name in drawn.columns})
        for column in self.columns:
            if column["name"] in self.cuts:
                values = found[column["name"]].clip(column["lower"], column["upper"])
                whole = column["kind"] == "integer"
                found[column["name"]] = values.round().astype(int) if whole else values
            else:
                anything = np.random.choice(column["categories"], size=len(found))
                found[column["name"]] = found[column["name"]].fillna(pd.Series(anything))
        return found[[column["name"] for column in self.columns]]


class OpenDpAim(OpenDpTable):
    """Marginals chosen adaptively: the library's own choice."""

    def algorithm(self):
        """AIM."""
        return dp.mbi.AIM()


class OpenDpMst(OpenDpTable):
    """Pairs of columns along a spanning tree."""

    def algorithm(self):
        """MST."""
        return dp.mbi.MST()


class OpenDpFixed(OpenDpTable):
    """The marginals of all pairs of columns."""

    def algorithm(self):
        """All pairs."""
        names = [column["name"] for column in self.columns]
        return dp.mbi.Fixed(
            queries=[dp.mbi.Count(pair) for pair in itertools.combinations(names, 2)]
        )


def cuts(column):
    """Cuts of a column of numbers, evenly spaced between its bounds."""
    places = np.linspace(column["lower"], column["upper"], BINS + 1)
    return (
        sorted(set(np.rint(places).astype(int).tolist()))
        if column["kind"] == "integer"
        else places.tolist()
    )
