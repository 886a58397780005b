"""What a planned audit costs in time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dpaudit.auditing.settings import AuditSettings
from dpaudit.formatting import duration, rounded


class AuditCost(NamedTuple):
    """What an audit costs.

    Attributes:
        seconds: Wall time of the whole audit, its controls included.
        trained: What is trained, by kind; as in the JSON document.
        lines: The same in words.
    """

    seconds: float
    trained: dict[str, int]
    lines: tuple[str, ...]


class Seconds(NamedTuple):
    """Time of one model in seconds; of a control None if it was not measured."""

    model: float
    control: float | None


def timed(generator: str, data: str, schema: Path | None, settings: AuditSettings) -> Seconds:
    """Trains one model to know its time."""
    from dpaudit.auditing.timing import time_one
    from dpaudit.auditing.two_worlds import build_two_worlds
    from dpaudit.model.tables import load

    return Seconds(*time_one(build_two_worlds(generator, load(data, schema), settings)))


def cost_of(
    settings: AuditSettings, seconds: Seconds, *, together: bool, jobs: int | None
) -> AuditCost:
    """What an audit with shadow models costs; `together`: whether they are trained together."""
    import loky

    from dpaudit.auditing.timing import trainings

    workers = jobs or loky.cpu_count()
    planned = trainings(settings, together=together)
    control = seconds.model if seconds.control is None else seconds.control
    total = planned.seconds(per_model=seconds.model, per_control=control) / workers
    each = f"{rounded(seconds.model)} s a model"
    if seconds.control is None:
        each += "; controls counted alike, though they train nothing"
    else:
        each += f", {rounded(control)} s a control"
    if together and seconds.control is not None:
        each += "; trained together they take less"
    repeats = f"{planned.repeats} repeat{'s' if planned.repeats > 1 else ''}"
    return AuditCost(
        total,
        planned._asdict(),
        (
            f"cost: about {duration(total)} for {planned.models} models, {repeats} and "
            f"{planned.controls} controls",
            f"      ({each})",
        ),
    )


def one_training(seconds_per_model: float | None) -> AuditCost | None:
    """What a one-run audit costs; None if the time of a model is not known."""
    if seconds_per_model is None:
        return None
    lines = (
        f"cost: about {duration(seconds_per_model)} for one model; its controls train nothing",
    )
    return AuditCost(seconds_per_model, {"models": 1, "repeats": 0, "controls": 2}, lines)
