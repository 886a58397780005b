"""`dpaudit account check`: known cases, replays, exit codes and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.model.claim import Claim, GaussianClaim, PrivacyClaim
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.results.accounts import AccountCheck
from dpaudit.results.verdict import Verdict
from replay_records import ledger_line, replay_record

CASES = Path(__file__).parents[1] / "account" / "cases"


def check(*words: object) -> Result:
    return CliRunner().invoke(app, ["account", "check", *map(str, words)])


@pytest.mark.parametrize(
    ("case", "code", "headline"),
    [
        (
            "smartnoise-sdk-621",
            ExitCode.PASS,
            "LOOSE  stated epsilon 4.01 is at least 1.69 times what",
        ),
        ("opacus-813-asked", ExitCode.PASS, "LOOSE  stated epsilon 7.31 is at least 7310 times"),
        (
            "opacus-813-drawn",
            ExitCode.VIOLATION,
            "VIOLATION  stated epsilon 0.456, the calls cost at least 3.17",
        ),
        (
            "smartnoise-sdk-569",
            ExitCode.INCONCLUSIVE,
            "INCONCLUSIVE  stated epsilon 3, the calls cost at least 1.52; they cost at",
        ),
        (
            "opacus-1.5.4-batch-size",
            ExitCode.VIOLATION,
            "VIOLATION  stated epsilon 7.9, the calls cost at least 15.1",
        ),
    ],
)
def test_known_cases_are_caught(case: str, code: ExitCode, headline: str) -> None:
    done = check(CASES / f"{case}.json")
    assert done.stdout.startswith(headline)
    assert done.exit_code == code
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_wrong_term_of_the_odometer_alone_is_loose() -> None:
    done = check(CASES / "smartnoise-sdk-621.json", "--epsilon", 1414.46, "--quiet")
    assert (
        done.stdout.strip()
        == "LOOSE  stated epsilon 1410 is at least 599 times what the calls cost"
    )


def test_one_document_with_everything(tmp_path: Path) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text('[{"law": "gaussian", "scale": 5, "steps": 4}]')
    done = check(calls, "--epsilon", 2, "--delta", 1e-5, "--json")
    assert done.exit_code == ExitCode.PASS
    (tmp_path / "check.json").write_text(done.stdout)
    found = AccountCheck.load(tmp_path / "check.json")
    assert found.verdict is Verdict.CONSISTENT
    assert found.calls == 4
    assert [one.accountant for one in found.accounts][:3] == [
        *("exact (dpaudit)", "rdp (dpaudit)", "pld (dp-accounting)")
    ]
    assert found.lower == found.least == pytest.approx(gaussian_epsilon(0.4, 1e-5))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "calls.json is not JSON: give a list of mechanism calls"),
        ("[]", "calls.json has no calls: give at least one"),
        ('[{"law": "laplace", "scale": 1}]', "calls.json states no epsilon: give it, --epsilon"),
        (
            '{"epsilon": -1, "calls": [{"law": "laplace", "scale": 1}]}',
            "--epsilon is -1: give the stated one, at least 0",
        ),
        (
            '{"epsilon": 1, "delta": 1, "calls": [{"law": "laplace", "scale": 1}]}',
            "--delta is 1: give that of the stated epsilon",
        ),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    calls = tmp_path / "calls.json"
    calls.write_text(text)
    done = check(calls)
    assert done.exit_code == ExitCode.USAGE
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = check(tmp_path / "none.json")
    assert done.exit_code == ExitCode.USAGE
    assert "no calls at" in done.stderr


def line(**other: Any) -> LedgerLine:
    gaussian = {"law": "gaussian", "scale": 2.0, "epsilon": None, "mu": 0.5}
    return ledger_line(**{**gaussian, "place": "gan.py:7", **other})


PURE = {"law": "laplace", "mu": None, "epsilon": 0.3}


def replay(folder: Path, *lines: LedgerLine, **other: Any) -> Path:
    given = {"claim": PrivacyClaim(epsilon=2.0, delta=1e-5), "proved": 1.7, "spent": 1.99}
    path = folder / "replay.json"
    path.write_text(replay_record(**{**given, "ledger": lines, **other}).to_json())
    return path


def test_a_replay_is_checked_against_its_own_claim(tmp_path: Path) -> None:
    done = check(replay(tmp_path, line()))
    assert done.exit_code == ExitCode.PASS
    assert "bound     at least 1.7, shown by the release" in done.stdout
    assert "exact (dpaudit)        1.994" in done.stdout
    assert "spent in the replay     1.99" in done.stdout


def test_only_what_the_release_shows_makes_a_violation(tmp_path: Path) -> None:
    path = replay(tmp_path, line())
    assert check(path, "--epsilon", 1.6).exit_code == ExitCode.VIOLATION
    assert check(path, "--epsilon", 1.8).exit_code == ExitCode.INCONCLUSIVE
    assert check(path, "--epsilon", 1.6, "--delta", 1e-6).exit_code == ExitCode.INCONCLUSIVE
    unlimited = replay(tmp_path, line(), proved=None)
    assert check(unlimited).stdout.startswith("VIOLATION  stated epsilon 2, the calls cost no li")
    overspent = replay(tmp_path, line(), verdict=Verdict.OVERSPENT, proved=0.0)
    done = check(overspent, "--epsilon", 1.6)
    assert done.exit_code == ExitCode.INCONCLUSIVE
    assert "at least 0, as the replay shows nothing here" in done.stdout


def test_lines_declared_internal_are_left_out(tmp_path: Path) -> None:
    done = check(replay(tmp_path, line(), line(mu=3.0, internal=True)))
    assert done.exit_code == ExitCode.PASS
    assert "exact (dpaudit)        1.994" in done.stdout


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"other_scale": 3.0}, "the scale of the noise at gan.py:7 depends on the data"),
        ({"mu": None}, "the largest loss of a step at gan.py:7 is not known"),
        ({"sampling": 0.1}, "the steps at gan.py:7 are not kept one by one"),
    ],
)
def test_what_a_ledger_does_not_hold_is_said(
    tmp_path: Path, other: dict[str, Any], why: str
) -> None:
    done = check(replay(tmp_path, line(**other), proved=0.0, spent=None))
    assert done.exit_code == ExitCode.INCONCLUSIVE
    assert why in done.stdout


def test_pure_lines_add_up_without_delta(tmp_path: Path) -> None:
    claim: Claim = PrivacyClaim(epsilon=0.6, delta=0.0)
    other = {"claim": claim, "proved": 0.6, "spent": 0.6}
    done = check(replay(tmp_path, line(**PURE), line(**PURE), **other))
    assert done.exit_code == ExitCode.PASS
    assert "exact (dpaudit)          0.6" in done.stdout


def test_a_claim_in_mu_needs_an_epsilon(tmp_path: Path) -> None:
    path = replay(tmp_path, line(), claim=GaussianClaim(mu=0.5))
    done = check(path)
    assert done.exit_code == ExitCode.USAGE
    assert "state --epsilon and --delta to compare" in done.stderr
    assert check(path, "--epsilon", 2, "--delta", 1e-5).exit_code == ExitCode.PASS
