"""The worst case (Figure 5a): queries on D' = 4 x (0, 0, 0), D = D' + (1, 1, 1), 2 teachers.

As published the models of one world are asked for 4 rows and those of the other for 5. dpaudit's
game refuses that, so this one is run by the loop below, and it is INVALID: generators that ignore
their data are "caught" in it, and are part of the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import evaluate, fit_attack
from dpaudit.bounds import EpsilonGuarantee, ThresholdRule
from dpaudit.bounds.table import ValidBound
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView, Generator, Job, World, trains_many
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.seeds import Stream, rng_of
from dpaudit_attacks.queries import AbsoluteQueries
from reports.pate_gan_audit import audits
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import CONFIDENCE, DELTA, SIX
from reports.pate_gan_audit.setting import Game, parameters, worst_schema, worst_table
from reports.pate_gan_audit.split import split

ATTACK = "query-absolute"
ITERATIONS = 100
TEACHERS = 2
TARGET = 0
MODELS = 1000
FEWER_MODELS = {"synthcity": 300}
"""Shadow models of each world for the slow implementation."""
NULLS = ("constant-row", "random-row", "null")
"""Generators that ignore their data; `null` draws every value uniformly."""
COUNTED = ("false_negatives", "false_positives", "n_in", "n_out")
UNEQUAL = {World.OUT: 4, World.IN: 5}
EQUAL = {World.OUT: 5, World.IN: 5}


@dataclass(frozen=True, kw_only=True)
class OneRow:
    """A generator that ignores its data: one row, repeated.

    Attributes:
        schema: The public schema.
        constant: Whether the row is always (0, 0, 0); else drawn for each table.
    """

    schema: Schema
    constant: bool

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> OneRow:
        """Looks at neither the data nor the seed."""
        del data, seed
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """The row, n times."""
        drawn = rng_of(seed, "one row").integers(0, 2, size=len(self.schema.columns))
        row = np.zeros_like(drawn) if self.constant else drawn
        return pd.DataFrame(np.tile(row, (n, 1)), columns=self.schema.names)


def generator_of(name: str, given: dict[str, Any]) -> Generator:
    """A generator of the study by its name."""
    schema = worst_schema()
    if name in ("constant-row", "random-row"):
        return OneRow(schema=schema, constant=name == "constant-row")
    return cast(Generator, build(name, GENERATORS, given=given, offered={"schema": schema}))


def features_of(
    generator: Generator, rows: dict[World, int], *, models: int, name: str, seed: int
) -> list[list[FloatArray]]:
    """Features of synthetic tables of both worlds, each model asked for its world's rows.

    Args:
        generator: What is trained.
        rows: Synthetic rows for each world.
        models: Models of each world.
        name: Names the random streams.
        seed: Their root.

    Returns:
        For world "in", then "out", the features of each model.
    """
    schema, table = worst_schema(), worst_schema().canonical(worst_table())
    view = GameView(
        schema=schema,
        others=table.drop(index=TARGET).reset_index(drop=True),
        target=table.iloc[[TARGET]],
        n_rows=max(rows.values()),
        neighbours=Neighbours.ADD_REMOVE,
    )
    attack, worlds = AbsoluteQueries(), []
    for world in World:
        streams = [Stream(seed, f"worst/{name}", "fit", i, world) for i in range(models)]
        dropped = (TARGET,) if world is World.OUT else ()
        jobs = [Job(world, i, dropped, stream.seed()) for i, stream in enumerate(streams)]
        seeds = [stream._replace(role="sample").seed() for stream in streams]
        values = _values(generator, table, jobs, seeds, rows[world], schema)
        worlds.append([*attack.features_many(values, view)])
        print(f"  {name}: {models} models of world {world}", flush=True)
    return cast(list[list[FloatArray]], worlds)


def _values(
    generator: Generator,
    table: pd.DataFrame,
    jobs: Sequence[Job],
    seeds: Sequence[int],
    n: int,
    schema: Schema,
) -> FloatArray:
    """Values [M, n, d] of n rows of each model."""
    if not trains_many(generator):
        found = []
        own = table.drop(index=list(jobs[0].dropped_rows)).reset_index(drop=True)  # one world
        for job, seed in zip(jobs, seeds, strict=True):
            made = generator.fit(own, seed=job.seed).sample(n, seed=seed)
            found.append(values_of_table(schema.canonical(made), schema))
        return np.stack(found)
    values = np.empty((len(jobs), n, len(schema.columns)))
    most = int(generator.models_at_once)
    for start in range(0, len(jobs), most):
        part = slice(start, start + most)  # one world, one shape: one batch key
        values[part] = generator.fit_many(table, jobs[part]).sample_many(n, seeds[part])
    return values


def attacked(worlds: list[list[FloatArray]], *, models: int, seed: int) -> Record:
    """The published attack on them: hold-out threshold, 400 + 200 + 400 of 1000."""
    settings = audit_settings(
        attacks=(AbsoluteQueries(),),
        shadow_models=2 * models,
        confidence=CONFIDENCE,
        threshold=ThresholdRule.HOLD_OUT,
    )
    rng = Stream(seed, "worst", "attack").rng()
    trials = split(worlds, fitted=settings.game.fitted)
    guarantee = EpsilonGuarantee(DELTA)
    fitted = fit_attack(
        AbsoluteQueries(), trials.fitting, settings=settings, guarantee=guarantee, rng=rng
    )
    found = evaluate(fitted, trials, guarantee=guarantee, confidence=CONFIDENCE)
    return {
        "verdict": None,
        "auc": found.auc,
        "counts": dict(zip(COUNTED, found.counts, strict=True)),
        "proved": found.proved,
        "exact": found.bounds[ValidBound.EXACT],
        "clopper_pearson": found.bounds[ValidBound.CLOPPER_PEARSON],
    }


def run(plan: Plan, *, games: Sequence[Game] = tuple(Game)) -> None:
    """Runs what is not kept yet."""
    for name in plan.chosen([*NULLS, *SIX]):
        for game in games:
            if name not in NULLS or game is not Game.EQUAL_ROWS:
                _run_game(plan, name, game)  # a null reads no bounds: equal rows are valid


def _run_game(plan: Plan, name: str, game: Game) -> None:
    own_loop = game is Game.PUBLISHED or name in NULLS
    rows = UNEQUAL if game is Game.PUBLISHED else EQUAL
    hold_out = game is not Game.VALID or own_loop
    models = plan.models or FEWER_MODELS.get(name, MODELS)
    given = parameters(
        name,
        game,
        iterations=plan.iterations or ITERATIONS,
        teachers=TEACHERS,
        worst_case=True,
    )
    question = {
        "generator": name,
        "parameters": given,
        "game": game.value,
        "rows": {world.value: rows[world] for world in World},
        "attack": ATTACK,
        "models": models,
        "threshold": "hold-out" if hold_out else "cross-validated",
        "played_by": "this study's loop" if own_loop else "dpaudit.audit",
        "seed": plan.seed,
    }
    asked = audits.Asked(
        generator=name,
        table=worst_table(),
        schema=worst_schema(),
        parameters=given,
        target=TARGET,
        attack=ATTACK,
        models=models,
        hold_out=hold_out,
        seed=plan.seed,
        name=f"worst-{name}-{game}",
    )

    def work() -> Record:
        if not own_loop:
            return audits.audit(asked, plan)
        worlds = features_of(
            generator_of(name, given), rows, models=models, name=f"{name}/{game}", seed=plan.seed
        )
        return attacked(worlds, models=models, seed=plan.seed)

    kept(plan.out / "worst" / f"{name}-{game}.json", question, work)
