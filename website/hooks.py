"""Lets mkdocs build the site from pages that also read well in the repository.

The home page is README.md. A page may link to any file of the repository: pages and pictures
outside `docs` join the site at their own path, and a link to source code or to a folder becomes
plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = "docs"
_LINK: Final = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_SHOWN: Final = frozenset(
    {".md", ".html", ".svg", ".png", ".json", ".csv", ".toml", ".yml", ".ipynb"}
)
_CODE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and pictures outside `docs` that pages link to, and what these link to."""
    start = File("README.md", str(ROOT), config.site_dir, config.use_directory_urls)
    files.append(start)
    waiting = [file for file in files if file.src_uri.endswith(".md")]
    while waiting:
        page = waiting.pop()
        here = _place(page)
        for _, _, link, _ in _LINK.findall((ROOT / here).read_text(encoding="utf-8")):
            target = _target(here, link)
            if target is None or files.get_file_from_path(_uri(target)):
                continue
            added = File(target, str(ROOT), config.site_dir, config.use_directory_urls)
            added.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(added)
            if target.endswith(".md"):
                waiting.append(added)
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links as they are on the site."""
    here = _place(page.file)
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(found: re.Match[str]) -> str:
        mark, text, link, anchor = found.groups()
        if not link or ":" in link:
            return found[0]
        target = _target(here, link)
        if target is None:
            return text if _exists(here, link) else found[0]  # which mkdocs then complains of
        return f"{mark}[{text}]({posixpath.relpath(_uri(target), folder or '.')}{anchor or ''})"

    parts, last = [], 0
    for code in _CODE.finditer(markdown):
        parts += [_LINK.sub(replaced, markdown[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, _LINK.sub(replaced, markdown[last:])])


def on_page_content(html: str, **_: Any) -> str:
    """Tables that scroll within a group that a keyboard reaches."""
    region = '<div class="scroll" role="group" aria-label="Table" tabindex="0">'
    return html.replace("<table>", f"{region}<table>").replace("</table>", "</table></div>")


def on_post_page(output: str, **_: Any) -> str:
    """The search dialog with a name, which the theme leaves out."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def _place(file: File) -> str:
    """Where a page of the site lies in the repository."""
    return Path(file.abs_src_path or "").resolve().relative_to(ROOT).as_posix()


def _target(here: str, link: str) -> str | None:
    """The file of the repository that a link leads to; None if the site does not show it."""
    if not link or ":" in link:
        return None
    path = _joined(here, link)
    if (ROOT / path).is_dir():
        path = posixpath.join(path, "README.md")
    inside = (ROOT / path).is_file() and Path(path).suffix in _SHOWN
    return path if inside else None


def _joined(here: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def _exists(here: str, link: str) -> bool:
    return (ROOT / _joined(here, link)).exists()


def _uri(target: str) -> str:
    """A file's path on the site: as in the repository, but for those of `docs`."""
    return target.removeprefix(f"{DOCS}/")
