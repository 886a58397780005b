"""Bugs that no audit of ours proves, and why."""

from __future__ import annotations

from typing import Final

from dpaudit.bugs.bug import Bug, Status

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
        id="smartnoise-clipping",
        package="smartnoise-synth",
        versions="up to 1.0.8 (which: unchecked)",
        flaw="clipped data are computed, and the unclipped are used",
        source="https://github.com/opendp/smartnoise-sdk/issues/622, pull request 624",
        status=Status.READ,
        note="no case was made",
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
        id="dpmm-categories-from-data",
        package="dpmm",
        versions="0.1.9",
        flaw="categories are read off the table where no domain is given (it warns of that)",
        source="issue 24 of its repository",
        status=Status.READ,
        note="no audit was run to its end: a fit took 2 to 8 s on a busy machine",
    ),
    Bug(
        id="dpmm-static-column",
        package="dpmm",
        versions="0.1.9",
        flaw="a column of one value, or without missing ones, is recognised in the table and "
        "released as it is, although its domain is handed over: a record that alone differs shows",
        source="ours; read in its table binner",
        status=Status.READ,
        note="no audit was run to its end, as for dpmm-categories-from-data",
    ),
    Bug(
        id="dpmm-preprocessing-budget",
        package="dpmm",
        versions="0.1.9",
        flaw="the epsilon of preprocessing comes on top of epsilon",
        source="read in the code",
        status=Status.READ,
        note="0.1 beside 1 by default: too little for an audit of hundreds of models to prove",
    ),
)
"""Bugs without a proof."""
