"""How long the PATE-GAN of a public library takes for an iteration: smartnoise-synth.

Usage: PEER/bin/python -I benchmarks/peers.py   (under 15 seconds)

Run by the peer's own interpreter, so it imports nothing of this project; `training.py
--peer-python PEER/bin/python` does so in its own run. The environment (1.8 GB with a CPU build
of torch; smartnoise-synth imports packaging without requiring it):

    python3.11 -m venv PEER
    PEER/bin/pip install torch==2.13.0
    PEER/bin/pip install smartnoise-synth==1.0.8 torch==2.13.0 packaging

One thread, CPU time, the median of several fits, start-up included, on the table of `training.py`.
The peer trains until its accountant has spent epsilon; its calls count the iterations. What it
shares with the published network: 686 x 29, 5 teachers, batch 64, 29 numbers of noise, 5 steps of
each teacher, 5 of the student and 1 of the generator, 320 labels, Adam. What it fixes differently:
double precision, teachers with two hidden layers, normalised layers in the generator, new generated
records for every teacher, and an accountant of 100 orders after each of the student's minibatches,
whose share is printed. That a teacher has 137 records, not the thousand the peer gives it, does not
show in the time.
"""

from __future__ import annotations

import json
import time
from importlib.metadata import version
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from snsynth.pytorch.nn import pategan  # type: ignore[import-not-found]
from snsynth.transform.table import NoTransformer  # type: ignore[import-not-found]

ROWS, COLUMNS, TEACHERS, BATCH, STEPS = 686, 29, 5, 64, 5
EPSILON: Final = 1.0
"""Some thirty iterations."""
REPEATS: Final = 5


class Fit(NamedTuple):
    """What was measured of one training.

    Attributes:
        iterations: Steps of the generator.
        seconds: CPU time.
        accounting: The part of it that the accountant took.
    """

    iterations: int
    seconds: float
    accounting: float


def fit(rows: np.ndarray[Any, np.dtype[np.float64]], *, epsilon: float) -> Fit:
    """Trains the peer until it has spent epsilon."""
    calls: list[float] = []
    accountant = pategan.moments_acc

    def watched(*arguments: Any) -> Any:
        start = time.process_time()
        spent = accountant(*arguments)
        calls.append(time.process_time() - start)
        return spent

    synthesizer = pategan.PATEGAN(
        epsilon, latent_dim=COLUMNS, batch_size=BATCH, teacher_iters=STEPS, student_iters=STEPS
    )
    pategan.moments_acc = watched
    try:
        start = time.process_time()
        synthesizer.fit(rows, transformer=NoTransformer())
        seconds = time.process_time() - start
    finally:
        pategan.moments_acc = accountant
    return Fit(len(calls) // STEPS, seconds, sum(calls))


def main() -> None:
    """Measures and prints a JSON document."""
    torch.set_num_threads(1)
    rows = np.random.default_rng(0).random((ROWS, COLUMNS))
    # It has a teacher for every 1000 records, rounded down by `int`, which it calls nowhere else.
    pategan.int = lambda _: TEACHERS
    fit(rows, epsilon=EPSILON / 4)  # imports, caches
    fits = [fit(rows, epsilon=EPSILON) for _ in range(REPEATS)]
    microseconds = 1e6 * median(each.seconds / each.iterations for each in fits)
    result = {
        "peer": "smartnoise-synth",
        "version": version("smartnoise-synth"),
        "torch": torch.__version__,
        "iterations": sum(each.iterations for each in fits),
        "microseconds_per_iteration": microseconds,
        "models_per_second": 1e6 / microseconds / 1000,
        "accountant_share": median(each.accounting / each.seconds for each in fits),
        "threads": torch.get_num_threads(),
        "setting": f"{ROWS} x {COLUMNS}, {TEACHERS} teachers of two hidden layers, batch {BATCH}, "
        f"double precision, {len(fits)} fits up to epsilon {EPSILON:g}, 1000 iterations a model",
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
