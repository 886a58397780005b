"""Both PATE-GANs with a proof, and the random streams of when they had one name."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.model.tables import Table, load
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.registry import GENERATORS, resolve
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals


@pytest.fixture(scope="module")
def cancer() -> Table:
    return load("sample:breast-cancer", None)


def test_each_name_has_one_start(cancer: Table) -> None:
    assert resolve("pate-gan", GENERATORS) is PateGan
    assert resolve("pate-gan-marginals", GENERATORS) is PateGanMarginals
    assert PateGan(schema=cancer.schema).marginals is None
    assert PateGanMarginals(schema=cancer.schema).marginals is not None


@pytest.mark.parametrize(
    ("name", "given", "stream"),
    [
        ("pate-gan", {}, {"start": "noise", "rounds": 40}),
        ("pate-gan", {"rounds": 7}, {"start": "noise", "rounds": 7}),
        ("pate-gan-marginals", {"bins": 4}, {"bins": 4}),
    ],
)
def test_streams_have_the_name_and_parameters_of_before(
    cancer: Table, name: str, given: dict[str, Any], stream: dict[str, Any]
) -> None:
    named = named_generator(name, given, {"schema": cancer.schema})
    assert (named.stream_name, named.stream_parameters) == ("pate-gan", stream)


@pytest.mark.parametrize(
    ("name", "given", "identity"),
    [
        ("pate-gan-marginals", {}, "940baa64a3bb45ea3c7a99d0fe5523ac"),
        ("pate-gan-marginals", {"bins": 4, "epsilon": 2.0}, "90485c9472946f607804a3cada3528e1"),
        ("pate-gan", {}, "566ad31083fdc88cbb97c98f0c539c65"),
        ("pate-gan", {"bounds": "data"}, "a0447fac5389b16302c47190bf5c114c"),
    ],
)
def test_audits_have_the_identity_of_before(
    cancer: Table, name: str, given: dict[str, Any], identity: str
) -> None:
    """The digests are those of `pate-gan` with `start=marginals` and `start=noise`, 40 rounds."""
    assert build_spec(name, cancer, audit_settings(parameters=given)).id == identity
