"""torch's random numbers: noise that is added to tensors, and coins that both worlds share.

Draws that torch makes inside its own kernels (initial weights, dropout) come from its global
generator, whose state is the same in both worlds; they are public, as weights are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import marks
from ..channel import Site, site
from . import torch_coins

_SUMS = {
    "add": 1.0,
    "add_": 1.0,
    "__add__": 1.0,
    "__radd__": 1.0,
    "__iadd__": 1.0,
    "sub": -1.0,
    "sub_": -1.0,
    "__sub__": -1.0,
    "__isub__": -1.0,
    "subtract": -1.0,
}
_PRODUCTS = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
_QUOTIENTS = {"div", "div_", "__truediv__", "__itruediv__", "true_divide", "divide"}
_MOVING = {
    "view",
    "reshape",
    "view_as",
    "reshape_as",
    "flatten",
    "squeeze",
    "unsqueeze",
    "clone",
    "detach",
    "to",
    "float",
    "double",
    "contiguous",
    "cpu",
    "expand",
    "expand_as",
    "type",
    "type_as",
    "__deepcopy__",
    "requires_grad_",
}
_HARMLESS = {
    "__get__",
    "size",
    "dim",
    "numel",
    "stride",
    "is_floating_point",
    "__len__",
    "element_size",
    "storage_offset",
    "is_complex",
    "nelement",
    "ndimension",
    "is_contiguous",
    "get_device",
    "data_ptr",
    "__repr__",
    "__hash__",
}
_COMPARED = {
    "gt": ">",
    "__gt__": ">",
    "ge": ">",
    "__ge__": ">",
    "lt": "<",
    "__lt__": "<",
    "le": "<",
    "__le__": "<",
}

_STREAMS = {
    "gaussian": "standard_normal",
    "laplace": "laplace",
    "gumbel": "gumbel",
    "exponential": "standard_exponential",
}

torch: Any
_plain: dict[str, Callable[..., Any]] = {}


def install(library: Any) -> None:
    """Replaces what draws, in the module and on tensors."""
    global torch
    torch = library
    _define()
    seeded = library.manual_seed
    seeds = {"count": 0}

    def manual_seed(seed: Any) -> Any:
        if not marks.world.active:
            return seeded(seed)
        seeds["count"] += 1  # equal in both worlds, whatever the code asks for
        return seeded((marks.world.seed + seeds["count"]) % 2**63)

    def begin() -> None:
        seeds["count"] = 0
        seeded(marks.world.seed % 2**63)

    begin()
    marks.world.beginnings.append(begin)
    library.manual_seed = library.random.manual_seed = manual_seed
    for name in ("randn", "randn_like", "normal", "rand", "rand_like", "randperm", "bernoulli"):
        _plain[name] = getattr(library, name)
        setattr(library, name, _heard(globals()[f"_{name}"], _plain[name]))
    for name in ("normal_", "exponential_"):
        _plain[name] = getattr(library.Tensor, name)
        setattr(library.Tensor, name, _heard(globals()[f"_{name}"], _plain[name]))
    laws = library.distributions
    for kind, law in ((laws.Laplace, "laplace"), (laws.Gumbel, "gumbel")):
        kind.rsample = _heard(_of_distribution(law), kind.rsample)
        kind.sample = _heard(_of_distribution(law), kind.sample)


def _heard(drawn: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return drawn(*args, **kwargs) if marks.world.hears else plain(*args, **kwargs)

    function.__name__, function.__doc__ = plain.__name__, plain.__doc__
    return function


def _shape(size: Any) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    return tuple(int(one) for one in size)


def _noise(shape: Any, where: Site, scale: Any, dtype: Any, law: str = "gaussian") -> Any:
    drawn = getattr(marks.world.stream(where, shape), _STREAMS[law])(size=shape)
    content = np.asarray(drawn * scale)
    made = marks.noise(content, law, where, scale=scale)
    tensor = torch.as_tensor(content).to(dtype or torch.get_default_dtype())
    return _marked(tensor, made.parts)


def _marked(tensor: Any, parts: Any) -> Any:
    found = tensor.as_subclass(NoiseTensor)
    found.dpaudit_parts = parts
    return found


def _randn(*size: Any, **kwargs: Any) -> Any:
    shape = _shape(kwargs.get("size", size) if "size" in kwargs else size)
    return _noise(shape, site(), 1.0, kwargs.get("dtype"))


def _randn_like(like: Any, **kwargs: Any) -> Any:
    return _noise(tuple(like.shape), site(), 1.0, kwargs.get("dtype") or like.dtype)


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
    where = site()
    loc, scale = (_numbers(one) for one in (mean, std))
    shape = tuple(size) if size is not None else np.broadcast_shapes(np.shape(loc), np.shape(scale))
    dtype = kwargs.get("dtype") or next(
        (one.dtype for one in (mean, std) if isinstance(one, torch.Tensor)), None
    )
    found = _noise(shape, where, scale, dtype)
    if np.any(loc != 0):
        found = found + torch.as_tensor(np.broadcast_to(loc, shape).copy()).to(found.dtype)
    out = kwargs.get("out")
    return found if out is None else out.copy_(_bare(found))


def _normal_(self: Any, mean: float = 0.0, std: float = 1.0, **_: Any) -> Any:
    """Fills a tensor: initial weights most often, whose values are the same in both worlds."""
    where = site()
    drawn = (
        marks.world.stream(where, tuple(self.shape)).standard_normal(tuple(self.shape)) * std + mean
    )
    if self.requires_grad or isinstance(self, torch.nn.Parameter):
        with torch.no_grad():
            self.copy_(torch.as_tensor(drawn).to(self.dtype))
        return self
    self.copy_(torch.as_tensor(drawn).to(self.dtype))
    made = marks.noise(np.asarray(drawn - mean), "gaussian", where, scale=std)
    return _filled(self, made.parts) if mean == 0 else self


def _exponential_(self: Any, lambd: float = 1.0, **_: Any) -> Any:
    found = _noise(tuple(self.shape), site(), 1.0 / lambd, self.dtype, "exponential")
    parts = found.dpaudit_parts
    with torch.no_grad():
        self.copy_(_bare(found))
    return self if self.requires_grad else _filled(self, parts)


def _filled(tensor: Any, parts: Any) -> Any:
    """A tensor that was filled with noise is noise under every name that it has."""
    if type(tensor) is not torch.Tensor:
        return _marked(tensor, parts)
    tensor.__class__ = NoiseTensor
    tensor.dpaudit_parts = parts
    return tensor


def _of_distribution(law: str) -> Callable[..., Any]:
    """`sample` and `rsample` of a distribution whose kernels draw by inversion."""

    def sample(self: Any, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(torch.Size(sample_shape)))
        found = _noise(shape, site(), _numbers(self.scale), self.loc.dtype, law)
        loc = self.loc.expand(shape)
        return found + loc if np.any(_numbers(loc) != 0) else found

    return sample


def _rand(*size: Any, **kwargs: Any) -> Any:
    shape = _shape(kwargs.get("size", size) if "size" in kwargs else size)
    return _coins(shape, site(), kwargs.get("dtype"))


def _rand_like(like: Any, **kwargs: Any) -> Any:
    return _coins(tuple(like.shape), site(), kwargs.get("dtype") or like.dtype)


def _coins(shape: Any, where: Site, dtype: Any) -> Any:
    world = marks.world
    of_records = torch_coins.coins(torch, where, shape, dtype)
    if of_records is not None:
        return of_records
    place = world.rows_shared(where, shape)
    most = shape if place is None else (max(world.counted), *shape[1:])
    drawn = world.stream(where, shape).random(most)
    if place is not None and world.counted[0] < world.counted[1]:
        drawn = np.delete(drawn, place, axis=0)
    world.note("draw", where, "rand", None if place is not None else shape)
    drawn = 1.0 - drawn if world.opposite else drawn
    return torch.as_tensor(drawn).to(dtype or torch.get_default_dtype())


def _randperm(n: int, **kwargs: Any) -> Any:
    where, world = site(), marks.world
    place = world.rows_shared(where, int(n))
    stream = world.stream(where, int(n))
    order = stream.permutation(n if place is None else max(world.counted))
    order = world.other_way(order, lambda: stream.permutation(len(order)))
    if place is not None and world.counted[0] < world.counted[1]:
        order = order[order != place]
        order = order - (order > place)
    world.note("draw", where, "permutation", None if place is not None else n)
    return torch.as_tensor(order).to(kwargs.get("dtype") or torch.int64)


def _bernoulli(p: Any, *_: Any, **__: Any) -> Any:
    where = site()
    of_records = torch_coins.bits(torch, where, _numbers(p), tuple(p.shape))
    if of_records is not None:
        return of_records.to(p.dtype)
    marks.world.equal("spend", where, _numbers(p))
    marks.world.note("draw", where, "bernoulli")
    coins = marks.world.stream(where, tuple(p.shape)).random(tuple(p.shape))
    return (torch.as_tensor(coins) < p).to(p.dtype)


def _numbers(value: Any) -> Any:
    """A tensor or a number as numpy has it."""
    if isinstance(value, torch.Tensor):
        return _bare(value).detach().cpu().double().numpy()
    return np.asarray(value, dtype=float)


def _bare(value: Any) -> Any:
    return value.as_subclass(torch.Tensor) if isinstance(value, torch.Tensor) else value


def _define() -> None:
    """The two kinds of tensors: their base is there only when torch is."""
    global NoiseTensor, AnswerTensor
    base = torch.Tensor

    class NoiseTensor(base):  # type: ignore[misc, valid-type]
        """Noise that no data has been added to."""

        dpaudit_parts: Any = ()

        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _operated(function, args, kwargs or {})

    class AnswerTensor(base):  # type: ignore[misc, valid-type]
        """Noisy answers whose use is not known yet."""

        dpaudit_ids: Any = None

        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _operated(function, args, kwargs or {})

    globals()["NoiseTensor"], globals()["AnswerTensor"] = NoiseTensor, AnswerTensor


NoiseTensor: Any = None
AnswerTensor: Any = None


def _operated(function: Any, args: Any, kwargs: Any) -> Any:
    name, where = function.__name__, site()
    bare = tuple(_bare_deep(one) for one in args)
    options = {key: _bare_deep(one) for key, one in kwargs.items()}
    if name in _HARMLESS or not marks.world.hears:
        return function(*bare, **options)
    noise = next((one for one in args if isinstance(one, NoiseTensor) and one.dpaudit_parts), None)
    known = next(
        (one for one in args if isinstance(one, AnswerTensor) and one.dpaudit_ids is not None), None
    )
    if noise is not None and known is None:
        found = _followed(name, function, args, bare, options, noise, where)
        if found is not NotImplemented:
            return found
    if known is not None and noise is None:
        found = _answer_followed(name, function, args, bare, options, known, where)
        if found is not NotImplemented:
            return found
    for one in _tensors((*args, *kwargs.values())):
        if isinstance(one, AnswerTensor) and one.dpaudit_ids is not None:
            marks.world.release(one.dpaudit_ids, where)
        elif isinstance(one, NoiseTensor) and one.dpaudit_parts:
            for part in one.dpaudit_parts:
                marks.world.settle(part.ids)
    if noise is not None:
        for one in _tensors(args):
            if not isinstance(one, (NoiseTensor, AnswerTensor)):
                marks.world.equal("spend", where, _numbers(one))
    return function(*bare, **options)


def _tensors(values: Any) -> Any:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _tensors(one)


def _bare_deep(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and any(True for _ in _tensors(value)):
        return type(value)(_bare_deep(one) for one in value)
    return _bare(value)


def _followed(
    name: str, function: Any, args: Any, bare: Any, options: Any, noise: Any, where: Site
) -> Any:
    """What follows from an operation on noise: noise again, or an answer."""
    parts = noise.dpaudit_parts
    if name in _MOVING and args[0] is noise:
        found = function(*bare, **options)
        if not isinstance(found, torch.Tensor) or found.numel() != noise.numel():
            return NotImplemented
        return _marked(
            found,
            tuple(
                part.mapped(lambda one: np.asarray(one).reshape(tuple(found.shape)))
                for part in parts
            ),
        )
    if name in ("neg", "__neg__"):
        return _times(function(*bare), parts, -1.0)
    if len(args) != 2:
        return NotImplemented
    other = args[1] if args[0] is noise else args[0]
    both = isinstance(other, NoiseTensor) and other.dpaudit_parts
    if not both and (name in _PRODUCTS or (name in _QUOTIENTS and args[0] is noise)):
        factor = _numbers(other) if name in _PRODUCTS else 1.0 / _numbers(other)
        return _times(function(*bare, **options), parts, factor)
    if name not in _SUMS and name != "__rsub__":
        return NotImplemented
    sign = _SUMS.get(name, -1.0) * float(options.get("alpha", 1.0))
    if both:
        second = tuple(part._replace(factor=part.factor * sign) for part in other.dpaudit_parts)
        if args[0] is not noise or noise.shape != other.shape:
            return NotImplemented
        return _marked(function(*bare, **options), (*parts, *second))
    first = args[0] is noise
    if name == "__rsub__":
        noise_sign, data_sign = (-1.0, 1.0) if first else (1.0, -1.0)
    else:
        noise_sign, data_sign = (1.0, sign) if first else (sign, 1.0)
    scaled = tuple(part._replace(factor=part.factor * noise_sign) for part in parts)
    return _answer(
        function,
        bare,
        options,
        _numbers(other) * data_sign,
        scaled,
        other,
        where,
        in_place=(name.endswith("_") and not name.startswith("__")) or name.startswith("__i"),
    )


def _times(found: Any, parts: Any, factor: Any) -> Any:
    shape = tuple(found.shape)
    spread = tuple(part.mapped(lambda one: np.broadcast_to(one, shape)) for part in parts)
    return _marked(found, tuple(part._replace(factor=part.factor * factor) for part in spread))


def _answer(
    function: Any,
    bare: Any,
    options: Any,
    before: Any,
    parts: Any,
    other: Any,
    where: Site,
    *,
    in_place: bool,
) -> Any:
    """The sum of data and noise: asked of the coordinator."""
    plain = function(
        *(one.clone() if isinstance(one, torch.Tensor) and in_place else one for one in bare),
        **options,
    )
    made = marks.answer(before, parts, where)
    ids = made.ids if isinstance(made, marks.AnswerArray) else made.array.ids
    value = (
        torch.as_tensor(np.asarray(marks.plain(made), dtype=float))
        .to(plain.dtype)
        .reshape(plain.shape)
    )
    if in_place and isinstance(bare[0], torch.Tensor):
        bare[0].data.copy_(value)
        marks.world.release(ids, where)
        return bare[0]
    if isinstance(other, torch.Tensor) and other.requires_grad:
        marks.world.release(ids, where)
        return plain + (value - plain).detach()
    found = value.as_subclass(AnswerTensor)
    found.dpaudit_ids = np.asarray(ids).reshape(tuple(value.shape))
    return found


def _answer_followed(
    name: str, function: Any, args: Any, bare: Any, options: Any, known: Any, where: Site
) -> Any:
    """What follows from an operation on answers: moved, selected from, or (NotImplemented) used."""
    ids = known.dpaudit_ids
    if name in _MOVING and args[0] is known:
        found = function(*bare, **options)
        if isinstance(found, torch.Tensor) and found.numel() == ids.size:
            found = found.as_subclass(AnswerTensor)
            found.dpaudit_ids = ids.reshape(tuple(found.shape))
            return found
        return NotImplemented
    if name in ("argmax", "argmin") and args[0] is known:
        axis = options.get("dim", args[1] if len(args) > 1 else None)
        values = _numbers(known)
        answers = marks._answer(values, ids, np.ones(values.shape), np.zeros(values.shape))
        marks.selected(answers, "max" if name == "argmax" else "min", axis, where)
        return function(*bare, **options)
    if name in _COMPARED and args[0] is known and not isinstance(args[1], AnswerTensor):
        values = _numbers(known)
        answers = marks._answer(values, ids, np.ones(values.shape), np.zeros(values.shape))
        bound = np.broadcast_to(_numbers(args[1]), values.shape)
        if isinstance(answers, marks.AnswerArray):
            _ = answers > bound if _COMPARED[name] == ">" else answers < bound
            return function(*bare, **options)
    return NotImplemented
