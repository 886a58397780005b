"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.plan import (
    DEFAULT_SHADOW_MODELS,
    AssumedAttack,
    Size,
    needed_shadow_models,
    power,
)
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.formatting import duration, rounded_down, rounded_up
from dpaudit.model.claim import Neighbours, PrivacyClaim

ALTERNATIVES = (50, 100, 200, 400, 1000, 2000)


@guarded
def plan(
    generator: Annotated[
        str | None,
        typer.Argument(
            metavar="[GENERATOR]", help="Take the claim from it; needs --data.", show_default=False
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FILE", help="As for audit.", show_default=False)
    ] = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    parameter: options.Parameters = None,
    neighbours: options.Relation = None,
    attack: options.Attacks = None,
    shadow_models: options.ShadowModels = DEFAULT_SHADOW_MODELS,
    confidence: options.Confidence = 0.95,
    detect: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="How many models prove a true epsilon of E?", show_default=False
        ),
    ] = None,
    tpr: Annotated[
        float | None,
        typer.Option(metavar="T", help="... or an attack of this power,", show_default=False),
    ] = None,
    fpr: Annotated[
        float | None,
        typer.Option(metavar="F", help="... at this false-positive rate?", show_default=False),
    ] = None,
    seconds_per_model: Annotated[
        float | None,
        typer.Option(metavar="S", help="Time of one model, for the cost.", show_default=False),
    ] = None,
    time_one: Annotated[
        bool,
        typer.Option("--time-one", help="Train one model of GENERATOR to know the cost."),
    ] = False,
    jobs: options.Jobs = None,
    json: options.Json = False,
) -> None:
    """Say what an audit can prove and what it costs; trains nothing (or one model, to time it)."""
    from dpaudit.auditing.entry import DEFAULT_ATTACKS

    attacks = len(attack or DEFAULT_ATTACKS)
    if jobs is not None and jobs < 1:
        raise SettingsError(f"--jobs must be at least 1, got {jobs}")
    if seconds_per_model is not None and not seconds_per_model > 0:
        raise SettingsError(f"--seconds-per-model must be positive, got {seconds_per_model:g}")
    claim, timed = _claim(
        generator, data, schema, epsilon, delta, parameter, neighbours, time_one=time_one
    )
    seconds_per_model = seconds_per_model or timed
    attack_assumed = _assumed(claim, detect=detect, tpr=tpr, fpr=fpr)
    needed = None
    if attack_assumed is not None:
        sized = Size(shadow_models=shadow_models, attacks=attacks, confidence=confidence)
        needed = needed_shadow_models(claim, attack_assumed, sized)
    rows = [
        _row(Size(shadow_models=n, attacks=attacks, confidence=confidence), claim)
        for n in sorted({*ALTERNATIVES, shadow_models})
    ]
    asked = next(row for row in rows if row["shadow_models"] == shadow_models)
    seconds = _cost(shadow_models, seconds_per_model, jobs)
    if json:
        document = {**asked, "epsilon": claim.epsilon, "delta": claim.delta, "attacks": attacks}
        document |= {"confidence": confidence, "seconds": seconds, "alternatives": rows}
        document["needed_shadow_models"] = needed
        results().print(json_module.dumps(document, indent=2))
        return
    _show(rows, shadow_models, claim, attacks, confidence, seconds)
    if attack_assumed is not None:
        power_of = f"true positives {attack_assumed.tpr:.3g} at false {attack_assumed.fpr:.3g}"
        count = "more than 200,000" if needed is None else f"about {needed}"
        results().print(f"needed for 80 % power ({power_of}): {count} shadow models")


def _assumed(
    claim: PrivacyClaim, *, detect: float | None, tpr: float | None, fpr: float | None
) -> AssumedAttack | None:
    if detect is not None:
        if tpr is not None or fpr is not None:
            raise SettingsError("give either --detect or --tpr with --fpr, not both")
        if not detect > claim.epsilon:
            raise SettingsError(
                f"--detect must be above the claim ({claim.epsilon:g}), got {detect:g}"
            )
        return AssumedAttack.of_leak(detect, claim.delta)
    if (tpr is None) != (fpr is None):
        raise SettingsError("--tpr and --fpr belong together: give both")
    return None if tpr is None or fpr is None else AssumedAttack(fpr=fpr, tpr=tpr)


class _Claimed(NamedTuple):
    claim: PrivacyClaim
    seconds_per_model: float | None


def _claim(
    generator: str | None,
    data: str | None,
    schema: Path | None,
    epsilon: float | None,
    delta: float | None,
    parameter: list[str] | None,
    neighbours: Neighbours | None,
    *,
    time_one: bool,
) -> _Claimed:
    if generator is None or data is None:
        if time_one:
            raise SettingsError("--time-one needs a GENERATOR with --data")
        if epsilon is None:
            raise ClaimError("plan needs a claim: give --epsilon, or a GENERATOR with --data")
        return _Claimed(PrivacyClaim(epsilon=epsilon, delta=delta or 0.0), None)
    from dpaudit.model.tables import load
    from dpaudit.plugins.adapt import train
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.registry import parse_parameters

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(generator, parse_parameters(parameter or []), offered)
    claim = claim_under_audit(named, epsilon=epsilon, delta=delta, neighbours=neighbours)
    if not time_one:
        return _Claimed(claim, None)
    start = time.perf_counter()
    train(named.generator, table.data, seed=0).sample(len(table.data), seed=0)
    return _Claimed(claim, time.perf_counter() - start)


def _row(size: Size, claim: PrivacyClaim) -> dict[str, Any]:
    highest, smallest = power(size, claim)
    return {
        "shadow_models": size.shadow_models,
        "fitted_per_world": size.fitted,
        "scored_per_world": size.scored,
        "max_provable_epsilon": highest,
        "detectable_epsilon": smallest,
    }


def _cost(shadow_models: int, seconds_per_model: float | None, jobs: int | None) -> float | None:
    if seconds_per_model is None:
        return None
    import loky

    return shadow_models * seconds_per_model / (jobs or loky.cpu_count())


def _show(
    rows: list[dict[str, Any]],
    shadow_models: int,
    claim: PrivacyClaim,
    attacks: int,
    confidence: float,
    seconds: float | None,
) -> None:
    output = results()
    output.print(
        f"claim: epsilon {claim.epsilon:g}, delta {claim.delta:g}; "
        f"confidence {confidence:g}, {attacks} attack(s)"
    )
    output.print("")
    output.print("shadow models   scored per world   largest provable   caught with 80 % power")
    for row in rows:
        caught = row["detectable_epsilon"]
        shown = "no leak" if caught is None else f"epsilon >= {rounded_up(caught)}"
        mark = "  <- asked" if row["shadow_models"] == shadow_models else ""
        output.print(
            f"{row['shadow_models']:>13}   {row['scored_per_world']:>16}   "
            f"{rounded_down(row['max_provable_epsilon']):>16}   {shown:>15}{mark}"
        )
    output.print("")
    if seconds is None:
        output.print("cost: time one model with --time-one, or give --seconds-per-model")
    else:
        output.print(f"cost: about {duration(seconds)} for {shadow_models} models, and controls")
    asked = next(row for row in rows if row["shadow_models"] == shadow_models)
    if asked["max_provable_epsilon"] <= claim.epsilon:
        output.print("too few: even a perfect attack could not prove more than the claim")
