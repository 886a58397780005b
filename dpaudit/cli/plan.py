"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.games import size_keywords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.formatting import (
    aligned,
    counted,
    duration,
    percent,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.model.claim import Neighbours, PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim

if TYPE_CHECKING:
    from dpaudit.auditing.plan import PlanQuestion, PlanSubject, Sizing
    from dpaudit.auditing.timing import ModelCost


_MEGABYTE = 10**6


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
    "effort",
    "confidence",
    "sequential",
    "worker_memory",
    *size_keywords(),
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
    from dpaudit.auditing.games import sizing_of

    if jobs is not None and jobs < 1:
        raise SettingsError(f"`jobs` must be at least 1, got {jobs}")
    if seconds_per_model is not None and not seconds_per_model > 0:
        raise SettingsError(f"--seconds-per-model must be positive, got {seconds_per_model:g}")
    if time_one and (generator is None or data is None):
        raise SettingsError("--time-one needs a GENERATOR with `data`")
    subject = _subject(generator, data, schema, settings)
    question = _question(subject.claim, detect=detect, tpr=tpr, fpr=fpr)
    sizing = sizing_of(subject, settings, question)
    model = stated(seconds_per_model) if seconds_per_model else None
    if time_one and generator is not None and data is not None and model is None:
        model = timed(generator, data, schema, settings)
    cost = None
    if model is not None:
        cost = cost_of(settings, model, together=subject.together, jobs=jobs)
    if json:
        document = _document(sizing, subject.claim, settings, cost)
        results().print(json_module.dumps(document, indent=2))
    else:
        _show(sizing, subject.claim, settings, cost)


def _question(
    claim: Claim, *, detect: float | None, tpr: float | None, fpr: float | None
) -> PlanQuestion:
    """The question that the audit must be large enough to answer.

    Raises:
        SettingsError: If options contradict one another.
    """
    from dpaudit.auditing.plan import AssumedAttack, PlanQuestion

    if detect is not None:
        if tpr is not None or fpr is not None:
            raise SettingsError("give either --detect or --tpr with --fpr, not both")
        if not detect > claim.value:
            raise SettingsError(
                f"--detect must be above the claim ({claim.value:g}), got {detect:g}"
            )
        return PlanQuestion(detect, AssumedAttack.of_leak(detect, claim))
    if (tpr is None) != (fpr is None):
        raise SettingsError("--tpr and --fpr belong together: give both")
    if tpr is None or fpr is None:
        return PlanQuestion()
    return PlanQuestion(assumed=AssumedAttack(fpr=fpr, tpr=tpr))


def _subject(
    generator: str | None, data: str | None, schema: Path | None, settings: AuditSettings
) -> PlanSubject:
    """The audit's subject; only the claim if no generator and table are named.

    Raises:
        ClaimError: If there is no claim.
        InputError: If the table or the generator cannot be used.
    """
    from dpaudit.auditing.plan import PlanSubject

    if generator is None or data is None:
        stated = settings.claim.made(
            relation=settings.claim.neighbours or Neighbours.ADD_REMOVE,
            default_delta=0.0,
            source="given by the caller",
        )
        if stated is None:
            raise ClaimError(
                "plan needs a claim: give `epsilon`, `mu`, `rho` or `curve`, or a GENERATOR with "
                "`data`"
            )
        return PlanSubject(stated)
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.protocols import trains_many

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(
        generator, settings.parameters, offered, worker_memory=settings.worker_memory
    )
    claim = claim_under_audit(named, settings.claim)
    return PlanSubject(claim, table, trains_many(named.generator))


def _document(
    sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None
) -> dict[str, Any]:
    return {
        f"needed_{sizing.unit}": None if sizing.needed is None else sizing.needed.size,
        **sizing.asked_row,
        "quantity": claim.quantity.value,
        **claim.as_settings,
        "attacks": sizing.attacks,
        "confidence": settings.confidence,
        "game": settings.game.NAME,
        "seconds": None if cost is None else cost.seconds,
        "trainings": None if cost is None else cost.trained,
        "worker_memory": None if cost is None else cost.memory,
        "alternatives": sizing.rows,
        **sizing.document,
    }


def _claim_text(claim: Claim) -> str:
    if isinstance(claim, PrivacyClaim):
        return f"epsilon {claim.epsilon:g}, delta {claim.delta:g}"
    return claim.in_words


def _show(sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None) -> None:
    output, unit = results(), sizing.unit.replace("_", " ")
    noun = claim.quantity.noun
    suffix = "_epsilon" if claim.quantity is Quantity.EPSILON else ""
    if sizing.needed is not None:
        size, purpose = sizing.needed
        count = f"not with up to {sizing.most:,}" if size is None else f"about {size:,}"
        output.print(f"80 % power against {purpose}: {count} {unit}")
    output.print(f"claim: {_claim_text(claim)}; confidence {settings.confidence:g}, {sizing.of}")
    output.print("")
    table = [(unit, sizing.scored, "upper limit", "detects (80 % power)", "")]
    for row in sizing.rows:
        caught = row[f"detectable{suffix}"]
        shown = "no leak" if caught is None else f"{noun} >= {rounded_up(caught)}"
        mark = "<- asked" if row[sizing.unit] == sizing.asked else ""
        sizes = str(row[sizing.unit]), str(row[sizing.scored])
        table.append((*sizes, rounded_down(row[f"max_provable{suffix}"]), shown, mark))
    for line in aligned(table, numeric={0, 1, 2}):
        output.print(line)
    output.print("")
    if cost is not None:
        for line in cost.lines:
            output.print(line)
    else:
        known = sizing.cost or "cost: time one model with --time-one, or give --seconds-per-model"
        output.print(known)
    if claim.quantity is Quantity.FACTOR:
        from dpaudit.results.sentences import CURVE_FACTOR

        output.print(f"{CURVE_FACTOR}.")
    if sizing.asked_row[f"max_provable{suffix}"] <= claim.value:
        output.print("too few: even a perfect attack could not prove more than the claim")
    for line in sizing.details:
        output.print(options.spelled(line, options=("data",)).replace("`", ""))
    error = percent(round(1.0 - settings.confidence, 12))
    output.print(f"after another audit: a fresh --seed; {error} error adds to what that one spent")
    if sizing.advice:
        output.print(options.spelled(sizing.advice))


class AuditCost(NamedTuple):
    """What an audit costs.

    Attributes:
        seconds: Wall time of the whole audit, its controls included.
        trained: Number of trainings by kind, as in the JSON document.
        memory: Bytes that one worker takes, of as many as there are jobs; None if not known.
        lines: The cost in words.
    """

    seconds: float
    trained: dict[str, int]
    memory: int | None
    lines: tuple[str, ...]


def timed(generator: str, data: str, schema: Path | None, settings: AuditSettings) -> ModelCost:
    """Trains one model to know its cost."""
    from dpaudit.auditing.games import build_spec
    from dpaudit.auditing.timing import time_one
    from dpaudit.model.tables import load

    return time_one(build_spec(generator, load(data, schema), settings))


def stated(seconds_per_model: float) -> ModelCost:
    """The cost of a model if only its time in seconds is known."""
    from dpaudit.auditing.timing import ModelCost

    return ModelCost(seconds_per_model)


def cost_of(
    settings: AuditSettings, one: ModelCost, *, together: bool, jobs: int | None
) -> AuditCost:
    """What an audit costs; `together`: whether its generator trains many models at once."""
    import loky

    from dpaudit.auditing.games import kind_of

    planned = kind_of(settings.game).trainings(settings, together)
    workers = 1 if planned.alone else jobs or loky.cpu_count()
    several = planned.models > 1
    control = one.control if one.control is not None else one.model if several else 0.0
    total = planned.seconds(per_model=one.model, per_control=control, workers=workers)
    each = f"{rounded(one.model)} s {'a' if several else 'the'} model"
    if one.control is not None:
        each += f", {rounded(control)} s a control"
    elif several:
        each += "; controls counted alike, though they train nothing"
    else:
        each = "its controls train nothing"
    if together and one.control is not None:
        each += "; trained together they take less"
    trained = [f"{planned.models} models" if several else "one model"]
    if planned.repeats:
        trained.append(counted(planned.repeats, "repeat"))
    about = "at most about" if planned.at_most else "about"
    lines = [
        f"cost: {about} {duration(total)} for {', '.join(trained)} and {planned.controls} controls",
        f"      ({each})",
        *_memory_lines(one, workers),
    ]
    parts = {name: getattr(planned, name) for name in ("models", "repeats", "controls")}
    return AuditCost(total, parts, one.memory, tuple(lines))


def _memory_lines(one: ModelCost, workers: int) -> list[str]:
    if one.memory is None:
        return []
    size = f"{one.memory / _MEGABYTE:,.0f} MB"
    if workers == 1:
        return [f"memory: about {size} for the worker process"]
    return [f"memory: about {size} for each of {workers} worker processes"]
