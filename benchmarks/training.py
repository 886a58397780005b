"""How many shadow PATE-GANs a second: the sequential oracle against stacks of M models.

Usage: python benchmarks/training.py [--quick] [--json] [--peer-python PATH]
(under a minute with --quick)

The network of the published average-case audit (686 x 29, 5 logistic teachers, batch 64), one
thread, CPU time, the median of interleaved rounds in one process. A rate counts models of 1000
iterations, start-up included. How long an iteration takes depends only on the shape of the table,
so the table is drawn at random. The networks of a worst-case audit, far smaller, are timed in
stacks of 1000. The arithmetic floor is what the network's multiplications and additions alone would
take at the speed of one large matrix product on this machine. `peers.py` says how to install a
public peer, which is timed after the rest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import torch
from oracle import train_one
from timing import interleaved

from dpaudit.formatting import percent
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.versions import versions
from dpaudit_generators.networks.source import Head
from dpaudit_generators.pate import cells
from dpaudit_generators.pate_gan import PUBLISHED, PateGan
from dpaudit_generators.pate_gan.settings import Records, Trainee
from dpaudit_generators.pate_gan.training import train

ROWS, COLUMNS, TEACHERS = 686, 29, 5
ITERATIONS: Final = 1000
"""Of the models that a rate counts."""


def published(rounds: int) -> PateGan:
    """The published network, for so many iterations; 320 labels in each."""
    return network(COLUMNS, TEACHERS, dict(PUBLISHED) | {"rounds": rounds})


def smallest(rounds: int) -> PateGan:
    """The network of a worst-case audit: 3 columns, 2 teachers, 2 records in a minibatch."""
    small: dict[str, Any] = {
        "noise_width": 3,
        "generator_hidden": (3, 1),
        "student_hidden": (3, 1),
        "batch": 2,
    }
    return network(3, 2, dict(PUBLISHED) | {"rounds": rounds} | small)


def network(columns: int, teachers: int, settings: dict[str, Any]) -> PateGan:
    """A PATE-GAN for a table of numbers in [0, 1]; `settings` are those of its training."""
    names = [f"x{i}" for i in range(columns)]
    unit = [Column(name=name, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for name in names]
    schema = Schema(columns=tuple(unit))
    return PateGan(schema=schema, teachers=teachers, accuracy=0.5002, **settings)


def trainees(models: int, gan: PateGan, *, n_rows: int = ROWS) -> list[Trainee]:
    """Models on one random table, each with its own partition and stream."""
    rows = np.random.default_rng(0).random((n_rows, len(gan.schema.columns)))
    shared = rows.astype(np.float32)
    dealt = [cells(rows, teachers=gan.teachers, key=seed.to_bytes(2)) for seed in range(models)]
    return [
        Trainee(Records(shared, owned), (), gan.plan.labels, seed)
        for seed, owned in enumerate(dealt)
    ]


def operations(gan: PateGan) -> int:
    """Multiplications and additions of an iteration, without padding; biases are weights."""

    def weights(*widths: int) -> tuple[int, int]:
        layers = [(inputs + 1) * outputs for inputs, outputs in pairwise(widths)]
        return sum(layers), sum(layers) - layers[0]

    columns = len(gan.schema.columns)
    generator, upper_generator = weights(gan.noise_width, *gan.generator_hidden, columns)
    student, upper_student = weights(columns, *gan.student_hidden, 1)
    teacher, upper_teacher = weights(columns, *gan.teacher_hidden, 1)
    asked = gan.plan.labels // gan.rounds
    made = (gan.teacher_steps + gan.generator_steps) * gan.batch + asked
    seen = 2 * gan.teacher_steps * gan.batch  # real and generated
    learned, back = gan.student_steps * gan.batch, gan.generator_steps * gan.batch
    return 2 * (
        made * generator
        + gan.teachers * (seen * (2 * teacher + upper_teacher) + asked * teacher)
        + learned * (2 * student + upper_student)
        + back * (2 * student + generator + upper_generator)
    )


def measure(*, rounds: int, repeats: int, sizes: list[int]) -> dict[str, Any]:
    """Measures oracle, stacks and a matrix product, interleaved.

    Args:
        rounds: Iterations of each training.
        repeats: How often each is timed.
        sizes: Numbers M of models in a stack.
    """
    gan = published(rounds)
    options: dict[str, Any] = {"head": Head(gan.schema), "plan": gan.plan, "settings": gan}
    everyone = trainees(max(sizes), gan)
    square = torch.rand(1024, 1024)
    runs: dict[str, Callable[[], object]] = {
        "sequential": lambda: train_one(everyone[0], **options),
        "product": lambda: square @ square,
    }
    for size in sizes:
        runs[str(size)] = lambda size=size: train(
            everyone[:size], device=torch.device("cpu"), **options
        )  # type: ignore[misc]
    times = interleaved(runs, repeats=repeats, warm_up=True)
    taken = {name: median(each) for name, each in times.items()}
    sequential = rounds / ITERATIONS / taken["sequential"]
    many = {str(size): size * rounds / ITERATIONS / taken[str(size)] for size in sizes}
    speed = 2 * 1024**3 / taken["product"]
    floor = speed / operations(gan) / ITERATIONS
    return {
        "network": f"{ROWS} x {COLUMNS}, {TEACHERS} logistic teachers, {ITERATIONS} iterations",
        "sequential_models_per_second": sequential,
        "fit_many": many,
        "speedup": {size: rate / sequential for size, rate in many.items()},
        "microseconds_per_iteration": {
            "sequential": 1e6 * taken["sequential"] / rounds,
            **{str(size): 1e6 * taken[str(size)] / rounds / size for size in sizes},
        },
        "operations_per_iteration": operations(gan),
        "matrix_product_gflops": speed / 1e9,
        "arithmetic_floor_models_per_second": floor,
        "arithmetic_floor_share": max(many.values()) / floor,
        "threads": torch.get_num_threads(),
        "timed_iterations": rounds,
        "repeats": repeats,
        "versions": versions(),
    }


def worst_case(*, rounds: int, repeats: int, models: int) -> dict[str, Any]:
    """Measures very many very small networks, whose operations cost more than their arithmetic.

    Args:
        rounds: Iterations of each training.
        repeats: How often each is timed.
        models: Number M of models in the stack.
    """
    gan = smallest(rounds)
    options: dict[str, Any] = {"head": Head(gan.schema), "plan": gan.plan, "settings": gan}
    everyone = trainees(models, gan)
    runs: dict[str, Callable[[], object]] = {
        "sequential": lambda: train_one(everyone[0], **options),
        str(models): lambda: train(everyone, device=torch.device("cpu"), **options),
    }
    times = interleaved(runs, repeats=repeats, warm_up=False)
    taken = {name: median(each) for name, each in times.items()}
    alone = {"sequential": taken["sequential"], str(models): taken[str(models)] / models}
    return {
        "network": f"{ROWS} x 3, 2 logistic teachers, minibatches of 2",
        "speedup": {str(models): alone["sequential"] / alone[str(models)]},
        "microseconds_per_iteration": {name: 1e6 * one / rounds for name, one in alone.items()},
        "timed_iterations": rounds,
        "repeats": repeats,
    }


def peer(python: Path) -> dict[str, Any]:
    """Runs `peers.py` with another interpreter, isolated from the paths of this one."""
    command: list[str | Path] = [python, "-I", Path(__file__).with_name("peers.py")]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    document: dict[str, Any] = json.loads(printed)
    return document


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="M = 1, 8, 32, under a minute")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.add_argument(
        "--peer-python",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="interpreter of a public peer, see peers.py; may be repeated",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.quick:
        result = measure(rounds=100, repeats=7, sizes=[1, 8, 32])
    else:
        result = measure(rounds=300, repeats=7, sizes=[1, 8, 16, 32, 64, 128])
    result["worst_case"] = worst_case(rounds=60, repeats=3, models=1000)
    result["peers"] = [peer(python) for python in arguments.peer_python]
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    rates = {"sequential": result["sequential_models_per_second"], **result["fit_many"]}
    for name, rate in rates.items():
        share = rate / rates["sequential"]
        print(f"{name:>10}  {rate:7.3f} models/s  {share:5.1f} times the oracle")
    print(f"{'floor':>10}  {result['arithmetic_floor_models_per_second']:7.3f} models/s")
    for size, share in result["worst_case"]["speedup"].items():
        print(f"{size:>10}  of the worst-case audit's networks: {share:.0f} times the oracle")
    for other in result["peers"]:
        rate, accounting = other["models_per_second"], other["accountant_share"]
        share = rate / rates["sequential"]
        print(
            f"{'peer':>10}  {rate:7.3f} models/s  {share:5.2f} times the oracle"
            f"  ({other['peer']} {other['version']}, its accountant "
            f"{percent(round(accounting, 2))})"
        )


if __name__ == "__main__":
    main()
