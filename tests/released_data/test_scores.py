import numpy as np
import pandas as pd

from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.released_data.rows import column_keys, row_keys
from dpaudit.released_data.scores import ATTACKS, MATCHING, matches, membership_scores

SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=-5.0, upper=5.0) for i in range(3)),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b", "d"), missing=True),
    )
)


def table(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"x{i}": rng.normal(size=n).clip(-5, 5) for i in range(3)}
    return pd.DataFrame(numbers | {"c": np.array(["a", "b", "d", None])[rng.integers(4, size=n)]})


def test_equal_rows_have_equal_keys_and_others_do_not() -> None:
    values = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [np.nan, 1.0], [np.nan, 1.0]])
    keys = row_keys(values)
    assert keys[0] == keys[1]
    assert keys[3] == keys[4]
    assert len(set(keys.tolist())) == 3
    whole = column_keys(values)
    assert (keys - whole[:, 1] == whole[:, 0]).all()


def test_copies_score_above_all_others_by_every_attack() -> None:
    real, synthetic = table(200, 0), table(300, 1)
    synthetic.iloc[:10] = real.iloc[20:30]
    scores = membership_scores(real, synthetic, SCHEMA, of=np.arange(200)).seen
    assert tuple(scores) == ATTACKS
    copied = np.isin(np.arange(200), np.arange(20, 30))
    for name, of in scores.items():
        if name != "density-ratio":  # its fifth neighbour is not the copy
            assert of[copied].min() > np.quantile(of[~copied], 0.98), name


def test_scores_of_a_copy_are_foreseen() -> None:
    real, synthetic = table(100, 0), table(60, 1)
    foreseen = membership_scores(real, synthetic, SCHEMA, of=np.arange(100)).if_copied
    for row in (3, 50, 98):
        with_it = pd.concat([synthetic, real.iloc[[row]]], ignore_index=True)
        found = membership_scores(real, with_it, SCHEMA, of=np.array([row])).seen
        for name in ATTACKS:
            np.testing.assert_allclose(found[name][0], foreseen[name][row], rtol=1e-5, atol=1e-6)


def test_scores_of_some_rows_are_those_of_all() -> None:
    real, synthetic = table(100, 0), table(100, 1)
    everyone = membership_scores(real, synthetic, SCHEMA, of=np.arange(100)).seen
    some = membership_scores(real, synthetic, SCHEMA, of=np.array([5, 80])).seen
    for name in ATTACKS:
        np.testing.assert_allclose(some[name], everyone[name][[5, 80]], rtol=1e-6)


def test_a_copy_with_one_column_changed_still_matches() -> None:
    real, synthetic = table(100, 0), table(100, 1)
    synthetic.iloc[0] = real.iloc[7]
    synthetic.loc[0, "x1"] = 4.9
    found = matches(
        values_of_table(real, SCHEMA), values_of_table(synthetic, SCHEMA), SCHEMA, of=np.arange(100)
    ).seen
    assert found.argmax() == 7
    # Without x1 alone, and without it and each of the three others.
    assert 3.0 < found[7] <= 4.0


def test_a_match_that_others_share_counts_less() -> None:
    real = pd.concat([table(1, 0)] * 4 + [table(1, 5)], ignore_index=True)
    synthetic = pd.concat([table(1, 0), table(1, 5)], ignore_index=True)
    found = membership_scores(real, synthetic, SCHEMA, of=np.arange(5)).seen[MATCHING]
    assert (found[:4] < 0.5 * found[4]).all()
