"""Sizes of an audit and what each can prove: of shadow models, and of canaries of one training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dpaudit.auditing.plan import MOST_PLANNED
from dpaudit.auditing.records import plan as of_records
from dpaudit.auditing.records.interference import Caught
from dpaudit.auditing.settings import DEFAULT_CANARIES, MIN_CANARIES, AuditSettings
from dpaudit.auditing.two_worlds.plan import AssumedAttack, needed_shadow_models, power
from dpaudit.cli import plan_records
from dpaudit.errors import ClaimError, SettingsError
from dpaudit.model.claim import Neighbours, PrivacyClaim, Quantity
from dpaudit.model.currencies import Claim, require_add_remove, require_epsilon
from dpaudit.results.verdict import Power

if TYPE_CHECKING:
    from dpaudit.model.tables import Table

ALTERNATIVES = (50, 100, 200, 400, 1000, 2000)
ALTERNATIVE_CANARIES = (50, 100, 200, 500, 1000, 2000)


class Needed(NamedTuple):
    """The answer to --detect, or to --tpr with --fpr.

    Attributes:
        size: Shadow models or canaries; None if more than are planned.
        purpose: What they are enough for, in words.
    """

    size: int | None
    purpose: str


class Sizing(NamedTuple):
    """Sizes of one kind of audit, and what each can prove.

    Attributes:
        unit: What a size counts, as the key of a row.
        scored: Key of what is scored for it.
        asked: The size that was asked for.
        rows: What each size can prove.
        needed: How large it must be; None if that was not asked.
        of: What else the bounds depend on, in words.
        most: The largest size that `needed` looks at.
        interference: How much canaries disturb one another; None if that is not known.
        choices: What other numbers of records catch; empty if one record is attacked.
    """

    unit: str
    scored: str
    asked: int
    rows: list[dict[str, Any]]
    needed: Needed | None
    of: str
    most: int = MOST_PLANNED
    interference: float | None = None
    choices: Sequence[Caught] = ()


class PlanSubject(NamedTuple):
    """What is to be audited.

    Attributes:
        claim: The claim.
        table: The table; None if none was handed in.
        together: Whether the generator trains many models at once.
    """

    claim: Claim
    table: Table | None = None
    together: bool = False

    @property
    def table_rows(self) -> int | None:
        """Rows of the table; None if none was handed in."""
        return None if self.table is None else len(self.table.data)


def assumed_attack(
    claim: Claim, *, detect: float | None, tpr: float | None, fpr: float | None
) -> AssumedAttack | None:
    """The attack that the options assume; None if they assume none.

    Raises:
        SettingsError: If they contradict one another.
    """
    if detect is not None:
        if tpr is not None or fpr is not None:
            raise SettingsError("give either --detect or --tpr with --fpr, not both")
        if not detect > claim.value:
            raise SettingsError(
                f"--detect must be above the claim ({claim.value:g}), got {detect:g}"
            )
        return AssumedAttack.of_leak(detect, claim)
    if (tpr is None) != (fpr is None):
        raise SettingsError("--tpr and --fpr belong together: give both")
    return None if tpr is None or fpr is None else AssumedAttack(fpr=fpr, tpr=tpr)


def subject_of(
    generator: str | None, data: str | None, schema: Path | None, settings: AuditSettings
) -> PlanSubject:
    """What is to be audited; the claim alone where no generator and table are named.

    Raises:
        ClaimError: If there is no claim.
        InputError: If the table or the generator cannot be used.
    """
    if generator is None or data is None:
        stated = settings.stated_claim.made(
            relation=settings.neighbours or Neighbours.ADD_REMOVE,
            default_delta=0.0,
            source="given by the caller",
        )
        if stated is None:
            raise ClaimError(
                "plan needs a claim: give `epsilon`, `mu`, `rho` or `curve`, or a GENERATOR with "
                "`data`"
            )
        return PlanSubject(stated)
    from dpaudit.model.tables import load
    from dpaudit.plugins.named import claim_under_audit, named_generator
    from dpaudit.plugins.protocols import trains_many

    table = load(data, schema)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    named = named_generator(
        generator, settings.parameters, offered, worker_memory=settings.worker_memory
    )
    claim = claim_under_audit(named, settings.stated_claim)
    return PlanSubject(claim, table, trains_many(named.generator))


def size_shadow_models(
    subject: PlanSubject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> Sizing:
    """What audits of some numbers of shadow models can prove.

    Args:
        subject: What is to be audited.
        settings: The settings of the audit.
        detect: A true epsilon that is to be proved, if one was given.
        assumed: The attack that was assumed, if one was.

    Raises:
        SettingsError: If there can be no such audit.
    """
    claim = subject.claim
    many = settings.records > 1
    if many and assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for one target: with `records` give --detect")
    choices = plan_records.choices(settings, claim, rows=subject.table_rows) if many else []

    def row(shadow_models: int) -> dict[str, Any]:
        sized = replace(settings, shadow_models=shadow_models)
        fitted = {"fitted": 2 * sized.fitted, "scored": sized.scored}
        reached = of_records.power if many else power
        return {"shadow_models": shadow_models, **fitted, **proves(reached(sized, claim), claim)}

    needed = None
    if assumed is not None:
        noun = claim.quantity.noun
        purpose = f"a true {noun} of {detect:g}" if detect is not None else _rates(assumed)
        if many and detect is not None:
            purpose += " on every record"
            size = of_records.needed_shadow_models(claim, detect, settings)
        else:
            size = needed_shadow_models(claim, assumed, settings)
        needed = Needed(size, purpose)
    of = f"{len(settings.attacks)} attack(s)"
    return Sizing(
        unit="shadow_models",
        scored="scored",
        asked=settings.shadow_models,
        rows=rows_of(row, {*ALTERNATIVES, settings.shadow_models}),
        needed=needed,
        of=f"{of}, {settings.records} records" if many else of,
        choices=choices,
    )


def _rates(attack: AssumedAttack) -> str:
    return f"TPR {attack.tpr:.3g}, FPR {attack.fpr:.3g}"


def size_canaries(
    subject: PlanSubject,
    settings: AuditSettings,
    *,
    detect: float | None,
    assumed: AssumedAttack | None,
) -> Sizing:
    """What one training can prove with so many canaries.

    Args:
        subject: What is to be audited.
        settings: The settings of the audit.
        detect: A true epsilon that is to be proved, if one was given.
        assumed: The attack that was assumed, if one was.

    Raises:
        SettingsError: If there can be no such audit.
        ClaimError: If the claim is none that one training can be compared with.
    """
    from dpaudit.auditing.one_run import plan as one_run
    from dpaudit.auditing.one_run.spec import check_canaries

    claim = require_epsilon(subject.claim, method="`one_run`")
    confidence = settings.attack_confidence
    require_add_remove(claim.neighbours, method="`one_run`")
    asked = DEFAULT_CANARIES if settings.canaries is None else settings.canaries
    if subject.table_rows is not None:
        check_canaries(asked, rows=subject.table_rows)
    elif asked < MIN_CANARIES:
        raise SettingsError(f"`canaries` must be at least {MIN_CANARIES}, got {asked}")
    if assumed is not None and detect is None:
        raise SettingsError("--tpr and --fpr are for shadow models: with `one_run` give --detect")

    def row(canaries: int) -> dict[str, Any]:
        proven = proves(one_run.power(canaries, claim, confidence), claim)
        return {"canaries": canaries, "guesses": canaries, **proven}

    most = one_run.MOST_PLANNED if subject.table_rows is None else subject.table_rows // 2
    needed = None
    if detect is not None:
        size = one_run.needed_canaries(claim, detect, confidence)
        needed = Needed(size, f"a true epsilon of {detect:g}")
    return Sizing(
        unit="canaries",
        scored="guesses",
        most=one_run.MOST_PLANNED,
        interference=_interference(subject.table, settings, asked, claim),
        asked=asked,
        rows=rows_of(row, {asked, *(size for size in ALTERNATIVE_CANARIES if size <= most)}),
        needed=needed,
        of=f"one training, {settings.hypotheses.count} attacks",
    )


def _interference(
    table: Table | None, settings: AuditSettings, canaries: int, claim: PrivacyClaim
) -> float | None:
    """How much the canaries of a table disturb one another, before anything is trained."""
    from dpaudit.auditing.one_run.marginals import interference
    from dpaudit.auditing.one_run.spec import view_of
    from dpaudit.game.worlds import choose_canaries

    if table is None:
        return None
    chosen = choose_canaries(table.data, table.schema, canaries)
    rows = len(table.data) if settings.rows is None else settings.rows
    return interference(view_of(table, chosen, rows=rows, neighbours=claim.neighbours))


def proves(reached: Power, claim: Claim) -> dict[str, Any]:
    """What a size proves; the keys are of epsilon, or of the quantity beside the row."""
    suffix = "_epsilon" if claim.quantity is Quantity.EPSILON else ""
    return {
        f"max_provable{suffix}": reached.max_provable,
        f"detectable{suffix}": reached.detectable,
        "detectable_gaussian": reached.detectable_gaussian,
    }


def rows_of(row: Callable[[int], dict[str, Any]], sizes: set[int]) -> list[dict[str, Any]]:
    """A row for each size, the smallest first."""
    return [row(size) for size in sorted(sizes)]
