"""Audits of many units per shadow model: a coin for each, exact answers, and a null test."""

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
from dpaudit.auditing.records.attack import CopiesRecords, FeaturesOfRecords
from dpaudit.auditing.records.game import RecordsSpec
from dpaudit.errors import SettingsError
from dpaudit.game.trial import Role
from dpaudit.plugins.protocols import World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.report.render import render_markdown
from dpaudit.results.outcomes import RecordsOutcome
from dpaudit.results.result import result_schema
from dpaudit_attacks.queries import TargetQueries
from reports.units.towns import BY_ROW, ROWS, SCHEMA, Answers, Suppressed, visits

FEW: dict[str, Any] = {
    "records": 15,
    "shadow_models": 8,
    "attacks": ["query-target,classifier=logistic-regression"],
}


def spec_of(generator: object, table: pd.DataFrame, **settings: Any) -> RecordsSpec:
    schema = settings.pop("schema", SCHEMA)
    chosen = audit_settings(**FEW | settings)
    spec = build_spec(generator, audited_table(table, schema, chosen), chosen)
    assert isinstance(spec, RecordsSpec)
    return spec


def test_each_model_has_all_rows_of_a_unit_or_none() -> None:
    spec = spec_of(Suppressed(), visits())
    game = spec.game(Role.AUDIT, spec.settings)
    attacked = [spec.table.data["patient"].iloc[list(rows)].unique() for rows in spec.records]
    assert all(len(one) == 1 for one in attacked)
    for number in range(8):
        each = game.table(World.OUT, number)["patient"].value_counts()
        assert set(each) == {ROWS}
        assert [one[0] in each.index for one in attacked] == game.included[number].tolist()
    view = spec.views[3]
    assert view.target["patient"].tolist() == [attacked[3][0]] * ROWS
    assert not np.isin(view.others["patient"], np.concatenate(attacked)).any()


@pytest.mark.ci
def test_a_leak_over_ten_rows_is_proved_with_eight_models(tmp_path: Path) -> None:
    given: dict[str, Any] = {"schema": SCHEMA, "jobs": 1, **FEW}
    leaky = audit_by_keywords(Suppressed(), visits(), out=tmp_path, **given)
    assert leaky.verdict is dpaudit.Verdict.VIOLATION
    document = leaky.to_document()
    jsonschema.validate(document, result_schema())
    assert document["claim"]["unit"] == document["game"]["unit"] == "patient"
    assert isinstance(leaky.game, RecordsOutcome)
    assert len(leaky.game.each) == 15
    assert "15 records, each all rows of one patient" in render_markdown(leaky)
    honest = audit_by_keywords(Suppressed(honest=True), visits(), **given)
    assert honest.verdict is not dpaudit.Verdict.VIOLATION


# Of 5 % of the audits more are flagged with probability below 0.05.
@pytest.mark.slow
def test_randomised_response_per_patient_is_not_flagged() -> None:
    flagged = 0
    for seed in range(100):
        found = audit_by_keywords(
            Answers(epsilon=0.5), visits(2, rows=2), schema=SCHEMA, jobs=1, seed=seed, **FEW
        )
        flagged += found.verdict is dpaudit.Verdict.VIOLATION
    assert flagged <= 9


def test_units_of_other_sizes_have_features_of_one_width() -> None:
    table = pd.concat([visits(rows=1), visits(1, patients=20, rows=3)], ignore_index=True)
    spec = spec_of(Suppressed(), table)
    sizes = {len(view.target) for view in spec.views}
    assert sizes == {4}  # the most exposed ones
    views = (spec.views[0], *spec_of(Suppressed(), visits(rows=1)).views[:1])
    attack = TargetQueries()
    drawn = SCHEMA.canonical(Suppressed().fit(table, seed=0).sample(50, seed=1))
    found = FeaturesOfRecords(attack, views).features(drawn, views[0])
    wide, narrow = (len(attack.feature_names(view)) for view in views)
    assert len(found) == 2 * wide > wide + narrow
    assert np.array_equal(found[wide : wide + narrow], attack.features(drawn, views[1]))
    assert not found[wide + narrow :].any()


def test_the_positive_control_releases_the_rows_of_the_units_that_it_saw() -> None:
    spec = spec_of(Suppressed(), visits())
    game = spec.game(Role.POSITIVE_CONTROL, spec.settings)
    null: Any = build("null", GENERATORS, given={}, offered={"schema": SCHEMA})
    copies = CopiesRecords(schema=SCHEMA, records=game.view.target, null=null)
    model = copies.fit(game.table(World.OUT, 3), seed=0)
    seen = game.view.target["patient"][game.view.target["patient"].isin(model.records["patient"])]
    assert seen.nunique() == game.included[3].sum()
    assert len(model.records) == ROWS * game.included[3].sum()


def test_units_of_one_row_are_audited_as_rows() -> None:
    """The same records and coins, and the same results."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"town": rng.permutation(60), "cost": rng.random(60).round(3)})
    by_row = spec_of("null", table, schema=BY_ROW, epsilon=1.0)
    by_unit = spec_of("null", table.assign(patient=range(60)), epsilon=1.0)
    assert {len(rows) for rows in by_unit.records} == {1}
    assert set(by_row.positions) == set(by_unit.positions)


def test_more_than_a_quarter_of_the_units_is_refused() -> None:
    with pytest.raises(SettingsError, match="a quarter of the table's 60 units, got 16"):
        spec_of(Suppressed(), visits(), records=16)
