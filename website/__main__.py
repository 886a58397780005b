"""Writes the pages that are made from code and results: `python -m website`."""

from __future__ import annotations

from website.pages import DOCS, made

if __name__ == "__main__":
    for name, text in made().items():
        (DOCS / name).write_text(text, encoding="utf-8")
