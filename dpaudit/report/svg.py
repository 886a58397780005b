"""Shapes and axes as SVG, in points; text is sans-serif of ten."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

INK = "#222222"
FONT_SIZE = 10.0
_LINE_HEIGHT = 12.0
_TICK = 3.5
_MOST_X, _MOST_Y = 7, 5
_ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Style: TypeAlias = dict[str, str | float]
"""Attributes of elements, hyphens as underscores."""


class Range(NamedTuple):
    """The range of an axis."""

    low: float
    high: float

    def ticks(self, most: int) -> list[float]:
        """Round numbers inside it, with at most so many steps between its ends."""
        finest = (self.high - self.low) / most
        magnitude = 10.0 ** math.floor(math.log10(finest))
        step = next(step * magnitude for step in _ROUND_STEPS if step * magnitude >= finest)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(place * step, 12) for place in range(first, last + 1)]


def tag(name: str, *children: str, **attributes: str | float) -> str:
    """Writes an element.

    Args:
        name: Its name.
        children: What is inside, escaped already.
        attributes: Its attributes, hyphens as underscores; numbers are rounded.

    Returns:
        The element.
    """
    written = (f'{key.replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{' '.join([name, *written])}>{''.join(children)}</{name}>"


def text(words: str, x: float, y: float, **attributes: str | float) -> str:
    """Writes text whose lines are centred around a height.

    Args:
        words: The text, which may have several lines.
        x: Where it is anchored.
        y: The middle of its lines.
        attributes: Attributes of every line.

    Returns:
        The elements.
    """
    lines = words.splitlines()
    first = y + 0.35 * FONT_SIZE - (len(lines) - 1) * _LINE_HEIGHT / 2.0
    return "".join(
        tag("text", html.escape(line), x=x, y=first + place * _LINE_HEIGHT, **attributes)
        for place, line in enumerate(lines)
    )


def hatch(name: str, *, colour: str, fill: str) -> str:
    """Defines the pattern of that name: oblique lines."""
    square = tag("rect", width=5, height=5, fill=fill)
    line = tag("path", d="M0 0V5", stroke=colour, stroke_width=1.2)
    turned: Style = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return tag("defs", tag("pattern", square, line, id=name, width=5, height=5, **turned))


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else _number(value)


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


@dataclass(frozen=True, kw_only=True)
class Axes:
    """A rectangle of a picture and the ranges that it shows.

    Attributes:
        left: Where it begins.
        top: Its upper edge.
        width: Width of the rectangle.
        height: Height of the rectangle.
        x: Range from left to right.
        y: Range from the bottom up.
    """

    left: float
    top: float
    width: float
    height: float
    x: Range
    y: Range

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Where a value of x lies."""
        return self.left + self.width * (value - self.x.low) / (self.x.high - self.x.low)

    def up(self, value: float) -> float:
        """Where a value of y lies."""
        return self.bottom - self.height * (value - self.y.low) / (self.y.high - self.y.low)

    def path(self, points: Iterable[tuple[float, float]], **attributes: str | float) -> str:
        """A line through points (x, y)."""
        corners = (f"{_number(self.across(x))} {_number(self.up(y))}" for x, y in points)
        return tag("path", d=f"M{'L'.join(corners)}", **({"fill": "none"} | attributes))

    def upright(self, x: float, **attributes: str | float) -> str:
        """A line from the bottom to the top."""
        return self.path([(x, self.y.low), (x, self.y.high)], stroke_dasharray="5 3", **attributes)

    def frame(self) -> str:
        """The line on the left and the one below."""
        corners = f"M{self.left} {self.top}V{self.bottom}H{self.left + self.width}"
        return tag("path", d=corners, fill="none", stroke="black", stroke_width=0.8)

    def x_ticks(self, *, numbers: bool = True) -> str:
        """Ticks below, with their numbers."""
        return "".join(
            self.x_tick(value, _shown(value) if numbers else "") for value in self.x.ticks(_MOST_X)
        )

    def x_tick(self, value: float, words: str) -> str:
        """One tick below, and what is written under it."""
        place = self.across(value)
        line = tag("path", d=f"M{_number(place)} {self.bottom}v{_TICK}", stroke="black")
        return line + text(words, place, self.bottom + 11, text_anchor="middle")

    def y_ticks(self) -> str:
        """Ticks on the left, with their numbers."""
        return "".join(self.y_tick(value, _shown(value)) for value in self.y.ticks(_MOST_Y))

    def y_tick(self, value: float, words: str) -> str:
        """One tick on the left, and its label."""
        place = self.up(value)
        line = tag("path", d=f"M{self.left} {_number(place)}h{-_TICK}", stroke="black")
        return line + text(words, self.left - 7, place, text_anchor="end")

    def x_label(self, words: str) -> str:
        """The name of the axis below."""
        return text(words, self.left + self.width / 2, self.bottom + 26, text_anchor="middle")

    def y_label(self, words: str, *, gap: float = 36.0) -> str:
        """The name of the axis on the left, from the bottom up."""
        x, y = self.left - gap, self.top + self.height / 2
        turned = f"rotate(-90 {_number(x)} {_number(y)})"
        return text(words, x, y, text_anchor="middle", transform=turned)


def _shown(value: float) -> str:
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")
