"""Sequential mode: how many scored models until each published violation is proved.

Usage: python sequential.py DATA_FOLDER [--cap 300] [--seeds 3] [--names original,...]

The average case as published (bounds per world); the cap is in models of each world.
"""

from __future__ import annotations

from pathlib import Path

import audits
from average import ATTACK
from kept import Record, arguments, kept, names
from published import EPSILON, SIX
from setting import TARGET, Game, average_schema, average_table, parameters


def main(given: list[str] | None = None) -> None:
    """Plays the audits that are not kept yet."""
    parser = arguments(__doc__)
    parser.add_argument("--cap", type=int, default=300, help="shadow models of each world at most")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--names", type=names, default=list(SIX))
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--runs", type=Path, default=Path("runs/pate-gan-audit"))
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args(given)
    table, schema = average_table(asked.data), average_schema()
    for name in asked.names:
        for seed in range(asked.seed, asked.seed + asked.seeds):
            question = {
                "generator": name,
                "parameters": parameters(name, Game.PUBLISHED, iterations=asked.iterations),
                "attack": ATTACK,
                "cap": asked.cap,
                "seed": seed,
            }

            def work(name: str = name, seed: int = seed, question: Record = question) -> Record:
                found = audits.play(
                    name,
                    table,
                    schema,
                    parameters=question["parameters"],
                    target=TARGET,
                    attack=ATTACK,
                    models=asked.cap,
                    hold_out=False,
                    seed=seed,
                    runs=asked.runs,
                    name=f"sequential-{name}",
                    jobs=asked.jobs,
                    sequential=True,
                )
                return found | scored(found)

            kept(asked.results / "sequential" / f"{name}-{seed}.json", question, work)


def scored(found: Record) -> Record:
    """How many models were scored, and trained, when the audit stopped.

    At the cap the bound of fixed size is on the later half alone, so there the counts say nothing.
    """
    pairs = found["stopped"]["pairs"] if found["stopped"] else 0
    early = bool(found["stopped"] and found["stopped"]["stopped_early"])
    counts = found["counts"] or {"n_in": 0, "n_out": 0}
    return {
        "proved_early": early and (found["proved"] or 0.0) > EPSILON,
        "scored_models": counts["n_in"] + counts["n_out"] if early else None,
        "trained_models": 2 * pairs,
    }


if __name__ == "__main__":
    main()
