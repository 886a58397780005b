"""The generator satisfies its claim, as far as an audit can show."""

import numpy as np
import pandas as pd
import pytest

from dpaudit import Column, Kind, Schema
from noisy_histograms import NoisyHistograms

SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="visits", kind=Kind.INTEGER, lower=0, upper=50),
    )
)
BOUNDS = {column.name: (column.lower, column.upper) for column in SCHEMA.columns}


@pytest.fixture
def people():
    """A made-up table; one person is much older than all others."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(18, 91, size=200), "visits": rng.integers(0, 20, size=200)}
    )
    table.loc[0, "age"] = 104
    return table


def test_the_generator_satisfies_its_claim(dp_audit, people):
    generator = NoisyHistograms(bounds=BOUNDS, epsilon=1.0)
    dp_audit(generator, people, schema=SCHEMA, epsilon=1.0).assert_no_violation()
