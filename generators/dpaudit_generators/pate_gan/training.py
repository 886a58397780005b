"""PATE-GAN's training loop (Jordon, Yoon and van der Schaar 2019, Algorithm 1), stacked.

In each round teachers learn and label records, and the student learns from released labels only.
Only `Teachers` see real records. Public settings fix how many random numbers a round draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Final, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dpaudit.account import LabelBudget, LabelPlan
from dpaudit.model.encoding import encode_values
from dpaudit.seeds import rng_of
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.networks.model import Activation, Architecture, Descent, Weights
from dpaudit_generators.networks.source import Head, Noise, RecordSource, Streams
from dpaudit_generators.networks.stack import (
    Networks,
    cross_entropy,
    draw_weights,
    softplus,
    with_ones,
)
from dpaudit_generators.pate import IndexArray, LabelReleases
from dpaudit_generators.pate_gan.model import candidates
from dpaudit_generators.pate_gan.settings import Records, Trained, Trainee, TrainingSettings

GAIN: Final = 2.0
"""Factor on the generator's last layer: spreads the first synthetic records over the bounds.

The teachers' labels say nothing unless some synthetic records look real (section 4 of the paper),
and votes on a narrow cloud are all alike.
"""


class Observer(Protocol):
    """Follows a training without changing it."""

    def on_round(self, drawn: Round, chosen: Tensor, teachers: Teachers) -> None:
        """A round begins; called before any of its steps.

        Args:
            drawn: Its random numbers.
            chosen: Row numbers of the real records of its minibatches [M, steps, k, batch].
            teachers: The teachers.
        """
        ...

    def on_labels(self, votes: IndexArray, labels: IndexArray) -> None:
        """The labels of a round were released; called after the teachers' steps.

        Args:
            votes: How many teachers voted 1 [M, n].
            labels: The labels drawn from these votes [M, n].
        """
        ...


def _perceptron(hidden: Sequence[int]) -> Architecture:
    return Architecture(hidden=hidden, activation=Activation.LEAKY)


class InitialNetworks:
    """The networks that a training starts from, without padding.

    Args:
        seed: The model's seed; None draws everything from the system's entropy.
        head: Fixes how many columns a record has.
        teachers: Number k of teachers.
        settings: The public constants.
        calm: Whether the student begins with a logit of 0 for every record.

    Attributes:
        teachers: k critics.
        student: One critic.
        generator: One generator.
    """

    def __init__(
        self,
        seed: int | None,
        *,
        head: Head,
        teachers: int,
        settings: TrainingSettings,
        calm: bool = False,
    ) -> None:
        inputs = settings.noise_width + head.classes
        self.teachers = draw_weights(
            _perceptron(settings.teacher_hidden).layers(head.width, 1),
            rng_of(seed, "teacher weights"),
            k=teachers,
        )
        self.student = draw_weights(
            _perceptron(settings.student_hidden).layers(head.width, 1),
            rng_of(seed, "student weights"),
            gain=0.0 if calm else 1.0,
        )
        self.generator = draw_weights(
            _perceptron(settings.generator_hidden).layers(inputs, head.inputs),
            rng_of(seed, "generator weights"),
            gain=GAIN,
        )


def train(
    trainees: Sequence[Trainee],
    *,
    head: Head,
    plan: LabelPlan,
    settings: TrainingSettings,
    device: torch.device,
    observer: Observer | None = None,
) -> list[Trained]:
    """Trains teachers, student and generator of each model, bit-identical to training it alone.

    A model stops at the first round whose labels its budget does not pay for. Where records are
    drawn from noisy marginals, there is no generator to train.

    Args:
        trainees: What each model is trained on; noisy marginals for all of them or for none.
        head: Gives generated records the form of private ones.
        plan: How many labels may be released, with which noise.
        settings: The public constants.
        device: Where the networks are.
        observer: Follows every round.

    Returns:
        The networks of each model, as they were when it stopped, and its labels.
    """
    seeds = [trainee.seed for trainee in trainees]
    calm = any(trainee.start is not None for trainee in trainees)
    start = [
        InitialNetworks(seed, head=head, teachers=plan.teachers, settings=settings, calm=calm)
        for seed in seeds
    ]
    batch = settings.batch
    critics, students = _critics(start, settings, device)
    teachers = Teachers(critics, [trainee.records for trainee in trainees], device=device)
    student = StudentCritics(students, settings)
    budgets = [LabelBudget(trainee.labels) for trainee in trainees]
    releases = LabelReleases(plan.table, budgets, seeds=seeds)
    streams = Streams(seeds, "training", device=device)
    source, networks = _source(trainees, start, streams, head, settings, device)
    steps = 0 if networks is None else settings.generator_steps
    teaching = settings.teacher_steps * batch
    fixed = teaching + steps * batch
    ones = np.zeros((min(settings.rounds, plan.labels), len(trainees)))

    def trained(models: Sequence[int]) -> list[Trained]:
        made = [()] * len(models) if networks is None else networks.weights(models)
        shares = map(tuple, ones[:, models].T.tolist())
        return list(map(Trained, made, student.weights(models), shares))

    finished: dict[int, Trained] = {}
    planned = rounds(streams, source.draw, steps, plan=plan, settings=settings)
    for place, drawn in enumerate(planned):
        going = [budget.left >= drawn.queries for budget in budgets]
        stopping = [i for i, goes in enumerate(going) if not goes and i not in finished]
        finished |= dict(zip(stopping, trained(stopping), strict=True))
        if not any(going):
            break
        chosen = teachers.minibatches(drawn.minibatches)
        if observer is not None:
            observer.on_round(drawn, chosen, teachers)
        # The generator moves only at the end of a round: one pass makes the records of all steps.
        fakes = source.records(drawn.noise.part(slice(teaching)))
        for step, fake in enumerate(torch.split(fakes, batch, dim=1)):
            teachers.train(chosen[:, step], fake)
        asked = source.records(drawn.noise.part(slice(fixed, fixed + drawn.queries)))
        votes = teachers.votes(asked)
        labels = releases.release(votes, going=going)
        ones[place] = labels.mean(axis=1)
        if observer is not None:
            observer.on_labels(votes, labels)
        student.train(asked, torch.from_numpy(labels).float().to(device), drawn.replay)
        if isinstance(source, RecordSource):
            for first in range(teaching, fixed, batch):
                source.learn(drawn.noise.part(slice(first, first + batch)), student.missed)
    return [finished.get(i, last) for i, last in enumerate(trained(range(len(trainees))))]


def _critics(
    start: Sequence[InitialNetworks], settings: TrainingSettings, device: torch.device
) -> tuple[Networks, Networks]:
    """The teachers and the students."""
    descent = Descent(settings.learning_rate, settings.betas)
    critics, students = (
        Networks(weights, _perceptron(hidden), descent, device=device)
        for weights, hidden in (
            ([own.teachers for own in start], settings.teacher_hidden),
            ([own.student for own in start], settings.student_hidden),
        )
    )
    return critics, students


def _source(
    trainees: Sequence[Trainee],
    start: Sequence[InitialNetworks],
    streams: Streams,
    head: Head,
    settings: TrainingSettings,
    device: torch.device,
) -> tuple[RecordSource | CandidateSource, Networks | None]:
    """Noisy marginals if the models have them, else generator networks, which learn."""
    marginals = [trainee.start for trainee in trainees if trainee.start is not None]
    if marginals:
        return CandidateSource(marginals, head, streams, device=device), None
    networks = Networks(
        [own.generator for own in start],
        _perceptron(settings.generator_hidden),
        Descent(settings.learning_rate, settings.betas),
        device=device,
    )
    proportions = [trainee.proportions for trainee in trainees]
    width = settings.noise_width
    source = RecordSource(networks, streams, head, proportions, width=width, device=device)
    return source, networks


class CandidateSource:
    """Draws records from the noisy marginals of M models; does not learn.

    Args:
        starts: The marginals of each model.
        head: Fixes the order of columns.
        streams: The streams of the models.
        device: Where the tensors are placed.
    """

    def __init__(
        self, starts: Sequence[TreeModel], head: Head, streams: Streams, *, device: torch.device
    ) -> None:
        self._starts, self._streams, self._device = starts, streams, device
        self._schema, self._order = starts[0].tables.domain.schema, head.order

    def draw(self, n: int) -> Noise:
        """Draws n records of each model: the rows are the records themselves, with their ones."""
        uniforms = self._streams.uniform(n, 2 * len(self._schema.columns)).cpu().numpy()
        rows = [
            encode_values(candidates(start, own), self._schema)[:, self._order]
            for start, own in zip(self._starts, uniforms, strict=True)
        ]
        records = with_ones(torch.from_numpy(np.stack(rows)).float()).to(self._device)
        return Noise(records, records[..., :0], records[..., :0])

    def records(self, noise: Noise) -> Tensor:
        """The records."""
        return noise.rows


_AHEAD: Final = 2**14
"""Normal numbers that are drawn at a time for a model, for as many rounds as they suffice."""


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
        draw: Draws from them the inputs of this many records.
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


class StudentCritics:
    """The critic of each model that learns from released labels only.

    Replay is post-processing. The paper's student sees each label once; a small budget buys too
    few labels for that.

    Args:
        networks: One network per model.
        settings: The public constants.
    """

    def __init__(self, networks: Networks, settings: TrainingSettings) -> None:
        self._networks, self._settings = networks, settings
        self._records: list[Tensor] = []
        self._labels: list[Tensor] = []

    def weights(self, models: Sequence[int] | None = None) -> list[Weights]:
        """The weights of the students of some models, by default of all, without padding."""
        return self._networks.weights(models)

    def train(self, records: Tensor, labels: Tensor, drawn: Tensor) -> None:
        """Takes all steps of a round.

        Args:
            records: Records with their ones whose labels were released, [M, n, padded(width)].
            labels: Their labels [M, n], float32.
            drawn: Uniform integers in [0, 2**32) for replay, [M, steps * batch].
        """
        if self._settings.replay:
            records, labels = self._replayed(records, labels, drawn)
        batch = self._settings.batch
        minibatches = zip(
            torch.split(records, batch, dim=1), torch.split(labels, batch, dim=1), strict=True
        )
        for rows, wanted in islice(cycle(minibatches), self._settings.student_steps):
            losses = cross_entropy(self._networks(rows)[..., 0], wanted)
            self._networks.descend(losses.sum() / wanted.shape[1])

    def _replayed(self, records: Tensor, labels: Tensor, drawn: Tensor) -> tuple[Tensor, Tensor]:
        """Records and labels of all steps, drawn with replacement from all released so far."""
        self._records.append(records)
        self._labels.append(labels)
        known_records, known_labels = torch.cat(self._records, 1), torch.cat(self._labels, 1)
        models, known = known_labels.shape
        own = torch.arange(models, device=labels.device)[:, None]
        chosen = (drawn * known).bitwise_right_shift_(32)
        return known_records[own, chosen], known_labels[own, chosen]

    def missed(self, records: Tensor) -> Tensor:
        """The sum of the generators' losses, each the mean of -log S(G(z)).

        This loss does not saturate (Goodfellow et al. 2014, section 3).
        """
        return softplus(-self._networks(records)[..., 0]).sum() / records.shape[1]


class Teachers:
    """k critics of each of M models, each trained on its own cell against generated records.

    A teacher is a function of its cell, its share of its model's uniform numbers and generated
    records, which depend on released labels only. All shapes are constants.

    Args:
        networks: The stacked networks, k of each model; one output.
        records: The records of each model.
        device: Where the networks are.
    """

    def __init__(
        self, networks: Networks, records: Sequence[Records], *, device: torch.device
    ) -> None:
        self.networks = networks
        """The critics, k of each model."""
        self._k = len(records[0].owned)
        arrays = {id(rows): rows for rows, _ in records}
        starts = np.cumsum([0, *map(len, arrays.values())])
        start = dict(zip(arrays, starts.tolist(), strict=False))
        padding = np.zeros((1, records[0].rows.shape[1]), dtype=np.float32)
        rows = torch.from_numpy(np.concatenate([*arrays.values(), padding])).to(device)
        self.rows = with_ones(rows)
        """Real records with their ones; the last is padding."""
        # All cells one after the other; an empty one holds the padding row.
        cells = [
            start[id(rows)] + cell if len(cell) else starts[-1:]
            for rows, owned in records
            for cell in owned
        ]
        sizes = np.array([len(cell) for cell in cells]).reshape(len(records), self._k)
        starts = np.cumsum(sizes.ravel()).reshape(sizes.shape) - sizes
        self._cells = torch.from_numpy(np.concatenate(cells)).to(device)
        self._sizes = torch.from_numpy(sizes).to(device)[:, None, :, None]
        self._starts = torch.from_numpy(starts).to(device)[:, None, :, None]
        empty = [[len(cell) == 0 for cell in owned] for _, owned in records]
        self._voting = np.logical_not(empty)[:, :, None]

    def minibatches(self, drawn: Tensor) -> Tensor:
        """Draws rows with replacement from each teacher's cell.

        Args:
            drawn: Uniform integers in [0, 2**32), [M, steps, k, batch].

        Returns:
            Row numbers [M, steps, k, batch]; an empty cell has that of the padding row.
        """
        # floor(drawn / 2**32 * size), in integers; those of a step lie side by side.
        places = (drawn * self._sizes).bitwise_right_shift_(32).add_(self._starts).transpose(0, 1)
        return self._cells.index_select(0, places.flatten()).view(places.shape).transpose(0, 1)

    def train(self, chosen: Tensor, generated: Tensor) -> None:
        """Takes one step, on the same generated records for all teachers of a model.

        The loss is binary cross-entropy, as in lines 7 to 10 of PATE-GAN's Algorithm 1.

        Args:
            chosen: Row numbers of the real records [M, k, batch].
            generated: Generated records with their ones, [M, batch, padded(width)].
        """
        batch = chosen.shape[2]
        real = self.rows.index_select(0, chosen.flatten()).view(-1, batch, self.rows.shape[1])
        losses = softplus(-self.networks(real)[..., 0]) + softplus(self.logits(generated))
        self.networks.descend(losses.sum() / batch)

    def logits(self, records: Tensor) -> Tensor:
        """The logits [M * k, n] of records [M, n, padded(width)], the same for each teacher."""
        shared = records[:, None].expand(-1, self._k, -1, -1).flatten(0, 1)
        return self.networks(shared)[..., 0]

    def votes(self, records: Tensor) -> IndexArray:
        """How many teachers of each model call each record real; those of empty cells never do.

        Args:
            records: Generated records with their ones, [M, n, padded(width)].

        Returns:
            Votes [M, n].
        """
        with torch.no_grad():
            logits = self.logits(records).view(len(records), self._k, -1)
        real = (logits.cpu().numpy() > 0) & self._voting
        # Counted in 16 bits, which is faster.
        votes: IndexArray = real.sum(axis=1, dtype=np.uint16).astype(np.int64)
        return votes
