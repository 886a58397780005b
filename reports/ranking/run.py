"""Do synthetic tables rank the twelve classifiers as real data does?

Usage: python -m reports.ranking.run [--data DIR] [--jobs N]   (resumes)

Writes results/repeats.json after every synthetic table, and at the end the table of README.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit.formatting import percent
from dpaudit.plugins.protocols import FloatArray
from dpaudit.usefulness.experiment import MEAN, Setting, ranking_agreement
from dpaudit.usefulness.report import mean_interval, welch_p_value
from reports import markdown
from reports.command import StudyParser, start
from reports.repeats import REAL, Rows, Source, complete, values

TABLES = ("cervical-cancer",)
EPSILONS, DELTA = (1.0, 10.0), 1e-5
PRIVATE = ("marginals", "pate-gan-marginals", "dp-gan")
ROWS = 548
"""So that a fifth more, held out for setting C, is still fewer than the real records."""
REPEATS, QUICK_REPEATS, QUICK_ROWS = 12, 2, 200
CONFIDENCE = 0.95
NOISE, CONSTANT, FRESH = "noise", "constant", "real records"


def sources(*, quick: bool) -> list[Source]:
    """Controls, and private generators at each budget."""
    budgets = [
        Source(f"{name}, {epsilon:g}", name, {"epsilon": epsilon, "delta": DELTA})
        for name in (PRIVATE[:1] if quick else PRIVATE)
        for epsilon in (EPSILONS[:1] if quick else EPSILONS)
    ]
    return [
        Source(REAL),
        Source(FRESH, "reports.ranking.permuted:Permuted"),
        Source(NOISE, "dpaudit.usefulness.run:UniformRows"),
        Source(CONSTANT, "dpaudit.usefulness.run:EqualRows"),
        *budgets,
        *([] if quick else [Source("gan", "gan")]),
    ]


class Agreement(NamedTuple):
    """How one table ranks classifiers, beside the real table.

    Attributes:
        published: Share of pairs in the same strict order, trained and tested on synthetic rows.
        halved: The same where a pair that is equal in either list counts one half.
        transfer: As `halved`, trained on synthetic and tested on real rows.
        chosen: AUROC on real data of the classifier that is best on synthetic rows, less the mean
            of all: what following it brings over a blind choice.
    """

    published: float
    halved: float
    transfer: float
    chosen: float


def agreement(row: Mapping[str, Any], real: Mapping[str, Any]) -> Agreement:
    """Compares the scores of one synthetic table with those of the real one."""
    names = [name for name in real["auroc"][Setting.REAL] if name != MEAN]
    truth, synthetic, transfer = (
        np.array([of["auroc"][setting][name] for name in names])
        for of, setting in (
            (real, Setting.REAL),
            (row, Setting.SYNTHETIC),
            (row, Setting.TRANSFER),
        )
    )
    best = synthetic == synthetic.max()
    return Agreement(
        ranking_agreement(truth, synthetic),
        with_ties(truth, synthetic),
        with_ties(truth, transfer),
        float(truth[best].mean() - truth.mean()),
    )


def with_ties(one: FloatArray, other: FloatArray) -> float:
    """Ranking agreement in which a pair that is equal in either list counts one half."""
    rows, columns = np.triu_indices(len(one), 1)
    orders = np.sign(one[rows] - one[columns]) * np.sign(other[rows] - other[columns])
    return float((1.0 + orders).mean() / 2.0)


HEADS = (
    *("tables of", "agreement as published", "ties count ½", "tested on real rows, ties ½"),
    *("gain of the best", "scores equal to another", "AUROC on real rows"),
)


def page(found: Rows) -> str:
    """The results as Markdown."""
    if "0" not in found.get(REAL, {}):
        return "\n"
    real = found[REAL]["0"]
    columns = {
        source.name: np.array(
            [
                agreement(row, real)
                for row in found.get(source.name, {}).values()
                if "error" not in row
            ]
        )
        for source in sources(quick=False)
        if source.name != REAL
    }
    columns = {name: one for name, one in columns.items() if len(one) > 1}
    lines = [
        [
            name,
            *map(_mean, one.T),
            percent(round(_tied(found[name]), 2)),
            markdown.number(np.mean(values(found[name], Setting.TRANSFER, MEAN)), 3),
        ]
        for name, one in columns.items()
    ]
    scores = [value for name, value in real["auroc"][Setting.REAL].items() if name != MEAN]
    best = max(scores) - float(np.mean(scores))
    said = (
        f"\n{len(scores)} classifiers; real AUROC from {min(scores):.3f} to {max(scores):.3f}. "
        f"Choosing the best on real data gains {best:.3f} over the mean.\n\n"
    )
    return f"{said}{markdown.table(HEADS, lines)}\n{markdown.bullets(_findings(columns))}"


def _mean(found: FloatArray) -> str:
    low, high = mean_interval(found, confidence=CONFIDENCE)
    return f"{found.mean():.3f} ({low:.3f} to {high:.3f})"


def _tied(rows: Mapping[str, Mapping[str, Any]]) -> float:
    """Share of scores in setting C that another classifier has too."""
    shares = []
    for row in rows.values():
        if "error" not in row:
            own = [v for name, v in row["auroc"][Setting.SYNTHETIC].items() if name != MEAN]
            shares.append(np.mean([own.count(value) > 1 for value in own]))
    return float(np.mean(shares))


def _findings(columns: Mapping[str, FloatArray]) -> Iterator[str]:
    """Which sources rank better than noise, of the private ones, by each measure."""
    if NOISE not in columns:
        return
    private = [name for name in columns if name not in (NOISE, CONSTANT, FRESH)]
    for place, measure in enumerate(HEADS[1:5]):
        # As many hypotheses as sources: Bonferroni.
        better = [
            name
            for name in private
            if len(private) * welch_p_value(columns[name][:, place], columns[NOISE][:, place])
            <= 1.0 - CONFIDENCE
        ]
        said = ", ".join(better) or "none"
        yield f"{measure}: better than noise at 95 %, corrected for their number: {said}."


def main(given: Sequence[str] | None = None) -> None:
    """Measures what the results lack."""
    parser = StudyParser(__file__, __doc__, tables=TABLES, has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    found = complete(
        run,
        "repeats.json",
        sources(quick=run.quick),
        repeats=QUICK_REPEATS if run.quick else REPEATS,
        rows=QUICK_ROWS if run.quick else ROWS,
    )
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(found))
    else:
        print(page(found))


if __name__ == "__main__":
    start(main)
