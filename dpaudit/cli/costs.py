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
    from dpaudit.auditing.games import build_spec
    from dpaudit.auditing.timing import time_one
    from dpaudit.model.tables import load

    return time_one(build_spec(generator, load(data, schema), settings))


def stated(seconds_per_model: float) -> ModelCost:
    """The cost of a model of which only the time in seconds is known."""
    from dpaudit.auditing.timing import ModelCost

    return ModelCost(seconds_per_model)


def cost_of(
    settings: AuditSettings, one: ModelCost, *, together: bool, jobs: int | None
) -> AuditCost:
    """What an audit with shadow models costs; `together`: whether they are trained together."""
    import loky

    from dpaudit.auditing.games import GAMES

    workers = jobs or loky.cpu_count()
    planned = GAMES[settings.game].trainings(settings, together)
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
    about = "at most about" if settings.sequential else "about"
    lines = [
        f"cost: {about} {duration(total)} for {planned.models} models, {repeats} and "
        f"{planned.controls} controls",
        f"      ({each})",
        *_memory_lines(one, workers),
    ]
    return AuditCost(total, planned._asdict(), one.memory, tuple(lines))


def one_training(one: ModelCost) -> AuditCost:
    """What a one-run audit costs."""
    controls = 2
    total = one.model + controls * (one.control or 0.0)
    each = (
        "its controls train nothing"
        if one.control is None
        else f"{rounded(one.model)} s the model, {rounded(one.control)} s a control"
    )
    lines = (
        f"cost: about {duration(total)} for one model and {controls} controls",
        f"      ({each})",
        *_memory_lines(one, workers=1),
    )
    planned = {"models": 1, "repeats": 0, "controls": controls}
    return AuditCost(total, planned, one.memory, lines)


def _memory_lines(one: ModelCost, workers: int) -> list[str]:
    if one.memory is None:
        return []
    size = f"{one.memory / _MEGABYTE:,.0f} MB"
    if workers == 1:
        return [f"memory: about {size} for the worker process"]
    return [f"memory: about {size} for each of {workers} worker processes"]
