"""The questions and notes of one fit in both worlds, and the answers that both are given."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpaudit.game.trial import reason_of
from dpaudit.plugins.protocols import World
from dpaudit.replaying.joint_noise import StepNoise, join_noise
from dpaudit.replaying.laws import FloatArray, IntArray, Share, law_of
from dpaudit.replaying.messages import (
    Comparison,
    Draw,
    Note,
    are_same,
    as_text,
    differ_in_noise,
    law_of_draws,
    lone_elements,
    lone_places,
    release_of,
    selection_of,
    table_of,
)
from dpaudit.replaying.orders import HIDDEN, Learned, Order
from dpaudit.replaying.processes import WORLDS, Processes
from dpaudit.replaying.transcript import (
    ChoiceStep,
    LoneDraw,
    NoisyStep,
    Pair,
    Parting,
    PartKind,
    Question,
    RedrawnNoise,
    Site,
    Toss,
    Transcript,
    Unfollowed,
    flat,
    numbers_of,
)

NUDGE: Final = 1e-7
"""A change of an answer that no selection should notice, in its own units."""
Sides = Sequence[Mapping[str, Any]]
"""The same question of both worlds."""
_ASKABLE: Final = frozenset(("choose", "coin", "factor", "operand", "located", "spend", "zero"))
"""Kinds of notes that become questions if their line is asked."""


class Restart(Exception):  # noqa: N818 - it is no error
    """The fit restarts with one more line as a question."""


class Parted(Exception):  # noqa: N818 - it is no error
    """The worlds have parted."""

    def __init__(
        self, kind: PartKind, sites: tuple[Site | None, Site | None], *values: str
    ) -> None:
        super().__init__()
        self.parting = Parting(kind=kind, sites=sites, values=(values[0], values[-1]))


class Match:
    """The questions of one fit in both worlds, or in one.

    Args:
        learned: What earlier fits have taught.
        order: How the fit is made.
        processes: Where it runs.
        place: The place of the record that one world lacks; None if it is not a single one.
        rng: Draws the answers.
    """

    def __init__(
        self,
        learned: Learned,
        order: Order,
        processes: Processes,
        place: int | None,
        rng: np.random.Generator,
    ) -> None:
        self.order, self.lines, self._alignment = order, learned.lines, learned.alignment
        self._base = WORLDS.index(order.base if len(order.worlds) > 1 else order.worlds[0])
        self._gap_draws, self._free_seeds = learned.gap_draws, learned.free_seeds
        # the values of gap draws of this fit, and the ranges from which each world draws them
        self._from_gaps: dict[Question, tuple[float, Pair]] = {}
        self._scores: set[int] = set()  # answers of world "in" that pick a gap
        self._processes = processes.worlds
        schema = self._processes[World.IN].session.start.schema
        sizes = {world: schema.rows_asked(table) for world, table in order.tables.items()}
        alone = next(iter(sizes.values()))
        self.lengths = (sizes.get(World.IN, alone), sizes.get(World.OUT, alone))
        self.transcript = Transcript(is_coin_edge=order.edge is not None)
        self.place, self._rng = place, rng
        self._turns: Counter[tuple[str, Site]] = Counter()
        self._notes: dict[World, list[Note]] = {world: [] for world in WORLDS}
        self._noises: list[StepNoise] = []
        self._waiting: set[World] = set()
        self._ended: dict[World, dict[str, Any]] = {}
        # single values before noise, by line, and the numbers of answers that only "in" has
        self._single: dict[World, dict[Site, list[float]]] = {
            world: defaultdict(list) for world in WORLDS
        }
        self._lone: set[int] = set()
        # the latest range of each uniform draw, by where it lies in memory
        self._ranges: dict[int, tuple[Question, tuple[float, float]]] = {}
        # comparisons of single uniform draws, by where they lie in memory, and in order
        self._coins: dict[int, list[Comparison]] = {}
        self._ordered: dict[int, tuple[int, ...]] = {}
        self._compared: list[tuple[Site, Question, int | None, list[Comparison]]] = []

    # -- the exchange ----------------------------------------------------------------------------

    def begin(self, seed: int) -> None:
        """Begins the fits of the worlds, whose common streams have this root."""
        lines = {name: sorted(lines) for name, lines in self.lines._asdict().items()}
        controls = [self._processes[world].control for world in self.order.worlds]
        for world, control in zip(self.order.worlds, controls, strict=True):
            own, other = self.lengths if world is World.IN else self.lengths[::-1]
            own_rows = [self.place] if self.place is not None and own > other else []
            counts = {"rows": [own, other], "own_rows": own_rows}
            control.send({**self.order.message(seed), **lines, **counts})
        for control in controls:
            control.receive()

    def run(self, fits: Mapping[World, Future[Any]]) -> None:
        """Answers questions until the fits are over.

        Raises:
            Parted: If the worlds part.
            Restart: If a line must become a question.
        """
        while True:
            questions = {world: self._next_shared_question(world, fits[world]) for world in fits}
            asking = [world for world, own in questions.items() if own and own["kind"] == "rows"]
            if len(asking) < len(fits):  # the size is the number of records by chance
                for world in asking:
                    self._reply(world, {"shared": False})
                    questions[world] = self._next_shared_question(world, fits[world])
            ended = [world for world, message in questions.items() if message is None]
            if len(ended) == len(questions):
                return
            if ended:
                if (error := fits[ended[0]].exception()) is not None:
                    values = (reason_of(error), "goes on")
                    values = values if ended[0] is World.IN else values[::-1]
                    raise Parted(PartKind.FAILURE, (None, None), *values)
                self.end(ended[0])
            self.compare_notes(partial=bool(ended))
            messages = [questions.get(world, questions[next(iter(questions))]) for world in WORLDS]
            kinds = [
                None if message is None else (message["kind"], Site(*message["site"]))
                for message in messages
            ]
            if kinds[0] is None or kinds[0] != kinds[1]:
                steps = ("no further step" if kind is None else kind[0] for kind in kinds)
                lines = [None if kind is None else kind[1] for kind in kinds]
                raise Parted(PartKind.STEPS, (lines[0], lines[1]), *steps)
            kind, site = kinds[0]
            reply = getattr(self, f"_on_{kind}")(site, messages)
            replies = reply if isinstance(reply, tuple) else (reply, reply)
            for world in questions:
                self._reply(world, replies[WORLDS.index(world)])

    def _reply(self, world: World, reply: Any) -> None:
        self._processes[world].events.send(reply)
        self._waiting.discard(world)

    def dismiss(self, fits: Mapping[World, Future[Any]]) -> None:
        """Ends the fits that still wait."""
        for world, fit in fits.items():
            message: dict[str, Any] | None = {} if world in self._waiting else None
            while message is not None or not fit.done():
                if message is not None:
                    with suppress(OSError):
                        self._processes[world].events.send({"part": True})
                message = self._next_question(world, fit)

    def _next_shared_question(self, world: World, fit: Future[Any]) -> dict[str, Any] | None:
        """The next question that both worlds ask; those of one world alone are answered."""
        while (message := self._next_question(world, fit)) is not None:
            self._waiting.add(world)
            self._take(world, message)
            if not self._is_lone(world, message):
                break
            site = Site(*message["site"])
            known = self._alignment.turns.get(site)
            parting = self.transcript.lone[-1].parting if known is None else known[1]
            self._reply(world, self._answer_lone(message, 0, parting))
        return message

    def _is_lone(self, world: World, message: Mapping[str, Any]) -> bool:
        """Whether only world "in" asks this, in the turn of a loop that the other world lacks."""
        if message["kind"] != "answer" or len(self.order.worlds) == 1 or world is not World.IN:
            return False
        if message.get("on") is not None:  # more noise on an answer
            return self._lone.issuperset(numbers_of(message["on"]).tolist())
        site = Site(*message["site"])
        if site not in self._alignment.turns or np.size(message["before"]) != 1:
            return False
        if self.transcript.tosses or law_of_draws(message["parts"]) is None:
            return False
        turn = len(self._single[world][site]) - 1
        return self._alignment.choose(self._alignment.turns[site][0]) == turn

    def finds_lone_turn(self, parting: Parting) -> bool:
        """Whether world "in" asks once more at a line, all its other values being equal."""
        for site, values in self._single[World.IN].items():
            others = self._single[World.OUT][site]
            turns = lone_places(np.array(values), np.array(others))
            if turns and site not in self._alignment.turns:
                self._alignment.turns[site] = turns, parting
                return True
        return False

    def _next_question(self, world: World, fit: Future[Any]) -> dict[str, Any] | None:
        """The next question of a world; None if its fit is over."""
        channel = self._processes[world].events
        while True:
            done = fit.done()  # checked first: it may have sent a message before it ended
            try:
                if channel.connection.poll(0.0 if done else 0.005):
                    return channel.receive()
            except (EOFError, OSError):
                return None
            if done:
                return None

    def _take(self, world: World, message: dict[str, Any]) -> None:
        """Keeps the notes that come with a message."""
        self._notes[world] += [Note.of(*note) for note in message["log"]]
        if message.get("kind") == "answer":
            message["parts"] = list(map(Draw.of, message["parts"]))
        is_single = message.get("kind") == "answer" and np.size(message["before"]) == 1
        if is_single and message.get("on") is None:
            value = float(np.ravel(message["before"])[0])
            self._single[world][Site(*message["site"])].append(value)
        if world is self.order.worlds[0] or len(self.order.worlds) == 1:
            self.transcript.tosses += [
                Toss(Site(*where), chance, is_in)
                for where, chance, is_in in message.get("tosses", ())
            ]

    def end(self, *worlds: World) -> None:
        """Ends the fits of worlds, unless they have ended, and takes their last messages."""
        going = [world for world in worlds if world not in self._ended]
        for world in going:
            self._processes[world].control.send({"kind": "end"})
        for world in going:
            self._ended[world] = self._processes[world].control.receive()
            self._take(world, self._ended[world])

    def finish(self) -> None:
        """Adds the last messages of the worlds to the transcript."""
        transcript = self.transcript
        for world, message in self._ended.items():
            self.lines.bent.update((file, line) for file, line in message["bent"])
            # Where one world has answers of its own, those of "in" are numbered like the steps.
            if world is World.IN or not (self._lone or self._scores):
                transcript.released |= set(numbers_of(message["released"]).tolist())
                transcript.sampled_from = int(message["sampled_from"])
            transcript.unfollowed += [
                Unfollowed(Site(*lost[:3]), lost[3]) for lost in message["lost"]
            ]
            transcript.bare += [Unfollowed(Site(*bare[:3]), bare[3]) for bare in message["bare"]]
            transcript.has_samplers |= bool(message["has_samplers"])
            for file, line, function, text in message["seeds"]:
                transcript.seeds.setdefault(Site(file, line, function), set()).add(text)
        if transcript.parting is None:  # of fits that were ended no notes were compared
            transcript.unfollowed += [
                Unfollowed(note.site, note.more["text"])
                for notes in self._notes.values()
                for note in notes
                if note.kind == "tell"
            ]
        transcript.unfollowed = list(dict.fromkeys(transcript.unfollowed))
        first = self._ended[self.order.worlds[0]]
        transcript.draws = {Site(*draw[:3]): draw[3] for draw in first["draws"]}
        inside, outside = (
            release_of(release) if release and failure is None else None
            for release, failure in zip(
                (self._ended.get(world, {}).get("release") for world in WORLDS),
                transcript.failures,
                strict=True,
            )
        )
        transcript.releases = inside, outside
        for site, key, toss, comparisons in self._compared:
            table = table_of(comparisons)
            if not are_same(*table):
                places = np.array([len(comparisons)], dtype=np.int64)
                sides = tuple(is_below for _, _, is_below in comparisons)
                transcript.choices.append(
                    ChoiceStep(
                        site=site, tables=(table,), places=places, toss=toss, key=key, sides=sides
                    )
                )
        transcript.ranges = dict(self._ranges.values())
        join_noise(transcript, self._noises)
        keys = {step.key for step in transcript.noisy}
        transcript.lone = [draw for draw in transcript.lone if draw.key in keys]

    # -- the notes -------------------------------------------------------------------------------

    def compare_notes(self, *, partial: bool = False) -> None:
        """Compares the notes of both worlds since the last question.

        Raises:
            Parted: If they differ and cannot be asked.
            Restart: If they differ and can be asked.
        """
        if len(self.order.worlds) == 1:
            [world] = self.order.worlds
            for note in self._notes[world]:
                self._record(note, is_equal=True)
            self._notes[world] = []
            return
        self._find_loops()
        self._compare_coins()
        self._drop_lone_notes()
        inside, outside = (self._notes[world] for world in WORLDS)
        for first, second in zip(inside, outside, strict=False):
            kind, site = first[:2]
            if (kind, site) != second[:2]:
                raise Parted(PartKind.STEPS, (site, second.site), kind, second.kind)
            is_equal = first.digest == second.digest
            if kind == "seed" and site in self._free_seeds:
                continue
            if not is_equal and self._are_alike(first, second):
                self.transcript.released.update(numbers_of(first.more["ids"]).tolist())
                continue
            if not is_equal and kind != "select":
                if kind in _ASKABLE and site[:2] not in self.lines.asked:
                    self.lines.asked.add(site[:2])
                    if kind == "located":
                        self.lines.located.add(site[:2])
                    raise Restart
                differs = PartKind.SEEDS if kind == "seed" else PartKind.DRAWS
                raise Parted(differs, (site, site), kind)
            self._record(first, is_equal=is_equal)
        if len(inside) != len(outside) and not partial:
            longer = WORLDS[0] if len(inside) > len(outside) else WORLDS[1]
            site = self._notes[longer][min(len(inside), len(outside))].site
            places = (site, None) if longer is World.IN else (None, site)
            raise Parted(PartKind.STEPS, places, f"{len(inside)} draws and uses", f"{len(outside)}")
        self._notes = {world: [] for world in WORLDS}

    def _find_loops(self) -> None:
        """Finds lines that draw one coin per record, so that one world lacks the record's coin.

        Raises:
            Restart: If there is a new one.
        """
        counts = [
            Counter(note.site for note in self._notes[world] if note.kind == "draw")
            for world in WORLDS
        ]
        long, short = self.lengths
        for site, many in counts[0].items():
            few = counts[1][site]
            # the line drew k times for each record: k * long in one world, k * short in the other
            each = 0 < few < many and many * short == few * long
            if each and site[:2] not in self.lines.loops:
                self.lines.loops.add(site[:2])
                raise Restart

    def _compare_coins(self) -> None:
        """Compares coins apart from other notes: each line has a stream, so order is free."""
        drawn: list[list[tuple[Site, str]]] = []
        for world, notes in self._notes.items():
            drawn.append([(note.site, note.digest) for note in notes if note.kind == "draw"])
            self._notes[world] = [note for note in notes if note.kind != "draw"]
        if drawn[0] != drawn[1]:
            differ = {site for site, _ in set(drawn[0]) ^ set(drawn[1])}
            site = min(differ or {site for side in drawn for site, _ in side})
            self._say_unfollowed(site, "the draws of this line depend on the record")

    def _drop_lone_notes(self) -> None:
        """Leaves out what world "in" notes around a draw that only this world makes."""
        sides = [[note[:2] for note in notes] for notes in self._notes.values()]
        more = len(sides[0]) - len(sides[1])
        if self._lone and more > 0:
            pairs = zip(*sides, strict=False)
            start = next((at for at, (own, its) in enumerate(pairs) if own != its), len(sides[1]))
            del self._notes[World.IN][start : start + more]

    def _are_alike(self, first: Note, second: Note) -> bool:
        """Whether two notes are the same selection, but for answers that one world has alone."""
        if first.kind != "select" or not self._lone:
            return False
        inside, outside = first.more, second.more
        kept = ~np.isin(numbers_of(inside["ids"]), list(self._lone))
        names = [name for name in ("factor", "offset", "limits") if name in inside]
        return all(
            name in outside and np.array_equal(inside[name][kept], outside[name]) for name in names
        )

    def _record(self, note: Note, *, is_equal: bool) -> None:
        kind, site, _, more = note
        if kind == "tell":
            told = Unfollowed(site, more["text"], more["told"] == "subsample")
            self.transcript.unfollowed.append(told)
        elif kind == "select":
            selection = selection_of(site, more, is_equal=is_equal)
            if not self._scores.issuperset(selection.answers):
                self.transcript.selections.append(selection)
        elif kind == "range":
            # a draw that is scaled or shifted again has another range
            self._ranges[more["name"]] = self._key("range", site), (more["low"], more["high"])
        elif kind == "answer":  # of a natural fit
            before = Pair(flat(more["before"]), flat(more["before"]))
            side = {**more, "parts": list(map(Draw.of, more["parts"]))}
            self._add_step(site, before, (side, side), flat(more["value"]))
        elif kind == "redrawn":
            drawn = np.asarray(more["drawn"]).reshape(len(more["drawn"]), -1)
            numbers = (flat(more[name]) for name in ("scale", "shape", "other"))
            law = law_of([Share(more["law"], np.ones(drawn.shape[1]), *numbers)])
            self.transcript.redrawn.append(RedrawnNoise(site=site, law=law, drawn=drawn))

    # -- the questions ---------------------------------------------------------------------------

    def _on_notes(self, site: Site, sides: Sides) -> Any:
        del site, sides
        return {}

    def _on_rows(self, site: Site, sides: Sides) -> Any:
        inside, outside = (side["size"] for side in sides)
        if inside == outside:
            return {"shared": False}
        if self.place is None or abs(inside - outside) != 1:
            raise Parted(PartKind.SHAPES, (site, site), f"size {inside}", f"size {outside}")
        return {"shared": True, "place": self.place}

    def _on_equal(self, site: Site, sides: Sides) -> Any:
        first, second = (side["value"] for side in sides)
        equal, what = are_same(first, second), sides[0]["what"]
        if not equal and what == "operand":
            raise Parted(PartKind.OPERANDS, (site, site), as_text(first), as_text(second))
        if not equal and what == "spend":
            self._say_unfollowed(site, "noise or a coin is combined with data by more than a sum")
        if what == "zero" and self.transcript.tosses:
            equal = False  # a sum over an empty sub-sample is an answer as well
        return {"equal": equal}

    def _on_answer(self, site: Site, sides: Sides) -> Any:
        if ("answer", site, self._turns["answer", site] + 1) in self._gap_draws:
            return self._pick_by_noise(self._key("answer", site), sides)
        shapes = [np.shape(side["before"]) for side in sides]
        if shapes[0] != shapes[1]:
            elements = range(0) if self.transcript.tosses else lone_elements(*sides)
            values = (f"shape {shape}" for shape in shapes)
            parted = Parted(PartKind.SHAPES, (site, site), *values)
            if not elements:
                raise parted
            element = self._alignment.choose(elements)
            reply = self._answer_lone(sides[0], element, parted.parting)
            return reply, {"value": np.delete(reply["value"], element)}
        names = [[draw.share.law for draw in side["parts"]] for side in sides]
        if names[0] != names[1]:
            raise Parted(PartKind.STEPS, (site, site), *(", ".join(laws) for laws in names))
        before = Pair(*(flat(side["before"]) for side in sides))
        noise = flat(sides[self._base]["noise"])
        value = self._answer_of(site, before, noise, sides)
        self._add_step(site, before, sides, value, key=self._key("answer", site))
        return {"value": value.reshape(shapes[0])}

    def _pick_by_noise(self, key: Question, sides: Sides) -> Any:
        """Scores whose largest picks a gap; their values are of no other use."""
        befores = [flat(side["before"]) for side in sides]
        picked, replies = self._pick_gaps(key, sides, befores), []
        for side, before, place in zip(sides, befores, picked, strict=True):
            value = before + flat(side["noise"])
            value[place] = np.max(value) + 1.0
            replies.append({"value": value.reshape(np.shape(side["before"]))})
        self._scores |= {int(sides[0]["first"]) + place for place in range(befores[0].size)}
        return tuple(replies)

    def _answer_lone(
        self, asked: Mapping[str, Any], element: int, parting: Parting
    ) -> dict[str, Any]:
        """Answers of which world "out" lacks one, which lies so low that a threshold hides it."""
        site = Site(*asked["site"])
        both = dict(asked), dict(asked)
        before = Pair(flat(asked["before"]), flat(asked["before"]))
        value = self._answer_of(site, before, flat(asked["noise"]), both)
        law = law_of_draws(asked["parts"])
        assert law is not None
        low = law.element(element, value.size).place(np.asarray(HIDDEN))
        value[element] = before.inside[element] + float(low)
        key, shape = self._key("answer", site), np.shape(asked["before"])
        self.transcript.lone.append(LoneDraw(key, element, parting))
        self._lone.add(int(asked["first"]) + element)
        self._add_step(site, before, both, value, key=key)
        return {"value": value.reshape(shape)}

    def _answer_of(self, site: Site, before: Pair, noise: FloatArray, sides: Sides) -> FloatArray:
        """The value before noise in the base world plus noise, as drawn or as ordered."""
        key = ("answer", site, self._turns["answer", site] + 1)
        if key in self.order.nudged:
            noise = noise + NUDGE * (1.0 + np.abs(noise)) * (1.0 + np.arange(noise.size) % 7)
        drawn = np.asarray(before[self._base] + noise)
        if key in self.order.chosen:
            [place] = self.order.chosen[key]
            drawn[place] = np.max(drawn) + 1.0
            return drawn
        if key in self.order.values and self.order.values[key].size == noise.size:
            return np.where(np.isnan(self.order.values[key]), drawn, self.order.values[key])
        moves = before.shift != 0
        if self.order.apart is not None and np.any(moves):
            scales = np.where(moves, self.order.apart, np.nan)
        elif key in self.order.placed and self.order.placed[key].size == noise.size:
            scales = self.order.placed[key]
        else:
            return drawn
        law = law_of_draws(sides[self._base]["parts"])
        if law is None:
            return drawn
        wanted = scales * law.scale
        wanted = np.rint(wanted) if law.whole else wanted
        return np.asarray(before[self._base] + np.where(np.isnan(scales), noise, wanted))

    def _key(self, kind: str, site: Site) -> Question:
        """The name of a question, by which another replay recognises it."""
        self._turns[kind, site] += 1
        return kind, site, self._turns[kind, site]

    def _add_step(
        self,
        site: Site,
        before: Pair,
        sides: Sides,
        value: FloatArray,
        *,
        key: Question | None = None,
    ) -> None:
        draws: tuple[list[Draw], list[Draw]] = (sides[0]["parts"], sides[1]["parts"])
        inside, outside = map(law_of_draws, draws)
        seeds = {draw.seed for draw in draws[0]}
        on, factor = sides[0].get("on"), sides[0].get("factor")
        self._noises.append(
            StepNoise(
                draws,
                None if on is None else numbers_of(on),
                None if factor is None else flat(factor),
            )
        )
        self.transcript.noisy.append(
            NoisyStep(
                site=draws[0][0].site,
                first=int(sides[0]["first"]),
                before=before,
                laws=None if inside is None or outside is None else (inside, outside),
                differs=differ_in_noise(*draws, value.size),
                answer=value,
                draws=(),
                law_names=frozenset(draw.share.law for draw in draws[0]),
                seed=seeds.pop() if len(seeds) == 1 else None,
                toss=self._toss,
                is_lost=any(draw.is_lost for draw in draws[0]),
                key=key or self._key("answer", site),
            )
        )

    @property
    def _toss(self) -> int | None:
        """Number of the record's latest coin."""
        return len(self.transcript.tosses) - 1 if self.transcript.tosses else None

    def _on_choose(self, site: Site, sides: Sides) -> Any:
        key = self._key("choose", site)
        if key in self._gap_draws:
            picked = self._pick_gaps(key, sides, [_normalize(side["weights"]) for side in sides])
            return tuple({"places": np.array([place])} for place in picked)
        tables = _shares(site, sides)
        base = tables[self._base]
        places = self._rng.choice(len(base), size=int(sides[0]["count"]), p=base)
        if len(self.order.worlds) == 1 and places.size == 1:
            self.transcript.picked[key] = base
        places[:] = self.order.chosen.get(key, places)
        self._add_choice(key, [tables] * len(places), places, is_late=sides[0]["late"])
        return {"places": places}

    def _pick_gaps(self, key: Question, sides: Sides, own: Sequence[FloatArray]) -> list[int]:
        """Picks the gap in each world from which the same value is drawn.

        Raises:
            Parted: If what their probabilities follow from is not as it was found.
        """
        draw = self._gap_draws[key]
        for world in self.order.worlds:
            at = WORLDS.index(world)
            if not are_same(own[at], draw.gaps[at].given):  # it follows an earlier answer
                values = (f"{table.size} places" for table in own)
                raise Parted(PartKind.SHAPES, (key[1], key[1]), *values)
        if key in self.order.chosen:
            [cell] = self.order.chosen[key]
            value = float(draw.edges[cell : cell + 2].mean())
        else:
            share = self._rng.random() if self.order.edge is None else self.order.edge
            value = draw.gaps[self._base].draw(self._rng, share)
        ends = [side.ends_of(value) for side in draw.gaps]
        self._from_gaps[draw.question] = value, Pair(*ends)
        cells = np.searchsorted(draw.edges, [value], side="right") - 1
        self._add_choice(key, [draw.table], cells, is_late=sides[0]["late"])
        return [side.place_of(value) for side in draw.gaps]

    def _on_range(self, site: Site, sides: Sides) -> Any:
        """The value of a uniform draw whose range was picked by a choice."""
        key = self._key("range", site)
        if key not in self._from_gaps:
            return {}
        value, ends = self._from_gaps[key]
        for world in self.order.worlds:
            at = WORLDS.index(world)
            if not are_same([sides[at]["low"], sides[at]["high"]], ends[at]):
                values = (f"from {side['low']} to {side['high']}" for side in sides)
                raise Parted(PartKind.OPERANDS, (site, site), *values)
        return {"value": value}

    def _on_pick(self, site: Site, sides: Sides) -> Any:
        """Distinct places drawn one after another, with the probabilities of those left."""
        key, left = self._key("choose", site), _shares(site, sides)
        tables, places = list[Pair](), list[int]()
        first = self.order.chosen.get(key, ())
        for _ in range(int(sides[0]["count"])):
            now = Pair(*(chances / chances.sum() for chances in left))
            base = now[self._base]
            drawn = int(self._rng.choice(len(base), p=base))
            places.append(drawn if places or not first else first[0])
            tables.append(now)
            left = Pair(
                *(np.where(np.arange(len(chances)) == places[-1], 0.0, chances) for chances in left)
            )
        self._add_choice(key, tables, np.asarray(places), is_late=sides[0]["late"])
        return {"places": places}

    def _on_coin(self, site: Site, sides: Sides) -> Any:
        """Compares uniform draws that lie in [low, high) with limits and decides their side."""
        shapes = [np.shape(side["limit"]) for side in sides]
        if shapes[0] != shapes[1]:
            raise Parted(PartKind.SHAPES, (site, site), *(f"shape {shape}" for shape in shapes))
        below = [
            np.clip(flat((side["limit"] - side["low"]) / (side["high"] - side["low"])), 0.0, 1.0)
            for side in sides
        ]
        base = below[self._base]
        drawn = self._rng.random(base.shape)
        under = (drawn if self.order.edge is None else self.order.edge) < base
        moved = below[0] != below[1]
        if under.size == 1:
            under = self._compare_again(site, sides[0], below, bool(under[0]))
        elif np.any(moved):
            tables = [
                Pair(np.array([p, 1.0 - p]), np.array([q, 1.0 - q]))
                for p, q in zip(below[0][moved], below[1][moved], strict=True)
            ]
            sides_seen = np.where(under[moved], 0, 1)
            key = self._key("choose", site)
            self._add_choice(key, tables, sides_seen, is_late=sides[0]["late"])
        return {"under": under.astype(np.uint8)}

    def _compare_again(
        self, site: Site, question: Mapping[str, Any], below: Sequence[FloatArray], under: bool
    ) -> NDArray[np.bool_]:
        """Keeps a comparison of a single uniform draw; all comparisons of a draw are one choice.

        Returns:
            Whether it is below its limit, as drawn or as ordered.
        """
        # the memory of a draw may be that of an earlier one, but only a new one is still in [0, 1)
        is_new = np.all(question["low"] == 0) and np.all(question["high"] == 1)
        name = int(question["name"])
        if is_new or name not in self._coins:
            self._coins[name] = []
            self._compared.append((site, self._key("choose", site), self._toss, self._coins[name]))
            self._ordered[name] = self.order.chosen.get(self._compared[-1][1], ())
        comparisons, ordered = self._coins[name], self._ordered[name]
        if len(comparisons) < len(ordered):
            under = bool(ordered[len(comparisons)])
        comparisons.append((float(below[0][0]), float(below[1][0]), under))
        return np.array([under])

    def _add_choice(
        self, key: Question, tables: Sequence[Pair], places: IntArray, *, is_late: bool
    ) -> None:
        """Keeps a choice if its probabilities differ."""
        if any(not are_same(*table) for table in {id(table): table for table in tables}.values()):
            self.transcript.choices.append(
                ChoiceStep(
                    site=key[1],
                    tables=tuple(tables),
                    places=places,
                    toss=self._toss,
                    key=key,
                    is_late=is_late,
                )
            )

    def _say_unfollowed(self, site: Site, why: str) -> None:
        self.transcript.unfollowed.append(Unfollowed(site, why))


def _normalize(weights: Any) -> FloatArray:
    """Weights as probabilities."""
    table = np.asarray(weights, dtype=float)
    return np.asarray(table / table.sum())


def _shares(site: Site, sides: Sides) -> Pair:
    """The probabilities of places in each world."""
    weights = [np.asarray(side["weights"]) for side in sides]
    counts = [side["count"] for side in sides]
    if weights[0].shape != weights[1].shape or counts[0] != counts[1]:
        pairs = zip(counts, weights, strict=True)
        values = (f"{count} of {len(table)} places" for count, table in pairs)
        raise Parted(PartKind.SHAPES, (site, site), *values)
    return Pair(*map(_normalize, weights))
