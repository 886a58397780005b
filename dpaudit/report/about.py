"""What a report says about the run: who sees what, the data, controls, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dpaudit.formatting import (
    auc_text,
    clipped,
    duration,
    one_line,
    percent,
    rounded_down,
    rounded_up,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import Access
from dpaudit.model.claim import Neighbours
from dpaudit.plugins.protocols import World
from dpaudit.results.leaks import TRIAL_OUTCOMES
from dpaudit.results.probes import ProbeAlarm
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import claim_text, target
from dpaudit.results.structure import MOST_ROWS, Block, ReportTable, left_out

_LONGEST_ERROR = 300
_WORLDS = {
    Neighbours.ADD_REMOVE: "tables with a record from tables without it",
    Neighbours.REPLACE_ONE: "tables with a record from tables with another in its place",
}


def about_the_run(result: AuditRecord) -> tuple[Block, ...]:
    """Arranges what lets a reader trust the findings and repeat them."""
    sections = (
        _probes,
        _accounting,
        _data,
        _controls,
        _failures,
        _checks,
        _settings,
        _versions,
        _reproduce,
    )
    return tuple(block for section in sections for block in section(result))


def threat_model(result: AuditRecord) -> Iterable[Block]:
    """Who sees what: what the attacker sees, knows and has to find out."""
    words, level = result.game.words, result.access or Access.OUTPUT
    rows = (
        ("Sees", f"{level.in_words} ({level}); {result.rows} synthetic rows of each model"),
        (
            "Knows",
            f"all other records, {words.attacked}, the schema, and the generator with its "
            "parameters",
        ),
        ("Does not know", f"{words.unknown}, and the random numbers of its training"),
        *(() if result.target.tables is None else (("Both tables", result.target.tables),)),
        ("Attacks", target(result)),
        ("Distinguishes", _WORLDS[result.claim.neighbours]),
    )
    yield Block(
        title="Threat model: who sees what",
        paragraphs=(
            "Differential privacy promises protection against this attacker, who knows more than "
            "any real one. Whoever sees less may find less; the claim has to hold all the same.",
        ),
        table=ReportTable(("The attacker", "In this audit"), rows),
    )


def _probes(result: AuditRecord) -> Iterable[Block]:
    probes = result.probes
    if probes is None:
        return
    rows = [
        (alarm.id, "✕ ALARM", str(alarm.severity), _p_value(alarm), alarm.correct)
        for alarm in probes.alarms
    ]
    for names, outcome in (
        (probes.passed, "no alarm"),
        (probes.failed, "failed"),
        (probes.not_applicable, "not applicable"),
        (probes.left_out, "not run"),
    ):
        rows += [(name, outcome, "", "", "") for name in names]
    not_run = f"Not all were run: {probes.why_left_out}." if probes.left_out else ""
    yield Block(
        title="Probes before the audit",
        paragraphs=(
            "Cheap checks from outside change the table or a setting and look whether the output "
            f"follows; they trained {probes.fits} models of their own. Their alarms are no part of "
            "the verdict and spend none of its error probability; no alarm is no evidence of "
            "privacy. The command dpaudit probe, with the same seed, shows what they saw.",
            *([not_run] if not_run else []),
        ),
        table=ReportTable(
            ("Probe", "Outcome", "Severity", "p-value", "Correct is"), tuple(rows), frozenset({3})
        ),
    )


def _p_value(alarm: ProbeAlarm) -> str:
    return "no chance involved" if alarm.p_value is None else rounded_up(alarm.p_value)


def _accounting(result: AuditRecord) -> Iterable[Block]:
    claim = result.claim
    yield Block(
        title="The accountant's side",
        paragraphs=(
            "The audit attacks what the generator gives away and takes the claim as stated: it "
            "does not follow the accounting. Of a generator that records its training by PATE or "
            "DP-SGD, dpaudit trace computes the cost again.",
        ),
        table=ReportTable(
            ("Claim", "As stated"),
            (
                ("Promise", claim_text(claim)),
                ("Source", claim.source),
                ("Neighbours", claim.neighbours.value),
            ),
        ),
    )


def _data(result: AuditRecord) -> Iterable[Block]:
    data, inferred = result.data, result.schema.inferred
    warning = (
        "Warning: the schema was inferred from the table, so bounds and categories are its "
        "own. A leak through them is outside this audit; hand in a public schema instead."
    )
    yield Block(
        title="Summary of the data",
        paragraphs=(warning,) if inferred else (),
        table=ReportTable(
            ("Table", "Value"),
            (
                ("Source", data.source),
                ("Rows", str(data.rows)),
                ("Columns", str(data.columns)),
                ("Schema", "inferred from the table" if inferred else "given"),
                ("Salted SHA-256", data.sha256),
            ),
        ),
    )


def _controls(result: AuditRecord) -> Iterable[Block]:
    words = result.game.words
    if result.controls is None:
        said = "None was run: every model that was trained before them failed."
        yield Block(title="Controls", paragraphs=(said,))
        return
    rows = tuple(
        (
            name,
            _passed(control.passed),
            rounded_down(control.bound),
            rounded_down(control.max_provable_epsilon),
            auc_text(control.auc),
            control.detail,
        )
        for name, control in result.controls.named().items()
    )
    yield Block(
        title="Controls",
        paragraphs=(
            "The null control audits a generator that ignores its data: an attack that "
            f"{words.separates} has learnt it from the game, not from the generator.",
            f"The positive control audits a generator that {words.copies}: an audit that does "
            "not catch it would catch nothing.",
        ),
        table=ReportTable(
            ("Control", "Outcome", "Bound", "Provable", "AUC", "What was seen"),
            rows,
            frozenset({2, 3, 4}),
        ),
    )


def _failures(result: AuditRecord) -> Iterable[Block]:
    failures, reasons = result.failures, result.failure_reasons
    if not failures[World.IN] and not failures[World.OUT]:
        yield Block(title="Failed trials", paragraphs=("No trial failed.",))
        return
    trained = result.shadow_models
    first = clipped(one_line(reasons[0].error), _LONGEST_ERROR) if reasons else ""
    alone = result.game.failed(first)
    if alone is not None:
        yield Block(title="Failed trials", paragraphs=(alone,))
        return
    yield Block(
        title="Failed trials",
        paragraphs=(
            f"World in: {failures[World.IN]} of {trained[World.IN]} trials. "
            f"World out: {failures[World.OUT]} of {trained[World.OUT]}. "
            "A failed trial counts as an error of attacks on tables, so that their bounds hold; "
            f"how trials end is attacked as {TRIAL_OUTCOMES!r}. Of exceptions only the type is "
            f"given: what they say may quote records and is in {LOG_FILE} of the run folder.",
            *left_out(reasons, "reasons"),
        ),
        table=ReportTable(
            ("World", "Trials", "What went wrong"),
            tuple(
                (of.world.value, str(of.count), clipped(one_line(of.error), _LONGEST_ERROR))
                for of in reasons[:MOST_ROWS]
            ),
            frozenset({1}),
        )
        if reasons
        else None,
    )


def _checks(result: AuditRecord) -> Iterable[Block]:
    if result.checks:
        rows = tuple((of.name, _passed(of.passed), of.detail) for of in result.checks)
        yield Block(
            title="Checks of the run",
            table=ReportTable(("Check", "Outcome", "What was seen"), rows),
        )


def _settings(result: AuditRecord) -> Iterable[Block]:
    generator = result.generator
    parameters = ", ".join(f"{key}={_plain(of)}" for key, of in generator.parameters.items())
    unseeded = (
        "The generator cannot be seeded: its trials are independent, but another run gives "
        "other numbers."
    )
    rows = (
        ("Generator", generator.name),
        ("Parameters", parameters or "defaults"),
        result.game.models(result),
        ("Confidence", f"{percent(result.confidence)}, one-sided"),
        ("Synthetic rows per training", str(result.rows)),
        ("Seed", str(result.seed)),
        *((("Date", result.date),) if result.date else ()),
        ("Time", duration(result.seconds)),
    )
    yield Block(
        title="Settings",
        paragraphs=() if generator.seedable else (unseeded,),
        table=ReportTable(("Setting", "Value"), rows),
    )


def _versions(result: AuditRecord) -> Iterable[Block]:
    rows = tuple((name, version) for name, version in result.versions.items())
    yield Block(title="Versions", table=ReportTable(("Software", "Version"), rows))


def _reproduce(result: AuditRecord) -> Iterable[Block]:
    yield Block(title="Reproduce", command=result.reproduce)


def _passed(passed: bool) -> str:
    return "✓ passed" if passed else "✕ FAILED"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
