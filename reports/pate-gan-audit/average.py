"""The average case (Figure 5b): GroundHog on Cervical Cancer, target 397, as published and valid.

Usage: python average.py DATA_FOLDER [--models 1000] [--names original,...] [--games valid]

Resumes where it was stopped: run folders under --runs, finished audits under --results.
"""

from __future__ import annotations

from pathlib import Path

import audits
from kept import arguments, checked_names, kept, names
from published import SIX
from setting import TARGET, Game, average_schema, average_table, parameters

ATTACK = "groundhog-naive"
REFERENCE = "pate-gan-switched"
"""The same trainer without a deviation; played in the valid game alone."""


def main(given: list[str] | None = None) -> None:
    """Plays the audits that are not kept yet."""
    parser = arguments(__doc__)
    parser.add_argument("--models", type=int, default=1000, help="shadow models of each world")
    parser.add_argument("--names", type=names, default=[*SIX, REFERENCE])
    parser.add_argument("--games", type=names, default=["published", "valid"])
    parser.add_argument("--attack", default=ATTACK)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--runs", type=Path, default=Path("runs/pate-gan-audit"))
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args(given)
    table, schema = average_table(asked.data), average_schema()
    for name in asked.names:
        for text in checked_names(asked.games, ["published", "valid"]):
            game = Game(text)
            if game is Game.PUBLISHED and name not in SIX:
                continue  # nothing of it was published
            question = {
                "generator": name,
                "parameters": parameters(name, game, iterations=asked.iterations),
                "game": game.value,
                "target": TARGET,
                "rows": len(table),
                "attack": asked.attack,
                "models": asked.models,
                "threshold": "hold-out" if game is Game.PUBLISHED else "cross-validated",
                "seed": asked.seed,
            }
            label = f"{name}-{game}" + ("" if asked.attack == ATTACK else f"-{asked.attack}")
            kept(
                asked.results / "average" / f"{label}.json",
                question,
                lambda name=name, game=game, label=label, question=question: audits.play(
                    name,
                    table,
                    schema,
                    parameters=question["parameters"],
                    target=TARGET,
                    attack=asked.attack,
                    models=asked.models,
                    hold_out=game is Game.PUBLISHED,
                    seed=asked.seed,
                    runs=asked.runs,
                    name=f"average-{label}",
                    jobs=asked.jobs,
                ),
            )


if __name__ == "__main__":
    main()
