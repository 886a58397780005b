"""Whole replays of generators in the style of a library: each leak is named, honest ones pass."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

import dpaudit
import listened
from dpaudit.cli.main import app
from dpaudit.errors import SettingsError
from dpaudit.replaying.record import ReplayRecord
from dpaudit.replaying.report import replay_page
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.verdict import Verdict
from listened import table

pytestmark = pytest.mark.usefixtures("worlds")


SCHEMA = dpaudit.Schema.from_document(
    {
        "columns": [
            {"name": "a", "kind": "integer", "lower": 0, "upper": listened.CELLS - 1},
            {"name": "x", "kind": "continuous", "lower": 0.0, "upper": 1.0},
        ]
    }
)


def replayed(name: str, **given: Any) -> ReplayRecord:
    settings: dict[str, Any] = {"replays": 3, "target": "row:39", **given}
    return dpaudit.replay(getattr(listened, name)(), table(), schema=SCHEMA, **settings)


def line_of(name: str, code: str) -> str:
    """File and line of some code of a generator."""
    source = Path(listened.__file__).read_text().splitlines()
    start = next(
        at
        for at, line in enumerate(source)
        if line.startswith((f"class {name}(", f"class {name}:"))
    )
    return f"listened.py:{next(at for at in range(start, len(source)) if code in source[at]) + 1}"


@pytest.mark.parametrize(
    ("name", "at_least"),
    [
        ("LaplaceCounts", 1.0),
        ("FromPython", 1.0),
        pytest.param("Buffered", 1.0, marks=pytest.mark.ci),
        pytest.param("RawWords", 1.0, marks=pytest.mark.ci),
        pytest.param("GlobalGenerator", 1.0, marks=pytest.mark.ci),
        ("NoisyMax", 0.0),
        ("ExponentialMechanism", 0.0),
        pytest.param("TwoOfThem", 0.1, marks=pytest.mark.ci),
        ("SparseVector", 0.0),
        ("SummedShares", 0.9),
        ("SummedNumbers", 0.9),
        ("SharesOfUnlikeScale", 0.6),
        ("TwiceTheAnswer", 1.0),
        ("FirstReleased", 1.0),
        pytest.param("NoiseFirstInTorch", 0.9, marks=pytest.mark.ci),
        pytest.param("NoisyMaxInTorch", 0.0, marks=pytest.mark.ci),
        pytest.param("SharesInTorch", 0.6, marks=pytest.mark.ci),
    ],
)
def test_honest_code_is_consistent_and_what_it_costs_is_known(name: str, at_least: float) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved is not None
    assert at_least * (1 - 1e-9) <= record.proved <= 1.0 + 1e-9
    assert not record.not_followed
    assert record.parting is None
    if record.computed_note is None:
        assert record.computed is not None
        assert record.proved <= record.computed * (1 + 1e-9)


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"mu": 1.0}, 1.0), ({"rho": 0.5}, 0.5), pytest.param({"mu": 2.0}, 1.0, marks=pytest.mark.ci)],
)
def test_gaussian_steps_are_computed_in_the_quantity_of_the_claim(
    given: dict[str, float], expected: float
) -> None:
    record = replayed("GaussianCounts", replays=1, epsilon=None, delta=None, **given)
    assert record.computed == pytest.approx(expected)
    assert record.computed_note is None


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("LaplaceCounts", {"mu": 1.0}, "is no Gaussian step: its mu is not known"),
        ("ExponentialMechanism", {"mu": 1.0}, "is no Gaussian step: its mu is not known"),
        ("GaussianCounts", {"epsilon": 1.0, "delta": 0.0}, "no epsilon at delta 0"),
        ("ScaleByRows", {}, "the scale of the noise at listened.py"),
        ("NoiseReused", {}, "the worlds diverge"),
    ],
)
def test_steps_whose_cost_is_not_known_say_why(
    name: str, given: dict[str, float], said: str
) -> None:
    settings = {"epsilon": None, "delta": None, **given} if given else {}
    record = replayed(name, replays=1, **settings)
    assert record.computed is None
    assert record.computed_note is not None
    assert said in record.computed_note
    assert record.computed_note in str(record).replace("\n", " ").replace("  ", "")


def test_a_computed_cost_is_that_of_the_replay_where_it_is_largest() -> None:
    record = replayed("TwoOfThemByCounts", replays=20)
    assert record.proved is not None
    assert record.computed is not None
    assert record.proved <= record.computed * (1 + 1e-9)


@pytest.mark.parametrize(
    "name", ["GaussianCounts", pytest.param("SharedNoise", marks=pytest.mark.ci)]
)
def test_gaussian_noise_is_nearly_proved_by_ten_replays_and_shares_of_it_too(name: str) -> None:
    record = replayed(name, replays=10)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(4.377, abs=1e-3)
    assert record.proved is not None
    assert 3.2 < record.proved <= 4.3772
    [line] = record.ledger
    assert line.mu == pytest.approx(1.0)
    assert line.counts_as == "released"


def test_too_little_noise_is_a_violation_at_its_line() -> None:
    record = replayed("HalfTheNoise")
    assert record.verdict is Verdict.VIOLATION
    assert record.proved == pytest.approx(2.0)
    widest = record.ledger[0]
    assert widest.place == line_of("HalfTheNoise", "scale=0.5")
    assert (widest.scale, widest.l1, widest.epsilon) == (0.5, 1.0, pytest.approx(2.0))
    with pytest.raises(AssertionError, match="VIOLATION"):
        record.assert_no_violation()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("IdleCoin", "fell ="),
        pytest.param("EqualSides", "of_the_last", marks=pytest.mark.ci),
        pytest.param("IdleChoice", "rng.choice", marks=pytest.mark.ci),
        pytest.param("IdleNumber", "text =", marks=pytest.mark.ci),
        pytest.param("OneLineOfCoins", "fell =", marks=pytest.mark.ci),
    ],
)
def test_an_answer_without_influence_is_no_violation(name: str, code: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert f"with the answers at {line_of(name, code)};" in record.reasons[0]
    assert record.proved is not None
    assert record.proved <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("UnequalSides", 2.0), pytest.param("OneLineOfUsedCoins", 2.0, marks=pytest.mark.ci)],
)
def test_an_answer_with_influence_counts(name: str, epsilon: float) -> None:
    record = replayed(name, replays=6)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(epsilon)


def test_an_answer_without_influence_excuses_no_other_one() -> None:
    record = replayed("IdleNumberOfALeak")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved == pytest.approx(2.0)


def test_a_place_that_one_world_cannot_draw_has_no_limit() -> None:
    record = replayed("DrawnByCounts")
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved is None


def test_places_drawn_without_replacement_cost_the_product_of_their_probabilities() -> None:
    record = replayed("TwoOfThemByCounts", replays=20)
    assert record.verdict is Verdict.VIOLATION, str(record)
    [line] = record.ledger
    assert (line.law, line.times) == ("choice", 2)
    assert line.place == line_of("TwoOfThem", "replace=False")
    inside, outside = (np.exp(1.5 * np.array([1, 1, 1, last])) for last in (1, 0))
    losses = {
        math.log(_in_turn(inside, pair) / _in_turn(outside, pair))
        for pair in itertools.permutations(range(listened.CELLS), 2)
    }
    assert record.proved is not None
    assert min(abs(abs(one) - record.proved) for one in losses) < 1e-9


def test_places_that_one_world_alone_can_draw_are_found() -> None:
    record = replayed("TwoThatAreFilled", replays=20)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.proved is None
    assert record.ledger[0].place == line_of("TwoThatAreFilled", "replace=False")


def _in_turn(weights: Any, pair: tuple[int, int]) -> float:
    """The probability of two different places, one after the other."""
    first, second = (float(weights[place]) for place in pair)
    whole = float(weights.sum())
    return first / whole * second / (whole - first)


def test_numpy_draws_without_replacement_by_that_law() -> None:
    p, rng = np.array([0.5, 0.3, 0.15, 0.05]), np.random.default_rng(0)
    drawn = [tuple(rng.choice(4, size=2, replace=False, p=p)) for _ in range(20_000)]
    for pair in itertools.permutations(range(4), 2):
        expected = _in_turn(p, pair)
        error = math.sqrt(expected * (1 - expected) / len(drawn))
        assert abs(drawn.count(pair) / len(drawn) - expected) < 4.5 * error


def test_shares_that_are_too_small_are_a_violation() -> None:
    record = replayed("TooSmallShares")
    assert record.verdict is Verdict.VIOLATION
    [line] = record.ledger
    assert line.law == "sum of laplace"
    assert line.epsilon == pytest.approx(1.25)
    assert record.proved is not None
    assert 1.0 < record.proved <= 1.25


def test_noise_that_is_used_twice_is_named() -> None:
    record = replayed("NoiseReused")
    assert record.verdict is Verdict.VIOLATION
    assert record.parting is not None
    assert record.parting.kind == "noise reused"
    assert record.parting.place == line_of("NoiseReused", "count + noise")


def test_a_seed_in_the_code_is_a_violation() -> None:
    record = replayed("FixedSeed")
    assert record.verdict is Verdict.VIOLATION
    assert record.fixed_seeds == (line_of("FixedSeed", "default_rng(7)"),)
    assert record.proved is None
    assert "no limit" in record.headline


def test_public_numbers_of_a_fixed_seed_are_no_noise() -> None:
    record = replayed("PublicOffset")
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved == pytest.approx(1.0)
    assert record.fixed_seeds == ()
    assert replayed("PublicOffset", epsilon=0.5).verdict is Verdict.VIOLATION


def test_a_scale_that_follows_the_number_of_records_is_shown() -> None:
    record = replayed("ScaleByRows", replays=1)
    [line] = record.ledger
    assert line.scale == pytest.approx(2.0 / 40)
    assert line.other_scale == pytest.approx(2.0 / 39)


@pytest.mark.parametrize("name", ["OneCountPlain", pytest.param("NoNoise", marks=pytest.mark.ci)])
def test_a_count_without_noise_is_seen_where_it_comes_out(name: str) -> None:
    record = replayed(name)
    assert record.verdict is Verdict.VIOLATION
    assert record.ledger[0].law == "choice"
    assert record.ledger[0].place == line_of("Counting", "rng.choice")


def test_a_factor_that_follows_the_data_changes_the_noise_and_no_more() -> None:
    honest = replayed("MeanOfRows", replays=10)
    assert honest.verdict is Verdict.CONSISTENT, str(honest)
    [line] = honest.ledger
    assert (line.scale, line.other_scale) == (pytest.approx(5 / 40), pytest.approx(5 / 39))
    assert honest.proved is not None
    assert honest.proved > 0.5
    # the divergence of N(1/40, 5/40) and N(0, 5/39), which has the larger tails
    y = np.linspace(-2.0, 2.0, 400_001)
    inside, outside = stats.norm.pdf(y, 1 / 40, 5 / 40), stats.norm.pdf(y, 0.0, 5 / 39)
    left = np.maximum(outside - np.exp(honest.proved) * inside, 0.0)
    assert np.trapezoid(left, y) > 1e-5
    broken = replayed("NoisierMeanOfRows", replays=10)
    assert broken.verdict is Verdict.VIOLATION, str(broken)
    place = line_of("MeanOfRows", "/ self.rows")
    assert f"multiplied at {place} by a value from the data" in broken.reasons[0]


def test_what_is_made_of_data_and_a_released_answer_is_data() -> None:
    record = replayed("ReleasedOverRows", replays=10)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    laws = {line.law: line for line in record.ledger}
    assert laws["gaussian"].mu == pytest.approx(0.2)
    assert laws["choice"].place == line_of("Counting", "rng.choice")


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("SpreadAroundNoisyMean", Verdict.CONSISTENT),
        pytest.param("ClippedAtNoisyLimit", Verdict.CONSISTENT, marks=pytest.mark.ci),
        pytest.param("WeighedByNoisyCount", Verdict.CONSISTENT, marks=pytest.mark.ci),
    ],
)
def test_data_put_together_with_noisy_answers_and_noised_again_is_no_violation(
    name: str, verdict: Verdict
) -> None:
    for target in ("row:39", "row:1"):
        assert replayed(name, target=target).verdict is verdict


def test_an_answer_without_an_observed_use_leaves_what_the_others_prove() -> None:
    record = replayed("UnusedAnswer", replays=10)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.proved == pytest.approx(0.5)
    assert record.computed == pytest.approx(1.0)  # as if it were released
    above = replayed("UnusedAnswer", replays=10, epsilon=0.75)
    assert above.verdict is Verdict.INCONCLUSIVE, str(above)
    assert "if they are released, the loss exceeds the claim" in above.reasons[0]


def test_a_loop_that_the_data_ends_is_named() -> None:
    record = replayed("DataDecidesTheLoop", target=f"row:{int(np.argmin(table()['a']))}")
    assert record.verdict is Verdict.INCONCLUSIVE  # something else could make up for it
    page, why = page_markdown(replay_page(record)), record.reasons[0]
    assert (page.count(why[1:]), str(record).count(why[1:20])) == (1, 1)  # in the headline
    assert "take coins as public (--public-coins)" in page
    assert "next      repair what the verdict names" in str(record)
    assert "schema (start from dpaudit schema)" in page_markdown(
        replay_page(replace(record, schema_inferred=True))
    )
    assert record.parting is not None
    assert record.parting.kind == "steps"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ByHand", "coins"),
        ("Copier", "no noise was observed"),
        pytest.param("RandomisedResponse", "coins", marks=pytest.mark.ci),
        ("Forgetful", "not repeatable"),
        pytest.param("RandomProjection", "", marks=pytest.mark.ci),
        ("Compiled", "replay misses some randomness"),
        ("InThreads", "thread"),
        pytest.param("ShareReused", "used more than once", marks=pytest.mark.ci),
        pytest.param("MixedNoise", "law is not known", marks=pytest.mark.ci),
        ("OneByOne", "combined with data"),
        ("Accumulated", "combined with data"),
    ],
)
def test_what_cannot_be_followed_is_inconclusive(name: str, said: str) -> None:
    record = replayed(name, epsilon=0.2)
    assert record.verdict is Verdict.INCONCLUSIVE, str(record)
    assert said in " ".join(record.reasons)


@pytest.mark.ci
def test_every_kind_of_torchs_noise_is_heard_at_its_line() -> None:
    record = replayed("InTorch", replays=1)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert not record.not_followed
    marks = {
        "# by out": ("gaussian", 1),
        "# normal": ("gaussian", 1),
        "# reparametrised": ("gaussian", 1),
        "# laplace": ("laplace", 1),
        "# gumbel": ("gumbel", 1),
        "# stacked": ("gaussian", 1),
        "torch.cat": ("gaussian", 1),
        "# own": ("gaussian", 1),
        "# filled": ("gaussian", 1),
        "# numpy": ("gaussian", 1),
        "# exponential": ("choice", 1),
    }
    found = {line.place: line for line in record.ledger}
    assert set(found) == {line_of("InTorch", code) for code in marks}
    for code, (law, _) in marks.items():
        line = found[line_of("InTorch", code)]
        assert line.law == law
        if law != "choice":
            assert line.l1 == pytest.approx(1.0)
            assert line.scale == pytest.approx(1.0)


@pytest.mark.ci
def test_more_noise_on_a_noisy_tensor_counts() -> None:
    record = replayed("GaussianSharesInTorch", replays=1, epsilon=None, delta=None, mu=1.0)
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.computed == pytest.approx(1.0)


@pytest.mark.ci
def test_a_tensor_of_answers_divided_by_the_number_of_records_has_other_noise() -> None:
    record = replayed("DividedInTorch", replays=10)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert f"multiplied at {line_of('DividedInTorch', '/=')} by a value from the data" in str(
        record.reasons
    )
    [line] = record.ledger
    assert line.scale == pytest.approx(1 / 40)
    assert line.other_scale == pytest.approx(1 / 39)
    # Laplace of two scales: no epsilon holds, and one transcript shows more than the claim
    assert record.proved is not None
    assert record.proved > 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("ByOpacus", 1), ("ByOpacusSampled", 4)])
def test_opacus_is_followed(name: str, steps: int) -> None:
    pytest.importorskip("opacus")
    record = replayed(name, replays=1)
    assert record.verdict is not Verdict.VIOLATION, str(record)
    [line] = [one for one in record.ledger if one.law == "gaussian"]
    assert line.scale == pytest.approx(3.0)  # noise multiplier times norm
    assert line.times == 2 * steps  # weights and bias
    assert 0 < line.l2 <= 2 * 2.0 * steps**0.5


def test_rows_tell_where_no_noise_is_heard() -> None:
    record = replayed("Exposed", replays=1)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert record.guesses == 10
    assert record.proved is not None
    assert 1.0 < record.proved < 1.1
    assert "epsilon of the synthetic rows" in record.headline
    assert "the synthetic rows alone identified the world in 10 of 10 fits" in record.reasons[0]
    assert "from 10 fits whose world the rows identified" in record.bound_text


def test_rows_that_differ_are_counted_in_one_line() -> None:
    record = replayed("NoiseReused", replays=1)
    assert record.parting is not None
    parting = record.parting._replace(kind="rows", inside="3 of 40 rows differ", outside="")
    changed = replace(record, parting=parting)
    assert "rows      3 of 40 rows differ" in str(changed)
    assert "\nout" not in str(changed)
    assert "| both | 3 of 40 rows differ |" in page_markdown(replay_page(changed))


@pytest.mark.ci
def test_coins_excuse_nothing_where_the_proof_does_not_count_on_them() -> None:
    record = replayed("RandomisedResponse", epsilon=0.2, public_coins=True)
    assert record.verdict is Verdict.VIOLATION, str(record)
    assert "count as public, as requested" in record.reasons[0]
    assert "--public-coins" in record.reproduce


def test_the_same_replay_gives_the_same_record() -> None:
    first, second = (replayed("GaussianCounts", seed=5, replays=1).to_document() for _ in range(2))
    for document in (first, second):
        del document["seconds"], document["seconds_a_fit"]
    assert first == second


@pytest.mark.ci
def test_the_worst_of_several_records_is_replayed() -> None:
    record = dpaudit.replay(listened.LaplaceCounts(), table(), schema=SCHEMA, replays=1, targets=3)
    assert record.target.startswith("row:")
    assert record.fits == 10


def test_reports_and_the_command_say_the_same(tmp_path: Path) -> None:
    data, schema = tmp_path / "t.csv", tmp_path / "t.json"
    table().to_csv(data, index=False)
    schema.write_text(json.dumps(SCHEMA.to_document()))
    page = tmp_path / "r.html"
    words = [
        "replay",
        f"{listened.__file__}:HalfTheNoise",
        "--data",
        str(data),
        "--schema",
        str(schema),
    ]
    ended = CliRunner().invoke(
        app, [*words, "--replays", "1", "--target", "row:39", "--html", str(page), "-q"]
    )
    assert ended.exit_code == 1, ended.stderr
    assert ended.stdout.startswith(
        "VIOLATION  claimed epsilon 1, epsilon of the transcript at least 2"
    )
    header = page.read_text().partition("</header>")[0]
    assert header.count("<svg") == 1
    assert "change the odds that this record was used by a factor of at least" in header
    titles = re.findall(r"<h2>(.+?)</h2>", page.read_text())
    assert titles[:3] == ["Result", "Next step", "Bound"]
    assert titles[-3:] == ["Threat model", "Standards", "Reproduce"]
    record = replayed("HalfTheNoise", replays=1)
    assert line_of("HalfTheNoise", "scale=0.5") in page_markdown(replay_page(record))
    assert page_html(replay_page(record)) == page_html(replay_page(record))
    assert record.date is not None
    assert record.date in page_markdown(replay_page(record))
    shown = {
        target: "treat it as confidential"
        in page_markdown(replay_page(replace(record, target=target)))
        for target in ("row:5", "record:FILE")
    }
    assert shown == {"row:5": True, "record:FILE": False}
    assert max(map(len, str(record).splitlines())) <= 80


def test_wrong_use_is_refused_before_any_fit() -> None:
    for given in ({"replays": 0}, {"targets": 0}, {"replays": 1.5}):
        with pytest.raises(SettingsError):
            replayed("LaplaceCounts", **given)
    with pytest.raises(dpaudit.InputError, match="row"):
        replayed("LaplaceCounts", target="row:400")


@pytest.mark.parametrize(
    ("sampler", "said"),
    [
        ({"function": "noise", "law": "laplace", "scale": "b"}, "MODULE:NAME"),
        ({"function": "my:noise", "law": "laplac", "scale": "b"}, "laplace"),
        ({"function": "my:noise", "law": "laplace"}, "scale"),
        ({"function": "my:noise", "law": "gamma", "scale": "b"}, "shape"),
        ({"function": "my:noise", "law": "laplace", "scael": "b"}, "did you mean 'scale'"),
    ],
)
def test_a_sampler_that_is_wrongly_named_is_refused(sampler: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        replayed("LaplaceCounts", samplers=[sampler])


def test_a_sampler_of_ones_own_is_heard() -> None:
    sampler = {"function": "listened_noise:sample_laplace", "law": "laplace", "scale": "width"}
    record = replayed("OwnSampler", samplers=[sampler])
    assert record.verdict is Verdict.CONSISTENT, str(record)
    assert record.ledger[0].law == "laplace"
    assert record.proved == pytest.approx(1.0)
    assert "--sampler listened_noise:sample_laplace,law=laplace,scale=width" in record.reproduce


@pytest.mark.parametrize("worst_case", ["opposite", pytest.param("one-hot", marks=pytest.mark.ci)])
def test_tables_of_a_worst_case_come_from_the_schema_alone(worst_case: str, tmp_path: Path) -> None:
    schema = tmp_path / "t.json"
    schema.write_text(json.dumps(SCHEMA.to_document()))
    words = ["replay", f"{listened.__file__}:HalfTheNoise", "--schema", str(schema)]
    words += ["--replays", "1", "--json", "--worst-case", worst_case]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code in (0, 1), ended.stderr
    document = json.loads(ended.stdout)
    assert document["target"] == f"worst-case:{worst_case}"
    assert f"--worst-case {worst_case}" in document["reproduce"]
    for wrong, said in (("--data", "leave out --data"), ("--targets", "leave out --targets")):
        refused = CliRunner().invoke(app, [*words, wrong, "3"])
        assert refused.exit_code == 2
        assert said in refused.stderr


def test_a_search_replays_the_worst_case_with_the_largest_cost(tmp_path: Path) -> None:
    lines: list[str] = []
    record = dpaudit.replay(
        listened.HalfTheNoise(),
        schema=SCHEMA,
        worst_case="search",
        replays=2,
        on_progress=lines.append,
    )
    tried = [line for line in lines if line.startswith("candidate ")]
    assert tried[0] == f"candidate 1 of {len(tried)}: worst-case:opposite"
    named = record.target.removeprefix("worst-case:")
    assert named in [line.rpartition(":")[2] for line in tried]
    assert f"--worst-case {named}" in record.reproduce
    again = dpaudit.replay(listened.HalfTheNoise(), schema=SCHEMA, worst_case=named, replays=2)
    assert (again.verdict, again.proved) == (record.verdict, record.proved)


class ClipsOneMean:
    """Of at least 41 records it clips a mean with a tenth of its noise, else one with enough."""

    claim = dpaudit.PrivacyClaim(epsilon=1.0, neighbours=dpaudit.Neighbours.REPLACE_ONE)

    def fit(self, data: Any, *, seed: int) -> ClipsOneMean:
        rng = np.random.default_rng(seed)
        scale = (0.1 if 41 <= len(data) < 100 else 1.0) / len(data)
        noisy = data["x"].eq("b").mean() + rng.laplace(0.0, scale)
        self.mean = 1.0 if noisy > 0.2 else 0.0
        return self

    def sample(self, n: int, *, seed: int) -> Any:
        del seed
        return pd.DataFrame({"x": ["b" if self.mean else "a"] * n})


@pytest.mark.ci
def test_a_search_counts_how_far_the_answers_of_a_selection_moved() -> None:
    schema = dpaudit.Schema(
        columns=(dpaudit.Column(name="x", kind=dpaudit.Kind.BINARY, categories=("a", "b")),)
    )
    record = dpaudit.replay(ClipsOneMean(), schema=schema, worst_case="search", replays=2)
    assert record.target == "worst-case:outlier", str(record)


def test_a_table_is_needed() -> None:
    with pytest.raises(SettingsError, match="worst_case"):
        dpaudit.replay(listened.LaplaceCounts(), schema=SCHEMA)


MECHANISMS = """
class Laplace:
    def __init__(self, sensitivity, epsilon):
        self.sensitivity, self.epsilon, self.delta, self._rng = sensitivity, epsilon, 0.0, None

    def _check_all(self, value):
        pass

    def randomise(self, value):
        raise NotImplementedError
"""
LAST_COUNT = """
import pandas as pd
from diffprivlib.mechanisms import Laplace


class LastCount:
    def fit(self, data, *, seed):
        self.count = Laplace(1.0, 1.0).randomise(float((data["a"] == 3).sum()))
        return self

    def sample(self, n, *, seed):
        return pd.DataFrame({"a": [int(self.count > 0.5)] * n, "x": 0.0})
"""


def test_a_last_measurement_of_0_in_one_world_alone_is_an_answer(tmp_path: Path) -> None:
    package = tmp_path / "diffprivlib"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mechanisms.py").write_text(MECHANISMS)
    source = tmp_path / "last_count.py"
    source.write_text(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{LAST_COUNT}")
    record = dpaudit.replay(
        f"{source}:LastCount", table(), schema=SCHEMA, replays=3, target="row:39", epsilon=1.0
    )
    assert record.verdict is Verdict.CONSISTENT, str(record)
    [line] = record.ledger
    assert (line.law, line.l1) == ("laplace", 1.0)
    assert record.parting is None
