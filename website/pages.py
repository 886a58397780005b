"""Every page that is made, or that holds a table that is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from website import api, command_line, figures, plugins

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


def made() -> dict[str, str]:
    """The pages as they should be, by their paths below `docs`."""
    pages = {
        "reference/command-line.md": command_line.page(),
        "reference/python.md": api.main_page(),
        "reference/packages.md": api.packages_page(),
        "reference/generators.md": plugins.generators_page(),
        "reference/attacks.md": plugins.attacks_page(),
    }
    for name in dict.fromkeys(page for page, _ in figures.TABLES):
        pages[name] = figures.filled(name, (DOCS / name).read_text(encoding="utf-8"))
    return pages
