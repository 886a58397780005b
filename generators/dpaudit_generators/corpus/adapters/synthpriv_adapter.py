"""synthpriv 0.2.1: the Gaussian copula, with bounds of numbers handed over."""

import textwrap
from inspect import getsourcelines, iscode
from types import FunctionType

import numpy as np
import pandas as pd
from synthpriv.dp import copula
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.privacy.mechanisms import DPSGD

LINE = "scale = (B * B / max(n, 2)) / eps_entry"


def with_wide_noise():
    """The library's `fit` with one expression changed: a correlation may move by up to 2."""
    lines, first = getsourcelines(DPCopulaGenerator.fit)
    source = textwrap.dedent("".join(lines))
    if source.count(LINE) != 1:
        raise ImportError("this release of synthpriv does not have the line that is changed")
    changed = "\n" * (first - 1) + source.replace(LINE, "scale = 2.0 / eps_entry")
    [code] = [one for one in compile(changed, copula.__file__, "exec").co_consts if iscode(one)]
    return FunctionType(code, vars(copula), argdefs=DPCopulaGenerator.fit.__defaults__)


class WideNoise(DPCopulaGenerator):
    """The library's copula with noise for whatever one record changes of a correlation."""

    fit = with_wide_noise()


class Copula:
    """dp-copula; with `seeded` its noise has the seed of the fit, else the library's default.

    With `padded`, one public record of each category is added to any table.
    """

    proof = "composition"

    def __init__(self, *, schema, epsilon=1.0, seeded=True, padded=False, wide=False):
        self.columns, self.seeded, self.padded = schema["columns"], seeded, padded
        self.kind = WideNoise if wide else DPCopulaGenerator
        self.claim = {"epsilon": epsilon}

    def fit(self, data, *, seed):
        numbers = [column for column in self.columns if "lower" in column]
        domains = {c["name"]: c["categories"] for c in self.columns if "categories" in c}
        if self.padded:
            most = max(map(len, domains.values()))
            padding = {name: np.resize(domain, most) for name, domain in domains.items()}
            data = pd.concat([data, pd.DataFrame(padding)], ignore_index=True)
        self.model = self.kind(
            privacy=DPSGD(epsilon=self.claim["epsilon"]),
            bounds={column["name"]: (column["lower"], column["upper"]) for column in numbers},
            **({"random_state": seed} if self.seeded else {}),
        )
        self.model.fit(data)
        return self

    def sample(self, n, *, seed):
        return self.model.sample(n)
