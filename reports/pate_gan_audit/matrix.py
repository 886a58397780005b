"""Tables 2 and 3 as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpaudit_generators.published.recipes import Shortcut
from reports.markdown import table
from reports.pate_gan_audit import tables
from reports.pate_gan_audit.kept import Record
from reports.pate_gan_audit.published import BUGS, SIX, VIOLATIONS

NOT_RUN = "Not run yet.\n"
UNSEEN = {
    "output-shifted": "it shows where an output passes its upper bound; most columns of this table "
    "start at 0, where nothing is shifted; tests/trace/test_matrix.py finds it on another table"
}
"""Why a switch alone may not be seen on this table."""


def table_2(part: Mapping[str, Record]) -> str:
    """The detection matrix, and what each switch alone gives."""
    shown = [name for name in (*SIX, *tables.CLEAN) if name in part]
    if not shown:
        return NOT_RUN
    found = {name: tables.named(part[name]) for name in shown}
    listed = VIOLATIONS | BUGS
    extra = sorted({key for one in found.values() for key in one} - set(listed))
    rows: list[Sequence[object]] = []
    for kind, keys in (("violation", VIOLATIONS), ("bug", BUGS), ("not in Table 2", extra)):
        for key in keys:
            expected = listed.get(key, ())
            cells = (_cell(found[name].get(key), expected=name in expected) for name in shown)
            rows.append((kind, f"`{key}`", *cells))
    score = tables.score(part)
    severe = sum(map(len, score["clean"].values()))
    words = (
        f"\n{score['named']} of {score['listed']} named on their implementations; {severe} "
        f"findings of severity violation or bug on the {len(score['clean'])} generators without a\n"
        "deviation; "
        f"{score['switches'] - len(score['not_alone'])} of {score['switches']} switches alone are "
        "found alone.\n"
    )
    for switch, keys in score["not_alone"].items():
        words += f"- `{switch}` alone gives: {', '.join(keys) or 'nothing'}"
        words += f" ({UNSEEN[switch]})\n" if switch in UNSEEN else "\n"
    return table(("", "finding", *shown), rows) + words


def _cell(severity: str | None, *, expected: bool) -> str:
    if expected:
        return "**missed**" if severity is None else "found"
    return "–" if severity is None else severity


def table_3(part: Mapping[str, Record]) -> str:
    """The hyperparameters, a row for each."""
    if "table-3" not in part:
        return NOT_RUN
    record = part["table-3"]
    recipes = record["settings"]
    keys = list(next(iter(recipes.values())))
    rows = [(key, *(_plain(recipe[key]) for recipe in recipes.values())) for key in keys]
    return table((f"d = {record['asked']['columns']}", *recipes), rows)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        widths = ", ".join(map(str, value["hidden"])) or "none"
        marks = [value["activation"], f"out {value['output']}"]
        if value["shortcut"] != Shortcut.NONE:
            marks.append(str(value["shortcut"]))
        if value["normalised"]:
            marks.append("normalised")
        if value["dropout"]:
            marks.append(f"dropout {value['dropout']:g}")
        return f"{widths} ({', '.join(marks)})"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
