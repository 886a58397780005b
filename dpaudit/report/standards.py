"""Which section of a report answers which clause of a standard or a guidance."""

from __future__ import annotations

from typing import Final

from dpaudit.results.structure import Block, ReportTable

AUDIT: Final = (
    ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
    ("ISO/IEC 27559, 7.3.2", "maximum risk", "Result: of the attacked record"),
    ("ISO/IEC 27559, 8.2.3", "adversarial testing", "Attacks; Controls and checks"),
    ("ISO/IEC 27559, 8.3.4", "re-evaluation", "Reproduce"),
    ("NIST SP 800-226", "unit of privacy, meaning of epsilon", "Claim; Result"),
    ("NIST SP 800-226", "trust model, access and exposure", "Threat model"),
    ("NIST SP 800-226", "implementation: floating point, seeds", "Checks of the run"),
    ("NIST SP 800-226", "side channels", "not tested"),
    ("ICO, anonymisation", "motivated intruder", "Attacks: knows all other records"),
    ("ICO, anonymisation", "singling out, linkability, inference", "not tested one by one"),
)
"""Of an audit of a generator."""
REPLAY: Final = (
    ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
    ("ISO/IEC 27559, 8.3.4", "re-evaluation", "Reproduce"),
    ("NIST SP 800-226", "unit of privacy, meaning of epsilon", "Result"),
    ("NIST SP 800-226", "implementation: noise scales, sensitivities", "Ledger"),
    ("NIST SP 800-226", "side channels", "not tested"),
)
"""Of a replay."""
RELEASED: Final = (
    ("ISO/IEC 27559, 6.2", "threat model", "Threat model"),
    ("ISO/IEC 27559, 8.2.3", "adversarial testing", "Members; Copies"),
    ("ISO/IEC 27559, 8.3.4", "re-evaluation", "Reproduce"),
    ("NIST SP 800-226", "meaning of epsilon", "Bound on epsilon"),
    ("ICO, anonymisation", "motivated intruder", "Threat model"),
    ("ICO, anonymisation", "singling out", "Copies; Extremes and rare values"),
    ("ICO, anonymisation", "linkability", "anonymeter, where it was run"),
    ("ICO, anonymisation", "inference", "Guessing a value from all others"),
)
"""Of an audit of a released table."""


def standards(rows: tuple[tuple[str, str, str], ...]) -> Block:
    """The section on standards, folded.

    Args:
        rows: Of each clause its standard, what it asks for, and where the answer is.

    Returns:
        The section.
    """
    return Block(
        title="Standards",
        folded=True,
        paragraphs=(
            "Where a reviewer who works by a standard finds the answer. This report is evidence "
            "for one part of such a review; it certifies nothing.",
        ),
        table=ReportTable(("Clause", "Asks for", "Section of this report"), rows),
    )
