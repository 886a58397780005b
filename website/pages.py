"""Every page that is made, or that holds a table that is."""

from __future__ import annotations

import json
from os.path import relpath
from pathlib import Path
from typing import Final

from dpaudit.auditing.configuration import SCHEMA_FILE, configuration_schema
from website import api, command_line, figures, plugins, released

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"


def made() -> dict[str, str]:
    """The pages as they should be, and the schema that editors read, by their paths from `docs`."""
    pages = {
        "reference/command-line.md": command_line.page(),
        "reference/python.md": api.main_page(),
        "reference/packages.md": api.packages_page(),
        "reference/generators.md": plugins.generators_page(),
        "reference/attacks.md": plugins.attacks_page(),
    }
    schema = relpath(SCHEMA_FILE, DOCS)
    pages[schema] = json.dumps(configuration_schema(), indent=2) + "\n"
    pages["released-software.svg"] = released.methods_picture()
    for name in dict.fromkeys(page for page, _ in figures.TABLES):
        pages[name] = figures.filled(name, (DOCS / name).read_text(encoding="utf-8"))
    return pages
