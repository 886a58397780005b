"""The worst case (Figure 5a): queries on D' = 4 x (0, 0, 0), D = D' + (1, 1, 1), 2 teachers.

Usage: python worst.py [--models 1000] [--names original,...] [--games published,equal-rows,valid]

As published the models of one world are asked for 4 rows and those of the other for 5. dpaudit's
game refuses that, so this one is played by the loop below, and it is INVALID: generators that
ignore their data are "caught" in it, and are part of the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import audits
import numpy as np
import pandas as pd
from dpaudit.auditing.membership import arrange, evaluate, fit_attack, fitting_mask
from kept import Record, arguments, checked_names, kept, names
from published import CONFIDENCE, DELTA, SIX
from setting import Game, parameters, worst_schema, worst_table

from dpaudit.auditing.plan import Size
from dpaudit.bounds import ThresholdRule
from dpaudit.model.claim import Neighbours
from dpaudit.model.encoding import values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, GameView, Generator, Job, World, trains_many
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.seeds import Stream, rng_of
from dpaudit_attacks.queries import AbsoluteQueries

ATTACK = "query-absolute"
TEACHERS = 2
TARGET = 0
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
) -> list[list[FloatArray | None]]:
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
    return cast(list[list[FloatArray | None]], worlds)


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


def attacked(worlds: list[list[FloatArray | None]], *, models: int, seed: int) -> Record:
    """The published attack on them: hold-out threshold, 400 + 200 + 400 of 1000."""
    size = Size(shadow_models=2 * models, attacks=1, threshold_rule=ThresholdRule.HOLD_OUT)
    rng = Stream(seed, "worst", "attack").rng()
    masks = [fitting_mask(models, size.fitted, rng) for _ in World]
    trials = arrange(worlds, masks)
    assert trials is not None  # none failed
    fitted = fit_attack(
        AbsoluteQueries(),
        trials.fitting,
        rule=ThresholdRule.HOLD_OUT,
        delta=DELTA,
        confidence=CONFIDENCE,
        rng=rng,
    )
    found = evaluate(fitted, trials, delta=DELTA, confidence=CONFIDENCE)
    return {
        "verdict": None,
        "auc": found.auc,
        "counts": dict(zip(COUNTED, found.counts, strict=True)),
        "exact": found.exact,
        "clopper_pearson": found.clopper_pearson,
    }


NULLS = ("constant-row", "random-row", "null")
"""Generators that ignore their data; `null` draws every value uniformly."""


def main(given: list[str] | None = None) -> None:
    """Plays what is not kept yet."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--models", type=int, default=1000, help="shadow models of each world")
    parser.add_argument("--names", type=names, default=[*NULLS, *SIX])
    parser.add_argument("--games", type=names, default=[game.value for game in Game])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--runs", type=Path, default=Path("runs/pate-gan-audit"))
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args(given)
    for name in asked.names:
        for text in checked_names(asked.games, [game.value for game in Game]):
            game = Game(text)
            if name in NULLS and game is Game.EQUAL_ROWS:
                continue  # it reads no bounds: this game is the valid one
            own_loop = game is Game.PUBLISHED or name in NULLS
            rows = UNEQUAL if game is Game.PUBLISHED else EQUAL
            settings = parameters(
                name, game, iterations=asked.iterations, teachers=TEACHERS, worst_case=True
            )
            question = {
                "generator": name,
                "parameters": settings,
                "game": game.value,
                "rows": {world.value: rows[world] for world in World},
                "attack": ATTACK,
                "models": asked.models,
                "threshold": "cross-validated"
                if game is Game.VALID and not own_loop
                else "hold-out",
                "played_by": "this study's loop" if own_loop else "dpaudit.audit",
                "seed": asked.seed,
            }

            def work(
                name: str = name,
                game: Game = game,
                own_loop: bool = own_loop,
                rows: dict[World, int] = rows,
                settings: dict[str, Any] = settings,
            ) -> Record:
                if own_loop:
                    worlds = features_of(
                        generator_of(name, settings),
                        rows,
                        models=asked.models,
                        name=f"{name}/{game}",
                        seed=asked.seed,
                    )
                    return attacked(worlds, models=asked.models, seed=asked.seed)
                return audits.play(
                    name,
                    worst_table(),
                    worst_schema(),
                    parameters=settings,
                    target=TARGET,
                    attack=ATTACK,
                    models=asked.models,
                    hold_out=game is not Game.VALID,
                    seed=asked.seed,
                    runs=asked.runs,
                    name=f"worst-{name}-{game}",
                    jobs=asked.jobs,
                )

            kept(asked.results / "worst" / f"{name}-{game}.json", question, work)


if __name__ == "__main__":
    main()
