"""Injects faults into audits and checks that none loses, changes or invents a result.

Usage: python benchmarks/faults [--faults 500] [--quick] [--only WORD ...] [--seed 0] [--out DIR]

Kills coordinators, workers and their children at random moments, fills disks, flips bits, deletes
and replaces files, audits hostile generators, runs two coordinators, changes data, code and
settings between runs, closes output, and breaks the worker protocol. After each fault: no finished
trial may be lost or changed (compared with an undisturbed run), nothing may hang, no process may be
left after 5 seconds, no traceback may be printed, and an exit code of 0 needs a result. Exits with
1 if any fault did otherwise. With --out writes a file for each group of kinds. Linux only.
`python -m reports.faults.run` runs all groups.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import hostile
import others
import protocol
import signals
import storage
from bench import Bench
from kinds import KINDS, Kind, NotHereError
from scene import PATIENCE_SECONDS, FailureError

from dpaudit.versions import versions

_FILLED = (hostile, others, protocol, signals, storage)  # imported for what they add to KINDS
QUICK = 40


@dataclass
class Tally:
    """What came of one kind.

    Attributes:
        group: What was hit.
        name: How.
        faults: How many were injected.
        seconds: How long they took.
        failures: What should not have happened.
        not_here: Why this kind is not possible on this system.
    """

    group: str
    name: str
    faults: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    not_here: str = ""

    def line(self) -> str:
        """The kind and how many faults were injected."""
        return f"{self.group}: {self.name}: {self.not_here or self.faults} faults"


def inject(kind: Kind, tally: Tally, *, most: int, bench: Bench, rng: random.Random) -> None:
    """Injects faults of one kind until there are enough."""
    begun, tries = time.monotonic(), 0
    while tally.faults < most and tries < 4 * most and not tally.not_here:
        tries += 1
        try:
            tally.faults += kind.inject(bench, rng)
        except NotHereError as error:
            tally.not_here = str(error)
        except FailureError as failure:
            tally.faults += 1
            tally.failures.append(str(failure))
            print(f"FAILED: {kind.group}, {kind.name}: {failure}", file=sys.stderr, flush=True)
    tally.seconds = time.monotonic() - begun


def run(
    kinds: Sequence[Kind], *, faults: int, seed: int, on_group: Callable[[list[Tally]], None]
) -> list[Tally]:
    """Injects about that many faults, in proportion to the kinds' weights; at least one of each.

    Args:
        kinds: Which, those of a group one after the other.
        faults: How many if all kinds were injected.
        seed: Of the moments and places.
        on_group: Called with what came of a group.

    Returns:
        What came of each kind.
    """
    weights = sum(kind.weight for kind in KINDS)
    tallies = []
    # No TemporaryDirectory: every fork would remove it at its exit.
    home = Path(tempfile.mkdtemp(prefix="dpaudit-faults-"))
    try:
        bench = Bench(home)
        print(f"an undisturbed run takes {bench.seconds:.1f} s", file=sys.stderr)
        for _, group in itertools.groupby(kinds, key=lambda kind: kind.group):
            done = []
            for kind in group:
                tally = Tally(kind.group, kind.name)
                rng = random.Random(f"{seed}/{kind.group}/{kind.name}")
                share = max(1, -(-faults * kind.weight // weights))
                inject(kind, tally, most=share, bench=bench, rng=rng)
                done.append(tally)
                print(f"{tally.line()}, {tally.seconds:.0f} s", file=sys.stderr, flush=True)
            on_group(done)
            tallies += done
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return tallies


def page(tallies: Sequence[Tally]) -> str:
    """The results as Markdown."""
    kinds = sum(tally.faults > 0 for tally in tallies)
    faults = sum(tally.faults for tally in tallies)
    failed = sum(len(tally.failures) for tally in tallies)
    lines = [
        f"**{faults} faults of {kinds} kinds: {failed} failures.** A failure is a finished trial "
        f"lost or changed, a command that hangs ({PATIENCE_SECONDS:g} seconds), a process left "
        "after 5 seconds, a traceback, or an exit code of 0 without a result.",
        "",
        "| what | fault | faults | failures | seconds |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {t.group} | {t.name} | {t.not_here or t.faults} | {len(t.failures)} | {t.seconds:.0f} |"
        for t in tallies
    ]
    return "\n".join([*lines, ""])


def _write(out: Path, tallies: list[Tally]) -> None:
    """Writes what came of one group."""
    out.mkdir(parents=True, exist_ok=True)
    document = {"versions": versions(), "kinds": [asdict(tally) for tally in tallies]}
    group = tallies[0].group.replace(" ", "-")
    (out / f"{group}.json").write_text(json.dumps(document, indent=1) + "\n")


def main() -> None:
    """Parses the options, injects, prints, writes."""
    parser = argparse.ArgumentParser(prog="python benchmarks/faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=500, metavar="N", help="about how many")
    parser.add_argument("--quick", action="store_true", help="one or two of each kind")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="of kinds' names")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the results")
    given = parser.parse_args()
    kinds = sorted(KINDS, key=lambda kind: kind.group)
    kinds = [k for k in kinds if any(word in f"{k.group}: {k.name}" for word in given.only)]
    if not kinds:
        parser.error(f"no kind is called {' or '.join(given.only)}")
    faults = QUICK if given.quick else given.faults

    def write(tallies: list[Tally]) -> None:
        if given.out and tallies:
            _write(given.out, tallies)

    tallies = run(kinds, faults=faults, seed=given.seed, on_group=write)
    print(page(tallies), end="")
    sys.exit(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    main()
