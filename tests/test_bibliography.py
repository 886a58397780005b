"""Every paper that code and documentation cite has an entry, and every entry says where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "bibliography.md"
REFERENCE = ROOT / "docs" / "reference"
PACKAGES = ("dpaudit", "generators/dpaudit_generators", "attacks/dpaudit_attacks")
OTHERS = ("reports", "benchmarks", "tests")

_NAME = r"(?:(?:van|der|de|De) )*[A-Z][\w'-]+"
_CITATION = re.compile(
    rf"({_NAME})(?:, {_NAME})*(?: and {_NAME}| et al\.)?,? \(?((?:1[89]|20)\d\d)\b"
)
_ENTRY = re.compile(r"^- \*\*(.+?) (\d{4})\.\*\*(.+?)(?=^- \*\*|\Z)", re.MULTILINE | re.DOTALL)
_NO_AUTHORS = {"TMLR", "Security"}
"""Capitalised words before a year."""
_TITLE = 100
"""Most characters between authors and year, where a title stands between them."""


class Paper(NamedTuple):
    """A paper, by the first author's surname without particles."""

    author: str
    year: int


class Source(NamedTuple):
    """A file that may cite.

    Attributes:
        place: The package, the page, or the folder of everything else.
        text: What it says, white space collapsed.
        cites: What it cites as "Holm 1979".
    """

    place: str
    text: str
    cites: frozenset[Paper]


def paper(names: str, year: str) -> Paper:
    first = re.match(_NAME, names)
    assert first is not None, names
    return Paper(first[0].split()[-1], int(year))


def place(path: Path) -> str:
    relative = path.relative_to(ROOT)
    if relative.parts[0] in OTHERS:
        return relative.parts[0]
    if path.suffix == ".md":
        return relative.as_posix()
    [package] = [package for package in PACKAGES if relative.is_relative_to(package)]
    inside = relative.relative_to(package).parts[:-1]
    return "/".join([package, *inside[:1]])


@cache
def sources() -> tuple[Source, ...]:
    return tuple(read_sources())


def read_sources() -> Iterator[Source]:
    folders = [ROOT / folder for folder in (*PACKAGES, *OTHERS)]
    paths = [
        path for folder in folders for kind in ("py", "toml") for path in folder.rglob(f"*.{kind}")
    ]
    paths += [path for folder in ("docs", "reports") for path in (ROOT / folder).rglob("*.md")]
    paths = [path for path in paths if REFERENCE not in path.parents]  # docstrings again
    for path in [*paths, ROOT / "README.md"]:
        if path not in (PAGE, Path(__file__).resolve()):
            text = " ".join(path.read_text(encoding="utf-8").split())
            cited = [found for found in _CITATION.findall(text) if found[0] not in _NO_AUTHORS]
            yield Source(place(path), text, frozenset(paper(*found) for found in cited))


ENTRIES = {
    paper(names, year): text
    for names, year, text in _ENTRY.findall(PAGE.read_text(encoding="utf-8"))
}


def cited_in(one: Paper) -> list[str]:
    title_between = re.compile(rf"(?<!, )(?<!and )\b{one.author}\b.{{0,{_TITLE}}}?\b{one.year}\b")
    return sorted(
        {
            source.place
            for source in sources()
            if one in source.cites
            or (one.author in source.text and title_between.search(source.text))
        }
    )


def test_every_citation_has_an_entry() -> None:
    cited = frozenset().union(*(source.cites for source in sources()))
    assert len(cited) > 50
    assert sorted(cited - set(ENTRIES)) == []


def test_every_entry_says_where_its_paper_is_cited() -> None:
    stated = {
        one: sorted(re.findall("`([^`]+)`", text.rpartition("Cited in:")[2]))
        for one, text in ENTRIES.items()
    }
    assert stated == {one: cited_in(one) for one in ENTRIES}
    assert all(stated.values())


def test_entries_are_in_alphabetical_order() -> None:
    assert list(ENTRIES) == sorted(ENTRIES)
    assert len(ENTRIES) == PAGE.read_text(encoding="utf-8").count("\n- **")


def test_links_lead_where_they_say() -> None:
    sites = {"doi": "https://doi.org/", "arXiv": "https://arxiv.org/abs/"}
    links = re.findall(r"\[(doi|arXiv):([^]]+)\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) > 50
    for scheme, shown, target in links:
        assert target == sites[scheme] + shown
