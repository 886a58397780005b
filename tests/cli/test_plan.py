"""`dpaudit audit --plan`: what an audit can prove and what it costs, the answer first."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from dpaudit.auditing import plan, timing
from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.one_run import plan as one_run
from dpaudit.auditing.records.plan import power as records_power
from dpaudit.auditing.two_worlds import plan as two_worlds
from dpaudit.bounds import CoinPlan
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.model.claim import PrivacyClaim


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in a folder of its own, with a table and bad generators in it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"age": rng.integers(20, 60, 60), "income": rng.normal(30, 5, 60)})
    table.to_csv("table.csv", index=False)
    Path("bad.py").write_text(BAD)
    return tmp_path


@pytest.fixture
def six_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model takes six seconds, without being trained."""
    cost = timing.ModelCost(model=6.0, control=6.0, memory=None, larger=None)
    monkeypatch.setattr(timing, "time_one", lambda _: cost)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of a plan's time is that of the large sizes which it lists beside the one asked for."""
    monkeypatch.setattr(plan, "SHADOW_MODELS", (50, 100))
    monkeypatch.setattr(one_run, "ALTERNATIVES", (50, 100))


TIMED = ("--set", "time-one=true")
BAD = """
import os
import subprocess
import sys


def raises(data, n_rows, seed):
    raise ValueError("two\\nlines")


def leaves(data, n_rows, seed):
    sys.exit(0)


def dies(data, n_rows, seed):
    os._exit(0)


def wrong(data, n_rows, seed):
    return data.head(3)
"""


def dpaudit(*words: str) -> Result:
    done = CliRunner().invoke(app, list(words))
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "--json" not in words)
    return done


def planned(*words: str) -> dict[str, Any]:
    done = dpaudit("audit", "--plan", *words, "--json")
    assert done.exit_code == ExitCode.PASS, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("six_seconds")
def test_plan_trains_nothing_and_says_what_can_be_proved() -> None:
    done = dpaudit(
        "audit", "--plan", "--epsilon", "1", "--delta", "1e-5", "--shadow-models", "400", "--json"
    )
    assert done.exit_code == ExitCode.PASS
    document = json.loads(done.stdout)
    asked = document["asked"]
    assert (asked["size"], asked["fitted"], asked["scored"]) == (400, 160, 240)
    assert 1 < asked["detectable"] < asked["max_provable"] < 4.4
    words = ("null", "--data", "table.csv", *TIMED, "--jobs", "2")
    spoken = dpaudit("audit", "--plan", *words)
    quiet = dpaudit("audit", "--plan", *words, "-q").stdout
    assert spoken.stdout.replace("\n  ", " ").startswith(quiet.strip())
    assert quiet.startswith("PLAN  an audit with 400 shadow models ")
    # (400 + 1 + 120) * 6 s by 2 workers
    assert "about 26 min 3 s for 400 models, 1 repeat and 120 controls" in spoken.stdout
    assert not Path("runs").exists()


@pytest.mark.ci
def test_plan_says_what_a_further_audit_takes() -> None:
    said = " ".join(
        dpaudit("audit", "--plan", "--epsilon", "1", "--set", "confidence=0.99").stdout.split()
    )
    assert "after another audit: a fresh --seed; 1 % error adds to what that one spent" in said
    assert "to add models later, audit with --sequential from the start: 1 % error in all" in said
    one = dpaudit("audit", "--plan", "--epsilon", "1", "--one-run").stdout
    assert "a fresh --seed" in one
    assert "--sequential" not in one


def test_plan_of_a_generator_does_not_train_it() -> None:
    Path("slow.py").write_text(
        "class Slow:\n"
        "    def fit(self, data, *, seed):\n"
        "        raise AssertionError('trained')\n"
        "    def sample(self, n, *, seed):\n"
        "        raise AssertionError('sampled')\n"
    )
    done = dpaudit("audit", "--plan", "slow.py:Slow", "--data", "table.csv", "--epsilon", "1")
    assert done.exit_code == ExitCode.PASS, done.output
    timed = dpaudit(
        "audit", "--plan", "slow.py:Slow", "--data", "table.csv", "--epsilon", "1", *TIMED
    )
    assert "trained" in timed.stderr


def test_plan_loads_nothing_that_only_training_needs() -> None:
    code = (
        "import sys\n"
        "from dpaudit.cli.main import app\n"
        "app(['audit', '--plan', '--epsilon', '1'], standalone_mode=False)\n"
        "names = ('pandas', 'torch', 'sklearn', 'statsmodels', 'dp_accounting', 'loky')\n"
        "sys.exit(f'imported {[name for name in names if name in sys.modules]}'\n"
        "         if any(name in sys.modules for name in names) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_plan_needs_a_claim() -> None:
    assert "plan needs a claim" in dpaudit("audit", "--plan").stderr


def test_a_generator_is_not_ignored_where_its_table_is_missing() -> None:
    done = dpaudit("audit", "--plan", "nope", "--epsilon", "1")
    assert done.exit_code == ExitCode.USAGE
    assert "give --data or --worst-case, or plan by the claim without GENERATOR" in done.stderr


@pytest.mark.usefixtures("few_rows")
def test_plan_follows_what_the_attacker_sees(few_rows: None) -> None:
    named = "gaussian-marginals", "--worst-case", "mst"
    assert planned(*named)["attacks"] == 3
    assert planned(*named, "--access", "released")["attacks"] == 1
    assert planned("--epsilon", "1", "--access", "timing")["attacks"] == 4
    done = dpaudit("audit", "--plan", *named, "--access", "released", "--detect", "2")
    assert "sees rows, model and what the proof protects" in done.stdout
    assert re.search(r"next +the same command with --shadow-models \d+, without", done.stdout)
    assert "rows=" not in done.stdout  # no attack looks at rows
    refused = dpaudit("audit", "--plan", *named, "--access", "timing")
    assert refused.exit_code == ExitCode.USAGE
    assert "--access timing needs a claim in epsilon" in refused.stderr
    refused = dpaudit("audit", "--plan", *named, "--access", "model")
    assert "discloses nothing of the kind" in refused.stderr


def test_plan_takes_the_table_of_a_worst_case() -> None:
    named = "gaussian-marginals", "--worst-case", "mst"
    done = dpaudit("audit", "--plan", *named, "--shadow-models", "20", *TIMED)
    assert done.exit_code == ExitCode.PASS, done.output
    assert "worst case mst, from the schema alone" in done.stdout
    assert "for 20 models" in done.stdout
    assert "leave out --data" in dpaudit("audit", "--plan", *named, "--data", "table.csv").stderr
    assert "give --schema" in dpaudit("audit", "--plan", "null", "--worst-case", "opposite").stderr


@pytest.mark.usefixtures("six_seconds")
def test_plan_counts_the_models_of_a_search() -> None:
    searched = "null", "--data", "table.csv", "--target", "vulnerable", "--epsilon", "1"
    done = dpaudit("audit", "--plan", *searched, "--shadow-models", "100", *TIMED)
    assert "100 in a search, 100 models" in done.stdout


def test_where_trainings_are_timed_fair_coins_alone_decide() -> None:
    claim = PrivacyClaim(epsilon=1.0)
    timed = audit_settings(access="timing", shadow_models=100)
    coins = CoinPlan(delta=0.0, confidence=timed.attack_confidence, trials=60)
    reached = two_worlds.power(timed, claim)
    assert reached.max_provable == coins.provable()
    assert reached.detectable == coins.detectable(1.0, power=0.88)
    rows = two_worlds.power(audit_settings(shadow_models=100), claim)
    assert rows.detectable is not None
    assert reached.detectable is not None
    assert rows.detectable <= reached.detectable
    needed = two_worlds.needed_shadow_models(claim, 2.0, timed)
    assert needed is not None
    for models, enough in ((needed, True), (needed - 8, False)):
        sized = two_worlds.power(audit_settings(access="timing", shadow_models=models), claim)
        assert sized.detectable is not None
        assert (sized.detectable <= 2.0) is enough


def test_plan_answers_the_other_way_round_too() -> None:
    done = dpaudit(
        "audit", "--plan", "--epsilon", "1", "--delta", "1e-5", "--detect", "3", "--json"
    )
    needed = json.loads(done.stdout)["needed"]
    found = dpaudit(
        *("audit", "--plan", "--epsilon", "1", "--delta", "1e-5", "--json"),
        *("--shadow-models", str(needed)),
    )
    assert 2.5 < json.loads(found.stdout)["asked"]["detectable"] <= 3
    assert (
        "above the claim" in dpaudit("audit", "--plan", "--epsilon", "1", "--detect", "0.5").stderr
    )
    for words in (("--detect", "3"), TIMED):
        alone = dpaudit("audit", "null", "--data", "table.csv", *words)
        assert "belongs to a plan: give --plan" in alone.stderr


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_attack_that_no_size_helps_is_said(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not whole:
        monkeypatch.setattr(two_worlds, "MOST_PLANNED", 2_000)  # what is said stays
    hopeless = dpaudit("audit", "--plan", "--epsilon", "1", "--detect", "1.001")
    assert hopeless.stdout.startswith("PLAN  no audit of up to 100,000 shadow models detects ")


def test_plan_times_one_training_and_no_more() -> None:
    done = dpaudit("audit", "--plan", "null", "--data", "table.csv", *TIMED)
    assert "for 400 models" in done.stdout
    if sys.platform == "linux":
        memory = re.search(r"^memory +about ([0-9,]+) MB for .* worker process", done.stdout, re.M)
        assert memory is not None
        assert 50 < int(memory[1].replace(",", "")) < 2000
    assert (
        "--set time-one needs a GENERATOR"
        in dpaudit("audit", "--plan", "--epsilon", "1", *TIMED).stderr
    )


@pytest.mark.ci
@pytest.mark.usefixtures("few_rows")
def test_more_rows_are_timed_apart_from_training() -> None:
    Path("slow.py").write_text(
        "import time\n"
        "import numpy as np\n"
        "import pandas as pd\n\n\n"
        "class Slow:\n"
        "    def __init__(self, most=10**6):\n"
        "        self.most = most\n\n"
        "    def fit(self, data, *, seed):\n"
        "        time.sleep(2)\n"
        "        return self\n\n"
        "    def sample(self, n, *, seed):\n"
        "        time.sleep(n / 1000)\n"
        "        rng = np.random.default_rng(seed)\n"
        "        n = min(n, self.most)\n"
        "        return pd.DataFrame({'age': rng.integers(20, 60, n), 'income': rng.random(n)})\n"
    )
    words = ("slow.py:Slow", "--data", "table.csv", "--epsilon", "1", *TIMED, "--jobs", "2")
    words += ("--attack", "groundhog-naive")
    timed = planned(*words, "--set", "rows=20")
    assert timed["seconds"] > 401 * 2 / 2
    more = timed["more_rows"]
    assert more["rows"] == 200
    # about 180 ms for each of 400 models, 1 repeat and 120 controls, and no training
    assert 521 * 0.12 / 2 < more["seconds"] < 521 * 1.5 / 2
    spoken = " ".join(dpaudit("audit", "--plan", *words, "-p", "most=60").stdout.split())
    assert "rows the generator does not give 10 times the rows (600)" in spoken
    assert planned(*words, "-p", "most=60")["more_rows"] == {"rows": 600, "seconds": None}


@pytest.mark.usefixtures("few_rows")
def test_a_table_that_a_worker_may_lack_memory_for_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timing, "MOST_ROWS", 599)
    words = ("null", "--data", "table.csv", *TIMED)
    assert "more_rows" not in planned(*words)
    spoken = " ".join(dpaudit("audit", "--plan", *words).stdout.split())
    assert (
        "rows more of every model (--set rows=N) may show a leak that few rows hide shadow"
        in spoken
    )


@pytest.mark.usefixtures("few_rows")
def test_rows_are_named_as_a_lever() -> None:
    untimed = " ".join(dpaudit("audit", "--plan", "--epsilon", "1").stdout.split())
    assert "rows more of every model (--set rows=N) may show a leak that few rows hide" in untimed
    assert "; --set time-one=true says their cost" in untimed
    assert "more_rows" not in planned("--epsilon", "1")
    timed = " ".join(
        dpaudit("audit", "--plan", "null", "--data", "table.csv", *TIMED).stdout.split()
    )
    assert re.search(
        r"rows 10 times the rows cost .+ s more \(.+ s a model\) and may show a leak that few rows "
        r"hide: --set rows=600",
        timed,
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("raises", "ValueError at bad.py:8 in raises: two lines;"),
        ("leaves", "SystemExit at bad.py:12 in leaves: 0;"),
        ("dies", "worker"),
        ("wrong", "3 rows"),
    ],
)
def test_a_generator_that_cannot_be_timed_is_one_line(name: str, says: str) -> None:
    words = ("--data", "table.csv", "--epsilon", "1", "--attack", "groundhog-naive")
    done = dpaudit("audit", "--plan", f"bad.py:{name}", *words, *TIMED)
    assert done.exit_code == ExitCode.USAGE, done.output
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"error: bad.py:{name}: its one model could not be timed: ")
    assert says in line
    assert "Traceback" not in done.stderr
    assert "leaked" not in done.stderr
    kept = re.search(r"; traceback: (\S+)$", line)
    assert (kept is None) == (name == "dies")
    if kept is not None:
        file = Path(kept[1])
        assert file.stat().st_mode & 0o777 == 0o600
        assert "Traceback" in file.read_text()
        file.unlink()


@pytest.mark.usefixtures("six_seconds")
def test_the_cost_includes_the_controls() -> None:
    given = planned("null", "--data", "table.csv", *TIMED, "--jobs", "2")
    assert given["trainings"] == {"models": 400, "repeats": 1, "controls": 120}
    assert given["seconds"] == (400 + 1 + 120) * 6 / 2
    assert given["worker_memory"] is None
    assert planned("--epsilon", "1")["seconds"] is None


@pytest.mark.ci
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("delta", [pytest.param("0", marks=pytest.mark.ci), "1e-5"])
def test_a_one_run_audit_is_planned_by_its_canaries(delta: str) -> None:
    claim = ("--epsilon", "1", "--delta", delta, "--one-run")
    usual = planned(*claim)
    assert (usual["unit"], usual["attacks"]) == ("canaries", 3)
    small, large = usual["asked"], planned(*claim, "--set", "canaries=500")["asked"]
    assert (small["size"], small["fitted"], small["scored"]) == (100, None, 100)
    assert 3.1 < small["max_provable"] < 3.2
    assert 4.7 < large["max_provable"] < 4.9  # as docs/statistics.md has it
    assert large["detectable"] < small["detectable"]
    needed = planned(*claim, "--detect", "2")["needed"]
    assert planned(*claim, "--set", f"canaries={needed}")["asked"]["detectable"] <= 2
    assert planned(*claim, "--set", f"canaries={needed - 5}")["asked"]["detectable"] > 2
    spoken = dpaudit(
        "audit", "--plan", *claim, "--set", "canaries=500", "--detect", "2"
    ).stdout.splitlines()
    assert spoken[0] == f"PLAN  about {needed} canaries detect a true epsilon of 2 with 80 % power"
    assert any(line.split()[:2] == ["500", "500"] and "this audit" in line for line in spoken)


@pytest.mark.ci
def test_a_one_run_plan_agrees_with_its_audit() -> None:
    words = ("--data", "table.csv", "--one-run", "--set", "canaries=30")
    done = dpaudit("audit", "null", *words, "--json", "--jobs", "1")
    result, plan = json.loads(done.stdout), planned("null", *words)
    for key in ("max_provable", "detectable"):
        assert plan["asked"][key] == result[f"{key}_epsilon"]
    assert plan["interference"] == result["game"]["interference"]
    assert plan["asked"]["scored"] == result["game"]["canaries"] == 30


def test_the_one_training_is_timed() -> None:
    words = ("null", "--data", "table.csv", "--one-run", "--set", "canaries=30", *TIMED)
    spoken = " ".join(dpaudit("audit", "--plan", *words).stdout.split())
    assert re.search(r"cost about .+ for one model and 2 controls \(.+ s the model, ", spoken)
    assert planned(*words)["trainings"] == {"models": 1, "repeats": 0, "controls": 2}
    if sys.platform == "linux":
        assert "for the worker process" in spoken


@pytest.mark.usefixtures("six_seconds")
def test_a_sequential_audit_is_planned_to_its_end() -> None:
    claim = ("--epsilon", "1", "--shadow-models", "100")
    usual, in_turn = planned(*claim), planned(*claim, "--sequential")
    assert in_turn["asked"]["max_provable"] < usual["asked"]["max_provable"]
    words = ("null", "--data", "table.csv", *claim, "--sequential", *TIMED)
    spoken = dpaudit("audit", "--plan", *words).stdout
    assert "cost      at most about" in spoken


@pytest.mark.ci
def test_a_sequential_plan_agrees_with_its_audit() -> None:
    words = ("--data", "table.csv", "--sequential", "--shadow-models", "40")
    done = dpaudit("audit", "null", *words, "--json", "--jobs", "1", "--set", "probe=false")
    result, plan = json.loads(done.stdout), planned("null", *words)
    for key in ("max_provable", "detectable"):
        assert plan["asked"][key] == result[f"{key}_epsilon"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--epsilon", "1", "--set", "canaries=40"], "is for --one-run"),
        (["--epsilon", "1", "--one-run", "--set", "canaries=19"], "a whole number from 20"),
        (["--epsilon", "1", "--one-run", "--shadow-models", "100"], "leave out --shadow-models"),
        (["--epsilon", "1", "--one-run", "--neighbours", "replace-one"], "replace-one"),
        (["null", "--data", "table.csv", "--one-run", "--set", "canaries=31"], "half of the table"),
    ],
)
def test_what_no_one_run_audit_can_be_is_refused(words: Sequence[str], says: str) -> None:
    done = dpaudit("audit", "--plan", *words)
    assert done.exit_code == ExitCode.USAGE
    assert says in " ".join(done.stderr.split())


@pytest.mark.parametrize("words", [(), pytest.param(("--detect", "12"), marks=pytest.mark.ci)])
def test_a_large_epsilon_names_the_audits_that_can_decide(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["audit", "--plan", "--epsilon", "8", "--delta", "1e-5", *words])
    assert done.exit_code == 0, done.output
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout
    starts = [line[10:] for line in done.stdout.splitlines() if line.startswith("instead")]
    for start, cheapest_first in zip(
        starts,
        ("the probes before", "dpaudit replay", "400 models with --records 64 detect epsilon "),
        strict=True,
    ):
        assert start.startswith(cheapest_first)
    assert "not       --access released: it makes attacks stronger" in done.stdout
    named = audit_settings(records=64, shadow_models=400)
    reached = records_power(named, PrivacyClaim(epsilon=8.0, delta=1e-5))
    assert reached.max_provable > 8.0
    assert reached.detectable is not None
    assert reached.detectable <= 12.0


def test_where_one_record_is_enough_no_other_audit_is_named() -> None:
    done = CliRunner().invoke(app, ["audit", "--plan", "--epsilon", "1", "--detect", "3"])
    assert "instead" not in done.stdout
