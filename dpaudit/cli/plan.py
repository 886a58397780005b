"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.settings import MIN_SHADOW_MODELS, AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.cli.costs import AuditCost, cost_of, one_training, stated, timed
from dpaudit.errors import SettingsError
from dpaudit.formatting import percent, rounded_down, rounded_up
from dpaudit.model.claim import PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim

if TYPE_CHECKING:
    from dpaudit.cli.sizing import Sizing


@guarded
@options.takes_settings(
    "epsilon",
    "delta",
    "mu",
    "rho",
    "curve",
    "parameters",
    "neighbours",
    "attacks",
    "shadow_models",
    "confidence",
    "sequential",
    "one_run",
    "canaries",
    "records",
    "worker_memory",
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
            metavar="E",
            help="How many models (or canaries) prove a true epsilon (mu, rho, curve factor) of E?",
            show_default=False,
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
    """Says what an audit can prove and what it costs; trains nothing (or one model, to time it).

    With --one-run: what one training with so many canaries can prove.
    """
    from dpaudit.cli.sizing import assumed_attack, size_canaries, size_shadow_models, subject_of

    if jobs is not None and jobs < 1:
        raise SettingsError(f"`jobs` must be at least 1, got {jobs}")
    if seconds_per_model is not None and not seconds_per_model > 0:
        raise SettingsError(f"--seconds-per-model must be positive, got {seconds_per_model:g}")
    if time_one and (generator is None or data is None):
        raise SettingsError("--time-one needs a GENERATOR with `data`")
    subject = subject_of(generator, data, schema, settings)
    assumed = assumed_attack(subject.claim, detect=detect, tpr=tpr, fpr=fpr)
    size = size_canaries if settings.one_run else size_shadow_models
    sizing = size(subject, settings, detect=detect, assumed=assumed)
    model = stated(seconds_per_model) if seconds_per_model else None
    if time_one and generator is not None and data is not None and model is None:
        one = settings
        if not settings.one_run:
            # Half of the records are missing from every table, which takes no longer.
            one = replace(settings, records=1, shadow_models=MIN_SHADOW_MODELS)
        model = timed(generator, data, schema, one)
    cost = None
    if model is not None and settings.one_run:
        cost = one_training(model)
    elif model is not None:
        cost = cost_of(settings, model, together=subject.together, jobs=jobs)
    if json:
        document = _document(sizing, subject.claim, settings, cost)
        results().print(json_module.dumps(document, indent=2))
    else:
        _show(sizing, subject.claim, settings, cost)


def _document(
    sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None
) -> dict[str, Any]:
    from dpaudit.cli import plan_records

    return {
        f"needed_{sizing.unit}": None if sizing.needed is None else sizing.needed.size,
        **_asked(sizing),
        "quantity": claim.quantity.value,
        **claim.as_settings,
        "attacks": settings.hypotheses.count if settings.one_run else len(settings.attacks),
        "confidence": settings.confidence,
        "one_run": settings.one_run,
        "interference": sizing.interference,
        "seconds": None if cost is None else cost.seconds,
        "trainings": None if cost is None else cost.trained,
        "worker_memory": None if cost is None else cost.memory,
        "alternatives": sizing.rows,
    } | ({"records": plan_records.document(sizing.choices)} if sizing.choices else {})


def _asked(sizing: Sizing) -> dict[str, Any]:
    return next(row for row in sizing.rows if row[sizing.unit] == sizing.asked)


class _Proven(NamedTuple):
    """What a row says: the largest provable value, and the smallest that is caught."""

    most: float
    caught: float | None


def _of_row(row: dict[str, Any]) -> _Proven:
    if "max_provable" in row:
        return _Proven(row["max_provable"], row["detectable"])
    return _Proven(row["max_provable_epsilon"], row["detectable_epsilon"])


def _claim_text(claim: Claim) -> str:
    if isinstance(claim, PrivacyClaim):
        return f"epsilon {claim.epsilon:g}, delta {claim.delta:g}"
    return claim.in_words


def _show(sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None) -> None:
    from dpaudit.cli import plan_records

    output, unit = results(), sizing.unit.replace("_", " ")
    noun = claim.quantity.noun
    if sizing.needed is not None:
        size, purpose = sizing.needed
        count = f"not with up to {sizing.most:,}" if size is None else f"about {size}"
        output.print(f"80 % power against {purpose}: {count} {unit}")
    output.print(f"claim: {_claim_text(claim)}; confidence {settings.confidence:g}, {sizing.of}")
    output.print("")
    output.print(f"{unit:>13}  {sizing.scored:>7}  largest provable  caught with 80 % power")
    for row in sizing.rows:
        most, caught = _of_row(row)
        shown = "no leak" if caught is None else f"{noun} >= {rounded_up(caught)}"
        mark = "  <- asked" if row[sizing.unit] == sizing.asked else ""
        output.print(
            f"{row[sizing.unit]:>13}  {row[sizing.scored]:>7}  "
            f"{rounded_down(most):>16}  {shown:<15}{mark}".rstrip()
        )
    output.print("")
    if cost is not None:
        for line in cost.lines:
            output.print(line)
    elif settings.one_run:
        output.print("cost: one training; its controls train nothing")
    else:
        output.print("cost: time one model with --time-one, or give --seconds-per-model")
    if sizing.interference is not None:
        output.print(
            f"interference: {100.0 * sizing.interference:.0f} % of what marginals say of a coin is "
            "lost to other canaries"
        )
    elif settings.one_run:
        output.print(
            "interference: as if no canary disturbed another; GENERATOR and --data say more"
        )
    if sizing.choices:
        output.print("")
        for line in plan_records.lines(sizing.choices, settings):
            output.print(line)
    if claim.quantity is Quantity.FACTOR:
        from dpaudit.results.sentences import CURVE_FACTOR

        output.print(f"{CURVE_FACTOR}.")
    if _of_row(_asked(sizing)).most <= claim.value:
        output.print("too few: even a perfect attack could not prove more than the claim")
    error = percent(round(1.0 - settings.confidence, 12))
    output.print(f"after another audit: a fresh --seed; {error} error adds to what that one spent")
    if not settings.one_run and settings.records == 1:
        output.print(f"to add models while looking: --sequential from the start, {error} in all")
