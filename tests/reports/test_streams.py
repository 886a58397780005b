"""Random streams of studies whose generators were renamed."""

from __future__ import annotations

import pytest

from reports.streams import stream_of


@pytest.mark.parametrize(
    ("source", "stream"),
    [
        ("pate-gan 1", "pate-gan-from-noise 1"),
        ("pate-gan-marginals, 10", "pate-gan, 10"),
        ("pate-gan-marginals", "pate-gan"),
        ("pate-gan-marginals-16-bins 1", "pate-gan-16-bins 1"),
        ("smartnoise-synth:mst-public 1", "smartnoise-synth:mst-public 1"),
        ("real records", "real records"),
        ("noise, 1, 5", "noise, 1, 5"),
    ],
)
def test_streams_of_renamed_generators_are_what_they_were(source: str, stream: str) -> None:
    assert stream_of(source) == stream
