"""How the cost of a shadow PATE-GAN grows with rows, columns, teachers and models at a time.

Usage: python benchmarks/scaling.py RESULTS.json PICTURE.svg   (some 3 minutes)

Microseconds of CPU time for one model and iteration of the published network, one thread, the
median of interleaved rounds. One size is varied at a time, starting from 686 rows, 29 columns, 5
teachers and 32 models (fewer if the game would train fewer at a time). Hidden widths and noise are
as wide as the table, as in the published audits. For comparison, the arithmetic of an iteration
alone, computed from the network's shapes at the speed of one large matrix product.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from timing import cpu_seconds, interleaved
from training import network, operations, trainees

from dpaudit.versions import versions
from dpaudit_generators.networks.source import Head
from dpaudit_generators.pate_gan import PUBLISHED, PateGan
from dpaudit_generators.pate_gan.training import train

ITERATIONS: Final = 30
ROUNDS: Final = 5


class Size(NamedTuple):
    """The sizes, one of which is varied at a time."""

    rows: int = 686
    columns: int = 29
    teachers: int = 5
    models: int = 32


VARIED: Final[dict[str, Sequence[int]]] = {
    "rows": (500, 1_500, 5_000, 15_000, 50_000),
    "columns": (3, 10, 29, 100, 300, 600),
    "teachers": (2, 5, 15, 50, 150, 300),
    "models": (1, 2, 4, 8, 16, 32, 64, 128),
}
NAMES: Final = {
    "rows": "rows N",
    "columns": "columns d",
    "teachers": "teachers k",
    "models": "models at a time M",
}


def network_of(size: Size) -> PateGan:
    """The published network for a table of another shape, 320 labels in each iteration."""
    wide = size.columns
    settings: dict[str, Any] = dict(PUBLISHED) | {
        "rounds": ITERATIONS,
        "noise_width": wide,
        "generator_hidden": (wide, max(1, wide // 2)),
        "student_hidden": (wide, max(1, wide // 2)),
    }
    return network(wide, size.teachers, settings)


def microseconds(sizes: Sequence[Size]) -> list[float]:
    """CPU time of a model and iteration of each size, start-up included; interleaved rounds."""
    runs: dict[int, Callable[[], object]] = {}
    for place, size in enumerate(sizes):
        gan = network_of(size)
        runs[place] = partial(
            train,
            trainees(size.models, gan, n_rows=size.rows),
            head=Head(gan.schema),
            plan=gan.plan,
            settings=gan,
            device=torch.device("cpu"),
        )
    taken = interleaved(runs, repeats=ROUNDS, warm_up=True)
    return [
        1e6 * median(taken[place]) / ITERATIONS / size.models for place, size in enumerate(sizes)
    ]


def product_speed() -> float:
    """Multiplications and additions a second of one large matrix product."""
    square = torch.rand(1024, 1024)
    times = [cpu_seconds(lambda: torch.mm(square, square)) for _ in range(10)]
    return 2 * 1024**3 / median(times)


def growth(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent of the last factor of growth: 1 is linear, 2 quadratic."""
    return float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))


def draw(results: dict[str, Any], path: Path) -> None:
    """Draws time and arithmetic against each size, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "scaling"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(VARIED), figsize=(12, 3.2), layout="constrained")
    for axis, (name, values) in zip(axes, VARIED.items(), strict=True):
        taken = results[name]["microseconds"]
        floor = 1e3 * np.array(results[name]["megaflops"]) / results["matrix_product_gflops"]
        axis.loglog(values, taken, "o-", color="#1b6ca8", label="measured")
        axis.loglog(values, floor, ":", color="#666666", label="arithmetic alone")
        axis.set_xlabel(NAMES[name])
        axis.set_ylim(min(floor) / 2, max(taken) * 2)
        axis.grid(visible=True, which="major", alpha=0.3)
    axes[0].set_ylabel("microseconds per model\nand iteration")
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measures, writes the results and draws them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("results", type=Path, metavar="RESULTS.json")
    parser.add_argument("picture", type=Path, metavar="PICTURE.svg")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {"matrix_product_gflops": product_speed() / 1e9}
    for name, values in VARIED.items():
        sizes = [Size(**{name: value}) for value in values]
        if name != "models":  # as many as the game trains at a time
            most = [network_of(size).models_at_once for size in sizes]
            sizes = [size._replace(models=min(32, m)) for size, m in zip(sizes, most, strict=True)]
        taken = microseconds(sizes)
        work = [operations(network_of(size)) / 1e6 for size in sizes]
        results[name] = {
            "values": list(values),
            "models": [size.models for size in sizes],
            "microseconds": [round(one, 1) for one in taken],
            "megaflops": [round(one, 3) for one in work],
            "last_exponent": round(growth(values, taken), 2),
            "last_exponent_of_arithmetic": round(growth(values, work), 2),
        }
        print(name, json.dumps(results[name]), flush=True)
    results["versions"] = versions()
    options.results.write_text(json.dumps(results, indent=2) + "\n")
    draw(results, options.picture)


if __name__ == "__main__":
    main()
