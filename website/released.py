"""The page on released software: each method replayed and audited from outside, side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dpaudit.report.figures import INK, LEGEND_ROW, Axes, Range, legend, standalone, tag, text
from reports import markdown

_RESULTS: Final = Path(__file__).resolve().parents[1] / "reports"
_WIDTH: Final = 620.0
_ROW: Final = 17.0
_LEFT: Final = 226.0
_FARTHEST: Final = 2.0
"""Where the picture's axis ends, in multiples of the claim."""
_COLOURS: Final = {
    **{"violation": "#c1272d", "overspent": "#c77c02"},
    **{"consistent": "#0a7d32", "inconclusive": "#8a8a8a"},
}
_HEADS: Final = (
    *("library", "method", "defaults", "claimed ε", "verdict", "spent", "release", "black box"),
    *("what was found", "measured"),
)


class Method(NamedTuple):
    """A method with one set of defaults, and what both kinds of audit found.

    Attributes:
        name: LIBRARY:METHOD.
        defaults: "library" or "public".
        replay: The row of reports/replay; None if it was not replayed.
        audit: The row of reports/third_party; None if it was not audited from outside.
    """

    name: str
    defaults: str
    replay: Mapping[str, Any] | None
    audit: Mapping[str, Any] | None

    @property
    def verdicts(self) -> tuple[str | None, str | None]:
        """Of the replay and of the black-box audit."""
        result = (self.replay or {}).get("result") or {}
        return result.get("verdict"), (self.audit or {}).get("verdict")

    @property
    def is_decided(self) -> bool:
        """Whether it was replayed, and audited with enough models to decide."""
        small = self.audit is not None and self.audit["reason"].startswith("cannot decide")
        return None not in self.verdicts and not small

    @property
    def verdict(self) -> str:
        """A violation by either; consistent if a replay says so, or an audit and no replay."""
        replayed, audited = self.verdicts
        if "violation" in (replayed, audited):
            return "violation"
        return replayed or audited or "not replayable"


def methods() -> list[Method]:
    """Every method of both studies, by library."""
    replays: dict[tuple[str, str], Any] = {}
    for one in _read("replay", "released.json")["cases"]:
        name, defaults = one["method"].split(", ")
        replays[name, defaults] = one
    audits = {
        (one["method"], one["defaults"]): one
        for one in _read("third_party", "audits.json")["audits"]
        if ", " not in one["method"]  # twins, and tables made to show one flaw
    }
    keys = sorted({*replays, *audits})
    return [Method(*key, replay=replays.get(key), audit=audits.get(key)) for key in keys]


def _read(study: str, file: str) -> Any:
    return json.loads((_RESULTS / study / "results" / file).read_text(encoding="utf-8"))


def methods_table() -> str:
    """All methods, one row each."""
    return markdown.table(_HEADS, [_line(one) for one in methods()])


def methods_sentence() -> str:
    """How many methods of how many libraries ended how."""
    found = methods()
    libraries = {one.name.partition(":")[0] for one in found}
    names = {one.name for one in found}
    both = {one.name for one in found if None not in one.verdicts}
    decided = {one.name for one in found if one.is_decided}
    ended = [one.verdict for one in found]
    counts = ", ".join(f"{ended.count(word)} {word}" for word in dict.fromkeys(sorted(ended)))
    return (
        f"{len(libraries)} libraries, {len(names)} methods, {len(both)} of them with both kinds of "
        f"evidence; {len(decided)} of these have black-box audits with enough models to decide. "
        f"Of {len(found)} rows: {counts}.\n"
    )


def _line(one: Method) -> Sequence[object]:
    replay = one.replay or {}
    result, audit = replay.get("result") or {}, one.audit or {}
    library, _, method = one.name.partition(":")
    known = {**result.get("versions", {}), **audit.get("versions", {})}
    release = next((of for name, of in known.items() if name == f"{library}: {library}"), "")
    claim = result["claim"]["epsilon"] if result else audit.get("epsilon")
    spent = "no limit" if result.get("spent_unlimited") else _number(result.get("spent"))
    most, models = audit.get("provable"), audit.get("models")
    return (
        f"{library} {release}".strip(),
        method,
        one.defaults,
        f"{claim:.3g}" if claim else "–",
        _verdict(one, of_proof=bool(result.get("of_proof"))),
        spent,
        f"{_shown(result['proved'])} ({result['fits']} fits)" if result else "–",
        f"≥ {_number(audit['proved'])} of {_number(most)} ({models} models)" if audit else "–",
        _found(replay, result, audit),
        max(str(of["date"]) for of in (replay, audit) if of),
    )


def _verdict(one: Method, *, of_proof: bool) -> str:
    """The verdict; it says where only the stated proof is refuted."""
    if one.verdict != "violation":
        return one.verdict
    return f"**violation**{' of the proof' if of_proof and one.verdicts[1] != 'violation' else ''}"


def _shown(proved: float | None) -> str:
    return "no limit" if proved is None else f"≥ {_number(proved)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _found(replay: Mapping[str, Any], result: Mapping[str, Any], audit: Mapping[str, Any]) -> str:
    """The first reason of the replay where it found anything, and the feature that leaks."""
    said = []
    if audit and audit["verdict"] == "violation":
        said.append(f"rows: {audit['leak'] or audit['attack']}")
    error = replay.get("error", "")
    if error:
        stopped = error.startswith("stopped")
        said.append(error if stopped else "fails on this table, without a replay too")
    elif result and result["verdict"] != "consistent":
        said.append(result["reasons"][0].partition(", and what that costs")[0])
    return "; ".join(said).replace("|", "\\|") or "–"


def methods_picture() -> str:
    """What a replay says is spent and an audit proves, in multiples of each method's claim."""
    found = [one for one in methods() if any(one.verdicts)]
    axes = Axes(
        left=_LEFT,
        top=6,
        width=_WIDTH - _LEFT - 24.0,
        height=_ROW * len(found),
        x=Range(0.0, _FARTHEST),
        y=Range(len(found) - 0.5, -0.5),
    )
    claim = axes.path([(1.0, -0.5), (1.0, len(found) - 0.5)], stroke=INK, stroke_width=2)
    elements = [
        axes.frame(),
        axes.x_ticks(),
        axes.x_label("epsilon, in multiples of the claim"),
        claim,
    ]
    for place, one in enumerate(found):
        elements += _drawn(axes, place, one)
    middle = 9.0
    entries = [
        (_mark(middle, 0.0, "violation", "replay"), "spent by the steps that a replay saw"),
        (_mark(middle, 0.0, "violation", "audit"), "proved from outside (of the rows)"),
        (tag("path", d=f"M{middle:g} -6V6", stroke=INK, stroke_width=2), "the claim"),
    ]
    top = axes.bottom + 48.0
    height = top + LEGEND_ROW * len(entries) + 12.0
    words = (
        "red: violation; orange: overspent; green: consistent; grey: inconclusive; an arrow: "
        "beyond the axis"
    )
    described = "; ".join(f"{one.name}, {one.defaults}: {one.verdict}" for one in found)
    return standalone(
        tag(
            "svg",
            tag("title", "What released software spends and leaks", id="released-title"),
            tag("desc", f"{described}.", id="released-desc"),
            *elements,
            *legend(entries, left=_LEFT, top=top),
            text(words, _LEFT, top + LEGEND_ROW * len(entries)),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {_WIDTH:g} {height:g}",
            role="img",
            aria_labelledby="released-title released-desc",
            font_family="sans-serif",
            font_size=10,
        )
    )


def _drawn(axes: Axes, place: int, one: Method) -> list[str]:
    """A name and up to two marks."""
    y = axes.up(float(place))
    drawn = [text(f"{one.name}, {one.defaults}", axes.left - 9, y, text_anchor="end")]
    result, audit = (one.replay or {}).get("result"), one.audit
    if result:
        spent = float("inf") if result.get("spent_unlimited") else result.get("spent")
        if spent is not None:
            ratio = spent / result["claim"]["epsilon"]
            drawn.append(_placed(axes, ratio, y, result["verdict"], "replay"))
    if audit and audit["proved"] is not None:
        drawn.append(
            _placed(axes, audit["proved"] / audit["epsilon"], y, audit["verdict"], "audit")
        )
    return drawn


def _placed(axes: Axes, bound: float, y: float, verdict: str, kind: str) -> str:
    """A mark at its bound; beyond the axis at its end, with an arrow."""
    end = axes.left + axes.width
    if bound <= _FARTHEST:
        return _mark(axes.across(bound), y, verdict, kind)
    x = end - (10.0 if kind == "replay" else 24.0)
    arrow = tag("path", d=f"M{end - 4:.1f} {y - 3:.1f}l5 3l-5 3", fill="none", stroke=INK)
    return _mark(x, y, verdict, kind) + arrow


def _mark(x: float, y: float, verdict: str, kind: str) -> str:
    """A circle for a replay, a square for an audit, in the colour of the verdict."""
    colour = _COLOURS.get(verdict, INK)
    if kind == "replay":
        return tag("circle", cx=x, cy=y, r=4, fill=colour)
    return tag(
        "rect", x=x - 4, y=y - 4, width=8, height=8, fill="none", stroke=colour, stroke_width=2
    )
