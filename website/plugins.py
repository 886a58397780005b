"""The references of generators and attacks: a section for each that comes with dpaudit."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

from website.docstrings import markdown
from website.signatures import default_text

ROOT: Final = Path(__file__).resolve().parents[1]
_OFFERED: Final = ("schema", "target", "self")
_STUDIED: Final = ("original", "updated", "synthcity", "turing", "borealis", "smartnoise")
_PAGES: Final = {
    "pate-gan": "../pate-gan.md",
    "pate-gan-marginals": "../pate-gan.md",
    "gan": "../generators/dp-gan.md",
    "pate-gan-switched": "../findings.md",
    **dict.fromkeys(_STUDIED, "../findings.md"),
}
"""Pages on generators that have none of their own name."""


def registered(group: str) -> dict[str, EntryPoint]:
    """The plugins that this project registers, by name; others may be installed beside them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    places = sorted(config["project"]["entry-points"][group].items())
    return {name: EntryPoint(name, place, group) for name, place in places}


def generators_page() -> str:
    """The page of all generators."""
    lead = (
        "# Generators\n\nWritten by `python -m website` from the code. `-p NAME=VALUE` sets a "
        "parameter. The toys `null`, `copycat`, `dawdler`, `randomised-response`, "
        "`laplace-histogram` and `gaussian-marginals` are there to try audits on; the six "
        "published PATE-GANs have the flaws of their originals. "
        "Generators of libraries: [libraries](../libraries.md).\n"
    )
    return "\n".join([lead, *_sections(registered("dpaudit.generators"))])


def attacks_page() -> str:
    """The page of all attacks."""
    lead = (
        "# Attacks\n\nWritten by `python -m website` from the code. `--attack NAME` chooses one, "
        "`--attack NAME,parameter=value` sets its parameters. What an attack may see is "
        "its [access level](../explanations/access-levels.md).\n"
    )
    return "\n".join([lead, *_sections(registered("dpaudit.attacks"))])


def _sections(found: dict[str, EntryPoint]) -> Iterator[str]:
    for name, entry in found.items():
        value = entry.load()
        yield f"## {name}\n"
        yield markdown(value)
        if entry.extras:
            yield f"Needs `pip install '.[{','.join(entry.extras)}]'`.\n"
        page = _page_on(name)
        if page:
            yield f"[More on {name}]({page})\n"
        rows = [
            f"| `{one.name}` | {_default(one)} |\n"
            for one in inspect.signature(value).parameters.values()
            if one.name not in _OFFERED
        ]
        if rows:
            yield "| parameter | default |\n|---|---|\n" + "".join(rows)


def _page_on(name: str) -> str:
    """The page of its own, or the one that has it among others; empty if there is none."""
    own = f"../generators/{name}.md"
    there = (ROOT / "docs" / "reference" / own).resolve().is_file()
    return own if there else _PAGES.get(name, "")


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return "required"
    return f"`{default_text(parameter.default)}`"
