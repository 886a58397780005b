"""Sequential mode: how many scored models until each published violation is proved.

The average case as published (bounds per world); the cap is in models of each world.
"""

from __future__ import annotations

from reports.cervical import TARGET
from reports.pate_gan_audit import audits
from reports.pate_gan_audit.average import ATTACK, ITERATIONS
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import EPSILON, SIX
from reports.pate_gan_audit.setting import Game, average_schema, average_table, parameters

CAP = 300
"""Shadow models of each world at most."""
SEEDS = 3


def run(plan: Plan, *, seeds: int | None = None) -> None:
    """Runs the audits that are not kept yet.

    Args:
        plan: How much of the study; its models are the cap.
        seeds: Audits of each implementation; those of the committed results if None.
    """
    table, schema = average_table(plan.data), average_schema()
    cap = plan.models or CAP
    for name in plan.chosen(SIX):
        given = parameters(name, Game.PUBLISHED, iterations=plan.iterations or ITERATIONS)
        for seed in range(plan.seed, plan.seed + (seeds or SEEDS)):
            question = {
                "generator": name,
                "parameters": given,
                "attack": ATTACK,
                "cap": cap,
                "seed": seed,
            }
            asked = audits.Asked(
                generator=name,
                table=table,
                schema=schema,
                parameters=given,
                target=TARGET,
                attack=ATTACK,
                models=cap,
                hold_out=False,
                seed=seed,
                name=f"sequential-{name}",
                sequential=True,
            )

            def work(asked: audits.Asked = asked) -> Record:
                found = audits.audit(asked, plan)
                return found | scored(found)

            kept(plan.out / "sequential" / f"{name}-{seed}.json", question, work)


def scored(found: Record) -> Record:
    """How many models were scored, and trained, when the audit stopped.

    At the cap the bound of fixed size is on the later half alone, so there the counts say nothing.
    """
    stopped = found["stopped"] or {"trials": 0}
    early = bool(found["stopped"] and found["stopped"]["stopped_early"])
    counts = found["counts"] or {"n_in": 0, "n_out": 0}
    return {
        "proved_early": early and (found["proved"] or 0.0) > EPSILON,
        "scored_models": counts["n_in"] + counts["n_out"] if early else None,
        "trained_models": stopped["trials"],
    }
