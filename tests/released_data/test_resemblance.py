"""The red flag for training rows with small changes: raised for these, not for honest tables."""

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.released_data.conclusion import ReleasedFinding
from dpaudit.released_data.resemblance import Resemblance, find_resemblance
from dpaudit.released_data.tables import load_released


def people(n: int, seed: int) -> pd.DataFrame:
    """Ages, heaped hours, skewed incomes on a huge scale, missing values and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "hours": rng.choice([20, 35, 40, 40, 40, 45, 60], n),
            "income": rng.lognormal(20.0, 2.0, n),
            "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(170, 10, n).round()),
            "job": rng.choice(list("abcdefg"), n),
            "sex": rng.choice(["f", "m"], n),
        }
    )


TRAIN, OTHERS = people(500, 1), people(500, 2)


def resemblance(synthetic: pd.DataFrame, train: pd.DataFrame = TRAIN) -> Resemblance | None:
    tables = load_released(train, synthetic)
    rng = np.random.default_rng(0)
    return find_resemblance(tables.train, tables.synthetic, tables.schema, rng)


def jittered() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    age, hours = (rng.integers(-most, most + 1, len(TRAIN)) for most in (2, 1))
    changed = {"age": TRAIN["age"] + age, "hours": TRAIN["hours"] + hours}
    return TRAIN.assign(**changed, income=1.01 * TRAIN["income"])


def permuted() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    return pd.DataFrame({name: rng.permutation(TRAIN[name]) for name in TRAIN})


@pytest.mark.parametrize(
    "changed",
    [
        jittered(),
        TRAIN.assign(income=1.01 * TRAIN["income"]),
        TRAIN.assign(height=TRAIN["height"] + 1.0),
        TRAIN.assign(job=TRAIN["job"].sample(frac=1.0, random_state=1).to_numpy()),
        TRAIN.sample(frac=1.0, random_state=1),
    ],
)
def test_training_rows_with_small_changes_are_flagged(changed: pd.DataFrame) -> None:
    found = resemblance(changed)
    assert found is not None
    assert found.flagged


@pytest.mark.parametrize(
    "honest",
    [
        OTHERS,
        OTHERS.sample(500, replace=True, random_state=1),
        permuted(),
        OTHERS.assign(age=OTHERS["age"] // 10 * 10 + 5, income=OTHERS["income"].round(-9)),
        OTHERS.assign(hours=OTHERS["hours"] + 0.37),  # between the heaps of real hours
    ],
)
def test_rows_of_other_people_are_not(honest: pd.DataFrame) -> None:
    found = resemblance(honest)
    assert found is not None
    assert not found.flagged


def test_a_table_of_the_same_few_rows_is_not_compared() -> None:
    assert resemblance(TRAIN[:1].sample(400, replace=True)) is None
    assert resemblance(jittered()[:100], TRAIN[:100]) is None


def test_rows_around_one_training_row_count_once() -> None:
    rng = np.random.default_rng(5)
    around = TRAIN.iloc[np.full(450, 7)].assign(
        income=TRAIN["income"][7] * rng.uniform(1, 1.01, 450)
    )
    found = resemblance(pd.concat([around, OTHERS[:50]], ignore_index=True))
    assert found is None or not found.flagged


def test_the_flag_is_in_the_headline_and_proves_nothing() -> None:
    flagged = dpaudit.audit_data(jittered(), TRAIN, secrets=["sex"])
    assert flagged.finding is ReleasedFinding.INCONCLUSIVE
    assert flagged.headline.startswith("INCONCLUSIVE  red flag: ")
    assert "no proof" in flagged.headline
    assert "Do not release" in str(flagged)
    honest = dpaudit.audit_data(OTHERS, TRAIN, secrets=["sex"])
    assert "red flag" not in str(honest)
    assert "would pass" not in str(honest)
