"""The average case (Figure 5b): GroundHog on Cervical Cancer, record 397, in both games."""

from __future__ import annotations

from collections.abc import Sequence

from reports.cervical import TARGET
from reports.pate_gan_audit import audits
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import SIX
from reports.pate_gan_audit.setting import Game, average_schema, average_table, parameters

ATTACK = "groundhog-naive"
ITERATIONS = 1000
REFERENCE = "pate-gan-switched"
"""The same trainer without a deviation; in the valid game alone."""
GAMES = (Game.PUBLISHED, Game.VALID)
MODELS = 1000
FEWER_MODELS = {
    "original": 300,
    "updated": 200,
    "synthcity": 60,
    "turing": 300,
    "borealis": 400,
}
"""Shadow models of each world for some implementations, the slow ones above all."""


def run(plan: Plan, *, games: Sequence[Game] = GAMES) -> None:
    """Runs the audits that are not kept yet."""
    table, schema = average_table(plan.data), average_schema()
    for name in plan.chosen([*SIX, REFERENCE]):
        for game in games:
            if game is Game.PUBLISHED and name not in SIX:
                continue  # nothing of it was published
            hold_out = game is Game.PUBLISHED
            models = plan.models or FEWER_MODELS.get(name, MODELS)
            given = parameters(name, game, iterations=plan.iterations or ITERATIONS)
            question = {
                "generator": name,
                "parameters": given,
                "game": game.value,
                "target": TARGET,
                "rows": len(table),
                "attack": ATTACK,
                "models": models,
                "threshold": "hold-out" if hold_out else "cross-validated",
                "seed": plan.seed,
            }
            asked = audits.Asked(
                generator=name,
                table=table,
                schema=schema,
                parameters=given,
                target=TARGET,
                attack=ATTACK,
                models=models,
                hold_out=hold_out,
                seed=plan.seed,
                name=f"average-{name}-{game}",
            )

            def work(asked: audits.Asked = asked) -> Record:
                return audits.audit(asked, plan)

            kept(plan.out / "average" / f"{name}-{game}.json", question, work)
