"""`dpaudit explain`: generators that leak in known ways, and what fixing each of them shows."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import dpaudit
from documents import read_document
from dpaudit.bounds import Counts
from dpaudit.cli.main import app
from dpaudit.errors import InputError, InterruptedRunError, RegistryError
from dpaudit.explain import ROW_ORDER, TOGETHER, Effect, explain, inquire
from dpaudit.explain import run as run_module
from dpaudit.explain.explanation import (
    Before,
    Explanation,
    FixedAudit,
    allowed_auc,
    auc_limits,
    conclusion,
    judge_fix,
)
from dpaudit.explain.run import suspects_of, with_rows_shuffled
from dpaudit.game.flight import TrialProgress
from dpaudit.game.store import specification_of
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import data_digest
from dpaudit.plugins.protocols import Job, World, trains_many
from dpaudit.report.render import render_markdown
from dpaudit.results.record import AuditRecord

OWN = '''
import numpy as np
import pandas as pd

from dpaudit import FeatureName, PrivacyClaim


class Mean:
    def check(self, game): ...

    def feature_names(self, game):
        return (FeatureName("all", "mean"),)

    def features(self, table, game):
        return np.array([table.to_numpy().mean()])

    def fit(self, features, member, *, seed):
        return lambda rows: rows[:, 0]


class Model:
    def __init__(self, low, high, first, names):
        self.low, self.high, self.first, self.names = low, high, first, names

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        values = np.rint(rng.uniform(self.low, self.high, (n, len(self.names))))
        if self.first is not None:
            values[: n // 2] = self.first
        return pd.DataFrame(values, columns=self.names)


class Leaky:
    """Uniform numbers; bounds of the data and the first row leak, if they are asked to."""

    claim = PrivacyClaim(epsilon=1.0, delta=0.0, source="a toy")

    def __init__(self, *, schema, bounds: bool = True, first: bool = False, label: bool = True):
        self.schema, self.bounds, self.first, self.label = schema, bounds, first, label

    def fit(self, data, *, seed):
        low, high = np.transpose([column.bounds for column in self.schema.columns])
        if self.bounds:
            low, high = data.min().to_numpy(), data.max().to_numpy()
        first = data.iloc[0].to_numpy() if self.first else None
        return Model(low, high, first, list(self.schema.names))

    def fixes(self):
        found = {}
        if self.bounds:
            found["bounds"] = Leaky(
                schema=self.schema, bounds=False, first=self.first, label=self.label
            )
        if self.label:  # changes nothing
            found["label"] = Leaky(
                schema=self.schema, bounds=self.bounds, first=self.first, label=False
            )
        return found


def honest(data, n_rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, 100, (n_rows, 2)), columns=data.columns)


def first_row(data, n_rows, seed):
    table = honest(data, n_rows, seed)
    table.iloc[: n_rows // 2] = data.iloc[0].to_numpy()
    return table
'''


def furnished(folder: Path) -> Path:
    (folder / "own.py").write_text(OWN)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 60, 40), "pay": rng.integers(10, 50, 40)})
    table.loc[0] = [98, 95]  # the first record is the farthest as well
    table.to_csv(folder / "table.csv", index=False)
    columns = [{"name": n, "kind": "integer", "lower": 0, "upper": 100} for n in ("age", "pay")]
    (folder / "schema.json").write_text(json.dumps({"columns": columns}))
    return folder


def command(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def audit(generator: str, *words: str, out: str = "run", models: int = 100) -> Result:
    own = ["--data", "table.csv", "--schema", "schema.json", "--target", "row:0", "--jobs", "1"]
    size = ["--shadow-models", str(models), "--out", out]
    return command("audit", generator, *own, "--attack", "own.py:Mean", *size, "-q", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The module's folder, with a run of the generator whose bounds leak."""
    with pytest.MonkeyPatch.context() as patch:
        there = furnished(tmp_path_factory.mktemp("explain"))
        patch.chdir(there)
        assert audit("own.py:Leaky", "--seed", "3", models=200).exit_code == 1
        yield there


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figures are drawn: they take longer than the audits of toys."""
    monkeypatch.setattr("dpaudit.report.render.write_reports", lambda result, folder: None)


def stored(run: Path) -> list[Any]:
    with closing(sqlite3.connect(run / "trials.sqlite")) as db:
        return db.execute("SELECT * FROM trial ORDER BY role, world, number").fetchall()


# Leaks with a known reason.


@pytest.mark.ci
def test_the_fix_of_the_leak_removes_it_and_another_does_not(folder: Path, plain: None) -> None:
    result = command("explain", "run", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    found = read_document(Explanation, (folder / "run/explain/explain.json").read_text())
    effects = {one["suspect"]: one["effect"] for one in found["fixed"]}
    assert effects == {
        "bounds": "removes",
        "label": "remains",
        "row-order": "remains",
        "all-together": "removes",
    }
    assert found["removed_by"] == ["bounds"]
    assert found["conclusion"].startswith("fixing bounds removes the leak: bound 3.")
    assert result.stdout.splitlines()[0] == f"EXPLAINED  {found['conclusion']}"
    assert found["before"]["proved"] > found["claim"]["epsilon"] == 1.0
    assert found["before"]["auc"] == 1.0
    by_name = {one["suspect"]: one for one in found["fixed"]}
    assert by_name["bounds"]["audit"]["proved"] == 0
    # without probes all of the error probability is the attacks'
    assert by_name["label"]["audit"]["proved"] == pytest.approx(found["before"]["proved"], rel=0.01)
    for one in found["fixed"]:
        assert one["audit"]["shadow_models"] == 200
        assert one["audit"]["seconds"] > 0
    report = (folder / "run/explain/report.html").read_text()
    assert f"EXPLAINED</strong>: {found['conclusion']}".replace("->", "-&gt;") in report
    assert "bounds fixed: removed" in report
    assert "| bounds | removed | 0 |" in (folder / "run/explain/report.md").read_text()
    assert "report    run/explain/report.html" in result.stdout
    fixed = dpaudit.AuditResult.load(folder / "run" / by_name["bounds"]["folder"])
    assert "own.py:Leaky (bounds fixed)" in render_markdown(fixed)
    assert "dpaudit explain run --shadow-models 200" in render_markdown(fixed)
    # The same command again finds everything there.
    before = stored(folder / "run" / by_name["bounds"]["folder"])
    again = command("explain", "run", "--suspect", "bounds", "--jobs", "1", "--json")
    [bounds] = json.loads(again.stdout)["fixed"]
    assert bounds == by_name["bounds"]  # the seconds of its training, too
    assert stored(folder / "run" / bounds["folder"]) == before


@pytest.mark.ci
def test_row_order_is_a_suspect_of_any_generator(folder: Path, plain: None) -> None:
    assert audit("own.py:first_row", "--epsilon", "1", out="first", models=240).exit_code == 1
    result = command("explain", "first", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "own.py:first_row offers no fixes of its own" in result.stderr
    assert result.stdout.startswith("EXPLAINED  fixing row-order removes the leak: bound 3.")
    assert "all-together" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("reproduce dpaudit explain first --shadow")


@pytest.mark.ci
def test_two_leaks_are_gone_only_when_both_are_fixed(folder: Path, plain: None) -> None:
    assert audit("own.py:Leaky", "-p", "first=true", "-p", "label=false", out="two").exit_code == 1
    explanation = explain("two", shadow_models=100, jobs=1)
    effects = {one.suspect: one.effect for one in explanation.fixed}
    assert effects == {
        "bounds": Effect.REMAINS,
        ROW_ORDER: Effect.REMAINS,
        TOGETHER: Effect.REMOVES,
    }
    assert explanation.conclusion.startswith("no fix alone removes the leak, all together")


@pytest.mark.ci
def test_a_fix_with_too_few_models_is_not_shown_to_remove_it(folder: Path, plain: None) -> None:
    done = command("explain", "run", "--suspect", "bounds", "--shadow-models", "40", "--jobs", "1")
    assert done.exit_code == 3, done.output
    assert done.stdout.startswith(
        "NOT EXPLAINED  no fix is shown to remove the leak; with bounds fixed"
    )
    assert re.search(r"\n  bounds +not shown +0  0\.\d+  0\.\d+ to 0\.\d+ ", done.stdout)
    assert "0.269 to 0.731" in done.stdout  # what epsilon 1 allows, rounded inwards


@pytest.mark.ci
def test_a_fix_that_removes_nothing_exits_3(folder: Path, plain: None) -> None:
    quiet = command("explain", "run", "--suspect", "label", "--jobs", "1", "-q")
    assert quiet.exit_code == 3
    assert quiet.stdout == (
        "NOT EXPLAINED  no fix that was tried removes the leak: its cause is elsewhere\n"
    )
    assert quiet.stderr == ""


# Sizes and resuming.


@pytest.mark.ci
def test_what_an_interrupted_explanation_ran_is_kept(folder: Path, plain: None) -> None:
    def stop(event: TrialProgress) -> None:
        if event.role == "audit" and event.done >= 12:
            raise KeyboardInterrupt

    inquiry = inquire("run", suspects=["bounds"], shadow_models=60)
    with pytest.raises((InterruptedRunError, KeyboardInterrupt)):
        inquiry.audit_fixed("bounds", jobs=1, on_progress=stop)
    place = folder / "run/explain/bounds/60"
    half = stored(place)
    assert len(half) >= 28 + 12  # both controls, and some of the audit's own
    again = inquire("run", suspects=["bounds"], shadow_models=60)
    assert again.audit_fixed("bounds", jobs=1).effect in (Effect.REMOVES, Effect.UNPROVED)
    assert set(half) < set(stored(place))


@pytest.mark.ci
def test_a_size_that_would_not_find_the_leak_again_is_refused(
    folder: Path, plain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert audit("own.py:Leaky", "--epsilon", "2", "--seed", "2", out="second").exit_code == 1
    with pytest.raises(InputError, match="20 shadow models would not have found this leak again"):
        inquire("second", shadow_models=20)
    monkeypatch.setattr(run_module, "EXPLAINED_MODELS", 20)
    found = inquire("second")
    assert found.settings.game.shadow_models == 40  # doubled until it does
    assert 2.0 < found.before.proved < json.loads(Path("second/result.json").read_text())["proved"]


@pytest.mark.ci
def test_a_sequential_run_is_explained_sequentially(folder: Path, plain: None) -> None:
    assert (
        audit("own.py:Leaky", "--sequential", "--seed", "1", out="sequential", models=160).exit_code
        == 1
    )
    [label] = explain("sequential", suspects=["label"], jobs=1).fixed
    assert label.effect is Effect.REMAINS
    assert label.audit.shadow_models < 160


# Refusals.

ONE_RUN = {
    "name": "one run",
    "canaries": 100,
    "included": 50,
    "guesses": 20,
    "correct": 20,
    "gaussian_estimate": None,
    "interference": 0.0,
    "attacks": [],
}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("unfinished", "run is not finished: run the command that started it again"),
        ("one-run", "is a one-run audit"),
        ("no violation", "has no bound above its claim .verdict: consistent.: there is nothing to"),
        ("in memory", "was run on a table in memory"),
        ("other table", "was run with other settings: data changed since"),
        ("other generator", "was run with other settings: attacks, generator changed since"),
        ("other library", "was run with other versions: numpy changed since"),
        ("lost table", "cannot be built again: table.csv does not exist"),
        ("no run", "no result at"),
        ("suspect", "no suspect 'bound' .did you mean 'bounds'..; there is bounds, label, row-or"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_one_line(
    folder: Path, tmp_path: Path, case: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("own.py", "table.csv", "schema.json", "run"):
        copy = shutil.copytree if (folder / name).is_dir() else shutil.copy
        copy(folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    result = Path("run/result.json")
    document = json.loads(result.read_text())
    words: Sequence[str] = ()
    if case == "unfinished":
        result.unlink()
    elif case == "one-run":
        document["game"] = ONE_RUN
    elif case == "no violation":
        document["verdict"] = "consistent"
    elif case == "in memory":
        document["data"]["source"] = "a table in memory"
    elif case == "other table":
        Path("table.csv").write_text(Path("table.csv").read_text() + "30,30\n")
    elif case == "other generator":
        Path("own.py").write_text(OWN + "# edited\n")
    elif case == "other library":
        document["versions"]["numpy"] = "1.0"
    elif case == "lost table":
        Path("table.csv").unlink()
    elif case == "no run":
        shutil.rmtree("run")
    else:
        words = ("--suspect", "bound")
    if case in ("one-run", "no violation", "in memory", "other library"):
        result.write_text(json.dumps(document))
    refused = command("explain", "run", *words)
    assert refused.exit_code == 2
    assert refused.stdout == ""
    [line] = refused.stderr.splitlines()
    assert re.search(message, line), line


class Offering:
    def __init__(self, offered: Any) -> None:
        self.offered = offered

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return self

    def sample(self, n: int, *, seed: int | None) -> Any: ...

    def fixes(self) -> Any:
        return self.offered()


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        (lambda: 1 / 0, "fixes.. of it fails: ZeroDivisionError"),
        (lambda: ["a"], "does not return a mapping"),
        (lambda: {"a/b": Offering(dict)}, "offers 'a/b': name a fix with letters"),
        (lambda: {"all-together": Offering(dict)}, "offers 'all-together'"),
        (lambda: {"a": object()}, "it: a has no method fit"),
    ],
)
def test_fixes_that_are_none_are_refused(offered: Any, message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        suspects_of(Offering(offered), name="it")


def test_all_together_takes_fixes_of_the_fixed() -> None:
    done = Offering(dict)
    one = Offering(lambda: {"b": done})
    leaky = Offering(lambda: {"a": one, "b": Offering(lambda: {"a": done})})
    found = suspects_of(leaky, name="it")
    assert list(found) == ["a", "b", ROW_ORDER, TOGETHER]
    assert found[TOGETHER] == with_rows_shuffled(done)
    apart = Offering(lambda: {"a": Offering(dict), "b": Offering(dict)})
    assert list(suspects_of(apart, name="it")) == ["a", "b", ROW_ORDER]
    own = Offering(lambda: {ROW_ORDER: done})  # its own way to fix that
    assert suspects_of(own, name="it")[ROW_ORDER] is done


# Shuffled rows.


class Keeper:
    """Its models are the tables that they were trained on, and their seeds."""

    claim = PrivacyClaim(epsilon=3.0, delta=0.0, source="none")
    models_at_once = 1000

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return data, seed

    def batch_key(self, job: Job) -> int:
        return len(job.dropped_rows)

    def fit_many(self, data: pd.DataFrame, jobs: Sequence[Job]) -> Any:
        return [
            (data.drop(index=list(job.dropped_rows)).reset_index(drop=True), job.seed)
            for job in jobs
        ]


class Alone:
    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Any:
        return Shown(data)


class Shown:
    def __init__(self, data: pd.DataFrame) -> None:
        self.data = data

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        return self.data


def test_shuffled_models_do_not_depend_on_their_batch() -> None:
    data = pd.DataFrame({"x": np.arange(20), "y": list("abcdefghijklmnopqrst")})
    shuffled = with_rows_shuffled(Keeper())  # type: ignore[arg-type]
    assert trains_many(shuffled)
    assert shuffled.claim.epsilon == 3.0
    assert shuffled.models_at_once == 32
    jobs = [
        Job(World.IN, i, (), 7 * i) if i % 2 else Job(World.OUT, i, (i, 3), 7 * i) for i in range(6)
    ]
    assert {shuffled.batch_key(job) for job in jobs} == {0, 2}
    together = shuffled.fit_many(data, jobs)
    plain = with_rows_shuffled(Alone())
    assert not trains_many(plain)
    for job, (rows, seed) in zip(jobs, together, strict=True):
        own = data.drop(index=list(job.dropped_rows)).reset_index(drop=True)
        assert seed == job.seed
        assert not rows["x"].is_monotonic_increasing
        assert sorted(rows["x"]) == own["x"].tolist()
        alone = plain.fit(own, seed=job.seed).sample(1, seed=0)
        pd.testing.assert_frame_equal(rows, alone)
        assert data["x"].is_monotonic_increasing
    orders = {tuple(rows["x"]) for rows, _ in together}
    assert len(orders) == len(jobs)


def test_where_a_record_is_says_nothing_once_rows_are_shuffled() -> None:
    data, plain = pd.DataFrame({"x": np.arange(10)}), with_rows_shuffled(Alone())
    places = [
        int(np.flatnonzero(plain.fit(data, seed=seed).sample(1, seed=0)["x"] == 0)[0])
        for seed in range(500)
    ]
    counts = np.bincount(places, minlength=10)
    assert ((counts - 50) ** 2 / 50).sum() < 27.9  # chi-squared with 9 degrees, 1 in 1000


# Judgements.

CLAIM = PrivacyClaim(epsilon=1.0, delta=0.0, source="a test")


Make = Callable[..., AuditRecord]


def fixed_result(
    make: Make,
    verdict: str,
    *aucs: float,
    proved: float = 0.0,
    scored: int = 200,
    failed: int = 0,
) -> AuditRecord:
    """The result of an audit whose attacks reached these areas under the ROC curve."""
    attack = make().attacks[0]
    counts = Counts(1, 1, scored + failed, scored + failed)
    attacks = tuple(replace(attack, auc=auc, counts=counts) for auc in aucs)
    plain = make(verdict=verdict, proved=proved, reasons=["because"], seconds=1.0)
    return replace(plain, attacks=attacks, scores=dict.fromkeys(World, (0.5,) * scored))


@pytest.mark.parametrize(
    ("verdict", "aucs", "numbers", "effect"),
    [
        ("consistent", (0.5,), {}, Effect.REMOVES),
        ("consistent", (0.64,), {}, Effect.REMOVES),  # significantly no more than epsilon 1 allows
        ("consistent", (0.36,), {}, Effect.REMOVES),
        ("consistent", (0.7,), {}, Effect.UNPROVED),
        ("consistent", (0.3,), {}, Effect.UNPROVED),
        ("consistent", (0.5, 0.9), {}, Effect.UNPROVED),  # of another attack
        ("consistent", (0.6,), {"scored": 20}, Effect.UNPROVED),  # may be chance: not shown
        ("consistent", (0.5,), {"scored": 12}, Effect.UNPROVED),  # too few models to show anything
        ("consistent", (0.5,), {"scored": 12, "failed": 188}, Effect.UNPROVED),
        ("consistent", (0.5,), {"scored": 30}, Effect.REMOVES),
        ("consistent", (0.75,), {"scored": 20}, Effect.UNPROVED),
        ("inconclusive", (0.5,), {}, Effect.UNPROVED),
        ("violation", (0.6,), {"proved": 1.1}, Effect.REMAINS),
        ("invalid", (0.5,), {}, Effect.INVALID),
        ("invalid", (), {}, Effect.INVALID),
    ],
)
def test_effects(
    verdict: str,
    aucs: Sequence[float],
    numbers: dict[str, Any],
    effect: Effect,
    record_of: Make,
) -> None:
    result = fixed_result(record_of, verdict, *aucs, **numbers)
    assert judge_fix("it", result, CLAIM, folder="it").effect is effect


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.1, 0.05), (3.0, 0.2), (900.0, 0.0)])
def test_the_allowed_auc_is_that_of_the_allowed_region(epsilon: float, delta: float) -> None:
    claim = PrivacyClaim(epsilon=epsilon, delta=delta, source="a test")
    fpr = np.linspace(0.0, 1.0, 200_001)
    with np.errstate(over="ignore", under="ignore"):
        steep = delta + np.exp(min(epsilon, 700.0)) * fpr
        flat = 1.0 - np.exp(-epsilon) * (1.0 - delta - fpr)
    largest = np.minimum(np.minimum(steep, flat), 1.0)
    assert allowed_auc(claim) == pytest.approx(np.trapezoid(largest, fpr), abs=1e-4)


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_limits_of_an_auc_cover_it(shift: float) -> None:
    from scipy.stats import norm

    rng, covered = np.random.default_rng(1), 0
    true = norm.cdf(shift / np.sqrt(2))
    for _ in range(400):
        one, other = rng.normal(shift, 1, 40), rng.normal(0, 1, 60)
        auc = (one[:, None] > other).mean()
        low, high = auc_limits(float(auc), 40, confidence=0.9)
        covered += low <= true <= high
    assert covered >= 0.9 * 400


def fixed_audit(make: Make, suspect: str, effect: Effect) -> FixedAudit:
    verdict = {Effect.REMAINS: "violation", Effect.INVALID: "invalid"}.get(effect, "consistent")
    result = fixed_result(make, verdict, 0.9 if effect is Effect.REMAINS else 0.5)
    return judge_fix(suspect, result, CLAIM, folder="it")._replace(effect=effect)


@pytest.mark.parametrize(
    ("effects", "said"),
    [
        (
            [("a", "removes"), ("b", "remains")],
            "fixing a removes the leak: bound 3.9 before, 0 after",
        ),
        (
            [("a", "removes"), ("b", "removes"), (TOGETHER, "removes")],
            "fixing a or b, each alone, removes the leak: bound 3.9 before, 0 and 0 after",
        ),
        (
            [("a", "remains"), ("b", "unproved"), (TOGETHER, "removes")],
            "no fix alone removes the leak, all together do: bound 3.9 before, 0 after",
        ),
        (
            [(TOGETHER, "removes")],
            "fixing all suspects together removes the leak: bound 3.9 before, 0 after",
        ),
        (
            [("a", "remains"), ("b", "unproved")],
            "no fix is shown to remove the leak; with b fixed it is no longer proved, but not "
            "ruled out: try more shadow models",
        ),
        (
            [("a", "remains"), ("b", "invalid")],
            "no fix is shown to remove the leak; with b fixed the audit is invalid",
        ),
        ([("a", "remains")], "no fix that was tried removes the leak: its cause is elsewhere"),
    ],
)
def test_conclusions(effects: Sequence[tuple[str, str]], said: str, record_of: Make) -> None:
    before = Before("groundhog", 3.909, 1.0)
    fixed = tuple(fixed_audit(record_of, name, Effect(effect)) for name, effect in effects)
    explanation = Explanation(
        generator="it",
        claim=CLAIM,
        confidence=0.95,
        shadow_models=400,
        allowed_auc=allowed_auc(CLAIM),
        before=before,
        conclusion=conclusion(before, fixed),
        removed_by=(),
        fixed=fixed,
        reproduce="dpaudit explain run",
    )
    assert explanation.conclusion == said
    text = str(explanation)
    headline = text.partition("\n\n")[0]
    assert " ".join(headline.split()) == f"NOT EXPLAINED {said}"
    table = text.partition("\n  Fixed ")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in table.splitlines()[1:]]
    assert names == ["nothing", *(name for name, _ in effects)]
    assert max(map(len, text.splitlines())) <= 80


def test_the_audit_of_a_fixed_generator_is_not_that_of_the_run(folder: Path) -> None:
    inquiry = inquire("run", suspects=["label"])
    fixed = inquiry._fixed("label")
    assert fixed.specification != inquiry.run.audit.specification
    assert fixed.specification["fixed"] == "label"
    assert fixed.reproduce == "dpaudit explain run --suspect label --shadow-models 200"
    assert fixed.claim == inquiry.claim
    assert not fixed.settings.game.probe
    assert dpaudit.AuditResult.load(Path("run")).claimed_epsilon == inquiry.claim.epsilon


@pytest.mark.usefixtures("folder")
def test_a_run_with_an_inferred_schema_keeps_none_of_its_values_and_is_rebuilt() -> None:
    values = ["--data", "table.csv", "--target", "row:0", "--jobs", "1", "--shadow-models", "100"]
    attacks = [
        "--attack",
        "groundhog-hist,classifier=logistic-regression",
        "--out",
        "inferred",
        "-q",
    ]
    assert command("audit", "own.py:Leaky", *values, *attacks).exit_code == 1
    leaks = dpaudit.AuditResult.load("inferred").leaks
    assert leaks
    assert all(re.fullmatch(r"share (in bin \d+ of 10|\w+ the bounds)", of.feature) for of in leaks)
    stored = specification_of(Path("inferred"))
    assert set(stored["schema"]) == {"inferred", "label", "salted_sha256"}
    assert set(stored["data"]) == {"salted_sha256"}
    run = inquire("inferred", suspects=["bounds"], shadow_models=100).run
    assert run.audit.table.schema.columns[0].upper == 98
    document = json.loads(Path("inferred/result.json").read_text())
    assert document["data"]["sha256"] == stored["data"]["salted_sha256"]
    assert document["data"]["sha256"] != data_digest(run.audit.table.data)
