"""Steps of transcripts, as replays record them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.transcript import NoisyStep, Pair, Site


def noisy_step(
    before: Any, other: Any, answer: Any, law: NoiseLaw, first: int = 0, line: int = 1
) -> NoisyStep:
    answer = np.asarray(answer, dtype=float)
    return NoisyStep(
        site=Site("code.py", line, "f"),
        first=first,
        before=Pair(np.asarray(before, float), np.asarray(other, float)),
        laws=(law, law),
        answer=answer,
        moved=np.zeros(answer.shape),
        log_weight=0.0,
        base=0,
    )
