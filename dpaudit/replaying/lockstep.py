"""Runs both worlds in lockstep: both ask the same question and get one answer."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.errors import ReplayError, TrialError
from dpaudit.external.session import FOLDER_PREFIX, WorkerError, WorkerSession, WorkerStart
from dpaudit.game.trial import reason_of
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import World
from dpaudit.plugins.release import accept
from dpaudit.replaying import laws
from dpaudit.replaying.laws import Drawn, FloatArray, IntArray, NoiseLaw, Share, Tilt
from dpaudit.replaying.listening.channel import Channel, connect
from dpaudit.replaying.loss import largest_ratio
from dpaudit.replaying.mixtures import Steering, log_mixed, mixed_answers, posterior
from dpaudit.replaying.sums import shares_of
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ChoiceStep,
    ComparedSide,
    Derived,
    NoisyStep,
    Pair,
    Parting,
    PartKind,
    Question,
    Quotient,
    Site,
    Toss,
    Transcript,
    Unfollowed,
    flat,
    numbers_of,
)

BOOT: Final = Path(__file__).parent / "listening" / "boot"
WORLDS: Final = (World.IN, World.OUT)
ROUNDING: Final = 1e-9
"""Values of both worlds that differ by less, relative to the larger one, count as equal."""
MOST_ASKED: Final = 200
"""A fit is given up if more lines than this turn out to depend on the data."""
_MOST_ALIKE: Final = 50
"""Questions with the same values in one replay whose answers are all tilted."""
NUDGE: Final = 1e-5
"""A slight change of an answer, in scales of its noise."""
_MOST_NUDGED: Final = 1000
"""Answers of a line that are nudged: a loop that rejects such answers would never end."""
OPPOSITE: Final = 1
"""Number of the coins that are the reverse of those of number 0."""

ALL_IN: Final = (True,)
"""Outcome of the target's own coins: it is in every sub-sample."""

_ASKABLE: Final = frozenset(
    (
        *("choose", "coin", "shift", "rescale", "operand", "located", "spend", "reduce with"),
        *("zero", "again"),
    )
)
"""Kinds of notes that become questions if their line is asked."""
_WITHOUT_NOISE: Final = {"operand": PartKind.OPERANDS, "again": PartKind.REUSED}
"""How the worlds diverge if a value without noise differs, by kind of note."""
_MIXED: Final = "noisy answers are used as numbers and combined with data"
_MIXING: Final = {
    "shift": "sum",
    "rescale": "factor",
    "use with": "function",
    "reduce with": "function",
}
"""How noisy answers are combined with other values, by kind of note or question."""


class Aim(NamedTuple):
    """How answers move between the worlds, as far as what is released shows it.

    Attributes:
        shift: How far they move from world "out" to world "in".
        scales: The scale of the noise in each world.
    """

    shift: FloatArray
    scales: tuple[FloatArray, FloatArray]

    @classmethod
    def at(cls, before: Pair, known: tuple[NoiseLaw, NoiseLaw]) -> Aim:
        """The aim of answers that are released as they are."""
        return cls(before.shift, (known[0].scale, known[1].scale))

    def drawn(self, law: NoiseLaw, *, base: int, tilt: float, rng: np.random.Generator) -> Drawn:
        """Noise of a law, tilted; in units of the noise the answers move as far as this aim does.

        Args:
            law: The law in the world that is drawn from, before answers are multiplied.
            base: That world: 0 is "in".
            tilt: As in `Order`.
            rng: Draws.
        """
        own, other = self.scales[base], self.scales[1 - base]
        wider = 1.0 if np.array_equal(own, other) else other / own
        return law.drawn(Tilt(self.moved(law, base=base), tilt, wider), rng)

    def moved(self, law: NoiseLaw, *, base: int) -> FloatArray:
        """How far answers move in units of a law's noise, towards the world drawn from."""
        shift = self.shift if base == 0 else -self.shift
        own = self.scales[base]
        return shift if np.array_equal(own, law.scale) else shift * law.scale / own


class Order(NamedTuple):
    """How answers are drawn in one replay.

    Attributes:
        number: Number of the replay; names its streams.
        base: The world whose law the answers are drawn from.
        tilt: How far they are moved towards where the worlds differ most; 0 for not at all.
        widened: Replaces the tilt of noise: how many times as wide it is. For claims without delta,
            which a transcript refutes however rare it is. The weight is then unknown.
        steering: Replaces the tilt for answers of sub-samples: moves them by the loss so far.
        coins: Which of the replay's coins both worlds share.
        nudged: Lines of noise, or questions, whose answers are slightly changed in world "out", to
            see whether they are used as numbers.
        apart: Replaces slight changes: how many scales all numbers of each of these answers are
            moved up in worlds "in" and "out".
        nudges: How far some answers are changed in world "out", by question.
        redrawn: Lines whose draws are others in world "out", except as parts of answers.
        seed: Number of the seed that the generator gets; that of the replay if None.
        kept: The outcome of comparing the target's own coin that puts the target into a
            sub-sample; None if its coins are treated like any others.
        falls: How these coins fall, in turn and then again from the first: whether the target is
            in.
        given: Answers to questions that another replay also had.
        rows: Places of the records whose own coins fall like this, in both worlds; if none, the
            target's do, in world "in".
        draws_record: Whether the target is among the records of every draw of records.
        along: The aim of the tilt for answers that are released only as ratios, or multiplied by
            what depends on the data.
        public_seeds: Draws of generators with these seeds are known numbers, and no noise.
    """

    number: int
    base: World = World.IN
    tilt: float = 0.0
    widened: float = 1.0
    steering: Steering | None = None
    coins: int = 0
    nudged: frozenset[Site | Question] = frozenset()
    apart: tuple[float, float] | None = None
    nudges: Mapping[Question, FloatArray] = {}
    redrawn: frozenset[Site] = frozenset()
    seed: int | None = None
    kept: bool | None = True
    falls: tuple[bool, ...] = ALL_IN
    given: Mapping[Question, Any] = {}
    rows: tuple[int, ...] = ()
    draws_record: bool = False
    along: Mapping[Question, Aim] = {}
    public_seeds: frozenset[str] = frozenset()

    @property
    def is_nudged(self) -> bool:
        """Whether some answers or noise differ between the worlds."""
        return bool(self.nudged or self.nudges or self.redrawn)


class Played(NamedTuple):
    """A replay and its synthetic tables.

    Attributes:
        transcript: What happened.
        tables: The synthetic table of each world; None if there is none.
        failure: Why a world has no table, if it failed on its own.
    """

    transcript: Transcript
    tables: tuple[pd.DataFrame | None, pd.DataFrame | None]
    failure: str | None


class _Again(Exception):  # noqa: N818 - it is no error
    """The fit restarts with one more line as a question."""


class _Parted(Exception):  # noqa: N818 - it is no error
    """The worlds have diverged."""

    def __init__(
        self, kind: PartKind, sites: tuple[Site | None, Site | None], *values: str
    ) -> None:
        super().__init__()
        inside, outside = values
        self.parting = Parting(kind=kind, sites=sites, values=(inside, outside))


@dataclass
class _Side:
    """One world's process.

    Attributes:
        session: Its requests.
        events: Its questions.
        control: Begins and ends its fits.
        sites: The lines that it has named, in its order.
    """

    session: WorkerSession
    events: Channel
    control: Channel
    sites: list[Site] = field(default_factory=list)


class Worlds:
    """Two processes that fit the same generator; made by `opened_worlds`.

    Attributes:
        rng: Makes a stream of its purpose and number; set before the first replay.
    """

    rng: Callable[[str, int], np.random.Generator]

    def __init__(self, sides: Mapping[World, _Side], children: list[Site]) -> None:
        self._sides, self._children = sides, children
        self._lines = _Lines(set(), set(), {})
        self._pool = ThreadPoolExecutor(2)

    def play(
        self,
        tables: Mapping[World, pd.DataFrame],
        *,
        rows: int,
        order: Order,
        places: Sequence[int],
    ) -> Played:
        """Fits in both worlds with the same answers.

        Args:
            tables: What each world trains on.
            rows: Number of synthetic rows in each.
            order: How answers are drawn.
            places: The places of the records that only one world has: one, or those of a unit.

        Returns:
            What happened.

        Raises:
            ReplayError: If a world's process ends, or too many lines depend on the data to be
                followed.
        """
        started, lines = time.monotonic(), self._lines
        if order.is_nudged:  # what differs there need not differ in other replays
            lines = lines._replace(asked=set(lines.asked), mixing=dict(lines.mixing))
        inside, outside = (self._schema.rows_asked(tables[world]) for world in WORLDS)
        while len(lines.asked) + len(lines.mixing) < MOST_ASKED:
            match = _Match(self._sides, order, self.rng, lines, places, (inside, outside))
            try:
                played = self._once(match, tables, rows=rows, order=order)
            except _Again:
                continue
            played.transcript.seconds = time.monotonic() - started
            return played
        raise ReplayError(
            f"more than {MOST_ASKED} lines depend on the record without being followed: replay "
            "cannot judge this generator"
        )

    def _once(
        self, match: _Match, tables: Mapping[World, pd.DataFrame], *, rows: int, order: Order
    ) -> Played:
        self._children.clear()
        self._begin(match, order)
        seed = int(
            self.rng("seed", order.number if order.seed is None else order.seed).integers(2**31)
        )
        fits = {
            world: self._pool.submit(self._synthesized, world, tables[world], rows=rows, seed=seed)
            for world in WORLDS
        }
        parting = None
        again = False
        try:
            match.run(fits)
        except _Parted as parted:
            parting = parted.parting
        except _Again:
            again = True
        match.dismiss(fits)
        found: list[pd.DataFrame | None] = []
        failure = None
        for world in WORLDS:
            try:
                found.append(fits[world].result())
            except WorkerError as error:
                raise ReplayError(f"world {world} ended: {error}") from None
            except TrialError as error:
                found.append(None)
                if "dpaudit has ended this fit" not in str(error):
                    failure = failure or f"world {world}: {error}"
        if again:
            for world in WORLDS:
                match.end(world)
            raise _Again
        transcript = match.transcript
        for world, ended in [(world, match.end(world)) for world in WORLDS]:
            if world is World.IN or parting is not None:
                transcript.unfollowed += [
                    Unfollowed(Site(*one[:3]), "noise whose use was not observed", unseen=True)
                    for one in ended["unseen"]
                ]
                transcript.unfollowed += [
                    Unfollowed(one, _MIXED, mixed=list(one) not in ended["protected"])
                    for one in match.lines.mixing.values()
                ]
        transcript.unfollowed += [
            Unfollowed(one, "drawn in a process that the generator started")
            for one in self._children
        ]
        if parting is None and failure is None:
            try:
                match.compare_notes()
                parting = _rows_parted(found)
            except _Parted as parted:
                parting = parted.parting
        transcript.parting = parting
        if parting is not None:
            transcript.coin_before = transcript.coin_before or transcript.first_coin
        return Played(transcript, (found[0], found[1]), failure)

    def _begin(self, match: _Match, order: Order) -> None:
        coins = order.coins if order.coins != OPPOSITE else 0
        seed, own = (
            int(self.rng(f"coins/{one}", order.number).integers(2**62))
            for one in (coins, coins if order.kept is None else 0)
        )
        for world, counted in zip(WORLDS, (match.lengths, match.lengths[::-1]), strict=True):
            control = self._sides[world].control
            alone = match.place if counted[0] > counted[1] else None
            control.send(
                {
                    "kind": "begin",
                    "seed": seed,
                    "record_seed": own,
                    "opposite": order.coins == OPPOSITE,
                    "asked": sorted(match.lines.asked),
                    "loops": sorted(match.lines.loops),
                    "mixing": sorted(match.lines.mixing),
                    "rows": list(counted),
                    "own_rows": list(order.rows) or ([] if alone is None else [alone]),
                    "draws_record": order.draws_record,
                    "redrawn": sorted({one[:2] for one in order.redrawn if world is World.OUT}),
                    "kept": order.kept,
                    "falls": list(order.falls),
                    "public_seeds": sorted(order.public_seeds),
                }
            )
            control.receive()

    def fitted(self, table: pd.DataFrame, *, rows: int, number: int) -> pd.DataFrame | None:
        """A synthetic table from a fit without listening; None if the fit fails.

        Args:
            table: The table to train on; always in the same process, whatever the world.
            rows: Number of synthetic rows.
            number: Number of the fit; names its seed.

        Raises:
            ReplayError: If the process ends.
        """
        seed = int(self.rng("seed of the rows", number).integers(2**31))
        try:
            return self._synthesized(World.IN, table, rows=rows, seed=seed)
        except WorkerError as error:
            raise ReplayError(f"a fit ended its process: {error}") from None
        except TrialError:
            return None

    @property
    def _schema(self) -> Schema:
        return self._sides[World.IN].session.start.schema

    def _synthesized(
        self, world: World, table: pd.DataFrame, *, rows: int, seed: int
    ) -> pd.DataFrame:
        """The synthetic table of a fit; of several tables the frame of all of them."""
        schema = self._schema
        session = self._sides[world].session
        made = session.synthesize(schema.handed(table), rows=rows, seed=seed)
        if isinstance(schema, LinkedTables):
            made = accept(made, schema, len(made[schema.root]))
        released: pd.DataFrame = made
        return released


class _Lines(NamedTuple):
    """Lines that need more than notes, found by earlier attempts.

    Attributes:
        asked: Their values differ between the worlds: their notes have become questions.
        loops: They draw one coin per record.
        mixing: They combine noisy answers with data in a way that makes no new answers: in a
            "sum", by a "factor", in a "comparison" or a "function".
    """

    asked: set[tuple[str, int]]
    loops: set[tuple[str, int]]
    mixing: dict[tuple[str, int, str], Site]

    def mix(self, site: Site, use: str) -> None:
        """Counts answers as numbers in this line, from the next attempt on.

        Raises:
            _Again: If the line is new.
        """
        key = (site.file, site.line, use)
        if key not in self.mixing:
            self.mixing[key] = site
            raise _Again


class _Match:
    """The questions of one fit in both worlds."""

    def __init__(
        self,
        sides: Mapping[World, _Side],
        order: Order,
        rng: Callable[[str, int], np.random.Generator],
        lines: _Lines,
        places: Sequence[int],
        lengths: tuple[int, int],
    ) -> None:
        self.sides, self.order, self.lines = sides, order, lines
        # Of a unit each row would have a coin of its own, and the law of several is not followed.
        self.place = places[0] if len(places) == 1 else None
        self.lengths = lengths
        self._turns: Counter[tuple[str, Site]] = Counter()
        self._alike: Counter[tuple[bytes, ...]] = Counter()
        self.transcript = Transcript()
        self._rng = rng("answers", order.number)
        coins = 0 if order.coins == OPPOSITE else order.coins
        self._coins = rng(f"asked coins/{coins}", order.number)
        self._notes: dict[World, list[list[Any]]] = {world: [] for world in WORLDS}
        self._known_coins: dict[int, int] = {}
        self._count_of_coins = 0
        self._next = 0
        self._used: dict[int, int] = {}
        # answers replaced by new ones, which are made of them and of data, and where
        self._gone: dict[int, tuple[Site, str] | None] = {}
        self._mixed: list[float] = []  # losses of answers of sub-samples, towards the base world
        self._first_draw: Site | None = None
        self._waiting: set[World] = set()
        self._ended: dict[World, dict[str, Any]] = {}

    # -- the exchange ----------------------------------------------------------------------------

    def run(self, fits: Mapping[World, Future[pd.DataFrame]]) -> None:
        """Answers questions until both fits are over.

        Raises:
            _Parted: If the worlds diverge.
            _Again: If a line must become a question.
        """
        while True:
            said = {world: self._next_question(world, fits[world]) for world in WORLDS}
            for world, message in said.items():
                if message is not None:
                    self._waiting.add(world)
                    self.take(world, message)
            ended = [world for world, message in said.items() if message is None]
            if len(ended) == 2:
                return
            if ended:
                if (error := fits[ended[0]].exception()) is not None:
                    values = (reason_of(error), "goes on")
                    values = values if ended[0] is World.IN else values[::-1]
                    raise _Parted(PartKind.FAILURE, (None, None), *values)
                self.end(ended[0])
            self.compare_notes(partial=bool(ended))
            asked = [
                None if one is None else (str(one["kind"]), Site(*one["site"]))
                for one in said.values()
            ]
            if asked[0] is None or asked[0] != asked[1]:
                self._find_mixing(*filter(None, asked))
                kinds = ["no further step" if one is None else one[0] for one in asked]
                sites = [None if one is None else one[1] for one in asked]
                raise _Parted(PartKind.STEPS, (sites[0], sites[1]), *kinds)
            kind, site = asked[0]
            replies = getattr(self, f"_on_{kind}")(site, *said.values())
            for world, reply in zip(WORLDS, replies, strict=True):
                self.sides[world].events.send(reply)
                self._waiting.discard(world)

    def dismiss(self, fits: Mapping[World, Future[pd.DataFrame]]) -> None:
        """Ends both fits."""
        for world in WORLDS:
            message: dict[str, Any] | None = {} if world in self._waiting else None
            while message is not None or not fits[world].done():
                if message is not None:
                    self._named(world, message)
                    with suppress(OSError):
                        self.sides[world].events.send({"part": True})
                message = self._next_question(world, fits[world])

    def _next_question(self, world: World, fit: Future[pd.DataFrame]) -> dict[str, Any] | None:
        """The next question of a world; None if its fit is over."""
        channel = self.sides[world].events
        while True:
            done = fit.done()  # checked first: it may have sent a message before it ended
            try:
                if channel.connection.poll(0.0 if done else 0.02):
                    return channel.receive()
            except (EOFError, OSError):
                return None
            if done:
                return None

    def _named(self, world: World, message: dict[str, Any]) -> None:
        self.sides[world].sites += [Site(*one) for one in message.get("sites", ())]

    def take(self, world: World, message: dict[str, Any]) -> None:
        """Keeps the notes that come with a message."""
        self._named(world, message)
        self._notes[world] += message["log"]
        for where, chance, inside in message.get("tosses", ()):
            self.transcript.tosses.append(Toss(Site(*where), chance, inside))
            self.transcript.chance = chance if inside else 0.0

    def end(self, world: World) -> dict[str, Any]:
        """Ends a world's fit and takes its notes since the last question and its unused noise."""
        if world not in self._ended:
            control = self.sides[world].control
            control.send({"kind": "end"})
            self._ended[world] = control.receive()
            self.take(world, self._ended[world])
        return self._ended[world]

    def compare_notes(self, *, partial: bool = False) -> None:
        """Compares the notes of both worlds since the last question.

        Raises:
            _Parted: If they differ and cannot be asked.
            _Again: If they differ and can be asked.
        """
        self._find_loops()
        self._compare_coins()
        inside, outside = (self._notes[world] for world in WORLDS)
        shared = min(len(inside), len(outside))
        for first, second in zip(inside[:shared], outside[:shared], strict=True):
            sites = (self.sides[World.IN].sites[first[1]], self.sides[World.OUT].sites[second[1]])
            if first[0] != second[0] or sites[0] != sites[1]:
                self._find_mixing((first[0], sites[0]), (second[0], sites[1]))
                raise _Parted(PartKind.STEPS, sites, first[0], second[0])
            if first[2] != second[2]:
                key = sites[0][:2]
                if first[0] in _ASKABLE and key not in self.lines.asked:
                    self.lines.asked.add(key)
                    raise _Again
                if first[0] == "use with":
                    self.lines.mix(sites[0], "function")
                raise _Parted(PartKind.DRAWS, sites, first[0], second[0])
            self._record(sites[0], first)
        if len(inside) != len(outside) and not partial:
            longer = WORLDS[0] if len(inside) > len(outside) else WORLDS[1]
            note = self._notes[longer][shared]
            site = self.sides[longer].sites[note[1]]
            self._find_mixing((note[0], site))
            places = (site, None) if longer is World.IN else (None, site)
            values = (f"{len(inside)} draws and uses", f"{len(outside)}")
            raise _Parted(PartKind.STEPS, places, *values)
        self._notes = {world: [] for world in WORLDS}

    def _find_mixing(self, *apart: tuple[str, Site]) -> None:
        """Counts answers as numbers where one world uses them more often, as in loops over rows.

        Raises:
            _Again: If the line is new.
        """
        for kind, site in apart:
            if kind in _MIXING:
                self.lines.mix(site, _MIXING[kind])

    def _find_loops(self) -> None:
        """Finds lines that draw one coin per record, so that one world lacks the target's coin.

        Raises:
            _Again: If there is a new one.
        """
        counts = [
            Counter(
                self.sides[world].sites[note[1]] for note in self._notes[world] if note[0] == "draw"
            )
            for world in WORLDS
        ]
        long, short = self.lengths
        for site, many in counts[0].items():
            few = counts[1][site]
            each = 0 < few < many and many * short == few * long
            if self.order.kept is not None and each and site[:2] not in self.lines.loops:
                self.lines.loops.add(site[:2])
                raise _Again

    def _compare_coins(self) -> None:
        """Compares the coins apart from other notes: each line has its own, so order is free."""
        tossed: list[list[tuple[Site, str]]] = []
        laws: list[Counter[Site]] = []
        for world in WORLDS:
            sites = self.sides[world].sites
            every = [note for note in self._notes[world] if note[0] == "draw"]
            laws.append(Counter(sites[note[1]] for note in every if (note[3] or {}).get("law")))
            tossed.append([(sites[note[1]], note[2]) for note in every])
            self._notes[world] = [note for note in self._notes[world] if note[0] != "draw"]
        self.transcript.alone |= {*laws[0], *laws[1]}
        first = next((site for side in tossed for site, _ in side), None)
        self.transcript.first_coin = self.transcript.first_coin or first
        if tossed[0] != tossed[1]:
            apart = {site for site, _ in set(tossed[0]) ^ set(tossed[1])}
            scaled = {site for site in apart if laws[0][site] == laws[1][site] > 0}
            for site in sorted(scaled):
                self._unfollowed(site, "noise that is used by itself, with a scale from data")
            if apart != scaled or not apart:
                one = min(apart - scaled, default=first)
                self.transcript.uncoupled = self.transcript.uncoupled or one
            self._depends()

    def _record(self, site: Site, note: list[Any]) -> None:
        """Records a note about answers and coins."""
        kind, more = note[0], note[3] or {}
        is_coin = kind in ("draw", "coins", "choose", "coin", "located") and "noise" not in more
        if is_coin and self.transcript.first_coin is None:
            self.transcript.first_coin = site
        if kind == "parameters":
            self._first_draw = self._first_draw or site
        if kind in ("coin", "located") and "noise" not in more:
            self.transcript.follows_coins = True
        for number in flat(more.get("ids", ())).tolist() if self._gone else ():
            if number in self._gone:
                if (mixing := self._gone[number]) is not None:
                    self.lines.mix(*mixing)
                self._end_unfollowed(site, "a noisy answer is used, and also combined with data")
        if kind == "release":
            self.transcript.released.append(numbers_of(more["ids"]))
        elif kind == "reduce":
            self.transcript.reduced.append(numbers_of(more["ids"]))
        elif kind == "tell" and more["told"] == "reused":
            self._end_unfollowed(site, more["text"])
        elif kind == "tell":
            public = more["told"] == "subsample"
            self.transcript.unfollowed.append(Unfollowed(site, more["text"], public_coins=public))
        elif kind == "derive":
            self.transcript.derived.append(
                Derived(
                    ids=more["ids"],
                    parents=tuple((ids, factor) for ids, factor in more["parents"]),
                    offset=more["offset"],
                    noise=tuple(more["noise"]),
                    value=more["value"],
                )
            )
        elif kind == "divide":
            self.transcript.quotients.append(
                Quotient(*(ComparedSide(*map(flat, side)) for side in more["sides"]))
            )
        elif kind in ("largest", "value", "ordered", "compare"):
            self.transcript.selections.append(_selection(site, kind, more))

    # -- the questions ---------------------------------------------------------------------------

    def _on_notes(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        del site, inside, outside
        return {}, {}

    def _on_rows(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        if inside["size"] == outside["size"]:
            return ({"shared": False},) * 2
        if self.place is None or abs(inside["size"] - outside["size"]) != 1:
            sizes = (f"size {inside['size']}", f"size {outside['size']}")
            raise _Parted(PartKind.SHAPES, (site, site), *sizes)
        return ({"shared": True, "place": self.place},) * 2

    def _on_equal(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        first, second = inside["value"], outside["value"]
        equal = same(first, second)
        if not equal and inside["what"] == "spend":
            self._unfollowed(
                site, "noise or a coin is combined with data in a way that cannot be followed"
            )
        elif not equal and inside["what"] == "reduce with":
            self._unfollowed(
                site, "noisy answers are combined with data in a way that cannot be followed"
            )
        elif not equal and inside["what"] in _WITHOUT_NOISE and not self.order.is_nudged:
            kind = _WITHOUT_NOISE[inside["what"]]
            raise _Parted(kind, (site, site), shown(first), shown(second))
        if inside["what"] == "zero" and self.transcript.tosses:
            equal = False  # a sum over an empty sub-sample is an answer as well
        return ({"equal": equal},) * 2

    def _on_answer(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        before = (inside["before"], outside["before"])
        if before[0].shape != before[1].shape:
            shapes = (f"shape {one.shape}" for one in before)
            raise _Parted(PartKind.SHAPES, (site, site), *shapes)
        parts = inside["parts"], outside["parts"]
        if [one["law"] for one in parts[0]] != [one["law"] for one in parts[1]]:
            names = (", ".join(one["law"] for one in side) for side in parts)
            raise _Parted(PartKind.STEPS, (site, site), *names)
        self._next = inside["first"]
        value = self._answered(site, Pair(flat(before[0]), flat(before[1])), parts)
        sides = self._nudged(value, Site(*parts[0][0]["site"]))
        return tuple({"value": one.reshape(before[0].shape)} for one in sides)

    def _nudged(self, value: FloatArray, site: Site) -> tuple[FloatArray, FloatArray]:
        """The latest answer in each world: the same, unless the order changes it."""
        if not self.order.is_nudged:
            return value, value
        step = self.transcript.noisy[-1]
        for key in step.keys & self.order.nudges.keys():
            moved = self.order.nudges[key]
            return value, value + (moved if moved.shape == value.shape else 0.0)
        by_line = site in self.order.nudged and any(at <= _MOST_NUDGED for *_, at in step.keys)
        if not by_line and not step.keys & self.order.nudged:
            return value, value
        width = step.laws[0].width
        if self.order.apart is None:
            # too little for a comparison, enough for use as a number
            return value, value + NUDGE * width * self._rng.uniform(0.5, 1.0, size=value.shape)
        first, second = (value + far * width for far in self.order.apart)
        return first, second

    def _answered(self, site: Site, before: Pair, parts: tuple[list[Any], list[Any]]) -> Any:
        """Draws one answer for both worlds and keeps the step."""
        drawn = tuple(int(one) for part in parts[0] for one in flat(part["ids"]))
        reused = [self._used[one] for one in drawn if one in self._used]
        if reused:
            if any(np.any(flat(part["factor"]) != 1) for part in parts[0]):
                self._end_unfollowed(site, "noise that is used more than once")
            return self._reused(site, before, drawn)
        inside, outside = map(law_of_parts, parts)
        if inside is None or outside is None:
            what = " and ".join(one["law"] for one in parts[0])
            self._end_unfollowed(site, f"noise whose law is not known: {what}")
        known = (inside, outside)
        chance, key = self.transcript.chance, self._question("answer", site)
        value, moved, log_weight = self._drawn(key, before, known)
        where = Site(*parts[0][0]["site"])
        seeds = {part["seed"] for part in parts[0]}
        if not same(before.inside, before.outside):
            self._depends()
        step = NoisyStep(
            site=where,
            first=self._next,
            before=before,
            laws=known,
            answer=value,
            seed=seeds.pop() if len(seeds) == 1 else None,
            drawn=drawn,
            base=WORLDS.index(self.order.base),
            moved=moved,
            log_weight=log_weight,
            toss=self._toss,
            chance=chance,
            keys=frozenset({key}),
        )
        for one in drawn:
            self._used[one] = len(self.transcript.noisy)
        self.transcript.noisy.append(step)
        return value

    def _drawn(
        self, key: Question, before: Pair, known: tuple[NoiseLaw, NoiseLaw]
    ) -> tuple[FloatArray, FloatArray, float]:
        """The answer of a step, its move by the tilt, and its log weight."""
        base, tilt = WORLDS.index(self.order.base), self._tilt(before)
        moved = np.zeros(before.inside.shape)
        given = self._given(key, moved.size)
        if given is not None:
            value, log_weight = given, 0.0
        elif self.transcript.tosses:
            chance = self.transcript.chance
            steering = self.order.steering
            mixed = mixed_answers(
                known,
                before,
                chance,
                base=self.order.base,
                tilt=tilt,
                rng=self._rng,
                towards=None
                if steering is None
                else steering.towards(len(self._mixed), sum(self._mixed)),
            )
            if np.any(before.shift):
                gain = float(log_mixed(chance, mixed.log_ratio))
                gain = gain if base == 0 else -gain
                self._mixed.append(gain if np.isfinite(gain) else 0.0)
            value, log_weight = mixed.value, mixed.log_weight
            self.transcript.chance = posterior(self.transcript.chance, mixed.log_ratio)
        elif self.order.widened != 1.0:
            noise = known[base].widened(self.order.widened, self._rng, moved.shape)
            value, log_weight = before[base] + noise, 0.0
        else:
            aim = self.order.along.get(key)
            if aim is None or aim.shift.shape != moved.shape:
                aim = Aim.at(before, known)
            made = aim.drawn(known[base], base=base, tilt=tilt, rng=self._rng)
            value, moved = before[base] + made.value, tilt * aim.moved(known[base], base=base)
            log_weight = float(np.sum(made.log_weights))
        self.transcript.log_weight += log_weight
        self.transcript.given[key] = value
        return value, moved, log_weight

    def _given(self, key: Question, size: int) -> Any:
        """The answer that the order has for a question; None if it has none of this size.

        Questions are named by how often their line has asked. Where other answers lead the code
        elsewhere, its next question may be a smaller or larger one than that of the same name.
        """
        value = self.order.given.get(key)
        return value if value is not None and len(value) == size else None

    @property
    def _toss(self) -> int | None:
        """Number of the target's latest coin."""
        return len(self.transcript.tosses) - 1 if self.transcript.tosses else None

    def _question(self, kind: str, site: Site) -> Question:
        """The name of a question, by which another replay recognises it."""
        self._turns[kind, site] += 1
        return kind, site, self._turns[kind, site]

    def _tilt(self, values: Sequence[FloatArray]) -> float:
        """The tilt of the answer to a question that has these values in both worlds.

        0 for every second one of many that are alike: a loop may wait for an answer that it
        accepts, which a tilt could make rare.
        """
        alike = tuple(one.tobytes() for one in values)
        self._alike[alike] += 1
        often = self._alike[alike]
        return self.order.tilt if often <= _MOST_ALIKE or often % 2 else 0.0

    def _reused(self, site: Site, before: Pair, drawn: tuple[int, ...]) -> Any:
        """Noise that was added before: its value is known from that answer."""
        noise: list[list[float]] = []
        for one in drawn[: before.inside.size]:
            step = self.transcript.noisy[self._used[one]] if one in self._used else None
            if step is None or len(step.drawn) != step.answer.size:
                break
            place = step.drawn.index(one)
            noise.append([float(step.answer[place] - value[place]) for value in step.before])
        if not noise or len(noise) != before.inside.size:
            self._end_unfollowed(site, "noise that is used more than once")
        first, second = np.transpose(noise) + np.stack(before)
        if not same(first, second):
            raise _Parted(PartKind.REUSED, (site, site), shown(first), shown(second))
        return first

    def _on_choose(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        shares = _shares(site, inside, outside)
        return ({"places": self._decided(site, shares, inside["count"])},) * 2

    def _on_pick(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        """Distinct places drawn one after another, rescaling the remaining probabilities."""
        left, places = _shares(site, inside, outside), []
        for _ in range(inside["count"]):
            [place] = self._decided(site, [one / one.sum() for one in left], 1)
            places.append(place)
            for one in left:
                one[place] = 0.0
        return ({"places": np.asarray(places, dtype=np.int64)},) * 2

    def _decided(self, site: Site, shares: list[Any], count: int) -> Any:
        """Draws places for both worlds, given the probabilities in each; keeps the step."""
        key = self._question("choose", site)
        places = self._given(key, count)
        if places is None or np.max(places, initial=0) >= len(shares[0]):
            places = self._chosen(shares, count)
        self.transcript.given[key] = places
        table = Pair(shares[0], shares[1])
        if not same(*table):
            self._depends()
            largest = largest_ratio(table)
            with np.errstate(divide="ignore"):
                logs = Pair(*(np.log(one[places]) for one in table))
            self.transcript.choices.append(
                ChoiceStep(
                    site=site,
                    log_probability=logs,
                    largest=largest if np.isinf(largest) else count * largest,
                    table=table,
                    toss=self._toss,
                    keys=frozenset({key}),
                )
            )
        return places

    def _chosen(self, shares: Sequence[FloatArray], count: int) -> IntArray:
        """Draws places, tilted towards those where the worlds differ most."""
        base, tilt = WORLDS.index(self.order.base), self._tilt(shares)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(shares[0]) - np.log(shares[1])
        found: list[int] = []
        # places share the target's coin: the evidence of one counts for the next
        apart = bool(self.transcript.tosses) and not same(shares[0], shares[1])
        blocks = [1] * count if apart else [count]
        for block in blocks:
            chance = self.transcript.chance
            tables = ((1 - chance) * shares[1] + chance * shares[0], shares[1])
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = [np.log(one) for one in tables]
                loss = np.where(tables[base] > 0, logs[base] - logs[1 - base], 0.0)
                tilted = logs[base] + np.clip(tilt * np.clip(loss, -1e9, 1e9), -50, 50)
            proposal = np.exp(tilted - np.max(tilted))
            proposal /= proposal.sum()
            places = self._rng.choice(len(proposal), size=block, p=proposal)
            self.transcript.log_weight += float(
                np.sum(logs[base][places] - np.log(proposal[places]))
            )
            if apart:
                self.transcript.chance = posterior(chance, float(ratios[places[0]]))
            found += places.tolist()
        return np.asarray(found, dtype=np.int64)

    def _on_coin(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        """Compares coins that still lie in [low, high) with limits and draws their side."""
        sides = (inside, outside)
        if inside["limit"].shape != outside["limit"].shape:
            shapes = (f"shape {one['limit'].shape}" for one in sides)
            raise _Parted(PartKind.SHAPES, (site, site), *shapes)
        below = []
        for one in sides:
            share = (one["limit"] - one["low"]) / (one["high"] - one["low"])
            below.append(np.clip(flat(share), 0.0, 1.0))
        key, coin = self._question("coin", site), self._coin(inside)
        if same(below[0], below[1]):  # a coin without data, which is no answer
            return ({"under": self._tossed(below[0]).astype(np.uint8)},) * 2
        under = self._given(key, len(below[0]))
        if under is None:
            under = self._fallen(below)
        self.transcript.given[key] = under
        p, other = below
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(np.maximum(p, other) > 0, np.log(p) - np.log(other), 0.0)
            loss = np.where(np.minimum(p, other) < 1, np.log1p(-p) - np.log1p(-other), 0.0)
            logs = [np.where(under, np.log(one), np.log1p(-one)) for one in below]
        largest = np.sum(np.maximum(np.abs(gain), np.abs(loss)))
        self._depends()
        self.transcript.choices.append(
            ChoiceStep(
                site=site,
                log_probability=Pair(logs[0], logs[1]),
                largest=float(largest),
                table=Pair(below[0], below[1]),
                toss=self._toss,
                keys=frozenset({key}),
                coin=coin,
                under=under,
            )
        )
        return ({"under": under.astype(np.uint8)},) * 2

    def _coin(self, said: Mapping[str, Any]) -> int | None:
        """The number of a single coin, the same as long as it is compared again."""
        if np.size(said["low"]) != 1:
            return None
        if np.all(said["low"] == 0) and np.all(said["high"] == 1):
            self._count_of_coins += 1
            self._known_coins[said["name"]] = self._count_of_coins
        return self._known_coins.get(said["name"])

    def _tossed(self, below: FloatArray) -> NDArray[np.bool_]:
        """The side on which coins fall that have the same chance in both worlds."""
        drawn = self._coins.random(below.shape)
        return ((1.0 - drawn if self.order.coins == OPPOSITE else drawn) < below) | (below >= 1.0)

    def _fallen(self, below: Sequence[FloatArray]) -> NDArray[np.bool_]:
        """Draws the side of limits that differ between the worlds, tilted as for places."""
        if self.transcript.tosses:
            tables = [np.stack([one, 1.0 - one], axis=1) for one in below]
            return np.asarray([self._chosen(one, 1)[0] == 0 for one in zip(*tables, strict=True)])
        base, tilt = WORLDS.index(self.order.base), self._tilt(below)
        p, other = below[base], below[1 - base]
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(p > 0, np.log(p) - np.log(other), 0.0)
            loss = np.where(p < 1, np.log1p(-p) - np.log1p(-other), 0.0)
            apart = np.clip(gain - loss, -1e9, 1e9)
            odds = np.log(p) - np.log1p(-p) + np.clip(tilt * apart, -50, 50)
        q = np.where(p <= 0, 0.0, np.where(p >= 1, 1.0, 1.0 / (1.0 + np.exp(-odds))))
        under = self._rng.random(q.shape) < q
        with np.errstate(divide="ignore"):
            own = np.where(under, np.log(p), np.log1p(-p))
            chosen = np.where(under, np.log(q), np.log1p(-q))
        self.transcript.log_weight += float(np.sum(own - chosen))
        return np.asarray(under)

    def _on_shift(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        """An answer plus a value: if the value differs between worlds, the sum is a new answer."""
        others = flat(inside["other"]), flat(outside["other"])
        key = self._question("shift", site)
        reply = self._without_new(key, others, (inside["ids"], outside["ids"]))
        if reply is not None:
            return (reply,) * 2
        ids = numbers_of(inside["ids"])
        factor, offset = flat(inside["factor"]), flat(inside["offset"])
        whole = None
        if len(others[0]) == len(others[1]):
            whole = self._multiplied(ids, (factor, factor))
        if whole is None:
            if inside["mixes"]:
                self.lines.mix(site, inside["use"])
            # the noise in them may protect the value, as in a comparison: the cost is unknown
            self._end_unfollowed(
                site, "data is added to a part of noisy answers, or to a sum or multiple of them"
            )
        index, places, moved_laws = whole
        one_step = self.transcript.noisy[index]
        # the first sum is superseded: it was never released
        moved = Pair(
            one_step.before.inside[places] * factor + offset + others[0],
            one_step.before.outside[places] * factor + offset + others[1],
        )
        self._next = inside["first"]
        self._depends()
        mixing = (site, str(inside["use"])) if inside["mixes"] else None
        self._gone |= dict.fromkeys(ids.tolist(), mixing)
        base = WORLDS.index(self.order.base)
        if one_step.toss is None:
            # noise and weight stay the same: the answer moves with the data
            noise = (one_step.answer - one_step.before[base])[places]
            value, log_weight = noise * factor + moved[base], one_step.log_weight
        else:
            if index != len(self.transcript.noisy) - 1 or one_step.toss != self._toss:
                self._unfollowed(site, "data is added later to an answer of a sub-sample")
            self.transcript.chance = one_step.chance
            self.transcript.log_weight -= one_step.log_weight
            if np.any(one_step.before.shift):
                del self._mixed[-1:]
            value, _, log_weight = self._drawn(key, moved, moved_laws)
        drawn, keys = one_step.drawn, one_step.keys if one_step.toss is None else frozenset({key})
        if not np.array_equal(places, np.arange(len(places))) or not np.all(factor == 1):
            drawn = ()  # it is no longer known which noise it contains
        self.transcript.given[key] = value
        self.transcript.noisy[index] = replace(
            one_step,
            first=self._next,
            before=moved,
            laws=moved_laws,
            answer=value,
            moved=one_step.moved[places] * factor,
            log_weight=log_weight,
            drawn=drawn,
            keys=keys,
        )
        return ({"equal": False, "value": value.reshape(np.shape(inside["other"]))},) * 2

    def _without_new(
        self, key: Question, values: tuple[FloatArray, FloatArray], ids: tuple[Any, Any]
    ) -> dict[str, bool] | None:
        """The reply where answers and these values make no new answer; None where they do.

        Either the values are equal, or the result is data, because all answers are released. Its
        cost is that of its next use, unless more noise protects it. If some answers differ between
        the worlds, no data does: whatever differs is made of those answers.
        """
        if same(*values):
            is_asked = key in self.order.given and not self.order.is_nudged
            return None if is_asked else {"equal": True}
        numbers = np.concatenate([numbers_of(one) for one in ids])
        are_released = self.transcript.are_released(numbers[numbers >= 0]).all()
        return {"known": True} if self.order.is_nudged or are_released else None

    def _multiplied(
        self, ids: IntArray, factors: tuple[FloatArray, FloatArray]
    ) -> tuple[int, IntArray, tuple[NoiseLaw, NoiseLaw]] | None:
        """The number of the step of these answers, their places in it, and its noise multiplied.

        None if they are not all answers of a step, each once, or if the law is not known.
        """
        for number, step in enumerate(self.transcript.noisy):
            places = ids - step.first
            if np.array_equal(np.sort(places), np.arange(step.answer.size)):
                known = _rescaled(step, places, factors)
                return None if known is None else (number, places, known)
        return None

    def _on_rescale(self, site: Site, inside: dict[str, Any], outside: dict[str, Any]) -> Any:
        """Answers times a factor: if it differs between worlds, so does the scale of the noise."""
        by = flat(inside["by"]), flat(outside["by"])
        key = self._question("rescale", site)
        reply = self._without_new(key, by, (inside["ids"], outside["ids"]))
        if reply is not None:
            return (reply,) * 2
        factor, whole = flat(inside["factor"]), None
        if len(by[0]) == len(by[1]):
            ids = numbers_of(inside["ids"])
            whole = self._multiplied(ids, (factor * by[0], factor * by[1]))
        if whole is None or self.transcript.noisy[whole[0]].toss is not None:
            self.lines.mix(site, "factor")
            self._end_unfollowed(site, "noisy answers are multiplied by a value from the data")
        index, places, known = whole
        one_step = self.transcript.noisy[index]
        before = Pair(
            *(
                old[places] * (factor * own) + flat(inside["offset"]) * own
                for old, own in zip(one_step.before, by, strict=True)
            )
        )
        # noise and weight stay the same: the answer is the product in the base world
        base = WORLDS.index(self.order.base)
        noise = (one_step.answer - one_step.before[base])[places]
        value = noise * (factor * by[base]) + before[base]
        self._next = inside["first"]
        self._depends()
        self.transcript.noisy[index] = replace(
            one_step,
            first=self._next,
            before=before,
            laws=known,
            answer=value,
            moved=one_step.moved[places] * (factor * by[base]),
            drawn=(),
            rescaled=site,
        )
        return ({"equal": False, "value": value.reshape(np.shape(inside["by"]))},) * 2

    def _unfollowed(self, site: Site, why: str) -> None:
        self.transcript.unfollowed.append(Unfollowed(site, why))

    def _end_unfollowed(self, site: Site, why: str) -> NoReturn:
        """Ends the fit: neither the answer of this step nor its cost is known."""
        self._unfollowed(site, why)
        raise _Parted(PartKind.UNFOLLOWED, (site, site), why, why)

    def _depends(self) -> None:
        """Notes that the worlds differ here: earlier coins may have mattered."""
        self.transcript.coin_before = self.transcript.coin_before or self.transcript.first_coin
        self.transcript.draw_before = self.transcript.draw_before or self._first_draw


def _selection(site: Site, how: str, more: Mapping[str, Any]) -> AnswerSelection:
    """A selection, from its note."""
    if how == "compare":
        left, right = more["sides"]
        outcome, other = more["outcome"], ComparedSide(*right)
    else:
        left = more["ids"], more["factor"], more["offset"]
        outcome, other = more["order" if how == "ordered" else "place"], None
    ids, factor, offset = map(flat, left)
    return AnswerSelection(
        site=site,
        how=how,
        ids=ids,
        factor=factor,
        offset=offset,
        outcome=flat(outcome),
        other=other,
        sign=more.get("sign", ""),
    )


def _shares(site: Site, inside: Mapping[str, Any], outside: Mapping[str, Any]) -> list[Any]:
    """The probabilities of places in each world."""
    weights = [np.asarray(one["weights"], dtype=float) for one in (inside, outside)]
    counts = inside["count"], outside["count"]
    if weights[0].shape != weights[1].shape or counts[0] != counts[1]:
        pairs = zip(counts, weights, strict=True)
        values = (f"{count} of {len(one)} places" for count, one in pairs)
        raise _Parted(PartKind.SHAPES, (site, site), *values)
    return [one / one.sum() for one in weights]


def _rescaled(
    step: NoisyStep, places: IntArray, factors: tuple[FloatArray, FloatArray]
) -> tuple[NoiseLaw, NoiseLaw] | None:
    """The noise of a step's answers in another order, multiplied in each world; None if unknown."""
    if np.all(np.equal(factors, 1)) and np.array_equal(places, np.arange(step.answer.size)):
        return step.laws
    found = []
    for law, factor in zip(step.laws, factors, strict=True):
        shares = shares_of(law, places, step.answer.size)
        if shares is None:
            return None
        known = laws.law_of([one._replace(factor=one.factor * factor) for one in shares])
        if known is None:
            return None
        found.append(known)
    return found[0], found[1]


def law_of_parts(parts: list[Any]) -> NoiseLaw | None:
    """The noise law of one world's step, from its message."""
    return laws.law_of(
        [Share(one["law"], *(flat(one[name]) for name in Share._fields[1:])) for one in parts]
    )


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal up to rounding."""
    if np.shape(first) != np.shape(second):
        return False
    if np.asarray(first).dtype == np.uint8:
        return bool(np.array_equal(first, second))
    return bool(np.allclose(first, second, rtol=ROUNDING, atol=0.0, equal_nan=True))


def shown(value: Any) -> str:
    """A value in a few characters."""
    values = np.asarray(value)
    if values.dtype == np.uint8:
        return "another value"
    if values.size == 1:
        return f"{float(values.ravel()[0]):.6g}"
    some = ", ".join(f"{float(one):.4g}" for one in values.ravel()[:3])
    return f"[{some}{', ...' if values.size > 3 else ''}] ({values.size} numbers)"


def _rows_parted(tables: list[pd.DataFrame | None]) -> Parting | None:
    first, second = tables
    if first is None or second is None or first.equals(second):
        return None
    if first.shape != second.shape:
        values = (f"{first.shape[0]} rows", f"{second.shape[0]} rows")
    elif not (first.columns.equals(second.columns) and first.index.equals(second.index)):
        values = ("columns or index differ", "")
    else:
        differ = (first != second) & ~(first.isna() & second.isna())
        values = (f"{int(differ.to_numpy().any(axis=1).sum())} of {len(first)} rows differ", "")
    return Parting(kind=PartKind.ROWS, sites=(None, None), values=values)


@contextmanager
def opened_worlds(
    start: WorkerStart,
    *,
    samplers: str = "[]",
) -> Iterator[Worlds]:
    """Starts both worlds.

    Args:
        start: How to start a worker that fits the generator.
        samplers: Samplers that the user named, as JSON.

    Yields:
        The worlds; their processes end with the context.

    Raises:
        ReplayError: If the worker cannot be started, or draws in its Python not be intercepted.
    """
    with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX) as folder:
        address = str(Path(folder) / "listen")
        children: list[Site] = []
        with _Listener(address, children) as listener:
            sides: dict[World, _Side] = {}
            try:
                for world in WORLDS:
                    sides[world] = _started(start, world, Path(folder), listener, samplers)
                yield Worlds(sides, children)
            finally:
                for side in sides.values():
                    side.session.end()


def _started(
    start: WorkerStart, world: World, folder: Path, listener: _Listener, samplers: str
) -> _Side:
    own = folder / world.value
    own.mkdir()
    environment = {
        "DPAUDIT_LISTEN": listener.address,
        "DPAUDIT_WORLD": world.value,
        "DPAUDIT_LISTEN_SAMPLERS": samplers,
        "PYTHONPATH": str(BOOT),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    try:
        session = WorkerSession(start, folder=own, environment=environment)
    except WorkerError as error:
        raise ReplayError(f"world {world} cannot start: {error}") from None
    channels = listener.wait(world.value)
    if channels is None:
        session.end()
        raise ReplayError(
            "the generator does not run in a Python that replay can listen to: audit it from "
            "outside with `dpaudit audit`"
        )
    return _Side(session, *channels)


class _Listener:
    """Takes the connections of the worlds' processes."""

    def __init__(self, address: str, children: list[Site]) -> None:
        self.address, self._children = address, children
        self._found: dict[tuple[str, str], Channel] = {}
        self._change = threading.Condition()
        self._closed = False

    def __enter__(self) -> _Listener:
        self._server = Listener(self.address, family="AF_UNIX", backlog=16)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        with suppress(OSError):
            connect(self.address, {"role": "end"}).connection.close()  # wakes what accepts
        self._server.close()
        for channel in self._found.values():
            channel.connection.close()

    def wait(self, world: str) -> tuple[Channel, Channel] | None:
        """Both channels of a connected world; None if it does not connect."""
        keys = [(world, role) for role in ("events", "control")]
        with self._change:
            self._change.wait_for(lambda: all(key in self._found for key in keys), 1.0)
            found = [self._found.get(key) for key in keys]
        if found[0] is None or found[1] is None:
            return None
        return found[0], found[1]

    def _accept(self) -> None:
        while not self._closed:
            try:
                channel = Channel(self._server.accept())
                hello = channel.receive()
            except (OSError, EOFError):
                continue
            with self._change:
                if hello["role"] == "child":
                    self._children.append(Site(*hello["site"]))
                if hello["role"] in ("child", "end"):
                    channel.connection.close()
                else:
                    self._found[hello["world"], hello["role"]] = channel
                self._change.notify_all()
