"""Every random stream, derived by hash.

A stream is named by what it is for, never by its position in a sequence of draws, so results do
not depend on the number of workers, on order, or on resuming. `SeedSequence.spawn` is stateful and
`base + i` makes the seeds of two audits overlap: neither is used anywhere.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from typing import NamedTuple

import numpy as np

_NAMESPACE = "dpaudit/1"


class Stream(NamedTuple):
    """The name of one random stream.

    Attributes:
        root: The root seed of the audit.
        audit: Identifies the audit (hash of its specification).
        role: What the stream is for: "fit", "sample", "split", ...
        trial: Number of the trial, or 0.
        world: "in", "out", or "" for streams that belong to neither.
    """

    root: int
    audit: str
    role: str
    trial: int = 0
    world: str = ""

    def entropy(self) -> int:
        """The 256-bit entropy of this stream: blake2b of its canonical JSON name."""
        root, trial = index(self.root), index(self.trial)  # numpy's integers are not JSON
        parts = [_NAMESPACE, root, self.audit, self.role, trial, self.world]
        name = json.dumps(parts, separators=(",", ":"))
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=32).digest(), "big")

    def rng(self) -> np.random.Generator:
        """A numpy generator for this stream."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy()))

    def seed(self) -> int:
        """A seed in [0, 2**32): the range every library takes (numpy, scikit-learn, torch)."""
        return int(np.random.SeedSequence(self.entropy()).generate_state(1, np.uint32)[0])


def rng_of(seed: int | None, purpose: str) -> np.random.Generator:
    """A generator for one purpose inside a component that was handed a single seed.

    Args:
        seed: The component's seed; None draws from the operating system's entropy.
        purpose: What the draws are for; different purposes give unrelated streams.

    Returns:
        A numpy generator.
    """
    if seed is None:
        return np.random.default_rng()
    return Stream(root=seed, audit="", role=purpose).rng()


@contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Seeds the global generators of random, numpy and torch, and restores them afterwards.

    Args:
        seed: A seed in [0, 2**32).

    Yields:
        Nothing.
    """
    with globals_restored():
        seed_globals(seed)
        yield


def seed_globals(seed: int) -> None:
    """Seeds the global generators of random, numpy and torch.

    Third-party generators draw from global state (`nn.Linear`, Dropout, `torch.distributions`).
    Torch is seeded only where it is already loaded, so that a light generator does not pay for it.

    Args:
        seed: A seed in [0, 2**32).
    """
    random.seed(seed)  # noqa: TID251 - for third-party code
    np.random.seed(seed)  # noqa: NPY002, TID251 - for third-party code
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


@contextmanager
def globals_restored() -> Iterator[None]:
    """Restores the global generators of random, numpy and torch afterwards.

    Numpy takes longer to give and take its state than to be seeded.

    Yields:
        Nothing.
    """
    torch = sys.modules.get("torch")
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - saved and restored for third-party code
    torch_state = torch.random.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002 - as above
        if torch is not None:
            torch.random.set_rng_state(torch_state)
