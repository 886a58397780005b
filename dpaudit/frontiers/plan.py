"""The settings of a frontier and its points: validated before any training, with their cost."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

import loky

from dpaudit.auditing.games import audit_settings, build_spec, keywords_of, kind_of
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.timing import time_one
from dpaudit.errors import ClaimError, DpauditError, InterruptedRunError, SettingsError
from dpaudit.formatting import counted, duration
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import NamedGenerator, claim_under_audit, named_generator
from dpaudit.plugins.protocols import trains_many
from dpaudit.plugins.registry import parse_parameters
from dpaudit.usefulness.experiment import Experiment
from dpaudit.usefulness.run import UniformRows, UtilitySettings

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

    def command(self, table: Sequence[str], test: str | None) -> str:
        """The command that repeats it.

        Args:
            table: The words that name the table and its schema.
            test: Where the test table came from, if there is one.
        """
        words = ["dpaudit", "frontier", *self.generators, *table]
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


@dataclass(frozen=True, kw_only=True)
class PlannedPoint:
    """One point, ready to run.

    Attributes:
        name: The generator and its epsilon.
        generator: The generator, for the measurement of utility.
        settings: Settings of its audit, the claim included.
        audit: The audit.
    """

    name: PointName
    generator: NamedGenerator
    settings: AuditSettings
    audit: AuditSpec


def planned_points(
    settings: FrontierSettings, table: Table, experiment: Experiment
) -> tuple[PlannedPoint, ...]:
    """Builds every generator and its audit; trains nothing.

    Args:
        settings: Every choice.
        table: The table that is audited on; its schema names the label.
        experiment: The experiment in which utility is measured.

    Returns:
        The points.

    Raises:
        InputError: If one cannot be built or audited; nothing was trained then.
    """
    points = []
    for name in settings.names():
        named = named_generator(
            name.generator,
            name.parameters,
            {"schema": table.schema},
            worker_memory=settings.audit.worker_memory,
        )
        check_table(named.generator, experiment.train)
        chosen = replace(settings.audit, parameters=name.parameters)
        if not _claims_epsilon(named, chosen):
            chosen = replace(chosen, claim=replace(chosen.claim, epsilon=name.epsilon))
        audit = build_spec(name.generator, table, chosen)
        points.append(PlannedPoint(name=name, generator=named, settings=chosen, audit=audit))
    return tuple(points)


def _claims_epsilon(named: NamedGenerator, settings: AuditSettings) -> bool:
    """Whether a generator claims an epsilon itself; otherwise its parameter is the claim."""
    try:
        claim = claim_under_audit(named, settings.claim)
    except ClaimError:
        return False
    return isinstance(claim, PrivacyClaim)


def cost(
    points: Sequence[PlannedPoint],
    experiment: Experiment,
    table: Table,
    *,
    repeats: int,
    jobs: int | None,
) -> str:
    """What points cost, in words; trains one model of each generator and one set of classifiers.

    Args:
        points: The points that are still to be run.
        experiment: The experiment in which utility is measured.
        table: The table that is audited on.
        repeats: Synthetic tables for each point.
        jobs: Worker processes; one per available core if None.

    Returns:
        One line; it names generators whose model failed, of which no cost is known.

    Raises:
        InterruptedRunError: On Ctrl-C.
    """
    workers = jobs or loky.cpu_count()
    begun = time.perf_counter()
    experiment.repeat(UniformRows(table.schema), source="timing", number=0)
    per_table = time.perf_counter() - begun
    audits = tables = 0.0
    models = 0
    failed = []
    # For each generator the point with the largest epsilon, usually the most expensive.
    for dearest in {point.name.asked: point for point in points}.values():
        settings = dearest.settings
        try:
            one = time_one(dearest.audit)
        except InterruptedRunError:
            raise
        except DpauditError as error:  # it may succeed at another epsilon
            failed.append(f"; not known of {dearest.name.asked}: {error}")
            continue
        together = trains_many(dearest.generator.generator)
        planned = kind_of(settings.game).trainings(settings, together)
        alike = sum(point.name.asked == dearest.name.asked for point in points)
        audits += alike * planned.seconds(
            per_model=one.model, per_control=one.control or one.model, workers=workers
        )
        tables += alike * repeats * (one.model + per_table)
        models += alike * (planned.models + planned.searches)
    count = len(points)
    return (
        f"to run: {counted(count, 'point')} with {models} shadow models, {workers} at once, about "
        f"{duration(audits)}; {count * repeats} tables for classifiers, about "
        f"{duration(tables)} (one model of each generator was timed, at its largest epsilon)"
        f"{''.join(failed)}"
    )
