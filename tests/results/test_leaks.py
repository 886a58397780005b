"""What carries an attack, in words: the whole output, many features alike, or a few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.plugins.protocols import THE_TRIAL, FeatureName
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.document import from_document, to_document
from dpaudit.results.leaks import Carrier, by_importance, carrier, feature, leak_reason
from dpaudit.results.record import AuditRecord, Leak
from dpaudit.results.summary import summary_lines
from dpaudit.results.verdict import DIFFERENT_SEEDS, Check, Consequence

Make = Callable[..., AuditRecord]


def leak(column: str, importance: float, separation: float | None) -> Leak:
    return Leak(feature="max", column=column, importance=importance, separation=separation)


FROZEN = Check(DIFFERENT_SEEDS, False, "every model gave the same table", Consequence.NOTED)
ALIKE = (leak("A", 0.0, 0.5), leak("B", 0.0, 0.45), leak("C", 0.0002, 0.4))


def documents(*leaks: Leak) -> list[Any]:
    return [to_document(one) for one in leaks]


def test_features_in_words() -> None:
    assert feature(leak("Age", 0.1, 0.2)) == "maximum (Age)"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("min", "minimum (A)"),
        ("mean", "mean (A)"),
        ("share in bin 3", "share in bin 3 (A)"),
        ("third largest", "third largest value (A)"),
        ("max in visits", "maximum in visits (A)"),
        ("second smallest in visits", "second smallest value in visits (A)"),
        ("gap below the largest", "gap below the largest value (A)"),
        ("largest gap between values", "largest gap between values (A)"),
    ],
)
def test_all_features_are_written_in_one_style(name: str, words: str) -> None:
    assert feature(Leak(feature=name, column="A", importance=0.1)) == words
    assert str(FeatureName("A", name)) == words  # as a replay names them


def test_an_important_feature_is_named() -> None:
    leaks = (leak("A", 0.2, 0.3), leak("B", 0.0, 0.5))
    assert carrier(leaks) is Carrier.FEATURES
    assert leak_reason(leaks, ()) == "the leak is in maximum (A)"  # B adds nothing to it
    both = (*leaks, Leak(feature="min", column="B", importance=0.02, separation=0.1))
    assert leak_reason(by_importance(both), ()) == "the leak is in maximum (A); minimum (B)"


def test_features_that_repeat_each_other_are_listed_by_separation() -> None:
    assert carrier(ALIKE) is Carrier.MANY
    assert by_importance(ALIKE[::-1]) == list(ALIKE)
    reason = leak_reason(ALIKE, ())
    assert reason == "many redundant features: maximum (A, B, C)"


@pytest.mark.parametrize(
    "leaks",
    [
        (leak("A", 0.0, 0.02), leak("B", 0.0, 0.01)),  # neither matters nor separates
        (leak("A", 0.0, None), leak("B", 0.0, None)),  # written before separations were recorded
    ],
)
def test_no_feature_is_named_without_a_number_that_says_so(leaks: tuple[Leak, ...]) -> None:
    assert carrier(leaks) is Carrier.NONE
    assert leak_reason(leaks, ()) == "no single feature carries the attack"


def test_an_output_that_ignores_the_seed_is_named_as_that() -> None:
    assert carrier(ALIKE, (FROZEN,)) is Carrier.WHOLE_OUTPUT
    assert "the whole output, which the seed does not change" in leak_reason(ALIKE, (FROZEN,))


def test_summary_and_reports_say_what_the_reason_says(record_of: Make) -> None:
    many = record_of(leaks=documents(*ALIKE))
    expected = "leak      many redundant features: maximum (A, B, C)"
    assert expected in summary_lines(many)
    frozen = record_of(leaks=documents(*ALIKE), checks=[to_document(FROZEN)])
    assert "leak      the whole output, which the seed does not change" in summary_lines(frozen)
    for text in (render_markdown(many), render_html(many)):
        assert "Many redundant features." in text
        assert "Leaking features" not in text
    for text in (render_markdown(frozen), render_html(frozen)):
        assert "The leak is in the whole output, which the seed does not change." in text
        assert "Leaking features" not in text


def test_separation_stands_beside_importance_where_it_is_known(record_of: Make) -> None:
    text = render_markdown(record_of(leaks=documents(leak("A", 0.21, 0.48))))
    assert "| Feature | AUC lost if shuffled | AUC alone |" in text
    assert "| maximum (A) | 0.21 | 0.980 |" in text
    unknown = documents(leak("A", 0.21, None))
    assert "separation" not in unknown[0]
    assert from_document(Leak, unknown[0]).separation is None
    assert "| maximum (A) | 0.21 |\n" in render_markdown(record_of(leaks=unknown))


@pytest.mark.parametrize(
    ("column", "elsewhere"),
    [("visits", True), ("visits & ward", True), ("age", False), ("visits & age", False)]
    + [(column, False) for column in ("whole rows", THE_TRIAL)],
)
def test_a_leak_in_other_columns_than_the_target_was_chosen_for_is_explained(
    column: str, elsewhere: bool, record_of: Make
) -> None:
    exposures = [{"fact": "sole maximum", "column": "age"}]
    record = record_of(
        target={"choice": "exposing", "row": 3, "exposures": exposures},
        leaks=documents(leak(column, 0.2, 0.3), leak("age", 0.0, 0.1)),
    )
    why = "attacks look at every column, and the leak shows in others"
    stands_out = f"The target was chosen because it stands out in age; {why}."
    assert (stands_out in render_markdown(record)) == elsewhere
    assert (why in " ".join(" ".join(summary_lines(record)).split())) == elsewhere


def test_features_that_were_chosen_on_the_scored_models_are_called_optimistic(
    record_of: Make,
) -> None:
    text = render_markdown(record_of(leaks=documents(leak("A", 0.21, 0.48))))
    assert "chosen on the scored models, on which the table measures them, so its numbers" in text


def test_an_attack_that_was_chosen_by_its_bound_is_called_optimistic(record_of: Make) -> None:
    record = record_of(multiplicity={"rule": "bonferroni", "hypotheses": 2})
    said = "The deciding attack has the largest one on the scored models, so its AUC and error"
    assert f"corrected for 2 attacks (Bonferroni). {said}" in render_markdown(record)
    one = record_of(attacks=[to_document(record.attacks[0])])
    assert "so optimistic" not in " ".join(summary_lines(one))
