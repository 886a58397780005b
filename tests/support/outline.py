"""The outline of an HTML page, and what a reader with a screen reader needs of it."""

from __future__ import annotations

from html.parser import HTMLParser

_LINKS = {"src", "href", "data", "action"}
_VOID = frozenset({"meta", "br", "link", "img"})


class Outline(HTMLParser):
    """Tags, attributes that load or link, and text of a page; complains of unbalanced tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.identifiers: list[str] = []
        self.text: list[str] = []
        self.headings: list[int] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(page.replace("<wbr>", ""))  # where a word may break, it is one all the same
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name.split(":")[-1] in _LINKS]
        self.identifiers += [value or "" for name, value in attrs if name == "id"]
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        needed = {
            "html": "lang",
            "th": "scope",
            "svg": "aria-labelledby",
            "nav": "aria-label",
        }.get(tag)
        if needed is not None and not given.get(needed):
            self.faults.append(f"{tag} without {needed}")
        if "tabindex" in given and not (given.get("role") and given.get("aria-label")):
            self.faults.append(f"{tag} takes the focus without a role and a name")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def accessibility_faults(page: str) -> list[str]:
    """What a checker of accessibility would call serious in the structure of a page."""
    found = Outline(page)
    faults = list(found.faults)
    for tag in ("h1", "main", "header", "footer", "title"):
        times = found.tags.count(tag) - (found.tags.count("svg") if tag == "title" else 0)
        if times != 1:
            faults.append(f"{times} elements {tag}")
    for before, after in zip(found.headings, found.headings[1:], strict=False):
        if after > before + 1:
            faults.append(f"h{after} after h{before}")
    if len(found.identifiers) != len(set(found.identifiers)):
        faults.append("an identifier twice")
    return faults
