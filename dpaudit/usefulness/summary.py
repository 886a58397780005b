"""What repeats say together: means with intervals, and whether they beat noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpaudit.errors import SettingsError
from dpaudit.plugins.protocols import FloatArray
from dpaudit.usefulness.experiment import MEAN, Measure, Repeat, ScoreName, Setting


class MeanInterval(NamedTuple):
    """A two-sided confidence interval of a mean over repeats."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class UtilityScore:
    """One number of a generator over its repeats, with those that it is to be compared with.

    Attributes:
        measure: What was measured.
        setting: In which setting; None of measures that compare two tables or settings.
        classifier: Of which classifier, or "mean"; None of the same measures.
        mean: Mean over repeats.
        standard_error: Of the mean.
        interval: Confidence interval of the mean: of models and tables, for the given test rows;
            without what no score can be.
        best: The best repeat; of the mean over classifiers the mean of each one's best, as
            published.
        noise_mean: Mean of uniform noise, measured alike.
        noise_best: Best of noise, over as many repeats.
        constant: Of a table of equal rows.
        real: In setting A, or of the real test table; None where there is no such thing.
        p_value: Of a mean that is not above that of noise (one-sided Welch test).
        beats_noise: Whether that is refuted at the confidence level.
    """

    measure: Measure
    setting: Setting | None
    classifier: str | None
    mean: float
    standard_error: float
    interval: MeanInterval
    best: float
    noise_mean: float
    noise_best: float
    constant: float | None
    real: float | None
    p_value: float
    beats_noise: bool

    @property
    def name(self) -> ScoreName:
        """The name of the number."""
        return ScoreName(self.measure, self.setting, self.classifier)


def summarise(
    repeats: Sequence[Repeat],
    *,
    noise: Sequence[Repeat],
    constant: Repeat,
    real: Repeat,
    confidence: float,
) -> tuple[UtilityScore, ...]:
    """Summarises what was measured of a generator.

    Args:
        repeats: Of the generator, two at least.
        noise: Of noise, two at least.
        constant: Of a table of equal rows.
        real: Of the real table.
        confidence: Of intervals and tests.

    Returns:
        One summary of each number that every repeat of both has, in the order of the first.

    Raises:
        SettingsError: If not all were measured with the same classifiers.
    """
    both = [*repeats, *noise]
    if len({frozenset(name.classifier or MEAN for name in one.scores) for one in both}) > 1:
        raise SettingsError(
            "the repeats were measured with other classifiers than one another, so their means "
            "cannot be compared: measure them again where the same are installed"
        )
    names = [name for name in repeats[0].scores if all(name in one.scores for one in both)]
    return tuple(
        _summary(name, repeats, noise, constant, real, confidence=confidence) for name in names
    )


def _summary(
    name: ScoreName,
    repeats: Sequence[Repeat],
    noise: Sequence[Repeat],
    constant: Repeat,
    real: Repeat,
    *,
    confidence: float,
) -> UtilityScore:
    values, of_noise = _values(repeats, name), _values(noise, name)
    p_value = welch_p_value(values, of_noise)
    setting = None if name.setting is None else Setting.REAL
    return UtilityScore(
        measure=name.measure,
        setting=name.setting,
        classifier=name.classifier,
        mean=float(values.mean()),
        standard_error=_standard_error(values),
        interval=score_interval(values, confidence=confidence),
        best=_best(repeats, name),
        noise_mean=float(of_noise.mean()),
        noise_best=_best(noise, name),
        constant=constant.scores.get(name),
        real=real.scores.get(name._replace(setting=setting)),
        p_value=p_value,
        beats_noise=p_value <= 1.0 - confidence,
    )


def mean_interval(values: FloatArray, *, confidence: float) -> MeanInterval:
    """Student's interval of the mean of values [n], n at least 2."""
    from scipy.stats import t

    reach = float(t.ppf((1.0 + confidence) / 2.0, len(values) - 1)) * _standard_error(values)
    return MeanInterval(float(values.mean()) - reach, float(values.mean()) + reach)


def score_interval(values: FloatArray, *, confidence: float) -> MeanInterval:
    """Its part within [0, 1], where every measure of this package lies."""
    low, high = mean_interval(values, confidence=confidence)
    return MeanInterval(max(low, 0.0), min(high, 1.0))


def welch_p_value(values: FloatArray, others: FloatArray) -> float:
    """The p-value of "the mean is not above that of the others" (Welch 1947).

    Args:
        values: Values [n], n at least 2.
        others: Values [m], m at least 2.

    Returns:
        The p-value; of two lists without any variation 0 or 1.
    """
    from scipy.stats import t

    difference = float(values.mean() - others.mean())
    variances = np.array([_standard_error(values) ** 2, _standard_error(others) ** 2])
    total = float(variances.sum())
    if total <= 1e-24:  # both vary by rounding at most
        return 0.0 if difference > 1e-9 else 1.0
    degrees = total**2 / float(np.sum(variances**2 / np.array([len(values) - 1, len(others) - 1])))
    return float(t.sf(difference / np.sqrt(total), degrees))


def _values(repeats: Sequence[Repeat], name: ScoreName) -> FloatArray:
    return np.array([one.scores[name] for one in repeats])


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _best(repeats: Sequence[Repeat], name: ScoreName) -> float:
    if name.classifier != MEAN:
        return float(_values(repeats, name).max())
    single = [
        one
        for one in repeats[0].scores
        if one[:2] == name[:2] and one.classifier not in (None, MEAN)
    ]
    return float(np.mean([_values(repeats, one).max() for one in single]))
