"""Hooks of OpenDP, diffprivlib, scipy.stats and named samplers, on fakes of these."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.replaying.listening import coins, marks, noise, scores
from dpaudit.replaying.listening import world as listening
from dpaudit.replaying.listening.hooks import (
    diffprivlib_hook,
    named_hook,
    opendp_hook,
    scipy_hook,
    steps,
)

HERE = (__file__, 1, "")


class Asked(listening.ListeningWorld):
    """A world that answers its own questions, and keeps them."""

    def __init__(self) -> None:
        super().__init__("in", None)
        self.active = True
        self.steps: list[dict[str, Any]] = []
        self.told: list[str] = []

    def ask(self, kind: str, where: Any, **fields: Any) -> dict[str, Any]:
        self.steps.append({"kind": kind, "site": where, **fields})
        if kind == "choose":
            return {"places": np.zeros(fields["count"], dtype=int)}
        return {"value": fields.get("before"), "equal": True}

    def tell(self, kind: str, where: Any, text: str) -> None:
        self.told.append(text)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Asked:
    world = Asked()
    monkeypatch.setattr(marks, "world", world, raising=False)
    return world


def added(value: Any, law: str, **parameters: Any) -> Any:
    return steps.add_noise(value, law, library=lambda given: given, **parameters)


def test_a_mechanism_of_nothing_is_noise(heard: Asked) -> None:
    drawn = added(0.0, "laplace", scale=2.0)
    assert isinstance(drawn, noise.NoiseNumber)
    assert not heard.steps
    assert isinstance(5 + drawn, scores.ScoreNumber)
    (step,) = heard.steps
    assert step["parts"][0]["law"] == "laplace"
    assert step["parts"][0]["scale"] == 2.0


def test_a_mechanism_of_a_value_is_an_answer(heard: Asked) -> None:
    answer = added([3, 0, 4], "discrete_laplace", scale=2.0)
    assert isinstance(answer, scores.ScoreArray)
    assert heard.steps[0]["before"].tolist() == [3, 0, 4]
    assert answer.dtype.kind == "i"


def test_noise_among_answers_is_an_answer_to_nothing(heard: Asked) -> None:
    drawn = [added(one, "gaussian", scale=2.0) for one in (3.0, 0.0)]
    together = marks.combine([*drawn, 7.0])
    assert isinstance(together, scores.ScoreArray)
    assert together.ids.tolist() == [0, 1, -1]
    assert [step["before"].tolist() for step in heard.steps] == [3.0, 0.0]
    heard.release(together.ids)
    assert heard.are_released(together.ids)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("value", [0.0, 1.0], ids=["noise", "answers"])
def test_a_sum_over_a_table_is_numpys(heard: Asked, value: float, axis: int | None) -> None:
    table = added(np.full((2, 3), value), "gaussian", scale=2.0)
    found = np.sum(table, axis=axis)
    assert marks.plain_array(found) == pytest.approx(marks.plain_array(table).sum(axis=axis))


def test_numpys_own_floats_leave_sums_to_marked_numbers(heard: Asked) -> None:
    answer = np.float64(3.0) + added(0.0, "gaussian", scale=1.0)
    assert isinstance(answer, scores.ScoreNumber)
    assert type(np.round(answer, 1)) is np.float64
    assert heard.are_released(np.array([0]))


@pytest.mark.parametrize(
    ("weights", "law"),
    [(steps.exponential_weights, stats.gumbel_r), (steps.flip_weights, stats.expon)],
    ids=["gumbel", "exponential"],
)
def test_weights_are_those_of_noisy_max(weights: Any, law: Any) -> None:
    given = np.array([0.0, 1.0, -2.0, 0.7])
    found = weights(given)
    drawn = law.rvs(size=(200_000, 4), random_state=np.random.default_rng(3))
    shares = np.bincount(np.argmax(given + drawn, axis=1), minlength=4) / 200_000
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx(shares, abs=0.006)


@pytest.mark.parametrize("law", steps.DRAWS)
def test_every_law_can_be_drawn(heard: Asked, law: str) -> None:
    shape = {"geometric": 0.3, "bounded_laplace": -1.5}.get(law, 1.0)
    drawn = added(np.zeros(5), law, scale=2.0, shape=shape, other=0.5)
    if law == "bounded_laplace":
        assert np.all((marks.plain_array(drawn) >= -1.5) & (marks.plain_array(drawn) <= 0.5))
    assert isinstance(drawn, noise.NoiseArray)
    assert drawn.shape == (5,)


def test_one_coin_among_several_limits_is_one_choice(heard: Asked) -> None:
    cumulative = np.array([0.2, 0.7, 1.0])
    heard.asked = {(__file__, line) for line in range(1000)}
    under = coins.coin(0.9, HERE) <= cumulative
    chosen = [step for step in heard.steps if step["kind"] == "choose"]
    assert chosen[0]["weights"] == pytest.approx([0.2, 0.5, 0.3, 0.0])
    assert under.tolist() == [True, True, True]


# -- OpenDP --------------------------------------------------------------------------------------


class Measurement(SimpleNamespace):
    """As OpenDP's: knows nothing of what it does that Python could see."""

    def __call__(self, value: Any) -> Any:
        return self.core.measurement_invoke(self, value)


@pytest.fixture
def opendp() -> Any:
    """OpenDP, as far as the hook sees it."""
    core, measurements, combinators = (
        ModuleType(f"opendp.{name}") for name in ("core", "measurements", "combinators")
    )

    def measurement_invoke(this: Any, arg: Any) -> Any:
        return this.function(arg)

    def queryable_eval(queryable: Any, query: Any) -> Any:
        return query.function(queryable.given)

    class Queryable(SimpleNamespace):
        def __call__(self, query: Any) -> Any:
            return core.queryable_eval(self, query)

    def make_adaptive_composition(input_domain: Any) -> Any:
        return Measurement(core=core, function=lambda value: Queryable(given=value))

    def make_laplace(input_domain: Any, input_metric: Any, scale: float, k: Any = None) -> Any:
        return Measurement(core=core, function=lambda value: value)

    def make_unheard_of(input_domain: Any) -> Any:
        return Measurement(core=core, function=lambda value: value)

    def make_report_noisy_max_gumbel(
        input_domain: Any, input_metric: Any, scale: float, optimize: str
    ) -> Any:
        return Measurement(core=core, function=lambda value: 0)

    def make_randomized_response_bool(prob: float) -> Any:
        return Measurement(core=core, function=lambda value: value)

    def make_chain_mt(measurement1: Any, transformation0: Any) -> Any:
        return Measurement(
            core=core, function=lambda value: measurement1.function(transformation0(value))
        )

    def make_chain_pm(postprocess1: Any, measurement0: Any) -> Any:
        return Measurement(
            core=core, function=lambda value: postprocess1(measurement0.function(value))
        )

    for module, made in (
        (core, [measurement_invoke, queryable_eval]),
        (
            measurements,
            [
                make_laplace,
                make_unheard_of,
                make_report_noisy_max_gumbel,
                make_randomized_response_bool,
            ],
        ),
        (combinators, [make_chain_mt, make_chain_pm, make_adaptive_composition]),
    ):
        for function in made:
            setattr(module, function.__name__, function)
        opendp_hook.install(module)
    return SimpleNamespace(m=measurements, c=combinators)


def test_opendps_noise_and_answers(heard: Asked, opendp: Any) -> None:
    laplace = opendp.m.make_laplace("domain", "metric", scale=2.0)
    assert isinstance(laplace(0.0), noise.NoiseNumber)
    assert isinstance(laplace(7.5), scores.ScoreNumber)
    laplace([3, 4])
    assert [step["parts"][0]["law"] for step in heard.steps] == ["laplace", "discrete_laplace"]
    assert heard.steps[1]["before"].tolist() == [3, 4]
    assert not heard.told


def test_noise_that_opendp_gets_is_not_reported_as_drawn_by_this_line(
    heard: Asked, opendp: Any
) -> None:
    heard.active = True
    drawn = opendp.m.make_laplace("domain", "metric", scale=2.0)(0.0)
    before = len(heard._log)
    opendp.m.make_laplace("domain", "metric", scale=1.0)(drawn)
    assert "draw" not in [note[0] for note in heard._log[before:]]


def test_opendps_chains_are_answers_to_what_the_transformation_gives(
    heard: Asked, opendp: Any
) -> None:
    laplace = opendp.m.make_laplace("domain", "metric", 2.0)
    chain = opendp.c.make_chain_pm(lambda value: value * 2, opendp.c.make_chain_mt(laplace, len))
    assert chain(["a", "b", "c"]) == 6
    assert heard.steps[0]["before"] == 3
    assert heard.are_released(np.array([0])), (
        "postprocessing that cannot be followed uses the answer"
    )


def test_opendps_queryables_answer_about_the_data_that_they_were_made_of(
    heard: Asked, opendp: Any
) -> None:
    queryable = opendp.c.make_adaptive_composition("domain")([3, 4])
    queryable(opendp.m.make_laplace("domain", "metric", 2.0))
    assert heard.steps[0]["before"].tolist() == [3, 4]
    assert not heard.told


def test_opendps_selections(heard: Asked, opendp: Any) -> None:
    opendp.m.make_report_noisy_max_gumbel("domain", "metric", 2.0, "max")([1, 3])
    assert heard.steps[0]["weights"] == pytest.approx(steps.exponential_weights([0.5, 1.5]))
    assert opendp.m.make_randomized_response_bool(0.75)(True) is False  # the first place
    assert heard.steps[1]["weights"].tolist() == [0.25, 0.75]


def test_unknown_measurements_of_opendp_are_told_of(heard: Asked, opendp: Any) -> None:
    assert opendp.m.make_unheard_of("domain")(5) == 5
    assert heard.told == ["an OpenDP measurement that replay does not know: unheard_of"]
    heard.active = False
    assert opendp.m.make_laplace("domain", "metric", 2.0)(7.0) == 7.0, (
        "outside of a fit nothing is heard"
    )


# -- diffprivlib ---------------------------------------------------------------------------------


class Laplace:
    """As diffprivlib's."""

    _rng = None

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def _check_all(self, value: Any) -> None:
        if not isinstance(value, float | int):
            raise TypeError("Value to be randomised must be a number")

    def randomise(self, value: Any) -> Any:
        return value


class Snapping(Laplace):
    """As diffprivlib's."""

    def randomise(self, value: Any) -> Any:
        return value


class Exponential(Laplace):
    """As diffprivlib's."""

    def _check_all(self, value: Any) -> None:
        pass

    def randomise(self, value: Any = None) -> Any:
        return value


def test_diffprivlib(heard: Asked) -> None:
    library = SimpleNamespace(Laplace=Laplace, Snapping=Snapping, Exponential=Exponential)
    diffprivlib_hook.install(library)
    laplace = Laplace(epsilon=0.5, delta=0.0, sensitivity=1.0)
    assert isinstance(laplace.randomise(3.0), scores.ScoreNumber)
    assert heard.steps[0]["parts"][0]["scale"] == 2.0
    with pytest.raises(TypeError, match="must be a number"):
        laplace.randomise("text")
    assert Laplace(epsilon=0.5, delta=0.0, sensitivity=0.0).randomise(3.0) == 3.0
    picked = Exponential(_probabilities=np.array([0.3, 1.0]), candidates=["a", "b"]).randomise()
    assert picked == "a"
    assert heard.steps[-1]["weights"] == pytest.approx([0.3, 0.7])
    Snapping().randomise(3.0)
    assert heard.told == ["diffprivlib's Snapping mechanism, whose law replay does not know"]


# -- scipy.stats and named samplers --------------------------------------------------------------


def test_scipys_samplers(heard: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    generic: Any = stats.rv_continuous.__mro__[1]
    monkeypatch.setattr(generic, "rvs", generic.rvs)
    for name in ("ppf", "isf"):
        monkeypatch.setattr(stats.rv_continuous, name, getattr(stats.rv_continuous, name))
    scipy_hook.install(stats)
    assert isinstance(stats.laplace.rvs(loc=4.0, scale=2.0), scores.ScoreNumber)
    drawn = stats.norm(scale=2.0).rvs(4, random_state=3)
    assert isinstance(drawn, noise.NoiseArray)
    assert drawn.parts[0].seed == "3"
    discrete: Any = stats.dlaplace.rvs(0.5, loc=[1, 2])
    assert discrete.dtype.kind == "i"
    assert heard.steps[-1]["parts"][0]["scale"].tolist() == [2.0, 2.0]
    for name in ("gumbel_r", "gumbel_l", "logistic", "expon"):
        assert isinstance(getattr(stats, name).rvs(size=3), noise.NoiseArray)
    heard.is_equal = lambda kind, where, value: False  # type: ignore[method-assign]
    stats.cauchy.rvs(loc=4.0)
    assert heard.told == ["scipy's cauchy, whose law replay does not know, around a value"]


def test_samplers_that_the_user_names(heard: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("mypkg_noise")

    def draw(b: float, size: int) -> Any:
        return np.ones(size) * b

    def noisy(x: float, scale: float = 3.0) -> float:
        return x + scale

    module.draw, module.noisy, module.also = draw, noisy, draw  # type: ignore[attr-defined]
    samplers = [
        {"function": "mypkg_noise:draw", "law": "laplace", "scale": "b"},
        {"function": "mypkg_noise:noisy", "law": "gaussian", "scale": "scale", "loc": "x"},
        {"function": "elsewhere:draw", "law": "laplace"},
    ]
    monkeypatch.setenv("DPAUDIT_LISTEN_SAMPLERS", json.dumps(samplers))
    importer = ModuleType("mypkg_importer")
    importer.mine = draw  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mypkg_importer", importer)
    named_hook.install(module)
    drawn = importer.mine(2.0, 4)
    assert isinstance(drawn, noise.NoiseArray)
    assert drawn.parts[0].scale.tolist() == [2.0] * 4
    assert isinstance(module.noisy(5.0), scores.ScoreNumber)
    assert heard.steps[0]["parts"][0]["scale"] == 3.0
