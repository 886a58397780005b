"""A maintainer's story: a promise kept, broken by a change, and found out by the same tests."""

from __future__ import annotations

import json
import sys

import pytest

GENERATOR = '''
"""Synthetic people from a noisy histogram of their ages."""

import numpy as np
import pandas as pd

BINS = 8


class NoisyAges:
    """Laplace noise on the counts of public bins; one record more or less changes one count by one.

    Args:
        epsilon: The promise.
        bounds: Public bounds of the ages.
    """

    def __init__(self, epsilon, *, bounds):
        self.epsilon = epsilon
        self.bounds = bounds

    def fit(self, data, *, seed):
        rng = np.random.default_rng(seed)
        counts, self.edges = np.histogram(data["age"], bins=BINS, range=self.bounds)
        noisy = np.clip(counts + rng.laplace(scale=1 / self.epsilon, size=BINS), 0.0, None)
        self.shares = (noisy + 1e-9) / (noisy + 1e-9).sum()
        return self

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        bins = rng.choice(BINS, size=n, p=self.shares)
        ages = rng.uniform(self.edges[bins], self.edges[bins + 1])
        return pd.DataFrame({"age": ages.round(), "sex": rng.integers(0, 2, n)})
'''

SHORTCUT = GENERATOR.replace("range=self.bounds", 'range=(data["age"].min(), data["age"].max())')
"""What someone takes for an improvement: bins where the data is."""

SUITE = """
import numpy as np
import pandas as pd
import pytest

from dpaudit import Column, Kind, Schema
from people import NoisyAges

QUICK = "groundhog-naive,classifier=logistic-regression"
rng = np.random.default_rng(0)
ages = np.append(rng.integers(20, 60, 79), 97)
people = pd.DataFrame({"age": ages, "sex": rng.integers(0, 2, 80)})
schema = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=100),
        Column(name="sex", kind=Kind.BINARY, categories=(0, 1)),
    )
)


@pytest.mark.dpaudit(epsilon=1.0, attacks=[QUICK], schema=schema, jobs=1)
def test_promise(dp_audit):
    dp_audit(NoisyAges(1.0, bounds=(0, 100)), people).assert_no_violation()
"""


@pytest.mark.slow
def test_a_shortcut_fails_the_suite_by_name_shows_in_the_baseline_and_can_be_drawn(
    pytester: pytest.Pytester,
) -> None:
    package = pytester.mkpydir("people")
    pytester.syspathinsert()
    pytester.makepyfile(SUITE)
    pytester.makeini("[pytest]\ndpaudit_baseline = privacy.json\n")

    (package / "__init__.py").write_text(GENERATOR)
    words = ("--dpaudit-baseline-update", "--basetemp", "before")
    pytester.runpytest_subprocess(*words).assert_outcomes(passed=1)
    [line] = json.loads((pytester.path / "privacy.json").read_text())["audits"].values()
    assert line["proved"] < 1.0

    (package / "__init__.py").write_text(SHORTCUT)
    broken = pytester.runpytest_subprocess("--basetemp", "after")
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(
        [
            "REGRESSION: the AUC of the attack has risen from * since the baseline*",
            "VIOLATION  claimed epsilon 1, empirical epsilon at least *",
            "leak      maximum (age)*",
            "report    *after*report.html",
        ]
    )

    runs = [f"{when}/test_promise0/dpaudit-1" for when in ("before", "after")]
    drawn = pytester.run(
        *(sys.executable, "-m", "dpaudit", "compare", *runs, "--out", "compare.html")
    )
    assert drawn.ret == 0
    drawn.stdout.fnmatch_lines(["changed * compared with*", "* source code * (was*"])
    page = (pytester.path / "compare.html").read_text()
    assert "<svg" in page
    assert "1 of 2 runs violates its claim" in page
    assert all(run.partition("/")[0] in page for run in runs)
