"""A GAN without privacy: what every other one is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpaudit_generators.gan.base import StackedGan
from dpaudit_generators.gan.model import GanModel

if TYPE_CHECKING:
    from torch import Tensor

    from dpaudit_generators.gan.training import GanObserver, GanTrainee
    from dpaudit_generators.networks.rows import Head


@dataclass(frozen=True, kw_only=True, eq=False)
class Gan(StackedGan):
    """A generative adversarial network (Goodfellow et al. 2014): its epsilon is infinite.

    The critic learns to tell records from synthetic ones, from minibatches drawn with replacement;
    the generator follows it (the non-saturating loss). Nothing is clipped and no noise is added, so
    nothing is claimed: an audit states the claim that it is to refute.

    Attributes:
        claim: None: there is no promise.
    """

    claim: ClassVar[None] = None

    def _models(
        self,
        rows: Tensor,
        trainees: Sequence[GanTrainee],
        head: Head,
        observer: GanObserver | None,
    ) -> list[GanModel]:
        from dpaudit_generators.gan.steps import GanLoss, Objective
        from dpaudit_generators.gan.training import train

        trained = train(
            rows,
            trainees,
            head=head,
            settings=self,
            objective=Objective(GanLoss.CROSS_ENTROPY, 0.0),
            observers=[] if observer is None else [observer],
        )
        return [
            GanModel(schema=self.schema, weights=one.generator, critic=one.critic)
            for one in trained
        ]
