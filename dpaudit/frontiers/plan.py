"""Every point of a frontier, validated before anything is trained, and what all of them cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import loky

from dpaudit.auditing.games import build_spec, kind_of
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.timing import time_one
from dpaudit.errors import ClaimError, DpauditError, InterruptedRunError
from dpaudit.formatting import duration
from dpaudit.frontiers.settings import FrontierSettings, PointName
from dpaudit.model.claim import PrivacyClaim
from dpaudit.model.tables import Table
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import NamedGenerator, claim_under_audit, named_generator
from dpaudit.plugins.protocols import trains_many
from dpaudit.usefulness.baselines import UniformRows
from dpaudit.usefulness.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class PlannedPoint:
    """One point, ready to run.

    Attributes:
        name: The generator and its epsilon.
        generator: The generator, for the measurement of utility.
        settings: Of its audit, the claim included.
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
    """Whether a generator claims an epsilon itself; else it is held to the one it was given."""
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
    for dearest in _largest_budgets(points):
        settings = dearest.settings
        try:
            one = time_one(dearest.audit)
        except InterruptedRunError:
            raise
        except DpauditError as error:  # it may fare better at another epsilon
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
    what = f"{count} point{'s' if count > 1 else ''}"
    return (
        f"to run: {what} with {models} shadow models, {workers} at once, about "
        f"{duration(audits)}; {count * repeats} tables for classifiers, about "
        f"{duration(tables)} (one model of each generator was timed, at its largest epsilon)"
        f"{''.join(failed)}"
    )


def _largest_budgets(points: Sequence[PlannedPoint]) -> list[PlannedPoint]:
    """Of each generator the point with the largest epsilon, which is the dearest as a rule."""
    return list({point.name.asked: point for point in points}.values())
