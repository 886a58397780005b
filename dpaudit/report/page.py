"""The frame of every report, which each command fills, its text for a terminal, and its standards.

Standards are the clauses of a guidance and the sections of a report that answer them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, TypeAlias

from dpaudit.formatting import Row, aligned, headed, wrapped
from dpaudit.model.tables import IN_MEMORY, TABLE_FILE
from dpaudit.results.sentences import HEADLINE_GAP
from dpaudit.results.structure import Block, Picture, ReportTable
from dpaudit.results.verdict import Verdict

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
_INDENT: Final = "  "


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


class Step(NamedTuple):
    """Something for the reader to do.

    Attributes:
        sentences: Sentences about it.
        command: The command to copy; None if there is none.
    """

    sentences: tuple[str, ...] = ()
    command: str | None = None


class Page(NamedTuple):
    """The content of a page, independent of its format.

    Attributes:
        verdict: Gives the heading its colour and its sign.
        word: The verdict in the heading, in capitals, and whether it is in floating point.
        finding: The rest of the heading.
        about: The line above it: the command and its subject.
        date: Day of the findings; None if it is not known.
        lead: Sentences below the heading: odds, what was tested, and what was not.
        result: The first part; its picture, if any, stands next to the lead.
        next_step: What to do next.
        findings: Parts that a reader of the result looks at next.
        clauses: Where the page answers standards.
        reproduce: How to reproduce the result; None if no command does.
        details: Parts at the end.
        facts: Facts with a label each, which a terminal shows below the heading.
        terminal: Parts that a terminal shows below these.
        origin: The command and the version that made it.
        draw: Makes an `<svg>` element of a picture that a part names.
    """

    verdict: Verdict
    word: str
    finding: str
    about: str
    date: str | None
    lead: tuple[str, ...]
    result: Block
    next_step: Step
    findings: tuple[Block, ...]
    clauses: tuple[Clause, ...]
    reproduce: Step | None
    origin: str
    draw: Callable[[Picture], str]
    details: tuple[Block, ...] = ()
    facts: tuple[Row, ...] = ()
    terminal: tuple[Block, ...] = ()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All parts in reading order."""
        return (
            self.result,
            _block("Next step", self.next_step),
            *self.findings,
            standards(self.clauses),
            *(() if self.reproduce is None else (_block("Reproduce", self.reproduce),)),
            *self.details,
        )


def page_text(page: Page) -> str:
    """A page as text of 80 columns: the heading, the facts, the next step, and some parts."""
    advice, command = page.next_step
    steps = [Row("" if place else "next", sentence) for place, sentence in enumerate(advice)]
    steps += [Row("", command, whole=True)] if command else []
    lines = headed(f"{page.word}{HEADLINE_GAP}{page.finding}", [*page.facts, *steps])
    for block in page.terminal:
        lines += ["", *_block_lines(block)]
    return "\n".join(lines)


def _block_lines(block: Block) -> list[str]:
    lines = wrapped(block.title)
    for sentence in block.paragraphs:
        lines += wrapped(sentence, first=_INDENT, rest=_INDENT)
    for item in block.items:
        lines += wrapped(item, first=_INDENT, rest=_INDENT * 2)
    if block.table:
        rows = (block.table.header, *block.table.rows)
        lines += aligned(rows, numeric=block.table.numeric, indent=_INDENT)
    return lines


def facts_block(title: str, facts: Iterable[Row]) -> Block:
    """Facts as a part of a page."""
    rows = tuple((row.label.capitalize(), row.fact) for row in facts)
    return Block(title=title, table=ReportTable(("Quantity", "Value"), rows))


def checked_verdict(*, violated: bool, ran: bool) -> Verdict:
    """The verdict of checks: whether one shows a violation, and whether any could judge."""
    if violated:
        return Verdict.VIOLATION
    return Verdict.CONSISTENT if ran else Verdict.INCONCLUSIVE


def _block(title: str, step: Step) -> Block:
    return Block(title=title, paragraphs=step.sentences, command=step.command)


def again(source: str, command: str | None) -> Step | None:
    """How to reproduce a result of a table; None if no command does."""
    return None if command is None else Step(in_memory(source), command)


def in_memory(source: str) -> tuple[str, ...]:
    """The step before a command on a table that was in memory; none for a file."""
    return (f"The table was in memory: write it to {TABLE_FILE} first.",) * (source == IN_MEMORY)
