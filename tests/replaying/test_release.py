"""Comparisons of releases by bits, and the features that a score may look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.replaying.release import (
    Number,
    ReleasedNumbers,
    ReleaseFeatures,
    are_rows,
    differing_places,
    without_model,
)
from dpaudit.replaying.transcript import FitRelease


def release(**places: Any) -> FitRelease:
    """A release whose digests are the contents; arrays are numbers as well."""
    numbers = {
        place: np.asarray(value, dtype=float)
        for place, value in places.items()
        if not isinstance(value, str)
    }
    return FitRelease(
        numbers=numbers, digests={place: str(value) for place, value in places.items()}
    )


def test_places_differ_by_content_and_by_being_there() -> None:
    assert differing_places(release(a=[1.0], b="x"), release(a=[1.0], b="x")) == ()
    assert differing_places(release(a=[1.0], b="x"), release(a=[2.0], c="x")) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("place", "said"),
    [("rows", True), ("87 rows", True), ("rows of visits", True), ("model.m", False)],
)
def test_rows_are_told_from_the_model(place: str, said: bool) -> None:
    assert are_rows(place) is said


def test_numbers_are_those_of_places_with_one_size_in_all_releases() -> None:
    first, second = release(a=[1, 2], b=[3], c=[4]), release(a=[5, 6], b=[7, 8], c=[9])
    numbers = ReleasedNumbers.shared_by([first, second], without={"c"})
    found = numbers.of(second)
    assert found is not None
    assert found.tolist() == [5.0, 6.0]
    assert numbers.of(release(a=[1])) is None
    assert list(map(str, numbers.names)) == ["a[0]", "a[1]"]
    assert numbers.names[1] == Number("a", 1)


def test_features_are_numbers_sizes_contents_and_presence() -> None:
    releases = [
        release(a=[1, 2], b=[3], text="x"),
        release(a=[5, 6], b=[7, 8], text="y", more="z"),
    ]
    features = ReleaseFeatures.of(releases)
    names = features.names
    assert names[:3] == ["`a[0]`", "`a[1]`", "the size of `b`"]
    assert names[-1] == "whether `more` is there"
    assert names.count("the content of `text`") == 2
    rows = [features.read(one) for one in releases]
    assert {one.size for one in rows} == {len(names)}
    assert rows[0][:3].tolist() == [1.0, 2.0, 1.0]
    assert rows[1][:3].tolist() == [5.0, 6.0, 2.0]
    assert [row[-1] for row in rows] == [0.0, 1.0]
    at = names.index("the content of `text`")
    assert rows[0][at] != rows[1][at]
    lacking = features.read(release(b=[1]))
    assert np.isnan(lacking[:2]).all()
    assert lacking[2] == 1.0


def test_what_differs_by_itself_is_no_feature() -> None:
    releases = [release(a=[1], at="0.1"), release(a=[2], at="0.2")]
    features = ReleaseFeatures.of(releases, without={"at"})
    assert features.names == ["`a`"]


def test_who_sees_rows_alone_sees_no_model() -> None:
    both = release(**{"rows": [1], "87 rows": [2], "model.m": [3]})
    seen = without_model(both)
    assert set(seen.digests) == set(seen.numbers) == {"rows", "87 rows"}
