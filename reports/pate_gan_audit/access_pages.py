"""The part `access` of the page: what is proved at each access level, and why no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpaudit.model.choices import Access
from reports.markdown import named, table
from reports.pate_gan_audit.access_exact import LARGEST
from reports.pate_gan_audit.access_settings import REFERENCE, SHOWN, SWITCHES, WORST, Worst
from reports.pate_gan_audit.access_words import WHY
from reports.pate_gan_audit.kept import Record
from reports.pate_gan_audit.published import EPSILON, SIX

Part = Mapping[str, Record]
CASES = ("worst", "average")

INTRODUCTION = """\
In a valid game (equal rows and public bounds in both worlds; original without the copied labels,
which its published audit's copy has not, either), what is the largest ε proved of
each implementation, and of each deviation alone on the common trainer, by what the attacker sees?
*output*: synthetic rows. *model*: also the student's (or critic's) score of the target and all
weights. *released*: also the student's training set in sums, its records with their noisy labels,
which PATE's theorem lets one publish. One training serves one attack on the rows, two on the model
and one on what is released, each at a fourth of the error probability: the three bounds of a row
hold together at 95 %. They are from fair coins or exact, whichever was chosen on other trials.

The **worst case** is equal records of zeros (for `bounds-from-data` zeros and halves) with and
without one of ones. The claim is (1, 1e-5) at any setting, so λ, k, the columns and the number of
iterations are whatever showed most on trials of other seeds; the table of settings has them. One
audit, of `bounds-from-data`, was run again on another pair, after a pair whose other records are
all alike had proved nothing: its level is a little below 95 %.
**Average** is Cervical Cancer with record 397, λ 0.001, k 5, few models (original and updated 300,
the other four 100, the common trainer 60; 60 % of them are scored) and fewer iterations than
published: 33 spend the budget, of updated 158; original and turing have 300, synthcity 5. It shows
how hard one record among 686 is to see, not that it is safe.
The audits are run by this study's own loop with dpaudit's parts, in one process: the trainer
without a deviation is their null control, `labels-copied` in the worst case the positive one.
A dash: not run.

*Labels alone* is exact, not measured: the ε at δ 1e-5 that a perfect attacker gets from the labels
at the published settings (686 records, k 5, λ 0.001, at most 1000 iterations), if the target moves
the votes of every query, one vote or, where the partition lets one record reach all teachers, all
of them. *At most*: free labels are thrown away, and count here as if they were not. Without a
deviation it is 0.35, for the accountant charges much more than such labels tell. Where it is below
1 and nothing else depends on the table, the deviation breaks the proof but not the claim.
"""


def section(access: Part, exact: Part) -> str:
    """The section of the page."""
    if not access:
        return "Not run yet.\n"
    heads = ("", *(f"{case}: {level}" for case in CASES for level in SHOWN))
    rows = [_row(name, access, exact) for name in (*SIX, REFERENCE, *SWITCHES)]
    settings = [(f"`{name}`", *_settings(one)) for name, one in WORST.items()]
    settings.append(("others", *_settings(Worst())))
    return "\n".join(
        [
            INTRODUCTION,
            table((*heads, "labels alone", "why"), rows),
            "Settings of the worst case:\n",
            table(
                ("", "columns", "records", "k", "λ", "iterations", "models", "rows", "classifier"),
                settings,
            ),
        ]
    )


def answers(access: Part) -> Iterator[str]:
    """For which of the six a violation is proved, from which level on."""
    for case in CASES:
        own = {name: access.get(f"{case}-{name}") for name in SIX}
        done = {name: record["proved"] for name, record in own.items() if record is not None}
        if not done:
            continue
        first = {
            name: next((str(level) for level in SHOWN if proved[str(level)] > EPSILON), None)
            for name, proved in done.items()
        }
        caught = [f"{name} at {level}" for name, level in first.items() if level]
        missed = [name for name, level in first.items() if not level]
        yield (
            f"**{case.capitalize()} case, valid game: ε > {EPSILON:g} is proved for {len(caught)} "
            f"of {len(done)} implementations**{named(caught)}."
            + (f" Not for {', '.join(missed)}." if missed else "")
        )
    alone = {
        name: record["proved"][str(Access.RELEASED)]
        for name in SWITCHES
        if (record := access.get(f"worst-{name}")) is not None
    }
    if alone:
        above = [f"`{name}`" for name, proved in alone.items() if proved > EPSILON]
        yield (
            f"**One deviation alone**: ε > {EPSILON:g} is proved for {len(above)} of "
            f"{len(alone)}{named(above)}."
        )


def _row(name: str, access: Part, exact: Part) -> Sequence[str]:
    cells = []
    for case in CASES:
        record = access.get(f"{case}-{name}")
        for level in SHOWN:
            cells.append("–" if record is None else _cell(record["proved"][str(level)]))
    shown = name if name in SIX else f"`{name}`"
    return (shown, *cells, _exact(exact.get(name)), WHY[name])


def _cell(proved: float) -> str:
    return f"**{proved:.2f}**" if proved > EPSILON else f"{proved:.2f}"


def _exact(record: Record | None) -> str:
    if record is None:
        return "–"
    if record["epsilon"] is None:
        return "no votes"
    if record["epsilon"] >= LARGEST:
        return f"**over {LARGEST:g}**"
    if record["at_most"]:
        return f"at most {record['epsilon']:.2f}"
    return _cell(record["epsilon"])


def _settings(case: Worst) -> Sequence[object]:
    return (
        f"{case.columns} {case.kind}",
        case.records,
        case.teachers,
        f"{case.gamma:g}",
        case.iterations,
        case.models,
        case.rows,
        "chosen" if case.chosen else "logistic",
    )
