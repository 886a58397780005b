"""The replays of a target: their common inputs and streams, and what they have found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.auditing.two_worlds.spec import TwoWorldSpec
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.plugins.protocols import World
from dpaudit.replaying.guarantee import ReplayGuarantee, replay_guarantee
from dpaudit.replaying.lockstep import Order, Played, Worlds
from dpaudit.replaying.loss import NOTHING_SHOWN, ShownAnswers
from dpaudit.replaying.record import PartingFound
from dpaudit.replaying.rows import MovedFeature, WorldsIdentified
from dpaudit.replaying.transcript import Question, Site, Transcript
from dpaudit.results.verdict import Verdict
from dpaudit.seeds import Stream

FIRST: Final = 10
"""Number of the first counted replay; the control, the pilot and its repeat come before it."""

FURTHER: Final = 200
"""The same of further ones, if only some numbers of their answers count."""


_LATER: Final = 0.1
"""Share of the error probability for what may follow the counted replays."""


class SharedConfidence(NamedTuple):
    """The confidence that each of two ways to refute a claim needs for joint validity.

    Attributes:
        counted: The counted replays.
        later: What may follow them: the game of the rows if the worlds diverge, and else further
            replays if only some numbers of their answers count.
    """

    counted: float
    later: float


def streams(seed: int) -> Callable[[str, int], np.random.Generator]:
    """Every stream of a replay, by its purpose and number."""
    return lambda role, number: Stream(seed, "replay", role, number).rng()


def _nothing(line: str) -> None:
    del line


class ReplaySetting(NamedTuple):
    """The common inputs of every replay of a target.

    Attributes:
        worlds: The processes of both worlds.
        spec: What is audited.
        public_coins: As in `run.replay`.
        samplers: As in `run.replay`.
        hand_over: As in `run.replay`.
        say: Called with a line before each replay.
        public_seeds: As in `lockstep.Order`.
    """

    worlds: Worlds
    spec: TwoWorldSpec
    public_coins: bool = False
    samplers: Sequence[Mapping[str, Any]] = ()
    hand_over: bool = False
    say: Callable[[str], None] = _nothing
    public_seeds: frozenset[str] = frozenset()

    @property
    def guarantee(self) -> ReplayGuarantee:
        """The guarantee of the claim."""
        return replay_guarantee(self.spec.claim)

    @property
    def confidence(self) -> SharedConfidence:
        """Divides the error probability (Bonferroni); exact losses need none."""
        confidence = self.spec.settings.confidence
        if self.guarantee.is_pure:  # losses are exact
            return SharedConfidence(confidence, confidence)
        error = 1.0 - confidence
        return SharedConfidence(1.0 - (1.0 - _LATER) * error, 1.0 - _LATER * error)

    @property
    def rows(self) -> int:
        """Synthetic rows asked of both worlds."""
        return self.spec.game.view.n_rows

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the target in its table: one, or those of the rows of a unit.

        None where there are several tables: coins of their rows are not followed.
        """
        if isinstance(self.spec.table.schema, LinkedTables):
            return ()
        return next(rows for rows in self.spec.game.missing.values() if rows)

    def play(self, order: Order, *, alike: World | None = None, rows: int | None = None) -> Played:
        """One replay; on request with one world's table in both, or another number of rows.

        If the order has rows, both worlds have the same table except for those rows.
        """
        game = self.spec.game
        both = World.IN if order.rows else alike
        tables = {world: game.table(both or world, 0) for world in World}
        if order.rows:
            rng = self.worlds.rng("other records", order.number)
            tables[World.OUT] = with_other_rows(tables[World.OUT], order.rows, rng)
        order = order._replace(public_seeds=self.public_seeds)
        return self.worlds.play(tables, rows=rows or self.rows, order=order, places=self.places)


def with_other_rows(
    table: pd.DataFrame, rows: Sequence[int], rng: np.random.Generator
) -> pd.DataFrame:
    """A table with some rows replaced by other rows of it.

    Args:
        table: The table.
        rows: Places of the rows that are replaced.
        rng: Picks the replacements.
    """
    places = np.arange(len(table))
    places[list(rows)] = rng.integers(0, len(table), size=len(rows))
    return table.iloc[places].set_axis(table.index)


@dataclass
class ReplayFindings:
    """The state after some of the replays.

    Attributes:
        counted: The counted replays.
        above: Whether these prove more than the claim, whatever influence their answers have.
        parted: Where the worlds diverge, if they do.
    """

    pilot: Transcript
    counted: Sequence[Transcript] = ()
    above: bool = False
    parted: PartingFound | None = None
    control: str | None = None
    used: frozenset[Site] = frozenset()
    coins_matter: Site | None = None
    coins_untried: Site | None = None
    unheard: bool = False
    fixed: tuple[Site, ...] = ()
    once_drawn: str | None = None
    fits: int = 0
    seconds: list[float] = field(default_factory=list)
    rows_differ: bool = False
    kept: bool | None = None
    loose: Site | None = None
    idle: tuple[Site, ...] = ()
    coarse: tuple[Site, ...] = ()
    shown: ShownAnswers = NOTHING_SHOWN
    retried: frozenset[Question] = frozenset()
    redrawn: bool = False
    heard: bool = False
    open_use: bool = False
    identified: WorldsIdentified | None = None
    doubts: tuple[str, ...] = ()
    verdict: Verdict = Verdict.INCONCLUSIVE
    reasons: tuple[str, ...] = ()
    features: tuple[MovedFeature, ...] | None = None

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        """The pilot and the counted replays."""
        return (self.pilot, *self.counted)
