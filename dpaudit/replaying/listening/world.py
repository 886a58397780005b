"""One fit in one world: its draws, its questions to the coordinator, and its notes.

A step whose answer must be equal in both worlds is a question, and both worlds wait for the answer.
A value that is equal as long as the worlds are (a coin, a sampler's probabilities, an operand) is
noted with a digest. The coordinator compares the notes of both worlds at the next question; if they
differ, it restarts the fit, and that line becomes a question.
"""

from __future__ import annotations

import copy
import hashlib
import operator
import os
import pickle
import struct
import threading
from collections import Counter, defaultdict, deque
from contextlib import contextmanager
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Set, Tuple

import numpy as np

from .channel import Channel, Site, connect, site

PlainGenerator = np.random.Generator
PlainState = np.random.RandomState
PlainBits = np.random.PCG64

_RECENT = 64
"""Number of noise arrays, the latest, that are recognised when copied into plain ones."""


class WorldsPart(SystemExit):
    """The coordinator has ended this fit; no library catches this among errors of its own."""


class SeededStream:
    """Where a stream of random numbers begins.

    Attributes:
        fit: Number of the fit in which its seed was set.
        seed: What the seed was, as text; None if it is not known.
        name: The same for all streams with the same numbers; None if others may share its state.
        drawn: A digest of what was drawn since.
    """

    def __init__(self, fit: int, seed: Optional[str], name: Optional[str]) -> None:
        self.fit, self.seed, self.name, self.drawn = fit, seed, name, 0

    def seed_in(self, fit: int) -> Optional[str]:
        """The seed, if it was set in this fit."""
        return self.seed if self.fit == fit else None


class ListeningWorld:
    """The state of a world's process.

    Attributes:
        name: "in" or "out".
        active: Whether a fit is running; draws outside fits are ignored.
        seed: Root of the streams that both worlds have in common.
        opposite: Whether every coin is reversed.
        fit: Number of the fit: a generator's seed counts only in the fit that set it.
        asked: Lines whose notes are questions.
        public_seeds: Draws of generators with these seeds are known numbers, and no noise.
        counted: Number of records of this world's table, and of the other's.
        own_rows: Places of the target, or of other records whose coins are "out" in both worlds.
        kept: The outcome of comparing the target's own coin that puts the target into a
            sub-sample; None if its coins are treated like any others.
        next_answer: Number of the next answer.
        beginnings: Functions that are called when a fit begins.
        recent: The latest noise arrays.
        curved: How uniform draws are used that noise is made of, by where they lie; and their
            state, so that no later draws lie there.
        curve_ids: Numbers of the draws of that noise, by how it is made.
    """

    def __init__(self, name: str, events: Any) -> None:
        self.name, self.events = name, events
        self.process = os.getpid()
        self.thread = threading.get_ident()
        self.fit = 0
        self.beginnings: List[Callable[[], None]] = []
        self.active = False
        self.seed = 0
        self.opposite = False
        self.asked: Set[Tuple[str, int]] = set()
        self._mixing: Set[Tuple[str, int, str]] = set()
        self.draws_record = False
        self._redrawn: Set[Tuple[str, int]] = set()
        self.public_seeds: Set[str] = set()
        self.counted: Tuple[int, int] = (0, 0)
        self.kept: Optional[bool] = None
        self._record_seed = 0
        self.own_rows: List[int] = []
        self._falls: List[bool] = [True]
        self._loops: Set[Tuple[str, int]] = set()
        self._lock = threading.RLock()
        self._sites: Dict[Site, int] = {}
        self._new_sites: List[Site] = []
        self.quiet = threading.local()
        self._forget()

    def _forget(self) -> None:
        """Empties what belongs to one fit."""
        self._turns: Counter[Site] = Counter()
        self._tosses: List[List[Any]] = []
        self._fallen = 0
        self._log: List[List[Any]] = []
        self._streams: Dict[Any, Any] = {}
        self._counts: Counter[Any] = Counter()
        self._noise = self.next_answer = 0
        self._settled = np.zeros(0, dtype=bool)
        self._uses = np.zeros(0, dtype=np.uint8)
        self._drawn_at: List[Tuple[int, int, Site]] = []
        self._told: Set[str] = set()
        self.released = np.zeros(0, dtype=bool)
        self.reduced: Set[int] = set()
        self._mixed: Dict[Site, Dict[int, float]] = {}
        self.recent: Deque[Any] = deque(maxlen=_RECENT)
        self.curved: Dict[Any, Any] = {}
        self.curve_ids: Dict[Any, Any] = {}
        self._starts: Dict[Any, SeededStream] = {}
        self._saved: Dict[int, Tuple[Any, SeededStream]] = {}

    # -- the fit ---------------------------------------------------------------------------------

    def begin(self, message: Dict[str, Any]) -> None:
        """Starts a fit."""
        with self._lock:
            self.fit += 1
            self.seed, self.opposite = message["seed"], message["opposite"]
            self.asked = {(file, line) for file, line in message["asked"]}
            self._mixing = {(file, line, use) for file, line, use in message["mixing"]}
            self.counted = tuple(message["rows"])
            self.draws_record = message["draws_record"]
            self._redrawn = {(file, line) for file, line in message["redrawn"]}
            self.public_seeds = set(message["public_seeds"])
            self.kept, self._falls = message["kept"], message["falls"]
            self._record_seed, self.own_rows = message["record_seed"], message["own_rows"]
            self._loops = {(file, line) for file, line in message["loops"]}
            self._forget()
            for beginning in self.beginnings:
                beginning()
            self.active = True

    def end(self) -> Dict[str, Any]:
        """Ends the fit: the notes since the last question, and noise without an observed use."""
        with self._lock:
            self.active = False
            unseen: Counter[Site] = Counter()
            for start, stop, where in self._drawn_at:
                known = self._settled[start:stop]
                left = (stop - start) - int(known.sum())
                if left:
                    unseen[where] += left
            return {
                **self._notes(),
                "unseen": [[*where, left] for where, left in unseen.items()],
                "protected": [list(where) for where in self._protected()],
            }

    @property
    def hears(self) -> bool:
        """Whether a draw made now belongs to a fit and is not part of an intercepted draw."""
        if not self.active or getattr(self.quiet, "depth", 0):
            return False
        if os.getpid() != self.process:
            self._report_child()
            return False
        if threading.get_ident() != self.thread:
            self.tell("thread", site(), "drawn in a thread, whose order is not repeatable")
        return True

    @contextmanager
    def hushed(self) -> Iterator[None]:
        """A context in which draws are not intercepted, because they are part of one that is."""
        self.quiet.depth = getattr(self.quiet, "depth", 0) + 1
        try:
            yield
        finally:
            self.quiet.depth -= 1

    # -- talking ---------------------------------------------------------------------------------

    def ask(self, kind: str, where: Site, **fields: Any) -> Dict[str, Any]:
        """Asks the coordinator, which gives both worlds the same answer.

        Raises:
            WorldsPart: If it has ended this fit.
        """
        with self._lock:
            fields.update(self._notes())
            self.events.send({"kind": kind, "site": list(where), **fields})
            reply = self.events.receive()
        if reply.get("part"):
            self.active = False
            raise WorldsPart("dpaudit has ended this fit")
        return reply

    @property
    def fit_of_seeds(self) -> int:
        """Number of the fit to which a seed that is set now belongs; 0 outside of one."""
        return self.fit if self.active else 0

    def saved(self, start: SeededStream, state: Any) -> Any:
        """Remembers where a stream is when the state of its generator is saved; returns it."""
        self._saved[id(state)] = (state, copy.copy(start))  # held, so that its place stays its own
        return state

    def restored(self, state: Any) -> SeededStream:
        """The stream that goes on from a state: where that was saved, if it was."""
        if id(state) in self._saved:
            return copy.copy(self._saved[id(state)][1])
        return SeededStream(self.fit_of_seeds, None, f"the state {digest((state,))}")

    def drew(self, start: SeededStream, law: str, size: Any, where: Site) -> None:
        """Reports noise that was drawn before, from the same seed or state.

        Args:
            start: What the generator was seeded with, and has drawn since.
            law: The law of what it draws now.
            size: Its size, as numpy takes it.
            where: The line that draws.
        """
        if start.name is None or start.fit != self.fit:
            return
        shape = tuple(np.atleast_1d(1 if size is None else size).tolist())
        start.drawn = hash((start.drawn, law, shape))
        if self._starts.setdefault((start.name, start.drawn), start) is not start:
            self.tell("reused", where, "noise that was drawn before from the same seed or state")

    def note(self, kind: str, where: Site, *values: Any, **more: Any) -> None:
        """Notes a value that is equal as long as the worlds are; `more` is passed on unchanged."""
        if not self.active:
            return
        with self._lock:
            self._log.append([kind, self._number(where), digest(values), more or None])
            if len(self._log) >= 20_000:
                self.ask("notes", where)

    def equal(self, kind: str, where: Site, value: Any) -> bool:
        """Whether a value is equal in both worlds; assumed where it is only noted."""
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

    def is_nothing(self, where: Site, loc: Any) -> bool:
        """Whether a sampler adds its noise to 0 in both worlds: it is noise alone."""
        return self.are_zero(where, loc) if where[:2] in self.asked else not np.any(loc)

    def are_zero(self, where: Site, value: Any) -> bool:
        """Whether a value is 0 in both worlds."""
        nothing = not np.any(value)
        return self.equal("zero", where, nothing) and nothing

    def tell(self, kind: str, where: Site, text: str) -> None:
        """Reports once per line and fit that a draw cannot be followed, or has a known flaw."""
        key = f"{kind}{where[0]}:{where[1]}{text}"
        if key not in self._told:
            self._told.add(key)
            self.note("tell", where, kind, told=kind, text=text)

    def _notes(self) -> Dict[str, Any]:
        log, self._log = self._log, []
        sites, self._new_sites = self._new_sites, []
        tosses, self._tosses = self._tosses, []
        return {"log": log, "sites": [list(one) for one in sites], "tosses": tosses}

    def _number(self, where: Site) -> int:
        if where not in self._sites:
            self._sites[where] = len(self._sites)
            self._new_sites.append(where)
        return self._sites[where]

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

        A generator for one coin per record stays the same when other coins are redrawn.
        """
        count = 0
        if size is not None:
            self._counts[where] += 1
            count = self._counts[where]
        key = (where, count, make, records)
        found = self._streams.get(key)
        if found is None:
            seed = self._record_seed if records else self.seed + (where[:2] in self._redrawn)
            name = repr((seed, os.path.basename(where[0]), where[1], where[2], count, size is None))
            entropy = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "big")
            found = make(PlainBits(np.random.SeedSequence(entropy)))
            if size is None:
                self._streams[key] = found
        return found

    def other_way(self, draw: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A draw that involves no data; another one if coins are reversed."""
        drawn = draw(*args, **kwargs)
        for _ in range(20 if self.opposite else 0):
            other = draw(*args, **kwargs)
            if not np.array_equal(other, drawn):
                return other
        return drawn

    def rows_shared(self, where: Site, size: Any) -> Optional[int]:
        """The place of the record that one world lacks, for a draw of one number per record.

        None if the draw has the same size in both worlds.
        """
        own, other = self.counted
        first = _first_of(size)
        if own == other or first is None or first not in (own, other):
            return None
        reply = self.ask("rows", where, size=first)
        return reply["place"] if reply["shared"] else None

    def record_of(self, where: Site) -> int:
        """Whose coin a single draw is: 2 for the target, 1 for another record, 0 for none."""
        if self.kept is None or where[:2] not in self._loops:
            return 0
        turn = self._turns[where]
        self._turns[where] += 1
        return 2 if turn % self.counted[0] in self.own_rows else 1

    def of_records(self, where: Site, size: Any) -> Optional[int]:
        """The place of the record that one world lacks, for one uniform draw per record.

        -1 if both worlds have all records and some of their coins are "out"; None if the draws are
        not one per record.
        """
        first = _first_of(size)
        own, other = self.counted
        if self.own_rows and own == other and first == own:
            return -1
        return self.rows_shared(where, size)

    def toss(self, where: Site, chance: float) -> bool:
        """Tosses the target's own coin: whether the target is in the sub-sample.

        Args:
            where: The line that compares the coin.
            chance: Probability that the target is in.
        """
        inside = bool(self._falls[self._fallen % len(self._falls)])
        self._fallen += 1
        self._tosses.append([list(where), chance, inside])
        return inside

    def noise_ids(self, shape: Tuple[int, ...], where: Site) -> Any:
        """New numbers for draws of noise."""
        size = int(np.prod(shape, dtype=int))
        start, self._noise = self._noise, self._noise + size
        self._settled = _with_room(self._settled, self._noise)
        self._drawn_at.append((start, self._noise, where))
        return np.arange(start, self._noise).reshape(shape)

    def are_settled(self, ids: Any) -> Any:
        """Whether the use of each draw of noise was observed."""
        return self._settled[np.asarray(ids)]

    def settle(self, ids: Any) -> None:
        """Marks some noise as used."""
        self._settled[np.asarray(ids).ravel()] = True

    def use_noise(self, ids: Any, where: Site, use: str) -> None:
        """Marks some noise as used, and reports noise that is used in two ways.

        As a number, noise has the value that this world drew. An answer contains another draw, so
        nothing made of both can be followed.

        Args:
            ids: The draws.
            where: The line that uses them.
            use: "answer" if added to a value, "sum" if added to an answer, else "number".
        """
        self.settle(ids)
        flat = np.asarray(ids).ravel()
        if self._uses.size < self._settled.size:
            self._uses = np.pad(self._uses, (0, self._settled.size - self._uses.size))
        before, now = self._uses[flat], _USES.index(use)
        if np.any((before != 0) & ((before != now) | (use == "sum"))):
            self.tell("reused", where, "noise that is used more than once")
        self._uses[flat] = now

    def are_coins(self, ids: Any) -> bool:
        """Whether all of this noise was used as numbers, and for nothing else."""
        flat = np.asarray(ids).ravel()
        known = flat < self._uses.size
        return bool(np.all(known) and np.all(self._uses[flat[known]] == _USES.index("number")))

    def answer_ids(self, shape: Tuple[int, ...]) -> Any:
        """New numbers for answers."""
        size = int(np.prod(shape, dtype=int))
        start, self.next_answer = self.next_answer, self.next_answer + size
        self.released = _with_room(self.released, self.next_answer)
        return np.arange(start, self.next_answer).reshape(shape)

    def are_released(self, ids: Any) -> bool:
        """Whether all of these answers are used as numbers already."""
        if ids.size == 1:
            first = ids.item()
            return first < 0 or bool(self.released[first])
        return bool(np.all(self.released[ids] | (ids < 0)))

    def release(self, ids: Any, where: Site) -> None:
        """Records that these answers are used as numbers."""
        flat = np.asarray(ids).ravel()
        if flat.size == 1 and (flat[0] < 0 or self.released[flat[0]]):
            return
        flat = flat[flat >= 0]  # a plain number among answers has no answer number
        fresh = np.unique(flat[~self.released[flat]])  # an answer may be repeated for each row
        if len(fresh):
            self.released[fresh] = True
            self.note("release", where, fresh, ids=fresh)

    def mixes(self, where: Site, use: str) -> bool:
        """Whether a line combines answers with data in a way that makes no new answers."""
        return (where[0], where[1], use) in self._mixing

    def mix(self, ids: Any, where: Site, *, numbers: int) -> None:
        """Releases answers that a mixing line combines with data.

        `numbers` values result from it: 0 if this batch of the data is empty.
        """
        counts = self._mixed.setdefault(where, defaultdict(float))
        flat = np.asarray(ids).ravel()
        for one in flat[flat >= 0].tolist():
            counts[one] += numbers / len(flat)
        self.release(flat, where)

    def _protected(self) -> Set[Site]:
        """Lines where the noise of an answer may protect the data that it is combined with.

        It cannot protect several values at once: there answers count as numbers.
        """
        return {
            where
            for where, counts in self._mixed.items()
            if sum(counts.values()) < SEVERAL * len(counts)
        }

    def reduce(self, ids: Any, where: Site) -> None:
        """Records that a function that is not followed made fewer numbers of these answers."""
        flat = np.asarray(ids).ravel()
        fresh = [one for one in flat[flat >= 0].tolist() if one not in self.reduced]
        if fresh:
            self.reduced.update(fresh)
            self.note("reduce", where, tuple(fresh), ids=np.array(fresh))


_USES = ("", "answer", "sum", "number")
SEVERAL = 3
"""Values (such as rows) that a line combines with each answer if noise cannot protect them."""
_FLOATS = (float, np.float64)
_FLOAT = struct.Struct("=d")


def _with_room(flags: Any, size: int) -> Any:
    """The flags, and more that are not set if there are fewer than `size`."""
    more = max(1024, 2 * size) - len(flags)
    return flags if size <= len(flags) else np.pad(flags, (0, more))


def _first_of(size: Any) -> Optional[int]:
    """The length of the first axis of a draw; None for a single one."""
    if size is None:
        return None
    try:
        return operator.index(size)
    except TypeError:
        return operator.index(size[0]) if len(size) else None


def digest(values: Tuple[Any, ...]) -> str:
    """A short digest of plain values."""
    found = hashlib.blake2b(digest_size=8)
    for value in values:
        if type(value) in _FLOATS:  # as below, for the most frequent types
            found.update(b"()" + _FLOAT.pack(value))
            continue
        if hasattr(value, "detach"):
            value = value.detach().cpu().numpy()
        if isinstance(value, (np.ndarray, np.generic, float, int)):
            array = np.asarray(value)
            if array.dtype.kind in "fiubc":
                found.update(repr(array.shape).encode())
                found.update((array if array.dtype.kind == "c" else array.astype(float)).tobytes())
                continue
        try:
            found.update(
                repr(value).encode() if isinstance(value, (str, tuple)) else pickle.dumps(value, 4)
            )
        except Exception:  # noqa: BLE001 - values that cannot be serialised differ by type only
            found.update(repr(type(value)).encode())
    return found.hexdigest()


def connected() -> ListeningWorld:
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
    threading.Thread(target=_controlled, args=(world, control), daemon=True).start()
    return world


def _controlled(world: ListeningWorld, control: Channel) -> None:
    while True:
        try:
            message = control.receive()
        except (EOFError, OSError):
            return
        if message["kind"] == "begin":
            world.begin(message)
            control.send({"kind": "begun"})
        else:
            control.send({"kind": "ended", **world.end()})
