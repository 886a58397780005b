"""Generators that do whatever they should not, once or again and again."""

from __future__ import annotations

import random
from functools import partial

from bench import Bench
from kinds import KINDS, Kind
from scene import FailureError

TIMES = 2
"""How often one run is hit."""
SURVIVED = (
    *("exits-at-once", "kills-itself", "kills-its-group", "aborts", "becomes-another"),
    *("recurses", "forks", "daemon", "helper", "threads", "patches", "prints"),
    *("closes-output", "closes-all", "leaves-the-folder", "raises-leaver"),
)
"""After these every trial finishes, at another attempt if need be."""
FAILING = (
    *("exits", "raises-interrupt", "raises-text", "fills-memory"),
    *("missing-values", "infinite", "huge", "no-columns", "text", "other-type"),
)
"""With these the trial itself fails."""
HANGING = ("sleeps", "holds-the-lock", "blocks-signals", "stops-itself")
"""These are over their time."""
FATAL = ("kills-its-parent", "deletes-the-run")
"""These end the run."""
LIMIT_SECONDS = 5


def survived(bench: Bench, rng: random.Random, *, how: str, failing: bool) -> int:
    """The run goes on to its end; trials fail only if they did it themselves."""
    del rng
    folder = bench.scene("controls")
    (folder / "how").write_text(f"{how}\n" * TIMES)
    # Of a trial that is run again the first attempt may be the one that was hit.
    missing = TIMES if failing else 0
    limit = ("--set", f"trial-timeout={LIMIT_SECONDS}") if how in HANGING else ()
    ended = bench.start(folder, *limit).wait()
    if ended.code:
        raise FailureError(f"exit code {ended.code}: {ended.err[-300:]}")
    kept = bench.check(folder, ended, {}, missing=missing)
    if failing and len(kept) > len(bench.baseline) - TIMES:
        raise FailureError("a trial that failed counts as finished")
    bench.drop(folder)
    return TIMES


def fatal(bench: Bench, rng: random.Random, *, how: str) -> int:
    """The run ends, and the next one goes on with what is there."""
    del rng
    folder = bench.scene("controls")
    (folder / "how").write_text(how)
    ended = bench.start(folder).wait()
    kept = bench.check(folder, ended, {})
    if not ended.code:
        raise FailureError("it went on")
    bench.finish(folder, kept)
    return 1


for _how in (*SURVIVED, *FAILING, *HANGING):
    _inject = partial(survived, how=_how, failing=_how not in SURVIVED)
    KINDS.append(Kind("generator", _how.replace("-", " "), 1, _inject))
for _how in FATAL:
    KINDS.append(Kind("generator", _how.replace("-", " "), 1, partial(fatal, how=_how)))
