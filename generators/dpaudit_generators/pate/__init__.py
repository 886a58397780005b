"""Private Aggregation of Teacher Ensembles (Papernot et al. 2017, 2018), usable on its own.

`Pate` fits any classifiers on disjoint cells of a private table, releases a fixed number of noisy
labels of public rows and fits a student on them. PATE-GAN uses the same parts: `cells` assigns
records to teachers, `LabelRelease` draws labels from a public table, `RandomBits` and the discrete
noise use integers only. Importing this package imports neither torch nor scikit-learn.
"""

from __future__ import annotations

from dpaudit_generators.pate.ensemble import (
    Classifier,
    Labelled,
    Pate,
    Student,
    TeacherEnsemble,
    TorchClassifier,
    labelled,
)
from dpaudit_generators.pate.release import (
    Aggregation,
    Answers,
    ClassRelease,
    ConfidentRelease,
    IndexArray,
    LabelRelease,
    LabelReleases,
    RandomBits,
    cells,
    discrete_gaussian,
    discrete_laplace,
)

__all__ = [
    "Aggregation",
    "Answers",
    "ClassRelease",
    "Classifier",
    "ConfidentRelease",
    "IndexArray",
    "LabelRelease",
    "LabelReleases",
    "Labelled",
    "Pate",
    "RandomBits",
    "Student",
    "TeacherEnsemble",
    "TorchClassifier",
    "cells",
    "discrete_gaussian",
    "discrete_laplace",
    "labelled",
]
