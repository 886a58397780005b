"""Which section of a report answers which clause of a standard or a guidance."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from dpaudit.results.structure import Block, ReportTable

Clause: TypeAlias = tuple[str, str, str]
"""The clause of a standard, its subject, and the sections that answer it, or "not tested"."""

_NO_ATTACK = ("ISO/IEC 27559, 8.2.3", "adversarial testing", "not tested: no attack was run")
_AGAIN = ("ISO/IEC 27559, 8.3.4", "re-evaluation", "Reproduce")
_FLOATING_POINT = ("NIST SP 800-226", "implementation: floating point", "not tested")
_NO_INTRUDER = "not tested: this attacker knows more (Threat model)"
_SIDE_CHANNELS = ("NIST SP 800-226", "side channels", "not tested")
_AUDIT: Final[tuple[Clause, ...]] = (
    ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
    ("ISO/IEC 27559, 7.3.2", "maximum risk", "Result: of the attacked record, not of all"),
    ("ISO/IEC 27559, 8.2.3", "adversarial testing", "Attacks; Controls and checks"),
    _AGAIN,
    ("NIST SP 800-226", "unit of privacy, meaning of epsilon", "Settings; Result"),
    ("NIST SP 800-226", "trust model, access and exposure", "Threat model"),
    ("NIST SP 800-226", "implementation: seeds", "Checks of the run"),
    (*_FLOATING_POINT[:2], "not tested, but for the last bits that the attack form reads"),
    _SIDE_CHANNELS,
    ("ICO, anonymisation", "motivated intruder", _NO_INTRUDER),
)
REPLAY: Final[tuple[Clause, ...]] = (
    ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
    _AGAIN,
    ("NIST SP 800-226", "unit of privacy, meaning of epsilon", "Result"),
    ("NIST SP 800-226", "implementation: noise scales, sensitivities", "Ledger"),
    _SIDE_CHANNELS,
)
"""Clauses for a replay."""
COMPARISON: Final[tuple[Clause, ...]] = (
    ("ISO/IEC 27559, 7.3.2", "maximum risk", "Result: of the attacked records"),
    ("ISO/IEC 27559, 8.2.3", "adversarial testing", "the report of each run"),
    ("ISO/IEC 27559, 8.3.4", "re-evaluation", "What changed; Reproduce"),
    ("NIST SP 800-226", "unit of privacy, trust model, implementation", "the report of each run"),
)
"""Clauses for a comparison of audits."""
TRACE: Final[tuple[Clause, ...]] = (
    _NO_ATTACK,
    _AGAIN,
    ("NIST SP 800-226", "implementation: noise, sensitivities, accounting", "Result; Findings"),
    ("NIST SP 800-226", "implementation: seeds", "not tested"),
    _FLOATING_POINT,
    _SIDE_CHANNELS,
)
"""Clauses for a traced training."""
PROBE: Final[tuple[Clause, ...]] = (
    _NO_ATTACK,
    _AGAIN,
    ("NIST SP 800-226", "unit of privacy", "What was tested"),
    ("NIST SP 800-226", "implementation: public bounds, seeds", "Result; Alarms"),
    _SIDE_CHANNELS,
)
"""Clauses for probes."""
EXPLANATION: Final[tuple[Clause, ...]] = (
    ("ISO/IEC 27559, 8.2.3", "adversarial testing", "the report of the audit; Suspects"),
    _AGAIN,
    ("NIST SP 800-226", "implementation", "Suspects"),
    _SIDE_CHANNELS,
)
"""Clauses for an explained violation."""


def audit_clauses(*, guesses_secret: bool) -> tuple[Clause, ...]:
    """Clauses for an audit of a generator.

    Args:
        guesses_secret: Whether a value of the target was guessed.
    """
    if not guesses_secret:
        return (
            *_AUDIT,
            ("ICO, anonymisation", "singling out, linkability, inference", "not tested"),
        )
    guessed = "Guessing a value of the target: one column of one record"
    return (
        *_AUDIT,
        ("ICO, anonymisation", "singling out, linkability", "not tested"),
        ("ICO, anonymisation", "inference", guessed),
        ("EDPB Opinion 28/2024", "personal data obtained by queries", guessed),
        ("Consensus framework (Pilgram et al. 2025)", "attribute disclosure", guessed),
    )


def released_clauses(
    sections: Collection[str], *, has_holdout: bool, has_command: bool
) -> tuple[Clause, ...]:
    """Clauses for an audit of a released table, whose sections depend on its inputs.

    Args:
        sections: Titles of the sections that its report has.
        has_holdout: Whether rows were compared with a hold-out.
        has_command: Whether a command repeats it.
    """

    def at(*titles: str) -> str:
        return "; ".join(title for title in titles if title in sections) or "not tested"

    anonymeter = at("Singling out, linkability and inference by anonymeter")
    guessing = at("Guessing a value from all others") if has_holdout else anonymeter
    singled = (
        ("singling out, in part", at("Copies", "Extremes and rare values", "Rare values"))
        if anonymeter == "not tested"
        else ("singling out", anonymeter)
    )
    return (
        ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
        (
            *("ISO/IEC 27559, 8.2.3", "adversarial testing"),
            at(
                "Recognising training rows",
                "Recognising training units",
                "Copies",
                "Extremes and rare values",
                "Rare values",
            ),
        ),
        _AGAIN if has_command else (*_AGAIN[:2], "not possible: a table was in memory"),
        ("NIST SP 800-226", "meaning of epsilon", at("Bound on epsilon")),
        ("ICO, anonymisation", "motivated intruder", "not tested"),
        ("ICO, anonymisation", *singled),
        ("ICO, anonymisation", "linkability", anonymeter),
        ("ICO, anonymisation", "inference", guessing),
    )


def standards(clauses: tuple[Clause, ...]) -> Block:
    """The section on standards, folded.

    Args:
        clauses: The clauses, their subjects, and where the answers are.

    Returns:
        The section.
    """
    return Block(
        title="Standards",
        folded=True,
        paragraphs=(
            "Which section answers which clause of a standard. This report is evidence for one "
            "part of such a review; it certifies nothing.",
        ),
        table=ReportTable(("Clause", "Asks for", "Section of this report"), clauses),
    )
