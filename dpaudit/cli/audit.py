"""`dpaudit audit`, with `--plan` what an audit of a given size detects, and `dpaudit demo`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from dpaudit.auditing.games import keywords_of
from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings, Machine, Outputs
from dpaudit.cli import options
from dpaudit.cli.console import (
    ExitCode,
    exit_code,
    guard,
    messages,
    require_folders,
    results,
    spell_options,
    suggest_resuming,
    write_named,
)
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.files import MOST_OF_SUMMARY, append_to_step_summary
from dpaudit.formatting import (
    Row,
    aligned,
    counted,
    duration,
    headed,
    percent,
    rounded,
    rounded_down,
    rounded_up,
    row_lines,
)
from dpaudit.model.choices import Access, FailOn
from dpaudit.model.claim import Claim, Neighbours, Quantity
from dpaudit.model.setting import Option, Panel

if TYPE_CHECKING:
    from dpaudit.auditing.plan import MoreRows, Plan, PlanSubject, Sizing
    from dpaudit.auditing.spec import AuditSpec
    from dpaudit.auditing.timing import ModelCost, RowsCost
    from dpaudit.results.record import AuditRecord
    from dpaudit.results.result import AuditResult

_MEGABYTE = 10**6
_MAY_SHOW = "may show a leak that few rows hide"
TOY_MODELS: Final = 100
"""Shadow models of each audit of a demonstration."""
_TABLE: Final = "sample:breast-cancer"
_TOYS: Final = {
    "laplace-histogram": "claims epsilon 1 and satisfies it: noisy counts of one column",
    "copycat": "claims epsilon 1, and copies one record if it saw it",
}
"""Two generators and their known answers."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to do with the settings of an audit.

    Attributes:
        plan: Print what this audit can detect, without training; without GENERATOR by the claim
            alone.
        detect: Epsilon (or mu, rho) to detect: `plan` says how many models that takes.
        out: Run folder. Default: runs/, named for the audit.
    """

    plan: Annotated[bool, Option(panel=Panel.PLAN)] = False
    detect: Annotated[float | None, Option("E", panel=Panel.PLAN)] = None
    out: Annotated[Path | None, Option("DIR", panel=Panel.OUTPUT)] = None


@guard
@options.shows_values
@options.takes_settings()
def audit(
    *,
    generator: options.GeneratorToPlan = None,
    data: options.Tables = None,
    schema: options.SchemaFile = None,
    settings: AuditSettings,
    run: RunOptions,
    outputs: Outputs,
    json: options.Json = False,
    quiet: options.Quiet = False,
    machine: Machine,
) -> None:
    """Audits a generator: trains shadow models with and without one record and attacks them.

    The same command resumes an interrupted run.
    """
    from dpaudit.auditing.games import audited_table, build_spec, game_of

    time_one = outputs.time_one
    junit = None if outputs.junit is None else Path(outputs.junit)
    require_folders(junit=junit)
    if outputs.after_replay is not None:
        settings = game_of(settings.game).after_replay(settings, Path(outputs.after_replay))
    if run.plan:
        print_plan(
            settings,
            *(generator, data, schema),
            detect=run.detect,
            time_one=time_one,
            jobs=machine.jobs,
            json=json,
            quiet=quiet,
        )
        return
    if run.detect is not None or time_one:
        name = "time_one" if run.detect is None else "detect"
        raise SettingsError(f"`{name}` belongs to a plan: give `plan`")
    if generator is None:
        raise SettingsError("GENERATOR is missing; see dpaudit audit --help")
    from dpaudit.report.render import junit_xml
    from dpaudit.results.sentences import headline
    from dpaudit.results.verdict import Verdict

    spec = build_spec(generator, audited_table(data, schema, settings), settings)
    folder = run.out or spec.default_folder
    result = _run_audit(spec, folder, machine, quiet=quiet)
    output = results()
    code = exit_code(result.verdict, outputs.fail_on)
    if junit is not None:
        strictly = FailOn.INCONCLUSIVE if outputs.fail_on is FailOn.NEVER else outputs.fail_on
        fails = exit_code(result.verdict, strictly) is not ExitCode.PASS
        write_named(junit, junit_xml(result, fails=fails), option="junit")
    summarise(result)
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        why = result.reasons[:1] if result.verdict is Verdict.INCONCLUSIVE else ()
        output.print("; ".join([headline(result), *why]))
    else:
        _show(result, folder)
    raise typer.Exit(code)


def _run_audit(spec: AuditSpec, folder: Path, machine: Machine, *, quiet: bool) -> AuditResult:
    """Runs an audit, and reports its folder and progress on standard error."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.auditing.reuse import judged_before, judged_in

    errors = messages(quiet=quiet)
    if not quiet:
        probes = "" if spec.not_probed else "; probes first (--set probe=false: none)"
        audited = f"{spec.generator.name} on {spec.table.source}"
        errors.print(f"auditing {audited}; run folder {folder}{probes}")
        if spec.before:
            errors.print(spec.before)
        elif earlier := judged_before(spec, folder):
            errors.print(f"warning: {judged_in(earlier)}; audit with another --seed")

    def warned(text: str) -> None:
        errors.print(f"warning: {spell_options(text).replace('`', '')}")

    with suggest_resuming(), ConsoleProgress(errors, quiet=quiet) as progress:
        return run_audit(spec, folder, jobs=machine, on_progress=progress, on_warning=warned)


def _show(result: AuditResult, folder: Path) -> None:
    """Prints a result, its report's place, the next step, and the command that repeats it."""
    from dpaudit.results.result import report_row
    from dpaudit.results.summary import next_step

    step = next_step(result, run=str(folder))
    rows = [
        report_row(folder),
        Row("next", step.command or step.why, whole=bool(step.command)),
        Row("cost", step.cost),
        *(Row("then", then) for then in step.then),
        Row("reproduce", result.reproduce, whole=True),
    ]
    lines = row_lines(row for row in rows if row.fact)
    results().print("\n".join([str(result), *lines]))


def summarise(result: AuditRecord) -> None:
    """Appends an audit's report to the summary of the job, in a step of GitHub Actions.

    If it cannot be written, a note goes to standard error and the exit code stays as it is.
    """
    from dpaudit.report.render import render_excerpt

    excerpt = render_excerpt(result, most_bytes=MOST_OF_SUMMARY - 2)
    if reason := append_to_step_summary(excerpt + "\n\n"):
        messages().print(f"note: {reason}")


def print_plan(
    settings: AuditSettings,
    generator: str | None,
    data: list[str] | None,
    schema: Path | None,
    *,
    detect: float | None,
    time_one: bool,
    jobs: int | None,
    json: bool,
    quiet: bool,
) -> None:
    """Prints what an audit can detect and what it costs, without training.

    Args:
        settings: Every choice of the audit.
        generator: The generator; None to plan by the claim alone.
        data: The table; None to plan without one.
        schema: The schema of the table.
        detect: True value of the claim's quantity to detect; None to plan the size that is asked.
        time_one: Whether to train one model, to estimate the cost.
        jobs: Trainings in parallel; None for one per core.
        json: Whether to print one JSON document.
        quiet: Whether to print one line.

    Raises:
        SettingsError: If options contradict one another, or there can be no such audit.
        ClaimError: If there is no claim, or the game cannot be about it.
        InputError: If the table or the generator cannot be used.
    """
    from dpaudit.auditing.games import audited_table, build_spec, sizing_of

    has_table = data is not None or "worst_case" in keywords_of(settings)  # which makes its own
    if generator is not None and not has_table:
        raise SettingsError(
            f"what generator {generator!r} claims depends on its table: give `data` or "
            "`worst_case`, or plan by the claim without GENERATOR"
        )
    if generator is None and time_one:
        raise SettingsError("`time_one` needs a GENERATOR with `data` or `worst_case`")
    if generator is None:
        subject = _claimed(settings)
    else:
        subject, settings = _subject(generator, data, schema, settings)
    claim = subject.claim
    if detect is not None and not detect > claim.value:
        raise SettingsError(f"`detect` must be above the claim ({claim.value:g}), got {detect:g}")
    sizing, cost = sizing_of(subject, settings, detect), AuditCost()
    if generator is not None and time_one:
        from dpaudit.auditing import timing

        model = timing.time_one(
            build_spec(generator, audited_table(data, schema, settings), settings)
        )
        cost = cost_of(settings, model, together=subject.together, jobs=jobs)
    if json:
        results().print(_record(sizing, claim, settings, cost).to_json(), end="")
    elif quiet:
        results().print(_headline(sizing, claim))
    else:
        _show_plan(sizing, claim, settings, cost)


def _claimed(settings: AuditSettings) -> PlanSubject:
    """The audit's subject if no generator and table are named: the claim.

    Raises:
        ClaimError: If the settings state no claim.
    """
    from dpaudit.auditing.plan import PlanSubject

    stated = settings.claim.made(
        relation=settings.claim.neighbours or Neighbours.ADD_REMOVE,
        default_delta=0.0,
        source="set for this audit",
        unit=settings.claim.unit,
    )
    if stated is None:
        raise ClaimError(
            "a plan needs a claim: give `epsilon`, `mu`, `rho` or `curve`, or a GENERATOR with "
            "`data` or `worst_case`"
        )
    return PlanSubject(stated)


def _subject(
    generator: str, data: list[str] | None, schema: Path | None, settings: AuditSettings
) -> tuple[PlanSubject, AuditSettings]:
    """The audit's subject, and its settings with the attacks that see something of the generator.

    Raises:
        ClaimError: If there is no claim.
        InputError: If the table or the generator cannot be used.
    """
    from dpaudit.auditing.games import audited_table, game_of
    from dpaudit.auditing.plan import PlanSubject
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.protocols import trains_many

    table = audited_table(data, schema, settings)
    offered = {"schema": table.schema, "target": table.schema.handed(table.data.iloc[[0]])}
    named = named_generator(
        generator, settings.parameters, offered, worker_memory=settings.worker_memory
    )
    claim = claim_under_audit(named, settings.claim, table)
    together = trains_many(named.generator) and not settings.game.is_timed
    settings = game_of(settings.game).visible(named, settings)
    return PlanSubject(claim, table, together), settings


def _record(sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost) -> Plan:
    from dpaudit.auditing.plan import Plan

    return Plan(
        game=settings.game.NAME,
        unit=sizing.unit,
        needed=None if sizing.needed is None else sizing.needed.size,
        asked=sizing.asked_row,
        alternatives=sizing.rows,
        claim=claim,
        quantity=claim.quantity,
        attacks=sizing.attacks,
        confidence=settings.confidence,
        seconds=cost.seconds,
        trainings=cost.trained,
        worker_memory=cost.memory,
        more_rows=cost.more_rows,
        interference=sizing.interference,
        records=sizing.records,
    )


def _show_plan(sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost) -> None:
    lines = headed(_headline(sizing, claim), _rows(sizing, claim, settings, cost))
    lines += ["", *aligned(_table(sizing, claim), numeric={0, 1, 2, 3})]
    if sizing.table:
        lines += ["", *sizing.table]
    lines += ["", *row_lines(_next(sizing, settings))]
    results().print("\n".join(lines))


def _headline(sizing: Sizing, claim: Claim) -> str:
    """The answer: how many models a leak takes, or which leak this audit detects."""
    from dpaudit.results.phrases import detects_from
    from dpaudit.results.verdict import Power

    unit, noun = sizing.unit.replace("_", " "), claim.quantity.noun
    if sizing.needed is not None:
        size, purpose = sizing.needed
        if size is None:
            return (
                f"PLAN  no audit of up to {sizing.most:,} {unit} detects {purpose} with 80 % power"
            )
        return f"PLAN  about {size:,} {unit} detect {purpose} with 80 % power"
    row, audit = sizing.asked_row, f"PLAN  an audit with {sizing.asked:,} {unit}"
    if row.max_provable <= claim.value:
        return f"{audit} cannot decide: it proves at most {noun} {rounded_down(row.max_provable)}"
    reached = Power(row.max_provable, row.detectable, row.detectable_gaussian)
    return f"{audit} {detects_from(reached, claim)}"


def _rows(sizing: Sizing, claim: Claim, settings: AuditSettings, cost: AuditCost) -> Iterator[Row]:
    from dpaudit.results.phrases import CURVE_FACTOR, claim_and_relation

    yield Row("claim", claim_and_relation(claim))
    if claim.quantity is Quantity.FACTOR:
        yield Row("factor", CURVE_FACTOR)
    yield Row("bounds", f"{percent(settings.confidence)} confidence, {sizing.of}")
    given = keywords_of(settings)
    if "access" in given:
        yield Row("attacker", f"sees {given['access'].in_words}")
    if "worst_case" in given:
        yield Row("table", f"worst case {given['worst_case']}, from the schema alone")
    if sizing.asked_row.max_provable <= claim.value:
        yield Row("too small", "even an attack without errors could not prove more than the claim")
    for label, fact, _ in sizing.details:
        yield Row(label, spell_options(fact, options=("data",)).replace("`", ""))
    unknown = "not known: --set time-one=true trains one model and multiplies"
    yield from cost.rows or [Row("cost", sizing.cost or unknown)]
    # An attack that looks at rows may see more in more of them.
    without_rows = ATTACKS_AT[Access.RELEASED], ATTACKS_AT[Access.EVERYTHING]
    if cost.more_rows is None and given.get("attacks") not in without_rows:
        ask = "" if cost.rows else "; --set time-one=true says their cost"
        yield Row("rows", f"more of every model (--set rows=N) {_MAY_SHOW}{ask}")


def _table(sizing: Sizing, claim: Claim) -> list[tuple[str, ...]]:
    """What audits of several sizes can prove."""
    unit, noun = sizing.unit.replace("_", " "), claim.quantity.noun
    head = (unit, sizing.scored, "upper limit", f"minimum detectable {noun}", "")
    table: list[tuple[str, ...]] = [head]
    for row in sizing.rows:
        numbers = rounded_down(row.max_provable), rounded_up(row.detectable)
        mark = "this audit" if row.size == sizing.asked else ""
        table.append((str(row.size), str(row.scored), *numbers, mark))
    return table


def _next(sizing: Sizing, settings: AuditSettings) -> Iterator[Row]:
    if sizing.needed is None:
        yield Row("next", f"--detect E says how many {sizing.unit.replace('_', ' ')} a leak takes")
    elif sizing.needed.size is not None:
        size = settings.words_by_name(
            [f"--{sizing.unit.replace('_', '-')}", str(sizing.needed.size)]
        )
        yield Row("next", f"the same command with {' '.join(size)}, without --plan and --detect")
    error = percent(round(1.0 - settings.confidence, 12))
    again = f"after another audit: a fresh --seed; {error} error adds to what that one spent"
    yield Row("then", again)
    if sizing.advice:
        yield Row("then", spell_options(sizing.advice))


class AuditCost(NamedTuple):
    """What an audit costs; nothing is known by default.

    Attributes:
        seconds: Wall time of the whole audit, its controls included.
        trained: Number of trainings by kind, as in the JSON document.
        memory: Bytes that one worker takes, of as many as there are jobs; None if not known.
        more_rows: What larger synthetic tables cost; None if no model was timed.
        rows: The same in words.
    """

    seconds: float | None = None
    trained: dict[str, int] | None = None
    memory: int | None = None
    more_rows: MoreRows | None = None
    rows: tuple[Row, ...] = ()


def cost_of(
    settings: AuditSettings, cost: ModelCost, *, together: bool, jobs: int | None
) -> AuditCost:
    """What an audit costs; `together`: whether its generator trains many models at once."""
    import loky

    from dpaudit.auditing.games import game_of
    from dpaudit.auditing.plan import MoreRows

    planned = game_of(settings.game).trainings(settings, together)
    workers = 1 if planned.alone else jobs or loky.cpu_count()
    several = planned.models > 1
    total = planned.seconds(per_model=cost.model, per_control=cost.control, workers=workers)
    each = f"{rounded(cost.model)} s {'a' if several else 'the'} model"
    each += f", {rounded(cost.control)} s a control"
    if together:
        each += "; trained together they take less"
    trained = [f"{planned.models} models" if several else "one model"]
    if planned.searches:
        trained.insert(0, f"{planned.searches} in a search")
    if planned.repeats:
        trained.append(counted(planned.repeats, "repeat"))
    about = "at most about" if planned.at_most else "about"
    what = f"{', '.join(trained)} and {planned.controls} controls"
    rows = [Row("cost", f"{about} {duration(total)} for {what} ({each})"), *_memory(cost, workers)]
    more = None
    if cost.larger is not None:
        seconds = cost.larger.seconds
        if seconds is not None:  # controls train nothing, but have larger tables too
            seconds = planned.seconds(per_model=seconds, per_control=seconds, workers=workers)
        more = MoreRows(cost.larger.rows, seconds)
        rows.append(_larger(cost.larger, more))
    parts = {name: getattr(planned, name) for name in ("models", "repeats", "controls")}
    return AuditCost(total, parts, cost.memory, more, tuple(rows))


def _larger(larger: RowsCost, more: MoreRows) -> Row:
    """What more synthetic rows of every model can do, and what they cost."""
    from dpaudit.auditing.timing import TIMES_THE_ROWS

    times = f"{TIMES_THE_ROWS} times the rows"
    if more.seconds is None:
        return Row("rows", f"the generator does not give {times} ({larger.rows})")
    cost = f"{duration(more.seconds)} more ({rounded(larger.seconds)} s a model)"
    return Row("rows", f"{times} cost {cost} and {_MAY_SHOW}: --set rows={larger.rows}")


def _memory(cost: ModelCost, workers: int) -> list[Row]:
    if cost.memory is None:
        return []
    size = f"about {cost.memory / _MEGABYTE:,.0f} MB"
    each = "for the worker process" if workers == 1 else f"for each of {workers} worker processes"
    return [Row("memory", f"{size} {each}")]


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Where the demonstration goes.

    Attributes:
        out: Folder of both runs.
        open_report: Open the comparison in a browser, if on a terminal. Default: open-report.
    """

    out: Annotated[Path, Option("DIR", panel=Panel.OUTPUT)] = Path("runs/demo")
    open_report: Annotated[bool, Option(panel=Panel.OUTPUT)] = True


@guard
@options.takes_settings()
def demo(
    *,
    asked: DemoOptions,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> None:
    """Audits two toy generators, one that satisfies its claim and one that does not.

    Shows both audits side by side. The exit code is 0 whatever they find.
    """
    from dpaudit.comparison import compare, comparison_page
    from dpaudit.report.render import page_html
    from dpaudit.results.result import report_row
    from dpaudit.results.sentences import headline

    out, output, audits = asked.out, results(), {}
    for name, known in _TOYS.items():
        audits[name] = _run_toy(name, out / name, jobs=jobs, quiet=quiet)
        rows = [Row("toy", f"{name} {known}"), report_row(out / name)]
        output.print("\n".join([*headed(headline(audits[name]), rows), ""]))
    page = out / "compare.html"
    again = shlex.join(["dpaudit", "compare", *(str(out / name) for name in _TOYS)])
    compared = comparison_page(compare(audits, reproduce=again))
    write_named(page, page_html(compared), option="out")
    own = "dpaudit audit my.py:Gan --data t.csv --epsilon 1 --delta 1e-5"
    rows = [Row("both", str(page), whole=True), Row("next", own, whole=True)]
    output.print("\n".join(row_lines(rows)))
    if asked.open_report and sys.stdout.isatty():
        typer.launch(page.resolve().as_uri())


def _run_toy(name: str, folder: Path, *, jobs: int | None, quiet: bool) -> AuditResult:
    """One audit, in its run folder."""
    from dpaudit.auditing.entry import run_audit
    from dpaudit.auditing.games import audit_settings, audited_table, build_spec
    from dpaudit.auditing.progress_bar import ConsoleProgress

    settings = audit_settings(shadow_models=TOY_MODELS, probe=False)
    spec = build_spec(name, audited_table(_TABLE, None, settings), settings)
    with suggest_resuming(), ConsoleProgress(messages(), quiet=quiet) as progress:
        return run_audit(spec, folder, jobs=jobs, on_progress=progress)
