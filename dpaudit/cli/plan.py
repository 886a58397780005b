"""`dpaudit plan`: what an audit of a given size can prove, and what it costs."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from dpaudit.auditing.plan import MOST_PLANNED, AssumedAttack, needed_shadow_models, power
from dpaudit.auditing.records.plan import power as power_of_records
from dpaudit.auditing.settings import DEFAULT_CANARIES, MIN_CANARIES, AuditSettings
from dpaudit.cli import options
from dpaudit.cli.console import guarded, results
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.formatting import duration, rounded, rounded_down, rounded_up
from dpaudit.model.claim import Neighbours, PrivacyClaim

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


class _Cost(NamedTuple):
    """What an audit costs.

    Attributes:
        seconds: Wall time of the whole audit, its controls included.
        trained: What is trained, by kind; as in the JSON document.
        lines: The same in words.
    """

    seconds: float
    trained: dict[str, int]
    lines: tuple[str, ...]


class _Sizing(NamedTuple):
    """Sizes of one kind of audit, and what each can prove.

    Attributes:
        unit: What a size counts, as the key of a row.
        scored: Key of what is scored for it.
        asked: The size that was asked for.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
    """

    unit: str
    scored: str
    asked: int
    rows: list[dict[str, Any]]
    needed: _Needed | None
    of: str


class _Subject(NamedTuple):
    """What is to be audited.

    Attributes:
        claim: The claim.
        table_rows: Rows of the table; None if none was handed in.
        together: Whether the generator trains many models at once.
    """

    claim: PrivacyClaim
    table_rows: int | None = None
    together: bool = False


@guarded
@options.takes_settings(
    "epsilon",
    "delta",
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
            help="How many models (or canaries) prove a true epsilon of E?",
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
    if time_one and settings.records > 1:
        raise SettingsError("--time-one is for one target: leave out `records`")
    if time_one and settings.one_run:
        raise SettingsError("--time-one is for shadow models: `one_run` trains but once")
    subject = _subject(generator, data, schema, settings)
    assumed = _assumed(subject.claim, detect=detect, tpr=tpr, fpr=fpr)
    if settings.one_run:
        sizing = _canaries(subject, settings, detect=detect, assumed=assumed)
        cost = _one_training(seconds_per_model)
    else:
        sizing = _shadow_models(subject, settings, detect=detect, assumed=assumed)
        seconds = _Seconds(seconds_per_model, None) if seconds_per_model else None
        if time_one and generator is not None and data is not None and seconds is None:
            seconds = _timed(generator, data, schema, settings)
        cost = None if seconds is None else _cost(settings, subject, seconds, jobs)
    if json:
        document = _document(sizing, subject.claim, settings, cost)
        results().print(json_module.dumps(document, indent=2))
    else:
        _show(sizing, subject.claim, settings, cost)


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


def _subject(
    generator: str | None, data: str | None, schema: Path | None, settings: AuditSettings
) -> _Subject:
    if generator is None or data is None:
        if settings.epsilon is None:
            raise ClaimError("plan needs a claim: give `epsilon`, or a GENERATOR with `data`")
        claim = PrivacyClaim(
            epsilon=settings.epsilon,
            delta=settings.delta or 0.0,
            neighbours=settings.neighbours or Neighbours.ADD_REMOVE,
        )
        return _Subject(claim)
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.protocols import trains_many

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(generator, settings.parameters, offered)
    claim = claim_under_audit(
        named, epsilon=settings.epsilon, delta=settings.delta, neighbours=settings.neighbours
    )
    return _Subject(claim, len(table.data), trains_many(named.generator))


def _shadow_models(
    subject: _Subject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> _Sizing:
    claim = subject.claim
    if settings.records > 1:
        _check_records(subject, settings, asks=assumed is not None)

    def row(shadow_models: int) -> dict[str, Any]:
        sized = replace(settings, shadow_models=shadow_models)
        fitted = {"fitted": 2 * sized.fitted, "scored": sized.scored}
        reached = power_of_records if sized.records > 1 else power
        return {"shadow_models": shadow_models, **fitted, **_proves(reached(sized, claim))}

    needed = None
    if assumed is not None:
        purpose = f"a true epsilon of {detect:g}" if detect is not None else _rates(assumed)
        needed = _Needed(needed_shadow_models(claim, assumed, settings), purpose)
    of = f"{len(settings.attacks)} attack(s)"
    if settings.records > 1:
        of += f", {settings.records} records"
    return _Sizing(
        unit="shadow_models",
        scored="scored",
        asked=settings.shadow_models,
        rows=_rows(row, {*ALTERNATIVES, settings.shadow_models}),
        needed=needed,
        of=of,
    )


def _check_records(subject: _Subject, settings: AuditSettings, *, asks: bool) -> None:
    from dpaudit.auditing.records.spec import check_neighbours, check_records

    check_neighbours(subject.claim.neighbours)
    if subject.table_rows is not None:
        check_records(settings.records, rows=subject.table_rows)
    if asks:
        raise SettingsError(
            "how many models `records` needs is not known, as records that are trained together "
            "disturb one another: leave out --detect, --tpr and --fpr, or leave out `records`"
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
    from dpaudit.auditing.one_run.spec import check_canaries, check_neighbours

    claim, confidence = subject.claim, settings.attack_confidence
    check_neighbours(claim.neighbours)
    asked = DEFAULT_CANARIES if settings.canaries is None else settings.canaries
    if subject.table_rows is not None:
        check_canaries(asked, rows=subject.table_rows)
    elif asked < MIN_CANARIES:
        raise SettingsError(f"`canaries` must be at least {MIN_CANARIES}, got {asked}")
    if assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for shadow models: with `one_run` give --detect")

    def row(canaries: int) -> dict[str, Any]:
        proves = _proves(one_run.power(canaries, claim, confidence))
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


def _proves(reached: Any) -> dict[str, Any]:
    highest, smallest, gaussian = reached
    return {
        "max_provable_epsilon": highest,
        "detectable_epsilon": smallest,
        "detectable_gaussian": gaussian,
    }


def _rows(row: Callable[[int], dict[str, Any]], sizes: set[int]) -> list[dict[str, Any]]:
    return [row(size) for size in sorted(sizes)]


def _rates(attack: AssumedAttack) -> str:
    return f"TPR {attack.tpr:.3g}, FPR {attack.fpr:.3g}"


class _Seconds(NamedTuple):
    """Time of one model in seconds; of a control None if it was not measured."""

    model: float
    control: float | None


def _timed(generator: str, data: str, schema: Path | None, settings: AuditSettings) -> _Seconds:
    from dpaudit.auditing.timing import time_one
    from dpaudit.auditing.two_worlds import build_two_worlds
    from dpaudit.model.tables import load

    return _Seconds(*time_one(build_two_worlds(generator, load(data, schema), settings)))


def _cost(settings: AuditSettings, subject: _Subject, seconds: _Seconds, jobs: int | None) -> _Cost:
    import loky

    from dpaudit.auditing.timing import trainings

    workers = jobs or loky.cpu_count()
    planned = trainings(settings, together=subject.together)
    control = seconds.model if seconds.control is None else seconds.control
    total = planned.seconds(per_model=seconds.model, per_control=control) / workers
    each = f"{rounded(seconds.model)} s a model"
    if seconds.control is None:
        each += "; controls counted alike, though they train nothing"
    else:
        each += f", {rounded(control)} s a control"
    if subject.together and seconds.control is not None:
        each += "; trained together they take less"
    repeats = f"{planned.repeats} repeat{'s' if planned.repeats > 1 else ''}"
    return _Cost(
        total,
        planned._asdict(),
        (
            f"cost: about {duration(total)} for {planned.models} models, {repeats} and "
            f"{planned.controls} controls",
            f"      ({each})",
        ),
    )


def _one_training(seconds_per_model: float | None) -> _Cost | None:
    if seconds_per_model is None:
        return None
    lines = (
        f"cost: about {duration(seconds_per_model)} for one model; its controls train nothing",
    )
    return _Cost(seconds_per_model, {"models": 1, "repeats": 0, "controls": 2}, lines)


def _document(
    sizing: _Sizing, claim: PrivacyClaim, settings: AuditSettings, cost: _Cost | None
) -> dict[str, Any]:
    return {
        f"needed_{sizing.unit}": None if sizing.needed is None else sizing.needed.size,
        **_asked(sizing),
        "epsilon": claim.epsilon,
        "delta": claim.delta,
        "attacks": settings.hypotheses.count if settings.one_run else len(settings.attacks),
        "confidence": settings.confidence,
        "one_run": settings.one_run,
        "seconds": None if cost is None else cost.seconds,
        "trainings": None if cost is None else cost.trained,
        "alternatives": sizing.rows,
    }


def _asked(sizing: _Sizing) -> dict[str, Any]:
    return next(row for row in sizing.rows if row[sizing.unit] == sizing.asked)


def _show(
    sizing: _Sizing, claim: PrivacyClaim, settings: AuditSettings, cost: _Cost | None
) -> None:
    output, unit = results(), sizing.unit.replace("_", " ")
    if sizing.needed is not None:
        size, purpose = sizing.needed
        count = f"not with up to {MOST_PLANNED:,}" if size is None else f"about {size}"
        output.print(f"80 % power against {purpose}: {count} {unit}")
    output.print(
        f"claim: epsilon {claim.epsilon:g}, delta {claim.delta:g}; "
        f"confidence {settings.confidence:g}, {sizing.of}"
    )
    output.print("")
    output.print(f"{unit:>13}  {sizing.scored:>7}  largest provable  caught with 80 % power")
    for row in sizing.rows:
        caught = row["detectable_epsilon"]
        shown = "no leak" if caught is None else f"epsilon >= {rounded_up(caught)}"
        mark = "  <- asked" if row[sizing.unit] == sizing.asked else ""
        output.print(
            f"{row[sizing.unit]:>13}  {row[sizing.scored]:>7}  "
            f"{rounded_down(row['max_provable_epsilon']):>16}  {shown:<15}{mark}".rstrip()
        )
    output.print("")
    if cost is not None:
        for line in cost.lines:
            output.print(line)
    elif settings.one_run:
        output.print("cost: one training; its controls train nothing")
    else:
        output.print("cost: time one model with --time-one, or give --seconds-per-model")
    if settings.records > 1:
        output.print(
            f"records: as if all {settings.records} leaked alike and none disturbed another; where "
            "they do, it takes a larger leak"
        )
    if _asked(sizing)["max_provable_epsilon"] <= claim.epsilon:
        output.print("too few: even a perfect attack could not prove more than the claim")
