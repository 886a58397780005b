"""Probes of a generator's inputs other than the table: epsilon, delta and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from dpaudit.errors import BudgetError, InputError
from dpaudit.game.trial import reason_of
from dpaudit.model.choices import Severity
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import Generator, is_seedable
from dpaudit.probe.challenge import Coin, challenge, insertions, single_coin, summary
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Fit, Subject, Trainer

_GROUP_EPSILON = 0.05
"""Epsilon for all records together in the probe `epsilon-ignored`."""
_DELTAS = (1e-12, 0.1)
"""Far apart, so any noise that depends on delta differs."""
REFUSALS: Final = (InputError, BudgetError, ValueError)
"""Exceptions by which a generator refuses a setting."""
_TRIED: Final = 3
"""Records tried, one after another."""
_PILOT: Final = 10
"""Number of the first pilot fit; lower ones are already used."""


def epsilon_ignored(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks that at a tiny epsilon even an opposite table gives nearly the same output."""
    if "epsilon" not in subject.maker.takes:
        return NotApplicable("the generator is built without an epsilon")
    n = len(subject.data)
    steps = n if subject.claim.neighbours is Neighbours.REPLACE_ONE else 2 * n
    epsilon = _GROUP_EPSILON / steps
    try:
        generator = subject.build(epsilon=epsilon)
    except REFUSALS as error:
        return _refused(f"epsilon {epsilon:.2g}", error)
    own: PrivacyClaim | None = getattr(generator, "claim", None)
    built_with = getattr(subject.build(), "epsilon", subject.claim.epsilon)
    if own is None and built_with != subject.claim.epsilon:
        return NotApplicable(
            f"it states no claim, and its epsilon of {built_with} is not the claimed "
            f"{subject.claim.epsilon:g}: it may mean something else"
        )
    claim = replace(subject.claim, epsilon=epsilon) if own is None else own
    if claim.epsilon > 2.0 * epsilon:
        return Observation(
            True,
            f"built with epsilon {epsilon:.2g} it claims {claim.epsilon:.3g}",
            {"asked": epsilon, "claimed": claim.epsilon},
            certainty="stated by its own claim",
            severity=Severity.BUG,
        )
    group = group_claim(claim, steps)
    if group is None:
        return NotApplicable(f"delta {claim.delta:g} for {steps} records at once limits nothing")
    data = pd.concat([subject.data, opposite(subject.data, subject.schema)], ignore_index=True)
    data = subject.schema.canonical(data)
    coin = Coin(tuple(range(n)), tuple(range(n, 2 * n)))
    at = f"at epsilon {claim.epsilon:.2g}"
    try:
        observation = single_coin(
            trainer,
            generator,
            data,
            coin,
            lambda table: summary(table, subject),
            claim=group,
            basis=f"{at} the outputs of two opposite tables differ",
        )
    except REFUSALS as error:
        own_fit = trainer.fit_of(0, coin.heads)  # reraises errors unrelated to epsilon
        trainer.tables(subject.build(), data, [own_fit])
        return _refused(f"epsilon {epsilon:.2g} when it is trained", error)
    if observation is None:
        return Observation(False, f"{at} two opposite tables give similar outputs", {}, 1.0)
    return observation


def delta_ignored(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether the claim and the output depend on delta."""
    if "delta" not in subject.maker.takes:
        return NotApplicable("the generator is built without a delta")
    try:
        others = [subject.build(delta=delta) for delta in _DELTAS]
    except REFUSALS as error:
        return _refused(f"delta {_DELTAS[0]:g} or {_DELTAS[1]:g}", error)
    generators = [subject.build(), *others]
    claims = [getattr(generator, "claim", None) for generator in generators]
    claimed = {claim.delta for claim in claims if claim is not None}
    if None not in claims and len(claimed) == 1:
        [delta] = claimed
        return Observation(
            True,
            f"built with delta {_DELTAS[0]:g} or {_DELTAS[1]:g} it claims {delta:.2g}",
            {"claimed": delta},
            certainty="stated by its own claim",
        )

    def table(generator: Generator) -> pd.DataFrame:
        [made] = trainer.tables(generator, subject.data, [trainer.fit_of(0)])
        return made

    tables = [table(generators[0])]  # reraises errors unrelated to delta
    try:
        tables += [table(generator) for generator in others]
    except REFUSALS as error:
        return _refused(f"delta {_DELTAS[0]:g} or {_DELTAS[1]:g} when it is trained", error)
    same = all(tables[0].equals(table) for table in tables[1:])
    shown = "the same table: nothing but the claim depends on delta" if same else "other tables"
    return Observation(
        same,
        f"with delta {_DELTAS[0]:g} and {_DELTAS[1]:g} the same seed gives {shown}",
        certainty="the tables are compared bit by bit",
        severity=Severity.NOTE,
    )


def _refused(what: str, error: Exception) -> NotApplicable:
    return NotApplicable(f"the generator refuses {what}: {reason_of(error)}")


def group_claim(claim: PrivacyClaim, steps: int) -> PrivacyClaim | None:
    """The claim implied for tables that are many steps apart.

    (k ε, δ (e^(k ε) - 1) / (e^ε - 1)) (Dwork and Roth 2014, Theorem 2.2 with its δ).

    Args:
        claim: The claim for neighbouring tables.
        steps: The number k of steps.

    Returns:
        The claim; None if its delta is not below 0.1 or its epsilon above 50.
    """
    epsilon = steps * claim.epsilon
    if epsilon > 50.0:
        return None
    delta = claim.delta * math.expm1(epsilon) / math.expm1(claim.epsilon)
    return replace(claim, epsilon=epsilon, delta=delta) if delta < 0.1 else None


def opposite(data: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A dissimilar table that the schema allows: numbers mirrored and halved, categories shifted.

    Numbers move into the half of their bounds in which their mean is not, so that mean and extremes
    change even where the bounds are the extremes of the data.

    Args:
        data: The table.
        schema: Its schema.

    Returns:
        The canonical table, with as many rows.
    """
    table = {}
    for column in schema.columns:
        values = data[column.name]
        if column.kind.numeric:
            numbers, (lower, upper) = column.numbers(values), column.bounds
            halved = lower + (upper - numbers) / 2
            if 2 * np.nanmean(numbers) < lower + upper:
                halved += (upper - lower) / 2
            whole = column.kind is Kind.INTEGER
            table[column.name] = pd.Series(np.rint(halved) if whole else halved)
        else:
            following = dict(
                zip(column.categories, (*column.categories[1:], column.categories[0]), strict=True)
            )
            table[column.name] = values.map(following).astype(object)
    return schema.canonical(pd.DataFrame(table))


def seed_ignored(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether another seed changes the table, and whether constant parts reveal a record.

    First both seeds differ, of training and of sampling, because noise may be drawn with either;
    then each alone, because constant noise in one half is masked by randomness in the other.
    """
    if not is_seedable(subject.build()):
        return NotApplicable("the generator says that it cannot be seeded")
    first, second = trainer.fit_of(0), trainer.fit_of(1)
    table, other = _tables(trainer, [first, second])
    if table.equals(other):
        return _guess_from_fixed(trainer, table, "fits with different seeds", seeded=True)
    halves = [first._replace(seed=second.seed), first._replace(sample_seed=second.sample_seed)]
    by_fit, by_sample, again = _tables(trainer, [*halves, first])
    if not table.equals(again):
        return NotApplicable(
            "the same seeds gave another table: the generator cannot be seeded, and should say so "
            "(seedable = False)"
        )
    if table.equals(by_fit):
        return _guess_from_hidden(trainer, table, first, unused="the fit", used="the sample")
    if table.equals(by_sample):
        return _guess_from_hidden(trainer, table, first, unused="the sample", used="the fit")
    words = "the seed of the fit and that of the sample each change the output"
    return Observation(False, words, {}, 1.0)


def nothing_random(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks without seeds, as in production, whether one output reveals a record."""
    what = "fits called with seed=None"
    table, other = _tables(trainer, [trainer.fit_of(i, seeded=False) for i in range(2)])
    if table.equals(other):
        return _guess_from_fixed(trainer, table, what, seeded=False)
    return Observation(False, f"two {what} give two outputs", {}, 1.0)


def _guess_from_fixed(
    trainer: Trainer, fixed: pd.DataFrame, what: str, *, seeded: bool
) -> Observation | NotApplicable:
    """Guesses coins from a fixed output; an output that does not depend on the data is private."""
    subject = trainer.subject
    record = _movable(
        trainer, fixed, lambda i, record: trainer.fit_of(2 + i, [record], seeded=seeded)
    )
    if record is None:
        return Observation(False, f"{what} give one output; no record tried moves it", {}, 1.0)
    return challenge(
        trainer,
        subject.build(),
        _with_base(subject, record),
        insertions([record], [len(subject.data)], subject.claim),
        lambda table: [table.equals(fixed)],
        basis=f"{what} give one output, and another without record {record}",
        seeded=seeded,
    )


def _guess_from_hidden(
    trainer: Trainer, fixed: pd.DataFrame, first: Fit, *, unused: str, used: str
) -> Observation | NotApplicable:
    """Guesses coins if one seed is unused, so all noise is drawn with the other.

    That is not a leak if there is enough noise: the fits of the test have fresh seeds of both
    kinds, which the guesses do not know.
    """
    subject = trainer.subject
    nothing = f"the seed of {unused} alone changes nothing"
    record = _movable(trainer, fixed, lambda _, record: first._replace(dropped=(record,)))
    if record is None:
        return Observation(False, f"{nothing}; no record tried moves the output", {}, 1.0)
    observation = single_coin(
        trainer,
        subject.build(),
        _with_base(subject, record),
        insertions([record], [len(subject.data)], subject.claim)[0],
        lambda table: summary(table, subject),
        basis=f"{nothing}, and record {record} moves the output",
        first=_PILOT,
    )
    if observation is None:
        return NotApplicable(
            f"{nothing}, so that all noise is drawn with the seed of {used}; record {record} "
            "moves the output, but in the pilot no more than that noise does: whether it is enough "
            "is for an audit"
        )
    return observation


def _movable(trainer: Trainer, fixed: pd.DataFrame, fit: Callable[[int, int], Fit]) -> int | None:
    """A record whose removal changes the fixed table, if one is found; tries the target first."""
    n, target = len(trainer.subject.data), trainer.subject.target
    drawn = [int(trainer.stream("record", i).rng().integers(n)) for i in range(_TRIED)]
    named = [] if target is None else [target]
    for number, record in enumerate([*named, *drawn]):
        [table] = _tables(trainer, [fit(number, record)])
        if not table.equals(fixed):
            return record
    return None


def _tables(trainer: Trainer, fits: Sequence[Fit]) -> list[pd.DataFrame]:
    return trainer.tables(trainer.subject.build(), trainer.subject.data, fits)


def _with_base(subject: Subject, record: int) -> pd.DataFrame:
    """The table, followed by the record that may replace the given one."""
    base = subject.data.iloc[[(record + 1) % len(subject.data)]]
    return pd.concat([subject.data, base], ignore_index=True)
