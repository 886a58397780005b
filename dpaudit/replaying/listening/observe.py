"""What a fitted model and its synthetic rows release: numbers and digests by place.

A walk through the attributes, dictionaries, lists, arrays and tables of the model. It runs in the
generator's own environment: Python 3.9, numpy, and nothing of dpaudit.
"""

from __future__ import annotations

import hashlib
import re
import sys
import types
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

from . import marks

DEEPEST = 8
"""How many attributes and containers deep the walk goes."""
MOST_PLACES = 5_000
MOST_NUMBERS = 200_000
_MOST_LEFT_OUT = 20
_LEAST_DIGITS = 5
"""Shorter seeds may be stored by chance; noise from one of them is told to have few seeds."""
_MOST_SEEDS = 100
"""Integers of an array in which a seed is looked for."""
_WORDS, _BYTES = 625, 5056
"""Sizes of the states of Python's and of torch's generators."""
ROWS = "rows"
"""The place of the synthetic rows."""
_NUMBERS = (bool, int, float, np.number, np.bool_)
_SKIPPED = (types.ModuleType, type)


def end_fit() -> None:
    """Tells the world that the model is fitted: what follows draws rows."""
    marks.world.end_fit()


def observe(model: Any, table: Any) -> None:
    """Gives the world what a fit releases, for the coordinator.

    Args:
        model: The fitted model; None if the generator is a function.
        table: The synthetic table, or several by name.
    """
    world = marks.world
    release = _Release()
    release.add_table(ROWS, table)
    for rows, seed in world.order.samples if model is not None else ():
        try:
            release.add_table(f"{rows} {ROWS}", model.sample(rows, seed=seed))
        except Exception as error:  # noqa: BLE001 - whether it fails is compared, too
            release.add(f"the failure to draw {rows} {ROWS}", type(error).__name__)
    if world.order.watch_state and model is not None:
        with world.hushed():
            release.add("model", model)
    world.release_seen = release.message()


class _Release:
    """Numbers and digests, while they are gathered."""

    def __init__(self) -> None:
        self.numbers: Dict[str, Any] = {}
        self.digests: Dict[str, str] = {}
        self.left_out: List[str] = []
        self.generators: List[str] = []
        texts = " ".join(seed for _, seed in marks.world.seeds)
        self._seeds = set(map(int, re.findall(r"\d{%d,}" % _LEAST_DIGITS, texts)))
        self._known: Dict[int, Any] = {}
        self._size = 0

    def message(self) -> Dict[str, Any]:
        names = ("numbers", "digests", "left_out", "generators")
        return {name: getattr(self, name) for name in names}

    def add_table(self, place: str, table: Any) -> None:
        """Adds the cells of a table, or of several by name, or of a list of records."""
        if isinstance(table, dict):
            for name, part in table.items():
                self.add_table(f"{place} of {name}", part)
        elif isinstance(table, list):
            self._add_leaf(place, repr(table).encode())
        else:
            columns = [np.asarray(column) for _, column in table.items()]
            plain = [column.astype(float) for column in columns if column.dtype.kind in "fiub"]
            self._add_numbers(place, np.concatenate([*plain, np.zeros(0)]))
            texts = [column for column in columns if column.dtype.kind not in "fiub"]
            held = (table.index.tolist(), table.attrs, _layout_of(table))
            text = repr([*held, *(column.tolist() for column in texts)]).encode()
            self._add_leaf(place, text + self.numbers[place].tobytes())

    def add(self, place: str, value: Any, depth: int = 0) -> None:
        """Adds a value and what it holds."""
        if not isinstance(value, (list, tuple)):  # their elements are added one by one
            value = marks.end_marks(value, "the fitted model")
        if isinstance(value, _SKIPPED):
            return
        is_full = len(self.digests) > MOST_PLACES or self._size > MOST_NUMBERS
        if depth > DEEPEST or is_full:
            self.left_out += [place] if len(self.left_out) < _MOST_LEFT_OUT else []
            return
        if value is None or isinstance(value, (str, bytes)):
            self._add_leaf(place, repr(value).encode())
        elif isinstance(value, _NUMBERS):
            self._add_array(place, np.asarray(value))
        elif not self._is_known(value):
            try:
                self._add_compound(place, value, depth)
            except Exception:  # noqa: BLE001 - what cannot be read is named as not compared
                self.left_out.append(place)

    def _is_known(self, value: Any) -> bool:
        """Whether this object has been added; it is kept alive, so that its id stays its own."""
        if id(value) in self._known:
            return True
        self._known[id(value)] = value
        return False

    def _add_compound(self, place: str, value: Any, depth: int) -> None:
        if _is_generator(value) or _is_state(value):
            self.generators.append(place)
        elif hasattr(value, "to_numpy") and hasattr(value, "isna"):
            self._add_pandas(place, value, depth)
        elif not _is_public(value):
            held = dict(_attributes(value))
            for name, part in held.items():
                self.add(f"{place}.{name}", part, depth + 1)
            if not self._add_content(place, value, depth) and not held:
                self._add_pickled(place, value, depth)

    def _add_content(self, place: str, value: Any, depth: int) -> bool:
        """Adds what a container or a function holds; returns whether the value is one."""
        if hasattr(value, "detach") and hasattr(value, "numpy"):
            self._add_array(place, value.detach().cpu().numpy())
        elif isinstance(value, np.ndarray):
            self._add_array(place, value)
        elif hasattr(value, "__array__") and hasattr(value, "dtype"):
            self._add_array(place, np.asarray(value))
            self._add_leaf(f"the type of {place}", repr(_layout_of(value)).encode())
        elif isinstance(value, dict):
            for key, part in value.items():
                self.add(f"{place}[{key!r}]"[:200], part, depth + 1)
            keys = list(map(repr, value))
            self._add_leaf(f"the keys of {place}", repr(sorted(keys)).encode())
            self._add_leaf(f"the order of the keys of {place}", repr(keys).encode())
        elif isinstance(value, (set, frozenset)):
            self._add_leaf(place, repr(sorted(map(repr, value))).encode())
        elif isinstance(value, (list, tuple)):
            self._add_sequence(place, value, depth)
        elif callable(value) and (hasattr(value, "__closure__") or hasattr(value, "__self__")):
            for at, cell in enumerate(getattr(value, "__closure__", None) or ()):
                self.add(f"what {place} closes over ({at})", cell.cell_contents, depth + 1)
            for name in ("__defaults__", "__kwdefaults__"):
                self.add(f"defaults of {place}", getattr(value, name, None) or (), depth + 1)
            self.add(f"what {place} is a method of", getattr(value, "__self__", None), depth + 1)
        else:
            return False
        return True

    def _add_sequence(self, place: str, value: Any, depth: int) -> None:
        if value and all(isinstance(element, _NUMBERS) for element in value):
            self._add_array(place, np.asarray(marks.end_marks(list(value))))
            return
        for at, element in enumerate(value):
            self.add(f"{place}[{at}]", element, depth + 1)
        self._add_leaf(f"the length of {place}", str(len(value)).encode())

    def _add_pandas(self, place: str, value: Any, depth: int) -> None:
        """Adds a table, a column or an index."""
        if hasattr(value, "columns"):
            for name in value.columns:
                self._add_array(f"{place}[{name!r}]", np.asarray(value[name]))
        else:
            self._add_array(place, np.asarray(value))
        if hasattr(value, "index"):
            self._add_array(f"the index of {place}", np.asarray(value.index))
            self.add(f"{place}.attrs", value.attrs, depth + 1)
        self._add_leaf(f"the names and types of {place}", repr(_layout_of(value)).encode())

    def _add_pickled(self, place: str, value: Any, depth: int) -> None:
        """Adds what a pickle of a value without attributes holds."""
        self._add_leaf(place, type(value).__qualname__.encode())
        pickled = value.__reduce_ex__(4)
        if not isinstance(pickled, str):
            parts = [*pickled[1:3], *(list(items) for items in pickled[3:5] if items)]
            self.add(f"the content of {place}", parts, depth + 1)

    def _add_array(self, place: str, value: Any) -> None:
        is_short = value.dtype.kind in "iu" and value.size <= _MOST_SEEDS
        if is_short and not self._seeds.isdisjoint(value.ravel().tolist()):
            self.generators.append(place)
        if value.dtype.kind in "fiub":
            self._add_numbers(place, value.astype(float).ravel())
            self._add_leaf(place, repr((value.dtype.str, value.shape)).encode() + value.tobytes())
        elif value.dtype.kind in "mM":
            self._add_leaf(place, value.tobytes())
        else:
            self._add_leaf(place, repr(value.tolist()).encode())

    def _add_numbers(self, place: str, flat: Any) -> None:
        self.numbers[place] = flat
        self._size += flat.size

    def _add_leaf(self, place: str, content: bytes) -> None:
        content += self.digests.get(place, "").encode()  # of another place with the same long name
        self.digests[place] = hashlib.blake2b(content, digest_size=12).hexdigest()


def _layout_of(value: Any) -> Any:
    """What a table, a column or an index of pandas holds but for its values."""
    if hasattr(value, "columns"):
        columns = [value.iloc[:, at] for at in range(len(value.columns))]
        return list(value.columns), [_layout_of(part) for part in (*columns, value.index)]
    dtype, levels = value.dtype, getattr(value, "levels", ())
    categories = list(getattr(dtype, "categories", ()))
    names = value.name if hasattr(value, "index") else getattr(value, "names", None)
    return str(dtype), names, categories, [list(level) for level in levels]


def _attributes(value: Any) -> Iterator[Tuple[str, Any]]:
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        yield from held.items()
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


def _is_public(value: Any) -> bool:
    """Whether a value is a schema or a claim, or a module's function, which is code."""
    if type(value).__module__.startswith("dpaudit."):
        return True
    module = sys.modules.get(str(getattr(value, "__module__", None)))
    name = getattr(value, "__qualname__", None)
    return isinstance(name, str) and getattr(module, name, None) is value


def _is_state(value: Any) -> bool:
    """Whether a value is the state of such a generator, as it hands it out itself."""
    if isinstance(value, dict):
        return {"bit_generator", "state"} <= value.keys()
    if isinstance(value, tuple) and value:  # of numpy's RandomState, or of Python's Random
        is_words = len(value) == 3 and isinstance(value[1], tuple) and len(value[1]) == _WORDS
        return is_words or (isinstance(value[0], str) and value[0] == "MT19937")
    is_tensor = hasattr(value, "detach") and hasattr(value, "dtype")
    return is_tensor and str(value.dtype) == "torch.uint8" and tuple(value.shape) == (_BYTES,)


def _is_generator(value: Any) -> bool:
    """Whether a value is a generator of random numbers, of numpy, Python or torch."""
    kinds = [np.random.Generator, np.random.RandomState, np.random.BitGenerator]
    for module, name in (("random", "Random"), ("torch", "Generator")):
        if module in sys.modules and hasattr(sys.modules[module], name):
            kinds.append(getattr(sys.modules[module], name))
    return isinstance(value, tuple(kinds))
