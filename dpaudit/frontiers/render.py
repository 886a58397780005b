"""A frontier as a page: HTML and Markdown."""

from __future__ import annotations

from dpaudit.frontiers.picture import draw_frontier
from dpaudit.frontiers.record import Frontier
from dpaudit.frontiers.words import finding, frontier_table, notes
from dpaudit.report.render import Page, page_html, page_markdown
from dpaudit.results.structure import Block, Picture
from dpaudit.versions import __version__


def frontier_html(frontier: Frontier) -> str:
    """The frontier as one HTML file without scripts or anything from the network."""
    return page_html(_page(frontier), draw=lambda picture: draw_frontier(frontier))


def frontier_markdown(frontier: Frontier) -> str:
    """The frontier as Markdown, without its picture; the table has its numbers."""
    return page_markdown(_page(frontier))


def _page(frontier: Frontier) -> Page:
    blocks = [
        Block(
            title="Claim, proved bound and usefulness",
            picture=Picture.FRONTIER,
            table=frontier_table(frontier),
        ),
        Block(title="How to read this", items=notes(frontier)),
        Block(title="Again", command=frontier.reproduce),
    ]
    if frontier.failures:
        blocks.insert(1, Block(title="What failed", items=frontier.failures))
    return Page(
        verdict=frontier.verdict,
        word="FRONTIER",
        finding=finding(frontier),
        subject=f"{frontier.source}: {frontier.label} predicted",
        lead=(),
        blocks=tuple(blocks),
        origin=f"dpaudit {__version__} from frontier.json",
    )
