"""PATE with a student that weights records drawn from noisy marginals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpaudit.account import LabelPlan, calibrate_gaussian
from dpaudit.account.conversion import gaussian_mu
from dpaudit.errors import SettingsError
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.gaussian import gaussian_epsilon
from dpaudit_generators.marginals import Marginals, Structure
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator


@dataclass(frozen=True, kw_only=True)
class PateGanMarginals(TaughtGenerator):
    """PATE-GAN whose records start from noisy marginals instead of a generator network.

    Records are drawn from noisy marginals of each class and weighted by a student that learns from
    the noisy labels of k teachers. It claims (epsilon, delta) for adding or removing one record.
    The proof, in the order of the code: All constants come from public settings (`plan`,
    `marginals`, `TrainingSettings`). A record is counted once in each column and adds to the
    deviations of its class at most their radius, so Gaussian noise makes both mu-GDP
    (`marginals.DeviationTree`; without a label `marginals.PublicTree`). A keyed hash assigns
    records to teachers, so a record reaches one teacher (`pate.cells`), whose training does not
    read the other cells (`Teachers`). So one vote of k changes by one, and the released label is a
    draw from a public table whose mu is known (`VoteTable.mu`). Squares of mu add up, even if later
    steps depend on earlier ones. Everything else, the student and the records, reads noisy numbers
    and released labels only, which is post-processing.

    With `seed=None` every stream, including that of the labels' noise, is the operating system's
    entropy, as production needs; a seed is for audits. The model's claim says which was used.

    The defaults do not depend on any data: an accuracy of .65 with 50 teachers means noise of 38.9
    votes at most. At epsilon 1 a tenth of the budget buys 10 labels.

    Attributes:
        schema: The public schema.
        epsilon: The privacy budget; this is the claim, not the amount spent in training.
        delta: The delta of the budget.
        bins: Equal bins of a numeric column's marginals. If not given, 4, or 16 if noisy counts of
            the label's classes show that there are many records.
        vote_share: Share of the budget, in squares of mu, for the votes; marginals get the rest.
        teachers: Number k of teachers.
        accuracy: Probability that a label follows a majority of 80 % of the teachers; sets the
            noise, and with the budget the number of labels. If the budget pays for more labels
            than the student's steps can use, it buys only as many, with less noise.
        device: Where the networks are trained: "cpu", "cuda" or "cuda:N". Devices differ by
            rounding alone: weights agree to 1e-5 after 30 rounds.

    Raises:
        SettingsError: If a setting is out of range.
    """

    bins: int | None = None
    vote_share: float = 0.1

    stream_name: ClassVar[str] = "pate-gan"
    """Its former name, so that random streams stay the same."""

    def __post_init__(self) -> None:
        if not 0.0 < self.vote_share < 1.0:
            raise SettingsError(f"vote_share is {self.vote_share!r}: use a number in (0, 1)")
        super().__post_init__()

    @cached_property
    def claim(self) -> PrivacyClaim:
        """The budget, for adding or removing one record."""
        plan = self.plan
        source = (
            f"noisy marginals of {len(self.schema.columns)} columns, "
            f"{self.marginals.claim.value:.4g}-Gaussian DP, and {plan.labels} one-bit votes of "
            f"{plan.teachers} teachers with {plan.table.noise}, {plan.table.mu:.4g}-Gaussian "
            "DP each; one record moves one vote by one; squares of mu added up"
        )
        return PrivacyClaim(epsilon=self.epsilon, delta=self.delta, source=source)

    @cached_property
    def marginals(self) -> Marginals:
        """The noisy marginals that records are drawn from; does not depend on data."""
        mu = math.sqrt(1.0 - self.vote_share) * self._mu
        classes = self.schema.label is not None and len(self.schema.columns) > 1
        tree = Structure.DEVIATIONS if classes else Structure.INDEPENDENT
        return Marginals(schema=self.schema, mu=mu, tree=tree, bins=self.bins)

    @cached_property
    def plan(self) -> LabelPlan:
        """Number and noise of the labels that the budget pays for; does not depend on data."""
        return calibrate_gaussian(
            mu=math.sqrt(self.vote_share) * self._mu,
            delta=self.delta,
            k=self.teachers,
            accuracy=self.accuracy,
            most=self.rounds * self.student_steps * self.batch,  # labels that the student draws
        )

    def spent(self, labels: int) -> float:
        """Epsilon of this many labels and of everything released before them.

        Args:
            labels: Number of labels, at least 0.
        """
        mu = math.hypot(self.marginals.claim.value, math.sqrt(labels) * self.plan.table.mu)
        return gaussian_epsilon(mu, self.delta)

    @property
    def _mu(self) -> float:
        """The budget in Gaussian DP."""
        return gaussian_mu(epsilon=self.epsilon, delta=self.delta)
