"""Tables that come with a dependency, each with a public schema."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema


class Sample(NamedTuple):
    """A table to try things on.

    Attributes:
        read: Reads it.
        schema: Makes its public schema.
    """

    read: Callable[[], pd.DataFrame]
    schema: Callable[[], Schema]


_LARGEST: Final = {
    "radius": 50.0,
    "texture": 100.0,
    "perimeter": 400.0,
    "area": 8000.0,
    "smoothness": 1.0,
    "compactness": 4.0,
    "concavity": 4.0,
    "concave points": 1.0,
    "symmetry": 1.0,
    "fractal dimension": 1.0,
}
"""What is measured of a nucleus, and how large it can be: by its definition, not by the records.

Lengths are in pixels of images in which a nucleus has a radius of at most 50; texture is a standard
deviation of 8-bit grey values; the others are ratios.
"""
_ERROR: Final = 0.16
"""A standard error of ten nuclei or more, as a share of the range: at most 1 / (2 sqrt(10))."""
_FORMS: Final = (("mean {}", 1.0), ("{} error", _ERROR), ("worst {}", 1.0))
_LABEL: Final = "benign"


def _breast_cancer() -> pd.DataFrame:
    """The table that comes with scikit-learn, from its file: the import costs half a second."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None  # a dependency
    assert package.origin is not None
    file = Path(package.origin).with_name("datasets") / "data" / "breast_cancer.csv"
    names = [form.format(of) for form, _ in _FORMS for of in _LARGEST]
    values = np.loadtxt(file, delimiter=",", skiprows=1)
    return pd.DataFrame(values, columns=[*names, _LABEL]).astype({_LABEL: np.int64})


def _breast_cancer_schema() -> Schema:
    """Bounds from the definitions of the columns: public, whoever was examined."""
    numbers = tuple(
        Column(name=form.format(of), kind=Kind.CONTINUOUS, lower=0.0, upper=share * largest)
        for form, share in _FORMS
        for of, largest in _LARGEST.items()
    )
    label = Column(name=_LABEL, kind=Kind.BINARY, categories=(0, 1))
    return Schema(columns=(*numbers, label), label=_LABEL)


SAMPLES: Final[Mapping[str, Sample]] = {
    "breast-cancer": Sample(_breast_cancer, _breast_cancer_schema)
}
"""The samples by name."""
