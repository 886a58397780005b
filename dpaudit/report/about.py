"""What a report says about the run: controls, failures, checks, settings, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dpaudit.formatting import (
    auc_text,
    clipped,
    duration,
    one_line,
    percent,
    rounded,
    rounded_down,
)
from dpaudit.report.structure import MOST_ROWS, Block, Table, left_out
from dpaudit.report.words import target_in_words

_LONGEST_ERROR = 300


def about_the_run(document: Mapping[str, Any]) -> tuple[Block, ...]:
    """Arrange what lets a reader trust the findings and repeat them."""
    sections = (_controls, _failures, _checks, _settings, _versions, _reproduce)
    return tuple(block for section in sections for block in section(document))


def _controls(document: Mapping[str, Any]) -> Iterable[Block]:
    one_run = document["one_run"] is not None
    copied = "releases its training rows" if one_run else "copies the target"
    told = "tells the coins" if one_run else "tells its worlds apart"
    rows = tuple(
        (
            name,
            _passed(control["passed"]),
            rounded_down(control["bound"]),
            rounded_down(control["max_provable_epsilon"]),
            auc_text(control["auc"]),
            control["detail"],
        )
        for name, control in document["controls"].items()
    )
    yield Block(
        title="Controls",
        paragraphs=(
            f"The null control audits a generator that ignores its data: whoever {told} has been "
            "told by the game, not by the generator.",
            f"The positive control audits a generator that {copied}: an audit that does not catch "
            "it would catch nothing.",
        ),
        table=Table(
            ("Control", "Outcome", "Bound", "Provable", "AUC", "What was seen"),
            rows,
            frozenset({2, 3, 4}),
        ),
    )


def _failures(document: Mapping[str, Any]) -> Iterable[Block]:
    failures, reasons = document["failures"], document["failure_reasons"]
    if not failures["in"] and not failures["out"]:
        yield Block(title="Failed trials", paragraphs=("No trial failed.",))
        return
    played = document["shadow_models"]
    if document["one_run"] is not None:
        error = clipped(one_line(reasons[0]["error"]), _LONGEST_ERROR)
        yield Block(title="Failed trials", paragraphs=(f"The one training failed: {error}",))
        return
    yield Block(
        title="Failed trials",
        paragraphs=(
            f"World in: {failures['in']} of {played['in']} trials. World out: {failures['out']} of "
            f"{played['out']}. A failed trial counts as an error of the attack: the bound holds.",
            *left_out(reasons, "reasons"),
        ),
        table=Table(
            ("World", "Trials", "What went wrong"),
            tuple(
                (of["world"], str(of["count"]), clipped(one_line(of["error"]), _LONGEST_ERROR))
                for of in reasons[:MOST_ROWS]
            ),
            frozenset({1}),
        )
        if reasons
        else None,
    )


def _checks(document: Mapping[str, Any]) -> Iterable[Block]:
    if document["checks"]:
        rows = tuple((of["name"], _passed(of["passed"]), of["detail"]) for of in document["checks"])
        yield Block(
            title="Checks of the run",
            table=Table(("Check", "Outcome", "What was seen"), rows),
        )


def _settings(document: Mapping[str, Any]) -> Iterable[Block]:
    generator, data, claim = document["generator"], document["data"], document["claim"]
    played = document["shadow_models"]
    parameters = ", ".join(f"{key}={_plain(of)}" for key, of in generator["parameters"].items())
    warnings = []
    if document["schema"]["inferred"]:
        warnings.append(
            "Warning: the schema was inferred from the table, so bounds and categories are its "
            "own. A leak through them is outside this audit; hand in a public schema instead."
        )
    if not generator["seedable"]:
        warnings.append(
            "The generator cannot be seeded: its trials are independent, but another run gives "
            "other numbers."
        )
    attacked: tuple[tuple[str, str], ...] = (
        ("Target", target_in_words(document)),
        ("Shadow models", f"{played['in']} in, {played['out']} out"),
    )
    if document["one_run"] is not None:
        attacked = (("One training", f"{document['one_run']['canaries']} canaries"),)
    rows = (
        ("Generator", generator["name"]),
        ("Parameters", parameters or "defaults"),
        ("Data", f"{data['source']}: {data['rows']} rows, {data['columns']} columns"),
        ("SHA-256 of the data", data["sha256"]),
        ("Schema", "inferred from the table" if document["schema"]["inferred"] else "given"),
        *attacked,
        ("Claim", f"epsilon {rounded(claim['epsilon'])}, delta {rounded(claim['delta'])}"),
        ("Source of the claim", claim["source"]),
        ("Neighbours", claim["neighbours"]),
        ("Confidence", f"{percent(document['confidence'])}, one-sided"),
        ("Synthetic rows per training", str(document["rows"])),
        ("Seed", str(document["seed"])),
        ("Time", duration(document["seconds"])),
    )
    yield Block(
        title="Settings", paragraphs=tuple(warnings), table=Table(("Setting", "Value"), rows)
    )


def _versions(document: Mapping[str, Any]) -> Iterable[Block]:
    rows = tuple((name, version) for name, version in document["versions"].items())
    yield Block(title="Versions", table=Table(("Software", "Version"), rows))


def _reproduce(document: Mapping[str, Any]) -> Iterable[Block]:
    yield Block(title="Reproduce", command=document["reproduce"])


def _passed(passed: bool) -> str:
    return "✓ passed" if passed else "✕ FAILED"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
