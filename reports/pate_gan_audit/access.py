"""What each access level proves: the six and every switch alone, in a valid game.

One training serves the attacks of all three levels, each at a fourth of the error probability: so
the largest proof of the attacks at a level and below is a valid one. The game is dpaudit's,
with its coins, attacks, gradings and bounds, run by a loop in one process that leaves out what
takes most of the time of a small `dpaudit.audit`: the controls, whose part the trainer without a
deviation and `labels-copied` play here, and checks of the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, cast

import pandas as pd
import torch

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import Evaluation, evaluate, fit_attack
from dpaudit.bounds import EpsilonGuarantee
from dpaudit.bounds.table import ValidBound
from dpaudit.game.training import disclosed
from dpaudit.model.choices import Access
from dpaudit.model.claim import Neighbours
from dpaudit.model.schema import Schema
from dpaudit.plugins.access import AnyAttack, Disclosure, ModelAttack
from dpaudit.plugins.named import named_attacks
from dpaudit.plugins.protocols import FloatArray, GameView, Job, World
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.seeds import Stream
from reports import cervical
from reports.pate_gan_audit.access_settings import (
    AVERAGE_ITERATIONS,
    SHOWN,
    SPENT,
    SUBJECTS,
    WORST,
    Worst,
    generator_of,
)
from reports.pate_gan_audit.kept import Record, kept
from reports.pate_gan_audit.plan import Plan
from reports.pate_gan_audit.published import CONFIDENCE, DELTA, SIX
from reports.pate_gan_audit.setting import TEACHERS, average_schema, average_table
from reports.pate_gan_audit.split import split
from reports.pate_gan_audit.worst import COUNTED

PART = "access"
SEEDS = {"worst": 1, "average": 2}
"""Of the trials, by case; settings were chosen on those of other seeds."""
MODELS = dict.fromkeys(SIX, 100) | {"original": 300, "updated": 300}
FEWER_MODELS = 60
"""Shadow models of the average case, of both worlds together: of the six, and of the others."""
LEVELS = {
    "output": Access.OUTPUT,
    "logan": Access.MODEL,
    "parameters": Access.MODEL,
    "released": Access.RELEASED,
}
"""The attacks, and the level at which each one's view begins."""


class Game(NamedTuple):
    """A game and its attacks.

    Attributes:
        generator: Registered name.
        parameters: Its settings.
        table: World "in".
        schema: Its public schema.
        target: Row of the target.
        rows: Synthetic rows of each model.
        models: Shadow models of both worlds together.
        attacks: By the names of `LEVELS`.
        seed: Root of every random stream.
        unusual: What the table of a worst case has besides whole numbers 0 and 1.
    """

    generator: str
    parameters: dict[str, Any]
    table: pd.DataFrame
    schema: Schema
    target: int
    rows: int
    models: int
    attacks: dict[str, str]
    seed: int
    unusual: Record


def run(plan: Plan, *, cases: Sequence[str] = ("worst", "average")) -> None:
    """Runs what is not kept yet: the worst case first, in each the six first."""
    for case in cases:
        for name in plan.chosen(SUBJECTS):
            game = _worst(name, plan) if case == "worst" else _average(name, plan)
            kept(plan.out / PART / f"{case}-{name}.json", *_asked(game, case, name))


def _asked(game: Game, case: str, name: str) -> tuple[Record, Any]:
    """The question that a game answers, and what answers it."""
    question = {
        "case": case,
        "name": name,
        "generator": game.generator,
        "parameters": game.parameters,
        "columns": len(game.schema.columns),
        "records": len(game.table),
        "target": game.target,
        "rows": game.rows,
        "attacks": game.attacks,
        "models": game.models,
        "seed": game.seed,
    }
    return question | game.unusual, lambda: play(game)


def _attacks(output: str, *, chosen: bool) -> dict[str, str]:
    by = "" if chosen else ",classifier=logistic-regression"
    return {key: (output if key == "output" else key) + by for key in LEVELS}


def _worst(name: str, plan: Plan) -> Game:
    case = WORST.get(name, Worst())
    generator, given = generator_of(name)
    settings = {
        "teachers": case.teachers,
        "gamma": case.gamma,
        "iterations": plan.iterations or case.iterations,
    }
    return Game(
        generator=generator,
        parameters=given | settings,
        table=case.table,
        schema=case.schema,
        target=0,
        rows=case.rows,
        models=2 * plan.models if plan.models else case.models,
        attacks=_attacks(case.output_attack, chosen=case.chosen),
        seed=plan.seed + SEEDS["worst"],
        unusual=case.unusual,
    )


def _average(name: str, plan: Plan) -> Game:
    generator, given = generator_of(name)
    table = average_table(plan.data)
    iterations = plan.iterations or AVERAGE_ITERATIONS.get(name, SPENT)
    return Game(
        generator=generator,
        parameters=given | {"teachers": TEACHERS, "iterations": iterations},
        table=table,
        schema=average_schema(),
        target=cervical.TARGET,
        rows=len(table),
        models=2 * plan.models if plan.models else MODELS.get(name, FEWER_MODELS),
        attacks=_attacks("groundhog-naive", chosen=False),
        seed=plan.seed + SEEDS["average"],
        unusual={},
    )


def play(game: Game) -> Record:
    """Plays a game and attacks it at all levels."""
    torch.set_num_threads(1)  # as in dpaudit's workers: the same result on every machine
    generator = cast(
        Any,
        build(game.generator, GENERATORS, given=game.parameters, offered={"schema": game.schema}),
    )
    table = game.schema.canonical(game.table)
    generator.check(table)
    view = GameView(
        schema=game.schema,
        others=table.drop(index=game.target).reset_index(drop=True),
        target=table.iloc[[game.target]],
        n_rows=game.rows,
        neighbours=Neighbours.ADD_REMOVE,
        released_facts=generator.released_facts,
    )
    built = named_attacks(tuple(game.attacks.values()))
    attacks = {key: one.attack for key, one in zip(game.attacks, built, strict=True)}
    settings = audit_settings(
        attacks=tuple(game.attacks.values()),
        access=Access.RELEASED,
        shadow_models=game.models,
        confidence=CONFIDENCE,
        probe=False,
    )
    worlds = _worlds(game, fitted=settings.game.fitted)
    features = _features(game, generator, table, worlds, view, attacks)
    found = {}
    for key, attack in attacks.items():
        rng = Stream(game.seed, f"{PART}/{_label(game)}", f"attack {key}").rng()
        trials = split(features[key], fitted=settings.game.fitted)
        guarantee = EpsilonGuarantee(DELTA)
        fitted = fit_attack(attack, trials.fitting, settings=settings, guarantee=guarantee, rng=rng)
        found[key] = _digest(
            evaluate(fitted, trials, guarantee=guarantee, confidence=settings.attack_confidence)
        )
    counts = {str(world): worlds.count(world) for world in World}
    return {"attacks": found, "trials": counts, "proved": proved(found)}


def proved(attacks: Record) -> dict[str, float]:
    """The largest epsilon proved at each level, by its attacks and those below."""
    return {
        str(level): max(
            one["proved"] for key, one in attacks.items() if level.includes(LEVELS[key])
        )
        for level in SHOWN
    }


def _digest(found: Evaluation) -> Record:
    return {
        "auc": round(float(found.auc), 3),
        "proved": found.proved or 0.0,
        "by": "fair coins" if found.guesses is not None else str(ValidBound.EXACT),
        "counts": dict(zip(COUNTED, found.counts, strict=True)),
    }


def _label(game: Game) -> str:
    return f"{game.generator}/{sorted(game.parameters.items())}/{len(game.schema.columns)}"


def _worlds(game: Game, *, fitted: int) -> list[World]:
    """The world of every trial, those that fit the attacks first.

    Fitting trials are as many of each world; the worlds of the others are fair coins.
    """
    coins = Stream(game.seed, f"{PART}/{_label(game)}", "coins").rng()
    thrown = coins.integers(2, size=game.models - 2 * fitted)
    return [*World] * fitted + [World.IN if coin else World.OUT for coin in thrown]


def _features(
    game: Game,
    generator: Any,
    table: pd.DataFrame,
    worlds: Sequence[World],
    view: GameView,
    attacks: dict[str, AnyAttack],
) -> dict[str, list[list[FloatArray]]]:
    """Features of every model, for each attack by world in the order of the trials."""
    jobs, seeds, number = [], [], dict.fromkeys(World, 0)
    for world in worlds:
        stream = Stream(game.seed, f"{PART}/{_label(game)}", "fit", number[world], world)
        dropped = (game.target,) if world is World.OUT else ()
        jobs.append(Job(world, number[world], dropped, stream.seed()))
        seeds.append(stream._replace(role="sample").seed())
        number[world] += 1
    groups: dict[tuple[Hashable, World], list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        groups[generator.batch_key(job), job.world].append(index)
    found: dict[str, dict[int, FloatArray]] = {key: {} for key in attacks}
    most = int(generator.models_at_once)
    for group in groups.values():
        for start in range(0, len(group), most):
            part = group[start : start + most]
            batch = generator.fit_many(table, [jobs[index] for index in part])
            values = batch.sample_many(game.rows, [seeds[index] for index in part])
            for key, attack in attacks.items():
                found[key] |= zip(part, _seen(attack, batch, values, view), strict=True)
    return {
        key: [[own[i] for i, job in enumerate(jobs) if job.world is world] for world in World]
        for key, own in found.items()
    }


def _seen(attack: Any, batch: Any, values: FloatArray, view: GameView) -> list[FloatArray]:
    """Features of a batch of models."""
    if not isinstance(attack, ModelAttack):
        return list(attack.features_many(values, view))
    return [
        attack.model_features(disclosed(model, [Disclosure(attack.sees)], view)[attack.sees], view)
        for model in batch.models
    ]
