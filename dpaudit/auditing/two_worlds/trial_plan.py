"""Draws the worlds of all trials, and the fitting part, before any trial is run.

The world of every scored trial is an independent fair coin (`bounds.fair_coin` needs that;
`bounds.exact`, which conditions on the number of trials of either world, allows it). The fitting
part has equally many trials of each world. Published audits score a fixed number of each world;
`threshold="hold-out"` follows them, without coins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.game.trial import Role, Trial
from dpaudit.plugins.protocols import BoolArray, World

FIRST_FITTED = 16
"""Trials that the first attack of a sequential audit is fitted on, half of them of each world."""


@dataclass(frozen=True)
class TrialPlan:
    """The trials of one role, named by world and number, the fitting part first.

    Attributes:
        role: The role.
        worlds: The world of every trial.
        fitted: How many of the first ones form the fitting part.
    """

    role: Role
    worlds: tuple[World, ...]
    fitted: int

    def trials(self, start: int = 0, stop: int | None = None) -> list[Trial]:
        """The trials from one place in the plan to another."""
        number = dict.fromkeys(World, 0)
        named = []
        for world in self.worlds[:stop]:
            named.append(Trial(self.role, world, number[world]))
            number[world] += 1
        return named[start:]

    def count(self, world: World, *, among: int | None = None) -> int:
        """Trials of a world, of all or of the first ones."""
        return self.worlds[:among].count(world)

    def fitting(self, world: World) -> BoolArray:
        """Which trials of a world, by number, form the fitting part; shape (count,)."""
        numbers = np.arange(self.count(world))
        mask: BoolArray = numbers < self.count(world, among=self.fitted)
        return mask


def plan_trials(audit: TwoWorldSpec, role: Role, settings: AuditSettings[TwoWorlds]) -> TrialPlan:
    """Draws the plan of a role.

    Args:
        audit: The audit; its coins come from a stream of their own.
        role: The role.
        settings: Settings of the role's trials.

    Returns:
        The plan: the same for the same settings.
    """
    every, fitted = settings.game.shadow_models, 2 * settings.game.fitted
    balanced = FIRST_FITTED if settings.game.sequential else fitted
    alternating = [world for _ in range(every // 2) for world in World]
    if not settings.game.fair_coins:
        return TrialPlan(role, tuple(alternating), fitted)
    coins = audit.stream(f"{role}/coins").rng().integers(2, size=every - balanced)
    drawn = [World.IN if coin else World.OUT for coin in coins]
    return TrialPlan(role, (*alternating[:balanced], *drawn), fitted)
