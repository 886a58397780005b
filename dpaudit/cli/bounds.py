"""`dpaudit bounds`: every bound again, from a finished run, without training."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dpaudit.bounds import bonferroni
from dpaudit.bounds.table import Assumption, Observed, ValidBound, entries_for
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import InputError
from dpaudit.formatting import rounded, rounded_down
from dpaudit.results.record import AttackOutcome, AuditRecord

_ESTIMATE = "estimate, not a proof"


@guarded
def bounds(
    run_folder: options.RunFolderArgument,
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
    """Recomputes every bound of a finished run from its stored counts and scores.

    Bounds are corrected for the run's number of attacks. Estimates are for comparison with other
    tools: they may exceed the true epsilon more often than the confidence admits.
    """
    from dpaudit.results.result import AuditResult

    result = AuditResult.load(run_folder)
    if not result.attacks and (result.one_run is None or result.one_run.correct is None):
        raise InputError(f"{run_folder} scored no attack, so there is nothing to bound")
    delta = result.claim.delta if delta is None else delta
    overall = result.confidence if confidence is None else confidence
    hypotheses = result.multiplicity.hypotheses
    asked = {
        "delta": delta,
        "confidence": bonferroni(overall, hypotheses),
        "assume": assume,
    }
    rows = [row for attack in result.attacks for row in _attack_rows(attack, result, **asked)]
    if result.one_run is not None:
        rows = list(_one_run_rows(result, **asked))
    output = results()
    if json:
        found = {"delta": delta, "confidence": overall, "bounds": rows}
        output.print(json_module.dumps(found, indent=2))
        return
    output.print(
        f"delta {rounded(delta)}, confidence {overall:g}, corrected for {hypotheses} attack(s)"
    )
    width = max(len(row["attack"]) for row in rows)
    for row in rows:
        label = "" if row["valid"] else f"   {_ESTIMATE}"
        output.print(
            f"{row['attack']:<{width}}  {row['method']:<17}  {rounded_down(row['epsilon'])}{label}"
        )


def _attack_rows(
    attack: AttackOutcome, result: AuditRecord, **asked: Any
) -> Iterator[dict[str, Any]]:
    if result.sequential is not None and result.sequential.stopped_early:
        # Stopped by what it saw: a fixed-n bound on these counts is not a bound.
        yield {
            "attack": attack.name,
            "method": ValidBound.SEQUENTIAL.value,
            "epsilon": attack.bounds[ValidBound.SEQUENTIAL],
            "valid": True,
        }
        return
    yield from _rows(attack.name, Observed.COUNTS, tuple(attack.counts), **asked)


def _one_run_rows(result: AuditRecord, **asked: Any) -> Iterator[dict[str, Any]]:
    found = result.one_run
    assert found is not None  # of a one-run audit
    observed = (found.correct, found.guesses, found.canaries)
    yield from _rows(str(result.attack), Observed.CANARIES, observed, **asked)


def _rows(
    attack: str,
    kind: Observed,
    observed: tuple[Any, ...],
    *,
    delta: float,
    confidence: float,
    assume: Assumption | None,
) -> Iterator[dict[str, Any]]:
    for entry in entries_for(kind):
        if entry.assumption in (None, assume):
            epsilon = entry.function(*observed, delta=delta, confidence=confidence)
            yield {
                "attack": attack,
                "method": entry.key.value,
                "epsilon": epsilon,
                "valid": entry.valid,
            }
