"""Bugs that were found by reading releases' code for this corpus, and proved by an audit."""

from __future__ import annotations

from typing import Final

from dpaudit.bugs.bug import Bug, Release, Status
from dpaudit_generators.corpus.places import (
    DATASYNTHESIZER,
    DIFFPRIVLIB,
    DPART,
    case,
)

_OURS: Final = "ours; reports/bugs/reproductions/"

OURS: Final = (
    Bug(
        id="diffprivlib-missing-sensitivity",
        package="diffprivlib",
        versions="0.6.6",
        flaw="nanmean divides its sensitivity by the number of all values, and averages over those "
        "that are not missing alone: of 51 values one present, 51 times too little noise",
        source=f"{_OURS}diffprivlib-missing-sensitivity",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "MeanOfPresent",
            "diffprivlib-missing-sensitivity",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, nanmean(bounds)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, missing values set to the lower bound, then mean()",
                parameters={"filled": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="diffprivlib-empty-cluster",
        package="diffprivlib",
        versions="0.6.6",
        flaw="k-means adds no noise for a cluster without records and leaves its centre where it "
        "began: whether a record is alone there can be seen",
        source=f"{_OURS}diffprivlib-empty-cluster",
        status=Status.PROVED,
        note="issue 104 of the repository names k-means too; whether for this was not read",
        case=case(
            "diffprivlib",
            "Centres",
            "diffprivlib-empty-cluster",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, KMeans(2, bounds)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, whose step is made to draw a centre within the bounds "
                "for a cluster without records (a subclass in the adapter)",
                parameters={"drawn": True},
            ),
            shadow_models=200,
            rows=2,
        ),
    ),
    Bug(
        id="diffprivlib-empty-class",
        package="diffprivlib",
        versions="0.6.6",
        flaw="naive Bayes adds no noise for a class without records, although the classes are "
        "handed over: its share is 0 exactly, unless a record is alone there",
        source=f"{_OURS}diffprivlib-empty-class",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "Priors",
            "diffprivlib-classes-from-data",
            Release(
                environment=DIFFPRIVLIB,
                account="diffprivlib 0.6.6, partial_fit(X, y, classes), its class_prior_ released",
                parameters={"public": True},
            ),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release; one public record of each class is added to every table",
                parameters={"public": True, "padded": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="diffprivlib-bin-count",
        package="diffprivlib",
        versions="0.6.6",
        flaw='histogram(bins="auto") chooses the number of bins from the private values and '
        "releases it without noise or warning, a public range notwithstanding",
        source=f"{_OURS}diffprivlib-bin-count",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "Edges",
            "diffprivlib-bin-count",
            Release(environment=DIFFPRIVLIB, account='diffprivlib 0.6.6, bins="auto" and a range'),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, ten bins and a range",
                parameters={"bins": 10},
            ),
            shadow_models=100,
            rows=20,
        ),
    ),
    Bug(
        id="datasynthesizer-domain",
        package="DataSynthesizer",
        versions="0.1.13",
        flaw="correlated mode counts categories up to the last one that a record has, although the "
        "domain is handed over: the last category appears only if a record has it",
        source=f"{_OURS}datasynthesizer-domain",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "CorrelatedMode",
            "datasynthesizer-domain",
            Release(environment=DATASYNTHESIZER, account="DataSynthesizer 0.1.13, public domains"),
            Release(
                environment=DATASYNTHESIZER,
                account="the same release; one public record with the last categories is added to "
                "every table",
                parameters={"padded": True},
            ),
            shadow_models=200,
            rows=300,
        ),
    ),
    Bug(
        id="dpart-bounds",
        package="dpart",
        versions="0.1.2",
        flaw="the edges of bins are quantiles of the private values, and numbers are scaled with "
        "their extremes, although bounds are handed over",
        source=f"{_OURS}dpart-bounds (pull request 6 of the repository is about bounds that "
        "another of its engines drops)",
        status=Status.PROVED,
        case=case(
            "dpart",
            "Columns",
            "dpart-bounds",
            Release(environment=DPART, account="dpart 0.1.2, Independent(bounds)"),
            Release(
                environment=DPART,
                account="the same release; numbers are public bins before it sees them, and one "
                "public record of each bin is added to every table",
                parameters={"public": True},
            ),
            shadow_models=100,
        ),
    ),
)
"""Bugs without a source of before, as far as we know."""
