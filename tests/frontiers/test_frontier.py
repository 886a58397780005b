"""`dpaudit frontier` and `dpaudit.frontier`: known answers, failures, resuming, what is shown."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import dpaudit
import dpaudit.frontiers.run as running
from dpaudit.auditing.games import audit_settings
from dpaudit.cli.console import REPEATABLE
from dpaudit.cli.main import app
from dpaudit.errors import InputError, RunFolderError, SettingsError
from dpaudit.frontiers import FrontierSettings, frontier_schema
from dpaudit.frontiers.page import draw_frontier, frontier_page
from dpaudit.frontiers.plan import AUDIT_CHOICES, PointName
from dpaudit.frontiers.record import Frontier, PointUtility
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.report.render import page_html, page_markdown
from dpaudit.results.document import from_document
from dpaudit.results.record import AuditBrief
from dpaudit.results.verdict import Verdict
from dpaudit.usefulness.experiment import Experiment
from dpaudit.usefulness.run import UtilitySettings
from samples import QUICK_ATTACKS

TOYS = Path(__file__).with_name("frontier_toys.py")
SCHEMA = Schema(
    columns=(
        Column(name="size", kind=Kind.CONTINUOUS, lower=0, upper=4),
        Column(name="sick", kind=Kind.BINARY, categories=(0, 1)),
    ),
    label="sick",
)
AUDIT = audit_settings(shadow_models=40, attacks=QUICK_ATTACKS[1:], target="row:0")
UTILITY = UtilitySettings(repeats=3, classifiers=("logistic-regression", "gaussian-naive-bayes"))
SVG = "{http://www.w3.org/2000/svg}"


def toy(name: str) -> str:
    return f"{TOYS}:{name}"


def table() -> pd.DataFrame:
    """100 rows whose label follows from their size, and one that nothing else is like."""
    rng = np.random.default_rng(5)
    sick = rng.integers(0, 2, 100)
    found = pd.DataFrame({"size": rng.random(100) + sick, "sick": sick})
    found.loc[0] = [3.9, 0]
    return found.astype({"sick": int})


def ran(*names: str, epsilons: tuple[float, ...] = (0.1,), **given: Any) -> Frontier:
    return dpaudit.frontier(
        [toy(name) for name in names],
        table(),
        epsilons=epsilons,
        **{"schema": SCHEMA, "audit": AUDIT, "utility": UTILITY, "jobs": 1, **given},
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Frontier, Path, list[str]]:
    """One run: rows that are caught, noise that is not, and a generator that fails at first."""
    out = tmp_path_factory.mktemp("frontier") / "out"
    said: list[str] = []
    result = ran("Rows", "Unclaimed", "Poor", epsilons=(2, 0.1), out=out, on_step=said.append)
    return result, out, said


@pytest.mark.ci
def test_rows_are_caught_and_useful_and_noise_is_neither(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    points = {(point.asked.rpartition(":")[2], point.epsilon): point for point in found[0].points}
    assert [epsilon for _, epsilon in points] == [0.1, 2, 0.1, 2, 0.1, 2]
    rows, noise = points["Rows", 0.1], points["Unclaimed", 0.1]
    assert rows.audit is not None
    assert rows.utility is not None
    assert rows.audit.verdict is Verdict.VIOLATION
    assert rows.audit.proved is not None
    assert rows.audit.max_provable is not None
    assert 0.1 < rows.audit.proved <= rows.audit.max_provable
    assert rows.utility.auroc.mean == pytest.approx(found[0].real, abs=0.05)
    assert rows.utility.auroc.mean > 0.9
    assert noise.audit is not None
    assert noise.utility is not None
    assert noise.audit.claim.value == 0.1  # what it was given: it claims nothing itself
    assert noise.audit.verdict is not Verdict.VIOLATION
    assert not noise.utility.beats_noise
    assert found[0].verdict is Verdict.VIOLATION


@pytest.mark.ci
def test_a_failure_loses_nothing_else(found: tuple[Frontier, Path, list[str]]) -> None:
    result, _, said = found
    poor, rich = result.points[4:]
    assert poor.utility is None
    assert "too little budget" in poor.failures[0]
    assert rich.utility is not None
    assert rich.failures == ()
    assert result.failures == (f"{toy('Poor')} at epsilon 0.1: {poor.failures[0]}",)
    assert all(f"{number} of 6" in " ".join(said) for number in range(1, 7))


@pytest.mark.ci
def test_the_cost_is_said_before_anything_else(found: tuple[Frontier, Path, list[str]]) -> None:
    first = found[2][0]
    assert first.startswith("to run: 6 points with 240 shadow models, 1 at once, about")
    assert "18 tables for classifiers" in first


@pytest.mark.ci
def test_the_same_call_resumes_and_trains_nothing(
    found: tuple[Frontier, Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, first, _ = found
    out = tmp_path / "copy"
    shutil.copytree(first, out)

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("a table is measured again")

    monkeypatch.setattr(Experiment, "repeat", refuse)
    said: list[str] = []
    again = ran("Rows", epsilons=(0.1, 2), out=out, on_step=said.append)
    assert again.points == result.points[:2]
    assert again.noise == result.noise
    assert not any("to run" in words for words in said)  # no cost: nothing is left


@pytest.mark.ci
def test_another_experiment_in_the_same_folder_is_refused(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    _, out, _ = found
    with pytest.raises(RunFolderError, match="shadow_models"):
        ran("Rows", out=out, audit=AUDIT.with_game(shadow_models=60))
    with pytest.raises(RunFolderError, match="repeats is 3 there and 4 here"):
        ran("Rows", out=out, utility=replace(UTILITY, repeats=4))
    noise = out / "noise.json"
    kept = noise.read_text()
    noise.write_text("{}")
    with pytest.raises(RunFolderError, match="delete it"):
        ran("Rows", out=out)
    noise.write_text(kept)


@pytest.mark.ci
def test_an_interrupted_measurement_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ran("Rows")
    measured = Experiment.repeat
    seen: list[int] = []

    def stopped(self: Experiment, generator: Any, *, source: str, number: int) -> Any:
        if source == running.GENERATOR:
            seen.append(number)
            if seen == [0, 1]:
                raise KeyboardInterrupt
        return measured(self, generator, source=source, number=number)

    monkeypatch.setattr(Experiment, "repeat", stopped)
    with pytest.raises(KeyboardInterrupt):
        ran("Rows", out=tmp_path / "out")
    assert ran("Rows", out=tmp_path / "out").points[0].utility == whole.points[0].utility
    assert seen == [0, 1, 1, 2]


@pytest.mark.ci
def test_the_document_fits_its_schema_and_reads_back(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    result, out, _ = found
    document = json.loads((out / "frontier.json").read_text())
    validator = Draft202012Validator(frontier_schema())
    validator.validate(document)
    del document["schema_version"]
    assert not validator.is_valid(document)
    assert from_document(Frontier, document) == result


@pytest.mark.ci
def test_the_folder_keeps_digests_and_no_records(found: tuple[Frontier, Path, list[str]]) -> None:
    _, out, _ = found
    stored = json.loads((out / "noise.json").read_text())["specification"]
    assert set(stored["train"]) == set(stored["test"]) == {"salted_sha256"}
    assert (out / "salt").stat().st_mode & 0o077 == 0


@pytest.mark.ci
def test_lines_fit_a_terminal_and_say_what_matters(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    lines = str(found[0]).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("FRONTIER  3 of ")
    assert lines[3].endswith(":Rows")
    text = " ".join(lines)
    assert re.search(r"3 of [56] points violate their claim", text)
    assert "1 failed" in text
    assert "violation" in lines[4]
    assert lines[6].endswith(":Unclaimed")
    assert " as noise " in lines[7]
    assert "flagged with probability at most 26 %" in text  # 1 - .95 ** 6


@pytest.mark.ci
def test_methods_of_one_library_keep_their_names(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    names = {"Rows": "marginals", "Unclaimed": "some-library:mst,defaults=public"}
    frontier = found[0]
    points = [
        replace(point, asked=names.get(point.asked.rpartition(":")[2], "some-library:aim,bins=9"))
        for point in frontier.points
    ]
    lines = str(replace(frontier, points=tuple(points), classifiers=("gbm",))).splitlines()
    at = [
        lines.index(name)
        for name in ("some-library:mst,defaults=public", "some-library:aim,bins=9")
    ]
    assert at == [5, 8]
    assert all(line.startswith("marginals ") for line in lines[3:5])
    assert all(line.startswith("      ") for line in (*lines[6:8], *lines[9:11]))
    assert "Mean AUROC of 1 classifier trained" in " ".join(lines)


@pytest.mark.ci
def test_the_picture_has_every_point_at_its_place(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    root = ElementTree.fromstring(draw_frontier(found[0]))
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert (
        sum(word == toy("Rows") or (word or "").startswith(str(TOYS)[:20]) for word in words) == 3
    )
    shapes = [element.get("d", "") for element in root.iter(f"{SVG}path")]
    diamonds = [shape for shape in shapes if shape.endswith("m0 -5l5 5l-5 5l-5 -5z")]
    crosses = [shape for shape in shapes if shape.endswith("m-4 -4l8 8m0 -8l-8 8")]
    in_legend = 2
    assert len(diamonds) == in_legend + sum(point.utility is not None for point in found[0].points)
    audits = [point.audit for point in found[0].points if point.audit and point.utility]
    assert len(crosses) == sum(audit.verdict is Verdict.VIOLATION for audit in audits)
    [described] = [element.text or "" for element in root.iter(f"{SVG}desc")]
    assert "bound " in described
    assert "Noise: " in described
    assert draw_frontier(found[0]) == draw_frontier(found[0])


@pytest.mark.ci
def test_a_page_has_the_picture_the_failures_and_the_command(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    result, out, _ = found
    html = page_html(frontier_page(result))
    assert html == (out / "frontier.html").read_text()
    assert html.count("<svg") == 1
    assert "<script" not in html
    for page in (html, page_markdown(frontier_page(result))):
        assert "What failed" in page
        assert "dpaudit frontier " in page
        assert "--data TABLE.csv" in re.sub("</?span>", "", page)
        assert "write it to TABLE.csv first" in page
        assert "too little budget" in page


@pytest.mark.ci
def test_a_bound_that_proves_nothing_is_withheld(found: tuple[Frontier, Path, list[str]]) -> None:
    point = next(one for one in found[0].points if one.audit and one.utility)
    assert point.audit
    beyond = replace(point.audit, verdict=Verdict.INCONCLUSIVE, proved=point.epsilon + 1.0)
    second = replace(found[0], points=(replace(point, audit=beyond),))
    assert "withheld" in str(second)
    drawn = draw_frontier(second)
    assert "bound withheld, inconclusive" in drawn
    root = ElementTree.fromstring(drawn)
    rings = [one for one in root.iter(f"{SVG}path") if "a4 4" in one.get("d", "")]
    inside = replace(beyond, proved=0.0)
    ring = draw_frontier(replace(found[0], points=(replace(point, audit=inside),)))
    more = [
        one for one in ElementTree.fromstring(ring).iter(f"{SVG}path") if "a4 4" in one.get("d", "")
    ]
    assert len(more) == len(rings) + 1


@pytest.mark.ci
def test_a_point_whose_audit_failed_is_shown_as_such(
    found: tuple[Frontier, Path, list[str]],
) -> None:
    point = replace(found[0].points[0], audit=None, failures=("audit: no",))
    broken = replace(found[0], points=(point,))
    assert "failed" in str(broken).splitlines()[4]
    assert "no audit" in draw_frontier(broken)
    assert "no point could be audited" in str(broken)
    assert broken.verdict is Verdict.INVALID


@pytest.mark.ci
def test_the_command_repeats_the_run(found: tuple[Frontier, Path, list[str]]) -> None:
    settings = FrontierSettings(
        generators=("marginals,bins=8",),
        epsilons=(3, 1),
        audit=AUDIT.with_game(probe=False, sequential=True),
        utility=UTILITY,
    )
    command = settings.command(["--data", "table.csv", "--schema", "schema.json"], None)
    assert command.startswith(
        "dpaudit frontier marginals,bins=8 --data table.csv --schema schema.json --epsilons 1,3 "
    )
    for words in (
        *("--shadow-models 40", f"--attack {QUICK_ATTACKS[1]}", "--target row:0", "--no-probe"),
        *("--sequential", "--repeats 3", "--classifier gaussian-naive-bayes"),
    ):
        assert words in command
    assert list(settings.names()) == [
        PointName("marginals,bins=8", "marginals", {"bins": 8, "epsilon": epsilon}, epsilon)
        for epsilon in (1.0, 3.0)
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"generators": ()}, "`generators`"),
        ({"generators": "marginals"}, "`generators`"),
        ({"generators": ("marginals", "marginals")}, "twice"),
        ({"generators": ("marginals,epsilon=2",)}, "leave its epsilon out"),
        ({"epsilons": ()}, "`epsilons`"),
        ({"epsilons": (1, 0)}, "positive"),
        ({"epsilons": (1, float("inf"))}, "positive"),
        ({"epsilons": (1, 1.0)}, "twice"),
        ({"audit": audit_settings(epsilon=1)}, "`epsilon` is of one audit"),
        ({"audit": audit_settings(one_run=True)}, "`one_run` is of one audit"),
        ({"utility": UtilitySettings(seed=7)}, "`seed` is that of the audit"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        FrontierSettings(**{"generators": ("marginals",), "epsilons": (1,), **given})


@pytest.mark.parametrize("name", ["gaussian-marginals", "marginal", toy("Absent")])
def test_a_generator_that_cannot_be_built_stops_all_before_any_training(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        dpaudit.frontier([toy("Rows"), name], table(), epsilons=[1], schema=SCHEMA, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_ends_with_what_was_found(tmp_path: Path) -> None:
    data, schema = tmp_path / "table.csv", tmp_path / "schema.json"
    table().to_csv(data, index=False)
    SCHEMA.save(schema)
    words = ["frontier", "--data", str(data), "--schema", str(schema), "--attack", QUICK_ATTACKS[1]]
    words += ["--target", "row:0", "--shadow-models", "40", "--repeats", "2", "--jobs", "1"]
    words += ["--classifier", "logistic-regression", "--out", str(tmp_path / "out")]
    caught = CliRunner().invoke(app, [*words, toy("Rows"), "--epsilons", "0.1", "--json"])
    assert caught.exit_code == 1
    assert json.loads(caught.stdout)["points"][0]["audit"]["verdict"] == "violation"
    assert "to run: 1 point with 40 shadow models" in caught.stderr
    again = [*words, toy("Rows"), "--epsilons", "0.1", "--fail-on", "never"]
    shown = CliRunner().invoke(app, again)
    assert shown.exit_code == 0
    assert f"report    {tmp_path / 'out' / 'frontier.html'}\n" in shown.stdout
    failed = CliRunner().invoke(app, [*words, toy("Poor"), "--epsilons", "1", "-q"])
    assert failed.exit_code == 3
    assert failed.stderr == ""
    wrong = CliRunner().invoke(app, [*words, toy("Rows"), "--epsilons", "1;3"])
    assert wrong.exit_code == 2
    assert "--epsilons" in wrong.stderr


def test_the_command_has_an_option_for_every_choice_of_the_audit() -> None:
    shown = CliRunner().invoke(app, ["frontier", "--help-all"]).stdout
    for name in AUDIT_CHOICES:
        assert REPEATABLE.get(name, f"--{name.replace('_', '-')}") in shown


def test_types_of_parts_are_what_the_schema_says() -> None:
    found = frontier_schema()["properties"]["points"]["items"]["properties"]
    assert set(found["audit"]["oneOf"][1]["properties"]) == set(AuditBrief.__dataclass_fields__)
    assert set(found["utility"]["oneOf"][1]["properties"]) == set(PointUtility.__dataclass_fields__)
