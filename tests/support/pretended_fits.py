"""Fits without processes: a mechanism as a function, for tests of reading and of the coin game."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.replaying.laws import FloatArray, Laplace, NoiseLaw
from dpaudit.replaying.transcript import FitRelease, NoisyStep, Pair, Question, Site, Transcript

WORLDS = (World.IN, World.OUT)


@dataclass
class Draws:
    """One fit's noise: adds it to values, at ordered places, and keeps the steps."""

    rng: np.random.Generator
    world: World
    placed: Mapping[Question, FloatArray]
    wide: float
    transcript: Transcript = field(default_factory=Transcript)

    def add(
        self,
        inside: Sequence[float],
        outside: Sequence[float],
        *,
        scale: float,
        line: int = 1,
        law: Callable[[Any], NoiseLaw] = Laplace,
        lost: bool = False,
    ) -> FloatArray:
        """Laplace or other noise on values that differ between the worlds."""
        both = Pair(np.asarray(inside, dtype=float), np.asarray(outside, dtype=float))
        own = both[WORLDS.index(self.world)]
        noise = self.rng.laplace(size=own.shape) * scale * self.wide
        site = Site("lib.py", line, "fit")
        key = ("answer", site, 1 + sum(one.site == site for one in self.transcript.noisy))
        places = self.placed.get(key, np.full(own.shape, np.nan))
        answer = own + np.where(np.isnan(places), noise, np.nan_to_num(places) * scale)
        known = law(np.full(own.shape, scale))
        self.transcript.noisy.append(
            NoisyStep(
                site=site,
                first=len(self.transcript.noisy) * 1000,
                before=both if self.world is World.IN else Pair(own, own),
                laws=(known, known),
                differs=np.zeros(answer.size, dtype=bool),
                answer=answer,
                draws=(),
                law_names=frozenset({"laplace"}),
                seed=None,
                toss=None,
                is_lost=lost,
                key=key,
            )
        )
        self.transcript.draws[site] = self.transcript.draws.get(site, 0) + own.size
        return answer


Mechanism = Callable[[Draws], Mapping[str, Any]]
"""Released numbers by place, from a fit's draws."""


class PretendedFits:
    """Stands for `dpaudit.replaying.fits.Fits`."""

    watches_state = True
    pace = 0.001

    def __init__(self, mechanism: Mechanism, *, epsilon: float, delta: float = 0.0, seed: int = 0):
        claim = PrivacyClaim(
            epsilon=epsilon, delta=delta, neighbours=Neighbours.ADD_REMOVE, source="test"
        )
        view = SimpleNamespace(of_tables={"none": None}, feature_names=None)
        self.spec = SimpleNamespace(
            claim=claim,
            game=SimpleNamespace(view=view),
            table=SimpleNamespace(schema=SimpleNamespace(canonical=lambda table: table)),
        )
        self.mechanism, self.seed, self.count = mechanism, seed, 0

    def rng(self, role: str, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number, *role.encode()])

    def say(self, line: str) -> None:
        del line

    def pair(self, number: int) -> Transcript:
        """A replay in lock-step: the fit of world "in" knows both values."""
        return self.alone(World.IN, number)

    def alone(
        self,
        world: World,
        number: int,
        *,
        placed: Mapping[Question, FloatArray] | None = None,
        wide: float = 1.0,
        **_: Any,
    ) -> Transcript:
        self.count += 1
        draws = Draws(self.rng("fit", 2 * number + WORLDS.index(world)), world, placed or {}, wide)
        numbers = {
            place: np.asarray(value, dtype=float).ravel()
            for place, value in self.mechanism(draws).items()
        }
        digests = {place: value.tobytes().hex() for place, value in numbers.items()}
        release = FitRelease(numbers=numbers, digests=digests)
        both = (release, None) if world is World.IN else (None, release)
        draws.transcript.releases = both
        return draws.transcript

    def natural(self, wanted: Sequence[tuple[World, int]], **_: Any) -> Iterator[Transcript]:
        for world, number in wanted:
            yield self.alone(world, 10_000_000 + number)

    def release_of(self, transcript: Transcript, world: World) -> FitRelease | None:
        return transcript.releases[WORLDS.index(world)]
