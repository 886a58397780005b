"""Probes of all but single records: settings, seeds, order and number of rows, and scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.bounds import one_run_p_value
from dpaudit.errors import BudgetError, InputError
from dpaudit.game.trial import reason_of
from dpaudit.model.choices import Severity
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, Generator, is_seedable
from dpaudit.probe.challenge import (
    SCHEMA,
    Coin,
    Fit,
    NotApplicable,
    Observation,
    Subject,
    Trainer,
    challenge,
    drops,
    fewest_guesses,
    insertions,
    one_coin,
    single_coin,
    summary,
    unprovable,
)

_THRESHOLDS: Final = (1000, 2000)
_DEEPEST: Final = 6
_SIDE: Final = 7
"""Fits in each order; there are 3432 ways to halve 14 fits."""
_AWAY: Final = 100.0
"""Columns are shifted away from 0 by this many ranges."""
_FITS: Final = 2
_ROUNDING: Final = 1e-6
"""Floating-point error of a whole number."""
_MORE: Final = 13
"""Rows requested in addition to those of the table."""
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


def settings_follow_rows(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks whether the model's shape jumps where the repeated table passes a threshold."""
    data = subject.data
    most = max(_THRESHOLDS) + 2
    repeated = pd.concat([data] * -(-most // len(data)), ignore_index=True).iloc[:most]
    generator = subject.build()
    seen = 0
    for threshold in _THRESHOLDS:
        sizes = (threshold - 2, threshold - 1, threshold, threshold + 1)
        fits = [
            Fit(tuple(range(size, most)), trainer.stream("fit", i).seed(), 0)
            for size in sizes
            for i in range(2)
        ]
        models = [
            dict(_walk(model, "model", _DEEPEST, set()))
            for model in trainer.models(generator, repeated, fits)
        ]
        paths = set.intersection(*(set(model) for model in models))
        everything = set.union(*(set(model) for model in models))
        seen = max(seen, len(everything))
        for path in sorted(everything):
            low = {model.get(path) for model in models[:4]}
            high = {model.get(path) for model in models[4:]}
            if len(low) == len(high) == 1 and low != high:
                before, after = low.pop(), high.pop()
                return Observation(
                    True,
                    f"{path} is {before} for {threshold - 2} and {threshold - 1} records and "
                    f"{after} for {threshold} and {threshold + 1}",
                    {"threshold": threshold, "visible": len(paths)},
                    certainty="the same for two seeds and two sizes on either side of one record",
                )
    if not seen:
        return NotApplicable(
            "the model shows no arrays, networks or whole numbers as plain attributes"
        )
    return Observation(
        False,
        f"{seen} visible shapes and whole numbers do not jump at "
        f"{' or '.join(map(str, _THRESHOLDS))} records",
        {"visible": seen},
        certainty="the same for two seeds and two sizes on either side of one record",
    )


def row_order_matters(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Compares outputs for the same records in another order, with the same seed."""
    generator, data = subject.build(), subject.data
    order = trainer.stream("order").rng().permutation(len(data))
    shuffled = data.iloc[order].reset_index(drop=True)

    def tables(table: pd.DataFrame, fits: Sequence[Fit]) -> list[pd.DataFrame]:
        return trainer.tables(generator, table, fits)

    first, again = tables(data, [trainer.fit_of(0), trainer.fit_of(0)])
    if first.equals(again):
        [other] = tables(shuffled, [trainer.fit_of(0)])
        same = alike(first, other, subject)
        if same:  # if another seed gives the same, it is a constant
            tables(data, [trainer.fit_of(1)])
        return Observation(
            not same,
            "the same seed gives "
            + ("the same table" if same else "another table")
            + " for the records in another order",
            certainty="the same order and seed give the same table twice",
        )
    sides = [
        tables(table, [trainer.fit_of(_SIDE * i + j + 1) for j in range(_SIDE)])
        for i, table in enumerate((data, shuffled))
    ]
    values = np.array([list(summary(table, subject).values()) for side in sides for table in side])
    p_value = permutation_p(values)
    words = f"{_SIDE} fits in each order, without usable seeds: exact permutation test"
    return Observation(
        p_value <= subject.settings.alpha, words, {"fits_of_each_order": _SIDE}, p_value
    )


def _shape(value: Any) -> tuple[int | None, ...] | None:
    """The shape of an array, with None for an open size; None if it is not an array."""
    try:
        sizes = tuple(value.shape) if hasattr(value, "dtype") else None
    except Exception:  # noqa: BLE001 - foreign: not every array of a framework has a shape yet
        return None
    if sizes is None:
        return None
    return tuple(int(size) if hasattr(size, "__index__") else None for size in sizes)


def _walk(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, object]]:
    """Shapes of arrays and networks, and whole numbers, by their path in an object."""
    if isinstance(value, bool | str | bytes | float | pd.DataFrame | pd.Series) or value is None:
        return
    if isinstance(value, int | np.integer):
        yield path, int(value)
        return
    if depth == 0 or id(value) in seen or (callable(value) and not hasattr(value, "state_dict")):
        return
    seen = seen | {id(value)}
    shape = _shape(value)
    if shape is not None:
        yield path, shape
    elif callable(getattr(value, "state_dict", None)):
        for name, tensor in value.state_dict().items():
            yield from _walk(tensor, f"{path}.{name}", depth - 1, seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, f"{path}[{key!r}]", depth - 1, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        yield f"len({path})", len(value)
        for position, item in enumerate(list(value)[:100]):
            yield from _walk(item, f"{path}[{position}]", depth - 1, seen)
    else:
        for name, item in getattr(value, "__dict__", {}).items():
            yield from _walk(item, f"{path}.{name}", depth - 1, seen)


def scale_wrong(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Checks that the output shifts with numbers and public bounds that are shifted far from 0."""
    moved = [c for c in subject.schema.columns if c.kind.numeric and c.name != subject.schema.label]
    if not moved:
        return NotApplicable("the table has no numeric column other than its label")
    if SCHEMA not in subject.maker.takes:
        return NotApplicable("the generator takes no schema, so its bounds cannot be moved")
    schema, data = _away(subject.schema, subject.data, moved)
    tables = trainer.tables(
        subject.build(schema, data), data, [trainer.fit_of(i) for i in range(_FITS)], schema=schema
    )
    outside = {
        column.name: min(_outside(table, column) for table in tables)
        for column in schema.columns
        if column.name in {c.name for c in moved}
    }
    wrong = [name for name, share in outside.items() if share > 0.5]
    certainty = "a generator that keeps to public bounds produces no value outside them"
    if not wrong:
        words = "the output moves with the bounds when all numbers are moved far from 0"
        read = tuple(column.name for column in moved)
        return Observation(False, words, {"columns": len(moved)}, certainty=certainty, read=read)
    [column] = [column for column in schema.columns if column.name == wrong[0]]
    values = column.numbers(tables[0][column.name])
    lower, upper = column.bounds
    return Observation(
        True,
        f"{len(wrong)} of {len(moved)} columns lie mostly outside their bounds: {column.name} in "
        f"[{np.nanmin(values):.4g}, {np.nanmax(values):.4g}], bounds [{lower:.6g}, {upper:.6g}]",
        {"columns": len(wrong), "of": len(moved)},
        certainty=certainty,
    )


def integers_truncated(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Compares whole numbers with the same column declared continuous, from the same seed.

    Bins of whole numbers end one above the largest value, those of a continuous column at it, so a
    number drawn from a bin may look truncated in all bins but the last. An alarm is therefore
    checked on a table where every whole number is the largest.
    """
    whole = [
        column
        for column in subject.schema.columns
        if column.kind is Kind.INTEGER and column.name != subject.schema.label
    ]
    if not whole:
        return NotApplicable("the table has no integer column other than its label")
    if SCHEMA not in subject.maker.takes:
        return NotApplicable("the generator takes no schema, so kinds cannot be changed")
    steps = _steps(subject, trainer, whole, subject.data)
    if not len(steps) or np.abs(steps).max() >= 1.0 or not np.any(steps):
        return NotApplicable(
            "declared continuous, whole numbers are generated differently or stay whole: nothing "
            "to compare"
        )
    mean, low, high = float(steps.mean()), float(steps.min()), float(steps.max())
    down = high <= _ROUNDING and low < -0.6
    if down:
        largest = subject.data.assign(**{column.name: column.bounds.upper for column in whole})
        down = not np.any(_steps(subject, trainer, whole, largest) > _ROUNDING)
    return Observation(
        down,
        f"against the same column declared continuous, whole numbers differ by {low:.2f} to "
        f"{high:.2f}, {mean:.3f} on average",
        {"mean": mean, "smallest": low, "largest": high, "values": len(steps)},
        certainty="rounding to the nearest moves no number by more than a half, and whole numbers "
        "drawn from bins of their own reach the largest",
    )


def _steps(
    subject: Subject, trainer: Trainer, whole: Sequence[Column], data: pd.DataFrame
) -> npt.NDArray[np.float64]:
    """The difference of whole numbers from the same columns declared continuous, same seed."""
    twin = replace(
        subject.schema,
        columns=tuple(
            replace(column, kind=Kind.CONTINUOUS) if column in whole else column
            for column in subject.schema.columns
        ),
    )
    rounded, continuous = (
        trainer.tables(
            subject.build(schema), schema.canonical(data), [trainer.fit_of(0)], schema=schema
        )[0]
        for schema in (subject.schema, twin)
    )
    steps: npt.NDArray[np.float64] = np.concatenate(
        [c.numbers(rounded[c.name]) - c.numbers(continuous[c.name]) for c in whole]
    )
    return steps[~np.isnan(steps)]


def row_count_leaks(subject: Subject, trainer: Trainer) -> Observation | NotApplicable:
    """Requests a number of rows different from the table's."""
    generator, data, n = subject.build(), subject.data, len(subject.data)
    asked = n + _MORE
    coins = insertions([n - 1], [n], subject.claim)
    with_base = pd.concat([data, data.iloc[[0]]], ignore_index=True)

    def counts(heads: list[bool], first: int) -> list[int]:
        fits = [
            trainer.fit_of(first + i, drops(coins, np.array([fell])))
            for i, fell in enumerate(heads)
        ]
        models = trainer.models(generator, with_base, fits)
        return [
            len(model.sample(asked, seed=fit.sample_seed))
            for model, fit in zip(models, fits, strict=True)
        ]

    rows = counts([True, False], 0)
    if rows == [asked, asked]:
        return Observation(False, "as many rows as asked for", {"asked": asked}, 1.0)
    basis = f"asked for {asked} rows it gives {rows[0]}, or {rows[1]} for another table"
    numbers = {"asked": asked, "given": rows[0], "given_without_record": rows[1]}
    sizes = [n, n - 1]
    if rows != sizes or subject.claim.neighbours is Neighbours.REPLACE_ONE:
        certainty = "a number of rows is the one asked for or it is not"
        return Observation(True, basis, numbers, certainty=certainty, severity=Severity.BUG)
    claim = one_coin(subject.claim)
    guesses = fewest_guesses(claim, subject.settings.alpha)
    if guesses is None or guesses > subject.settings.fits:
        return unprovable(claim, basis, guesses)
    toss = [bool(x) for x in trainer.stream("coins").rng().random(guesses) < 0.5]
    given = counts(toss, 2)
    right = sum((count == n) == fell for count, fell in zip(given, toss, strict=True))
    p_value = one_run_p_value(right, guesses, guesses, epsilon=claim.epsilon, delta=0.0)
    words = f"{basis}: as many as it was trained on"
    return Observation(
        p_value <= subject.settings.alpha, words, numbers | {"right": right}, p_value
    )


def _away(schema: Schema, data: pd.DataFrame, moved: list[Column]) -> tuple[Schema, pd.DataFrame]:
    columns, table = [], data.copy()
    for column in schema.columns:
        if column in moved:
            lower, upper = column.bounds
            shift = np.ceil(_AWAY * (upper - lower) - lower)
            columns.append(replace(column, lower=lower + shift, upper=upper + shift))
            table[column.name] = column.numbers(data[column.name]) + shift
        else:
            columns.append(column)
    other = replace(schema, columns=tuple(columns))
    canonical = other.canonical(table)
    for column in columns:  # rounding must not push a value over its bound
        if column.kind.numeric:
            canonical[column.name] = canonical[column.name].clip(*column.bounds)
    return other, other.canonical(canonical)


def _outside(table: pd.DataFrame, column: Column) -> float:
    values = column.numbers(table[column.name])
    lower, upper = column.bounds
    slack = 1e-6 * abs(upper)
    return float(np.mean((values < lower - slack) | (values > upper + slack)))


def alike(first: pd.DataFrame, second: pd.DataFrame, subject: Subject) -> bool:
    """Whether two tables are equal up to the rounding of sums in another order.

    Args:
        first: A synthetic table.
        second: Another synthetic table.
        subject: The subject of the probe, for the schema.

    Returns:
        True if no value differs by more than rounding.
    """
    a, b = (values_of_table(table, subject.schema) for table in (first, second))
    return np.allclose(a, b, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)


def permutation_p(values: FloatArray) -> float:
    """Exact p-value for the two halves of the rows [2 s, f] having the same distribution.

    The statistic is the largest standardised difference of means over the f features.
    """
    total = len(values)
    centred = values - values.mean(axis=0)
    scale = centred.std(axis=0)
    usable = scale > 1e-12 * (1.0 + np.abs(values).max(axis=0))
    if not usable.any():
        return 1.0
    standard = centred[:, usable] / scale[usable]
    deals = np.array(list(combinations(range(total), total // 2)))
    picked = np.zeros((len(deals), total))
    np.put_along_axis(picked, deals, 1.0, axis=1)
    statistics = np.abs(picked @ standard).max(axis=1)
    return float(np.mean(statistics >= statistics[0] * (1.0 - 1e-12)))


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
