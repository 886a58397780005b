"""What counts as a generator, and what is told before any training."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from dpaudit.errors import RegistryError
from dpaudit.plugins.named import FunctionGenerator, as_generator
from dpaudit.plugins.protocols import Generator, Model

if TYPE_CHECKING:
    from typing import Self

TABLE = pd.DataFrame({"a": range(5)})


def function(data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
    return data.sample(n_rows, replace=True, random_state=seed)


class Callable:
    def __call__(self, data: pd.DataFrame, n_rows: int, seed: int) -> pd.DataFrame:
        return function(data, n_rows, seed)


class Fitted:
    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return TABLE.head(n)


class Blind:
    """A model without `sample`."""


class OtherSample:
    def sample(self, rows: int) -> pd.DataFrame:
        return TABLE.head(rows)


class Annotated:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Fitted:
        return Fitted()


class ByProtocol:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Model:
        return Fitted()


class ByAny:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return Fitted()


class ByObject:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> object:
        return Fitted()


class Unannotated:
    def fit(self, data, *, seed):
        model = Fitted()
        return model


class Lambda:
    fit = lambda self, data, *, seed: Fitted()  # noqa: E731


class Itself(Fitted):
    def fit(self, data, seed=None):
        return self


class InPlace(Fitted):
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> None:
        self.data = data


class Either:
    def fit(self, data, *, seed):
        return self if len(data) == 0 else Fitted()


class ForCheckers(Fitted):
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Self:
        return self


class Anything(Fitted):
    def fit(self, *args, **kwargs):
        return self


@pytest.mark.parametrize(
    "generator",
    [
        Annotated(),
        ByProtocol(),
        ByAny(),
        ByObject(),
        Unannotated(),
        Lambda(),
        Itself(),
        InPlace(),
        Either(),
        ForCheckers(),
        Anything(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_instance_that_can_be_played_is_taken_as_it_is(generator: object) -> None:
    assert as_generator(generator, name="it") is generator


@pytest.mark.parametrize(
    "value",
    [
        function,
        lambda data, n, seed: function(data, n, seed),
        Callable(),
        functools.partial(function),
        lambda *args: function(*args),
    ],
)
def test_a_function_becomes_a_generator(value: object) -> None:
    generator = as_generator(value, name="it")
    assert isinstance(generator, FunctionGenerator)
    assert isinstance(generator, Generator)
    model = generator.fit(TABLE, seed=1)
    first = model.sample(4, seed=2)
    assert len(first) == 4
    pd.testing.assert_frame_equal(first, generator.fit(TABLE, seed=1).sample(4, seed=2))


def test_a_functions_seed_depends_on_both_seeds() -> None:
    seen = as_generator(lambda data, n, seed: seed, name="it")
    seeds = {seen.fit(TABLE, seed=f).sample(1, seed=s) for f in range(20) for s in range(20)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**32 for seed in seeds)
    unseeded = [seen.fit(TABLE, seed=None).sample(1, seed=None) for _ in range(3)]
    assert len(set(unseeded)) == 3


class NoFit:
    pass


class FitIsData:
    fit = 5


class NoSeed(Fitted):
    def fit(self, data):
        return self


class MoreNeeded(Fitted):
    def fit(self, data, columns, *, seed):
        return self


class ReturnsBlind:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Blind:
        return Blind()


class ReturnsSelf:
    def fit(self, data, *, seed):
        if len(data) == 0:
            return None
        return self


class ReturnsNothing:
    def fit(self, data, *, seed):
        self.data = data


class AnnotatedNone:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> None:
        self.data = data


class OddSample:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> OtherSample:
        return OtherSample()


class SampleIsData:
    sample = 7

    def fit(self, data, *, seed):
        return self


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (NoFit(), "has no method fit"),
        (FitIsData(), "has no method fit"),
        (3, "has no method fit"),
        (Itself, "is a class: hand in an instance"),
        (NoSeed(), r"fit must accept \(data, \*, seed\), it is fit\(data\)"),
        (MoreNeeded(), r"fit must accept \(data, \*, seed\)"),
        (ReturnsBlind(), "fit returns Blind, which lacks the method sample"),
        (ReturnsSelf(), "fit returns ReturnsSelf, which lacks the method sample"),
        (ReturnsNothing(), "fit returns ReturnsNothing, which lacks"),
        (AnnotatedNone(), "fit returns AnnotatedNone, which lacks"),
        (SampleIsData(), "fit returns SampleIsData, which lacks"),
        (OddSample(), r"sample must accept \(n, \*, seed\), OtherSample has sample\(self, rows"),
        (lambda data: data, r"must accept \(data, n_rows, seed\), it is it\(data\)"),
        (lambda data, n, *, seed: data, r"must accept \(data, n_rows, seed\)"),
    ],
)
def test_what_cannot_be_played_is_refused_before_training(value: object, says: str) -> None:
    with pytest.raises(RegistryError, match=says) as caught:
        as_generator(value, name="it")
    assert str(caught.value).startswith("it")
    assert "\n" not in str(caught.value)
