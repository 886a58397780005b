"""What a replay's record says, as text, as JSON and as a page; nothing is replayed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import InputError, SettingsError
from dpaudit.model.claim import GaussianClaim, PrivacyClaim
from dpaudit.replaying.record import (
    InternalLine,
    NotFollowed,
    ReplayRecord,
    StoredFound,
    replay_page,
)
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.verdict import Verdict
from replay_records import GUESSES, PARTING, READING, ledger_line, replay_record

ONE = PrivacyClaim(epsilon=1.0, delta=0.0)
READ = {"verdict": Verdict.VIOLATION, "claim": ONE, "proved": 1.331, "reading": READING}
GUESSED = {"verdict": Verdict.VIOLATION, "claim": ONE, "proved": 1.93, "guesses": GUESSES}
OVER = {"verdict": Verdict.OVERSPENT, "claim": ONE}
PROOF = {"verdict": Verdict.VIOLATION, "claim": ONE, "of_proof": True, "proof": "composition"}
LOST = {
    "verdict": Verdict.INCONCLUSIVE,
    "claim": ONE,
    "reasons": ("the noise of lib.py:88 is compared before it meets the data", "a thread draws"),
    "spent": None,
    "spent_note": "the law at lib.py:88 is not known",
    "not_followed": (NotFollowed("lib.py:88", "compared before it meets the data"),),
}


@pytest.mark.parametrize(
    ("found", "headline"),
    [
        (
            READ,
            "VIOLATION  claimed epsilon 1, empirical epsilon at least 1.33 (95 % confidence), "
            "read off the fitted model",
        ),
        (
            {**READ, "reading": READING._replace(released_at="rows['age'][3]")},
            "VIOLATION  claimed epsilon 1, empirical epsilon at least 1.33 (95 % confidence), "
            "read off the synthetic rows",
        ),
        (
            {**GUESSED, "reading": READING._replace(bound=0.5)},
            "VIOLATION  claimed epsilon 1, empirical epsilon at least 1.93 (95 % confidence), "
            "from the release by 16 of 16 guesses",
        ),
        (
            {**GUESSED, "access": "rows", "proved": None},
            "VIOLATION  claimed epsilon 1, empirical epsilon has no limit (95 % confidence), "
            "from the synthetic rows by 16 of 16 guesses",
        ),
        (PROOF, "VIOLATION OF THE PROOF  claimed epsilon 1, its noise steps spend 2"),
        (
            OVER,
            "OVERSPENT  claimed epsilon 1, the code spends 2; the release was not shown to leak "
            "more than 1",
        ),
        (
            {**OVER, "spent": 1.0004},
            "OVERSPENT  claimed epsilon 1, the code spends 1.0004; the release was not shown to "
            "leak more than 1",
        ),
        (
            {**OVER, "spent": None, "spent_unlimited": True},
            "OVERSPENT  claimed epsilon 1, the code spends without limit; the release was not "
            "shown to leak more than 1",
        ),
        ({}, "CONSISTENT  claimed epsilon 2, the code spends 2"),
        (
            {"claim": GaussianClaim(mu=0.5), "spent": 0.5},
            "CONSISTENT  claimed mu 0.5, the code spends 0.5",
        ),
        (
            {"ledger": (ledger_line(internal=True),), "spent": 0.0},
            "CONSISTENT  claimed epsilon 2, the code spends 0 without internal lines",
        ),
        (
            LOST,
            "INCONCLUSIVE  claimed epsilon 1; the noise of lib.py:88 is compared before it meets "
            "the data",
        ),
    ],
)
def test_the_headline_says_what_is_known_and_no_more(found: dict[str, Any], headline: str) -> None:
    assert replay_record(**found).headline == headline


def said(**found: Any) -> str:
    """The text of a record without line breaks within sentences."""
    text = str(replay_record(**found))
    assert max(map(len, text.splitlines())) <= 80
    return re.sub("\n {4,}", " ", text)


def test_what_was_spent() -> None:
    assert "\nspent     epsilon 2, at the distances seen (the same in every replay)\n" in said()
    delta = {"claim": PrivacyClaim(epsilon=2.0, delta=1e-5), "spent_is_exact": False}
    text = said(**delta, spent_note="the costliest of 5 replays")
    assert "epsilon 2 at delta 1e-05, at the distances seen; the costliest of 5 replays\n" in text
    assert "at the distances and scores seen" in said(ledger=(ledger_line(counts_as="selected"),))
    assert "\nspent     not known; the law at lib.py:88 is not known\n" in said(**LOST)
    assert "\nspent     without limit\n" in said(**OVER, spent=None, spent_unlimited=True)


def test_what_the_release_shows() -> None:
    assert (
        "\nrelease   epsilon at least 1.33: `model.tables['age'][3]` is at least 12.5 (the noisy "
        "answer of lib.py:88); all 200 fits agree\n"
    ) in said(**READ)
    right = "16 of 16 guesses right by maximum (age) (43 fits)"
    assert f"\nrelease   epsilon at least 1.93: {right}\n" in said(**GUESSED)
    lost = GUESSES._replace(right=9, decided=False)
    assert "\nrelease   not shown to exceed the claim: 9 of 16 guesses" in said(
        **OVER, guesses=lost
    )
    assert "\nrelease   not tested\n" in said(**LOST)
    assert "\nrelease   equal in 8 of 8 replays\n" in said()
    assert "\nattacker  sees the fitted model and synthetic rows\n" in said()
    assert "\nattacker  sees synthetic rows\n" in said(access="rows")


def test_what_else_a_reader_must_know() -> None:
    text = said(
        reasons=("equal in 8 of 8 replays", "a line is long"),
        stored=(StoredFound("model.data", "not noisy"), StoredFound("model.n", "not noisy")),
        fixed_seeds=("a.py:1", "a.py:2"),
        few_seeds=("a.py:3",),
        fresh_noise=("a.py:4",),
        internal=(InternalLine("lib.py:88", "a log"), InternalLine("a.py:6", "")),
        ledger=(ledger_line(internal=True),),
        not_compared=("model.lock",),
        schema_inferred=True,
    )
    for row in (
        "stored    model.data, model.n: not noisy",
        "seeds     noise of a.py:1, a.py:2 has the same seed in every fit",
        "seeds     noise of a.py:3 has the same seed in fits that got different seeds",
        "sample    noise of a.py:4 is drawn again, and spent again, at each call of sample",
        "internal  lib.py:88 is declared internal (a log): what it spends is left out",
        "internal  a.py:6 is declared internal: no such line spends anything",
        "skipped   not compared: model.lock",
        "why       a line is long",
    ):
        assert f"\n{row}\n" in text
    assert "\nwarning   bounds and categories were inferred" in text


def test_the_next_step_follows_the_verdict() -> None:
    overspent = replay_record(**OVER).next_step
    assert "--proof composition" in overspent
    assert "--internal FILE:LINE" in overspent
    assert "dpaudit audit" in overspent
    assert replay_record(**READ).next_step.startswith("compare lib.py:88 with the proof")
    assert replay_record(**PROOF, ledger=()).next_step.startswith("compare the noise with")
    assert replay_record(**GUESSED, parting=PARTING).next_step.startswith("repair lib.py:12")
    stored = replay_record(**GUESSED, stored=(StoredFound("model.n", "not noisy"),)).next_step
    assert stored.startswith("take model.n out of the fitted model, or hand out rows alone")
    assert replay_record(**LOST).next_step.startswith("repair what the verdict names")
    assert replay_record().next_step.startswith("replay other records (--target)")


def test_the_text_names_where_the_worlds_part_and_what_is_not_followed() -> None:
    text = said(**GUESSED, parting=PARTING)
    assert "Where the worlds part\n  lib.py:12: a value without noise is combined" in text
    assert "\n  in: 20.0\n  out: 19.0\n" in text
    rows = PARTING._replace(place=None, inside="3 of 20 rows differ", outside="")
    text = said(**GUESSED, parting=rows)
    assert "Where the worlds part\n  The release: " in text
    assert "\n  both: 3 of 20 rows differ\n" in text
    assert said(**LOST).endswith("Not followed\n  lib.py:88: compared before it meets the data")
    several = (
        ledger_line(law="gaussian", epsilon=None, mu=0.1, sampling=0.01, other_scale=0.25),
        ledger_line(place="lib.py:9", internal=True, share=0.0),
    )
    text = said(ledger=several)
    assert "lib.py:88: the scale depends on the data: 0.5 and 0.25" in text
    assert "lib.py:88: from a secret sub-sample, which has the record with probability 0.01" in text
    assert "eps 2  internal" in text
    assert "5 more lines are in the JSON document" in said(ledger=(ledger_line(),) * 25)


def test_only_a_consistent_replay_passes_a_test() -> None:
    replay_record().assert_no_violation()
    for found in (READ, GUESSED, OVER, PROOF, LOST):
        with pytest.raises(AssertionError, match="claimed epsilon 1"):
            replay_record(**found).assert_no_violation()


def test_a_record_without_features_hands_no_attack_over() -> None:
    with pytest.raises(SettingsError, match="hands no features over"):
        replay_record(**OVER).attack()


@pytest.mark.parametrize("found", [READ, GUESSED, OVER, PROOF, LOST, {}])
def test_a_record_returns_from_its_json(found: dict[str, Any], tmp_path: Path) -> None:
    record = replay_record(**found, parting=PARTING, internal=(InternalLine("a.py:5", "a log"),))
    path = tmp_path / "replay.json"
    path.write_text(record.to_json())
    assert ReplayRecord.load(path) == record


def test_records_of_earlier_replays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    document = {**json.loads(replay_record().to_json()), "schema_version": 1}
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="has schema_version 1, this dpaudit reads 2"):
        ReplayRecord.load(path)


@pytest.mark.parametrize("found", [READ, GUESSED, OVER, PROOF, LOST, {}])
def test_a_page_holds_the_same_facts(found: dict[str, Any]) -> None:
    record = replay_record(**found, parting=PARTING)
    page = replay_page(record)
    text = page_markdown(page)
    word, _, finding = record.headline.partition("  ")
    assert f" {word}: {finding}".replace("[", "\\[") in text.splitlines()[0].replace("[", "\\[")
    assert all(row.label.capitalize() in text for row in record.rows)
    assert "## Where the worlds part" in text
    assert "| lib.py:88 | laplace | 1 | 0.5 | 1 | eps 2 | 100 % |" in text
    assert ("an attacker who sees the fitted model and synthetic rows can" in text) is (
        record.verdict is Verdict.VIOLATION and not record.of_proof
    )
    assert ("such a proof does not hold" in text) is (found in (OVER, PROOF))
    assert f'<h1 class="{record.verdict}">' in page_html(page)


def test_a_page_without_a_ledger_begins_with_the_numbers() -> None:
    page = replay_page(replay_record(**LOST, ledger=(), target="record:r.csv"))
    assert page.result.title == "Result"
    assert page.result.table is not None
    assert page.result.table.rows[0] == ("Claim", "(1, 0)-DP, add or remove one record")
    assert not any("confidential" in one for one in page.lead)
    assert "confidential" in " ".join(replay_page(replay_record()).lead)


def test_a_ledger_says_which_lines_are_charged_by_what_is_selected() -> None:
    selected = ledger_line(counts_as="selected", place="lib.py:90")
    text = page_markdown(replay_page(replay_record(ledger=(ledger_line(), selected))))
    assert "charged by what is selected, not as if the scores were released: lib.py:90" in text
    assert "charged by" not in page_markdown(replay_page(replay_record()))
