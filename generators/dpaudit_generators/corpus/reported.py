"""Bugs that others reported or fixed before."""

from __future__ import annotations

from typing import Final

from dpaudit.bugs.bug import Bug, Release, Status
from dpaudit_generators.corpus.places import (
    DATASYNTHESIZER,
    DATASYNTHESIZER_OLD,
    DIFFPRIVLIB,
    OPACUS,
    SMARTNOISE,
    case,
)

_IBM: Final = "https://github.com/IBM/differential-privacy-library/issues"
_DATASYNTHESIZER: Final = "https://github.com/DataResponsibly/DataSynthesizer/issues"

REPORTED: Final = (
    Bug(
        id="diffprivlib-linear-sensitivity",
        package="diffprivlib",
        versions="0.6.6",
        flaw="linear regression takes the sensitivity of each squared input from its lower bound "
        "alone: 0 where that is 0, and the sum of squares then has no noise",
        source=f"{_IBM}/105 (open), 104",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "Regression",
            "diffprivlib-linear-sensitivity",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, inputs within (0, 1)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release and table, inputs said to be within (-1, 1), for which "
                "its formula is right",
                parameters={"symmetric": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="diffprivlib-classes-from-data",
        package="diffprivlib",
        versions="0.6.6",
        flaw="naive Bayes takes its classes from the private labels, without a warning: a class "
        "that one record alone has is in the model",
        source=f"{_IBM}/106 (open)",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "Classes",
            "diffprivlib-classes-from-data",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, fit(X, y)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, all classes handed over: partial_fit(X, y, classes)",
                parameters={"public": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="datasynthesizer-fixed-seed",
        package="DataSynthesizer",
        versions="0.1.13",
        flaw="the noise is drawn from seed 0 unless another is given, so it is a public constant",
        source="read in the code; a default of `describe_dataset_in_independent_attribute_mode`",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "IndependentMode",
            "datasynthesizer-fixed-seed",
            Release(
                environment=DATASYNTHESIZER,
                account="DataSynthesizer 0.1.13, ranges and categories handed over",
                parameters={"seed": "default"},
            ),
            Release(
                environment=DATASYNTHESIZER,
                account="the same release, a fresh seed for every training handed over too",
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="datasynthesizer-ranges",
        package="DataSynthesizer",
        versions="0.1.13",
        flaw="ranges, categories and types of columns are read off the table where none are given",
        source="read in the code; published audits name it too",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "IndependentMode",
            "datasynthesizer-ranges",
            Release(
                environment=DATASYNTHESIZER,
                account="DataSynthesizer 0.1.13 as its README calls it, but with fresh seeds",
                parameters={"ranges": False},
            ),
            Release(
                environment=DATASYNTHESIZER,
                account="the same release, public ranges handed over",
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="datasynthesizer-noise-divided",
        package="DataSynthesizer",
        versions="0.1.4 (fixed in 0.1.13 at the latest)",
        flaw="the noise for frequencies is added to counts: PrivBayes has too little of it by a "
        "factor of half the number of records",
        source=f"{_DATASYNTHESIZER}/34",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "CorrelatedMode",
            "datasynthesizer-noise-divided",
            Release(environment=DATASYNTHESIZER_OLD, account="DataSynthesizer 0.1.4"),
            Release(environment=DATASYNTHESIZER, account="DataSynthesizer 0.1.13, the fix"),
            shadow_models=100,
            rows=300,
        ),
    ),
    Bug(
        id="opacus-cardinality",
        package="opacus",
        versions="1.0.0 to 1.6.0",
        flaw="the number of steps and the rate of sampling are functions of the number of records, "
        "and neither is protected: what a step does without noise shows how many there were",
        source="https://github.com/meta-pytorch/opacus/issues/571, 819",
        status=Status.PROVED,
        case=case(
            "opacus",
            "Weight",
            "opacus-cardinality",
            Release(environment=OPACUS, account="opacus 1.6.0, a data loader with a batch size"),
            Release(
                environment=OPACUS,
                account="the same release, a data loader with a public rate of sampling",
                parameters={"rate": 0.5},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="smartnoise-mwem-bounds",
        package="smartnoise-synth",
        versions="1.0.8",
        flaw="MWEM's histogram reaches from the least to the greatest bin that a record is in, "
        "although the transformer has public bounds and bins",
        source="https://github.com/opendp/smartnoise-sdk/issues/473 (closed in 2022)",
        status=Status.READ,
        note="its noise cannot be seeded: of two runs with 100 models one proved 1.78 and "
        "one nothing; with the 400 that it has now it was not run",
        case=case(
            "smartnoise",
            "MwemOfBins",
            "smartnoise-mwem-bounds",
            Release(environment=SMARTNOISE, account="smartnoise-synth 1.0.8, public bounds"),
            Release(
                environment=SMARTNOISE,
                account="the same release; public records at both bounds are added to every table",
                parameters={"padded": True},
            ),
            shadow_models=400,
        ),
    ),
)
"""Bugs with a source of before."""
