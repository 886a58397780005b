"""smartnoise-synth 1.0.8 for the reference worker.

`defaults="library"` calls it as its documentation does: types and categories are read off the
table, and bounds are inferred with a part of epsilon. `defaults="public"` hands over a transformer
that was fitted on the schema.
"""

import random

import numpy as np
from snsynth import Synthesizer
from snsynth.transform import (
    BinTransformer,
    ChainTransformer,
    LabelTransformer,
    MinMaxTransformer,
    OneHotEncoder,
    TableTransformer,
)


class SmartnoiseMethod:
    """One synthesizer of the library; the classes below name theirs."""

    name = ""
    style = "cube"
    own = {}
    seedable = False  # the noise is OpenDP's, from the operating system

    def __init__(self, *, schema, epsilon=1.0, defaults="library", preprocessor=0.5):
        if defaults not in ("library", "public"):
            raise ValueError(f"defaults is 'library' or 'public', not {defaults!r}")
        self.columns, self.is_public = schema["columns"], defaults == "public"
        self.epsilon, self.preprocessor = epsilon, preprocessor
        made = self.synthesizer()
        self.claim = {"epsilon": made.epsilon, "delta": getattr(made, "delta", 0.0)}

    def synthesizer(self):
        """An unfitted synthesizer."""
        return Synthesizer.create(self.name, epsilon=self.epsilon, **self.own)

    def fit(self, data, *, seed):
        """Fits it; the remaining randomness, of numpy and random, is seeded."""
        seed_all(seed)
        given = {"preprocessor_eps": self.preprocessor * self.epsilon}
        if self.is_public:
            given = {"transformer": transformer(self.columns, self.style)}
        self.fitted = self.synthesizer()
        self.fitted.fit(data, **given)
        return self

    def sample(self, n, *, seed):
        """Records of the fitted synthesizer."""
        seed_all(seed)
        return self.fitted.sample(n)


class SmartnoiseMst(SmartnoiseMethod):
    """Maximum spanning tree of marginals."""

    proof = "composition"
    name = "mst"


class SmartnoiseAim(SmartnoiseMethod):
    """Marginals chosen adaptively."""

    proof = "composition"
    name = "aim"


class SmartnoiseMwem(SmartnoiseMethod):
    """Multiplicative weights on a histogram of all columns."""

    proof = "composition"
    name = "mwem"


class SmartnoiseGan(SmartnoiseMethod):
    """A GAN with the delta handed over: the library computes its own from the number of records."""

    style = "gan"
    delta = 1e-5
    own = {"delta": delta}

    @property
    def seedable(self):
        """Bounds are inferred with noise of the operating system."""
        return self.is_public


class SmartnoiseDpGan(SmartnoiseGan):
    """GAN whose discriminator is trained by DP-SGD."""

    name = "dpgan"
    seedable = False  # opacus 0.14 seeds torch from the operating system


class SmartnoiseDpCtgan(SmartnoiseGan):
    """CTGAN whose discriminator is trained by DP-SGD."""

    name = "dpctgan"


class SmartnoisePateCtgan(SmartnoiseGan):
    """CTGAN with teachers."""

    name = "patectgan"


class SmartnoisePateGan(SmartnoiseGan):
    """PATE-GAN: a teacher for each 1000 records."""

    name = "pategan"


def seed_all(seed):
    """Seeds the generators that the library draws from; None means the system's entropy."""
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.seed() if seed is None else torch.manual_seed(seed)


def transformer(columns, style):
    """What the library would infer, fitted on the schema instead of the table."""
    made = [column_transformer(column, style) for column in columns]
    return TableTransformer(made)


def column_transformer(column, style):
    """A column's transformer; integers with few values are categories, as in the library."""
    values, missing = column.get("categories"), column.get("missing", False)
    if not values and column["kind"] == "integer" and column["upper"] - column["lower"] < 150:
        values = list(range(int(column["lower"]), int(column["upper"]) + 1))
    bounds = {"lower": column.get("lower"), "upper": column.get("upper"), "nullable": missing}
    if values:
        made = LabelTransformer(nullable=missing)
        made = made if style == "cube" else ChainTransformer([made, OneHotEncoder()])
    else:
        made = BinTransformer(**bounds) if style == "cube" else MinMaxTransformer(**bounds)
        values = [column["lower"], column["upper"]]
    made.fit(values)
    return made
