"""torch's random numbers: noise added to tensors, and coins shared by both worlds.

Draws that torch makes inside its own kernels (initial weights, dropout) come in a lockstep fit from
its global generator, whose state is the same in both worlds; they are public, as weights are. The
noise of Opacus is torch's and is followed; its secret sub-sampling is reported as not followed.
Noise that meets what gradients pass through, as in a variational autoencoder, is an ordinary random
number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import marks, noise
from ..channel import Site, site
from . import steps, torch_coins
from .numpy_hook import Seeded
from .torch_coins import as_tensor, numbers, shape_of, tensors, without_marks

_UFUNCS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("add", "add_", "__add__", "__radd__", "__iadd__"), np.add),
    **dict.fromkeys(("sub", "sub_", "__sub__", "__isub__", "subtract"), np.subtract),
    **dict.fromkeys(("__rsub__", "rsub"), lambda first, second: np.subtract(second, first)),
    **dict.fromkeys(("mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"), np.multiply),
    **dict.fromkeys(("div", "div_", "__truediv__", "__itruediv__", "true_divide"), np.true_divide),
    **dict.fromkeys(("neg", "__neg__"), np.negative),
    "divide": np.true_divide,
}
"""Functions that numpy's follow in the same way."""
_MOVING = {
    *("view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "ravel", "squeeze"),
    *("unsqueeze", "expand", "expand_as", "broadcast_to", "transpose", "permute", "t", "movedim"),
    *("swapaxes", "flip", "roll", "repeat", "tile", "repeat_interleave", "narrow", "select"),
    *("index_select", "gather", "take", "masked_select", "diagonal", "__getitem__", "chunk"),
    *("split", "split_with_sizes", "tensor_split", "unbind", "cat", "concat", "concatenate"),
    *("stack", "hstack", "vstack", "dstack"),
}
"""Functions that move elements: applied to the elements' places, they show where each goes."""
_KEEPING = {
    *("clone", "detach", "detach_", "to", "float", "double", "half", "bfloat16", "contiguous"),
    *("cpu", "cuda", "type", "type_as", "__deepcopy__"),
}
"""Functions that leave every element in its place."""
_LINEAR = {
    *("matmul", "__matmul__", "__rmatmul__", "mm", "mv", "bmm", "dot", "vdot", "inner", "outer"),
    *("einsum", "tensordot", "kron", "trace", "cumsum", "diff", "sum", "mean", "triu", "tril"),
}
"""Functions that are linear in each of their tensors."""
_HARMLESS = {
    *("__get__", "size", "dim", "numel", "stride", "is_floating_point", "__len__"),
    *("element_size", "storage_offset", "is_complex", "nelement", "ndimension", "is_contiguous"),
    *("get_device", "data_ptr", "__repr__", "__hash__"),
}

torch: Any
_everywhere = Seeded()
"""Knows the seed of torch's own generator."""
NoiseTensor: Any = None
"""The class of tensors of noise to which no data has been added."""


def install(library: Any) -> None:
    """Replaces the functions that draw, in the module and on tensors."""
    if library.__name__ == "opacus.optimizers":
        _install_in_opacus(library)
        return
    global torch, NoiseTensor
    torch = library
    torch_coins.install(library)
    NoiseTensor = torch_coins.tensor_class(_operate, dpaudit_parts=())
    _install_seeds(library)
    for name, noisy in (("randn", _randn), ("randn_like", _randn), ("normal", _normal)):
        setattr(library, name, _intercept(getattr(library, name), noisy))
    for name in ("from_numpy", "as_tensor", "tensor", "asarray"):
        setattr(library, name, _keep_marks(getattr(library, name)))
    library.Tensor.normal_ = _intercept(library.Tensor.normal_, _normal_)
    library.Tensor.exponential_ = _intercept(library.Tensor.exponential_, _exponential_)
    laws = library.distributions
    for kind, law in ((laws.Laplace, "laplace"), (laws.Gumbel, "gumbel")):
        for name in ("rsample", "sample"):
            setattr(kind, name, _intercept(getattr(kind, name), _sampler_of(law)))


def _install_in_opacus(library: Any) -> None:
    """Reports where a sub-sample amplifies: the protection of its secret coins is not counted."""
    plain = library.DPOptimizer.add_noise

    def add_noise(self: Any) -> Any:
        why = "batches of DP-SGD that are followed only if coins are public (--public-coins)"
        marks.world.tell("subsample", site(), why)
        return plain(self)

    library.DPOptimizer.add_noise = steps.intercept(plain, add_noise)


def _install_seeds(library: Any) -> None:
    """Hears seeds; in a lockstep fit, torch's own state is the same in both worlds."""
    seeded, kind = library.manual_seed, library.Generator
    count = [0]

    def manual_seed(seed: Any) -> Any:
        world = marks.world
        _everywhere.dpaudit_keep_seed(repr(seed))
        if not world.active or world.natural:
            return seeded(seed)
        count[0] += 1  # equal in both worlds, whatever the code requests
        return seeded((world.order.seed + count[0]) % 2**63)

    def begin() -> None:
        count[0] = 0
        if not marks.world.natural:
            seeded(marks.world.order.seed % 2**63)

    class Instances(type(kind)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, kind)

    class HeardTorchGenerator(Seeded, kind, metaclass=Instances):  # type: ignore[misc]
        """`torch.Generator`, whose seeds are heard."""

        def manual_seed(self, seed: Any) -> Any:
            self.dpaudit_keep_seed(repr(seed))
            return super().manual_seed(seed)

    marks.world.beginnings.append(begin)
    library.manual_seed = library.random.manual_seed = manual_seed
    library.Generator = HeardTorchGenerator


def _intercept(plain: Callable[..., Any], noisy: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws noise; the plain one is its first argument."""
    return steps.intercept(plain, functools.partial(noisy, plain))


def _keep_marks(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a tensor from an array, with its mark."""

    @functools.wraps(convert)
    def wrapper(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not marks.world.hears or isinstance(data, torch.Tensor):
            return convert(data, *args, **kwargs)
        known = marks.array_of(marks.combine(data))
        known = known.as_noise() if isinstance(known, marks.Marked) else known
        if not marks.is_marked(known, noise.NoiseArray):
            return convert(marks.end_marks(known, "torch"), *args, **kwargs)
        return _mark(convert(known.view(np.ndarray), *args, **kwargs), known.parts)

    return wrapper


# -- draws ---------------------------------------------------------------------------------------


def _draw(
    where: Site,
    law: str,
    shape: Any,
    scale: Any,
    loc: Any,
    natural: Any,
    *,
    owner: Any = None,
    is_noise: bool = True,
) -> Any:
    """Draws of a law around a value, as numpy's: noise, or plain numbers.

    They are made on the CPU, so that both worlds get the same ones whatever their devices.

    Args:
        where: The line that draws.
        law: The law.
        shape: How many.
        scale: The scale of the law.
        loc: The value.
        natural: What the library has drawn in a natural fit.
        owner: The generator; None for torch's own.
        is_noise: Whether draws around a value that is equal in both worlds can be noise.
    """
    drawn = steps.draw_around(
        where,
        law,
        loc,
        scale,
        shape,
        natural=lambda: numbers(natural),
        seed=getattr(_everywhere if owner is None else owner, "dpaudit_seed", None),
        is_noise=is_noise,
    )
    return drawn if isinstance(drawn, noise.NoiseArray) else marks.end_marks(drawn, "torch")


def _as_tensor(drawn: Any, natural: Any, dtype: Any, device: Any) -> Any:
    """What was drawn as a tensor, with its mark."""
    tensor = as_tensor(drawn, dtype, device) if natural is None else natural
    return _set_mark(tensor, drawn.parts) if marks.is_marked(drawn) else tensor


def _mark(tensor: Any, parts: Any) -> Any:
    view = tensor.as_subclass(NoiseTensor)
    view.dpaudit_parts = parts
    return view


def _set_mark(tensor: Any, parts: Any) -> Any:
    """Changes the mark of a tensor that was filled in place, under all its references."""
    if type(tensor) in (torch.Tensor, NoiseTensor):
        tensor.__class__ = NoiseTensor if parts else torch.Tensor
        tensor.dpaudit_parts = parts
    return tensor


def _randn(plain: Any, *size: Any, **kwargs: Any) -> Any:
    """`randn`, and `randn_like` of a tensor."""
    like = None
    if plain.__name__ == "randn_like":
        like = size[0] if size else kwargs["input"]
        shape = tuple(like.shape)
    else:
        shape = shape_of(kwargs.get("size", size))
    natural = plain(*map(_without_marks, size), **kwargs) if marks.world.natural else None
    owner = kwargs.get("generator")
    drawn = _draw(site(), "gaussian", shape, 1.0, 0.0, natural, owner=owner)
    return _as_tensor(drawn, natural, **_options(kwargs, like))


def _options(kwargs: Any, like: Any) -> dict[str, Any]:
    """Type and device of a result: as asked for, or else those of a tensor."""
    return {name: kwargs.get(name) or getattr(like, name, None) for name in ("dtype", "device")}


def _normal(plain: Any, mean: Any = 0.0, std: Any = 1.0, size: Any = None, **kwargs: Any) -> Any:
    loc, scale = (numbers(value) for value in (mean, std))
    shape = tuple(size) if size is not None else np.broadcast_shapes(np.shape(loc), np.shape(scale))
    natural = None
    if marks.world.natural:
        given = (_without_marks(mean), _without_marks(std), *(() if size is None else (size,)))
        natural = plain(*given, **kwargs)
    owner = kwargs.get("generator")
    is_noise = not _have_gradients(mean, std)
    drawn = _draw(site(), "gaussian", shape, scale, loc, natural, owner=owner, is_noise=is_noise)
    like = next((value for value in (mean, std) if isinstance(value, torch.Tensor)), None)
    out = kwargs.get("out")
    if out is not None and natural is None:
        natural = out.resize_(shape).copy_(as_tensor(drawn, out.dtype, out.device))
    return _as_tensor(drawn, natural, **_options(kwargs, like))


def _have_gradients(*values: Any) -> bool:
    return any(getattr(value, "requires_grad", False) for value in values)


def _normal_(
    plain: Any, self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Any:
    """Fills a tensor: usually initial weights, which are equal in both worlds."""
    return _fill(plain, self, "gaussian", mean, std, (mean, std), generator)


def _exponential_(plain: Any, self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    return _fill(plain, self, "exponential", 0.0, 1.0 / lambd, (lambd,), generator)


def _fill(plain: Any, self: Any, law: str, loc: Any, scale: Any, given: Any, owner: Any) -> Any:
    natural = plain(self, *given, generator=owner) if marks.world.natural else None
    is_noise = not self.requires_grad
    shape = tuple(self.shape)
    drawn = _draw(site(), law, shape, scale, loc, natural, owner=owner, is_noise=is_noise)
    if natural is None:
        with torch.no_grad():
            self.copy_(as_tensor(drawn, self.dtype, self.device))
    return _set_mark(self, drawn.parts if marks.is_marked(drawn) else ())


def _sampler_of(law: str) -> Callable[..., Any]:
    """`sample` and `rsample` of a distribution whose kernels draw by inversion."""

    def sample(plain: Any, self: Any, sample_shape: Any = ()) -> Any:
        natural = None
        if marks.world.natural:
            with marks.world.hushed():
                natural = plain(self, torch.Size(sample_shape))
        loc, scale = numbers(self.loc), numbers(self.scale)
        shape = tuple(self._extended_shape(torch.Size(sample_shape)))
        is_noise = not _have_gradients(self.loc, self.scale)
        drawn = _draw(site(), law, shape, scale, loc, natural, is_noise=is_noise)
        return _as_tensor(drawn, natural, self.loc.dtype, self.loc.device)

    return sample


# -- tensors -------------------------------------------------------------------------------------


def _without_marks(value: Any) -> Any:
    return without_marks(value, NoiseTensor)


def _is_marked(tensor: Any) -> bool:
    # noise that went through a network is a coin, even where it bypasses the network
    return isinstance(tensor, NoiseTensor) and any(
        not marks.world.are_lost(part.ids) for part in tensor.dpaudit_parts
    )


def _array(tensor: Any) -> Any:
    """A marked tensor as numpy's noise."""
    return noise.combination(numbers(tensor), tensor.dpaudit_parts)


def _operate(function: Any, args: Any, kwargs: Any) -> Any:
    name, world = function.__name__, marks.world
    owner = getattr(getattr(function, "__self__", None), "__name__", "")
    if name == "__get__" and owner in ("T", "mT", "data"):
        name = "detach" if owner == "data" else "t"
    marked = [tensor for tensor in tensors((*args, *kwargs.values())) if _is_marked(tensor)]
    if name == "requires_grad_" or (name == "__set__" and owner != "grad"):
        if world.hears:  # from here on a parameter of a network
            _lose(marked, name)
        marked = []
    if name == "__set__" or not marked:
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **kwargs)
    bare = tuple(map(_without_marks, args))
    options = {key: _without_marks(value) for key, value in kwargs.items()}
    if name in _HARMLESS or not world.hears:
        return function(*bare, **options)
    if name in ("item", "tolist", "numpy"):
        array = _array(marked[0])
        return array if name == "numpy" else getattr(array, name)()
    result = _follow(name, function, args, bare, options, marked)
    if result is not NotImplemented:
        return result
    _lose(marked, name)
    return function(*bare, **options)


def _lose(marked: Any, why: str) -> None:
    for tensor in marked:
        noise.end_noise(tensor.dpaudit_parts, why)
        _set_mark(tensor, ())


def _follow(name: str, function: Any, args: Any, bare: Any, options: Any, marked: Any) -> Any:
    """The result of an operation on noise: noise again, or a sum with data."""
    if name in _MOVING | _KEEPING:
        return _move(name, function, args, bare, options)
    if any(tensor.requires_grad for tensor in tensors((*args, *options.values()))):
        return NotImplemented
    if len(marked) == 1 and name in _LINEAR:
        return _follow_linear(name, function, args, bare, options, marked[0])
    if name not in _UFUNCS or set(options) - {"alpha"}:
        return NotImplemented
    sides = [_array(value) if _is_marked(value) else _plain(value) for value in args]
    if "alpha" in options:
        sides[1] = sides[1] * options["alpha"]
    made = marks.array_of(_UFUNCS[name](*sides))
    result = function(*bare, **options)
    if marks.is_marked(made, noise.NoiseArray):
        return _mark_result(name, args, result, made.parts)
    value = np.asarray(marks.end_marks(made, "torch"), dtype=float)
    if not marks.world.natural:
        result.data.copy_(torch.as_tensor(value).reshape(result.shape))
    return _mark_result(name, args, result, ())


def _plain(value: Any) -> Any:
    """A tensor as a numpy value; a plain number as it is, with which `sum` begins."""
    return value if type(value) in (int, float) else numbers(value)


def _mark_result(name: str, args: Any, result: Any, parts: Any) -> Any:
    """A result with its mark: the first argument itself for an operation in place."""
    if not _in_place(name):
        return _mark(result, parts) if parts else result
    return _set_mark(args[0], parts)


def _in_place(name: str) -> bool:
    return name.startswith("__i") or (name.endswith("_") and not name.startswith("__"))


def _move(name: str, function: Any, args: Any, bare: Any, options: Any) -> Any:
    """Marked elements moved to other places, or joined."""
    every = list(tensors(args[:1]))
    if not all(map(_is_marked, every)) or any(map(_is_marked, tensors(args[1:]))):
        return NotImplemented
    joined = noise.NoiseArray.join_arrays(
        list(map(_array, every)), lambda fields: np.concatenate(list(map(np.ravel, fields)))
    )
    if joined is None:
        return NotImplemented
    result = function(*bare, **options)
    start, places = 0, []
    for tensor in every:
        own = torch.arange(start, start + tensor.numel(), device=tensor.device)
        places.append(own.reshape(tensor.shape))
        start += tensor.numel()

    def take(tensor: Any, at: Any) -> Any:
        at = at.cpu().numpy()
        return _mark(
            tensor, tuple(part.map_fields(lambda field: field[at]) for part in joined.parts)
        )

    if name in _KEEPING:
        if not isinstance(result, torch.Tensor) or not result.is_floating_point():
            return NotImplemented
        return take(result, places[0])
    first = places[0] if isinstance(args[0], torch.Tensor) else places
    moved = function(first, *bare[1:], **options)
    if isinstance(result, torch.Tensor):
        return take(result, moved)
    return type(result)(take(tensor, own) for tensor, own in zip(result, moved))


def _follow_linear(
    name: str, function: Any, args: Any, bare: Any, options: Any, marked: Any
) -> Any:
    """A linear function of noise."""
    array = _array(marked)
    axis = options.get("dim", args[1] if len(args) > 1 else None)
    axis = axis[0] if isinstance(axis, (list, tuple)) and len(axis) == 1 else axis
    is_reduced = name in ("sum", "mean") and not set(options) - {"dim", "keepdim"}
    if is_reduced and (axis is None or isinstance(axis, int)) and len(args) <= 2:
        made = marks.array_of(noise.sum_noise(array, axis, keepdims=bool(options.get("keepdim"))))
        if isinstance(made, noise.NoiseArray):
            count = array.size if axis is None else array.shape[axis]
            made = made.times(1.0 / count) if name == "mean" else made
            return _mark(function(*bare, **options), made.parts)
    place = next((at for at, value in enumerate(args) if value is marked), None)
    if place is None or array.size > noise.MOST_DRAWS:
        return NotImplemented

    def linear(values: Any) -> Any:
        tensor = torch.as_tensor(np.asarray(values, dtype=float)).to(bare[place])
        return numbers(function(*bare[:place], tensor, *bare[place + 1 :], **options))

    made = marks.array_of(noise.apply_linear(linear, array))
    return _mark(function(*bare, **options), made.parts)
