"""A scorer chosen on its fitting trials: a rule, a line or a forest.

The best scorer depends on the leak: a rule for one sharp feature, a linear score for one feature
that shifts or many that shift slightly, and a forest for facts that reveal the target only
together. Pairs that are more informative than either feature (`pairs.py`) are features too. Each
scorer is evaluated by cross-validation within the fitting trials, and the one that predicts
membership best gives the scores, as calibrated log-odds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Final, NamedTuple

import numpy as np

from dpaudit.plugins.protocols import BoolArray, FloatArray, IntArray, Scorer
from dpaudit.seeds import rng_of
from dpaudit_attacks.logistic import Calibration, LogOdds, calibrate, fit_log_odds
from dpaudit_attacks.pairs import NO_PAIRS, Pairs, find_pairs
from dpaudit_attacks.rules import FeatureRule, Judged, best_rule, judge
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
"""Random cuts that a node of a tree chooses from, for each feature that the forest sees."""
MANY: Final = 256
"""From this many trials on, one cut per feature is enough."""
PENALTY: Final = 10.0
"""Penalty on the squared weights of standardised features (1 / C in scikit-learn)."""
PROMISING: Final = 0.6
"""From this AUC on the first fold on, a forest, the costliest candidate, gets the other folds."""
ENOUGH: Final = 0.9 * log(2)
"""At this gain, of at most log 2, the search stops."""
LARGEST: Final = 30.0
"""Standardised features are clipped here."""
_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Standardised:
    """Some of the features, in standard deviations from the mean of the fitting trials.

    Attributes:
        places: Which features.
        mean: Their means.
        scale: Their standard deviations; 1 for a constant.
    """

    places: IntArray
    mean: FloatArray
    scale: FloatArray

    def __call__(self, features: FloatArray) -> FloatArray:
        """The features [n, chosen] of feature vectors [n, all features]."""
        return self.standard(features[:, self.places])

    def standard(self, chosen: FloatArray) -> FloatArray:
        """The same of the chosen features [n, chosen]."""
        return np.clip((chosen - self.mean) / self.scale, -LARGEST, LARGEST)


class Prepared(NamedTuple):
    """How features are standardised, and those of the fitting trials [n, chosen]."""

    prepare: Standardised
    standard: FloatArray


def standardised(chosen: FloatArray, places: IntArray) -> Prepared:
    """Standardises the chosen features [n, chosen] of the fitting trials."""
    scale = chosen.std(axis=0)
    prepare = Standardised(places, chosen.mean(axis=0), np.where(scale > 0, scale, 1.0))
    return Prepared(prepare, prepare.standard(chosen))


@dataclass(frozen=True)
class Linear:
    """Log-odds that are linear in standardised features."""

    prepare: Standardised
    line: LogOdds

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]."""
        # Not a matrix product: its last digits depend on the number of vectors.
        weighted = np.ascontiguousarray(self.prepare(features) * self.line.weights)
        found: FloatArray = weighted.sum(axis=1) + self.line.intercept
        return found


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
        calibration: From its scores to log-odds.
    """

    scorer: Scorer
    calibration: Calibration

    @property
    def combined(self) -> IntArray:
        """Features that the scorer combines with others; alone they may be uninformative."""
        return self.scorer.combined if isinstance(self.scorer, WithPairs) else _NONE

    def __call__(self, features: FloatArray) -> FloatArray:
        """Log-odds [n] of feature vectors [n, f]; larger means "in"."""
        return self.calibration(self.scorer(features))


@dataclass(frozen=True)
class WithPairs:
    """A scorer that sees pairs of features too.

    Attributes:
        scorer: The scorer.
        pairs: The pairs.
    """

    scorer: Scorer
    pairs: Pairs

    @property
    def combined(self) -> IntArray:
        """Which features are in pairs."""
        return np.union1d(self.pairs.first, self.pairs.second)

    def __call__(self, features: FloatArray) -> FloatArray:
        """Scores [n] of feature vectors [n, f]."""
        return self.scorer(self.pairs.extended(features))


@dataclass(frozen=True)
class _Learner:
    """Trials to learn from, with what all candidates share.

    Attributes:
        pairs: Pairs of features, which are further features.
        best: The features that lines and forests see, in order, [n, chosen].
        places: Their positions.
        member: Memberships [n].
        rule_found: The best rule.
        seed: Seeds the forest.
    """

    pairs: Pairs
    best: FloatArray
    places: IntArray
    member: BoolArray
    rule_found: FeatureRule
    seed: int

    @staticmethod
    def of(
        features: FloatArray, member: BoolArray, varies: IntArray, pairs: Pairs, seed: int
    ) -> _Learner:
        width = features.shape[1]
        features = pairs.extended(features)
        varies = np.append(varies, np.arange(width, width + len(pairs)))
        judged = judge(features, member, varies)
        chosen = varies[_screened(judged)]
        return _Learner(
            pairs, features[:, chosen], chosen, member, best_rule(judged, member, varies), seed
        )

    def learned(self, candidate: Callable[..., Scorer], *, tried: bool) -> Scorer:
        scorer = candidate(self, tried=tried)
        return WithPairs(scorer, self.pairs) if len(self.pairs) else scorer

    def rule(self, *, tried: bool) -> Scorer:
        del tried
        return self.rule_found

    def line_on_one(self, *, tried: bool) -> Scorer:
        del tried
        return self._linear(1)

    def line_on_few(self, *, tried: bool) -> Scorer:
        del tried
        return self._linear(FEW)

    def line_on_many(self, *, tried: bool) -> Scorer:
        del tried
        return self._linear(SCREENED)

    def _linear(self, most: int) -> Scorer:
        prepare, standard = standardised(self.best[:, :most], self.places[:most])
        target = self.member.astype(np.float64)
        return Linear(prepare, fit_log_odds(standard, target, penalty=PENALTY))

    def forest(self, *, tried: bool) -> Scorer:
        prepare, standard = standardised(self.best, self.places)
        trees = grow(
            standard,
            self.member,
            trees=TRIED_TREES if tried else TREES,
            cuts=len(self.places) * (CUTS if len(self.member) < MANY else 1),
            rng=rng_of(self.seed, "forest"),
        )
        return Forest(prepare, trees)


def _screened(judged: Judged) -> IntArray:
    """The features for lines and forests: half by AUC, then the rest by their best cut."""
    by_auc = np.argsort(-judged.separation, kind="stable")[: SCREENED // 2]
    by_cut = np.argsort(-judged.gains, kind="stable")
    others = by_cut[~np.isin(by_cut, by_auc)][: SCREENED - len(by_auc)]
    return np.concatenate([by_auc, others])


CANDIDATES: Final[tuple[Callable[..., Scorer], ...]] = (
    _Learner.rule,
    _Learner.line_on_one,
    _Learner.line_on_few,
    _Learner.line_on_many,
    _Learner.forest,
)
"""In order of evaluation: the cheapest first."""


def train_chosen(features: FloatArray, member: BoolArray, *, seed: int) -> Scorer:
    """Trains the candidate that predicts membership best in cross-validation.

    Args:
        features: Feature vectors [n, f] of which at least one varies.
        member: Memberships [n], of both worlds.
        seed: Seed in [0, 2**32).

    Returns:
        Calibrated log-odds of membership, of equally frequent worlds.
    """
    varies = np.flatnonzero((features != features[0]).any(axis=0))
    n_folds = min(FOLDS, int(member.sum()), int((~member).sum()))
    if n_folds < 2:
        return best_rule(judge(features, member, varies), member, varies)
    folds = _folds(member, n_folds, rng_of(seed, "folds"))
    pairs = find_pairs(features, member, varies)

    def learner_of(rows: BoolArray) -> _Learner:
        # Without a pair in all trials, a pair in fewer trials would be chance.
        own = find_pairs(features[rows], member[rows], varies) if len(pairs) else NO_PAIRS
        return _Learner.of(features[rows], member[rows], varies, own, seed)

    learners = [learner_of(folds != fold) for fold in range(n_folds)]
    found: list[tuple[Callable[..., Scorer], Calibration]] = []
    for candidate in CANDIDATES:
        scores = np.empty(len(member))
        for fold, learner in enumerate(learners):
            left_out = folds == fold
            scores[left_out] = learner.learned(candidate, tried=True)(features[left_out])
            unpromising = _area(scores[left_out], member[left_out]) < PROMISING
            if candidate is _Learner.forest and unpromising:
                break
        else:
            found.append((candidate, calibrate(scores, member)))
            if found[-1][1].gain >= ENOUGH:
                break
    best, calibration = max(found, key=lambda one: one[1].gain)
    scorer = _Learner.of(features, member, varies, pairs, seed).learned(best, tried=False)
    return Calibrated(scorer, calibration)


def _area(scores: FloatArray, member: BoolArray) -> float:
    """AUC of scores [n]; ties count one half."""
    above = scores[member][:, None] - scores[~member]
    return float((np.sign(above) + 1).mean() / 2)


def _folds(member: BoolArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """The fold [n] of each trial, stratified by world."""
    folds = np.empty(len(member), dtype=np.int64)
    for world in (True, False):
        own = np.flatnonzero(member == world)
        folds[rng.permutation(own)] = np.arange(len(own)) % n_folds
    return folds
