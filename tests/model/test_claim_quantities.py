"""Claims in mu, rho and a privacy curve: which have a meaning, and what follows for neighbours."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.claim import (
    ConcentratedClaim,
    CurveClaim,
    CurvePoint,
    GaussianClaim,
    Neighbours,
    PrivacyClaim,
    Quantity,
    read_curve,
    require_epsilon,
    written_out,
)

POINTS = (CurvePoint(0.5, 1e-3), CurvePoint(1.0, 1e-5))


@pytest.mark.parametrize("value", [math.nan, math.inf, 0, -1])
def test_mu_and_rho_must_be_positive_and_finite(value: float) -> None:
    with pytest.raises(ClaimError, match="mu must be a number greater than 0"):
        GaussianClaim(mu=value)
    with pytest.raises(ClaimError, match="rho must be a number greater than 0"):
        ConcentratedClaim(rho=value)


def test_group_privacy_for_two_records() -> None:
    # Dong, Roth and Su 2022, Theorem 2.14; Bun and Steinke 2016, Proposition 1.9.
    replace_one = Neighbours.REPLACE_ONE
    assert GaussianClaim(mu=0.5).under(replace_one).mu == 1.0
    assert ConcentratedClaim(rho=0.5).under(replace_one).rho == 2.0
    curve = CurveClaim(points=POINTS).under(replace_one)
    own = PrivacyClaim(epsilon=1.0, delta=1e-5).under(replace_one)
    assert curve.points[1] == (own.epsilon, own.delta)
    for claim in (GaussianClaim(mu=1.0), ConcentratedClaim(rho=1.0), CurveClaim(points=POINTS)):
        assert claim.under(claim.neighbours) is claim
        with pytest.raises(ClaimError, match="says nothing about add-remove ones"):
            claim.under(replace_one).under(Neighbours.ADD_REMOVE)


def test_a_curve_is_in_order_and_every_point_has_a_meaning() -> None:
    given = [[1.0, 1e-5], ["0.5", 0.001]]
    assert CurveClaim(points=given).points == POINTS  # type: ignore[arg-type]  # it takes pairs
    for points, said in (
        ([], "has 1 to 1000 points, got 0"),
        ([(1, 0.1), (1, 0.2)], "two points of epsilon 1"),
        ([(1, 0.1), (0, 0.2)], "point 2 of the curve: epsilon must be a number greater than 0"),
        ([(1, 2)], r"point 1 of the curve: delta must be in \[0, 1\)"),
        ([(1,)], "point 1 of the curve is .* give a pair"),
        ([5], "point 1 of the curve is 5: give a pair"),
    ):
        with pytest.raises(ClaimError, match=said):
            CurveClaim(points=points)  # type: ignore[arg-type]  # wrong on purpose


def test_quantities_and_values() -> None:
    for claim, quantity, value in (
        (PrivacyClaim(epsilon=2.0), Quantity.EPSILON, 2.0),
        (GaussianClaim(mu=0.3), Quantity.MU, 0.3),
        (ConcentratedClaim(rho=0.1), Quantity.RHO, 0.1),
        (CurveClaim(points=POINTS), Quantity.FACTOR, 1.0),
    ):
        assert (claim.quantity, claim.value) == (quantity, value)


def test_a_method_of_epsilon_alone_says_what_to_do() -> None:
    claim = PrivacyClaim(epsilon=1.0)
    assert require_epsilon(claim, method="probe") is claim
    with pytest.raises(
        SettingsError, match=r"probe bounds epsilon alone.*0\.3-Gaussian DP.*do without probe"
    ):
        require_epsilon(GaussianClaim(mu=0.3), method="probe")


def test_a_curve_is_read_from_json_csv_and_text(tmp_path: Path) -> None:
    listed, named, table = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.csv"
    listed.write_text(json.dumps([list(point) for point in POINTS]))
    named.write_text(json.dumps([{"epsilon": e, "delta": d} for e, d in reversed(POINTS)]))
    table.write_text("epsilon, delta\n1,1e-5\n0.5,0.001\n")
    for text in (listed, str(named), table, "0.5:1e-3, 1:1e-5", written_out(POINTS)):
        assert read_curve(text) == POINTS


@pytest.mark.parametrize(
    "content",
    ["", "epsilon\n1\n", "[1, 2]", "{", "[[1]]", "epsilon,delta\n1,x\n", "epsilon,delta\n"],
)
def test_what_is_no_curve_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "curve.csv"
    file.write_text(content)
    with pytest.raises(ClaimError, match=r"curve\.csv") as error:
        read_curve(file)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ClaimError, match=r"the curve nowhere\.csv cannot be read: .*; give a JSON"):
        read_curve("nowhere.csv")
