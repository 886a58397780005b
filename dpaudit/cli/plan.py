"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.plan import AssumedAttack, needed_shadow_models, power
from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.formatting import duration, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim

ALTERNATIVES = (50, 100, 200, 400, 1000, 2000)


@guarded
@options.takes_settings(
    "epsilon", "delta", "parameters", "neighbours", "attacks", "shadow_models", "confidence"
)
def plan(
    settings: AuditSettings,
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
    """Says what an audit can prove and what it costs; trains nothing (or one model, to time it)."""
    if jobs is not None and jobs < 1:
        raise SettingsError(f"`jobs` must be at least 1, got {jobs}")
    if seconds_per_model is not None and not seconds_per_model > 0:
        raise SettingsError(f"--seconds-per-model must be positive, got {seconds_per_model:g}")
    claim, timed = _claim(generator, data, schema, settings, time_one=time_one)
    seconds = _cost(settings.shadow_models, seconds_per_model or timed, jobs)
    assumed = _assumed(claim, detect=detect, tpr=tpr, fpr=fpr)
    needed = None if assumed is None else needed_shadow_models(claim, assumed, settings)
    rows = [
        _row(replace(settings, shadow_models=n), claim)
        for n in sorted({*ALTERNATIVES, settings.shadow_models})
    ]
    if json:
        asked = next(row for row in rows if row["shadow_models"] == settings.shadow_models)
        document = {**asked, "epsilon": claim.epsilon, "delta": claim.delta}
        document |= {"attacks": len(settings.attacks), "confidence": settings.confidence}
        document |= {"seconds": seconds, "alternatives": rows, "needed_shadow_models": needed}
        results().print(json_module.dumps(document, indent=2))
        return
    _show(rows, settings, claim, seconds)
    if assumed is not None:
        power_of = f"true positives {assumed.tpr:.3g} at false {assumed.fpr:.3g}"
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
    settings: AuditSettings,
    *,
    time_one: bool,
) -> _Claimed:
    if generator is None or data is None:
        if time_one:
            raise SettingsError("--time-one needs a GENERATOR with `data`")
        if settings.epsilon is None:
            raise ClaimError("plan needs a claim: give `epsilon`, or a GENERATOR with `data`")
        claim = PrivacyClaim(epsilon=settings.epsilon, delta=settings.delta or 0.0)
        return _Claimed(claim, None)
    from dpaudit.model.tables import load
    from dpaudit.plugins.adapt import train
    from dpaudit.plugins.named import claim_under_audit, named_generator

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(generator, settings.parameters, offered)
    claim = claim_under_audit(
        named, epsilon=settings.epsilon, delta=settings.delta, neighbours=settings.neighbours
    )
    if not time_one:
        return _Claimed(claim, None)
    start = time.perf_counter()
    train(named.generator, table.data, seed=0).sample(len(table.data), seed=0)
    return _Claimed(claim, time.perf_counter() - start)


def _row(settings: AuditSettings, claim: PrivacyClaim) -> dict[str, Any]:
    highest, smallest, gaussian = power(settings, claim)
    return {
        "shadow_models": settings.shadow_models,
        "fitted_per_world": settings.fitted,
        "scored_per_world": settings.scored,
        "max_provable_epsilon": highest,
        "detectable_epsilon": smallest,
        "detectable_gaussian": gaussian,
    }


def _cost(shadow_models: int, seconds_per_model: float | None, jobs: int | None) -> float | None:
    if seconds_per_model is None:
        return None
    import loky

    return shadow_models * seconds_per_model / (jobs or loky.cpu_count())


def _show(
    rows: list[dict[str, Any]],
    settings: AuditSettings,
    claim: PrivacyClaim,
    seconds: float | None,
) -> None:
    output, shadow_models = results(), settings.shadow_models
    output.print(
        f"claim: epsilon {claim.epsilon:g}, delta {claim.delta:g}; "
        f"confidence {settings.confidence:g}, {len(settings.attacks)} attack(s)"
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
