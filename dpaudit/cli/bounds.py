"""`dpaudit bounds`: every bound again, from a finished run, without training."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.bounds import (
    Counts,
    bonferroni,
    clopper_pearson,
    exact,
    gdp,
    jeffreys,
    joint_beta,
    one_run,
    one_run_gaussian,
)
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import InputError
from dpaudit.formatting import rounded, rounded_down


class Assumption(StrEnum):
    """What an estimate may take for granted about the mechanism."""

    GAUSSIAN = "gaussian"


_ESTIMATE = "estimate, not a proof"


@guarded
def bounds(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or its result.json.")
    ],
    delta: Annotated[
        float | None, typer.Option(metavar="D", help="Default: the run's.", show_default=False)
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(metavar="C", help="Default: the run's.", show_default=False)
    ] = None,
    assume: Annotated[
        Assumption | None,
        typer.Option(help="Also the estimate that holds for such mechanisms.", show_default=False),
    ] = None,
    json: options.Json = False,
) -> None:
    """Recompute every bound of a finished run from its stored counts and scores.

    Bounds are corrected for the run's number of attacks. Estimates are for comparison with other
    tools: they may exceed the true epsilon more often than the confidence admits.
    """
    from dpaudit.auditing.result import AuditResult

    document = AuditResult.load(run_folder).document
    canaries = document["one_run"]
    if not document["attacks"] and (canaries is None or canaries["correct"] is None):
        raise InputError(f"{run_folder} scored no attack, so there is nothing to bound")
    delta = document["claim"]["delta"] if delta is None else delta
    overall = document["confidence"] if confidence is None else confidence
    each = bonferroni(overall, document["multiplicity"]["hypotheses"])
    rows = [
        row
        for attack in document["attacks"]
        for row in _rows(attack, document, delta, each, assume)
    ]
    if canaries is not None:
        rows = list(_one_run_rows(document, delta, overall, assume))
    output = results()
    if json:
        found = {"delta": delta, "confidence": overall, "bounds": rows}
        output.print(json_module.dumps(found, indent=2))
        return
    hypotheses = document["multiplicity"]["hypotheses"]
    output.print(
        f"delta {rounded(delta)}, confidence {overall:g}, corrected for {hypotheses} attack(s)"
    )
    width = max(len(row["attack"]) for row in rows)
    for row in rows:
        label = "" if row["valid"] else f"   {_ESTIMATE}"
        output.print(
            f"{row['attack']:<{width}}  {row['method']:<17}  {rounded_down(row['epsilon'])}{label}"
        )


def _one_run_rows(
    document: Mapping[str, Any], delta: float, confidence: float, assume: Assumption | None
) -> Iterator[dict[str, Any]]:
    found, name = document["one_run"], document["attack"]
    outcome = (found["correct"], found["guesses"], found["canaries"])
    proved = one_run(*outcome, delta=delta, confidence=confidence)
    yield {"attack": name, "method": "one_run", "epsilon": proved, "valid": True}
    if assume is Assumption.GAUSSIAN:
        estimate = one_run_gaussian(*outcome, delta=delta, confidence=confidence)
        yield {"attack": name, "method": "one_run_gaussian", "epsilon": estimate, "valid": False}


def _rows(
    attack: dict[str, Any],
    document: Mapping[str, Any],
    delta: float,
    confidence: float,
    assume: Assumption | None,
) -> Iterator[dict[str, Any]]:
    counts = attack["counts"]
    errors = Counts(**counts)

    def row(method: str, epsilon: float, *, valid: bool) -> dict[str, Any]:
        return {"attack": attack["name"], "method": method, "epsilon": epsilon, "valid": valid}

    sequential = document["sequential"]
    if sequential is not None and sequential["stopped_early"]:
        # Stopped by what it saw: a fixed-n bound on these counts is no bound.
        yield row("sequential", attack["bounds"]["sequential"], valid=True)
        return
    yield row("exact", exact(*errors, delta=delta, confidence=confidence), valid=True)
    yield row(
        "clopper_pearson", clopper_pearson(*errors, delta=delta, confidence=confidence), valid=True
    )
    yield row("jeffreys", jeffreys(*errors, delta=delta, confidence=confidence), valid=False)
    yield row("joint_beta", joint_beta(*errors, delta=delta, confidence=confidence), valid=False)
    if assume is Assumption.GAUSSIAN:
        yield row(
            "gdp", gdp(*errors, delta=delta, confidence=confidence, assume="gaussian"), valid=False
        )
