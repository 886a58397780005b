"""A scorer chosen on its fitting trials: a rule, a line or a forest.

The best scorer depends on the leak: a rule for one sharp feature, a linear score for one feature
that shifts or many that shift slightly, and a forest for facts that reveal the target only
together. Pairs that are more informative than either feature (`screening`) are features too. Each
scorer is evaluated by cross-validation within the fitting trials, and the one that predicts
membership best gives the scores, as calibrated log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray, Scorer
from dpaudit.seeds import rng_of
from dpaudit_attacks.screening import (
    NO_PAIRS,
    FeatureRule,
    Judged,
    Pairs,
    best_rule,
    find_pairs,
    judge,
)
from dpaudit_attacks.trees import Trees, grow

FOLDS: Final = 3
SCREENED: Final = 64
"""Number of features for the linear score and the forest: half by AUC, half by their best cut."""
FEW: Final = 8
"""Number of features of the linear score that uses only the best ones by AUC."""
TREES: Final = 100
TRIED_TREES: Final = 16
"""Number of trees of a trial forest."""
CUTS: Final = 2
"""Random cuts that a node of a tree chooses from, per feature that the forest sees."""
MANY: Final = 256
"""From this many trials on, one cut per feature is enough."""
PENALTY: Final = 10.0
"""Penalty on the squared weights of standardised features (1 / C in scikit-learn)."""
PROMISING: Final = 0.6
"""AUC that a forest, the costliest candidate, must reach on each fold to remain one."""
ENOUGH: Final = 0.9 * log(2)
"""Gain, of at most log 2, at which the search stops."""
LARGEST: Final = 30.0
"""Standardised features are clipped here."""
RULE, FOREST = "rule", "forest"
CANDIDATES: Final[tuple[str | int, ...]] = (RULE, 1, FEW, SCREENED, FOREST)
"""In order of evaluation, the cheapest first; a number is a line on that many features."""
_NONE: Final = np.empty(0, dtype=np.int64)


# Logistic regression by Newton's method with an L2 penalty, for few trials and features. It is
# implemented here because an audit fits it hundreds of times, and scikit-learn takes 4 to 9 times
# as long, mostly for checks; nor does it take smoothed targets.
STEPS = 12
CLOSE = 1e-6
"""Largest last step of a coefficient."""
LONGEST = 4.0
"""Largest step of a coefficient, so the first steps do not overshoot."""


class LogOdds(NamedTuple):
    """Log-odds = intercept + weights · features.

    Attributes:
        intercept: Log-odds when all features are 0.
        weights: One for each feature [f].
    """

    intercept: float
    weights: FloatArray


def fit_log_odds(features: FloatArray, target: FloatArray, *, penalty: float) -> LogOdds:
    """Minimises the log loss plus `penalty` / 2 times the squared weights.

    Args:
        features: Features [n, f], of about unit scale.
        target: Probabilities [n] of membership to fit: 0 or 1, or smoothed.
        penalty: The penalty, positive; the intercept is not penalised.
    """
    n, f = features.shape
    design = np.column_stack([np.ones(n), features])
    ridge = np.full(f + 1, penalty)
    ridge[0] = 1e-6  # negligible, but it keeps the system regular
    coefficients = np.zeros(f + 1)
    for _ in range(STEPS):
        p = 0.5 + 0.5 * np.tanh(design @ coefficients / 2)  # the logistic function
        slope = design.T @ (p - target) + ridge * coefficients
        curve = (design * (p * (1 - p))[:, None]).T @ design
        curve[np.diag_indices(f + 1)] += ridge
        step = np.linalg.solve(curve, slope)
        longest = float(np.abs(step).max())
        coefficients -= step * min(1.0, LONGEST / max(longest, CLOSE))
        if longest < CLOSE:
            break
    return LogOdds(float(coefficients[0]), coefficients[1:])


LEAST_SLOPE = 1e-3
"""Slope for uninformative scores: it keeps their order, with log-odds of about 0."""
RIDGE = 1e-3
"""A negligible penalty: smoothed targets already keep the slope finite."""


# Scores are calibrated to log-odds by a logistic function of the score. It is fitted to smoothed
# targets, so that it stays finite even if scores separate the worlds (Platt 1999).
class Calibration(NamedTuple):
    """Log-odds = intercept + slope * score.

    Attributes:
        slope: Positive.
        intercept: Log-odds at score 0.
        gain: Mean log-likelihood in nats per trial, beyond that of guessing without a score.
    """

    slope: float
    intercept: float
    gain: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Log-odds [n] of scores [n]."""
        return self.intercept + self.slope * scores


def calibrate(scores: FloatArray, member: BoolArray) -> Calibration:
    """Fits log-odds to scores of trials that their scorer was not trained on.

    Args:
        scores: Scores [n], finite; larger means "in".
        member: Memberships [n], of both worlds.
    """
    n_in, n_out = int(member.sum()), int((~member).sum())
    target = np.where(member, (n_in + 1) / (n_in + 2), 1 / (n_out + 2))
    spread = float(scores.std()) or 1.0
    centre = float(scores.mean())
    standard = (scores - centre) / spread
    line = fit_log_odds(standard[:, None], target, penalty=RIDGE)
    slope = max(float(line.weights[0]), LEAST_SLOPE)
    odds = line.intercept + slope * standard
    likelihood = -np.logaddexp(0.0, np.where(member, -odds, odds)).mean()
    shares = np.array([n_in, n_out]) / len(member)
    return Calibration(
        slope=slope / spread,
        intercept=line.intercept - slope * centre / spread,
        gain=float(likelihood - (shares * np.log(shares)).sum()),
    )


@dataclass(frozen=True)
class Standardised:
    """Some of the features, in standard deviations from the mean of the fitting trials.

    Attributes:
        places: Positions of these features.
        mean: Their means.
        scale: Their standard deviations; 1 for a constant.
    """

    places: IntArray
    mean: FloatArray
    scale: FloatArray

    def __call__(self, features: FloatArray) -> FloatArray:
        """Selects and standardises features [n, chosen] of feature vectors [n, all features]."""
        return self.standard(features[:, self.places])

    def standard(self, chosen: FloatArray) -> FloatArray:
        """Standardises the chosen features [n, chosen]."""
        return np.clip((chosen - self.mean) / self.scale, -LARGEST, LARGEST)


def fit_standardisation(chosen: FloatArray, places: IntArray) -> Standardised:
    """The standardisation of the chosen features [n, chosen] of the fitting trials."""
    scale = chosen.std(axis=0)
    return Standardised(places, chosen.mean(axis=0), np.where(scale > 0, scale, 1.0))


@dataclass(frozen=True)
class Linear:
    """Log-odds that are linear in standardised features."""

    prepare: Standardised
    line: LogOdds

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]."""
        # Not a matrix product, whose last digits depend on the number of vectors.
        weighted = np.ascontiguousarray(self.prepare(features) * self.line.weights)
        log_odds: FloatArray = weighted.sum(axis=1) + self.line.intercept
        return log_odds


@dataclass(frozen=True)
class Forest:
    """Log-odds of a forest's smoothed share of votes."""

    prepare: Standardised
    trees: Trees

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]."""
        votes = self.trees.votes(self.prepare(features))
        return np.asarray(np.log((votes + 0.5) / (len(self.trees) - votes + 0.5)), dtype=np.float64)


@dataclass(frozen=True)
class Calibrated:
    """A scorer whose scores are calibrated.

    Attributes:
        scorer: The scorer.
        calibration: Turns its scores into log-odds.
    """

    scorer: Scorer
    calibration: Calibration

    @property
    def combined(self) -> IntArray:
        """Features that the scorer combines in pairs; alone they may be uninformative."""
        return self.scorer.combined if isinstance(self.scorer, WithPairs) else _NONE

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]; larger means "in"."""
        return self.calibration(self.scorer(features))


@dataclass(frozen=True)
class WithPairs:
    """A scorer that also sees pairs of features.

    Attributes:
        scorer: The scorer.
        pairs: The pairs.
    """

    scorer: Scorer
    pairs: Pairs

    @property
    def combined(self) -> IntArray:
        """Positions of the features that are in pairs."""
        return np.union1d(self.pairs.first, self.pairs.second)

    def __call__(self, features: FloatArray) -> FloatArray:
        """Scores [n] of feature vectors [n, f]."""
        return self.scorer(self.pairs.extended(features))


@dataclass(frozen=True)
class _Learner:
    """The fitting trials, prepared for all candidates.

    Attributes:
        pairs: Pairs of features, which count as further features.
        best: The features that lines and forests see, the best first [n, chosen].
        places: Positions of these features.
        member: Memberships [n].
        rule: The best rule.
        seed: Seeds the forest.
    """

    pairs: Pairs
    best: FloatArray
    places: IntArray
    member: BoolArray
    rule: FeatureRule
    seed: int

    @staticmethod
    def of(
        features: FloatArray, member: BoolArray, varies: IntArray, pairs: Pairs, seed: int
    ) -> _Learner:
        """Screens features and pairs of some trials."""
        width = features.shape[1]
        features = pairs.extended(features)
        varies = np.append(varies, np.arange(width, width + len(pairs)))
        judged = judge(features, member, varies)
        chosen = varies[_screen(judged)]
        return _Learner(
            pairs, features[:, chosen], chosen, member, best_rule(judged, member, varies), seed
        )

    def fit(self, candidate: str | int, *, trees: int) -> Scorer:
        """Fits a candidate; a forest has `trees` trees."""
        scorer: Scorer = self.rule
        if isinstance(candidate, int):
            scorer = self._fit_line(candidate)
        elif candidate == FOREST:
            scorer = self._fit_forest(trees)
        return WithPairs(scorer, self.pairs) if len(self.pairs) else scorer

    def _fit_line(self, most: int) -> Scorer:
        """Fits a line to the best features, `most` of them."""
        best = self.best[:, :most]
        prepare = fit_standardisation(best, self.places[:most])
        target = self.member.astype(np.float64)
        return Linear(prepare, fit_log_odds(prepare.standard(best), target, penalty=PENALTY))

    def _fit_forest(self, trees: int) -> Scorer:
        """Grows a forest on all screened features."""
        prepare = fit_standardisation(self.best, self.places)
        grown = grow(
            prepare.standard(self.best),
            self.member,
            trees=trees,
            cuts=len(self.places) * (CUTS if len(self.member) < MANY else 1),
            rng=rng_of(self.seed, "forest"),
        )
        return Forest(prepare, grown)


def _screen(judged: Judged) -> IntArray:
    """The features for lines and forests: half by AUC, then the rest by their best cut."""
    by_auc = np.argsort(-judged.separation, kind="stable")[: SCREENED // 2]
    by_cut = np.argsort(-judged.gains, kind="stable")
    rest = by_cut[~np.isin(by_cut, by_auc)][: SCREENED - len(by_auc)]
    return np.concatenate([by_auc, rest])


def train_chosen(features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
    """Trains the candidate that predicts membership best in cross-validation.

    Args:
        features: Feature vectors [n, f], in which at least one feature varies.
        member: Memberships [n], of both worlds.
        seed: Seed in [0, 2**32).

    Returns:
        A scorer of calibrated log-odds of membership, for equally frequent worlds.
    """
    varies = np.flatnonzero((features != features[0]).any(axis=0))
    n_folds = min(FOLDS, int(member.sum()), int((~member).sum()))
    if n_folds < 2:
        return best_rule(judge(features, member, varies), member, varies)
    folds = _folds(member, n_folds, rng_of(seed, "folds"))
    pairs = find_pairs(features, member, varies)

    def learner_of(rows: BoolArray) -> _Learner:
        # If all trials together show no pair, a pair in some of them is due to chance.
        fold_pairs = find_pairs(features[rows], member[rows], varies) if len(pairs) else NO_PAIRS
        return _Learner.of(features[rows], member[rows], varies, fold_pairs, seed)

    learners = [learner_of(folds != fold) for fold in range(n_folds)]
    calibrations: list[tuple[str | int, Calibration]] = []
    for candidate in CANDIDATES:
        scores = np.empty(len(member))
        for fold, learner in enumerate(learners):
            left_out = folds == fold
            scorer = learner.fit(candidate, trees=TRIED_TREES)
            scores[left_out] = scorer(features[left_out])
            unpromising = _auc(scores[left_out], member[left_out]) < PROMISING
            if candidate == FOREST and unpromising:
                break
        else:
            calibrations.append((candidate, calibrate(scores, member)))
            if calibrations[-1][1].gain >= ENOUGH:
                break
    best, calibration = max(calibrations, key=lambda entry: entry[1].gain)
    scorer = _Learner.of(features, member, varies, pairs, seed).fit(best, trees=TREES)
    return Calibrated(scorer, calibration)


def _auc(scores: FloatArray, member: BoolArray) -> float:
    """AUC of scores [n]; ties count one half."""
    above = scores[member][:, None] - scores[~member]
    return float((np.sign(above) + 1).mean() / 2)


def _folds(member: BoolArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """A random fold [n] for each trial, stratified by world."""
    folds = np.empty(len(member), dtype=np.int64)
    for world in (True, False):
        trials = np.flatnonzero(member == world)
        folds[rng.permutation(trials)] = np.arange(len(trials)) % n_folds
    return folds
