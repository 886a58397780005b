"""Noise: draws of a known law, and values to which they are added.

A `NoiseArray` is a linear combination of draws, without data. Adding data to it makes answers,
which are equal in both worlds. What uses it otherwise makes it an ordinary random number.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from . import marks, scores
from .channel import Site, is_operator, site
from .marks import Blank, Marked, MarkedCall, MarkedFloat, is_marked, plain_array

FIELDS = ("ids", "factor", "scale", "shape", "other")
"""The fields of a `NoisePart` that are arrays."""
MOST_DRAWS = 128
"""With more draws, linear functions of noise are not followed."""
_MOST_SUMMED = 64
"""With more summands, sums along an axis of noise are not followed."""
_MOST_COMPARED, _MOST_UNITS, _DIGITS = 64, 20_000, 13
"""Values of a draw that are compared with those drawn before, and of a fit, to so many decimals:
two of 20,000 independent ones agree with a probability of 1e-5."""
_LARGEST_WHOLE = 2.0**53
"""Of whole numbers beyond, floats do not tell two neighbours apart."""
_FEWEST_SHORT = 4
"""Draws with 32 bits are compared if an array has so many."""


class NoisePart(NamedTuple):
    """One noise draw per element of an array: its law, parameters and factor."""

    law: str
    ids: Any
    factor: Any
    scale: Any
    shape: Any
    other: Any
    seed: Optional[str]
    site: Site

    def map_fields(self, change: Callable[[Any], Any]) -> NoisePart:
        """The part with the same change applied to all its arrays."""
        arrays = (change(np.asarray(getattr(self, name))) for name in FIELDS)
        return NoisePart(self.law, *arrays, seed=self.seed, site=self.site)

    def times(self, factor: Any) -> NoisePart:
        """The part multiplied by a factor."""
        return self._replace(factor=self.factor * factor)

    def message(self) -> Dict[str, Any]:
        """The part as a message, once data meets its draws."""
        numbers = {name: np.asarray(getattr(self, name), dtype=float) for name in FIELDS[1:]}
        lost = marks.world.meet(self.ids, self.site)
        head = {
            "law": self.law,
            "ids": np.asarray(self.ids),
            "seed": self.seed,
            "site": list(self.site),
        }
        return {**head, **numbers, "lost": lost}


class NoiseNumber(MarkedFloat):
    """Noise that is one float."""


class NoiseArray(Marked):
    """A linear combination of noise draws."""

    rank = 2
    number = NoiseNumber
    parts: Tuple[NoisePart, ...] = ()

    @property
    def has_mark(self) -> bool:  # type: ignore[override]
        return bool(self.parts)

    @classmethod
    def join_arrays(cls, items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
        first = next(array for array in items if is_marked(array, NoiseArray))
        items = [array if is_marked(array) else first.pad(array) for array in items]
        if not all(isinstance(array, NoiseArray) for array in items):
            return None
        if len({tuple((part.law, part.seed) for part in array.parts) for array in items}) != 1:
            return None
        columns = zip(*(array.parts for array in items))
        parts = (
            column[0]._replace(
                **{name: join([getattr(part, name) for part in column]) for name in FIELDS}
            )
            for column in columns
        )
        return combination(join([plain_array(array) for array in items]), tuple(parts))

    def pad(self, values: Any) -> Any:
        """Plain zeros as noise with a factor of 0; other values as they are."""
        zeros = np.asarray(values)
        if isinstance(values, Marked) or not marks.world.are_zero(site(), zeros):
            return values

        def spread(field: Any) -> Any:
            return np.broadcast_to(np.ravel(field)[0], zeros.shape)

        return combination(zeros, tuple(part.map_fields(spread).times(0.0) for part in self.parts))

    def map_fields(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        return combination(content, tuple(part.map_fields(change) for part in self.parts))

    def end(self, why: str) -> None:
        end_noise(self.parts, why)

    def forget(self) -> None:
        self.parts = ()

    def with_content(self, content: Any) -> Any:
        return combination(content, self.parts)

    def replace_at(self, key: Any, value: Any) -> bool:
        """Sets elements of noise to noise of one law and generator."""
        if not isinstance(value, NoiseArray) or len(self.parts) != 1 or len(value.parts) != 1:
            return False
        [old], [new] = self.parts, value.parts
        if (old.law, old.seed) != (new.law, new.seed):
            return False
        fields = {name: np.array(getattr(old, name)) for name in FIELDS}
        for name, field in fields.items():
            field[key] = getattr(new, name)
        self.parts = (old._replace(**fields),)
        self.view(np.ndarray)[key] = value.view(np.ndarray)
        return True

    def as_answer(self) -> Any:
        return answer(0.0, self, site())

    def times(self, factor: Any) -> NoiseArray:
        """The noise multiplied by a factor."""
        content = np.asarray(np.multiply(self.view(np.ndarray), factor))
        spread = self.spread(content.shape)
        return combination(content, tuple(part.times(factor) for part in spread.parts))

    def spread(self, shape: Any) -> NoiseArray:
        """The noise broadcast to a shape."""
        if self.shape == shape:
            return self
        noise: NoiseArray = self.map_fields(lambda field: np.broadcast_to(field, shape))
        return noise


def noise(
    values: Any,
    law: str,
    where: Site,
    *,
    scale: Any = 1.0,
    shape: Any = 1.0,
    other: Any = 1.0,
    seed: Optional[str] = None,
) -> Any:
    """Marks drawn values as new noise.

    Args:
        values: What was drawn, in a lockstep fit the same in both worlds: a number or an array.
        law: Its law, as `dpaudit.replaying.laws` names them.
        where: The line that draws.
        scale: Scale of the law, broadcast to the values.
        shape: Second parameter of the law, likewise.
        other: Third parameter, likewise.
        seed: What seeded the generator, if known.
    """
    world, content = marks.world, np.asarray(values)
    if seed is not None:
        world.seeds.add((where, seed))
    if world.natural and content.dtype.kind == "f":
        _compare_with_earlier(content, law, np.asarray(scale, dtype=float), where)
    if world.order.wide != 1.0 and not world.natural:
        content = (content * world.order.wide).astype(content.dtype)
    part = new_part(law, content.shape, where, (scale, shape, other), seed)
    marked = combination(content, (part,))
    return marked if isinstance(values, np.ndarray) else marks.number_of(marked)


def _compare_with_earlier(content: Any, law: str, scale: Any, where: Site) -> None:
    """Reports noise that this natural fit has drawn before, as a copy of a generator draws it."""
    if len(marks.world.units) > _MOST_UNITS:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        units = (content / scale).ravel()[:_MOST_COMPARED].round(_DIGITS).tolist()
        is_short = bool(np.all(content.astype(np.float32) == content))
    # two draws of 32 bits agree by chance, so the beginning of an array is compared as a whole
    keys = [tuple(units)] if is_short else units
    if is_short and len(units) < _FEWEST_SHORT:
        return
    drawn = {(law, key) for key in keys if np.all(key) and np.isfinite(key).all()}
    if drawn & marks.world.units:
        marks.world.tell("unfollowed", where, "this noise has been drawn before, so it is not new")
    marks.world.units |= drawn


def new_part(
    law: str, shape: Any, where: Site, parameters: Tuple[Any, Any, Any], seed: Optional[str]
) -> NoisePart:
    """New draws of a law, one per element of an array of a shape."""
    ids = marks.world.noise_ids(shape, where)
    full = (np.broadcast_to(np.asarray(parameter, dtype=float), shape) for parameter in parameters)
    return NoisePart(law, ids, np.ones(shape), *full, seed=seed, site=where)


def combination(content: Any, parts: Tuple[NoisePart, ...]) -> Any:
    """Numbers as a linear combination of draws."""
    array = np.asarray(content).view(NoiseArray)
    array.parts = parts
    return array


def end_noise(parts: Tuple[NoisePart, ...], why: str) -> None:
    """Makes draws ordinary random numbers, whose law must not depend on the data."""
    world = marks.world
    for part in parts:
        fields = (part.factor * part.scale, part.shape, part.other)
        if world.hears and not world.are_lost(part.ids):
            world.note("draw", part.site, part.law, *map(np.unique, fields), law=True)
        world.lose(part.ids, part.site, f"noise is used by `{why}`, not only added to data")


def answer(
    before: Any, added: NoiseArray, where: Site, *, out: Any = None, earlier: Any = None
) -> Any:
    """The answer of a step: a value plus noise; equal in both worlds in a lockstep fit.

    Args:
        before: The value.
        added: The noise.
        where: The line that adds them.
        out: The array that the caller has given for the result.
        earlier: The noisy answers that the value is made of: their numbers and factors.
    """
    before, content = plain_array(before), plain_array(added)
    shape = np.broadcast_shapes(before.shape, content.shape)
    full, spread = np.broadcast_to(before, shape), added.spread(shape)
    noisy = np.any([part.factor != 0 for part in spread.parts], axis=0)
    if noisy.any() and not noisy.all():
        if earlier is not None:
            marks.world.release(earlier[0])
        return _answer_in_part(full, spread, noisy, where, out)
    world = marks.world
    if before.dtype.kind in "iu" and np.any(np.abs(before.astype(float)) > _LARGEST_WHOLE):
        world.tell("unfollowed", where, "noise meets whole numbers that are too large for floats")
    value = np.asarray(np.add(before, content))
    step = {
        "before": full.astype(float),
        "noise": plain_array(spread).astype(float),
        "parts": [part.message() for part in spread.parts],
        "first": world.next_answer,
    }
    if earlier is not None:
        step["on"], step["factor"] = (np.broadcast_to(field, shape) for field in earlier)
    ids = world.answer_ids(shape)
    if world.natural:
        world.note("answer", where, **step, value=value.astype(float))
        return marks.write_to(out, value)
    reply = np.asarray(world.ask("answer", where, **step)["value"])
    return scores.mark_answers(reply.reshape(shape).astype(value.dtype), ids, out=out)


def add_to(loc: Any, added: Any, where: Site) -> Any:
    """Noise that a sampler draws around a value: noise alone, or the answer of a step."""
    if marks.world.is_noise_alone(where, loc):
        return added
    return answer(loc, marks.array_of(added), where)


def _answer_in_part(before: Any, added: NoiseArray, noisy: Any, where: Site, out: Any) -> Any:
    """Answers for the elements with noise; the others stay as they are."""
    marks.world.is_equal("operand", where, before[~noisy])
    some = marks.array_of(
        answer(before[noisy], added.map_fields(lambda field: field[noisy]), where)
    )
    value = np.array(before, dtype=np.result_type(before, plain_array(added)))
    value[noisy] = plain_array(some)
    if marks.world.natural:
        return marks.write_to(out, value)
    ids = np.full(before.shape, -1)
    ids[noisy] = np.arange(marks.world.next_answer - int(noisy.sum()), marks.world.next_answer)
    return scores.mark_answers(value, ids, out=out)


def apply_linear(linear: Callable[[Any], Any], marked: NoiseArray) -> Any:
    """Applies a linear function to noise, in which each draw may then occur several times.

    Args:
        linear: The function of an array.
        marked: The noise, of at most `MOST_DRAWS` draws.
    """
    content = np.asarray(linear(marked.view(np.ndarray)))
    parts = []
    for place in np.ndindex(marked.shape):
        unit = np.zeros(marked.shape)
        unit[place] = 1.0
        column = np.asarray(linear(unit), dtype=float)
        for part in marked.parts:
            spread = part.map_fields(
                lambda field, at=place: np.broadcast_to(field[at], content.shape)
            )
            parts.append(spread.times(column))
    return marks.number_of(combination(content, _gather(parts)))


def _gather(parts: List[NoisePart]) -> Tuple[NoisePart, ...]:
    """Parts without factors that are 0, if the draws of all elements fit into fewer parts."""
    kinds: Dict[Any, List[NoisePart]] = defaultdict(list)
    for part in parts:
        kinds[part.law, part.seed, part.site].append(part)
    gathered = []
    for same in kinds.values():
        factors = np.stack([part.factor for part in same])
        count = int(np.max(np.count_nonzero(factors, axis=0), initial=1))
        order = np.argsort(factors == 0, axis=0, kind="stable")[: max(count, 1)]
        fields = {
            name: np.take_along_axis(np.stack([getattr(part, name) for part in same]), order, 0)
            for name in FIELDS
        }
        for at in range(len(order)):
            gathered.append(same[0]._replace(**{name: fields[name][at] for name in FIELDS}))
    return tuple(gathered)


def sum_noise(marked: NoiseArray, axis: Any, *, keepdims: bool) -> Any:
    """The sum of noise, of all or along an axis."""
    flat = marked.map_fields(
        np.ravel if axis is None else lambda field: np.moveaxis(field, axis, 0)
    )
    if not 0 < len(flat) <= _MOST_SUMMED:
        return NotImplemented
    content = np.add.reduce(marked.view(np.ndarray), axis=axis, keepdims=keepdims)
    shape = np.shape(content)
    parts = [
        part.map_fields(lambda field, at=at: field[at].reshape(shape))
        for part in flat.parts
        for at in range(len(flat))
    ]
    return marks.number_of(combination(content, tuple(parts)))


def _follow(call: MarkedCall) -> Any:
    """The result of a call with noise, but no uniform draws, among its inputs."""
    noises = [value for value in call.inputs if is_marked(value, NoiseArray)]
    if not noises:
        return NotImplemented
    first, axis = noises[0], call.kwargs.get("axis", 0)
    is_sum = call.method == "reduce" and call.name == "add" and axis in (None, *range(first.ndim))
    if is_sum and set(call.kwargs) <= {"axis", "keepdims", "dtype"}:
        return sum_noise(first, axis, keepdims=bool(call.kwargs.get("keepdims")))
    is_matrix = call.is_of("matmul") and call.out is None
    is_linear = is_matrix or (call.method == "function" and call.name in marks.LINEAR)
    if is_linear and len(noises) == 1:
        return _follow_linear(call, first)
    if call.is_of("add", "subtract"):
        return _add(call, noises)
    affine = marks.affine_of(call, first) if len(noises) == 1 else None
    if affine is not None:
        for value in call.inputs:
            if value is not first:
                marks.end_marks(value)
        return _scale(first, affine[0], call)
    if call.is_of(*marks.MIRRORED) and any(
        isinstance(value, scores.ScoreArray) for value in call.inputs
    ):
        return call.function(
            *(value.as_answer() if is_marked(value) else value for value in call.inputs)
        )
    return NotImplemented


def _scale(marked: NoiseArray, factor: Any, call: MarkedCall) -> Any:
    """Noise times a factor; its numbers are those that the call computes."""
    content = np.asarray(call.function(*map(marks.without_marks, call.inputs)))
    if content.dtype.kind not in "fiub" or not np.isfinite(factor).all():
        return NotImplemented
    if _are_weights(marked, content, call):
        return content[()]
    return _result(content, marked.times(factor).parts, call.out)


def _result(content: Any, parts: Tuple[NoisePart, ...], out: Any) -> Any:
    """Noise, in the array that the caller has given for it if that is noise as well."""
    if out is None:
        return marks.number_of(combination(content, parts))
    plain_array(out)[...] = content
    if not isinstance(out, NoiseArray):
        return combination(plain_array(out), parts)
    out.parts = parts
    out.accept()
    return out


def _add(call: MarkedCall, noises: List[NoiseArray]) -> Any:
    """The sum or difference of noise and noise, or of noise and a value."""
    first, second = call.inputs
    minus = call.name == "subtract"
    if len(noises) == 2:
        content = np.asarray(call.function(plain_array(first), plain_array(second)))
        sides = (first.spread(content.shape), second.spread(content.shape))
        sign = -1.0 if minus else 1.0
        parts = (*sides[0].parts, *(part.times(sign) for part in sides[1].parts))
        return _result(content, parts, call.out)
    is_first = isinstance(first, NoiseArray) and first is noises[0]
    data = second if is_first else first
    # `sum` of noise shares begins with 0 + noise, and a count may be 0
    begins = type(data) in (int, float) and not is_operator()
    if begins and marks.world.are_zero(call.where, data):
        return _scale(noises[0], 1 if is_first or not minus else -1, call)
    earlier = None
    if isinstance(data, scores.ScoreArray) and is_marked(data) and np.all(data.ids >= 0):
        earlier = data.ids, data.factor * (-1.0 if is_first and minus else 1.0)
    data = plain_array(data if earlier else marks.end_marks(data))
    if data.dtype.kind not in "fiub":
        return NotImplemented
    if is_first and minus:
        data = -(data.astype(float) if data.dtype.kind in "ub" else data)
    added = noises[0] if is_first or not minus else noises[0].times(-1)
    return answer(data, added, call.where, out=call.out, earlier=earlier)


def _follow_linear(call: MarkedCall, marked: NoiseArray) -> Any:
    """A linear function of noise."""
    if call.name in ("triu", "tril") and call.inputs[0] is marked:
        return marked.times(call.function(np.ones(marked.shape), *call.inputs[1:], **call.kwargs))
    if marked.size > MOST_DRAWS or any(
        isinstance(value, (list, tuple, Marked)) and marks.without_marks(value) is not value
        for value in call.kwargs.values()
    ):
        return NotImplemented
    place = next(at for at, value in enumerate(call.inputs) if value is marked)
    before, after = (
        [marks.without_marks(value) for value in some]
        for some in (call.inputs[:place], call.inputs[place + 1 :])
    )

    def linear(values: Any) -> Any:
        return call.function(*before, values, *after, **call.kwargs)

    content = np.asarray(linear(plain_array(marked)))
    return content[()] if _are_weights(marked, content, call) else apply_linear(linear, marked)


def _are_weights(marked: NoiseArray, content: Any, call: MarkedCall) -> bool:
    """Whether draws are weights of data, each of many values, and so plain numbers from now on.

    Random features and the first weights of a network are drawn like noise, but protect nothing.
    """
    if content.size <= marked.size:
        return False
    others = [plain_array(value).ravel() for value in call.inputs if value is not marked]
    values = np.concatenate([other for other in others if other.dtype.kind in "fiub"])
    if marks.world.is_equal("factor", call.where, values):
        return False
    marked.end(call.name)
    marked.forget()
    return True


def _fill_blank(blank: Any, like: Any) -> bool:
    """Makes a blank array noise, whose draws all have factor 0."""
    if not isinstance(like, NoiseArray) or len(like.parts) != 1:
        return False
    [given] = like.parts
    part = new_part(given.law, blank.shape, given.site, (1.0, 1.0, 1.0), given.seed)
    marks.world.meet(part.ids, part.site)  # no draws: no element has noise yet
    blank.__class__ = NoiseArray
    blank.remember()
    blank.parts = (part.times(0.0),)
    return True


marks.followers.insert(0, _follow)
Blank.fillers.append(_fill_blank)
