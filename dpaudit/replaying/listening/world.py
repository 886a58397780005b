"""One fit in one world: its draws, its questions to the coordinator, and its notes.

A step whose answer must be equal in both worlds is a question, and both worlds wait for the answer.
A value that is equal as long as the worlds are (a coin, a sampler's probabilities, an operand) is
noted with a digest. The coordinator compares the notes of both worlds at the next question; if they
differ, it restarts the fit, and that line becomes a question.

A natural fit asks nothing: the code's own generators draw, and noise that is added is noted.
"""

from __future__ import annotations

import hashlib
import operator
import os
import pickle
import struct
import threading
from collections import Counter
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from .channel import Channel, Site, connect, site

PlainGenerator = np.random.Generator
PlainState = np.random.RandomState
PlainBits = np.random.PCG64

_LONGEST_LOG = 20_000
_NATURAL_NOTES = ("answer", "redrawn", "tell", "seed")
_MET, _LOST = 1, 2
"""How a draw of noise was used: added to data, or otherwise."""
_UNSEEN = "its use was not seen"


class WorldsPart(SystemExit):
    """The coordinator has ended this fit; no library catches this among errors of its own."""


_NEVER = 2**62
"""A number that no draw and no answer has."""


class FitOrder(NamedTuple):
    """The message that begins a fit: how it is made.

    Attributes:
        mode: "lockstep"; "natural" if the code's own generators draw, and nothing is asked; or
            "unheard".
        seed: Root of the streams that both worlds have in common.
        rows: Number of records of this world's table, and of the other's.
        own_rows: Places of the target, or of other records whose coins are "out" in both worlds.
        kept: The outcome of comparing the target's own coin that puts the target into a
            sub-sample; None if its coins are treated like any others.
        own_coins: How these coins fall: all "in", all "out", or in turn, "even" or "odd".
        edge: The value of every uniform draw; None if they are drawn.
        most_draws: A fit with more draws is ended.
        wide: What noise is multiplied by.
        samples: Numbers of rows and seeds of further samples.
        watch_state: Whether the fitted model is observed.
        redraws: How often a natural fit draws from each sampler of a library, to test its law.
        notes_ranges: Whether the ranges of single uniform draws are noted.
        asked: Files and lines whose notes are questions.
        located: Those whose samplers add noise to data, which may be 0.
        loops: Those that draw one coin per record.
        bent: Those whose uniform draws were made into noise by a formula, in any fit.
        ranged: Those at which a single uniform draw may have to have the same value in both worlds.
    """

    mode: str = "lockstep"
    seed: int = 0
    rows: Tuple[int, int] = (0, 0)
    own_rows: Sequence[int] = ()
    kept: Optional[bool] = None
    own_coins: str = "in"
    edge: Optional[float] = None
    most_draws: Optional[int] = None
    wide: float = 1.0
    samples: Sequence[Tuple[int, int]] = ()
    watch_state: bool = False
    redraws: int = 0
    notes_ranges: bool = False
    asked: Sequence[Tuple[str, int]] = ()
    located: Sequence[Tuple[str, int]] = ()
    loops: Sequence[Tuple[str, int]] = ()
    bent: Sequence[Tuple[str, int]] = ()
    ranged: Sequence[Tuple[str, int]] = ()


class ListeningWorld:
    """The state of a world's process.

    Attributes:
        name: "in" or "out".
        active: Whether a fit is running; draws outside fits are ignored.
        order: How the fit is made.
        natural: Whether the code's own generators draw, and nothing is asked.
        fit: Number of the fit: a generator's seed counts only in the fit that set it.
        asked, located, ranged: As in `FitOrder`.
        redrawn: The lines and laws of samplers that noise was drawn from.
        next_answer: Number of the next answer.
        draws: How often each line has drawn, be it one value or an array.
        bent: Lines whose uniform draws were made into noise by a formula, in any fit.
        curved: How uniform draws that noise is made of are used, by their address in memory; and
            their state, which keeps that address taken.
        held: States of uniform draws whose ranges were noted, which keep their addresses taken.
        curve_ids: Numbers of the draws of that noise, by how it is made.
        release_seen: What the fit released, once it has ended.
        compared: How often answers were compared with plain limits.
        beginnings: Functions that are called when a fit begins.
        seeds: The seeds of the generators that drew noise or coins, by line.
        units: Laws and values, in units of their scale, of the noise that a natural fit has drawn.
        marked: Weak references to the marked arrays of this fit.
    """

    def __init__(self, name: str, events: Any) -> None:
        self.name, self.events = name, events
        self.process, self.thread = os.getpid(), threading.get_ident()
        self.active = False
        self.fit = 0
        self.beginnings: List[Callable[[], None]] = []
        self.marked: List[Any] = []
        self.bent: Set[Tuple[str, int]] = set()
        self._lock = threading.RLock()
        self._quiet = threading.local()
        self._set(FitOrder())

    def _set(self, order: FitOrder) -> None:
        """Takes the order of a fit, and empties what belongs to one."""
        self.order, self.natural = order, order.mode == "natural"
        self.asked, self.located, self._loops, self.ranged = (
            {(file, line) for file, line in lines}
            for lines in (order.asked, order.located, order.loops, order.ranged)
        )
        self.bent |= {(file, line) for file, line in order.bent}
        self._toss_count = 0
        self.redrawn: Set[Tuple[Site, str]] = set()
        self._ended = False
        self._calls = 0
        self.draws: Counter[Site] = Counter()
        self.seeds: Set[Tuple[Site, str]] = set()
        self.units: Set[Tuple[str, float]] = set()
        self._turns: Counter[Site] = Counter()
        self._tosses: List[List[Any]] = []
        self._log: List[List[Any]] = []
        self._streams: Dict[Any, Any] = {}
        self._counts: Counter[Any] = Counter()
        self._noise = self.next_answer = 0
        self._fit_noise = self._fit_answers = _NEVER
        self._uses = np.zeros(0, dtype=np.uint8)
        self._drawn_at: List[Tuple[int, int, Site]] = []
        self._lost: Dict[Site, str] = {}
        self._whys: Dict[Site, str] = {}
        self._told: Set[str] = set()
        self._released = np.zeros(0, dtype=bool)
        self.compared: Counter[int] = Counter()
        self.curved: Dict[Any, Any] = {}
        self.curve_ids: Dict[Any, Any] = {}
        self.held: List[Any] = []
        self.release_seen: Optional[Dict[str, Any]] = None

    # -- the fit ---------------------------------------------------------------------------------

    def begin(self, message: Dict[str, Any]) -> None:
        """Starts a fit."""
        with self._lock:
            self.fit += 1
            for reference in self.marked:  # what the code has cached is plain numbers from now on
                array = reference()
                if array is not None:
                    array.forget()
            self.marked = []
            self._set(FitOrder(**message))
            for beginning in self.beginnings:
                beginning()
            self.active = self.order.mode != "unheard"

    def end(self) -> Dict[str, Any]:
        """Ends the fit: what it released, and its notes since the last question."""
        with self._lock:
            self.active = False
            bare: Dict[Site, str] = {}
            for start, stop, where in self._drawn_at:
                if stop > start and not self._uses[start:stop].any():
                    self._lost.setdefault(where, _UNSEEN)
                if start < self._fit_noise and np.any(self._uses[start:stop] == _LOST):
                    bare.setdefault(where, self._whys.get(where, _UNSEEN))
            return {
                **self._notes(),
                "released": np.flatnonzero(self._released),
                "draws": [[*where, count] for where, count in self.draws.items()],
                "lost": [[*where, why] for where, why in self._lost.items()],
                "bare": [[*where, why] for where, why in bare.items()],
                "sampled_from": self._fit_answers,
                "seeds": [[*where, seed] for where, seed in self.seeds],
                "bent": sorted(self.bent),
                "has_samplers": bool(self.redrawn),
                "release": self.release_seen,
            }

    def end_fit(self) -> None:
        """Marks that the model is fitted: noise and answers that follow are of its samples."""
        self._fit_noise, self._fit_answers = self._noise, self.next_answer

    @property
    def hears(self) -> bool:
        """Whether marks are followed here: in the thread of a fit, outside intercepted draws."""
        return (
            self.active
            and not getattr(self._quiet, "depth", 0)
            and threading.get_ident() == self.thread
            and os.getpid() == self.process
        )

    @property
    def hears_draw(self) -> bool:
        """Whether a draw made now is intercepted.

        Raises:
            WorldsPart: If another thread has drawn: the order of their draws is not repeatable.
        """
        if not self.active or getattr(self._quiet, "depth", 0):
            return False
        if os.getpid() != self.process:
            self._report_child()
            return False
        if threading.get_ident() != self.thread:
            self.tell("thread", site(), "drawn in a thread, whose order is not repeatable")
            self._ended = not self.natural
        elif not self._ended:
            return True
        if self._ended:
            raise WorldsPart("dpaudit has ended this fit")
        return False

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """A context in which draws are not intercepted, because they are part of one that is."""
        self._quiet.depth = getattr(self._quiet, "depth", 0) + 1
        try:
            yield
        finally:
            self._quiet.depth -= 1

    def follows_range(self, where: Site) -> bool:
        """Whether the range of a single uniform draw is noted here, or may decide its value."""
        return self.order.notes_ranges or where[:2] in self.ranged

    def count_draw(self, where: Site) -> None:
        """Counts how often a line draws, be it one value or an array.

        Raises:
            WorldsPart: If this fit has drawn more often than it may.
        """
        self.draws[where] += 1
        self._calls += 1
        if self.order.most_draws is not None and self._calls > self.order.most_draws:
            self._ended = True
            raise WorldsPart("dpaudit has ended this fit: it draws without end")

    # -- talking ---------------------------------------------------------------------------------

    def ask(self, kind: str, where: Site, **fields: Any) -> Dict[str, Any]:
        """Asks the coordinator, which gives both worlds the same answer.

        Raises:
            WorldsPart: If it has ended this fit.
        """
        with self._lock:
            fields.update(self._notes(), late=self._fit_noise != _NEVER)
            self.events.send({"kind": kind, "site": list(where), **fields})
            reply = self.events.receive()
        if reply.get("part"):
            self.active = False
            raise WorldsPart("dpaudit has ended this fit")
        return reply

    def note(self, kind: str, where: Site, *values: Any, **more: Any) -> None:
        """Notes a value that is equal as long as the worlds are; `more` is passed on unchanged."""
        if not self.active or (self.natural and kind not in _NATURAL_NOTES):
            return
        with self._lock:
            self._log.append([kind, where, digest(values), more])
            if len(self._log) >= _LONGEST_LOG and not self.natural:
                self.ask("notes", where)

    def note_seed(self, seed: str) -> None:
        """Notes the seed of a generator: one from the data differs between the worlds."""
        if self.hears:
            self.note("seed", site(), seed)

    def is_equal(self, kind: str, where: Site, value: Any) -> bool:
        """Whether a value is equal in both worlds; assumed where it is only noted."""
        if self.natural:
            return kind != "factor" or where[:2] not in self.asked  # as pairs have found it
        if where[:2] in self.asked:
            sent = np.asarray(value)
            if sent.dtype.kind not in "fiub":
                sent = np.frombuffer(bytes.fromhex(digest((value,))), dtype=np.uint8)
            return bool(self.ask("equal", where, what=kind, value=sent)["equal"])
        self.note(kind, where, value)
        return True

    def is_located(self, where: Site, loc: Any, scale: Any) -> bool:
        """Whether a sampler adds its noise to a value that is equal in both worlds and not 0.

        Usually it draws synthetic rows then. It asks only if the worlds differ here.
        """
        if where[:2] in self.asked:
            return False
        nothing = not np.any(loc)
        if nothing:
            self.note("located", where, nothing, noise=True)
        else:
            self.note("located", where, loc, scale)
        return not nothing

    def is_noise_alone(self, where: Site, loc: Any) -> bool:
        """Whether a sampler makes noise alone: around 0, at a line that is never around data."""
        return where[:2] not in self.located and not np.any(loc)

    def are_zero(self, where: Site, value: Any) -> bool:
        """Whether a value is 0 in both worlds."""
        nothing = not np.any(value)
        return self.is_equal("zero", where, nothing) and nothing

    def tell(self, kind: str, where: Site, text: str) -> None:
        """Reports once per line and fit that a draw cannot be followed, or has a known flaw."""
        key = f"{kind}{where[0]}:{where[1]}{text}"
        if key not in self._told:
            self._told.add(key)
            self.note("tell", where, kind, told=kind, text=text)

    def _notes(self) -> Dict[str, Any]:
        log, self._log = self._log, []
        tosses, self._tosses = self._tosses, []
        return {"log": log, "tosses": tosses}

    def _report_child(self) -> None:
        """Reports draws in a process that the generator started: they are not intercepted."""
        self.active = False
        address = os.environ["DPAUDIT_LISTEN"]
        connect(address, {"role": "child", "world": self.name, "site": list(site())})

    # -- numbers ---------------------------------------------------------------------------------

    def stream(
        self,
        where: Site,
        size: Any,
        make: Callable[[Any], Any] = PlainGenerator,
        *,
        records: bool = False,
    ) -> Any:
        """A generator that is equal in both worlds: one per line, and one per draw for arrays.

        Single coins of the records have a generator of their own.
        """
        count = 0
        if size is not None:
            self._counts[where] += 1
            count = self._counts[where]
        key = (where, count, make, records)
        stream = self._streams.get(key)
        if stream is None:
            place = (os.path.basename(where[0]), where[1], where[2])
            name = repr((self.order.seed, *place, count, size is None, make.__name__))
            entropy = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "big")
            stream = make(PlainBits(np.random.SeedSequence(entropy)))
            if size is None:
                self._streams[key] = stream
        return stream

    def shared_row(self, where: Site, size: Any) -> Optional[int]:
        """The place of the record that one world lacks, for a draw of one number per record.

        None if the draw has the same size in both worlds.
        """
        own, other = self.order.rows
        first = _length_of(size)
        if own == other or first is None or first not in (own, other):
            return None
        reply = self.ask("rows", where, size=first)
        return reply["place"] if reply["shared"] else None

    def record_of(self, where: Site) -> int:
        """Whose coin a single draw is: 2 for the target, 1 for another record, 0 for none."""
        if self.order.kept is None or where[:2] not in self._loops:
            return 0
        turn = self._turns[where]
        self._turns[where] += 1
        return 2 if turn % self.order.rows[0] in self.order.own_rows else 1

    def record_place(self, where: Site, size: Any) -> Optional[int]:
        """The place of the record that one world lacks, for one uniform draw per record.

        -1 if both worlds have all records and some of their coins are "out"; None if the draws are
        not one per record.
        """
        first = _length_of(size)
        own, other = self.order.rows
        if self.order.own_rows and own == other and first == own:
            return -1
        return self.shared_row(where, size)

    def toss(self, where: Site, chance: float) -> bool:
        """Tosses the target's own coin: whether the target is in the sub-sample.

        Args:
            where: The line that compares the coin.
            chance: Probability that the target is in.
        """
        turn = ("even", "odd")[self._toss_count % 2]
        self._toss_count += 1
        is_in = self.order.own_coins in ("in", turn)
        self._tosses.append([list(where), chance, is_in])
        return is_in

    def noise_ids(self, shape: Tuple[int, ...], where: Site) -> Any:
        """New numbers for draws of noise."""
        start, self._noise = self._noise, self._noise + int(np.prod(shape, dtype=int))
        self._uses = _with_room(self._uses, self._noise)
        self._drawn_at.append((start, self._noise, where))
        return np.arange(start, self._noise).reshape(shape)

    def meet(self, ids: Any, where: Site) -> bool:
        """Records that data meets draws of noise of a line; returns whether some were lost."""
        self._uses[ids] |= _MET
        return self._check(ids, where)

    def lose(self, ids: Any, where: Site, why: str) -> None:
        """Records that draws of noise of a line are used otherwise than in sums with data."""
        self._uses[ids] |= _LOST
        self._whys.setdefault(where, why)
        self._check(ids, where)

    def _check(self, ids: Any, where: Site) -> bool:
        """Whether some draws are lost; noted if data meets them: nothing is known of the sum."""
        both = bool(np.any(self._uses[ids] == _MET | _LOST))
        if both:
            self._lost.setdefault(where, self._whys.get(where, _UNSEEN))
        return both

    def are_lost(self, ids: Any) -> bool:
        """Whether all of these draws of noise are used otherwise than in sums with data."""
        return bool(np.all(self._uses[ids] & _LOST))

    def answer_ids(self, shape: Tuple[int, ...]) -> Any:
        """New numbers for answers."""
        start, self.next_answer = (
            self.next_answer,
            self.next_answer + int(np.prod(shape, dtype=int)),
        )
        self._released = _with_room(self._released, self.next_answer)
        return np.arange(start, self.next_answer).reshape(shape)

    def are_released(self, ids: Any) -> bool:
        """Whether all of these answers are used as numbers already; -1 is no answer."""
        return bool((self._released[ids] | (ids < 0)).all())

    def release(self, ids: Any) -> None:
        """Records that answers are used otherwise than in selections; -1 is no answer."""
        ids = np.asarray(ids)
        self._released[ids[ids >= 0]] = True


_FLOATS = (float, np.float64)
_FLOAT = struct.Struct("=d")


def _with_room(flags: Any, size: int) -> Any:
    """The flags, and more that are not set if there are fewer than `size`."""
    if size <= len(flags):
        return flags
    longer = np.zeros(max(1024, 2 * size), dtype=flags.dtype)
    longer[: len(flags)] = flags
    return longer


def _length_of(size: Any) -> Optional[int]:
    """The length of the first axis of a draw; None for a single one."""
    if size is None:
        return None
    try:
        return operator.index(size)
    except TypeError:
        return operator.index(size[0]) if len(size) else None


def digest(values: Tuple[Any, ...]) -> str:
    """A short digest of plain values."""
    hasher = hashlib.blake2b(digest_size=8)
    for value in values:
        if type(value) in _FLOATS:  # as below, for the most frequent types
            hasher.update(b"()" + _FLOAT.pack(value))
            continue
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        if isinstance(value, (np.ndarray, np.generic, float, int)):
            array = np.asarray(value)
            if array.dtype.kind in "fiubc":
                hasher.update(repr(array.shape).encode())
                hasher.update((array if array.dtype.kind == "c" else array.astype(float)).tobytes())
                continue
        try:
            hasher.update(
                repr(value).encode() if isinstance(value, (str, tuple)) else pickle.dumps(value, 4)
            )
        except Exception:  # noqa: BLE001 - values that cannot be serialised differ by type only
            hasher.update(repr(type(value)).encode())
    return hasher.hexdigest()


def connect_world() -> ListeningWorld:
    """Sets up this process as a world, with a thread that begins and ends fits on request."""
    address, name = os.environ["DPAUDIT_LISTEN"], os.environ["DPAUDIT_WORLD"]
    main = os.environ.setdefault("DPAUDIT_LISTEN_MAIN", str(os.getpid()))
    who = {"world": name, "process": os.getpid()}
    if main != str(os.getpid()):  # the generator started it: it is reported if it draws
        child = ListeningWorld(name, None)
        child.process, child.active = -1, True
        return child
    world = ListeningWorld(name, connect(address, {"role": "events", **who}))
    control = connect(address, {"role": "control", **who})
    threading.Thread(target=_serve_control, args=(world, control), daemon=True).start()
    return world


def _serve_control(world: ListeningWorld, control: Channel) -> None:
    while True:
        try:
            message = control.receive()
        except (EOFError, OSError):
            return
        if message.pop("kind") == "begin":
            world.begin(message)
            control.send({"kind": "begun"})
        else:
            control.send({"kind": "ended", **world.end()})
