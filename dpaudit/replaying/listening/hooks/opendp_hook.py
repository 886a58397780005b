"""OpenDP: measurements draw in Rust, so the hook records what each one does when it is made.

A measurement carries a `Release`, which makes its result from the library's result and the
argument. Chains, compositions and queryables call the releases of their parts.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional

import numpy as np

from .. import marks
from ..channel import site
from . import steps


class Native(NamedTuple):
    """The library's result, whose type counts, not its value; and how to draw it once more."""

    value: Any
    redraw: Optional[Callable[[], Any]] = None


Release = Callable[[Native, Any], Any]
"""From the library's result and the argument."""

_NOISE = re.compile(
    r"make_(base_)?(discrete_)?(?P<law>laplace|geometric|gaussian)(_cks20|_linear)?"
)
"""The measurements that add noise, of all versions."""
_SAME = (
    "make_fix_delta",
    "make_fixed_approxDP_to_approxDP",
    "make_pureDP_to_fixed_approxDP",
    "make_pureDP_to_zCDP",
    "make_zCDP_to_approxDP",
    "make_approximate",
)
_INTERACTIVE = (
    "make_sequential_composition",
    "make_adaptive_composition",
    "make_fully_adaptive_composition",
)


def install(library: Any) -> None:
    """Wraps the functions that make measurements, and those that invoke them."""
    if library.__name__ == "opendp.core":
        for name, hooked in _INVOKING.items():
            if hasattr(library, name):
                setattr(library, name, hooked(getattr(library, name)))
        return
    if library.__name__ == "opendp._internal":
        library._new_pure_function = _keep_function(library._new_pure_function)
        return
    for name, function in list(vars(library).items()):
        if name.startswith("make_") and callable(function) and name != "make_chain_tt":
            setattr(library, name, _keep_release(name, function))


def _keep_function(make: Callable[..., Any]) -> Callable[..., Any]:
    """Functions of the library that keep the Python function that they were made of.

    The library's own cannot be given a queryable, or a marked array, from Python.
    """

    @functools.wraps(make)
    def wrapper(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = make(function, *args, **kwargs)
        result.dpaudit_function = function
        return result

    return wrapper


def _keep_release(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """A constructor whose measurements carry a `Release`."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        measurement = make(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        measurement.dpaudit_name = name
        measurement.dpaudit_release = _make_release(name, bound.arguments)
        return measurement

    return wrapper


def _make_release(name: str, given: Mapping[str, Any]) -> Optional[Release]:
    """The `Release` of a measurement; None if unknown."""
    scale: Any = given.get("scale")
    noise = _NOISE.fullmatch(name)
    if noise is not None and given.get("bounds") is None:
        return _noise_release(noise["law"].replace("geometric", "laplace"), scale)
    if name == "make_noise":
        return _noise_release("gaussian" if _is_concentrated(given) else "laplace", scale)
    if name == "make_report_noisy_max_gumbel":
        sign = -1.0 if "min" in str(given["optimize"]).lower() else 1.0
        return _selection_release(steps.exponential_weights, sign, scale)
    if name == "make_noisy_max":
        weights = steps.exponential_weights if _is_concentrated(given) else steps.flip_weights
        return _selection_release(weights, -1.0 if given.get("negate") else 1.0, scale)
    if name == "make_randomized_response_bool":
        answer = _response_release([False, True], given["prob"])
        return lambda native, value: answer(native, bool(value))
    if name == "make_randomized_response":
        return _response_release(list(given["categories"]), given["prob"])
    if name in _SAME:
        return _release_of(given["measurement"])
    if name == "make_chain_mt":
        return _chain_release(given["measurement1"], given["transformation0"])
    if name in ("make_chain_pm", "make_chain_tm"):
        after = given["postprocess1"] if name == "make_chain_pm" else given["transformation1"]
        return _processed_release(after, given["measurement0"])
    if name in ("make_basic_composition", "make_composition"):
        parts = list(given["measurements"])
        known = all(_release_of(part) is not None for part in parts)
        return (lambda _, value: [part(value) for part in parts]) if known else None
    if name in _INTERACTIVE:
        return _keep_data
    if name == "make_privacy_filter":
        return _release_of(given["odometer"])
    if name in ("make_user_measurement", "make_default_user_measurement"):
        return lambda _, value: given["function"](value)
    return None


def _release_of(measurement: Any) -> Optional[Release]:
    release: Optional[Release] = getattr(measurement, "dpaudit_release", None)
    return release


def _is_concentrated(given: Mapping[str, Any]) -> bool:
    return "ZeroConcentrated" in str(given["output_measure"])


def _noise_release(law: str, scale: Any) -> Release:
    def release(native: Native, value: Any) -> Any:
        result = np.asarray(native.value)
        if result.dtype.kind not in "fiu":
            return native.value  # nothing was noised
        whole = result.dtype.kind in "iu"
        name = f"discrete_{law}" if whole else law
        noisy = steps.add_noise(
            value, name, library=lambda _: native.value, redraw=native.redraw, scale=scale
        )
        if marks.world.natural and not isinstance(noisy, (marks.Marked, marks.MarkedNumber)):
            return native.value
        return noisy.tolist() if isinstance(native.value, list) else noisy

    return release


def _selection_release(weights: Callable[[Any], Any], sign: float, scale: float) -> Release:
    def release(native: Native, value: Any) -> Any:
        if marks.world.natural:
            return native.value
        scores = sign * np.asarray(marks.plain_array(marks.combine(value)), dtype=float)
        if scale > 0:
            return steps.pick(weights(scores / scale))
        return int(np.argmax(scores))

    return release


def _response_weights(place: int, count: int, chance: float) -> Any:
    weights = np.full(count, (1.0 - chance) / (count - 1))
    weights[place] = chance
    return weights


def _response_release(categories: Any, chance: float) -> Release:
    def release(native: Native, value: Any) -> Any:
        if marks.world.natural:
            return native.value
        count = len(categories)
        if value not in categories:  # any of them answers it
            return categories[steps.pick(np.full(count, 1.0 / count))]
        return categories[steps.pick(_response_weights(categories.index(value), count, chance))]

    return release


def _chain_release(measurement: Any, transformation: Any) -> Optional[Release]:
    inner = _release_of(measurement)
    if inner is None:
        return None
    return lambda native, value: inner(native, transformation(value))


def _processed_release(after: Any, measurement: Any) -> Optional[Release]:
    if _release_of(measurement) is None:
        return None
    function = getattr(after, "dpaudit_function", after)
    return lambda _, value: function(marks.end_marks(measurement(value), "opendp"))


def _keep_data(native: Native, value: Any) -> Any:
    """A queryable remembers the data that it will be asked about."""
    native.value.dpaudit_data = value
    return native.value


def _follow_measurement(invoke: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(invoke)
    def wrapper(this: Any, arg: Any) -> Any:
        def library() -> Any:
            return invoke(this, marks.end_marks(arg, "opendp"))

        return _follow(this, arg, library, is_repeatable=True)

    return wrapper


def _follow_query(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(evaluate)
    def wrapper(queryable: Any, query: Any) -> Any:
        if not hasattr(queryable, "dpaudit_data") or not hasattr(query, "dpaudit_name"):
            if marks.world.hears_draw:
                steps.report_unfollowed("an OpenDP queryable that replay does not know")
            return evaluate(queryable, query)
        return _follow(query, queryable.dpaudit_data, lambda: evaluate(queryable, query))

    return wrapper


def _follow(
    measurement: Any, value: Any, library: Callable[[], Any], *, is_repeatable: bool = False
) -> Any:
    if not marks.world.hears_draw:
        return library()
    marks.world.count_draw(site())
    release = _release_of(measurement)
    if release is None:
        name = getattr(measurement, "dpaudit_name", "made elsewhere").replace("make_", "")
        steps.report_unfollowed(f"an OpenDP measurement that replay does not know: {name}")
        return library()

    def draw() -> Any:
        with marks.world.hushed():
            return library()

    return release(Native(draw(), draw if is_repeatable else None), value)


def _report_function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(this: Any) -> Any:
        if marks.world.hears_draw:
            steps.report_unfollowed("the function of an OpenDP measurement, called by itself")
        return function(this)

    return wrapper


_INVOKING: Dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "measurement_invoke": _follow_measurement,
    "queryable_eval": _follow_query,
    "odometer_queryable_invoke": _follow_query,
    "measurement_function": _report_function,
}
