"""Coins of torch, shared by both worlds; comparisons of those of the records are followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import choices, coins, marks
from ..channel import Site, site
from . import steps
from .numpy_hook import coins_of_records, shared_order

torch: Any
CoinTensor: Any = None
"""The class of tensors of coins: its base class exists only if torch does."""


def install(library: Any) -> None:
    """Replaces the functions that draw coins, in the module and on tensors."""
    global torch, CoinTensor
    torch = library
    CoinTensor = tensor_class(_operate, dpaudit_coins=None)
    for name, tossed in (
        ("rand", _rand),
        ("rand_like", _rand_like),
        ("randperm", _randperm),
        ("bernoulli", _bernoulli),
        ("multinomial", _multinomial),
        ("randint", _draw_in_kernel),
        ("randint_like", _draw_in_kernel),
    ):
        setattr(library, name, _intercept(getattr(library, name), tossed))
    library.Tensor.multinomial = library.multinomial
    for owner, names in (
        (library.Tensor, ("uniform_", "random_", "bernoulli_")),
        (library.nn.functional, ("dropout", "alpha_dropout", "feature_alpha_dropout")),
    ):
        for name in names:
            setattr(owner, name, _intercept(getattr(owner, name), _draw_in_kernel))


def _intercept(plain: Callable[..., Any], tossed: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws coins in a lockstep fit; the plain one draws in a natural one."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if marks.world.natural:
            return plain(*args, **kwargs)
        return tossed(plain, *args, **kwargs)

    return steps.intercept(plain, wrapper)


def tensor_class(operate: Callable[..., Any], **attributes: Any) -> Any:
    """A class of tensors of which a function gives the results of torch's functions."""

    def dispatch(cls: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return operate(function, args, kwargs or {})

    fields = {"__torch_function__": classmethod(dispatch), **attributes}
    return type("MarkedTensor", (torch.Tensor,), fields)


def tensors(values: Any) -> Any:
    """The tensors among values, and in lists of these."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


def without_marks(value: Any, kind: Any) -> Any:
    """The value, or values in a list, in which tensors of a kind are plain ones."""
    if isinstance(value, (list, tuple)) and any(True for _ in tensors(value)):
        return type(value)(without_marks(part, kind) for part in value)
    return value.as_subclass(torch.Tensor) if isinstance(value, kind) else value


def shape_of(size: Any) -> tuple[int, ...]:
    """The shape that a function of torch was given, as one argument or several."""
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    return tuple(int(length) for length in size)


def as_tensor(values: Any, dtype: Any, device: Any) -> Any:
    """Numbers as a tensor, on the device that was asked for or else the default one."""
    where = torch.empty(0).device if device is None else device
    return torch.as_tensor(marks.without_marks(values)).to(
        device=where, dtype=dtype or torch.get_default_dtype()
    )


def numbers(value: Any) -> Any:
    """A tensor or a number as a numpy value."""
    if isinstance(value, torch.Tensor):
        return value.as_subclass(torch.Tensor).detach().cpu().double().numpy()
    return np.asarray(value, dtype=float)


def _draw_in_kernel(plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Coins from torch's own state, which is equal in both worlds."""
    where = site()
    marks.world.note("draw", where, plain.__name__)
    for value in (*args[1:], *kwargs.values()):
        if isinstance(value, (int, float)) or torch.is_tensor(value):
            marks.world.is_equal("spend", where, numbers(value))
    return plain(*args, **kwargs)


def _rand(plain: Any, *size: Any, **kwargs: Any) -> Any:
    shape = shape_of(kwargs.get("size", size))
    return _coin_tensor(shape, site(), kwargs.get("dtype"), kwargs.get("device"))


def _rand_like(plain: Any, like: Any, **kwargs: Any) -> Any:
    dtype, device = kwargs.get("dtype") or like.dtype, kwargs.get("device") or like.device
    return _coin_tensor(tuple(like.shape), site(), dtype, device)


def _coin_tensor(shape: Any, where: Site, dtype: Any, device: Any = None) -> Any:
    world = marks.world
    tensor = _record_tensor(where, shape, dtype)
    if tensor is not None:
        return tensor if device is None else tensor.to(device)
    place = world.shared_row(where, shape)
    drawn = steps.draw_for_records(world.stream(where, shape).random, shape, place)
    world.note("draw", where, "rand", None if place is not None else shape)
    return as_tensor(
        drawn if world.order.edge is None else np.full(np.shape(drawn), world.order.edge),
        dtype,
        device,
    )


def _randperm(plain: Any, n: int, **kwargs: Any) -> Any:
    where = site()
    order = shared_order(where, int(n), marks.world.stream(where, int(n)))
    return as_tensor(order, kwargs.get("dtype") or torch.int64, kwargs.get("device"))


def _bernoulli(plain: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
    """Coins with each element's probability: uniform draws that are compared with it."""
    where = site()
    p = numbers(args[0] if args and isinstance(args[0], float) else given)
    shape, out = tuple(given.shape), kwargs.get("out")
    p = np.broadcast_to(p, shape)
    bits = _record_bits(where, p, shape)
    if bits is None:
        made = coins.coin(np.asarray(marks.world.stream(where, shape).random(shape)), where)
        bits = torch.as_tensor(np.asarray(choices.toss(made, p, True, where), dtype=float))
    tensor = bits.to(given)
    return tensor if out is None else out.copy_(tensor)


def _multinomial(
    plain: Any, given: Any, num_samples: int, replacement: bool = False, **kwargs: Any
) -> Any:
    """Places drawn with known probabilities: a selection if these depend on the record."""
    where, weights = site(), numbers(given)
    if num_samples > 1 and not replacement:
        marks.world.is_equal("spend", where, weights)
        marks.world.note("draw", where, "multinomial")
        return plain(given, num_samples, replacement, **kwargs)
    places = np.stack(
        [choices.draw_places(row, (num_samples,), where) for row in np.atleast_2d(weights)]
    )
    tensor = torch.as_tensor(places if weights.ndim == 2 else places[0]).to(given.device)
    out = kwargs.get("out")
    return tensor if out is None else out.copy_(tensor)


# -- coins of the records --------------------------------------------------------------------------

_COMPARED = {
    **dict.fromkeys(("lt", "__lt__", "le", "__le__", "less"), "<"),
    **dict.fromkeys(("gt", "__gt__", "ge", "__ge__", "greater"), ">"),
}
_SAME = {"to", "float", "double", "cpu", "cuda", "contiguous", "detach", "clone"}
_SHAPED = {"view", "reshape", "flatten", "squeeze", "unsqueeze"}


def _record_tensor(where: Site, shape: Any, dtype: Any) -> Any:
    """Coins of the records as a tensor; None if the draws are not one per record."""
    made = _record_coins(where, shape)
    if made is None:
        return None
    tensor = torch.as_tensor(np.array(marks.plain_array(made))).to(
        dtype or torch.get_default_dtype()
    )
    return _mark(tensor, made)


def _record_bits(where: Site, chances: Any, shape: Any) -> Any:
    """Bits of the records with these probabilities of 1; None if not one per record."""
    made = _record_coins(where, shape)
    return None if made is None else torch.as_tensor(np.array(made < chances))


def _record_coins(where: Site, shape: Any) -> Any:
    world = marks.world
    place = None if world.order.kept is None else world.record_place(where, shape)
    if place is None:
        return None
    return coins_of_records(world.stream(where, shape).random, where, shape, place)


def _mark(tensor: Any, made: Any) -> Any:
    view = tensor.as_subclass(CoinTensor)
    view.dpaudit_coins = made
    return view


def _operate(function: Any, args: Any, kwargs: Any) -> Any:
    """Comparisons and functions that move elements are followed; anything else is a use."""
    name, first = function.__name__, args[0]
    made = getattr(first, "dpaudit_coins", None)
    plain = [without_marks(value, CoinTensor) for value in args]
    options = {key: without_marks(value, CoinTensor) for key, value in kwargs.items()}
    if made is not None and name in _COMPARED and len(args) == 2 and marks.world.hears:
        bound = args[1].detach().cpu().numpy() if isinstance(args[1], torch.Tensor) else args[1]
        outcome = made < bound if _COMPARED[name] == "<" else made > bound
        return torch.as_tensor(np.array(outcome)).to(plain[0].device)
    result = function(*plain, **options)
    if made is not None and name in _SAME and result.is_floating_point():
        return _mark(result, made)
    if made is not None and name in _SHAPED:
        return _mark(result, made.reshape(tuple(result.shape)))
    if name not in ("__get__", "size", "dim", "numel", "__len__") and marks.world.hears:
        for value in (*args, *kwargs.values()):
            if getattr(value, "dpaudit_coins", None) is not None:
                marks.end_marks(value.dpaudit_coins, name)
    return result
