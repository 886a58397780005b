"""The training of each implementation (Figures 2, 3 and 4), from recorded traces.

Usage: python training.py DATA_FOLDER [--names original,...] [--iterations 1000]

Figure 2: distinct records seen by each of 5 teachers. Figure 3: teachers' losses. Figure 4: log
moments 1 to 100 as each accountant has them, all on the same votes: those of `smartnoise`'s
teachers in a training that no budget stops, at three values of lambda.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, cast

import numpy as np
from kept import Record, arguments, kept, names
from notes import Notes
from published import DELTA, EPSILON, SIX
from setting import TEACHERS, Game, average_schema, average_table, parameters

from dpaudit.account import VoteTable, epsilon_from_moments, pate_moments
from dpaudit.account.algorithm_1 import (
    AS_PUBLISHED,
    BOREALIS_SMARTNOISE,
    SYNTHCITY,
    algorithm_1_moments,
)
from dpaudit.plugins.protocols import FloatArray
from dpaudit.plugins.recorder import Traceable
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.seeds import Stream

LAMBDAS = (0.001, 0.1, 1.0)
"""The paper's text says 0.001; its figure is one of 1, as its configuration file has it."""
MOMENTS = np.arange(1, 101)
VOTING = "smartnoise"
NO_BUDGET = 1e12
LOSSES = {
    "borealis": {"gamma": 1e-4},
    "smartnoise": {"epsilon": 3.0},
}
"""Figure 3 has these settings in the public configuration: more iterations to look at."""
ACCOUNTANTS = {
    "updated": AS_PUBLISHED,
    "synthcity": SYNTHCITY,
    "borealis, smartnoise": BOREALIS_SMARTNOISE,
}


def main(given: list[str] | None = None) -> None:
    """Records what is not kept yet."""
    parser = arguments(__doc__)
    parser.add_argument("--names", type=names, default=list(SIX))
    parser.add_argument("--voting", default=VOTING, help="whose teachers vote in Figure 4")
    parser.add_argument("--lambdas", type=lambda t: [*map(float, names(t))], default=LAMBDAS)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--rows", type=int, help="the first rows of the table alone")
    asked = parser.parse_args(given)
    table, schema = average_table(asked.data).head(asked.rows), average_schema()

    def trace(name: str, settings: dict[str, Any], what: str) -> Notes:
        generator = build(name, GENERATORS, given=settings, offered={"schema": schema})
        recorder = Notes()
        cast(Traceable, generator).trace(
            schema.canonical(table),
            n_rows=10,
            seed=Stream(asked.seed, f"training/{name}", what).seed(),
            recorder=recorder,
        )
        return recorder

    for name in asked.names:
        settings = parameters(name, Game.PUBLISHED, iterations=asked.iterations)
        changed = settings | LOSSES.get(name, {})
        for figure, used, record in (
            ("partition", settings, partition),
            ("losses", changed, losses),
        ):
            question = {
                "generator": name,
                "parameters": used,
                "rows": len(table),
                "seed": asked.seed,
            }

            def work(
                name: str = name,
                used: dict[str, Any] = used,
                record: Callable[[Notes], Record] = record,
                figure: str = figure,
            ) -> Record:
                return record(trace(name, used, figure))

            kept(asked.results / "training" / f"{figure}-{name}.json", question, work)

    for gamma in asked.lambdas:
        settings = parameters(asked.voting, Game.PUBLISHED, iterations=asked.iterations)
        settings |= {"gamma": gamma, "epsilon": NO_BUDGET}
        question = {
            "generator": asked.voting,
            "parameters": settings,
            "rows": len(table),
            "seed": asked.seed,
        }

        def work_moments(settings: dict[str, Any] = settings, gamma: float = gamma) -> Record:
            seen = trace(asked.voting, settings, f"moments/{gamma}")
            counts = [seen.votes.get(ones, 0) for ones in range(TEACHERS + 1)]
            return moments(counts, gamma=gamma) | {"iterations": seen.iterations}

        kept(asked.results / "training" / f"moments-{gamma:g}.json", question, work_moments)


def partition(seen: Notes) -> Record:
    """Figure 2: distinct records of each teacher, and how many any two share."""
    rows = list(seen.teachers.values())
    shared = [len(one & other) for one, other in combinations(rows, 2)]
    return {
        "readers": sorted(reader.value for reader in seen.read_by),
        "distinct": [len(one) for one in rows],
        "shared": [min(shared), max(shared)] if shared else None,
        "used": len(set().union(*rows)),
        "iterations": seen.iterations,
        "spent": seen.spent,
    }


def losses(seen: Notes) -> Record:
    """Figure 3: cross-entropy by iteration."""
    return {
        "own": [round(loss, 6) for loss in seen.own],
        "others": [round(loss, 6) for loss in seen.others],
        "iterations": seen.iterations,
        "spent": seen.spent,
    }


def moments(counts: list[int], *, gamma: float) -> Record:
    """Figure 4: log moments of all queries, as each accountant has them.

    Args:
        counts: How many queries had n votes for 1, by n.
        gamma: The paper's lambda.

    Returns:
        Moments 1 to 100 and the epsilon that follows, of each accountant; of PATE's theorems with
        their conditions; and what one Laplace draw, which four of the six add, costs whatever the
        votes.
    """
    asked = np.asarray(counts, dtype=np.float64)
    ones = np.arange(len(counts))
    votes = np.stack([ones[-1] - ones, ones], axis=-1)
    found = {
        name: asked @ algorithm_1_moments(votes, gamma=gamma, moments=MOMENTS, deviations=kinds)
        for name, kinds in ACCOUNTANTS.items()
    }
    found["PATE's theorems"] = asked @ pate_moments(votes, gamma=gamma, moments=MOMENTS)
    found["one Laplace draw, exact"] = asked.sum() * one_draw(len(counts) - 1, gamma)
    return {
        "votes": counts,
        "moments": {name: [*map(float, values)] for name, values in found.items()},
        "epsilon": {name: _epsilon(values) for name, values in found.items()},
        "within_budget": EPSILON,
    }


def one_draw(teachers: int, gamma: float) -> FloatArray:
    """Moments of one label made with one Laplace draw on the count of ones, worst votes."""
    table = VoteTable.laplace(teachers, 1.0 / gamma)
    return np.asarray(MOMENTS * table.rdp(MOMENTS + 1.0), dtype=np.float64)


def _epsilon(values: FloatArray) -> float:
    """Epsilon at the claim's delta; moments that credit privacy count as they are."""
    return float(epsilon_from_moments(MOMENTS, np.maximum(values, 0.0), delta=DELTA))


if __name__ == "__main__":
    main()
