import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from dpaudit.errors import MissingExtraError, SettingsError
from dpaudit.model.schema import Schema
from dpaudit.released_data import rows as module
from dpaudit.released_data.rows import encode, find_nearest, nearest_others


def rows(n: int, width: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, width), dtype=np.float32)


def by_hand(queries: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return np.linalg.norm(queries[:, None] - reference[None], axis=2)


def test_it_finds_what_comparing_every_pair_finds() -> None:
    queries, reference = rows(50), rows(200, seed=1)
    found = find_nearest(queries, reference, neighbours=3)
    expected = by_hand(queries, reference)
    assert (found.indices == expected.argsort(axis=1)[:, :3]).all()
    assert found.distances == pytest.approx(np.sort(expected, axis=1)[:, :3], abs=1e-6)


def test_a_copy_is_at_zero_not_at_a_rounding_error() -> None:
    reference = rows(300, width=100)
    found = find_nearest(reference[40:60], reference, neighbours=1)
    assert (found.distances == 0.0).all()
    assert (found.indices[:, 0] == np.arange(40, 60)).all()


def test_a_row_is_not_its_own_neighbour_but_its_copy_is() -> None:
    table = np.concatenate([rows(30), np.full((4, 6), 0.5, np.float32)])
    found = nearest_others(table, neighbours=2)
    assert (found.indices != np.arange(34)[:, None]).all()
    assert (found.distances[30:] == 0.0).all()
    assert (found.distances[:30] > 0.0).all()
    expected = by_hand(table, table) + np.diag(np.full(34, np.inf))
    assert found.distances == pytest.approx(np.sort(expected, axis=1)[:, :2], abs=1e-6)


@pytest.mark.parametrize("neighbours", [0, 11])
def test_more_neighbours_than_rows_are_refused(neighbours: int) -> None:
    with pytest.raises(SettingsError, match="from 1 to 10"):
        find_nearest(rows(3), rows(10), neighbours=neighbours)
    with pytest.raises(SettingsError, match="from 1 to 9"):
        nearest_others(rows(10), neighbours=10 if neighbours else 0)


def test_no_query_has_no_neighbours() -> None:
    assert find_nearest(rows(0), rows(10), neighbours=2).distances.shape == (0, 2)


def test_large_tables_ask_for_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[large\]'"):
        find_nearest(rows(3), rows(10), neighbours=1)


def test_the_index_finds_every_copy_and_nearly_every_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = rows(20_000, width=12)
    queries = np.concatenate([reference[:500], rows(500, width=12, seed=1)])
    exact = find_nearest(queries, reference, neighbours=2)
    monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 400)
    shares: list[float] = []
    found = find_nearest(queries, reference, neighbours=2, on_share=shares.append)
    assert shares == [0.4, 0.8, 1.0]
    assert (found.distances[:500, 0] == 0.0).all()
    assert np.isclose(found.distances, exact.distances, atol=1e-6).mean() > 0.9
    assert (found.distances >= exact.distances - 1e-6).all()


@pytest.mark.parametrize("large", [10, 10**12])
def test_distances_do_not_depend_on_the_number_of_threads(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", large)
    monkeypatch.setattr(module, "_QUERIES_AT_ONCE", 400)
    found = []
    for threads in (1, 2):
        monkeypatch.setattr("loky.cpu_count", lambda threads=threads: threads)
        with threadpool_limits(limits=threads):
            found.append(nearest_others(rows(3_000, width=40), neighbours=3))
    assert (found[0].distances == found[1].distances).all()
    assert (found[0].indices == found[1].indices).all()


def test_lists_with_fewer_rows_than_neighbours_are_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LARGE", 10)
    monkeypatch.setattr(module, "_PER_LIST", 2)
    monkeypatch.setattr(module, "_MOST_SEARCHED", 1)
    monkeypatch.setattr(module, "_SEARCHED", 1)
    reference = rows(40)
    found = find_nearest(reference, reference, neighbours=12)
    assert (found.distances[:, 0] == 0.0).all()
    assert np.isfinite(found.distances).all()
    assert ((found.indices >= 0) & (found.indices < 40)).all()


def test_the_index_is_searched_where_nearly_all_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MANY", 10)
    reference = rows(2_000, width=12)
    queries = np.concatenate([reference[:50], rows(50, width=12, seed=1)])
    exact = find_nearest(queries, reference, neighbours=2)
    for _ in range(2):
        found = find_nearest(queries, reference, neighbours=2, exact=False)
        assert (found.distances[:50, 0] == 0.0).all()
        assert np.isclose(found.distances, exact.distances, atol=1e-6).mean() > 0.9
        monkeypatch.setitem(__import__("sys").modules, "faiss", None)


def test_encoding_block_by_block_is_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"x": [0.0, 1.0, 4.0], "c": ["a", "b", "a"]})
    schema = Schema.infer(table)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 2)
    found = encode(table, schema)
    assert found.dtype == np.float32
    assert found.tolist() == [[0.0, 1.0, 0.0], [0.25, 0.0, 1.0], [1.0, 1.0, 0.0]]
