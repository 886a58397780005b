"""torch's random numbers: noise added to tensors, and coins shared by both worlds.

Draws that torch makes inside its own kernels (initial weights, dropout) come from its global
generator, whose state is the same in both worlds; they are public, as weights are. The noise of
Opacus is torch's and is followed; its secret sub-sampling is reported as not followed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import numpy as np

from .. import marks
from ..channel import Site, site
from ..world import SeededStream
from . import steps, torch_coins
from .numpy_hook import of_records, shared_order

_SUMS = {
    **dict.fromkeys(("add", "add_", "__add__", "__radd__", "__iadd__"), 1.0),
    **dict.fromkeys(("sub", "sub_", "__sub__", "__isub__", "subtract"), -1.0),
}
_PRODUCTS = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
_QUOTIENTS = {"div", "div_", "__truediv__", "__itruediv__", "true_divide", "divide"}
_MOVING = {
    "view",
    "reshape",
    "view_as",
    "reshape_as",
    "flatten",
    "unflatten",
    "ravel",
    "squeeze",
    "unsqueeze",
    "expand",
    "expand_as",
    "broadcast_to",
    "transpose",
    "permute",
    "t",
    "movedim",
    "swapaxes",
    "flip",
    "roll",
    "repeat",
    "tile",
    "repeat_interleave",
    "narrow",
    "select",
    "index_select",
    "gather",
    "take",
    "masked_select",
    "diagonal",
    "__getitem__",
    "chunk",
    "split",
    "split_with_sizes",
    "tensor_split",
    "unbind",
}
"""Functions that move elements: applied to the elements' places, they show where each goes."""
_KEEPING = {
    "clone",
    "detach",
    "detach_",
    "to",
    "float",
    "double",
    "half",
    "bfloat16",
    "contiguous",
    "cpu",
    "cuda",
    "type",
    "type_as",
    "__deepcopy__",
}
"""Functions that leave every element in its place."""
_JOINING = {"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"}
_LINEAR = {
    *("matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "dot", "vdot", "inner", "outer"),
    *("einsum", "tensordot", "kron", "trace", "cumsum", "diff", "sum", "mean"),
}
"""Functions that are linear in each of their tensors."""
_ATTRIBUTES = {"T", "mT", "data"}
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
    **dict.fromkeys(("gt", "__gt__", "ge", "__ge__"), ">"),
    **dict.fromkeys(("lt", "__lt__", "le", "__le__"), "<"),
}

_STREAMS = {
    "gaussian": "standard_normal",
    "laplace": "laplace",
    "gumbel": "gumbel",
    "exponential": "standard_exponential",
}


class TensorAnswers(NamedTuple):
    """Which answer each element of a tensor is: `factor * answer + offset`."""

    ids: Any
    factor: Any
    offset: Any

    def mapped(self, change: Callable[[Any], Any]) -> TensorAnswers:
        """The same change applied to every array."""
        return TensorAnswers(*(change(np.asarray(one)) for one in self))


torch: Any
_start = SeededStream(0, None, None)
"""Where the numbers of torch's own generator begin."""
_generators: dict[int, tuple[Any, SeededStream]] = {}
"""Generators that this fit has used, and where their numbers begin, by place in memory."""


def install(library: Any) -> None:
    """Replaces the functions that draw, in the module and on tensors."""
    if library.__name__ == "opacus.optimizers":
        _install_in_opacus(library)
        return
    global torch
    torch = library
    _define()
    seeded = library.manual_seed
    seeds = {"count": 0}

    def manual_seed(seed: Any) -> Any:
        if not marks.world.active:
            return seeded(seed)
        global _start
        _start = SeededStream(marks.world.fit, repr(seed), f"torch {seed}")
        seeds["count"] += 1  # equal in both worlds, whatever the code requests
        return seeded((marks.world.seed + seeds["count"]) % 2**63)

    get_state, set_state = library.get_rng_state, library.set_rng_state

    def get_rng_state() -> Any:
        return marks.world.saved(_start, get_state())

    def set_rng_state(new_state: Any) -> None:
        global _start
        set_state(new_state)
        _start = marks.world.restored(new_state)

    def begin() -> None:
        seeds["count"] = 0
        _generators.clear()
        seeded(marks.world.seed % 2**63)

    begin()
    marks.world.beginnings.append(begin)
    for owner in (library, library.random):
        owner.manual_seed = manual_seed
        owner.get_rng_state, owner.set_rng_state = get_rng_state, set_rng_state
    for name in ("randn", "randn_like", "normal", "rand", "rand_like", "randperm", "bernoulli"):
        setattr(library, name, steps.heard(getattr(library, name), globals()[f"_{name}"]))
    for name in ("from_numpy", "as_tensor", "tensor", "asarray"):
        setattr(library, name, _kept(getattr(library, name)))
    for owner, names in (
        (library.Tensor, ("uniform_", "random_", "bernoulli_")),
        (library, ("randint", "randint_like")),
        (library.nn.functional, ("dropout", "alpha_dropout", "feature_alpha_dropout")),
    ):
        for name in names:
            setattr(owner, name, _tossed(getattr(owner, name)))
    multinomial = functools.partial(_multinomial, library.multinomial)
    library.multinomial = steps.heard(library.multinomial, multinomial)
    library.Tensor.multinomial = library.multinomial
    library.Tensor.normal_ = steps.heard(library.Tensor.normal_, _normal_)
    library.Tensor.exponential_ = steps.heard(library.Tensor.exponential_, _exponential_)
    laws = library.distributions
    for kind, law in ((laws.Laplace, "laplace"), (laws.Gumbel, "gumbel")):
        for name in ("rsample", "sample"):
            setattr(kind, name, steps.heard(getattr(kind, name), _of_distribution(law)))


def _install_in_opacus(library: Any) -> None:
    """Reports where a sub-sample amplifies: the protection of its secret coins is not counted."""
    plain = library.DPOptimizer.add_noise

    def add_noise(self: Any) -> Any:
        marks.world.tell("subsample", site(), "DP-SGD: batches count as public")
        return plain(self)

    library.DPOptimizer.add_noise = steps.heard(plain, add_noise)


def _tossed(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose kernel draws coins from torch's own state: equal in both worlds."""

    def tossed(*args: Any, **kwargs: Any) -> Any:
        where = site()
        marks.world.note("draw", where, plain.__name__)
        for one in (*args[1:], *kwargs.values()):
            if isinstance(one, (int, float)) or torch.is_tensor(one):
                marks.world.equal("spend", where, _numbers(one))
        return plain(*args, **kwargs)

    return steps.heard(plain, tossed)


def _kept(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a tensor from an array, with its mark."""

    @functools.wraps(convert)
    def function(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not marks.world.hears or isinstance(data, torch.Tensor):
            return convert(data, *args, **kwargs)
        known = marks.recognised(marks.combined(data))
        if isinstance(known, marks.MarkedNumber):
            known = known.array
        if not isinstance(known, marks.Marked):
            return convert(data, *args, **kwargs)
        if not isinstance(known, (marks.NoiseArray, marks.AnswerArray)) or not known.is_marked:
            return convert(marks.unmarked(known, site()), *args, **kwargs)
        return _as_tensor(convert(known.view(np.ndarray), *args, **kwargs), known)

    return function


def _shape(size: Any) -> tuple[int, ...]:
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    return tuple(int(one) for one in size)


def _noise(
    shape: Any,
    where: Site,
    scale: Any,
    dtype: Any,
    law: str = "gaussian",
    *,
    device: Any = None,
    generator: Any = None,
) -> Any:
    marks.world.drew(_begun(generator), law, shape, where)
    drawn = getattr(marks.world.stream(where, shape), _STREAMS[law])(size=shape)
    content = np.asarray(drawn * scale)
    made = marks.noise(content, law, where, scale=scale)
    return _marked(_placed(content, dtype, device), made.parts)


def _begun(generator: Any) -> SeededStream:
    """Where the numbers of a generator begin: at its seed, if it is the code's own."""
    if generator is None:
        return _start
    if id(generator) not in _generators:
        seed = generator.initial_seed()
        start = SeededStream(marks.world.fit, repr(seed), f"torch {seed}")
        _generators[id(generator)] = (generator, start)
    return _generators[id(generator)][1]


def _placed(values: Any, dtype: Any, device: Any) -> Any:
    """Numbers as a tensor, on the device that was asked for or else the default one.

    Every draw is made on the CPU, so that both worlds get the same one whatever device they use.
    """
    where = torch.empty(0).device if device is None else device
    return torch.as_tensor(values).to(device=where, dtype=dtype or torch.get_default_dtype())


def _marked(tensor: Any, parts: Any) -> Any:
    found = tensor.as_subclass(NoiseTensor)
    found.dpaudit_parts = parts
    return found


def _answering(tensor: Any, answers: TensorAnswers) -> Any:
    found = tensor.as_subclass(AnswerTensor)
    found.dpaudit_answers = answers.mapped(lambda one: one.reshape(tuple(tensor.shape)))
    return found


def _randn(*size: Any, **kwargs: Any) -> Any:
    shape = _shape(kwargs.get("size", size) if "size" in kwargs else size)
    more = {name: kwargs.get(name) for name in ("device", "generator")}
    return _noise(shape, site(), 1.0, kwargs.get("dtype"), **more)


def _randn_like(like: Any, **kwargs: Any) -> Any:
    dtype, device = kwargs.get("dtype") or like.dtype, kwargs.get("device") or like.device
    return _noise(tuple(like.shape), site(), 1.0, dtype, device=device)


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
    where = site()
    loc, scale = (_numbers(one) for one in (mean, std))
    shape = tuple(size) if size is not None else np.broadcast_shapes(np.shape(loc), np.shape(scale))
    like = next((one for one in (mean, std) if isinstance(one, torch.Tensor)), None)
    dtype = kwargs.get("dtype") or (None if like is None else like.dtype)
    device = kwargs.get("device") or (None if like is None else like.device)
    made = _noise(shape, where, scale, dtype, device=device, generator=kwargs.get("generator"))
    found = _around(made, loc, where)
    out = kwargs.get("out")
    if out is None:
        return found
    if isinstance(found, AnswerTensor):
        marks.world.release(found.dpaudit_answers.ids, where)
        return out.copy_(_bare(found))
    out.resize_(found.shape).copy_(_bare(found))
    return _filled(out, found.dpaudit_parts)


def _normal_(self: Any, mean: float = 0.0, std: float = 1.0, **_: Any) -> Any:
    """Fills a tensor: usually initial weights, which are equal in both worlds."""
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
    scale, shape = 1.0 / lambd, tuple(self.shape)
    found = _noise(shape, site(), scale, self.dtype, "exponential", device=self.device)
    parts = found.dpaudit_parts
    with torch.no_grad():
        self.copy_(_bare(found))
    return self if self.requires_grad else _filled(self, parts)


def _filled(tensor: Any, parts: Any) -> Any:
    """Marks a tensor that was filled with noise in place, so that all its references are marked."""
    if type(tensor) is not torch.Tensor:
        return _marked(tensor, parts)
    tensor.__class__ = NoiseTensor
    tensor.dpaudit_parts = parts
    return tensor


def _of_distribution(law: str) -> Callable[..., Any]:
    """`sample` and `rsample` of a distribution whose kernels draw by inversion."""

    def sample(self: Any, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(torch.Size(sample_shape)))
        where = site()
        scale, like = _numbers(self.scale), self.loc
        found = _noise(shape, where, scale, like.dtype, law, device=like.device)
        return _around(found, _numbers(self.loc), where)

    return sample


def _around(noise: Any, loc: Any, where: Site) -> Any:
    """Noise around a location: plain noise if the location is 0 in both worlds, else an answer."""
    if marks.world.are_zero(where, loc):
        return noise
    return noise + _placed(np.broadcast_to(loc, noise.shape).copy(), noise.dtype, noise.device)


def _rand(*size: Any, **kwargs: Any) -> Any:
    shape = _shape(kwargs.get("size", size) if "size" in kwargs else size)
    return _coins(shape, site(), kwargs.get("dtype"), kwargs.get("device"))


def _rand_like(like: Any, **kwargs: Any) -> Any:
    dtype, device = kwargs.get("dtype") or like.dtype, kwargs.get("device") or like.device
    return _coins(tuple(like.shape), site(), dtype, device)


def _coins(shape: Any, where: Site, dtype: Any, device: Any = None) -> Any:
    world = marks.world
    coins = torch_coins.coins(torch, where, shape, dtype)
    if coins is not None:
        return coins if device is None else coins.to(device)
    place = world.rows_shared(where, shape)
    drawn = of_records(world.stream(where, shape).random, shape, place)
    world.note("draw", where, "rand", None if place is not None else shape)
    return _placed(1.0 - drawn if world.opposite else drawn, dtype, device)


def _randperm(n: int, **kwargs: Any) -> Any:
    where = site()
    order = shared_order(where, int(n), marks.world.stream(where, int(n)))
    return _placed(order, kwargs.get("dtype") or torch.int64, kwargs.get("device"))


def _bernoulli(given: Any, *args: Any, **kwargs: Any) -> Any:
    """Coins with each element's probability: uniform draws that are compared with it."""
    where = site()
    p = _numbers(args[0] if args and isinstance(args[0], float) else given)
    shape, out = tuple(given.shape), kwargs.get("out")
    bits = torch_coins.bits(torch, where, np.broadcast_to(p, shape), shape)
    if bits is not None:
        found = bits.to(given)
        return found if out is None else out.copy_(found)
    coins = marks.coin(np.asarray(marks.world.stream(where, shape).random(shape)), where)
    tossed = marks.tossed(marks._array(coins), np.broadcast_to(p, shape), "<", where)
    found = torch.as_tensor(np.asarray(tossed, dtype=float)).to(given)
    return found if out is None else out.copy_(found)


def _multinomial(
    plain: Any, given: Any, num_samples: int, replacement: bool = False, **kwargs: Any
) -> Any:
    """Places drawn with known probabilities: a selection if these depend on the record."""
    where, world = site(), marks.world
    weights = _numbers(given)
    if num_samples > 1 and not replacement:
        world.equal("spend", where, weights)
        world.note("draw", where, "multinomial")
        return plain(_bare(given), num_samples, replacement, **kwargs)
    rows = np.atleast_2d(weights)
    if where[:2] in world.asked:
        places = np.stack([marks.chosen(row, (num_samples,), where) for row in rows])
    else:
        world.note("choose", where, weights)
        uniform = world.stream(where, (len(rows), num_samples)).random((len(rows), num_samples))
        sums = np.cumsum(rows, axis=1)
        places = np.stack(
            [
                np.searchsorted(own, one * own[-1], side="right").clip(max=len(own) - 1)
                for own, one in zip(sums, uniform)
            ]
        )
    found = torch.as_tensor(places if weights.ndim == 2 else places[0]).to(given.device)
    out = kwargs.get("out")
    return found if out is None else out.copy_(found)


def _numbers(value: Any) -> Any:
    """A tensor or a number as a numpy value."""
    if isinstance(value, torch.Tensor):
        return _bare(value).detach().cpu().double().numpy()
    return np.asarray(value, dtype=float)


def _bare(value: Any) -> Any:
    """The value without its mark; an unmarked tensor is returned as it is, not as a view."""
    if isinstance(value, (NoiseTensor, AnswerTensor)):
        return value.as_subclass(torch.Tensor)
    return value


def _define() -> None:
    """The two kinds of tensors: their base class exists only if torch does."""
    global NoiseTensor, AnswerTensor

    class MarkedTensor(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return _operated(function, args, kwargs or {})

    class NoiseTensor(MarkedTensor):
        """Noise to which no data has been added."""

        dpaudit_parts: Any = ()

    class AnswerTensor(MarkedTensor):
        """Noisy answers whose use is not known yet."""

        dpaudit_answers: Optional[TensorAnswers] = None


NoiseTensor: Any = None
AnswerTensor: Any = None


def _operated(function: Any, args: Any, kwargs: Any) -> Any:
    name, where = function.__name__, site()
    if name == "__get__" and getattr(function.__self__, "__name__", "") in _ATTRIBUTES:
        name = "detach" if function.__self__.__name__ == "data" else "t"
    marked = [one for one in _tensors((*args, *kwargs.values())) if _is_marked(one)]
    changes = name in ("requires_grad_", "__set__")
    if changes and marked and marks.world.hears:  # from here on a parameter of a network
        for one in marked:
            marks.used(_numpy_marked(one), where)
        _forgotten(marked)
    if changes or not marked:
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)
    bare = tuple(_bare_deep(one) for one in args)
    options = {key: _bare_deep(one) for key, one in kwargs.items()}
    if name in _HARMLESS or not marks.world.hears:
        return function(*bare, **options)
    if name in ("triu", "tril"):  # a product with ones and zeros
        kept = function(torch.ones_like(bare[0]), *bare[1:], **options)
        name, function, args, bare, options = "mul", torch.mul, (args[0], kept), (bare[0], kept), {}
    joined = _joined(name, function, args, options)
    if joined is not None:
        return joined
    noise = next((one for one in args if isinstance(one, NoiseTensor) and _is_marked(one)), None)
    known = next((one for one in args if isinstance(one, AnswerTensor) and _is_marked(one)), None)
    if (
        name in ("item", "tolist", "numpy")
        and len(args) == 1
        and (noise is not None or name == "item")
    ):
        values = _numpy_marked(marked[0])
        return values if name == "numpy" else getattr(values, name)()
    found = _added_up(name, function, args, bare, options, where)
    if found is not NotImplemented:
        return found
    if noise is not None and known is None:
        found = _followed(name, function, args, bare, options, noise, where)
        if found is not NotImplemented:
            return found
    if known is not None and noise is None:
        found = _answer_followed(name, function, args, bare, options, known, where)
        if found is not NotImplemented:
            return found
    made = function(*bare, **options)
    hidden = noise is not None or any(
        isinstance(one, AnswerTensor) and not marks.world.are_released(one.dpaudit_answers.ids)
        for one in marked
    )
    if hidden or marks.world.mixes(where, "function"):  # else nothing is new, and models are large
        others = [_numbers(one) for one in _tensors(args) if not _is_marked(one)]
        arrays = [_numpy_marked(one) for one in marked]
        found = _numbers(made) if isinstance(made, torch.Tensor) else made
        if len(args) == 1 and not options and marks.extreme(arrays[0], name, found, where):
            return made
        linear = _linear_in(function, args, bare, options) if name in _LINEAR else None
        result = marks._array(marks.spent(arrays, others, found, where, linear=linear))
        if isinstance(result, marks.Marked):
            return _as_tensor(made, result)
    if name.endswith("_") and not name.startswith("__"):
        _forgotten(marked[:1])
    return made


def _linear_in(function: Any, args: Any, bare: Any, options: Any) -> Any:
    """The function of the only marked tensor, for arrays; None if others may be parameters."""
    places = [
        at for at, one in enumerate(args) if isinstance(one, torch.Tensor) and _is_marked(one)
    ]
    every = list(_tensors((*args, *options.values())))
    if len(places) != 1 or sum(map(_is_marked, every)) != 1:
        return None
    if any(one.requires_grad for one in every):
        return None  # part of a network, in which noise is a coin
    [place] = places
    before, like, after = bare[:place], bare[place], bare[place + 1 :]

    def linear(values: Any) -> Any:
        tensor = _bare(torch.as_tensor(np.asarray(values, dtype=float))).to(like)
        return _numbers(function(*before, tensor, *after, **options))

    return linear


def _is_marked(one: Any) -> bool:
    if isinstance(one, AnswerTensor):
        return one.dpaudit_answers is not None
    if not isinstance(one, NoiseTensor):
        return False
    # noise that went through a network is a coin, even where it bypasses the network
    return any(not marks.world.are_coins(part.ids) for part in one.dpaudit_parts)


def _forgotten(marked: Any) -> None:
    """Removes the marks of values."""
    for one in marked:
        if isinstance(one, AnswerTensor):
            one.dpaudit_answers = None
        else:
            one.dpaudit_parts = ()


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
    """The result of an operation on noise: noise again, or an answer."""
    parts = noise.dpaudit_parts
    moved = _moved(name, function, args, bare, options, noise)
    if moved is not None:
        return moved
    if name in ("neg", "__neg__"):
        return _times(function(*bare), parts, -1.0)
    if name in ("sum", "mean"):
        return _reduced(name, function, args, bare, options, noise, where)
    if len(args) != 2:
        return NotImplemented
    other = args[1] if args[0] is noise else args[0]
    both = isinstance(other, NoiseTensor) and _is_marked(other)
    if not both and (name in _PRODUCTS or (name in _QUOTIENTS and args[0] is noise)):
        factor = _numbers(other) if name in _PRODUCTS else 1.0 / _numbers(other)
        return _times(function(*bare, **options), parts, factor)
    if name not in _SUMS and name != "__rsub__":
        return NotImplemented
    if both:
        if args[0] is not noise or noise.shape != other.shape:
            return NotImplemented
        sign = _SUMS.get(name, -1.0) * float(options.get("alpha", 1.0))
        second = tuple(part._replace(factor=part.factor * sign) for part in other.dpaudit_parts)
        return _marked(function(*bare, **options), (*parts, *second))
    noise_sign, data_sign = _signs(name, options, first=args[0] is noise)
    scaled = tuple(part._replace(factor=part.factor * noise_sign) for part in parts)
    is_number = not isinstance(other, torch.Tensor) and not _in_place(name)
    if is_number and marks.world.are_zero(where, other):  # the start of Python's sum
        return _times(function(*bare, **options), scaled, 1.0)
    before, first = _numbers(other) * data_sign, bare[0]
    if _in_place(name):
        bare = tuple(one.clone() if isinstance(one, torch.Tensor) else one for one in bare)
    plain = function(*bare, **options)
    made = marks._array(marks.answer(before, scaled, where))
    value = _tensor_of(made, plain)
    if _in_place(name) and isinstance(first, torch.Tensor):
        first.data.copy_(value)
        marks.world.release(made.ids, where)
        return first
    if isinstance(other, torch.Tensor) and other.requires_grad:
        marks.world.release(made.ids, where)
        return plain + (value - plain).detach()
    return _as_tensor(value, made)


def _signs(name: str, options: Any, *, first: bool) -> tuple[float, float]:
    """The factors of a marked tensor, the first operand or the second, and of the other one."""
    sign = _SUMS.get(name, -1.0) * float(options.get("alpha", 1.0))
    return (1.0, sign) if first != (name == "__rsub__") else (sign, 1.0)


def _moved(name: str, function: Any, args: Any, bare: Any, options: Any, marked: Any) -> Any:
    """Marked elements moved to other places; None if the function does anything else."""
    if args[0] is not marked or name not in _MOVING | _KEEPING:
        return None
    found = function(*bare, **options)
    if name in _KEEPING:
        if not isinstance(found, torch.Tensor) or not found.is_floating_point():
            return None
        return _taken(found, marked, np.arange(found.numel()).reshape(tuple(found.shape)))
    places = torch.arange(marked.numel(), device=marked.device).reshape(marked.shape)
    moved = function(places, *bare[1:], **options)
    if isinstance(found, torch.Tensor):
        return _taken(found, marked, moved.cpu().numpy())
    return type(found)(_taken(one, marked, own.cpu().numpy()) for one, own in zip(found, moved))


def _taken(tensor: Any, marked: Any, places: Any) -> Any:
    """A tensor of the elements of a marked one at these places."""
    if isinstance(marked, AnswerTensor):
        return _answering(tensor, marked.dpaudit_answers.mapped(lambda one: one.ravel()[places]))
    shape = tuple(marked.shape)
    return _marked(
        tensor,
        tuple(
            part.mapped(lambda one: np.broadcast_to(one, shape).ravel()[places])
            for part in marked.dpaudit_parts
        ),
    )


def _joined(name: str, function: Any, args: Any, options: Any) -> Any:
    """Marked tensors of one kind as one tensor; None if their kinds differ."""
    every = list(args[0]) if name in _JOINING and isinstance(args[0], (list, tuple)) else []
    if not every:
        return None
    rest = args[1:]
    if all(isinstance(one, AnswerTensor) and _is_marked(one) for one in every):
        fields = (
            function([torch.as_tensor(own) for own in column], *rest, **options).cpu().numpy()
            for column in zip(*(one.dpaudit_answers for one in every))
        )
        found = function([_bare(one) for one in every], *rest, **options)
        return _answering(found, TensorAnswers(*fields))
    if not all(isinstance(one, NoiseTensor) and len(one.dpaudit_parts) == 1 for one in every):
        return None
    parts = [one.dpaudit_parts[0] for one in every]
    if len({(part.law, part.seed) for part in parts}) != 1:
        return None
    shapes = [tuple(one.shape) for one in every]
    fields = {
        field: function(
            [
                torch.as_tensor(np.broadcast_to(getattr(part, field), shape).copy())
                for part, shape in zip(parts, shapes)
            ],
            *rest,
            **options,
        )
        .cpu()
        .numpy()
        for field in marks._ARRAYS
    }
    return _marked(
        function([_bare(one) for one in every], *rest, **options), (parts[0]._replace(**fields),)
    )


def _in_place(name: str) -> bool:
    return name.startswith("__i") or (name.endswith("_") and not name.startswith("__"))


def _times(found: Any, parts: Any, factor: Any) -> Any:
    shape = tuple(found.shape)
    spread = tuple(part.mapped(lambda one: np.broadcast_to(one, shape)) for part in parts)
    return _marked(found, tuple(part._replace(factor=part.factor * factor) for part in spread))


def _tensor_of(made: Any, like: Any) -> Any:
    """The values of numpy's answers as a plain tensor of another's type and shape."""
    value = torch.as_tensor(np.asarray(marks.plain(made), dtype=float))
    return value.to(like).reshape(like.shape)


def _numpy_answers(known: Any) -> Any:
    """Answers as numpy's."""
    return marks._answer(_numbers(known), *known.dpaudit_answers)


def _numpy_marked(marked: Any) -> Any:
    """Answers or noise as numpy's array."""
    if isinstance(marked, AnswerTensor):
        return marks._array(_numpy_answers(marked))
    shape = tuple(marked.shape)
    spread = (part.mapped(lambda one: np.broadcast_to(one, shape)) for part in marked.dpaudit_parts)
    return marks._noise(_numbers(marked), tuple(spread))


def _as_tensor(found: Any, made: Any) -> Any:
    """A tensor with the marks of numpy's array."""
    if isinstance(made, marks.NoiseArray):
        return _marked(found, made.parts)
    return _answering(found, TensorAnswers(made.ids, made.factor, made.offset))


def _added_up(name: str, function: Any, args: Any, bare: Any, options: Any, where: Site) -> Any:
    """The sum of answers and other answers, or more noise: new answers with the noise of all."""
    if len(args) != 2 or name not in _SUMS or not set(options) <= {"alpha"}:
        return NotImplemented
    kinds = {type(one) for one in args if isinstance(one, torch.Tensor) and _is_marked(one)}
    both = all(isinstance(one, torch.Tensor) and _is_marked(one) for one in args)
    if not both or AnswerTensor not in kinds:
        return NotImplemented
    if _in_place(name) and not isinstance(args[0], AnswerTensor):
        return NotImplemented
    sign = _SUMS[name] * float(options.get("alpha", 1.0))
    first, second = (_numpy_marked(one) for one in args)
    if sign != 1.0:
        second = marks._array(marks._scaled(second, sign, where))
    if not isinstance(second, marks.Marked):
        return NotImplemented
    made = marks._array(marks._derived(first, second, None, where))
    found = function(*bare, **options)
    if not _in_place(name):
        return _as_tensor(found, made)
    args[0].dpaudit_answers = TensorAnswers(made.ids, made.factor, made.offset)
    return args[0]


def _reduced(
    name: str, function: Any, args: Any, bare: Any, options: Any, marked: Any, where: Site
) -> Any:
    """The sum or mean of marked elements, of all or along one dimension."""
    axis = options.get("dim", args[1] if len(args) > 1 else None)
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    plain = args[0] is marked and len(args) <= 2 and set(options) <= {"dim", "keepdim"}
    if not plain or not (axis is None or isinstance(axis, int)):
        return NotImplemented
    array = _numpy_marked(marked)
    made = marks._array(marks._summed(array, axis, bool(options.get("keepdim")), where))
    if name == "mean" and isinstance(made, marks.Marked):
        count = array.size if axis is None else array.shape[axis]
        made = marks._array(marks._scaled(made, 1.0 / count, where))
    if not isinstance(made, marks.Marked):
        return NotImplemented
    return _as_tensor(function(*bare, **options), made)


def _answer_followed(
    name: str, function: Any, args: Any, bare: Any, options: Any, known: Any, where: Site
) -> Any:
    """The result of an operation on answers: a move, a selection, or (NotImplemented) a use."""
    moved = _moved(name, function, args, bare, options, known)
    if moved is not None:
        return moved
    if name in ("argmax", "argmin") and args[0] is known:
        axis = options.get("dim", args[1] if len(args) > 1 else None)
        answers = _numpy_answers(known)
        marks.selected(answers, "max" if name == "argmax" else "min", axis, where)
        return function(*bare, **options)
    if name in _COMPARED and args[0] is known and not isinstance(args[1], AnswerTensor):
        answers = _numpy_answers(known)
        bound = np.broadcast_to(_numbers(args[1]), tuple(known.shape))
        if isinstance(answers, marks.AnswerArray):
            _ = answers > bound if _COMPARED[name] == ">" else answers < bound
            return function(*bare, **options)
    if name in ("sum", "mean"):
        return _reduced(name, function, args, bare, options, known, where)
    if name in ("neg", "__neg__"):
        name, function, bare, args = "mul", torch.mul, (*bare, -1.0), (known, -1.0)
    if len(args) != 2 or not set(options) <= {"alpha"}:
        return NotImplemented
    other = args[1] if args[0] is known else args[0]
    if (_in_place(name) and other is args[0]) or not isinstance(other, (torch.Tensor, int, float)):
        return NotImplemented
    if name in _QUOTIENTS and not _in_place(name) and isinstance(other, AnswerTensor):
        sides = (marks._array(_numpy_answers(one)) for one in args)
        ratio = marks.divided(*sides, None, where)
        return ratio if ratio is NotImplemented else function(*bare, **options)
    if isinstance(other, torch.Tensor) and (_is_marked(other) or other.requires_grad):
        return NotImplemented
    made = _put_together(name, options, known, other, where, first=args[0] is known)
    if not isinstance(made, marks.AnswerArray) or not made.is_marked:
        return NotImplemented
    found = function(*bare, **options)
    if np.any(made.ids != np.broadcast_to(known.dpaudit_answers.ids, made.shape)):
        found.copy_(_tensor_of(made, found))  # these are new answers
    if not _in_place(name):
        return _as_tensor(found, made)
    known.dpaudit_answers = TensorAnswers(made.ids, made.factor, made.offset)
    return known


def _put_together(
    name: str, options: Any, known: Any, other: Any, where: Site, *, first: bool
) -> Any:
    """Answers times or plus a plain value, as for numpy: new answers if it depends on the data."""
    answers, value = marks._array(_numpy_answers(known)), _numbers(other)
    if name in _PRODUCTS or (name in _QUOTIENTS and first):
        with np.errstate(divide="ignore"):
            factor = value if name in _PRODUCTS else 1.0 / value
        return marks._array(marks._scaled(answers, factor, where))
    if name not in _SUMS and name != "__rsub__":
        return NotImplemented
    own, others = _signs(name, options, first=first)
    if own != 1.0:
        answers = marks._array(marks._scaled(answers, own, where))
        if not isinstance(answers, marks.AnswerArray):
            return NotImplemented
    return marks._array(marks._shifted(answers, others * value, None, where))
