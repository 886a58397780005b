"""A comparison as a page: HTML, Markdown, the picture alone, and lines for a terminal."""

from __future__ import annotations

from dpaudit.comparison.changes import ChangedPart
from dpaudit.comparison.compare import ComparedRun, Comparison, Reference, RunChanges
from dpaudit.comparison.forest import draw_forest
from dpaudit.formatting import auc_text, printable, rounded_down
from dpaudit.report.render import Page, page_html, page_markdown
from dpaudit.results.sentences import claim_and_proof
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict
from dpaudit.versions import __version__

HEADER = ("run", "generator", "claimed", "proved", "provable", "AUC", "models", "verdict")
_NUMERIC = frozenset({2, 3, 4, 5, 6})
_OTHER_EXPERIMENT = "the audits differ, not only what was audited: two experiments"
_IN_TURN = "Each run is compared with the one before it."
_EACH_ALONE = (
    "Each bound holds at its own confidence, by itself, and says how much is proved, not how much "
    "is there: a lower one is no proof of a better generator. Where the audits differ (attacks, "
    "models, target), so may the bounds, whatever became of the generator."
)


def comparison_html(comparison: Comparison) -> str:
    """The comparison as one HTML file without scripts or anything from the network."""
    return page_html(_page(comparison), draw=lambda picture: draw_forest(comparison))


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as Markdown, without its picture; the table has its numbers."""
    return page_markdown(_page(comparison))


def comparison_table(comparison: Comparison) -> ReportTable:
    """The runs, one a row."""
    return ReportTable(HEADER, tuple(_row(run) for run in comparison.runs), _NUMERIC)


def comparison_lines(comparison: Comparison) -> list[str]:
    """What differs from run to run, for a terminal."""
    lines = []
    for step in comparison.changes:
        lines.append(f"{printable(step.before)} -> {printable(step.after)}")
        lines += [
            f"  {part}: {what}: {before} -> {after}" for part, what, before, after in step.changes
        ] or ["  nothing differs but what was found"]
        if other_experiment(step):
            lines.append(f"  ({_OTHER_EXPERIMENT})")
    return lines


def other_experiment(step: RunChanges) -> bool:
    """Whether the audits differ, and not only what was audited."""
    return any(change.part is ChangedPart.AUDIT for change in step.changes)


def finding(comparison: Comparison) -> str:
    """The comparison in one sentence without its end: "2 runs, 1 of them a violation"."""
    violations = sum(run.audit.verdict is Verdict.VIOLATION for run in comparison.runs)
    many = f"{len(comparison.runs)} runs"
    if not violations:
        return f"{many}, no violation found in any"
    return f"{many}, {violations} of them {'a violation' if violations == 1 else 'violations'}"


def _page(comparison: Comparison) -> Page:
    is_history = comparison.reference is Reference.PREVIOUS
    return Page(
        verdict=comparison.verdict,
        word="HISTORY" if is_history else "COMPARISON",
        finding=finding(comparison),
        subject=", ".join(dict.fromkeys(run.generator.name for run in comparison.runs)),
        lead=(*([_IN_TURN] if is_history else []), _EACH_ALONE),
        blocks=_blocks(comparison),
        origin=f"dpaudit {__version__} from {len(comparison.runs)} runs",
    )


def _blocks(comparison: Comparison) -> tuple[Block, ...]:
    quantity = comparison.quantity
    noun = "" if quantity is None else f" of {quantity.noun}"
    mixed = (
        ("The claims limit different quantities, so there is no picture on one axis.",)
        if quantity is None
        else ()
    )
    bounds = Block(
        title=f"Claims and proved bounds{noun}",
        paragraphs=mixed,
        picture=None if quantity is None else Picture.FOREST,
        table=comparison_table(comparison),
    )
    return (bounds, Block(title="What changed"), *map(_changed, comparison.changes))


def _changed(step: RunChanges) -> Block:
    title = f"From {step.before} to {step.after}"
    if not step.changes:
        only = "Nothing differs but what was found."
        return Block(title=title, level=Level.SUBSECTION, paragraphs=(only,))
    return Block(
        title=title,
        level=Level.SUBSECTION,
        paragraphs=(f"Careful: {_OTHER_EXPERIMENT}.",) if other_experiment(step) else (),
        table=ReportTable(
            ("what", "part", "before", "after"),
            tuple((what, str(part), before, after) for part, what, before, after in step.changes),
        ),
    )


def _row(run: ComparedRun) -> tuple[str, ...]:
    audit = run.audit
    claimed, proved = claim_and_proof(audit.claim, audit.proved)
    return (
        run.name,
        run.generator.name,
        claimed,
        proved,
        rounded_down(audit.max_provable),
        auc_text(audit.auc),
        str(audit.shadow_models),
        str(audit.verdict),
    )
