"""Whole audits of released tables whose answer is known."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from threadpoolctl import threadpool_limits

import dpaudit
from dpaudit.errors import DataError, SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.released_data import linkage, scores
from dpaudit.released_data.audit import canaries_of
from dpaudit.released_data.conclusion import ReleasedFinding, conclude
from dpaudit.released_data.membership import draw_fitting_part, recognise
from dpaudit.released_data.result import released_schema
from dpaudit.released_data.rows import Encoded, NearestRows, find_nearest
from dpaudit.released_data.scores import membership_scores
from dpaudit.released_data.tables import load_released

SCHEMA = Schema(
    columns=(
        *(Column(name=f"x{i}", kind=Kind.CONTINUOUS, lower=-9.0, upper=9.0) for i in range(3)),
        Column(name="c", kind=Kind.CATEGORICAL, categories=("a", "b", "d")),
    )
)


def table(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"x{i}": rng.normal(shift, size=n).clip(-9, 9) for i in range(3)}
    return pd.DataFrame(numbers | {"c": np.array(["a", "b", "d"])[rng.integers(3, size=n)]})


def with_copies(train: pd.DataFrame, share: float, seed: int = 9) -> pd.DataFrame:
    """Rows of the population; the first ones are rows of train."""
    drawn = table(len(train), seed)
    copied = int(share * len(train))
    drawn.iloc[:copied] = train.sample(copied, random_state=seed).to_numpy()
    return drawn.astype(train.dtypes)


DATA = table(1200, 0)
SPLIT = dpaudit.split(DATA, seed=1)
LEAKY = with_copies(SPLIT.train, 0.2)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            audit = dpaudit.audit_data(
                table(400, 8), table(400, 6), table(400, 7), schema=SCHEMA, secrets=["c"]
            )
        found.append(audit.to_json())
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def proved() -> dpaudit.ReleasedDataResult:
    return dpaudit.audit_data(
        LEAKY, SPLIT.train, SPLIT.holdout, coins=SPLIT.coins, schema=SCHEMA, epsilon=1.0
    )


def test_where_halves_of_the_hold_out_are_told_apart_nothing_is_concluded(
    proved: dpaudit.ReleasedDataResult,
) -> None:
    assert proved.membership is not None
    ghost = replace(proved.membership, phantom_p_value=1e-9)
    found = conclude(proved.rows, ghost, proved.bound, (), None, claim=None, confidence=0.95)
    assert found.finding is ReleasedFinding.INVALID


def test_copies_are_proved_by_coins(proved: dpaudit.ReleasedDataResult) -> None:
    found = proved
    assert found.finding is ReleasedFinding.VIOLATION
    assert found.bound is not None
    assert found.bound.proved > 1.0
    assert found.not_a_bound is None
    assert found.rows.coins == 1200
    copied = set(SPLIT.train.sample(int(0.2 * len(SPLIT.train)), random_state=9).index)
    named = {one.row for one in found.riskiest}
    assert len(named & copied) > 0.7 * len(copied)  # a fifth is not looked at
    assert len(named - copied) < 0.2 * len(named)


def test_the_same_release_without_coins_is_a_leak_but_no_bound() -> None:
    found = dpaudit.audit_data(LEAKY, SPLIT.train, SPLIT.holdout, schema=SCHEMA)
    assert found.finding is ReleasedFinding.LEAK
    assert found.bound is None
    assert found.not_a_bound is not None
    assert "it needs a coin file" in found.not_a_bound
    assert found.found
    with pytest.raises(
        AssertionError,
        match=r"LEAK  at least .* training rows stand in .*\n(.*\n)*seed: 0",
    ):
        found.assert_no_violation()


def test_a_release_that_knows_nothing_of_train_is_no_leak() -> None:
    for coins in (None, SPLIT.coins):
        found = dpaudit.audit_data(
            table(600, 7), SPLIT.train, SPLIT.holdout, coins=coins, schema=SCHEMA
        )
        # 600 rows may be too few to say that nothing is there.
        assert found.finding in (ReleasedFinding.NOTHING_FOUND, ReleasedFinding.INCONCLUSIVE)
        assert found.riskiest == ()


def with_a_frequent_record(n: int, seed: int) -> pd.DataFrame:
    """Rows of the population, of which one in thirty is one and the same."""
    found = table(n, seed)
    found.loc[np.random.default_rng(seed).random(n) < 1 / 30] = [0.0, 0.0, 0.0, "a"]
    return found


def audited(train: pd.DataFrame, holdout: pd.DataFrame, *, copied: int = 0) -> ReleasedFinding:
    release = pd.concat([with_a_frequent_record(600, 7), train[:copied]], ignore_index=True)
    return dpaudit.audit_data(release, train, holdout, schema=SCHEMA, secrets=["c"]).finding


@pytest.mark.ci
def test_removing_repeats_makes_no_leak_of_a_release_that_knows_nothing() -> None:
    train, holdout = with_a_frequent_record(600, 1), with_a_frequent_record(600, 2)
    others = pd.concat([train, holdout]).drop_duplicates()[len(train.drop_duplicates()) :]
    innocent = {ReleasedFinding.NOTHING_FOUND, ReleasedFinding.INCONCLUSIVE}
    assert audited(train, holdout) in innocent
    assert audited(train.drop_duplicates(), others) in innocent
    for one_sided in ((train, others), (train.drop_duplicates(), holdout)):
        found = dpaudit.audit_data(
            with_a_frequent_record(600, 7), *one_sided, schema=SCHEMA, secrets=["c"]
        )
        assert found.finding is ReleasedFinding.INCONCLUSIVE
        assert "repeated rows were removed" in found.reasons[0]
        assert "give both tables as they were drawn" in found.reasons[0]


def test_repeats_removed_from_one_table_make_the_audit_inconclusive() -> None:
    train, holdout = with_a_frequent_record(600, 1), with_a_frequent_record(600, 2)
    release = with_a_frequent_record(600, 7)
    found = dpaudit.audit_data(release, train.drop_duplicates(), holdout, schema=SCHEMA)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert "repeated rows were removed" in found.reasons[0]
    assert "give both tables as they were drawn" in found.reasons[0]


def test_a_leak_is_found_beside_repeats_that_are_there_or_gone_from_both_tables() -> None:
    train, holdout = with_a_frequent_record(600, 1), with_a_frequent_record(600, 2)
    assert audited(train, holdout, copied=120) is ReleasedFinding.LEAK
    others = pd.concat([train, holdout]).drop_duplicates()[len(train.drop_duplicates()) :]
    assert audited(train.drop_duplicates(), others, copied=120) is ReleasedFinding.LEAK


def test_rows_that_all_repeat_cannot_be_compared() -> None:
    rng = np.random.default_rng(0)
    few = [table(300, 0)[:20].iloc[rng.integers(20, size=300)] for _ in range(3)]
    found = dpaudit.audit_data(few[0], few[1], few[2], schema=SCHEMA)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert found.rows.compared == 0
    assert found.linkage.copies.exact.records.holdout is None
    assert "only 0 rows of train and hold-out can be compared" in found.reasons[0]
    assert found.warnings[-1].startswith("600 of 600 train and hold-out rows were not compared")


@pytest.mark.parametrize("runs", [30, pytest.param(60, marks=pytest.mark.ci)])
def test_over_splits_such_a_release_is_seldom_called_a_leak(runs: int) -> None:
    alarms = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        split = dpaudit.split(DATA[:300], seed=seed)
        tables = load_released(split.train, table(150, seed + 99), split.holdout, schema=SCHEMA)
        rows = canaries_of(tables, None, seed=seed)
        seen = membership_scores(rows.real, tables.synthetic, SCHEMA, of=rows.rows).seen
        parts = draw_fitting_part(len(rows.rows), rng)
        alarms += recognise(seen, rows.inside, parts, rng, confidence=0.95).p_value <= 0.05
    assert alarms <= binom.ppf(0.999, runs, 0.05)


def test_a_claim_that_holds_is_not_refuted() -> None:
    found = dpaudit.audit_data(
        LEAKY, SPLIT.train, SPLIT.holdout, coins=SPLIT.coins, schema=SCHEMA, epsilon=20.0
    )
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert found.headline.startswith("INCONCLUSIVE  claimed epsilon 20 not decided; empirical")
    assert "more records with a coin" in found.reasons[1]


def test_a_refuted_claim_has_the_headline_of_every_audit(
    proved: dpaudit.ReleasedDataResult,
) -> None:
    headline = r"VIOLATION  claimed epsilon 1, empirical epsilon at least \S+\s+\(95 % confidence\)"
    assert re.fullmatch(headline, proved.headline)
    assert re.match(headline, str(proved))
    assert len(proved.reasons) == 1


def test_without_a_holdout_nothing_is_concluded() -> None:
    found = dpaudit.audit_data(LEAKY, SPLIT.train, schema=SCHEMA)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert "without a hold-out" in found.reasons[0]
    assert found.membership is None


def test_a_holdout_of_another_population_is_no_proof() -> None:
    other = table(600, 3, shift=1.0)
    near_train = table(600, 4)
    found = dpaudit.audit_data(near_train, SPLIT.train, other, schema=SCHEMA)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert "not of one population" in found.reasons[0]
    assert "because they were trained on" not in found.headline


def with_visits(data: pd.DataFrame, first: int) -> pd.DataFrame:
    """With numbers of visits, some of them missing and some of them twice."""
    numbers = np.arange(first, first + len(data))
    numbers[::7] += 1
    return data.assign(visit=numbers)


def test_a_column_that_tells_train_from_the_hold_out_is_named_and_copies_are_in_the_headline() -> (
    None
):
    train, holdout = with_visits(SPLIT.train, 0), with_visits(SPLIT.holdout, 5000)
    fresh = with_visits(table(560, 9), 12000)
    release = pd.concat([fresh, train[:39]], ignore_index=True)
    found = dpaudit.audit_data(release, train, holdout, secrets=["c"])
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert "39 of 599 synthetic rows equal a training row" in found.headline
    assert "'visit', which alone tells train from hold-out" in found.headline
    assert "--drop visit" in found.headline
    assert found.exchangeability is not None
    assert found.exchangeability.columns == ("visit",)
    dropped = dpaudit.audit_data(release, train, holdout, drop=["visit"], secrets=["c"])
    assert dropped.finding is ReleasedFinding.LEAK


def test_weak_evidence_is_called_weak_and_the_table_is_held_back() -> None:
    clean = dpaudit.audit_data(table(600, 7), SPLIT.train, SPLIT.holdout, schema=SCHEMA)
    assert clean.membership is not None
    for p_value, weak in ((0.029, True), (0.0001, False)):
        seen = replace(clean.membership, p_value=p_value)
        found, reasons = conclude(
            clean.rows, seen, None, clean.linkage, None, claim=None, confidence=0.95
        )
        assert found is ReleasedFinding.LEAK
        assert reasons[0].startswith("weak evidence that rows") is weak
        result = replace(clean, finding=found, reasons=reasons, membership=seen)
        assert ("Hold this table back" in str(result)) is weak
        assert ("stop sharing it" in " ".join(str(result).split())) is not weak


def test_rows_that_were_not_compared_are_on_the_first_screen() -> None:
    rng = np.random.default_rng(0)
    few = table(30, 5)
    train, holdout = (
        pd.concat([few.iloc[rng.integers(30, size=400)], table(40, seed)]) for seed in (1, 2)
    )
    found = dpaudit.audit_data(table(300, 3), train, holdout, schema=SCHEMA, secrets=["c"])
    assert "of 880 train and hold-out rows were not compared" in found.reasons[-1]
    assert found.reasons[-1].split(" of ")[0] in str(found)


def test_the_figure_prints_both_counts_and_marks_what_chance_explains(
    proved: dpaudit.ReleasedDataResult,
) -> None:
    leak = replace(proved, finding=ReleasedFinding.LEAK).to_html()
    exact = proved.linkage.copies.exact.records
    assert exact.holdout is not None
    assert f"{exact.train.found}/{exact.train.of} vs 0/{exact.holdout.of}" in leak
    assert "have an exact copy<" in leak
    clean = dpaudit.audit_data(table(600, 7), SPLIT.train, SPLIT.holdout, schema=SCHEMA)
    assert "have an exact copy (within chance)<" in clean.to_html()


def test_the_first_sentence_of_a_leak_is_in_plain_words() -> None:
    found = dpaudit.audit_data(LEAKY, SPLIT.train, SPLIT.holdout, schema=SCHEMA, secrets=["c"])
    assert re.fullmatch(
        r"LEAK  at least \d+ of \d+ training rows stand in the synthetic table, value for value, "
        "because they were trained on",
        found.headline,
    )
    assert "AUC" not in " ".join(found.reasons)


def test_a_few_rows_are_too_few() -> None:
    found = dpaudit.audit_data(table(30, 1), table(10, 2), table(10, 3), schema=SCHEMA)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert found.membership is None


def test_every_row_is_searched_for_once_and_near_copies_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched: list[tuple[int, int]] = []

    def counting(queries: Encoded, reference: Encoded, **options: Any) -> NearestRows:
        searched.append((len(queries), len(reference)))
        return find_nearest(queries, reference, **options)

    shaken = SPLIT.train.copy()
    shaken["x0"] = (shaken["x0"] + 1e-4).clip(-9, 9)
    shaken = pd.concat([shaken[:200], table(500, 8)], ignore_index=True)
    for module in (scores, linkage):
        monkeypatch.setattr(module, "find_nearest", counting)
    found = dpaudit.audit_data(shaken, SPLIT.train, SPLIT.holdout, schema=SCHEMA, secrets=["c"])
    assert [of for of in searched if of[1] == len(shaken)] == [(len(DATA), len(shaken))]
    near = found.linkage.copies.near[0].records
    assert near.train.of == len(SPLIT.train)
    assert near.holdout is not None
    assert near.holdout.of == len(SPLIT.holdout) - len(SPLIT.holdout) // 2
    assert near.proved


def test_what_is_odd_is_said_before_any_work() -> None:
    said: list[str] = []
    shares: list[float] = []
    other = table(600, 3, shift=1.0)
    found = dpaudit.audit_data(
        *(table(600, 4), SPLIT.train, other),
        schema=SCHEMA,
        secrets=["c"],
        on_progress=said.append,
        on_share=shares.append,
    )
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == pytest.approx(1.0)
    before = said[: said.index("testing membership") - 1]
    assert before[0] == "reading the tables"
    assert [f"warning: {warning}" for warning in found.warnings] == before[1:]
    assert "not of one population" in found.warnings[-1]


def test_the_order_of_real_rows_says_nothing_of_membership() -> None:
    tables = load_released(SPLIT.train, LEAKY, SPLIT.holdout, schema=SCHEMA)
    by_coins = canaries_of(tables, SPLIT.coins, seed=0)
    pd.testing.assert_frame_equal(by_coins.real, SCHEMA.canonical(DATA))
    assert (by_coins.inside == SPLIT.coins.coins).all()
    shuffled = canaries_of(tables, None, seed=0)
    first = shuffled.inside[: len(SPLIT.train)]
    assert 0.4 < first.mean() < 0.6
    for canaries in (by_coins, shuffled):
        for kind, table, rows in (
            (canaries.inside, tables.train, canaries.members),
            (~canaries.inside, tables.holdout, canaries.others),
        ):
            assert table is not None
            found = canaries.real.iloc[canaries.rows[kind]]
            assert (found.to_numpy() == table.iloc[rows].to_numpy()).all()


def test_only_rows_with_a_coin_are_scored() -> None:
    split = dpaudit.split(DATA, coins=200, seed=2)
    found = dpaudit.audit_data(
        with_copies(split.train, 0.3), split.train, split.holdout, coins=split.coins, schema=SCHEMA
    )
    assert found.rows.coins == 200
    assert found.membership is not None
    assert found.membership.fitted + found.membership.scored == 200


def test_settings_that_need_more_are_refused() -> None:
    with pytest.raises(SettingsError, match="need `coins`"):
        dpaudit.audit_data(LEAKY, SPLIT.train, SPLIT.holdout, epsilon=1.0)
    with pytest.raises(SettingsError, match="needs `holdout`"):
        dpaudit.audit_data(LEAKY, SPLIT.train, coins=SPLIT.coins)
    with pytest.raises(DataError, match="holdout table"):
        dpaudit.audit_data(LEAKY, SPLIT.train, SPLIT.train, coins=SPLIT.coins)


def test_the_document_fits_its_schema_and_repeats(proved: dpaudit.ReleasedDataResult) -> None:
    jsonschema.validate(proved.to_document(), released_schema())
    again = dpaudit.audit_data(
        LEAKY, SPLIT.train, SPLIT.holdout, coins=SPLIT.coins, schema=SCHEMA, epsilon=1.0
    )
    assert again.to_json() == proved.to_json()
    alone = dpaudit.audit_data(LEAKY, SPLIT.train, schema=SCHEMA)
    jsonschema.validate(alone.to_document(), released_schema())


def test_reports_say_the_same_and_print_no_record(proved: dpaudit.ReleasedDataResult) -> None:
    found = proved
    assert found.bound is not None
    for text in (str(found), found.to_markdown(), found.to_html()):
        assert "VIOLATION" in text
        assert "Riskiest rows" in text
        assert re.search(r"psilon is at least [0-9.]+ at 95 % confidence", text)
        for value in LEAKY.x0[:50]:
            assert str(value)[:7] not in text
    assert max(map(len, str(found).splitlines())) <= 80
    page = found.to_html()
    header = page.partition("</header>")[0]
    assert header.count("<svg") == 1
    assert "change the odds that a row was in the training table" in header
    assert "hold-out rows</text>" in header
    titles = re.findall(r"<h2>(.+?)</h2>", page)
    assert titles[:2] == ["Result", "Next step"]
    assert {"Threat model", "Standards"} <= set(titles)
    assert found.reproduce is None  # its tables are in memory
    assert found.date is not None
    assert found.date in page


def test_without_a_holdout_the_page_says_what_can_be_known_and_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    SPLIT.train.to_csv("train.csv", index=False)
    LEAKY.to_csv("my synthetic.csv", index=False)
    found = dpaudit.audit_data("my synthetic.csv", "train.csv", seed=3)
    assert found.finding is ReleasedFinding.INCONCLUSIVE
    assert re.match(r"INCONCLUSIVE  \d+ of \d+ synthetic rows equal a training row", found.headline)
    page = found.to_html()
    header = page.partition("</header>")[0]
    assert "A hold-out is a table of real rows of the same population" in header
    assert "treat it as confidential" in header
    assert "treat it as confidential" in " ".join(str(found).split())
    assert "<svg" not in page
    assert "training rows (" in page
    after = page.partition("<h2>Next step</h2>")[2]
    assert re.search(r"\d+ synthetic rows equal a real row: do not release this table", after)
    assert "--holdout" in after.partition("</section>")[0]
    assert "dpaudit split" in after.partition("</section>")[0]
    assert found.reproduce is not None
    words = shlex.split(found.reproduce)
    assert words[:4] == ["dpaudit", "audit-data", "--synthetic", "my synthetic.csv"]
    assert words[-2:] == ["--seed", "3"]
    _, facts, _ = str(found).split("\n\n", 2)  # before the findings, as in every report
    assert "\nnext      " in facts
    assert facts.endswith("\n          dpaudit split --data table.csv --to split")
    assert str(found).count("Not tested") == 1


def test_the_sections_that_standards_name_are_on_the_page(
    proved: dpaudit.ReleasedDataResult,
) -> None:
    for found in (proved, dpaudit.audit_data(LEAKY, SPLIT.train, seed=3)):
        text = found.to_markdown()
        titles = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
        _, _, rest = text.partition("## Standards")
        answers = [row.split("|")[3].strip() for row in re.findall(r"^\| .+", rest, re.MULTILINE)]
        named = {one for answer in answers[1:] for one in answer.split("; ")}
        assert "Copies" in named
        assert named - {"not tested", "not possible: a table was in memory"} <= titles
