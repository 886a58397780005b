"""Makes a `Generator` of the caller's object, or explains before any training why it cannot."""

from __future__ import annotations

import ast
import inspect
import textwrap
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpaudit.errors import RegistryError, TrialError
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import Generator, Model, is_seedable
from dpaudit.seeds import rng_of

TableFunction = Callable[[pd.DataFrame, int, int], pd.DataFrame]


@dataclass(frozen=True)
class FunctionModel:
    """A table and the function that turns it into synthetic rows."""

    function: TableFunction
    data: pd.DataFrame
    fit_seed: int | None

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Calls the function with the table, `n` and a seed derived from both seeds."""
        rng = rng_of(self.fit_seed, f"function/{seed}")
        return self.function(self.data, n, int(rng.integers(2**32)))


@dataclass(frozen=True)
class FunctionGenerator:
    """A bare function `f(data, n_rows, seed) -> DataFrame` as a generator."""

    function: TableFunction

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> FunctionModel:
        """Keeps the table; the function does all its work when it is sampled."""
        return FunctionModel(self.function, data, seed)


def as_generator(value: object, *, name: str) -> Generator:
    """Turns an instance or a bare function into a generator that can be audited.

    Args:
        value: An object with `fit`, or a function `f(data, n_rows, seed)`.
        name: Name for messages.

    Returns:
        A generator.

    Raises:
        RegistryError: If it has no `fit`, its `fit` takes no `seed`, the class that `fit` returns
            is known to have no `sample`, or reading `seedable` raises.
    """
    if inspect.isclass(value):
        raise RegistryError(f"{name} is a class: hand in an instance of it")
    fit = getattr(value, "fit", None)
    if not callable(fit):
        if callable(value):
            if not _accepts(value, object(), 1, 0):
                raise RegistryError(
                    f"{name}: a generator function must accept (data, n_rows, seed), "
                    f"it is {name}{inspect.signature(value)}"
                )
            return FunctionGenerator(value)
        raise RegistryError(
            f"{name} has no method fit(data, *, seed): a generator is a class with fit, or a "
            "function f(data, n_rows, seed) that returns a table"
        )
    if not _accepts(fit, object(), seed=0):
        raise RegistryError(
            f"{name}: fit must accept (data, *, seed), it is fit{inspect.signature(fit)}"
        )
    returned = _returned_class(value)
    if returned is not None:
        sample = getattr(returned, "sample", None)
        if not callable(sample):
            raise RegistryError(
                f"{name}: fit returns {returned.__name__}, which lacks the method "
                "sample(n, *, seed); add it"
            )
        if not _accepts(sample, object(), 1, seed=0):
            raise RegistryError(
                f"{name}: sample must accept (n, *, seed), "
                f"{returned.__name__} has sample{inspect.signature(sample)}"
            )
    is_seedable(value)  # needed at the end of a run; errors are raised now
    return typing.cast(Generator, value)


def train(generator: Generator, data: pd.DataFrame, *, seed: int | None) -> Model:
    """Trains on a copy of a table; a generator that trains in place is its own model.

    Args:
        generator: The generator.
        data: The table; changes that the generator makes stay in its copy.
        seed: As for `fit`.

    Returns:
        What `fit` returned, or the generator if that was None.

    Raises:
        TrialError: If the model has no method `sample`.
    """
    fitted = generator.fit(data.copy(), seed=seed)
    model: object = generator if fitted is None else fitted
    if not hasattr(model, "sample"):
        raise TrialError(f"fit returned {type(model).__name__}, which has no method sample")
    return typing.cast(Model, model)


def check_table(generator: Generator, data: pd.DataFrame) -> None:
    """Asks a generator, before any training, whether it accepts a table.

    Args:
        generator: The generator; one without a method `check` accepts every table.
        data: The table.

    Raises:
        InputError: If the generator refuses; a `RegistryError` if its `check` is not a method or
            fails otherwise.
    """
    name = type(generator).__name__
    with refusing(f"{name}: its check raises"):
        check = getattr(generator, "check", None)
        if check is not None and not callable(check):
            raise RegistryError(f"{name}: its check is not a method check(data): make it one")
        if check is not None:
            check(data)


def _accepts(function: Callable[..., Any], *args: object, **kwargs: object) -> bool:
    """Whether a function can be called with these arguments, by its signature."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature, which the first trial will test
        return True
    return True


def _returned_class(generator: object) -> type | None:
    """The class of the model, if it can be known without training, else None.

    It is the return annotation of `fit`; without an annotation, the generator's own class if `fit`
    only returns `self`, as scikit-learn's estimators do.
    """
    own_class = type(generator)
    fit = inspect.unwrap(own_class.fit) if hasattr(own_class, "fit") else None
    if not inspect.isfunction(fit):
        return None
    try:
        annotated = typing.get_type_hints(fit).get("return")
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only
        annotated = None
    if annotated is type(None) or annotated is getattr(typing, "Self", None):
        return own_class
    if inspect.isclass(annotated) and annotated not in (object, typing.Any):
        return annotated
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fit)))
    except (OSError, SyntaxError, TypeError):  # no source at hand
        return None
    if not isinstance(tree.body[0], ast.FunctionDef):
        return None  # a lambda has no `return`
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    if all(value is None or ast.unparse(value) in ("self", "None") for value in returns):
        return own_class
    return None
