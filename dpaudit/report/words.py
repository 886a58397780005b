"""The verdict in words, for a terminal; standard library only, so that printing is instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpaudit.formatting import (
    TERMINAL_WIDTH,
    auc_text,
    clipped,
    percent,
    printable,
    rounded,
    rounded_down,
    rounded_up,
)

_MOST_DIGITS = 15
_LEAKS_SHOWN = 3


class ClaimAndProof(NamedTuple):
    """Claimed and proved epsilon, with as many digits as it takes to tell them apart."""

    claimed: str
    proved: str


def headline(document: Mapping[str, Any]) -> str:
    """Say the verdict in one line.

    Args:
        document: A result document (see `dpaudit.report.schema`).

    Returns:
        A line of at most 80 characters that begins with the verdict in capitals.
    """
    verdict = document["verdict"]
    claimed = claim_and_proof(document).claimed
    if verdict == "violation":
        proved = claim_and_proof(document).proved
        confidence = percent(document["confidence"])
        text = f"claimed epsilon {claimed}, proved at least {proved} at {confidence} confidence"
    elif verdict == "consistent":
        text = f"no violation of epsilon {claimed} found; not evidence of privacy"
    elif verdict == "inconclusive":
        text = f"epsilon {claimed} neither contradicted nor put to a fair test"
    else:
        text = f"{failed_part(document)}; nothing is known about epsilon {claimed}"
    return clipped(f"{verdict.upper()}: {text}", TERMINAL_WIDTH)


def summary_lines(document: Mapping[str, Any]) -> list[str]:
    """Sum the audit up for a terminal.

    Args:
        document: A result document.

    Returns:
        Four to nine lines of at most 80 printable characters, the headline first.
    """
    lines = [headline(document), _claim_line(document), *_target_lines(document)]
    lines += _leak_lines(document)
    lines += [_attack_line(document), *_power_lines(document), _controls_line(document)]
    failures = document["failures"]
    if failures["in"] or failures["out"]:
        errors = "; ".join(reason["error"] for reason in document["failure_reasons"])
        lines.append(f"failed trials: {failures['in']} in, {failures['out']} out ({errors})")
    if document["schema"]["inferred"]:
        lines.append("warning: bounds and categories were inferred from the table itself")
    return [clipped(printable(line), TERMINAL_WIDTH) for line in lines]


def claim_and_proof(document: Mapping[str, Any]) -> ClaimAndProof:
    """Write claim and proved bound so that a bound above the claim also reads so."""
    claim: float = document["claim"]["epsilon"]
    if document["proved"] is None:
        return ClaimAndProof(rounded(claim), rounded(None))
    bound: float = document["proved"]
    pair = ClaimAndProof(rounded(claim), rounded_down(bound))
    digits = 4
    while bound > claim and float(pair.proved) <= float(pair.claimed) and digits <= _MOST_DIGITS:
        pair = ClaimAndProof(rounded(claim, digits=digits), rounded_down(bound, digits=digits))
        digits += 1
    return pair


def feature_in_words(leak: Mapping[str, Any]) -> str:
    """Name a feature: "max(Age)", or "rows equal to the target (Age & Sex)"."""
    gap = " " if " " in leak["feature"] else ""
    return f"{leak['feature']}{gap}({leak['column']})"


def target_in_words(document: Mapping[str, Any]) -> str:
    """Name the target and how it was chosen: "row:3 (row 3)"."""
    target = document["target"]
    row = "not a row of the table" if target["row"] is None else f"row {target['row']}"
    if "selection" not in target:
        return f"{target['choice']} ({row})"
    candidates, trainings = target["selection"]["candidates"], target["selection"]["trainings"]
    return f"{target['choice']}: {row}, best of {candidates} candidates in {trainings} trainings"


def failed_part(document: Mapping[str, Any]) -> str:
    """Name what made an audit invalid."""
    failed = [
        f"the {name} control" for name, of in document["controls"].items() if not of["passed"]
    ]
    failed += [
        f'the check "{of["name"]}"'
        for of in document["checks"]
        if not of["passed"] and of["consequence"] == "invalidates"
    ]
    if not failed:
        return "the audit is not valid"
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return printable(f"{failed[0]}{more} failed")


def _claim_line(document: Mapping[str, Any]) -> str:
    claim = document["claim"]
    values = f"({rounded(claim['epsilon'])}, {rounded(claim['delta'])})-DP, {claim['neighbours']}"
    return f"claim: {values}; {claim['source']}"


def _target_lines(document: Mapping[str, Any]) -> list[str]:
    return [f"target: {target_in_words(document)}"] if "selection" in document["target"] else []


def _leak_lines(document: Mapping[str, Any]) -> list[str]:
    if document["verdict"] != "violation" or not document["leaks"]:
        return []
    first, *others = [feature_in_words(leak) for leak in document["leaks"][:_LEAKS_SHOWN]]
    line = f"leak: {first}"
    for other in others:
        if len(line) + len(other) + 2 <= TERMINAL_WIDTH:  # whole names only
            line = f"{line}; {other}"
    return [line]


def _attack_line(document: Mapping[str, Any]) -> str:
    counts, one_run = document["counts"], document["one_run"]
    if one_run is not None and one_run["correct"] is not None:
        return (
            f"attack: one training, {one_run['canaries']} canaries; "
            f"{one_run['correct']} of {one_run['guesses']} guesses of coins right"
        )
    if counts is None:
        return "attack: none was scored"
    return (
        f"attack: {clipped(document['attack'], 20)}, AUC {auc_text(document['auc'])}; "
        f"missed {counts['false_negatives']} of {counts['n_in']} in, "
        f"mistook {counts['false_positives']} of {counts['n_out']} out"
    )


def _power_lines(document: Mapping[str, Any]) -> list[str]:
    most = document["max_provable_epsilon"]
    if most is None:
        return []
    sequential = document["sequential"]
    if sequential is not None and sequential["stopped_early"]:
        pairs, cap = sequential["pairs"], sequential["cap"]
        return [f"stopped early: proved after {pairs} of at most {cap} pairs of shadow models"]
    least = document["detectable_epsilon"]
    caught = "no leak is caught" if least is None else f"epsilon {rounded_up(least)} is caught"
    return [f"power: {caught} with 80 % power; at most {rounded_down(most)} is provable"]


def _controls_line(document: Mapping[str, Any]) -> str:
    words = [f"{name} {_passed(of['passed'])}" for name, of in document["controls"].items()]
    checks = document["checks"]
    if checks:
        words.append(f"{sum(of['passed'] for of in checks)} of {len(checks)} checks passed")
    return f"controls: {', '.join(words)}"


def _passed(passed: bool) -> str:
    return "passed" if passed else "FAILED"
