"""Audits through `dpaudit.audit`, and what the study keeps of their documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.model.schema import Schema
from reports.pate_gan_audit.kept import Record, Tenths
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import CONFIDENCE, DELTA, EPSILON


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One audit against the claim (1, 1e-5).

    Attributes:
        generator: Registered name.
        table: The table, with the target in it.
        schema: Its public schema.
        parameters: Of the generator.
        target: Row of the target.
        attack: The one attack.
        models: Shadow models of each world; the cap if sequential.
        hold_out: Whether the threshold is chosen as in the published audit.
        seed: Root of every random stream.
        name: Begins the name of the run folder.
        sequential: Whether to stop as soon as a violation is proved.
    """

    generator: str
    table: pd.DataFrame
    schema: Schema
    parameters: dict[str, Any]
    target: int
    attack: str
    models: int
    hold_out: bool
    seed: int
    name: str
    sequential: bool = False


def audit(asked: Asked, plan: Plan) -> Record:
    """Runs one audit, or goes on with it; returns what the study keeps."""
    result = audit_by_keywords(
        asked.generator,
        asked.table,
        schema=asked.schema,
        parameters=asked.parameters,
        epsilon=EPSILON,
        delta=DELTA,
        neighbours="add-remove",
        target=asked.target,
        attacks=(asked.attack,),
        shadow_models=2 * asked.models,
        confidence=CONFIDENCE,
        threshold="hold-out" if asked.hold_out else "cross-validated",
        sequential=asked.sequential,
        probe=False,
        seed=asked.seed,
        jobs=plan.jobs,
        out=plan.runs / asked.name / f"{asked.models}-{asked.seed}",
        progress=Tenths(),
    )
    return digest(result.to_document())


def digest(document: Record) -> Record:
    """What the study keeps of a result document: all but scores and what the question says."""
    bounds = document["bounds"] or {}
    return {
        "verdict": document["verdict"],
        "reasons": document["reasons"],
        "proved": document["proved"],
        "auc": document["auc"],
        "counts": document["counts"],
        "fair_coin": bounds.get("fair_coin"),
        "exact": bounds.get("exact"),
        "clopper_pearson": bounds.get("clopper_pearson"),
        "sequential": bounds.get("sequential"),
        "max_provable_epsilon": document["max_provable_epsilon"],
        "detectable_epsilon": document["detectable_epsilon"],
        "shadow_models": document["shadow_models"],
        "stopped": document["game"].get("sequential"),
        "failures": document["failures"],
        "failure_reasons": document["failure_reasons"],
        "leaks": document["leaks"][:5],
        "controls": {key: one["passed"] for key, one in document["controls"].items()},
        "failed_checks": [one["detail"] for one in document["checks"] if not one["passed"]],
        "trial_seconds": document["seconds"],
    }
