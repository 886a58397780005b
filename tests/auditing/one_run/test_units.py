"""One-run audits with units as canaries: a coin for each, exact answers, and a null test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.one_run.attack import (
    ATTACKS,
    CanaryMarginals,
    CanaryMatches,
    ClosestRecord,
    guess,
    interference,
    pairs_in_order,
)
from dpaudit.auditing.one_run.game import OneRunSpec
from dpaudit.auditing.settings import OneRun
from dpaudit.bounds import guarantee_of
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.column import Column, Kind, Unit
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import GameView, World
from dpaudit.report.render import render_markdown
from dpaudit.results.outcomes import OneRunOutcome
from dpaudit.results.result import result_schema
from reports.units.towns import BY_ROW, ROWS, SCHEMA, Answers, NoiseForARow, Suppressed, visits

CANARIES = 30
ONE_RUN: dict[str, Any] = {"one_run": True, "canaries": CANARIES}


def spec_of(generator: object, table: pd.DataFrame, **settings: Any) -> OneRunSpec:
    schema = settings.pop("schema", SCHEMA)
    chosen = audit_settings(**ONE_RUN | settings)
    spec = build_spec(generator, audited_table(table, schema, chosen), chosen)
    assert isinstance(spec, OneRunSpec)
    return spec


def test_a_coin_includes_all_rows_of_a_unit_or_none() -> None:
    table = visits()
    spec = spec_of(Suppressed(), table)
    trained = spec.game.table(World.IN, 0)
    each = trained["patient"].value_counts()
    assert set(each) == {ROWS}
    canaries = pd.unique(spec.game.view.target["patient"])
    assert len(canaries) == CANARIES == spec.canaries
    assert np.array_equal(np.isin(canaries, each.index), spec.coins)
    assert len(spec.game.view.target) == CANARIES * ROWS
    assert not np.isin(spec.game.view.others["patient"], canaries).any()
    kept = table[table["patient"].isin(each.index)].reset_index(drop=True)
    pd.testing.assert_frame_equal(trained[["patient", "cost"]], kept[["patient", "cost"]])
    other = spec_of(Suppressed(), table, seed=1)
    assert np.array_equal(spec.canary_rows, other.canary_rows)
    assert not np.array_equal(spec.coins, other.coins)


@pytest.mark.ci
def test_coins_of_units_are_fair_and_independent() -> None:
    table = visits(rows=2)
    coins = np.array([spec_of(Suppressed(), table, seed=seed).coins[:6] for seed in range(200)])
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 0.1
    assert np.abs(np.corrcoef(coins.T) - np.eye(6)).max() < 0.2


def test_the_canaries_are_the_units_farthest_from_others_however_alike_their_rows() -> None:
    table = visits(patients=48, rows=4).assign(town=0)
    table["cost"] = 0.4 + 0.2 * table["cost"]
    table.loc[table["patient"] == 7, "cost"] = 1.0  # four rows alike, far from all others
    chosen = spec_of(Suppressed(), table, canaries=20).game.view.target["patient"]
    assert 7 in set(chosen)


def test_a_leak_over_ten_rows_is_proved_in_one_run_and_its_honest_twin_is_not(
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"schema": SCHEMA, "jobs": 1, **ONE_RUN}
    leaky = audit_by_keywords(Suppressed(), visits(), out=tmp_path, **given)
    assert leaky.verdict is dpaudit.Verdict.VIOLATION
    assert leaky.auc == 1.0
    document = leaky.to_document()
    jsonschema.validate(document, result_schema())
    assert document["claim"]["unit"] == document["game"]["unit"] == "patient"
    assert document["data"]["units"] == 60
    assert "add or remove all rows of one patient" in " ".join(str(leaky).split())
    assert "30 canaries, each all rows of one patient" in render_markdown(leaky)
    honest = audit_by_keywords(Suppressed(honest=True), visits(), **given)
    assert honest.verdict is not dpaudit.Verdict.VIOLATION


def test_no_single_row_shows_that_leak() -> None:
    """Without one row of each patient the model is the same."""
    table = visits()
    whole = Suppressed().fit(table, seed=3).weights
    without_one = table[table.groupby("patient").cumcount() > 0]
    assert Suppressed().fit(without_one, seed=3).weights.tolist() == whole.tolist()
    assert Suppressed().fit(table[table["patient"] > 0], seed=3).weights.tolist() != whole.tolist()
    spread = table.assign(patient=range(len(table)))  # each row is a canary or not
    lone = spread.drop(columns="patient").assign(
        town=lambda rows: rows["town"].where(spread.groupby("town").cumcount() > 0, 0)
    )
    found = audit_by_keywords(
        Suppressed(by_row=True), lone, schema=BY_ROW, jobs=1, one_run=True, canaries=CANARIES
    )
    assert found.verdict is not dpaudit.Verdict.VIOLATION


def test_noise_for_one_row_is_proved_by_the_counts_of_all_rows() -> None:
    """Ten rows in one cell shift its count by ten scales of the noise."""
    given: dict[str, Any] = {"schema": SCHEMA, "jobs": 1, **ONE_RUN}
    leaky = audit_by_keywords(NoiseForARow(), visits(), rows=3000, **given)
    assert leaky.verdict is dpaudit.Verdict.VIOLATION
    assert isinstance(leaky.game, OneRunOutcome)
    each = {attack.name: attack.bound for attack in leaky.game.attacks}
    assert each["canary-marginals"] > 1.0
    honest = audit_by_keywords(NoiseForARow(honest=True), visits(), rows=3000, **given)
    assert honest.verdict is not dpaudit.Verdict.VIOLATION


# Of 5 % of the audits more are flagged with probability below 0.05.
@pytest.mark.parametrize(
    ("audits", "most"), [(40, 4), pytest.param(400, 28, marks=pytest.mark.slow)]
)
def test_randomised_response_per_patient_is_not_flagged(audits: int, most: int) -> None:
    """Exactly epsilon per patient, with whole attacks: none flags it more often than 5 %."""
    epsilon, flagged = 0.5, 0
    table = visits(1, rows=2)
    generator = Answers(epsilon=epsilon)
    for seed in range(audits):
        spec = spec_of(generator, table, seed=seed, canaries=20)
        model = generator.fit(spec.game.table(World.IN, 0), seed=seed)
        drawn = model.sample(spec.rows, seed=seed)
        features = [one.scorer.features(drawn, spec.game.view) for one in ATTACKS]  # type: ignore[union-attr]
        guarantee, confidence = guarantee_of(spec.claim), spec.settings.attack_confidence
        bounds = [
            of.bound(guarantee, confidence=confidence)
            for of in guess(np.concatenate(features), spec.coins)
        ]
        flagged += max(bounds) > epsilon
    assert flagged <= most


def test_units_of_one_row_are_audited_as_rows() -> None:
    """To the bit: the same canaries, scores and interference."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"town": rng.permutation(60), "cost": rng.random(60).round(3)})
    by_row = spec_of("null", table, schema=BY_ROW, epsilon=1.0)
    by_unit = spec_of("null", table.assign(patient=range(60)), epsilon=1.0)
    assert np.array_equal(by_row.canary_rows, by_unit.canary_rows)
    assert interference(by_row.game.view) == interference(by_unit.game.view)
    drawn = table.sample(200, replace=True, random_state=1).reset_index(drop=True)
    for attack in ATTACKS:
        scores = [
            attack.scorer.features(drawn, view)  # type: ignore[union-attr]
            for view in (by_row.game.view, by_unit.game.view)
        ]
        assert scores[0].tobytes() == scores[1].tobytes(), attack.name


ORDERED = Schema(
    columns=(Column(name="drug", kind=Kind.CATEGORICAL, categories=tuple("ABCDEF")),),
    unit=Unit(column="patient"),
)


def view_of(target: str, others: list[str]) -> GameView:
    known = [(number + 1, drug) for number, rows in enumerate(others) for drug in rows]
    return GameView(
        schema=ORDERED,
        others=ORDERED.canonical(pd.DataFrame(known, columns=["patient", "drug"])),
        target=ORDERED.canonical(pd.DataFrame({"patient": 0, "drug": list(target)})),
        n_rows=6,
        neighbours=dpaudit.Neighbours.ADD_REMOVE,
    )


def test_matches_see_the_order_within_a_unit() -> None:
    """The same rows in another order score less, whether units are released or not."""
    view = view_of("ABC", ["FED", "CBA", "EDF"])
    scores = {
        order: CanaryMatches().features(pd.DataFrame({"drug": list(order)}), view)[0]
        for order in ("ABCFED", "BACFED")
    }
    assert scores["ABCFED"] > scores["BACFED"]
    mixed = pd.DataFrame({"patient": [5, 6, 5, 6, 5, 6], "drug": list("AFBECD")})
    apart = mixed.assign(patient=[5, 5, 6, 6, 7, 7])
    released = CanaryMatches().features(mixed, view)[0]
    assert released == scores["ABCFED"]
    assert CanaryMatches().features(apart, view)[0] < released


def test_pairs_in_order_join_rows_of_one_unit_alone() -> None:
    values = np.arange(6.0)[:, None]
    pairs, owners = pairs_in_order(values, np.array([0, 1, 0, 1, 2, 0]))
    assert pairs.tolist() == [[0.0, 2.0], [2.0, 5.0], [1.0, 3.0]]
    assert owners.tolist() == [0, 0, 1]


def test_a_unit_is_as_near_as_its_nearest_row() -> None:
    view = view_of("AB", ["CD"])
    drawn = pd.DataFrame({"drug": list("BC")})
    assert ClosestRecord().features(drawn, view).tolist() == [0.0]
    assert ClosestRecord().features(drawn.iloc[1:], view)[0] < 0.0


def test_rows_of_units_are_counted_together() -> None:
    """Two canaries with three rows each in cells of their own, beside sixty known rows."""
    column = Column(name="id", kind=Kind.CATEGORICAL, categories=(0, 1, 2))
    schema = Schema(columns=(column,), unit=Unit(column="patient"))
    view = GameView(
        schema=schema,
        others=pd.DataFrame({"id": [0] * 60, "patient": range(10, 70)}),
        target=pd.DataFrame({"id": [1, 2, 1, 2, 1, 2], "patient": [1, 2, 1, 2, 1, 2]}),
        n_rows=63,
        neighbours=dpaudit.Neighbours.ADD_REMOVE,
    )
    scores = CanaryMarginals().features(pd.DataFrame({"id": [0] * 60 + [1] * 3}), view)
    assert scores[0] > 0 > scores[1]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"canaries": 31}, "half of the table's 60 units, got 31"),
        ({"neighbours": "replace-one", "epsilon": 1.0}, "replace-one"),
    ],
)
def test_what_the_units_cannot_bear_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises((SettingsError, ClaimError), match=says):
        spec_of(Suppressed(), visits(), **settings)


def test_a_claim_per_row_is_refused_with_its_group_factor() -> None:
    with pytest.raises(ClaimError, match=r"group privacy allows \(10, 0\)-DP \(10 times epsilon\)"):
        spec_of(Suppressed(by_row=True), visits())


def test_the_command_repeats_the_unit() -> None:
    spec = spec_of("null", visits(), schema=BY_ROW, epsilon=1.0, unit="patient")
    assert "--set unit=patient" in spec.reproduce
    assert spec.settings.game == OneRun(canaries=CANARIES)
