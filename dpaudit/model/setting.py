"""What a setting says of itself, once: Python, the command line, dpaudit.toml and pytest read it.

A setting is a field of a frozen dataclass. Its name, type, default and line in the docstring are
those of the field; `Annotated` adds the `NumberRange` of a number, and an `Option` where the
command line spells it otherwise than by its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import EnumType, StrEnum
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Final, NamedTuple, cast, get_args, get_origin, get_type_hints

from dpaudit.errors import SettingsError
from dpaudit.model.choices import member_named


class Panel(StrEnum):
    """The heading of the help that an option stands under."""

    INPUT = "Input"
    CLAIM = "Claim"
    ATTACK = "Attack"
    PLAN = "Plan"
    MORE_AUDITS = "More audits"
    OUTPUT = "Output and exit code"
    MACHINE = "Machine"
    RULES = "Statistics"


class NumberRange(NamedTuple):
    """The finite numbers that a setting may be; None where there is no limit.

    Attributes:
        least: The smallest.
        most: The largest.
        above: A limit that is itself too small.
        below: A limit that is itself too large.
        why: What is wrong with other numbers, where that needs saying.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    why: str = ""

    def holds(self, number: float) -> bool:
        """Whether a number is in the range."""
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def joined(self, other: NumberRange) -> NumberRange:
        """The numbers from the smaller of two least ones on; all else is as in this range."""
        if self.least is None or other.least is None:
            return self
        return self._replace(least=min(self.least, other.least))

    @property
    def in_words(self) -> str:
        """The range after the words "a number"; empty without limits."""
        low = self.least if self.above is None else self.above
        high = self.most if self.below is None else self.below
        if low is None:
            word = "of at most" if self.below is None else "below"
            return "" if high is None else f" {word} {_plain(high)}"
        if high is None:
            return f" {'of at least' if self.above is None else 'above'} {_plain(low)}"
        if self.above is None and self.below is None:
            return f" from {_plain(low)} to {_plain(high)}"
        opening, closing = "[(", "])"
        opens, closes = opening[self.above is not None], closing[self.below is not None]
        return f" in {opens}{_plain(low)}, {_plain(high)}{closes}"

    @property
    def schema(self) -> dict[str, float]:
        """The limits as keywords of JSON Schema."""
        limits = {
            "minimum": self.least,
            "maximum": self.most,
            "exclusiveMinimum": self.above,
            "exclusiveMaximum": self.below,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}


ANY: Final = NumberRange()
"""Every number, infinities and NaN included."""
POSITIVE: Final = NumberRange(above=0)
AT_LEAST_0: Final = NumberRange(least=0)
AT_LEAST_1: Final = NumberRange(least=1)
DELTA: Final = NumberRange(least=0, below=1)
BETWEEN_0_AND_1: Final = NumberRange(above=0, below=1)
CONFIDENCE: Final = NumberRange(above=0.5, below=1)
"""Of one-sided bounds."""
SEED: Final = NumberRange(least=0, below=2**63)


def check_number(
    name: str, value: object, allowed: NumberRange = ANY, *, whole: bool = False
) -> None:
    """Refuses what is not a number of a range.

    Args:
        name: The setting, for the message.
        value: Its value.
        allowed: The range.
        whole: Whether it must be a whole number; True and False are none.

    Raises:
        SettingsError: If it is no such number.
    """
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if number and (allowed == ANY or allowed.holds(value)):  # type: ignore[arg-type]  # a number
        return
    kind = "a whole number" if whole else "a number"
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    shown = f"{value:,}" if is_number else repr(value)
    why = f": {allowed.why}" if allowed.why else ""
    raise SettingsError(f"`{name}` must be {kind}{allowed.in_words}, got {shown}{why}")


class Option(NamedTuple):
    """How the command line spells a setting.

    Attributes:
        value: What stands for its value in a help text.
        flags: Its flags, if they are not its name.
        panel: The heading of the help that it stands under.
        by_name: Whether `dpaudit audit` takes it as `--set NAME=VALUE`, since few audits need it.
        text: Whether it is typed as one text that its class reads.
    """

    value: str | None = None
    flags: tuple[str, ...] = ()
    panel: Panel = Panel.MORE_AUDITS
    by_name: bool = False
    text: bool = False

    def spelled(self, name: str) -> tuple[str, ...]:
        """Its flags, those of a setting of this name."""
        return self.flags or (f"--{name.replace('_', '-')}",)


class SettingField(NamedTuple):
    """What the annotation of a field says.

    Attributes:
        kind: Its type without None.
        optional: Whether it may be None.
        range: The range of a number.
        option: How the command line spells it.
    """

    kind: Any
    optional: bool
    range: NumberRange
    option: Option


@cache
def settings_of(owner: type) -> Mapping[str, SettingField]:
    """The settings of a dataclass, by name."""
    hints = get_type_hints(owner, include_extras=True)
    names = getattr(owner, "__dataclass_fields__", {})
    return {name: setting_of(hints[name]) for name in names}


def setting_of(hint: Any) -> SettingField:
    """What an annotation says of a setting."""
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    present = [part for part in get_args(kind) if part is not type(None)]
    optional = type(None) in get_args(kind)
    return SettingField(
        kind=present[0] if optional else kind,
        optional=optional,
        range=next((note for note in notes if isinstance(note, NumberRange)), ANY),
        option=next((note for note in notes if isinstance(note, Option)), Option()),
    )


def check_settings(settings: Any) -> None:
    """Refuses numbers outside their ranges and names of no choice; names become the choices.

    Args:
        settings: An instance of a frozen dataclass, whose `__post_init__` calls this.

    Raises:
        SettingsError: If a number or a choice has no meaning.
    """
    owner: Any = type(settings)  # mypy holds that no class can be the key of a cache
    for name, setting in settings_of(owner).items():
        value = getattr(settings, name)
        if value is None and setting.optional:
            continue
        kind = setting.kind
        if isinstance(kind, EnumType):
            object.__setattr__(settings, name, member_named(name, cast(Any, kind), value))
        elif kind in (int, float):
            check_number(name, value, setting.range, whole=kind is int)


def _plain(number: float) -> str:
    """A limit as it is read: thousands by commas, and powers of two as such."""
    if isinstance(number, float):
        return f"{number:g}"
    return f"{number:,}" if number < 2**53 else f"2**{number.bit_length() - 1}"
