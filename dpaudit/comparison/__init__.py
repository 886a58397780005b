"""Audits side by side, what differs from one to the next, and the page about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dpaudit.errors import InputError
from dpaudit.evidence import pack
from dpaudit.formatting import Row, auc_text, counted, percent, printable, rounded_down
from dpaudit.model.choices import Access
from dpaudit.model.claim import NoClaim, Quantity
from dpaudit.report.charts import ChartRow, draw_rows
from dpaudit.report.page import COMPARISON, Page, Step
from dpaudit.results.curves import FAR
from dpaudit.results.document import OPTIONAL, Document
from dpaudit.results.record import AuditBrief, AuditedGenerator, AuditRecord, days
from dpaudit.results.result import AuditResult
from dpaudit.results.sentences import (
    WITHHELD,
    claim_and_proof,
    claim_text,
    gravest_in_odds,
    target,
    verdict_words,
)
from dpaudit.results.structure import Block, Level, Picture, ReportTable
from dpaudit.results.verdict import Verdict, most_severe
from dpaudit.versions import __version__

if TYPE_CHECKING:
    import pandas as pd

_ABSENT: Final = "not given"
_SOURCE: Final = "source code"
"""A fact that older results lack; it is compared only if both results have it."""
_DIGITS: Final = 12
"""Characters shown of a digest of source code."""
_RELEASE: Final = ": "
"""Separator between an environment and its packages in the versions of a result."""


class Reference(StrEnum):
    """Which run each is compared with."""

    FIRST = "first"
    PREVIOUS = "previous"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the audits.

    Attributes:
        name: Its name in the comparison.
        generator: What was audited.
        audit: What it found.
    """

    name: str
    generator: AuditedGenerator
    audit: AuditBrief


class RunChanges(NamedTuple):
    """The differences between a run and its reference.

    Attributes:
        before: Name of the reference.
        after: Name of the run.
        changes: The differences.
    """

    before: str
    after: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison(Document):
    """Audits side by side, in the order given.

    Attributes:
        reference: Which run each is compared with.
        verdict: The most severe verdict.
        runs: The audits, two or more.
        changes: What differs, run by run from the second on.
        reproduce: The command that repeats the comparison; absent if none was given.

    Raises:
        InputError: If there are fewer than two runs, or names are not unique.
    """

    schema_version = 1

    reference: Reference
    verdict: Verdict
    runs: tuple[ComparedRun, ...]
    changes: tuple[RunChanges, ...]
    reproduce: str | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError("one run has nothing to be compared with: give two or more")
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"two runs are called {twice}: give each once")

    @property
    def quantity(self) -> Quantity | None:
        """The quantity that all claims limit; None if it differs."""
        quantities = {run.audit.claim.quantity for run in self.runs}
        return quantities.pop() if len(quantities) == 1 else None

    @property
    def frame(self) -> pd.DataFrame:
        """The audits as a table, one a row, with unrounded numbers.

        Columns `run`, `generator`, `quantity` and `claim` (what the claim limits, and to what),
        `bound` (the lower bound that decides, the one to quote), `rule` (its name),
        `clopper_pearson` (the bound that other audits report), `confidence`, `limit` (the largest
        bound that this many models can give), `detectable` (80 % power), `auc`, `shadow_models`,
        `verdict` and `date`. A withheld bound is missing.
        """
        import pandas as pd

        return pd.DataFrame([_row_of(run) for run in self.runs])


def _row_of(run: ComparedRun) -> dict[str, object]:
    audit = run.audit
    kept = not audit.is_withheld
    return {
        "run": run.name,
        "generator": run.generator.name,
        "quantity": str(audit.claim.quantity),
        "claim": None if isinstance(audit.claim, NoClaim) else audit.claim.value,
        "bound": audit.proved if kept else None,
        "rule": audit.rule,
        "clopper_pearson": audit.clopper_pearson if kept else None,
        "confidence": audit.confidence,
        "limit": audit.max_provable,
        "detectable": audit.detectable,
        "auc": audit.auc,
        "shadow_models": audit.shadow_models,
        "verdict": str(audit.verdict),
        "date": audit.date,
    }


def compare(
    runs: Mapping[str, str | Path | AuditRecord] | Iterable[str | Path | AuditRecord],
    *,
    reference: Reference = Reference.FIRST,
    reproduce: str | None = None,
) -> Comparison:
    """Puts audits side by side.

    Args:
        runs: Two or more run folders, or results, in order; a mapping names them. Otherwise they
            are named by the shortest ends of their folders that differ, or by their generators if
            a result has no folder. A folder's result is checked as `dpaudit.load` does.
        reference: The run with which each is compared.
        reproduce: The command that compares them, for the report.

    Returns:
        The comparison.

    Raises:
        InputError: If there are fewer than two, two have the same name, or one cannot be read.
    """
    given = list(runs.values()) if isinstance(runs, Mapping) else list(runs)
    records = [run if isinstance(run, AuditRecord) else pack.load(run) for run in given]
    names = list(runs) if isinstance(runs, Mapping) else _names(records)
    named = list(zip(names, records, strict=True))
    before = named[:-1] if reference is Reference.PREVIOUS else named[:1] * len(named[1:])
    return Comparison(
        reference=reference,
        verdict=most_severe(record.verdict for record in records),
        runs=tuple(
            ComparedRun(name=name, generator=record.generator, audit=AuditBrief.of(record))
            for name, record in named
        ),
        changes=tuple(
            RunChanges(old, new, changes(was, now))
            for (old, was), (new, now) in zip(before, named[1:], strict=True)
        ),
        reproduce=reproduce,
    )


def _names(records: Sequence[AuditRecord]) -> list[str]:
    """Names results by the shortest ends of their folders that differ, or by their generators.

    Raises:
        InputError: If a folder is given twice.
    """
    folders = [record.folder for record in records if isinstance(record, AuditResult)]
    whole = [folder.resolve() for folder in folders if folder is not None]
    if len(whole) < len(records):
        return [record.generator.name for record in records]
    twice = next((path for path in whole if whole.count(path) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is given twice: give each run once")
    ends = (
        ["/".join(path.parts[-length:]) for path in whole]
        for length in range(1, max(len(path.parts) for path in whole) + 1)
    )
    return next(names for names in ends if len(set(names)) == len(names))


class ChangedPart(StrEnum):
    """The part in which two audits differ.

    A difference of the generator may explain a different bound; one of the audit or of dpaudit
    means that the bounds come from different experiments.
    """

    GENERATOR = "generator"
    AUDIT = "audit"
    SOFTWARE = "software"


class Change(NamedTuple):
    """One difference.

    Attributes:
        part: The part of the audit that differs.
        what: What differs, in a few words.
        before: Its value in the first audit, as text.
        after: Its value in the second.
    """

    part: ChangedPart
    what: str
    before: str
    after: str


def changes(before: AuditRecord, after: AuditRecord) -> tuple[Change, ...]:
    """Everything that differs between two audits, apart from what they found.

    The tables themselves are not compared: their digests are salted, each in its own run folder.

    Args:
        before: The record of one audit.
        after: The record of another.

    Returns:
        The differences: first those of the generator, then of the audit, then of the software.
    """
    changed = []
    old, new = _facts(before), _facts(after)
    for part in ChangedPart:
        first, second = old[part], new[part]
        for what in dict.fromkeys([*first, *second]):
            was, now = first.get(what, _ABSENT), second.get(what, _ABSENT)
            unknown = what == _SOURCE and _ABSENT in (was, now)
            if was != now and not unknown:
                changed.append(Change(part, what, was, now))
    return tuple(changed)


def _facts(record: AuditRecord) -> Mapping[ChangedPart, Mapping[str, str]]:
    """What a record says of each part, as text by name."""
    releases = {name: version for name, version in record.versions.items() if _RELEASE in name}
    generator = {"generator": record.generator.name, "claim": claim_text(record.claim)}
    generator |= {
        f"parameter {name}": str(value) for name, value in record.generator.parameters.items()
    }
    if record.generator.source is not None:
        generator[_SOURCE] = record.generator.source[:_DIGITS]
    generator |= {name.partition(_RELEASE)[2]: version for name, version in releases.items()}
    audit = {
        "table": f"{record.data.source}, {record.data.rows} x {record.data.columns}",
        "schema": "inferred from the table" if record.schema.inferred else "given",
        "target": target(record),
        "access": str(record.access or Access.OUTPUT),
        "attacks": ", ".join(record.tried_attacks) if record.attacks else "none scored",
        "shadow models": str(sum(record.shadow_models.values())),
        "synthetic rows": str(record.rows),
        "confidence": percent(record.confidence),
        "seed": str(record.seed),
    }
    software = {name: version for name, version in record.versions.items() if name not in releases}
    return {
        part: {printable(name): printable(fact) for name, fact in facts.items()}
        for part, facts in zip(ChangedPart, (generator, audit, software), strict=True)
    }


HEADER = (*("run", "generator", "claim", "bound", "CP"), *("limit", "AUC", "models", "verdict"))
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
