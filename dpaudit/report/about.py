"""What a report says about the run: controls, failures, checks, settings, how to repeat it."""

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
)
from dpaudit.game.store import LOG_FILE
from dpaudit.plugins.protocols import World
from dpaudit.report.structure import MOST_ROWS, Block, ReportTable, left_out
from dpaudit.results.leaks import TRIAL_OUTCOMES
from dpaudit.results.record import AuditRecord
from dpaudit.results.sentences import access, claim_text, target

_LONGEST_ERROR = 300


def about_the_run(result: AuditRecord) -> tuple[Block, ...]:
    """Arranges what lets a reader trust the findings and repeat them."""
    sections = (_controls, _failures, _checks, _settings, _versions, _reproduce)
    return tuple(block for section in sections for block in section(result))


def _controls(result: AuditRecord) -> Iterable[Block]:
    one_run = result.one_run is not None
    copied = "releases its training rows" if one_run else "copies the target"
    if result.records is not None:
        copied = "copies the records that it saw"
    coins = one_run or result.records is not None
    separated = "guesses the coins" if coins else "tells its worlds apart"
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
            f"{separated} has learnt it from the game, not from the generator.",
            f"The positive control audits a generator that {copied}: an audit that does not catch "
            "it would catch nothing.",
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
    if result.one_run is not None:
        error = clipped(one_line(reasons[0].error), _LONGEST_ERROR)
        yield Block(title="Failed trials", paragraphs=(f"The one training failed: {error}",))
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
    generator, data, claim = result.generator, result.data, result.claim
    trained = result.shadow_models
    parameters = ", ".join(f"{key}={_plain(of)}" for key, of in generator.parameters.items())
    warnings = []
    if result.schema.inferred:
        warnings.append(
            "Warning: the schema was inferred from the table, so bounds and categories are its "
            "own. A leak through them is outside this audit; hand in a public schema instead."
        )
    if not generator.seedable:
        warnings.append(
            "The generator cannot be seeded: its trials are independent, but another run gives "
            "other numbers."
        )
    attacked: tuple[tuple[str, str], ...] = (
        ("Target", target(result)),
        ("Access", access(result)),
        ("Shadow models", f"{trained[World.IN]} in, {trained[World.OUT]} out"),
    )
    if result.records is not None:
        each = f"{trained[World.OUT]}, each with about half of the records"
        attacked = (("Target", target(result)), ("Shadow models", each))
    if result.target.tables is not None:
        attacked = (("Both tables", result.target.tables), *attacked)
    if result.one_run is not None:
        attacked = (("One training", f"{result.one_run.canaries} canaries"),)
    rows = (
        ("Generator", generator.name),
        ("Parameters", parameters or "defaults"),
        ("Data", f"{data.source}: {data.rows} rows, {data.columns} columns"),
        ("Salted SHA-256 of the data", data.sha256),
        ("Schema", "inferred from the table" if result.schema.inferred else "given"),
        *attacked,
        ("Claim", claim_text(claim)),
        ("Source of the claim", claim.source),
        ("Neighbours", claim.neighbours.value),
        ("Confidence", f"{percent(result.confidence)}, one-sided"),
        ("Synthetic rows per training", str(result.rows)),
        ("Seed", str(result.seed)),
        *((("Date", result.date),) if result.date else ()),
        ("Time", duration(result.seconds)),
    )
    yield Block(
        title="Settings", paragraphs=tuple(warnings), table=ReportTable(("Setting", "Value"), rows)
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
