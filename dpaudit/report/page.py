"""The frame of every report, which each command fills, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from dpaudit.formatting import Row, aligned, headed, wrapped
from dpaudit.model.tables import IN_MEMORY, TABLE_FILE
from dpaudit.report.standards import Clause, standards
from dpaudit.results.sentences import HEADLINE_GAP
from dpaudit.results.structure import Block, Picture, ReportTable
from dpaudit.results.verdict import Verdict

_INDENT: Final = "  "


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


def _block(title: str, step: Step) -> Block:
    return Block(title=title, paragraphs=step.sentences, command=step.command)


def again(source: str, command: str | None) -> Step | None:
    """How to reproduce a result of a table; None if no command does."""
    return None if command is None else Step(in_memory(source), command)


def in_memory(source: str) -> tuple[str, ...]:
    """The step before a command on a table that was in memory; none for a file."""
    return (f"The table was in memory: write it to {TABLE_FILE} first.",) * (source == IN_MEMORY)
