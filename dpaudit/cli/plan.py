"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.plan import MOST_PLANNED, AssumedAttack, needed_shadow_models, power
from dpaudit.auditing.records import plan as of_records
from dpaudit.auditing.records.interference import Caught
from dpaudit.auditing.settings import (
    DEFAULT_CANARIES,
    MIN_CANARIES,
    MIN_SHADOW_MODELS,
    AuditSettings,
)
from dpaudit.cli import options, plan_records
from dpaudit.cli.console import guarded, results
from dpaudit.cli.costs import AuditCost, Seconds, cost_of, one_training, timed
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.formatting import rounded_down, rounded_up
from dpaudit.model.claim import Neighbours, PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim, require_add_remove, require_epsilon
from dpaudit.results.sentences import CURVE_FACTOR, quantity_noun
from dpaudit.results.verdict import Power

ALTERNATIVES = (50, 100, 200, 400, 1000, 2000)
ALTERNATIVE_CANARIES = (50, 100, 200, 500, 1000, 2000)


class _Needed(NamedTuple):
    """The answer to --detect, or to --tpr with --fpr.

    Attributes:
        size: Shadow models or canaries; None if more than are planned.
        purpose: What they are enough for, in words.
    """

    size: int | None
    purpose: str


class _Sizing(NamedTuple):
    """Sizes of one kind of audit, and what each can prove.

    Attributes:
        unit: What a size counts, as the key of a row.
        scored: Key of what is scored for it.
        asked: The size that was asked for.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
        choices: What other numbers of records catch; empty if one record is attacked.
    """

    unit: str
    scored: str
    asked: int
    rows: list[dict[str, Any]]
    needed: _Needed | None
    of: str
    choices: Sequence[Caught] = ()


class _Subject(NamedTuple):
    """What is to be audited.

    Attributes:
        claim: The claim.
        table_rows: Rows of the table; None if none was handed in.
        together: Whether the generator trains many models at once.
    """

    claim: Claim
    table_rows: int | None = None
    together: bool = False


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
    "one_run",
    "canaries",
    "records",
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
    if jobs is not None and jobs < 1:
        raise SettingsError(f"`jobs` must be at least 1, got {jobs}")
    if seconds_per_model is not None and not seconds_per_model > 0:
        raise SettingsError(f"--seconds-per-model must be positive, got {seconds_per_model:g}")
    if time_one and (generator is None or data is None):
        raise SettingsError("--time-one needs a GENERATOR with `data`")
    if time_one and settings.one_run:
        raise SettingsError("--time-one is for shadow models: `one_run` trains but once")
    subject = _subject(generator, data, schema, settings)
    assumed = _assumed(subject.claim, detect=detect, tpr=tpr, fpr=fpr)
    if settings.one_run:
        sizing = _canaries(subject, settings, detect=detect, assumed=assumed)
        cost = one_training(seconds_per_model)
    else:
        sizing = _shadow_models(subject, settings, detect=detect, assumed=assumed)
        seconds = Seconds(seconds_per_model, None) if seconds_per_model else None
        if time_one and generator is not None and data is not None and seconds is None:
            # With many records each model is trained on half of them: as good as on all but one.
            one = replace(settings, records=1, shadow_models=MIN_SHADOW_MODELS)
            seconds = timed(generator, data, schema, one)
        cost = (
            None
            if seconds is None
            else cost_of(settings, seconds, together=subject.together, jobs=jobs)
        )
    if json:
        document = _document(sizing, subject.claim, settings, cost)
        results().print(json_module.dumps(document, indent=2))
    else:
        _show(sizing, subject.claim, settings, cost)


def _assumed(
    claim: Claim, *, detect: float | None, tpr: float | None, fpr: float | None
) -> AssumedAttack | None:
    if detect is not None:
        if tpr is not None or fpr is not None:
            raise SettingsError("give either --detect or --tpr with --fpr, not both")
        if not detect > claim.value:
            raise SettingsError(
                f"--detect must be above the claim ({claim.value:g}), got {detect:g}"
            )
        return AssumedAttack.of_leak(detect, claim)
    if (tpr is None) != (fpr is None):
        raise SettingsError("--tpr and --fpr belong together: give both")
    return None if tpr is None or fpr is None else AssumedAttack(fpr=fpr, tpr=tpr)


def _subject(
    generator: str | None, data: str | None, schema: Path | None, settings: AuditSettings
) -> _Subject:
    if generator is None or data is None:
        stated = settings.stated_claim.made(
            relation=settings.neighbours or Neighbours.ADD_REMOVE,
            default_delta=0.0,
            source="given by the caller",
        )
        if stated is None:
            raise ClaimError(
                "plan needs a claim: give `epsilon`, `mu`, `rho` or `curve`, or a GENERATOR with "
                "`data`"
            )
        return _Subject(stated)
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.protocols import trains_many

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(generator, settings.parameters, offered)
    claim = claim_under_audit(named, settings.stated_claim)
    return _Subject(claim, len(table.data), trains_many(named.generator))


def _shadow_models(
    subject: _Subject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> _Sizing:
    claim = subject.claim
    many = settings.records > 1
    if many and assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for one target: with `records` give --detect")
    choices = plan_records.choices(settings, claim, rows=subject.table_rows) if many else []

    def row(shadow_models: int) -> dict[str, Any]:
        sized = replace(settings, shadow_models=shadow_models)
        fitted = {"fitted": 2 * sized.fitted, "scored": sized.scored}
        reached = of_records.power if many else power
        return {"shadow_models": shadow_models, **fitted, **_proves(reached(sized, claim), claim)}

    needed = None
    if assumed is not None:
        noun = quantity_noun(claim.quantity)
        purpose = f"a true {noun} of {detect:g}" if detect is not None else _rates(assumed)
        if many and detect is not None:
            purpose += " on every record"
            size = of_records.needed_shadow_models(claim, detect, settings)
        else:
            size = needed_shadow_models(claim, assumed, settings)
        needed = _Needed(size, purpose)
    of = f"{len(settings.attacks)} attack(s)"
    return _Sizing(
        unit="shadow_models",
        scored="scored",
        asked=settings.shadow_models,
        rows=_rows(row, {*ALTERNATIVES, settings.shadow_models}),
        needed=needed,
        of=f"{of}, {settings.records} records" if many else of,
        choices=choices,
    )


def _canaries(
    subject: _Subject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> _Sizing:
    from dpaudit.auditing.one_run import plan as one_run
    from dpaudit.auditing.one_run.attack import guesses_of
    from dpaudit.auditing.one_run.spec import check_canaries

    claim = require_epsilon(subject.claim, method="`one_run`")
    confidence = settings.attack_confidence
    require_add_remove(claim.neighbours, method="`one_run`")
    asked = DEFAULT_CANARIES if settings.canaries is None else settings.canaries
    if subject.table_rows is not None:
        check_canaries(asked, rows=subject.table_rows)
    elif asked < MIN_CANARIES:
        raise SettingsError(f"`canaries` must be at least {MIN_CANARIES}, got {asked}")
    if assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for shadow models: with `one_run` give --detect")

    def row(canaries: int) -> dict[str, Any]:
        proves = _proves(one_run.power(canaries, claim, confidence), claim)
        return {"canaries": canaries, "guesses": guesses_of(canaries), **proves}

    most = MOST_PLANNED if subject.table_rows is None else subject.table_rows // 2
    needed = None
    if detect is not None:
        size = one_run.needed_canaries(claim, detect, confidence)
        needed = _Needed(size, f"a true epsilon of {detect:g}")
    return _Sizing(
        unit="canaries",
        scored="guesses",
        asked=asked,
        rows=_rows(row, {asked, *(size for size in ALTERNATIVE_CANARIES if size <= most)}),
        needed=needed,
        of="one training",
    )


def _proves(reached: Power, claim: Claim) -> dict[str, Any]:
    """What a size proves; the keys are of epsilon, or of the quantity beside the row."""
    suffix = "_epsilon" if claim.quantity is Quantity.EPSILON else ""
    return {
        f"max_provable{suffix}": reached.max_provable,
        f"detectable{suffix}": reached.detectable,
        "detectable_gaussian": reached.detectable_gaussian,
    }


def _rows(row: Callable[[int], dict[str, Any]], sizes: set[int]) -> list[dict[str, Any]]:
    return [row(size) for size in sorted(sizes)]


def _rates(attack: AssumedAttack) -> str:
    return f"TPR {attack.tpr:.3g}, FPR {attack.fpr:.3g}"


def _document(
    sizing: _Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None
) -> dict[str, Any]:
    return {
        f"needed_{sizing.unit}": None if sizing.needed is None else sizing.needed.size,
        **_asked(sizing),
        "quantity": claim.quantity.value,
        **claim.as_settings,
        "attacks": settings.hypotheses.count if settings.one_run else len(settings.attacks),
        "confidence": settings.confidence,
        "one_run": settings.one_run,
        "seconds": None if cost is None else cost.seconds,
        "trainings": None if cost is None else cost.trained,
        "alternatives": sizing.rows,
    } | ({"records": plan_records.document(sizing.choices)} if sizing.choices else {})


def _asked(sizing: _Sizing) -> dict[str, Any]:
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


def _show(sizing: _Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost | None) -> None:
    output, unit = results(), sizing.unit.replace("_", " ")
    noun = quantity_noun(claim.quantity)
    if sizing.needed is not None:
        size, purpose = sizing.needed
        count = f"not with up to {MOST_PLANNED:,}" if size is None else f"about {size}"
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
    if sizing.choices:
        output.print("")
        for line in plan_records.lines(sizing.choices, settings):
            output.print(line)
    if claim.quantity is Quantity.FACTOR:
        output.print(f"{CURVE_FACTOR}.")
    if _of_row(_asked(sizing)).most <= claim.value:
        output.print("too few: even a perfect attack could not prove more than the claim")
