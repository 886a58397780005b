"""Noisy answers of a lockstep fit, as long as they are only selected from.

An answer is a number like any other. But where it is only moved, shifted or multiplied by plain
numbers, compared, or asked for the place of the largest, less is revealed than its value: such uses
are noted as selections. Any other use ends the mark and counts as a release.
"""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np

from . import marks
from .channel import site
from .marks import Blank, Marked, MarkedCall, MarkedNumber, is_marked, plain_array

MOST = 100_000
"""Steps with more answers are not followed: their answers are plain numbers at once."""
_SEVERAL = 3
"""Comparisons with plain limits after which an answer counts as a number."""
_FIELDS = ("ids", "factor", "offset")


class ScoreNumber(MarkedNumber):
    """A noisy answer that is one number.

    It is not a float, so that C code has to ask for its value, as when it is written to an array.
    """

    keeps_noise = False

    def __new__(cls, _: Any) -> ScoreNumber:
        return object.__new__(cls)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del copy
        return np.array(marks.end_marks(self), dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "array":
            raise AttributeError(name)
        if name in ("ndim", "shape", "size", "itemsize", "nbytes"):
            return getattr(plain_array(self), name)
        return getattr(np.float64(marks.end_marks(self, name)), name)


class ScoreArray(Marked):
    """Noisy answers, perhaps scaled and shifted: `factor * answer + offset`.

    A plain number among them has the answer number -1 and factor 0.
    """

    rank = 1
    number = ScoreNumber
    keeps_noise = False
    ids: Any = None
    factor: Any = None
    offset: Any = None

    @property
    def has_mark(self) -> bool:  # type: ignore[override]
        return self.ids is not None and not marks.world.are_released(self.ids)

    @classmethod
    def join_arrays(cls, items: List[Any], join: Callable[[List[Any]], Any]) -> Any:
        scores = [_as_scores(item.as_answer() if is_marked(item) else item) for item in items]
        if any(score is None for score in scores):
            return None
        content = join([plain_array(score) for score in scores])
        return _scores(
            content, *(join([getattr(score, name) for score in scores]) for name in _FIELDS)
        )

    def map_fields(self, change: Callable[[Any], Any]) -> Any:
        content = np.asarray(change(self.view(np.ndarray)))
        if self.ids is None:
            return content
        return _scores(content, change(self.ids), change(self.factor), change(self.offset))

    def end(self, why: str) -> None:
        del why
        if self.ids is not None:
            marks.world.release(self.ids)

    def forget(self) -> None:
        self.ids = None

    def with_content(self, content: Any) -> Any:
        return _scores(content, self.ids, self.factor, self.offset)

    def replace_at(self, key: Any, value: Any) -> bool:
        score = _as_scores(value.as_answer() if is_marked(value) else value)
        if score is None or self.ids is None:
            return False
        for name in _FIELDS:
            changed = np.array(getattr(self, name))
            changed[key] = getattr(score, name)
            setattr(self, name, changed)
        self.view(np.ndarray)[key] = plain_array(score)
        return True

    def argmax(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """The place of the largest: a selection."""
        return self._select(np.argmax, 1.0, axis, kwargs)

    def argmin(self, axis: Any = None, out: Any = None, **kwargs: Any) -> Any:
        """The place of the smallest: a selection."""
        return self._select(np.argmin, -1.0, axis, kwargs)

    def _select(self, place: Any, sign: float, axis: Any, kwargs: Any) -> Any:
        for row in self._rows(axis):
            _note("largest", row, place(plain_array(row)), sign=sign)
        return place(self.view(np.ndarray), axis=axis, **kwargs)

    def argsort(self, axis: Any = -1, *args: Any, **kwargs: Any) -> Any:
        """The order: a selection."""
        return self._order(np.argsort, axis, *args, **kwargs)

    def argpartition(self, kth: Any, axis: Any = -1, *args: Any, **kwargs: Any) -> Any:
        """A part of the order: at most the order is selected."""
        return self._order(lambda array, axis: np.argpartition(array, kth, axis, *args), axis)

    def _order(self, order: Any, axis: Any, *args: Any, **kwargs: Any) -> Any:
        for row in self._rows(axis):
            _note("ordered", row, np.argsort(plain_array(row)))
        return order(self.view(np.ndarray), axis, *args, **kwargs)

    def _rows(self, axis: Any) -> Any:
        """The arrays along an axis, if they are marked."""
        if not self.is_marked or not marks.world.hears:
            return ()
        rows = (
            self.ravel()
            if axis is None
            else self.map_fields(lambda field: np.moveaxis(field, axis, -1))
        )
        return rows.map_fields(lambda field: field.reshape(-1, np.shape(field)[-1]))


def mark_answers(content: Any, ids: Any, *, out: Any = None) -> Any:
    """Answers as scores, or as plain numbers where these do not stay marked.

    Args:
        content: Their values, without data but for what all of them protect.
        ids: Their numbers; -1 for a plain number.
        out: The array that the caller has given for them.
    """
    if out is None and content.size <= MOST and not marks.is_in_library():
        own = ids >= 0
        result = _scores(content, ids, own.astype(float), np.where(own, 0.0, content))
        return marks.number_of(result)
    marks.world.release(ids)
    return marks.write_to(out, content)


def _scores(content: Any, ids: Any, factor: Any, offset: Any) -> Any:
    array = np.asarray(content).view(ScoreArray)
    array.ids, array.factor, array.offset = np.asarray(ids), np.asarray(factor), np.asarray(offset)
    return array


def _as_scores(value: Any) -> Any:
    """A plain value as scores without answers; None if it is not numeric."""
    value = marks.array_of(value)
    if isinstance(value, ScoreArray) and value.ids is not None:
        return value
    content = plain_array(value)
    if content.dtype.kind not in "fiub" or is_marked(value):
        return None
    none = np.full(content.shape, -1)
    return _scores(content, none, np.zeros(content.shape), content.astype(float))


def _note(how: str, score: Any, outcome: Any, *, sign: float = 1.0, **limits: Any) -> None:
    """Notes a selection: what must be equal in both worlds, and what it reveals."""
    factor, offset = np.ravel(sign * score.factor), np.ravel(sign * score.offset)
    more = {name: np.ravel(limit) for name, limit in limits.items()}
    fields = {"ids": np.ravel(score.ids), "outcome": np.ravel(outcome).astype(int)}
    fields.update(how=how, factor=factor, offset=offset, **more)
    marks.world.note("select", site(), factor, offset, *more.values(), **fields)


def _follow(call: MarkedCall) -> Any:
    """The result of a call with scores, but no noise or coins, among its inputs."""
    inputs = call.inputs
    scores = [value for value in inputs if is_marked(value, ScoreArray)]
    if not scores:
        return NotImplemented
    if call.method == "function" and call.name == "where" and len(inputs) == 3:
        return _select_where(*inputs)
    if call.is_of(*marks.MIRRORED) and call.out is None:
        return _compare(*inputs, call.name)
    affine = marks.affine_of(call, scores[0]) if len(scores) == 1 else None
    if affine is None:
        return NotImplemented
    with np.errstate(all="ignore"):
        return _follow_affine(scores[0], *affine, call)


def _follow_affine(score: Any, factor: Any, more: Any, call: MarkedCall) -> Any:
    """The score times a factor plus a value; its numbers are those that the call computes."""
    content = np.asarray(call.function(*map(marks.without_marks, call.inputs)))
    shape = content.shape
    ids = np.broadcast_to(score.ids, shape)
    made = (ids, np.broadcast_to(score.factor * factor, shape), score.offset * factor + more)
    if call.out is not None:
        if call.out is not score or score.shape != shape:
            return NotImplemented
        plain_array(score)[...] = content
        score.ids, score.factor, score.offset = ids, made[1], np.broadcast_to(made[2], shape)
        score.accept()
        return score
    return marks.number_of(_scores(content, ids, made[1], np.broadcast_to(made[2], shape)))


def _select_where(condition: Any, first: Any, second: Any) -> Any:
    """Elements of scores where a condition holds, and of others elsewhere."""
    sides = [_as_scores(side) for side in (first, second)]
    if is_marked(condition) or any(side is None for side in sides):
        return NotImplemented

    def select(name: str) -> Any:
        return np.where(condition, *(getattr(side, name) for side in sides))

    content = np.where(condition, *map(plain_array, sides))
    return marks.number_of(_scores(content, *map(select, _FIELDS)))


def _compare(first: Any, second: Any, name: str) -> Any:
    """Compares scores with limits, or other scores: a selection."""
    compare = getattr(np, name)
    holds = compare(plain_array(first), plain_array(second))
    if not (is_marked(first) and is_marked(second)) and _are_often_compared(
        first if is_marked(first) else second, np.size(holds)
    ):
        return NotImplemented
    if not is_marked(first):
        first, second, name = second, first, marks.MIRRORED[name]
    second = _as_scores(second)
    if second is None:
        return NotImplemented
    shape = np.shape(holds)
    score, limit = (
        side.map_fields(lambda field: np.broadcast_to(field, shape)) for side in (first, second)
    )
    limits = limit.offset
    if first.dtype.kind in "iu" and name in ("less", "greater_equal"):  # others have no ties
        limits = np.nextafter(limits, -np.inf)
    outcome = holds if name.startswith("greater") else ~np.asarray(holds)
    more = {"limits": limits}
    if np.any(limit.ids >= 0):
        more.update(limit_ids=limit.ids, limit_factor=limit.factor)
    _note("compared", score, outcome, **more)
    return holds


def _are_often_compared(score: Any, count: int) -> bool:
    """Whether answers are compared with several limits each, as a number is; counts comparisons."""
    ids, times = np.unique(score.ids[score.ids >= 0], return_counts=True)
    times = times * max(count // score.size, 1)
    compared = marks.world.compared
    for number, more in zip(ids.tolist(), times.tolist()):
        compared[number] += more
    return any(compared[number] > _SEVERAL for number in ids.tolist())


def _fill_blank(blank: Any, like: Any) -> bool:
    """Makes a blank array scores, all of them the number 0."""
    if not isinstance(like, ScoreArray):
        return False
    blank.__class__ = ScoreArray
    blank.remember()
    blank.ids = np.full(blank.shape, -1)
    blank.factor, blank.offset = np.zeros(blank.shape), np.zeros(blank.shape)
    return True


marks.followers.insert(0, _follow)
Blank.fillers.append(_fill_blank)
