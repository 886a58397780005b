"""Uniform draws of torch, one per record: comparisons with them are followed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import marks
from ..channel import Site, site
from .numpy_hook import coins_of_records

_COMPARED = {
    **dict.fromkeys(("lt", "__lt__", "le", "__le__", "less"), "<"),
    **dict.fromkeys(("gt", "__gt__", "ge", "__ge__", "greater"), ">"),
}
_SAME = {"to", "float", "double", "cpu", "cuda", "contiguous", "detach", "clone"}
_SHAPED = {"view", "reshape", "flatten", "squeeze", "unsqueeze"}


def coins(torch: Any, where: Site, shape: Any, dtype: Any) -> Any:
    """Coins of the records as a tensor; None if the draws are not one per record."""
    made = _made(where, shape)
    if made is None:
        return None
    tensor = torch.as_tensor(np.array(marks.plain(made))).to(dtype or torch.get_default_dtype())
    return _marked(torch, tensor, made)


def bits(torch: Any, where: Site, chances: Any, shape: Any) -> Any:
    """Bits of the records with these probabilities of 1; None if not one per record."""
    made = _made(where, shape)
    return None if made is None else torch.as_tensor(np.array(made < chances))


def _made(where: Site, shape: Any) -> Any:
    world = marks.world
    place = None if world.kept is None else world.of_records(where, shape)
    if place is None:
        return None
    return coins_of_records(world.stream(where, shape, records=True).random, where, shape, place)


def _marked(torch: Any, tensor: Any, made: Any) -> Any:
    found = tensor.as_subclass(_kind(torch))
    found.dpaudit_coins = made
    return found


_kinds: dict[Any, Any] = {}


def _kind(torch: Any) -> Any:
    """The class of these tensors: its base class exists only if torch does."""
    if torch not in _kinds:

        class CoinTensor(torch.Tensor):  # type: ignore[misc]
            """Coins of the records."""

            dpaudit_coins: Any = None

            @classmethod
            def __torch_function__(
                cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return _operated(torch, function, args, kwargs or {})

        _kinds[torch] = CoinTensor
    return _kinds[torch]


def _operated(torch: Any, function: Any, args: Any, kwargs: Any) -> Any:
    """Comparisons and functions that move elements are followed; anything else is a use."""

    def bare(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(bare(one) for one in value)
        return value.as_subclass(torch.Tensor) if isinstance(value, _kind(torch)) else value

    name, first = function.__name__, args[0]
    made = getattr(first, "dpaudit_coins", None)
    plain = [bare(one) for one in args]
    options = {key: bare(one) for key, one in kwargs.items()}
    if made is not None and name in _COMPARED and len(args) == 2 and marks.world.hears:
        bound = args[1].detach().cpu().numpy() if isinstance(args[1], torch.Tensor) else args[1]
        outcome = made < bound if _COMPARED[name] == "<" else made > bound
        return torch.as_tensor(np.array(outcome)).to(plain[0].device)
    found = function(*plain, **options)
    if made is not None and name in _SAME and found.is_floating_point():
        return _marked(torch, found, made)
    if made is not None and name in _SHAPED:
        return _marked(torch, found, made.reshape(tuple(found.shape)))
    if name not in ("__get__", "size", "dim", "numel", "__len__") and marks.world.hears:
        for one in (*args, *kwargs.values()):
            if getattr(one, "dpaudit_coins", None) is not None:
                marks.unmarked(one.dpaudit_coins, site())
    return found
