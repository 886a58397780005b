"""The random numbers of each round of a training; how many there are is public."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from torch import Tensor

from dpaudit.account import LabelPlan
from dpaudit_generators.networks.draws import Streams
from dpaudit_generators.networks.source import Noise
from dpaudit_generators.pate_gan.settings import TrainingSettings

_AHEAD: Final = 2**14
"""Normal numbers of a model that are drawn at a time, for as many rounds as that suffices."""


class Round(NamedTuple):
    """The random numbers of one round of M models.

    Attributes:
        queries: How many labels the teachers are asked for.
        minibatches: For the teachers' minibatches, integers in [0, 2**32), [M, steps, k, batch].
        noise: For the records of the teachers' steps, of the generator's steps, and of the queries.
        replay: For the student's replay, integers in [0, 2**32), [M, steps * batch], or none.
    """

    queries: int
    minibatches: Tensor
    noise: Noise
    replay: Tensor


def labels_per_round(labels: int, rounds: int) -> list[int]:
    """Spreads labels evenly over rounds, at least one in each.

    Args:
        labels: How many the budget pays for.
        rounds: Most rounds there may be.

    Returns:
        Labels of each round; they add up to `labels`.
    """
    rounds = min(rounds, labels)
    return [labels * (r + 1) // rounds - labels * r // rounds for r in range(rounds)]


def rounds(
    streams: Streams,
    draw: Callable[[int], Noise],
    generator_steps: int,
    *,
    plan: LabelPlan,
    settings: TrainingSettings,
) -> Iterator[Round]:
    """Draws the rounds of a training, a few at a time.

    Args:
        streams: The streams of the models.
        draw: Draws from them what so many records are made of.
        generator_steps: Steps of the generator in a round; 0 if it does not learn.
        plan: How many labels may be released, by how many teachers.
        settings: The public constants.

    Yields:
        Each round.
    """
    asked = labels_per_round(plan.labels, settings.rounds)
    batch, steps = settings.batch, settings.teacher_steps
    made = (steps + generator_steps) * batch + max(asked)
    replayed = settings.student_steps * batch if settings.replay else 0
    ahead = min(len(asked), 1 + _AHEAD // (made * settings.noise_width))
    for first in range(0, len(asked), ahead):
        minibatches = streams.integers(ahead, steps, plan.teachers, batch)
        replay = streams.integers(ahead, replayed)
        noise = draw(ahead * made)
        for place, queries in enumerate(asked[first : first + ahead]):
            own = noise.part(slice(place * made, (place + 1) * made))
            yield Round(queries, minibatches[:, place], own, replay[:, place])
