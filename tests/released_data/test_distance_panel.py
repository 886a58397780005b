import numpy as np

from dpaudit.released_data.linkage import DistancePanel, distance_panel
from dpaudit.released_data.rows import find_nearest


def rows(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 5), dtype=np.float32)


def panel(train: np.ndarray, synthetic: np.ndarray, holdout: np.ndarray | None) -> DistancePanel:
    return distance_panel(
        find_nearest(synthetic, train, neighbours=2).distances,
        None if holdout is None else find_nearest(synthetic, holdout, neighbours=2).distances,
    )


def test_it_passes_although_one_record_in_fifty_is_a_copy() -> None:
    train, synthetic = rows(1000, 1), rows(1000, 2)
    synthetic[:20] = train[:20]
    for holdout in (None, rows(1000, 3)):
        assert panel(train, synthetic, holdout).passes


def test_it_does_not_pass_where_most_records_are_copies() -> None:
    train, holdout = rows(1000, 1), rows(1000, 3)
    found = panel(train, train, holdout)
    assert not found.passes
    assert not panel(train, train, None).passes
    assert (found.train.identical, found.nearer_to_train) == (1.0, 1.0)
    assert found.train.low == found.train.ratio == 0.0
    assert found.holdout is not None
    assert found.holdout.identical == 0.0


def test_records_at_equal_distances_count_half() -> None:
    train = rows(100, 1)
    found = panel(train, rows(100, 2), train)
    assert found.nearer_to_train == 0.5
    assert found.train == found.holdout
