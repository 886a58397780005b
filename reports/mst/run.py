"""How much of mu attacks reach on the published worst case of MST.

Usage: python -m reports.mst.run   (about ten minutes on one core)

Writes results/reached.json and the table of README.md; the same numbers every time.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from scipy.special import ndtri

from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.settings import TwoWorlds
from dpaudit.auditing.two_worlds.attacking import Combined, Part, SplitTrials, evaluate, fit_attack
from dpaudit.bounds import auc, guarantee_of
from dpaudit.formatting import rounded_down
from dpaudit.model.encoding import values_of_table
from dpaudit.plugins.protocols import BoolArray, FloatArray, World
from dpaudit.seeds import Stream
from dpaudit_generators.batches import shares_of
from reports import markdown
from reports.command import StudyParser, start, write_json

GENERATOR: Final = "gaussian-marginals"
ROWS: Final = 25
"""Synthetic rows of the published audit."""
MODELS: Final = (2_000, 6_666, 12_000)
REPEATS: Final = 20
FITTED, TESTED = 4_000, 12_000
"""Models that fit the attacks on rows, and that measure what they reach."""
DRAWN: Final = 400_000
HEADS: Final = ("what the attacker sees", "attack", "models", "μ reached", "proved, median (range)")


def _spec(access: str, models: int) -> Any:
    settings = audit_settings(worst_case="mst", access=access, rows=ROWS, shadow_models=models)
    return build_spec(GENERATOR, audited_table(None, None, settings), settings)


def _models(spec: Any, member: BoolArray, stream: Stream) -> Iterator[tuple[Any, int]]:
    """A model of the world of each trial, and the seed of its rows."""
    rng = stream.rng()
    tables = {world: spec.game.table(world, 0) for world in World}
    for inside in member:
        seed, rows = (int(one) for one in rng.integers(2**62, size=2))
        world = World.IN if inside else World.OUT
        yield spec.generator.generator.fit(tables[world], seed=seed), rows


def reached(scores: FloatArray, member: BoolArray) -> float:
    """The mu of the normal score that separates the worlds as these scores do."""
    return float(sqrt(2) * ndtri(auc(scores, member)))


def of_measurements(models: int, repeat: int) -> dict[str, Any]:
    """What the attack on the noisy counts reaches and proves, fitted and scored as in an audit."""
    spec = _spec("released", models)
    game: TwoWorlds = spec.settings.game
    stream = Stream(repeat, "mst", f"released/{models}")
    coins = stream.rng().random(game.scored) < 0.5
    member = np.concatenate([np.arange(2 * game.fitted) % 2 == 0, coins])
    (_, attack), *_ = spec.attacks
    trained = _models(spec, member, Stream(repeat, "mst", f"models/{models}"))
    features = np.array(
        [attack.model_features(model.released(), spec.game.view) for model, _ in trained]
    )
    fits = np.arange(len(member)) < 2 * game.fitted
    trials = SplitTrials(
        Part(features[fits], member[fits]), Part(features[~fits], member[~fits]), 0, 0
    )
    guarantee = guarantee_of(spec.claim)
    fitted = fit_attack(
        attack, trials.fitting, settings=spec.settings, guarantee=guarantee, rng=stream.rng()
    )
    scored = evaluate(fitted, trials, guarantee=guarantee, confidence=0.95)
    return {
        "sees": "noisy counts",
        "attack": "released",
        "models": models,
        "repeat": repeat,
        "reached": reached(fitted.scorer(features[~fits]), member[~fits]),
        "proved": scored.proved,
    }


def of_rows() -> list[dict[str, Any]]:
    """What the default attacks, and all combined, reach with the rows alone."""
    spec = _spec("output", FITTED)
    member = np.arange(FITTED + TESTED) % 2 == 0
    view = spec.game.view
    tables = np.stack(
        [
            values_of_table(view.schema.canonical(model.sample(ROWS, seed=seed)), view.schema)
            for model, seed in _models(spec, member, Stream(0, "mst", "rows"))
        ]
    )
    features = {name: attack.features_many(tables, view) for name, attack in spec.attacks}
    attacks = dict(spec.attacks) | {"combined": Combined(spec.attacks, spec.widths)}
    features["combined"] = np.concatenate(list(features.values()), axis=1)
    found = []
    for name, attack in attacks.items():
        scorer = attack.fit(features[name][:FITTED], member[:FITTED], seed=1)
        scores = scorer(features[name][FITTED:])
        found.append({"attack": name, "reached": reached(scores, member[FITTED:])})
    found.append({"attack": "the best possible", "reached": _best()})
    return [{"sees": f"{ROWS} rows", "models": FITTED, **one} for one in found]


def _best() -> float:
    """What the likelihood ratio of the counts of ones reaches, from simulated rows."""
    rng = Stream(0, "mst", "best").rng()
    scale = _spec("released", 400).generator.generator.scale

    def ones(inside: bool) -> FloatArray:
        """Ones among the rows of one column; 10 records have 0, and the target 1."""
        noisy = rng.normal([10.0, float(inside)], scale, (DRAWN, 2))
        return rng.binomial(ROWS, [shares_of(counts)[1] for counts in noisy])

    counts = [np.bincount(ones(inside).astype(int), minlength=ROWS + 1) for inside in (True, False)]
    odds = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)
    scores = [sum(odds[ones(inside).astype(int)] for _ in range(3)) for inside in (True, False)]
    return reached(np.concatenate(scores), np.arange(2 * DRAWN) < DRAWN)


def table(found: Sequence[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    cells = dict.fromkeys((one["sees"], one["attack"], one["models"]) for one in found)
    return markdown.table(HEADS, (_row(found, *cell) for cell in cells))


def _row(found: Sequence[dict[str, Any]], *cell: Any) -> tuple[object, ...]:
    those = [one for one in found if (one["sees"], one["attack"], one["models"]) == cell]
    limits = [one["proved"] for one in those if "proved" in one]
    proved = "–"
    if limits:
        median, low, high = map(rounded_down, (statistics.median(limits), min(limits), max(limits)))
        proved = f"{median} ({low} to {high})"
    return (*cell, f"{statistics.median(one['reached'] for one in those):.3f}", proved)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the study; writes the numbers, and the table of the page if they are the study's own."""
    parser = StudyParser(__file__, __doc__)
    run = parser.run_of(parser.parse_args(given))
    sizes = [(20, 1)] if run.quick else [(models, REPEATS) for models in MODELS]
    found = []
    for models, repeats in sizes:
        found += [of_measurements(models, repeat) for repeat in range(repeats)]
        print(f"{models} models", flush=True)
    if not run.quick:
        found += of_rows()
    write_json(run.out / "reached.json", found)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", table(found))
    else:
        print(table(found))


if __name__ == "__main__":
    start(main)
