"""Hooks of OpenDP, diffprivlib, scipy.stats and named samplers, on fakes and on OpenDP itself."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpaudit.external import worker
from dpaudit.external.session import WorkerStart
from dpaudit.model.schema import Schema
from dpaudit.plugins.named import library_named
from dpaudit.plugins.protocols import World
from dpaudit.replaying import laws
from dpaudit.replaying.listening import marks
from dpaudit.replaying.listening import world as listening
from dpaudit.replaying.listening.hooks import (
    diffprivlib_hook,
    named_hook,
    opendp_hook,
    scipy_hook,
    steps,
)
from dpaudit.replaying.lockstep import Order, Played, opened_worlds
from dpaudit.replaying.loss import loss_of
from dpaudit.seeds import Stream


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


def test_a_mechanism_of_nothing_is_noise(heard: Asked) -> None:
    noise = steps.added(0.0, "laplace", scale=2.0)
    assert isinstance(noise, marks.NoiseNumber)
    assert not heard.steps
    answer = 5 + noise
    assert isinstance(answer, marks.AnswerNumber)
    (step,) = heard.steps
    assert step["parts"][0]["law"] == "laplace"
    assert step["parts"][0]["scale"] == 2.0


def test_a_mechanism_of_a_value_is_an_answer(heard: Asked) -> None:
    answer = steps.added([3, 0, 4], "discrete_laplace", scale=2.0)
    assert isinstance(answer, marks.AnswerArray)
    assert heard.steps[0]["before"].tolist() == [3, 0, 4]
    assert answer.dtype.kind == "i"


def test_noise_among_answers_is_an_answer_to_nothing(heard: Asked) -> None:
    drawn = [steps.added(one, "gaussian", scale=2.0) for one in (3.0, 0.0)]
    together = marks.combined([*drawn, 7.0])
    assert isinstance(together, marks.AnswerArray)
    assert together.ids.tolist() == [0, 1, -1]
    assert [step["before"].tolist() for step in heard.steps] == [3.0, 0.0]
    heard.release(together.ids, ("file", 1, "function"))
    assert heard.released[:3].tolist() == [True, True, False]


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("value", [0.0, 1.0], ids=["noise", "answers"])
def test_a_sum_over_a_table_is_numpys(heard: Asked, value: float, axis: int | None) -> None:
    table = steps.added(np.full((2, 3), value), "gaussian", scale=2.0)
    found = np.sum(table, axis=axis)
    assert isinstance(found, (marks.Marked, marks.MarkedNumber))
    assert np.asarray(found) == pytest.approx(np.asarray(table).sum(axis=axis))


def test_numpys_own_floats_leave_sums_to_marked_numbers(heard: Asked) -> None:
    answer = np.float64(3.0) + steps.added(0.0, "gaussian", scale=1.0)
    assert isinstance(answer, marks.AnswerNumber)
    rounded = np.round(answer, 1)
    assert type(rounded) is np.float64
    assert heard.released[0]


@pytest.mark.parametrize(
    ("weights", "law"),
    [(steps.exponential_weights, stats.gumbel_r), (steps.flip_weights, stats.expon)],
    ids=["gumbel", "exponential"],
)
def test_weights_are_those_of_noisy_max(weights: Any, law: Any) -> None:
    scores = np.array([0.0, 1.0, -2.0, 0.7])
    found = weights(scores)
    noise = law.rvs(size=(200_000, 4), random_state=np.random.default_rng(3))
    shares = np.bincount(np.argmax(scores + noise, axis=1), minlength=4) / 200_000
    assert found.sum() == pytest.approx(1.0)
    assert found == pytest.approx(shares, abs=0.006)


@pytest.mark.parametrize("law", steps.LAWS)
def test_every_law_can_be_drawn(heard: Asked, law: str) -> None:
    shape = {"geometric": 0.3, "bounded_laplace": -1.5}.get(law, 1.0)
    noise = steps.added(np.zeros(5), law, scale=2.0, shape=shape, other=0.5)
    if law == "bounded_laplace":
        assert np.all((noise.view(np.ndarray) >= -1.5) & (noise.view(np.ndarray) <= 0.5))
    assert isinstance(noise, marks.NoiseArray)
    assert noise.shape == (5,)


def test_one_coin_among_several_limits_is_one_choice(heard: Asked) -> None:
    cumulative = np.array([0.2, 0.7, 1.0])
    heard.asked = {(__file__, line) for line in range(1000)}
    under = marks.coin(0.9, (__file__, 1, "")) <= cumulative
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
        (core, [measurement_invoke]),
        (
            measurements,
            [
                make_laplace,
                make_unheard_of,
                make_report_noisy_max_gumbel,
                make_randomized_response_bool,
            ],
        ),
        (combinators, [make_chain_mt, make_chain_pm]),
    ):
        for function in made:
            setattr(module, function.__name__, function)
        opendp_hook.install(module)
    return SimpleNamespace(m=measurements, c=combinators)


def test_opendps_noise_and_answers(heard: Asked, opendp: Any) -> None:
    laplace = opendp.m.make_laplace("domain", "metric", scale=2.0)
    assert isinstance(laplace(0.0), marks.NoiseNumber)
    assert isinstance(laplace(7.5), marks.AnswerNumber)
    laplace([3, 4])
    assert [step["parts"][0]["law"] for step in heard.steps] == ["laplace", "discrete_laplace"]
    assert heard.steps[1]["before"].tolist() == [3, 4]
    assert not heard.told


def test_opendps_chains_are_answers_to_what_the_transformation_gives(
    heard: Asked, opendp: Any
) -> None:
    laplace = opendp.m.make_laplace("domain", "metric", 2.0)
    chain = opendp.c.make_chain_pm(lambda value: value * 2, opendp.c.make_chain_mt(laplace, len))
    assert chain(["a", "b", "c"]) == 6
    assert heard.steps[0]["before"] == 3
    assert heard.released[0], "postprocessing that cannot be followed uses the answer"


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
    assert isinstance(laplace.randomise(3.0), marks.AnswerNumber)
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
    assert isinstance(stats.laplace.rvs(loc=4.0, scale=2.0), marks.AnswerNumber)
    noise = stats.norm(scale=2.0).rvs(4, random_state=3)
    assert isinstance(noise, marks.NoiseArray)
    assert noise.parts[0].seed == "3"
    discrete: Any = stats.dlaplace.rvs(0.5, loc=[1, 2])
    assert discrete.dtype.kind == "i"
    assert heard.steps[-1]["parts"][0]["scale"].tolist() == [2.0, 2.0]
    for name in ("gumbel_r", "gumbel_l", "logistic", "expon"):
        assert isinstance(getattr(stats, name).rvs(size=3), marks.NoiseArray)
    heard.equal = lambda kind, where, value: False  # type: ignore[method-assign]
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
    noise = importer.mine(2.0, 4)
    assert isinstance(noise, marks.NoiseArray)
    assert noise.parts[0].scale.tolist() == [2.0] * 4
    assert isinstance(module.noisy(5.0), marks.AnswerNumber)
    assert heard.steps[0]["parts"][0]["scale"] == 3.0


# -- the real libraries --------------------------------------------------------------------------

ADAPTER = """
    import numpy as np
    import pandas as pd
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")


    class Counts:
        claim = None

        def fit(self, data, *, seed):
            number = dp.atom_domain(T=float), dp.absolute_distance(T=float)
            counts = np.bincount(data["a"].astype(int), minlength=4)
            gaussian = dp.m.make_gaussian(*number, scale=2.0)
            noisy = counts + np.array([gaussian(0.0) for _ in range(4)])
            rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
            count = rows >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
            total = count([int(one) for one in data["a"]])
            shares = np.maximum(noisy, 0) + 1 + abs(total)
            self.p = shares / shares.sum()
            return self

        def sample(self, n, *, seed):
            return pd.DataFrame({"a": np.random.default_rng(seed).choice(4, size=n, p=self.p)})
"""


def _played(python: str, adapter: Path) -> Played:
    schema_table = pd.DataFrame({"a": np.arange(40) % 4})
    schema = Schema.infer(schema_table)
    table = schema.canonical(schema_table)
    without = schema.canonical(schema_table.drop(index=5).reset_index(drop=True))
    start = WorkerStart((python, str(worker.__file__), f"{adapter}:Counts"), schema, "{}", None)
    with opened_worlds(start) as worlds:
        worlds.rng = lambda role, number: Stream(0, "replay", role, number).rng()
        return worlds.play(
            {World.IN: table, World.OUT: without},
            rows=20,
            order=Order(0),
            places=(5,),
        )


@pytest.mark.slow
def test_opendp_itself(tmp_path: Path) -> None:
    """Needs `dpaudit env create dpmm`, which has OpenDP."""
    library = library_named("dpmm")
    assert library is not None
    built = library.environment.built
    assert built is not None, "run: dpaudit env create dpmm"
    adapter = tmp_path / "adapter.py"
    adapter.write_text(textwrap.dedent(ADAPTER), encoding="utf-8")
    played = _played(str(built.python), adapter)
    assert played.failure is None
    assert played.transcript.parting is None
    assert not played.transcript.unfollowed
    first, second = played.transcript.noisy
    assert (first.laws[0].name, first.laws[0].width) == ("gaussian", 2.0)
    assert first.before.shift.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert (second.laws[0].name, second.before.shift.tolist()) == ("discrete laplace", [1.0])


DIFFPRIVLIB = """
    import numpy as np
    import pandas as pd
    from diffprivlib import mechanisms

    LAPLACE = {"epsilon": 1.0, "sensitivity": 1.0}
    DOMAIN = {"lower": 0.0, "upper": 12.0}


    class Counts:
        claim = None

        def fit(self, data, *, seed):
            count = float(np.sum(data["a"] == 1))
            several = [
                mechanisms.LaplaceBoundedDomain(**LAPLACE, **DOMAIN),
                mechanisms.LaplaceBoundedNoise(**LAPLACE, delta=0.1),
                mechanisms.Uniform(delta=0.1, sensitivity=1.0),
                mechanisms.Staircase(**LAPLACE),
                mechanisms.Staircase(**LAPLACE, gamma=0.8),
                mechanisms.LaplaceTruncated(**LAPLACE, lower=0.0, upper=8.0),
                mechanisms.LaplaceFolded(**LAPLACE, lower=0.0, upper=1000.0),
            ]
            noisy = np.array([float(one.randomise(count)) for one in several])
            shares = np.abs(noisy) + 1
            self.p = shares / shares.sum()
            return self

        def sample(self, n, *, seed):
            rng = np.random.default_rng(seed)
            return pd.DataFrame({"a": rng.choice(len(self.p), size=n, p=self.p)})
"""


@pytest.mark.slow
def test_diffprivlib_itself(tmp_path: Path) -> None:
    """Needs the environment of the real bugs of diffprivlib 0.6.6."""
    found = sorted(Path.home().glob(".cache/dpaudit/environments/diffprivlib-0.6.6-*/bin/python"))
    assert found, "run: python -m reports.replay.run corpus"
    adapter = tmp_path / "adapter.py"
    adapter.write_text(textwrap.dedent(DIFFPRIVLIB), encoding="utf-8")
    played = _played(str(found[0]), adapter)
    assert played.failure is None
    assert played.transcript.parting is None
    assert not played.transcript.unfollowed
    domain, noise, uniform, best, own, truncated, folded = played.transcript.noisy
    assert all(step.before.shift.tolist() == [1.0] for step in played.transcript.noisy)
    inside, outside = domain.laws
    assert isinstance(inside, laws.BoundedLaplace)
    assert isinstance(outside, laws.BoundedLaplace)
    # the domain's ends stay where they are, whatever the value
    assert (float(inside.low[0]), float(inside.high[0])) == (-10.0, 2.0)
    assert (float(outside.low[0]), float(outside.high[0])) == (-9.0, 3.0)
    assert float(inside.scale[0]) > 1.0  # widened for what the domain leaves out
    assert isinstance(noise.laws[0], laws.BoundedLaplace)
    assert float(noise.laws[0].high[0]) == pytest.approx(np.log(1 + (np.e - 1) / 0.2))
    assert isinstance(uniform.laws[0], laws.Uniform)
    assert uniform.laws[0].width == 5.0
    for step, gamma in ((best, 1 / (1 + np.exp(0.5))), (own, 0.8)):
        assert isinstance(step.laws[0], laws.Staircase)
        assert (step.laws[0].epsilon, step.laws[0].gamma) == (1.0, pytest.approx(gamma))
    assert {truncated.laws[0].name, folded.laws[0].name} == {"laplace"}
    # the largest loss of a bounded domain is at most what the mechanism promises
    losses = loss_of(domain)
    assert np.all(np.abs(losses) <= 1.0 + 1e-9)
