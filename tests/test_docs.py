"""The pages' Python snippets run, in order, and print what the comments beside them say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dpaudit.probe import PROBES
from dpaudit.trace.catalogue import CATALOGUE

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(
    ("page", "count", "silent"),
    [
        pytest.param("accounting.md", 5, 0, marks=pytest.mark.ci),
        ("pate-gan.md", 3, 0),
        ("generators/marginals.md", 1, 0),
        ("extending.md", 8, 7),
        ("guides/mechanisms.md", 1, 0),
        pytest.param("released-data.md", 1, 0, marks=pytest.mark.ci),
    ],
)
def test_snippets_print_what_the_page_says(
    page: str,
    count: int,
    silent: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(snippets) == count
    names: dict[str, Any] = {}
    printing = 0
    for snippet in snippets:
        exec(compile(snippet, page, "exec"), names)
        told = re.findall(r"^print\(.*\)  # (.*)$|^    # (.*)$", snippet, re.MULTILINE)
        printing += bool(told)
        assert capsys.readouterr().out.splitlines() == [one or other for one, other in told]
    assert printing == count - silent


def test_every_finding_and_probe_is_explained() -> None:
    rows = re.findall(
        r"^\| `([a-z-]+)` \| (.*) \|$", (DOCS / "findings.md").read_text(), re.MULTILINE
    )
    known = [(id_, f"{entry.severity} | {entry.correct}") for id_, entry in CATALOGUE.items()]
    known += [(one.id, f"{one.severity} | {one.correct}") for one in PROBES]
    assert rows == known
