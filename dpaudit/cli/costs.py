"""What a planned audit costs in time and memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpaudit.auditing.settings import AuditSettings
from dpaudit.formatting import duration, rounded

if TYPE_CHECKING:
    from dpaudit.auditing.timing import ModelCost

_MEGABYTE = 10**6


class AuditCost(NamedTuple):
    """What an audit costs.

    Attributes:
        seconds: Wall time of the whole audit, its controls included.
        trained: What is trained, by kind; as in the JSON document.
        memory: Bytes that one worker takes, of as many as there are jobs; None if not known.
        lines: The same in words.
    """

    seconds: float
    trained: dict[str, int]
    memory: int | None
    lines: tuple[str, ...]


def timed(generator: str, data: str, schema: Path | None, settings: AuditSettings) -> ModelCost:
    """Trains one model to know its cost."""
    from dpaudit.auditing.timing import time_one
    from dpaudit.auditing.two_worlds import build_two_worlds
    from dpaudit.model.tables import load

    return time_one(build_two_worlds(generator, load(data, schema), settings))


def stated(seconds_per_model: float) -> ModelCost:
    """The cost of a model of which only the time in seconds is known."""
    from dpaudit.auditing.timing import ModelCost

    return ModelCost(seconds_per_model)


def cost_of(
    settings: AuditSettings, one: ModelCost, *, together: bool, jobs: int | None
) -> AuditCost:
    """What an audit with shadow models costs; `together`: whether they are trained together."""
    import loky

    from dpaudit.auditing.timing import trainings

    workers = jobs or loky.cpu_count()
    planned = trainings(settings, together=together)
    control = one.model if one.control is None else one.control
    total = planned.seconds(per_model=one.model, per_control=control) / workers
    each = f"{rounded(one.model)} s a model"
    if one.control is None:
        each += "; controls counted alike, though they train nothing"
    else:
        each += f", {rounded(control)} s a control"
    if together and one.control is not None:
        each += "; trained together they take less"
    repeats = f"{planned.repeats} repeat{'s' if planned.repeats > 1 else ''}"
    lines = [
        f"cost: about {duration(total)} for {planned.models} models, {repeats} and "
        f"{planned.controls} controls",
        f"      ({each})",
    ]
    if one.memory is not None:
        size = f"{one.memory / _MEGABYTE:,.0f} MB"
        lines.append(f"memory: about {size} for each of {workers} worker processes")
    return AuditCost(total, planned._asdict(), one.memory, tuple(lines))


def one_training(seconds_per_model: float | None) -> AuditCost | None:
    """What a one-run audit costs; None if the time of a model is not known."""
    if seconds_per_model is None:
        return None
    lines = (
        f"cost: about {duration(seconds_per_model)} for one model; its controls train nothing",
    )
    return AuditCost(seconds_per_model, {"models": 1, "repeats": 0, "controls": 2}, None, lines)
