"""The rows of the corpus that a replay found first."""

from __future__ import annotations

from typing import Final

from dpaudit.bugs.bug import Bug, Release, Status
from dpaudit_generators.corpus.rows import DATASYNTHESIZER_TEXTS, DIFFPRIVLIB, DPART, case
from dpaudit_generators.libraries import privsyn_core, synthpriv

SYNTHPRIV: Final = synthpriv.environment
PRIVSYN: Final = privsyn_core.environment
_OURS: Final = "ours; reports/bugs/reproductions/"

REPLAYED: Final = (
    Bug(
        id="synthpriv-fixed-seed",
        package="synthpriv",
        versions="0.2.1",
        flaw="the noise of dp-copula is drawn from seed 0 unless another is given, so it is a "
        "public constant (copula.py:84)",
        source=f"{_OURS}synthpriv-fixed-seed",
        status=Status.PROVED,
        case=case(
            "synthpriv",
            "Copula",
            "synthpriv-fixed-seed",
            Release(
                environment=SYNTHPRIV,
                account="synthpriv 0.2.1, DPCopulaGenerator(privacy, bounds=...)",
                parameters={"seeded": False},
            ),
            Release(
                environment=SYNTHPRIV,
                account="the same release, a fresh random_state for every training",
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="synthpriv-copula-categories",
        package="synthpriv",
        versions="0.2.1",
        flaw="dp-copula takes categories from the table and no argument or warning is about that: "
        "a category that one record alone has appears only with it (copula.py:162)",
        source=f"{_OURS}synthpriv-copula-categories",
        status=Status.PROVED,
        case=case(
            "synthpriv",
            "Copula",
            "synthpriv-copula-categories",
            Release(environment=SYNTHPRIV, account="synthpriv 0.2.1, a fresh random_state"),
            Release(
                environment=SYNTHPRIV,
                account="the same release; one public record of each category is added to every "
                "table",
                parameters={"padded": True},
            ),
            shadow_models=60,
            rows=100,
        ),
    ),
    Bug(
        id="synthpriv-copula-ranks",
        package="synthpriv",
        versions="0.2.1",
        flaw="the noise of dp-copula's correlations covers one term of a sum over records, but a "
        "record that is removed changes the ranks of all others (copula.py:146)",
        source=f"{_OURS}synthpriv-copula-ranks",
        status=Status.PROVED,
        case=case(
            "synthpriv",
            "Copula",
            "synthpriv-copula-ranks",
            Release(environment=SYNTHPRIV, account="synthpriv 0.2.1, bounds and a fresh seed"),
            Release(
                environment=SYNTHPRIV,
                account="the same release with one expression changed: noise for a correlation "
                "that moves by up to 2 (in the adapter)",
                parameters={"wide": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="privsyn-fixed-seed",
        package="privsyn-core",
        versions="0.1.1",
        flaw="the README's `random_state=0` seeds numpy before all noise is drawn, so the noise is "
        "a public constant (privsyn/api.py:54)",
        source=f"{_OURS}privsyn-fixed-seed",
        status=Status.PROVED,
        case=case(
            "privsyn",
            "Whole",
            "privsyn-fixed-seed",
            Release(
                environment=PRIVSYN,
                account="privsyn-core 0.1.1 as its README calls it",
                parameters={"seeded": False},
            ),
            Release(
                environment=PRIVSYN,
                account="the same release, a fresh random_state for every training",
            ),
            replay_access="model",
            shadow_models=100,
        ),
    ),
    Bug(
        id="diffprivlib-sum-missing",
        package="diffprivlib",
        versions="0.6.6",
        flaw="nansum has noise for a value that moves between the bounds, but counts a missing one "
        "as 0: with bounds (100, 102) a value that goes missing moves the sum by 102, not by 2 "
        "(tools/utils.py:739)",
        source=f"{_OURS}diffprivlib-sum-missing",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "SumOfPresent",
            "diffprivlib-sum-missing",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, nansum(bounds)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, missing values set to the lower bound first",
                parameters={"filled": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="diffprivlib-median-missing",
        package="diffprivlib",
        versions="0.6.6",
        flaw="quantile, percentile and median return NaN, always and only, if a value is missing "
        "(tools/quantiles.py:135)",
        source="a TODO at that line names issue 80 of the repository; "
        "reports/bugs/reproductions/diffprivlib-median-missing",
        status=Status.PROVED,
        case=case(
            "diffprivlib",
            "Median",
            "diffprivlib-median-missing",
            Release(environment=DIFFPRIVLIB, account="diffprivlib 0.6.6, median(bounds)"),
            Release(
                environment=DIFFPRIVLIB,
                account="the same release, missing values set to the lower bound first",
                parameters={"filled": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="dpart-categories",
        package="dpart",
        versions="0.1.2",
        flaw="categories are those of the table, although bounds hand them over: the encoder of "
        "bins fits itself again (bin_encoder.py:15), so that a category that one record alone has "
        "appears only with it",
        source=f"{_OURS}dpart-categories",
        status=Status.PROVED,
        case=case(
            "dpart_engines",
            "Categories",
            "dpart-categories",
            Release(environment=DPART, account="dpart 0.1.2, Independent(bounds with categories)"),
            Release(
                environment=DPART,
                account="the same release; one public record of each category is added to every "
                "table",
                parameters={"padded": True},
            ),
            shadow_models=60,
            rows=100,
        ),
    ),
    Bug(
        id="dpart-residuals",
        package="dpart",
        versions="0.1.2",
        flaw="the noise of a regression's residuals is for numbers between 0 and 1, but these are "
        "scaled to their bounds: with bounds (0, 1000) a thousand times too little "
        "(regressor_sampler.py:53)",
        source=f"{_OURS}dpart-residuals",
        status=Status.PROVED,
        case=case(
            "dpart_engines",
            "Residuals",
            "dpart-residuals",
            Release(
                environment=DPART,
                account="dpart 0.1.2, DPsynthpop(bounds); public records at both bounds are added "
                "to every table",
            ),
            Release(
                environment=DPART,
                account="the same, of numbers that are scaled to (0, 1) before",
                parameters={"unit": True},
            ),
            shadow_models=100,
            rows=300,
        ),
    ),
    Bug(
        id="datasynthesizer-text-lengths",
        package="DataSynthesizer",
        versions="0.1.13",
        flaw="the lengths of texts that are no categories range from the shortest to the longest "
        "of the table, and no argument changes that (StringAttribute.py:48)",
        source=f"{_OURS}datasynthesizer-text-lengths",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "Strings",
            "datasynthesizer-text-lengths",
            Release(
                environment=DATASYNTHESIZER_TEXTS, account="DataSynthesizer 0.1.13, types given"
            ),
            Release(
                environment=DATASYNTHESIZER_TEXTS,
                account="the same release; public texts of the least and the greatest length are "
                "added to every table",
                parameters={"padded": True},
            ),
            shadow_models=100,
        ),
    ),
    Bug(
        id="datasynthesizer-text-budget",
        package="DataSynthesizer",
        versions="0.1.13",
        flaw="epsilon is divided by the number of columns without those of texts that are no "
        "categories, each of which then costs a share, too (DataDescriber.py:291)",
        source=f"{_OURS}datasynthesizer-text-budget",
        status=Status.PROVED,
        case=case(
            "datasynthesizer",
            "Strings",
            "datasynthesizer-text-budget",
            Release(
                environment=DATASYNTHESIZER_TEXTS,
                account="DataSynthesizer 0.1.13, six columns of texts and one of categories; "
                "public texts of the least and the greatest length are added to every table",
                parameters={"padded": True},
            ),
            Release(
                environment=DATASYNTHESIZER_TEXTS,
                account="the same, with epsilon divided by all seven columns before",
                parameters={"padded": True, "counted": True},
            ),
            shadow_models=100,
        ),
    ),
)
"""Bugs whose first evidence was a replay."""
