"""The rows of the corpus: bugs that we found, that others reported, and those not proved."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from dpaudit.bugs.bug import Bug, Case, Release, Status
from dpaudit.external.environments import Environment
from dpaudit_generators.libraries import datasynthesizer, dpmm, smartnoise_synth

_HERE: Final = Path(__file__).parent


def environment(name: str, *pythons: str) -> Environment:
    """The environment of a release, named as its file of pins.

    Args:
        name: Such as "opacus-1.6.0".
        pythons: Minor versions of Python that the pins are for.
    """
    return Environment(name=name, pins=_HERE / "pins" / f"{name}.txt", pythons=pythons)


DIFFPRIVLIB: Final = environment("diffprivlib-0.6.6", "3.11")
DATASYNTHESIZER_OLD: Final = environment("datasynthesizer-0.1.4", "3.9")
DATASYNTHESIZER: Final = datasynthesizer.environment
DATASYNTHESIZER_TEXTS: Final = environment("datasynthesizer-0.1.13", "3.9")
"""With pandas 1, because the release fails on columns of texts with pandas 3."""
DPART: Final = environment("dpart-0.1.2", "3.9")
SMARTNOISE: Final = smartnoise_synth.environment
SMARTNOISE_OLD: Final = environment("smartnoise-synth-1.0.5", "3.11")
DPMM: Final = dpmm.environment
OPACUS: Final = environment("opacus-1.6.0", "3.11")


def case(
    name: str,
    method: str,
    tables: str,
    broken: Release,
    twin: Release,
    *,
    replay_access: str = "rows",
    **settings: Any,
) -> Case:
    """A case whose files are this package's own.

    Args:
        name: Name of the adapter, `adapters/NAME_adapter.py`.
        method: Class in the adapter.
        tables: Name of the tables, `tables/TABLES.csv` and what belongs to it.
        broken: The release with the bug.
        twin: The same without the bug.
        replay_access: As for `Case`.
        settings: Settings of the audit.
    """
    return Case(
        broken=broken,
        twin=twin,
        adapter=_HERE / "adapters" / f"{name}_adapter.py",
        method=method,
        tables=_HERE / "tables" / tables,
        settings=settings,
        replay_access=replay_access,
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
                account="the same release, whose step is made to add noise for a cluster without "
                "records, too, and to take its budgets in their order (a subclass in the adapter)",
                parameters={"ordered": True},
            ),
            shadow_models=200,
            rows=2,
        ),
    ),
    Bug(
        id="diffprivlib-kmeans-budgets",
        package="diffprivlib",
        versions="0.6.6",
        flaw="k-means exchanges the budgets of the count and of each sum of a cluster: with d "
        "columns it spends (1 + d r) / (d + r) of epsilon, r = (0.2025 d)^(1/3); 2.66 at 100",
        source=f"{_OURS}diffprivlib-kmeans-budgets",
        status=Status.PROVED,
        note="issue 104 of the repository names k-means too; whether for this was not read",
        case=case(
            "diffprivlib",
            "Centres",
            "diffprivlib-kmeans-budgets",
            Release(
                environment=DIFFPRIVLIB,
                account="diffprivlib 0.6.6, KMeans(2, bounds) of 100 columns, with noise for a "
                "cluster without records, too",
                parameters={"noisy": True},
            ),
            Release(
                environment=DIFFPRIVLIB,
                account="the same, whose step takes its budgets in their order (a subclass in the "
                "adapter)",
                parameters={"ordered": True},
            ),
            shadow_models=100,
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
            shadow_models=100,
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
    Bug(
        id="dpmm-static-column",
        package="dpmm",
        versions="0.1.9",
        flaw="a column of one value, or without missing ones, is recognised in the table and "
        "released as it is, although its domain is handed over: a record that alone differs shows "
        "(table_binner.py:234)",
        source=f"{_OURS}dpmm-static-column",
        status=Status.PROVED,
        case=case(
            "dpmm",
            "PrivBayes",
            "dpmm-static-column",
            Release(environment=DPMM, account="dpmm 0.1.9, PrivBayes with public domains"),
            Release(
                environment=DPMM,
                account="the same release; one public record of each category is added to every "
                "table",
                parameters={"padded": True},
            ),
            shadow_models=60,
            rows=200,
        ),
    ),
)
"""Bugs without an earlier report, as far as we know."""


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
                account="the same release and table, inputs declared within (-1, 1), for which "
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
        versions="0.1.4 (fixed in 0.1.7)",
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
            shadow_models=60,
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
        "although the transformer has public bounds and bins (mwem.py:559)",
        source="https://github.com/opendp/smartnoise-sdk/issues/473 (closed in 2022)",
        status=Status.PROVED,
        note="its noise cannot be seeded, so that no two runs prove the same",
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
            shadow_models=100,
        ),
    ),
    Bug(
        id="dpmm-categories-from-data",
        package="dpmm",
        versions="0.1.9",
        flaw="categories are read off the table where no domain is given, with a warning: a "
        "category that one record alone has appears only with it (table_binner.py:147)",
        source="issue 24 of its repository",
        status=Status.PROVED,
        case=case(
            "dpmm",
            "PrivBayes",
            "dpmm-categories-from-data",
            Release(
                environment=DPMM,
                account="dpmm 0.1.9, PrivBayes without domains",
                parameters={"public": False},
            ),
            Release(environment=DPMM, account="the same release, domains handed over"),
            shadow_models=60,
            rows=200,
        ),
    ),
    Bug(
        id="smartnoise-clipping",
        package="smartnoise-synth",
        versions="up to 1.0.5 (fixed in 1.0.6)",
        flaw="the covariances of linear regression are those of the records as they are: the "
        "clipped ones are computed and not used (dp_covariance.py:115)",
        source="https://github.com/opendp/smartnoise-sdk/issues/622",
        status=Status.PROVED,
        note="its file is loaded by itself: the package around it imports a module that "
        "scikit-learn has not had since 0.24",
        case=case(
            "smartnoise_covariance",
            "Variances",
            "smartnoise-clipping",
            Release(environment=SMARTNOISE_OLD, account="smartnoise-synth 1.0.5, DPcovariance"),
            Release(environment=SMARTNOISE, account="smartnoise-synth 1.0.8, the fix"),
            shadow_models=100,
            rows=20,
        ),
    ),
)
"""Bugs that others had reported."""


UNPROVED: Final = (
    Bug(
        id="synthcity-bounds",
        package="synthcity",
        versions="0.2.12",
        flaw="bounds and encoders are fitted to the private table",
        source="https://github.com/vanderschaarlab/synthcity/issues/278",
        status=Status.NOT_BUILT,
        note="it pins a torch whose wheels are gigabytes of CUDA; the re-created `synthcity` of "
        "this package has the flaw and is proved",
    ),
    Bug(
        id="dpsynth-sigma",
        package="dpsynth",
        versions="commits of 2026-06-16 to 2026-06-22",
        flaw="sigma is rho / 3: 0.007 instead of 8.5 at (1, 1e-5)",
        source="https://github.com/google/dpsynth, fixed by 8ecc1a1",
        status=Status.NOT_BUILT,
        note="in the repository only, never on the package index",
    ),
    Bug(
        id="smartnoise-teachers-from-rows",
        package="smartnoise-synth",
        versions="1.0.8",
        flaw="pategan has one teacher for each whole 1000 records: 999 of them end in an error, "
        "1000 in a table",
        source="read in the code",
        status=Status.READ,
        note="seen by hand; a fit of 1000 records took 19 s on a busy machine; not audited",
    ),
    Bug(
        id="dpmm-preprocessing-budget",
        package="dpmm",
        versions="0.1.9",
        flaw="the epsilon of preprocessing comes on top of epsilon",
        source="read in the code",
        status=Status.READ,
        note="0.1 on top of 1 by default: too little for an audit of hundreds of models to prove",
    ),
)
"""Bugs without a proof."""
