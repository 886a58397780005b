"""What an audit returns: read from a file, checked, and shown in a few lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AuditResult, InputError
from dpaudit.game.store import STORE_FILE
from dpaudit.results.record import AuditRecord

Make = Callable[..., AuditRecord]


@pytest.fixture
def written(tmp_path: Path, example: dict[str, Any]) -> Callable[[dict[str, Any]], Path]:
    """Writes a document as the `result.json` of a run folder."""

    def write(changes: dict[str, Any]) -> Path:
        document = {**example, **changes}
        kept = {key: value for key, value in document.items() if value is not ...}
        file = tmp_path / "result.json"
        file.write_text(json.dumps(kept))
        return file

    return write


def test_a_result_is_loaded_from_a_folder_or_a_file_by_string_or_path(
    tmp_path: Path, record_of: Make
) -> None:
    saved = AuditResult.of(record_of(), folder=None)
    saved.save(tmp_path)
    for path in (tmp_path, tmp_path / "result.json"):
        for given in (path, str(path)):
            loaded = AuditResult.load(given)
            assert loaded == saved
            assert loaded.folder == tmp_path
    assert saved.folder is None


def test_a_result_is_saved_by_string_too(tmp_path: Path, record_of: Make) -> None:
    AuditResult.of(record_of(), folder=None).save(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


NO_NUMBERS = {"proved": None, "auc": None, "scores": {"in": [], "out": []}}
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "missing key": ({"verdict": ...}, "the document: 'verdict' is a required property"),
    "missing inner key": (
        {"claim": {"epsilon": 1.0, "delta": 0.0, "neighbours": "add-remove"}},
        "claim: 'source' is a required property",
    ),
    "extra key": ({"surprise": 1}, "'surprise' was unexpected"),
    "extra inner key": (
        {"schema": {"inferred": True, "x": 1}},
        r"schema: .*\('x' was unexpected\)",
    ),
    "wrong type": ({"seconds": "long"}, "seconds: 'long' is not of type 'number'"),
    "wrong type where null may be": ({"proved": "much"}, "proved: 'much' is not of type 'number'"),
    "truth as a number": ({"rows": True}, "rows: True is not of type 'integer'"),
    "out of range": ({"proved": -1.0}, "proved: -1.0 is less than the minimum of 0"),
    "unknown verdict": ({"verdict": "private"}, "verdict: 'private' is not one of"),
    "unfinished part": ({"game": {"name": "one run"}}, "game: '.*' is a required property"),
    "unknown game": (
        {"game": {"name": "chess", "sequential": None}},
        "game.name: .chess. is not one of",
    ),
    "unknown world": ({"failures": {"in": 0, "off": 0}}, "failures: "),
    "claim without meaning": (
        {"claim": {"epsilon": -1, "delta": 0, "neighbours": "add-remove", "source": ""}},
        "epsilon must be a number greater than 0",
    ),
    "more errors than trials": (
        {"counts": {"false_negatives": 9, "false_positives": 0, "n_in": 5, "n_out": 5}},
        "is not the result of an audit: .*5.*9",
    ),
    "a verdict without its numbers": (
        NO_NUMBERS,
        "a result with verdict violation lacks proved, auc, scores",
    ),
    "an endless list": ({"scores": [0.25] * 4000}, "scores: .*… *; take the file"),
    "older version": ({"schema_version": 2}, "has schema_version 2, this dpaudit reads 3: "),
    "newer version": ({"schema_version": 4}, "has schema_version 4, this dpaudit reads 3: "),
    "no version": ({"schema_version": ...}, "has schema_version None, this dpaudit reads 3: "),
    "NaN": ({"proved": float("nan")}, "is not JSON"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_document_is_refused_in_one_line(
    case: str, written: Callable[[dict[str, Any]], Path]
) -> None:
    changes, message = BROKEN[case]
    file = written(changes)
    with pytest.raises(InputError, match=message) as refused:
        AuditResult.load(file)
    [line] = str(refused.value).splitlines()
    assert line.startswith(str(file))
    assert len(line) < len(str(file)) + 320


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not JSON", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[]", "has schema_version None"),
        (b"null", "has schema_version None"),
    ],
)
def test_a_file_that_is_no_document_is_refused_in_one_line(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "other.json"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as refused:
        AuditResult.load(file)
    assert "\n" not in str(refused.value)


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match=r"no result at .*; give a run folder"):
            AuditResult.load(path)


def test_a_run_that_has_not_finished_is_no_missing_result(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).touch()
    with pytest.raises(InputError, match="has not finished: repeat its command to resume it"):
        AuditResult.load(tmp_path)


def test_it_is_shown_in_a_few_lines(record_of: Make, never_run: AuditRecord) -> None:
    result = AuditResult.of(record_of(), folder=Path("run"))
    assert repr(result).splitlines() == [
        "<AuditResult",
        "  VIOLATION  claimed epsilon 1, empirical epsilon at least 3.21 (95 % confidence)",
        "  attack    groundhog: AUC 0.981, FNR 3/120, FPR 1/120; 160 models trained it;",
        "            best of 2 attacks on the same models, so optimistic",
        "  report    run/report.html>",
    ]
    assert repr(AuditResult.of(never_run, folder=None)).splitlines() == [
        "<AuditResult",
        "  INVALID  the null control failed; nothing is known about epsilon 1",
        "  attack    none was scored>",
    ]
    assert str(result).splitlines()[0].startswith("VIOLATION  ")


def test_its_bound_and_claim_are_at_hand(record_of: Make, never_run: AuditRecord) -> None:
    result = AuditResult.of(record_of(), folder=None)
    assert (result.epsilon_lower_bound, result.claimed_epsilon) == (3.21, 1.0)
    assert AuditResult.of(never_run, folder=None).epsilon_lower_bound == 0.0


@pytest.mark.parametrize(
    ("verdict", "on_inconclusive", "passes"),
    [
        ("consistent", "fail", True),
        ("consistent", "pass", True),
        ("inconclusive", "fail", False),
        ("inconclusive", "pass", True),
        ("violation", "pass", False),
        ("invalid", "pass", False),
    ],
)
def test_which_verdicts_pass_a_test(
    verdict: str, on_inconclusive: Any, passes: bool, record_of: Make
) -> None:
    result = AuditResult.of(record_of(verdict=verdict), folder=Path("run"))
    if passes:
        result.assert_no_violation(on_inconclusive=on_inconclusive)
        return
    with pytest.raises(AssertionError) as failed:
        result.assert_no_violation(on_inconclusive=on_inconclusive)
    assert str(failed.value) == result.failure_message()
    assert result.failure_message().endswith("seed      0\nreport    run/report.html")


@pytest.mark.parametrize(
    ("verdict", "proved", "limit", "says"),
    [
        ("consistent", 0.4, 1.0, ""),
        ("violation", 0.4, 1.0, ""),  # of another number than the claim
        ("violation", 1.0, 1.0, "proved 1, which is not below 1"),
        ("consistent", 0.0, 4.5, "no attack could have proved more than 4.38"),
        ("invalid", 0.4, 1.0, "the audit is invalid"),
        ("inconclusive", 0.4, 1.0, ""),
    ],
)
def test_what_is_proved_is_held_to_a_number_of_ones_own(
    verdict: str, proved: float, limit: float, says: str, record_of: Make
) -> None:
    result = AuditResult.of(record_of(verdict=verdict, proved=proved), folder=Path("run"))
    if not says:
        result.assert_epsilon_below(limit)
        return
    with pytest.raises(AssertionError) as failed:
        result.assert_epsilon_below(limit)
    assert str(failed.value).startswith(says)
    assert str(failed.value).endswith(result.failure_message())
