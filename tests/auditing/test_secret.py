"""Guesses of a secret inside the game: known answers, refusals, and what a result says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.game import Findings
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.spec import Data
from dpaudit.auditing.two_worlds.findings import find, target_of
from dpaudit.auditing.two_worlds.game import TwoWorldsGame
from dpaudit.auditing.two_worlds.secret import SecretGuess
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec, plan_trials
from dpaudit.auditing.two_worlds.target_search import TargetSearchSpec
from dpaudit.errors import InputError
from dpaudit.game.store import RunFolder
from dpaudit.game.training import run_batch
from dpaudit.game.trial import Role
from dpaudit.model.schema import Schema
from dpaudit.report.content import audit_page
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.document import from_document, to_document
from dpaudit.results.outcomes import SecretOutcome, TwoWorldsOutcome
from dpaudit.results.record import AuditRecord
from dpaudit.results.summary import summary_lines
from samples import PEOPLE, QUICK_ATTACKS, game_view, people

TABLE = people().assign(income=lambda table: table["income"].fillna(50.0))
TARGET = TABLE.iloc[[3]]


@pytest.mark.parametrize(
    ("column", "value", "right"),
    [
        ("income", 0.0, True),
        ("income", 4.9, True),
        ("income", 5.1, False),
        ("age", 3, True),
        ("age", 4, False),
        ("job", "miner", False),
    ],
)
def test_a_guess_is_right_at_a_category_and_near_a_number(
    column: str, value: Any, right: bool
) -> None:
    true = TARGET[column].iloc[0]
    near = TARGET.assign(**{column: value if isinstance(value, str) else true + value})
    others = TABLE.drop(index=3).assign(age=20, paid=1 - TARGET["paid"].iloc[0])
    release = PEOPLE.canonical(pd.concat([others, near, near]))
    features = SecretGuess(column).features(release, game_view(PEOPLE, TARGET))
    assert features.tolist() == [right]


def test_a_release_without_values_of_the_secret_is_a_wrong_guess() -> None:
    empty = TABLE.assign(income=np.nan)
    features = SecretGuess("income").features(empty, game_view(PEOPLE, TARGET))
    assert features.tolist() == [0.0]


def test_a_category_that_the_schema_does_not_name_is_a_wrong_guess() -> None:
    odd = TABLE.assign(job="astronaut")
    assert SecretGuess("job").features(odd, game_view(PEOPLE, TARGET)).tolist() == [0.0]


def spec_of(
    data: Data = TABLE, schema: Schema = PEOPLE, generator: object = "copycat", **given: Any
) -> TwoWorldSpec:
    settings = audit_settings(**{"epsilon": 1, "target": "row:3", **given})
    spec = build_spec(generator, audited_table(data, schema, settings), settings)
    assert isinstance(spec, TwoWorldSpec)
    return spec


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"secret": "jop"}, "`secret` names 'jop', which is not a column (did you mean 'job'?)"),
        (
            {"secret": "job", "records": 5, "target": None},
            "leave out `secret`, or leave out `records`",
        ),
        (
            {"secret": "job", "one_run": True, "target": None},
            "leave out `secret`, or leave out `one",
        ),
        ({"secret": "job", "sequential": True}, "leave out `sequential`, or leave out `secret`"),
        ({"secret": "job", "unit": "age"}, "leave out the unit, or leave out `secret`"),
        ({"secret": "income", "target": "row:0"}, "the target has no value in 'income'"),
    ],
)
def test_a_secret_that_cannot_be_guessed_is_refused_before_training(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as refused:
        spec_of(people(), **given)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_constant_column_is_no_secret() -> None:
    with pytest.raises(InputError, match="column 'job' is constant, so it is no `secret`"):
        spec_of(TABLE.assign(job="cook"), secret="job")


def test_the_only_column_is_no_secret() -> None:
    schema = Schema(columns=PEOPLE.columns[:1])
    with pytest.raises(InputError, match="'job' is the only one"):
        spec_of(schema.canonical(TABLE), schema, secret="job")


def test_linked_tables_have_no_secret() -> None:
    tables = {
        "patients": pd.DataFrame({"id": range(30), "age": range(30, 60)}),
        "visits": pd.DataFrame({"patient": [*range(30)] * 2, "cost": range(60)}),
    }
    schema = dpaudit.LinkedTables.infer_tables(tables, links=("visits.patient=patients.id",))
    with pytest.raises(InputError, match="`secret` is for audits of one table"):
        spec_of(tables, schema, secret="age")


def test_a_worst_case_without_the_column_has_no_secret() -> None:
    given: dict[str, Any] = {"worst_case": "narrow", "target": "exposing", "data": None}
    assert spec_of(**given, secret="job").secret is not None
    with pytest.raises(InputError, match="`secret` names 'age', which is not a column"):
        spec_of(**given, secret="age")


def test_a_search_compares_records_with_a_value_of_the_secret() -> None:
    data = people()
    settings = audit_settings(epsilon=1, target="vulnerable", secret="income")
    search = build_spec("null", audited_table(data, PEOPLE, settings), settings)
    assert isinstance(search, TargetSearchSpec)
    assert len(search.candidates) > 1
    assert data["income"].iloc[list(search.candidates)].notna().all()
    without = build_spec(
        "null", audited_table(data, PEOPLE, settings), settings.with_game(secret=None)
    )
    assert isinstance(without, TargetSearchSpec)
    assert data["income"].iloc[list(without.candidates)].isna().any()


def test_a_secret_is_one_more_hypothesis_and_no_part_of_the_selection() -> None:
    spec, without = spec_of(secret="job"), spec_of()
    assert spec.settings.game.hypotheses == without.settings.game.hypotheses + 1
    assert spec.settings.attack_confidence > without.settings.attack_confidence
    assert spec.attacks == without.attacks
    assert "--set secret=job" in spec.reproduce
    assert spec.id == without.id  # the same models
    assert "secret" not in without.specification


def findings_of(generator: object, folder: Path, **given: Any) -> Findings:
    """The findings of an audit whose trials run here, without controls."""
    settings = {"attacks": QUICK_ATTACKS[1:], "shadow_models": 40, "epsilon": 1.0, **given}
    spec = spec_of(TABLE, generator=generator, **settings)
    trials = plan_trials(spec, Role.AUDIT, spec.settings).trials()
    with RunFolder(folder, spec=spec.stored_specification, versions={}) as store:
        for outcome in run_batch(TwoWorldsGame().payload(spec, Role.AUDIT), trials):
            store.save(outcome)
        stored = store.outcomes(Role.AUDIT)
        return find(spec, stored, trials, target=target_of(spec, None))


def secret_of(findings: Findings) -> SecretOutcome:
    assert isinstance(findings.outcome, TwoWorldsOutcome)
    assert findings.outcome.secret is not None
    return findings.outcome.secret


def test_a_copied_record_gives_its_secret_away(tmp_path: Path) -> None:
    findings = findings_of("copycat", tmp_path / "run", secret="income")
    secret = secret_of(findings)
    assert (secret.column, secret.tolerance) == ("income", 0.05)
    assert secret.inside.right == secret.inside.releases
    assert secret.outside.least < secret.outside.share < secret.outside.most
    assert secret.inside.most == 1.0
    assert secret.difference == round(1.0 - secret.outside.share, 4)
    assert secret.proved > 0
    of_secret = {
        attack.name: max(filter(None, attack.bounds.values())) for attack in findings.attacks
    }
    assert of_secret["secret"] == secret.proved
    assert len(of_secret) == 2


def test_nothing_is_proved_of_a_generator_that_ignores_its_data(tmp_path: Path) -> None:
    findings = findings_of("null", tmp_path / "run", secret="job")
    assert secret_of(findings).proved == 0
    assert secret_of(findings).tolerance is None


def test_an_audit_without_a_secret_has_none(tmp_path: Path) -> None:
    findings = findings_of("null", tmp_path / "run", shadow_models=20)
    assert isinstance(findings.outcome, TwoWorldsOutcome)
    assert findings.outcome.secret is None


SECRET = {
    "column": "income",
    "tolerance": 0.05,
    "inside": {"right": 61, "releases": 100, "least": 0.5074, "most": 0.706},
    "outside": {"right": 48, "releases": 100, "least": 0.3790, "most": 0.5822},
    "difference": 0.13,
    "proved": 0.0,
}


@pytest.fixture
def record(record_of: Callable[..., AuditRecord], example: dict[str, Any]) -> AuditRecord:
    record = record_of(game={**example["game"], "secret": SECRET})
    assert to_document(record.game)["secret"] == SECRET
    return record


def test_reports_say_how_often_the_secret_was_guessed(record: AuditRecord) -> None:
    sentence = (
        "Knowing the rest of this person's record, an attacker guesses 'income' right within 5 % "
        "of its range in 61 % of releases with the record and in 48 % without it; what people like "
        "this person have in common, not their record, explains the 48 %."
    )
    page = audit_page(record)
    text = page_markdown(page)
    assert sentence in text
    assert "| without it | 48 of 100 | 48 % | 37.9 % to 58.2 % |" in text
    assert "people like this person have in common" in page_html(page)
    said = " ".join(" ".join(summary_lines(record)).split())
    assert "48 of 100 without it (37.9 % to 58.2 %): +13.0 percentage points" in said
    assert "EDPB Opinion 28/2024" in text


def test_a_report_says_what_shares_the_error_probability(
    record_of: Callable[..., AuditRecord], example: dict[str, Any]
) -> None:
    shared = {"rule": "select", "hypotheses": 2, "attacks": ["groundhog", "form"]}
    record = record_of(game={**example["game"], "secret": SECRET}, multiplicity=shared)
    text = page_markdown(audit_page(record))
    assert "The bounds are corrected for 2 attacks (Bonferroni)." in text
    assert "the other was chosen among groundhog, form and their combination" in text


def test_a_proved_difference_is_said_in_epsilon() -> None:
    outcome: SecretOutcome = from_document(SecretOutcome, SECRET | {"proved": 0.4567})
    assert outcome.bound("epsilon").endswith("which proves epsilon at least 0.456")
