"""A comparison as a page, and its picture."""

from __future__ import annotations

import math

from dpaudit.comparison import ChangedPart, ComparedRun, Comparison, Reference, RunChanges
from dpaudit.formatting import (
    Row,
    auc_text,
    counted,
    rounded_down,
)
from dpaudit.model.claim import NoClaim, Quantity
from dpaudit.report.charts import ChartRow, draw_rows
from dpaudit.report.page import COMPARISON, Page, Step
from dpaudit.results.curves import FAR
from dpaudit.results.record import days
from dpaudit.results.sentences import (
    WITHHELD,
    claim_and_proof,
    gravest_in_odds,
    verdict_words,
)
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

HEADER = (
    *("run", "generator", "claim", "bound", "CP"),
    *("limit", "AUC", "models", "verdict"),
)
_NUMERIC = frozenset({2, 3, 4, 5, 6, 7})
COMPARED = (
    "Quote the bound: it decides. CP is the Clopper-Pearson bound that other audits report; it "
    "limits each error rate at one threshold by itself, while the deciding bound tests both at "
    "once or weighs each guess."
)
WITHHELD_MEANS = (
    "a bound above the claim that proves no violation: another audit judged the same shadow "
    "models, or a check failed"
)
_OTHER_EXPERIMENT = "the audits differ too, so their bounds come from different experiments"
_IN_TURN = "Each run is compared with the one before it."
_EACH_ALONE = (
    "Each bound holds at its own confidence, separately, and is a lower bound: a smaller one does "
    "not show a better generator. Where the audits differ (attacks, models, target), so may the "
    "bounds, even of an unchanged generator. Smaller leaks, other records and stronger attackers "
    "are not ruled out."
)


def comparison_table(comparison: Comparison) -> ReportTable:
    """The runs, one a row."""
    return ReportTable(HEADER, tuple(_row(run) for run in comparison.runs), _NUMERIC)


def comparison_latex(comparison: Comparison) -> str:
    """The runs as a `tabular` of LaTeX, with the rules of `booktabs`."""
    import pandas as pd

    table = comparison_table(comparison)
    columns = "".join("r" if at in table.numeric else "l" for at in range(len(table.header)))
    frame = pd.DataFrame(table.rows, columns=table.header)
    style = frame.style.hide(axis="index").format(escape="latex")
    return f"% {COMPARED}\n{style.to_latex(hrules=True, column_format=columns)}"


def _narrow(table: ReportTable) -> ReportTable:
    """The runs for a terminal, without their generators, which are among the differences."""
    header, *rows = ((run, *cells) for run, _, *cells in (table.header, *table.rows))
    return ReportTable(header, tuple(rows), frozenset(at - 1 for at in table.numeric))


def _withheld(comparison: Comparison) -> list[Row]:
    """What it means that a bound is withheld, if one is."""
    some = any(run.audit.is_withheld for run in comparison.runs)
    return [Row(WITHHELD, WITHHELD_MEANS)] if some else []


def _changed_rows(step: RunChanges) -> list[Row]:
    """What differs between two runs."""
    texts = [f"{what} {new} (was {old})" for _, what, old, new in step.changes]
    what = "; ".join(texts) or "nothing differs but what was found"
    rows = [Row("changed", f"{step.after}, compared with {step.before}: {what}")]
    return [*rows, Row("careful", _OTHER_EXPERIMENT)] if other_experiment(step) else rows


def _word(comparison: Comparison) -> str:
    """The word that begins a comparison's headline."""
    return "HISTORY" if comparison.reference is Reference.PREVIOUS else "COMPARISON"


def other_experiment(step: RunChanges) -> bool:
    """Whether the audits differ, and not only the generators."""
    return any(change.part is ChangedPart.AUDIT for change in step.changes)


def finding(comparison: Comparison) -> str:
    """The comparison in a few words: "1 of 2 runs violates its claim"."""
    verdicts = [run.audit.verdict for run in comparison.runs]
    violations = verdicts.count(Verdict.VIOLATION)
    many = counted(len(comparison.runs), "run")
    if not violations:
        undecided = verdicts.count(Verdict.INCONCLUSIVE)
        could_not = f"; {undecided} could not decide" if undecided else ""
        return f"no violation found in {many}{could_not}"
    return f"{violations} of {many} {'violates its' if violations == 1 else 'violate their'} claim"


def comparison_page(comparison: Comparison) -> Page:
    """Arranges the report of a comparison."""
    is_history = comparison.reference is Reference.PREVIOUS
    audits = {run.name: run.audit for run in comparison.runs}
    generators = dict.fromkeys(run.generator.name for run in comparison.runs)
    command = comparison.reproduce
    return Page(
        # What was not decided is in the finding: a question mark would ask what was found.
        verdict=Verdict.CONSISTENT
        if comparison.verdict is Verdict.INCONCLUSIVE
        else comparison.verdict,
        word=_word(comparison),
        finding=finding(comparison),
        about=f"Audits of {', '.join(generators)}",
        date=days(audits.values()),
        lead=(*gravest_in_odds(audits), *([_IN_TURN] if is_history else []), _EACH_ALONE),
        result=_result(comparison),
        next_step=Step((_next(comparison),)),
        findings=(
            Block(
                title="Runs",
                paragraphs=(COMPARED, *(f"Withheld: {row.fact}." for row in _withheld(comparison))),
                table=comparison_table(comparison),
            ),
            Block(title="What changed"),
            *map(_changes_block, comparison.changes),
        ),
        clauses=COMPARISON,
        reproduce=None if command is None else Step(command=command),
        origin=f"dpaudit {__version__} from {len(comparison.runs)} runs",
        draw=lambda picture: draw_forest(comparison),
        facts=(
            *(row for step in comparison.changes for row in _changed_rows(step)),
            *_withheld(comparison),
            Row("quote", COMPARED.removeprefix("Quote ")),
        ),
        terminal=(Block(title="Runs", table=_narrow(comparison_table(comparison))),),
    )


def _result(comparison: Comparison) -> Block:
    if comparison.quantity is None:
        mixed = "The claims limit different quantities, so there is no picture on one axis."
        return Block(title="Result", paragraphs=(mixed,))
    return Block(
        title="Result",
        picture=Picture.FOREST,
        caption=f"Claimed and empirical {comparison.quantity.noun} of each run, one below the "
        "other. The line from a bound is no confidence interval: it ends at the largest bound that "
        "so many models can give.",
    )


def _next(comparison: Comparison) -> str:
    """What to do about the most severe verdict."""
    those = [run.name for run in comparison.runs if run.audit.verdict is comparison.verdict]
    named = ", ".join(those)
    match comparison.verdict:
        case Verdict.VIOLATION:
            return (
                f"Open the report of {named} (report.html in its run folder): it says what leaks "
                "and how to find the cause. After a repair, audit again and compare."
            )
        case Verdict.INVALID:
            return (
                f"The report of {named} says what failed. Repair it, audit again with a fresh "
                "seed, and compare."
            )
        case Verdict.INCONCLUSIVE:
            larger = f"Plan a larger audit for {named} (dpaudit audit --plan)"
            return f"{larger}, run it, and compare again."
    return (
        "Audit the next version with the same settings and compare again: bounds of different "
        "settings come from different experiments."
    )


def _changes_block(step: RunChanges) -> Block:
    title = f"From {step.before} to {step.after}"
    if not step.changes:
        only = "Nothing differs but what was found."
        return Block(title=title, level=Level.SUBSECTION, paragraphs=(only,))
    return Block(
        title=title,
        level=Level.SUBSECTION,
        paragraphs=(f"Careful: {_OTHER_EXPERIMENT}.",) if other_experiment(step) else (),
        table=ReportTable(
            ("What", "Part", "Before", "After"),
            tuple((what, str(part), before, after) for part, what, before, after in step.changes),
        ),
    )


def _row(run: ComparedRun) -> tuple[str, ...]:
    audit = run.audit
    claimed, proved = claim_and_proof(audit.claim, audit.proved)
    return (
        run.name,
        run.generator.name,
        claimed
        if audit.claim.quantity is Quantity.EPSILON
        else f"{audit.claim.quantity} {claimed}",
        WITHHELD if audit.is_withheld else proved,
        WITHHELD if audit.is_withheld else rounded_down(audit.clopper_pearson),
        rounded_down(audit.max_provable),
        auc_text(audit.auc),
        str(audit.shadow_models),
        verdict_words(audit),
    )


def draw_forest(comparison: Comparison) -> str:
    """Draws the runs below one another, on one axis.

    Args:
        comparison: Audits whose claims limit one quantity.

    Returns:
        An `<svg>` element; the same bytes for the same comparison.

    Raises:
        ValueError: If the claims limit different quantities.
    """
    if comparison.quantity is None:
        raise ValueError("claims of different quantities have no common axis")
    noun, end = comparison.quantity.noun, _reach(comparison)
    return draw_rows(
        Picture.FOREST,
        f"Claimed and empirical {noun}, run by run",
        [_chart_row(run, end) for run in comparison.runs],
        axis=noun,
        ends=(0.0, end),
        legend={
            "bound": f"empirical {noun} (lower bound)",
            "violation": "the same where it violates the claim",
            "reach": "up to the limit for this many models",
            "claim": "claim",
        },
    )


def _reach(comparison: Comparison) -> float:
    """The end of the axis: beyond all bounds, and beyond claims close to them."""
    values = [0.1]
    for run in comparison.runs:
        values += [run.audit.proved or 0.0, run.audit.max_provable or 0.0]
    reach = max(value for value in values if math.isfinite(value))
    claims = [run.audit.claim.value for run in comparison.runs]
    return 1.08 * max([reach, *(claim for claim in claims if claim <= FAR * reach)])


def _chart_row(run: ComparedRun, end: float) -> ChartRow:
    audit = run.audit
    claim = None if isinstance(audit.claim, NoClaim) else audit.claim.value
    row = ChartRow(run.name, _note(run), claim=claim)
    if audit.proved is None or audit.is_withheld:
        return row
    most = min(audit.max_provable or audit.proved, end)
    violates = audit.verdict is Verdict.VIOLATION
    return row._replace(bound=audit.proved, violates=violates, reach=(audit.proved, most))


def _note(run: ComparedRun) -> str:
    """The bound, and the verdict if the bound does not imply it."""
    audit = run.audit
    claimed, proved = claim_and_proof(audit.claim, audit.proved)
    text = f"claim {claimed}" if audit.proved is None else f"≥ {proved}, claim {claimed}"
    if audit.is_withheld:
        text = f"bound {WITHHELD}, claim {claimed}"
    decided = audit.verdict in (Verdict.VIOLATION, Verdict.CONSISTENT, Verdict.MEASURED)
    return text if decided else f"{audit.verdict}: {text}"
