"""What a frontier is asked for: generators, epsilons, and how each point is judged."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from dpaudit.auditing.games import audit_settings, keywords_of
from dpaudit.auditing.settings import AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.plugins.registry import parse_parameters
from dpaudit.usefulness.settings import UtilitySettings

EPSILON: Final = "epsilon"
"""The parameter of a generator that takes its privacy budget."""
AUDIT_CHOICES: Final = (
    *("delta", "neighbours", "target", "access", "attacks", "shadow_models", "rows", "confidence"),
    *("multiplicity", "sequential", "probe", "worker_memory", "seed"),
)
"""The choices of an audit that make sense for every point alike; the others keep their defaults."""
UTILITY_CHOICES: Final = ("label", "positive", "test_share", "repeats", "classifiers")
"""The choices of a measurement of utility; the others are those of the audit."""


class PointName(NamedTuple):
    """A generator at one epsilon.

    Attributes:
        asked: The generator as the caller wrote it: "pate-gan,teachers=20".
        generator: Its name.
        parameters: What it is built with, epsilon included.
        epsilon: The epsilon.
    """

    asked: str
    generator: str
    parameters: dict[str, Any]
    epsilon: float

    def __str__(self) -> str:
        """The point in words."""
        return f"{self.asked} at epsilon {self.epsilon:g}"


@dataclass(frozen=True, kw_only=True)
class FrontierSettings:
    """Every choice of a frontier other than its table.

    Attributes:
        generators: Names as for `dpaudit.audit`, each perhaps with parameters:
            "pate-gan,teachers=20".
        epsilons: Privacy budgets, given to each generator as its parameter `epsilon`; kept in
            increasing order.
        audit: How each point is audited; its own claim, parameters and pair of tables, and the
            games that train once or serve many records, are left out.
        utility: How useful the tables are; its rows, confidence and seed are those of the audit.

    Raises:
        SettingsError: If a setting is out of range, or belongs to one audit alone.
    """

    generators: Sequence[str]
    epsilons: Sequence[float]
    audit: AuditSettings = field(default_factory=audit_settings)
    utility: UtilitySettings = field(default_factory=UtilitySettings)

    def __post_init__(self) -> None:
        if isinstance(self.generators, str) or not self.generators:
            raise SettingsError(f"`generators` must name one or more, got {self.generators!r}")
        for what, given in (("generators", self.generators), ("epsilons", self.epsilons)):
            twice = [one for one in given if list(given).count(one) > 1]
            if twice:
                raise SettingsError(f"`{what}` names {twice[0]} twice: give each once")
        if not self.epsilons or not all(0 < one < math.inf for one in self.epsilons):
            raise SettingsError(
                f"`epsilons` must be one or more positive numbers, got {list(self.epsilons)}"
            )
        for name in keywords_of(self.audit):
            if name not in AUDIT_CHOICES:
                raise SettingsError(
                    f"`{name}` is of one audit, not of a frontier: leave it out, or run that "
                    "point by `dpaudit audit`"
                )
        for name in ("rows", "confidence", "seed"):
            if getattr(self.utility, name) not in (
                getattr(UtilitySettings, name),
                getattr(self.audit, name),
            ):
                raise SettingsError(f"`{name}` is that of the audit: give it there alone")
        object.__setattr__(self, "generators", tuple(self.generators))
        object.__setattr__(self, "epsilons", tuple(sorted(map(float, self.epsilons))))
        _ = list(self.names())  # validates

    def names(self) -> Iterator[PointName]:
        """All points, generator by generator.

        Raises:
            RegistryError: If a generator's parameters cannot be read.
            SettingsError: If epsilon is one of them.
        """
        for asked in self.generators:
            name, *pairs = asked.split(",")
            given = parse_parameters(pairs)
            if EPSILON in given:
                raise SettingsError(f"{asked}: leave its epsilon out, and give it in `epsilons`")
            for epsilon in self.epsilons:
                yield PointName(asked, name, {**given, EPSILON: epsilon}, epsilon)

    def command(self, data: str, schema: str | None, test: str | None) -> str:
        """The command that repeats it.

        Args:
            data: Where the table came from.
            schema: The schema's file, if it was read from one.
            test: Where the test table came from, if there is one.
        """
        words = ["dpaudit", "frontier", *self.generators, "--data", data]
        words += [] if schema is None else ["--schema", schema]
        words += [] if test is None else ["--test", test]
        words += ["--epsilons", ",".join(f"{one:g}" for one in self.epsilons)]
        for name, value in keywords_of(self.audit).items():
            words += _words(name, value)
        for one in fields(self.utility):
            value = getattr(self.utility, one.name)
            if one.name in UTILITY_CHOICES and value != one.default:
                words += _words(one.name, value)
        return shlex.join(words)


def _words(name: str, value: Any) -> list[str]:
    """A setting as words of the command."""
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [option if value else f"--no-{option[2:]}"]
    if isinstance(value, list | tuple):
        named = (one if isinstance(one, str) else type(one).__name__ for one in value)
        return [word for one in named for word in (option.removesuffix("s"), one)]
    return [option, str(value)]
