"""How many teachers should PATE-GAN have? Utility at two budgets, from noise and from marginals.

Usage: python -m reports.number_of_teachers.run [--data DIR] [--jobs N]   (resumes)

Writes results/repeats.json after every synthetic table, and at the end the table of README.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dpaudit.usefulness.experiment import MEAN, Setting
from dpaudit.usefulness.report import MeanInterval, mean_interval, welch_p_value
from reports import markdown
from reports.command import StudyParser, start
from reports.repeats import Rows, Source, complete, values
from reports.utility.tables import MOST_ROWS

TABLES = ("cervical-cancer",)
TEACHERS = (5, 10, 20, 50, 100, 200)
EPSILONS, DELTA = (1.0, 10.0), 1e-5
STARTS = {"pate-gan": "noise", "pate-gan-marginals": "marginals"}
"""Where the records of each generator start, which names its rows in the results."""
REPEATS, QUICK_REPEATS, QUICK_ROWS = 5, 2, 200
CONFIDENCE = 0.95
NOISE, ALONE = "noise", "marginals alone"


def sources(*, quick: bool) -> list[Source]:
    """Noise, marginals without teachers, and PATE-GAN with so many, at each budget."""
    found = [Source(NOISE, "dpaudit.usefulness.run:UniformRows")]
    for epsilon in EPSILONS[:1] if quick else EPSILONS:
        budget = {"epsilon": epsilon, "delta": DELTA}
        found.append(Source(f"{ALONE}, {epsilon:g}", "marginals", budget))
        found += [
            Source(_name(generator, epsilon, teachers), generator, {**budget, "teachers": teachers})
            for generator in STARTS
            for teachers in (TEACHERS[:1] if quick else TEACHERS)
        ]
    return found


def _name(generator: str, epsilon: float, teachers: int) -> str:
    return f"{STARTS[generator]}, {epsilon:g}, {teachers}"


class Cell(NamedTuple):
    """The mean AUROC of one source, over classifiers and repeats.

    Attributes:
        mean: The mean.
        interval: Its confidence interval.
        beats_noise: Whether that its mean is not above that of noise is refuted.
    """

    mean: float
    interval: MeanInterval
    beats_noise: bool


def cell(found: Rows, name: str) -> Cell | None:
    """Summarises a source; None if it or noise has fewer than two tables."""
    of_noise, own = (
        np.array(values(found.get(source, {}), Setting.TRANSFER, MEAN)) for source in (NOISE, name)
    )
    if min(len(of_noise), len(own)) < 2:
        return None
    beats = name != NOISE and welch_p_value(own, of_noise) <= 1.0 - CONFIDENCE
    return Cell(float(own.mean()), mean_interval(own, confidence=CONFIDENCE), beats)


def page(found: Rows) -> str:
    """The results as Markdown: a row for each generator and number of teachers."""
    heads = ("generator", "teachers", *(f"ε = {epsilon:g}" for epsilon in EPSILONS))
    noise = cell(found, NOISE)
    lines = [("uniform noise", "–", _shown(noise), _shown(noise))]
    lines.append((ALONE, "–", *(_shown(cell(found, f"{ALONE}, {one:g}")) for one in EPSILONS)))
    lines += [
        (generator, str(k), *(_shown(cell(found, _name(generator, one, k))) for one in EPSILONS))
        for generator in STARTS
        for k in TEACHERS
    ]
    failed = sum("error" in row for rows in found.values() for row in rows.values())
    tables = sum(len(rows) for rows in found.values())
    said = f"\n{tables} tables; in {failed} the generator failed.\n\n"
    return f"\n{markdown.table(heads, lines)}{said}" + markdown.bullets(_findings(found))


def _shown(of: Cell | None) -> str:
    if of is None:
        return "–"
    low, high = (min(max(limit, 0.0), 1.0) for limit in of.interval)
    return f"{of.mean:.3f} ({low:.3f} to {high:.3f}){'' if of.beats_noise else ' ~'}"


def _findings(found: Rows) -> Iterator[str]:
    """The best number of teachers of each generator and budget, and whether it beats the fewest."""
    for generator in STARTS:
        for epsilon in EPSILONS:
            own = {
                k: np.array(
                    values(found.get(_name(generator, epsilon, k), {}), Setting.TRANSFER, MEAN)
                )
                for k in TEACHERS
            }
            if min(len(one) for one in own.values()) < 2:
                continue
            best, worst = (pick(own, key=lambda k, own=own: own[k].mean()) for pick in (max, min))
            # The best and the worst of six were chosen among 15 pairs, of either order.
            pairs = len(TEACHERS) * (len(TEACHERS) - 1)
            p_value = min(1.0, pairs * welch_p_value(own[best], own[worst]))
            yield (
                f"`{generator}`, ε = {epsilon:g}: best {best} teachers, worst {worst}; "
                f"p = {p_value:.2g} that they are alike (Welch, times {pairs})."
            )


def main(given: Sequence[str] | None = None) -> None:
    """Measures what the results lack."""
    parser = StudyParser(__file__, __doc__, tables=TABLES, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    found = complete(
        run,
        "repeats.json",
        sources(quick=run.quick),
        repeats=QUICK_REPEATS if run.quick else REPEATS,
        rows=QUICK_ROWS if run.quick else MOST_ROWS,
    )
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(found))
    else:
        print(page(found))


if __name__ == "__main__":
    start(main)
