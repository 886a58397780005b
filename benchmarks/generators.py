"""What a model of each of our generators costs: CPU time of training and of sampling.

Usage: python benchmarks/generators.py [NAME ...] [--json]

With default settings, on `sample:breast-cancer` (569 x 31): a batch of as many models as the
generator trains fastest together, 32 at most, after a batch of one that loads what it needs. One
thread; samples of as many records as the table has.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Final

import torch
from timing import cpu_seconds

from dpaudit.model.tables import load
from dpaudit.plugins.named import named_generator
from dpaudit.plugins.protocols import Job, World, trains_many
from dpaudit.versions import versions

MOST_TOGETHER: Final = 32
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "marginals": {"epsilon": 1.0, "delta": 1e-5},
    "dp-gan": {},
    "pate-g": {},
    "wgan-gp": {},
    "wgan-gp-dp-critic": {},
    "pate-gan-marginals": {},
}


def measured(name: str) -> dict[str, Any]:
    """Milliseconds of CPU time of a model and of a sample of it."""
    table = load("sample:breast-cancer", None)
    offered = {"schema": table.schema, "target": table.data.iloc[[0]]}
    generator = named_generator(name, PARAMETERS[name], offered).generator
    assert trains_many(generator), name
    together = min(MOST_TOGETHER, generator.models_at_once)
    jobs = [Job(World.IN, index, (), index) for index in range(together)]
    generator.fit_many(table.data, jobs[:1]).sample_many(2, [0])
    batch: list[Any] = []
    training = cpu_seconds(lambda: batch.append(generator.fit_many(table.data, jobs)))
    [models] = batch
    seeds = [job.seed for job in jobs]
    sampling = cpu_seconds(lambda: models.sample_many(len(table.data), seeds))
    each = 1e3 / together
    return {
        "generator": name,
        "together": together,
        "training_ms": each * training,
        "sampling_ms": each * sampling,
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measured(name) for name in options.names or PARAMETERS]
    result = {"generators": rows, "load": os.getloadavg()[0], "versions": versions()}
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
