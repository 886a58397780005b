"""The tables of the study, written from its numbers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from reports.calibration.audits import rates
from reports.calibration.cells import TOLERANCES, Cell, shown
from reports.calibration.paths import CASES, FULL, rate
from reports.calibration.simulations import CANARIES, MODELS, RECORDS, ROWS
from reports.markdown import table

Record = dict[str, Any]

INTRODUCTION = """\
# Calibration: how often is an honest generator flagged?

A bound at 95 % confidence may exceed the true epsilon in 5 % of audits, not in more. Here every
path of an audit is put to that test on mechanisms whose epsilon is known (randomised response,
Laplace and Gaussian counts, a null), and every rule alone, at nominal 5 % and 1 %; and so are the
rules of other tools.

    python -m reports.calibration.run

runs these parts:

- `paths`: thousands of simulated audits on every path
  ([results/paths.json](results/paths.json); about two hours on one core). `--path NAME` runs one
  path alone, `--audits N` more audits, `--again` forgets what was found before.
- `rules`: each rule alone ([results/rules.json](results/rules.json), the same bytes every time;
  about half an hour on one core).
- `audits`: whole audits of honest generators (`results/audits.json`; about 90 minutes on one core).
- `defaults`: two thousand more with all defaults (`results/defaults.json`; about three hours on
  one core).
- `pages`: the pictures and this page.

`paths`, `audits` and `defaults` go on where they were stopped.

**Reading the tables.** A rate is the share of audits whose bound lies above the true epsilon, with
its 99 % Clopper-Pearson interval where it was simulated; "enumerated" rates are sums over all
outcomes, without error. A rate **holds** if it is shown to be within its nominal level: an
enumerated one if it is at most that, a simulated one if the upper end of its interval is at most
the nominal 5 % plus {tolerance:g} points, or the nominal 1 % plus {strict:g} point (of 3,000 audits
at a true rate of 5 % the upper end is near 6.1 %). It is **not shown** if the upper end is above
that, and does **not** hold if the lower end, or an enumerated rate, is above the nominal level. A
rule holds if all of its rates do.
"""

PATHS = """\
## Every path

The trials of these audits are simulated, and all that follows is the code of an audit: coins for
the worlds, fitting, the choice of attack and bound, guesses, the bound itself. What a trial shows
is drawn from a mechanism exactly at its claim: ε 1, μ 1, ρ 1/2, or the curve of the Gaussian
mechanism with μ 1 (the true value of a null is 0). Audits have {models} shadow models unless the
path says otherwise, {records} records per model where there are many, {canaries} canaries in one
run, {rows} rows with coins in a released table.

The minimum detectable value is the leak that the audit states to catch with 80 % power, in the
quantity of the claim, before it starts; measured power is the share of {leaking} simulated audits
of a leak of exactly that size that prove more than is claimed, with its 99 % interval.

{headline}
{table}
They were run with code of digest {codes}.
{left}"""

RULES = """\
## Worst rate of each rule

"Best of ten attacks" has ten attacks on separate targets, each exactly at its budget. Guesses of
preset weight, and bets, are also put to the mechanism that shows as much as any (ε, δ)-DP mechanism
can: it reveals the coin with probability δ and else answers by randomised response. "n" counts
models per world, but for preset weights and bets, where it counts trials. The worst of many
simulated cells lies above its own true rate by selection.
"""

EARLIER: tuple[tuple[str, str, int, float], ...] = (
    ("exact, preset threshold", "randomised response ε 1, the bit", 400, 0.049),
    ("clopper_pearson, preset threshold", "randomised response ε 2, the bit", 400, 0.020),
    ("all of alpha for each rate", "randomised response ε 4, the bit", 1000, 0.058),
    ("all of alpha for each rate", "randomised response ε 3, the bit", 2000, 0.064),
    ("all of alpha for each rate", "randomised response ε 5, the bit", 10000, 0.092),
    ("jeffreys", "randomised response ε 4, the bit", 1000, 0.0562),
    ("joint_beta", "randomised response ε 1, the bit", 100, 0.112),
    ("joint_beta", "randomised response ε 4, the bit", 100, 0.262),
    ("best threshold on the test data (Clopper-Pearson)", "Laplace count ε 1", 399, 0.069),
    ("best threshold on the test data (Clopper-Pearson)", "Laplace count ε 4", 999, 0.102),
    ("best threshold on the test data (Jeffreys)", "Laplace count ε 1", 399, 0.118),
    ("DKW band with Delta-Siege's constant", "Laplace count ε 0.1", 399, 0.231),
    ("DKW band with Delta-Siege's constant", "Laplace count ε 1", 399, 0.161),
    ("Clopper-Pearson looked at every 10 pairs", "randomised response ε 1", 2000, 0.086),
    ("Clopper-Pearson looked at every 10 pairs", "randomised response ε 4", 2000, 0.196),
)
"""Rates at nominal 5 % that were measured before, by other code: rule, where, n, rate."""


WHOLE = """\
## Whole audits

{audits} audits through `dpaudit.audit`: game, controls, features, attacks, thresholds, bounds,
verdict. The generators keep their claims exactly, so that no smaller ε or δ holds (the true ε of a
null is 0), and the attacks read off what is released, except on the path with the default ones.
Audits in two worlds have {models} shadow models. The bound may exceed the true ε in {nominal:g} %
of audits; it did in {above} of {audits}, so with 99 % confidence in {low} to {high}.
They were run with code of digest {codes}.
"""

DEFAULTS = """\
## Default audits

{audits} audits as `dpaudit audit` runs them, with {models} shadow models and all defaults: three
attacks, the target that the table exposes most, and which attack, scorer and bound to trust chosen
on the fitting part. The generators keep their claims exactly, as above. The bound may exceed the
true ε in {nominal:g} % of audits; it did in {above} of {audits}, so with 99 % confidence in {low}
to {high}. They were run with code of digest {codes}.
"""


def readme(
    found: Record,
    paths: Record | None = None,
    audited: Record | None = None,
    defaults: Record | None = None,
) -> str:
    """The page of the folder.

    Args:
        found: What the rules gave.
        paths: What the paths gave; their section is left out without.
        audited: What whole audits gave; their section is left out without.
        defaults: The same of default audits.
    """
    cells = found["cells"]
    parts = [
        INTRODUCTION.format(tolerance=100 * TOLERANCES[0.05], strict=100 * TOLERANCES[0.01]),
        *([_paths(paths)] if paths else ()),
        RULES,
        worst(cells),
        "![Worst false-violation rates](results/rates.svg)\n",
        *(whole(audited) if audited else ()),
        *(whole(defaults, DEFAULTS) if defaults else ()),
        *_strength(found),
        "## Cells and draws\n",
        _coverage(cells),
        "## Against earlier measurements\n",
        _earlier(cells),
    ]
    rule = "exact, preset threshold"
    parts += [f"## Every cell of: {rule}\n", _pivot(cells, rule)]
    return "\n".join(parts)


def _strength(found: Record) -> list[str]:
    return [
        "## How much is proved\n",
        _tightness(found["tightness"]),
        "![Median bound over true epsilon](results/tightness.svg)\n",
        "Mechanisms that break a claim of epsilon 1 at the delta given: the median bound, and the\n"
        "share of audits that prove the violation. The first three rules see the same trials. The\n"
        "others do not hold (above); they fit nothing, and use all trials.\n",
        _violations(found["violations"]),
        "Trials until the e-process proves that randomised response with the true epsilon breaks\n"
        "a claim of epsilon 1 (delta 1e-5), tested after every trial, by an attack that knows the\n"
        "odds; a run without proof counts as one trial beyond the cap.\n",
        _speed(found["speed"]),
        "![Trials until proof](results/speed.svg)\n",
    ]


def worst(cells: Sequence[Record]) -> str:
    """The table that matters: the worst cell of every rule, ours and those of other tools."""
    lines = []
    for ours, owner in ((True, "dpaudit"), (False, "others")):
        rules = list(dict.fromkeys(cell["rule"] for cell in cells if cell["ours"] is ours))
        rules.sort(key=lambda rule: -worst_cell(cells, rule, 0.05)["rate"])
        for rule in rules:
            cell, strict = (worst_cell(cells, rule, nominal) for nominal in (0.05, 0.01))
            lines.append(
                (
                    owner,
                    rule,
                    _percent(cell["rate"]),
                    _interval(cell),
                    f"{cell['where']}, n {cell['n']}",
                    _percent(strict["rate"]) if strict else "–",
                    shown(cell for cell in cells if cell["rule"] == rule).value,
                )
            )
    heads = ("", "rule", "worst rate at nominal 5 %", "99 % interval", "where", "at 1 %", "holds")
    return table(heads, lines)


def _listed(codes: Iterable[str]) -> str:
    """Digests of code, each once."""
    return ", ".join(f"`{code}`" for code in dict.fromkeys(codes))


def _paths(found: Record) -> str:
    counted = [case[part] for case in found["cases"].values() for part in ("honest", "leaking")]
    codes = [counts["code"] for counts in counted if counts["audits"]]
    return PATHS.format(
        models=MODELS,
        records=RECORDS,
        canaries=CANARIES,
        rows=ROWS,
        leaking=FULL.leaking,
        headline=headline(found),
        table=every_path(found),
        codes=_listed(codes),
        left=_left(found),
    )


def _left(found: Record) -> str:
    """What the study has and its results have not, or not in full, if anything."""
    cases = found["cases"]
    names = [
        name
        for name, case in CASES.items()
        if name not in cases
        or cases[name]["honest"]["audits"] < (FULL.failing if case.fails else FULL.honest)
        or (cases[name]["stated"] is not None and not cases[name]["leaking"]["audits"])
    ]
    return f"\nLeft to run, in part or as a whole: {'; '.join(names)}.\n" if names else ""


def every_path(found: Record) -> str:
    """The table of paths: how often each flags, and what it catches of what it states.

    Args:
        found: What `paths` gave.
    """
    lines = []
    for case in _audited(found):
        cell, stated, caught = rate(case), case["stated"], "–"
        if case["leaking"]["audits"]:
            leak = rate(case, "leaking")
            caught = f"{_percent(leak.rate)} ({_limits(leak)})"
        lines.append(
            (
                case["path"],
                case["mechanism"],
                cell.draws,
                _percent(cell.rate),
                _limits(cell),
                shown([cell.record()]).value,
                "–" if stated is None else f"{stated:.2f}",
                caught,
            )
        )
    heads = (
        "path",
        "mechanism",
        "audits",
        "above the true value",
        "99 % interval",
        "holds",
        "minimum detectable (80 % power)",
        "measured power",
    )
    return table(heads, lines)


def headline(found: Record) -> str:
    """The largest rate of all paths, as a sentence."""
    cells = [rate(case) for case in _audited(found)]
    largest = max(cells, key=lambda cell: cell.rate)
    holding = sum(shown([cell.record()]) == "yes" for cell in cells)
    return (
        f"The largest rate is {_percent(largest.rate)} of {largest.draws:,} audits "
        f"({_limits(largest)}; {largest.rule}: {largest.where}). {holding} of {len(cells)} hold.\n"
    )


def _audited(found: Record) -> list[Record]:
    return [case for case in found["cases"].values() if case["honest"]["audits"]]


def _limits(cell: Cell) -> str:
    return f"{_percent(cell.low)} to {_percent(cell.high)}"


def whole(audited: Record, about: str = WHOLE) -> list[str]:
    """A section of whole audits, beginning with what it is about."""
    cells, verdicts = rates(audited), Counter[str]()
    for case in audited["cases"].values():
        verdicts.update(case["verdicts"])
    *groups, total = cells
    shown = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return [
        about.format(
            audits=total.draws,
            nominal=100 * total.nominal,
            above=sum(case["above"] for case in audited["cases"].values()),
            low=_percent(total.low),
            high=_percent(total.high),
            models=audited["shadow_models"],
            codes=_listed(code for case in audited["cases"].values() for code in case["codes"]),
        ),
        f"Verdicts: {shown}.\n",
        table(
            ("path", "mechanism", "audits", "above the true ε", "99 % interval"),
            (
                (
                    cell.rule,
                    cell.where,
                    cell.draws,
                    _percent(cell.rate),
                    _limits(cell),
                )
                for cell in (*groups, total)
            ),
        ),
    ]


def worst_cell(cells: Sequence[Record], rule: str, nominal: float) -> Record:
    """The cell of a rule with the largest rate; empty if the rule has none at this nominal."""
    own = [cell for cell in cells if cell["rule"] == rule and cell["nominal"] == nominal]
    return max(own, key=lambda cell: cell["rate"], default={})


def _percent(rate: float) -> str:
    return f"{100 * rate:.2f} %" if rate < 0.1 else f"{100 * rate:.1f} %"


def _interval(cell: Record) -> str:
    if not cell["draws"]:
        return "enumerated"
    return f"{_percent(cell['low'])} to {_percent(cell['high'])} ({cell['draws']} draws)"


def _tightness(found: Sequence[Record]) -> str:
    return table(
        ("rule", "mechanism", "fitted + scored trials", "median bound", "of true ε", "draws"),
        (
            (
                one["rule"],
                one["where"],
                f"{one['fitted']} + {one['scored']}",
                f"{one['median_bound']:.3f}",
                f"{one['tightness']:.2f}",
                one["draws"],
            )
            for one in found
        ),
    )


def _violations(found: Sequence[Record]) -> str:
    return table(
        ("mechanism", "ε", "δ", "models", "rule", "holds", "median bound", "proves", "draws"),
        (
            (
                one["where"],
                f"{one['epsilon']:.3g}",
                f"{one['delta']:g}",
                f"2 x {one['per_world']}",
                one["rule"],
                "yes" if one["holds"] else "**no**",
                f"{one['median_bound']:.3f}",
                f"{100 * one['proved']:.0f} %",
                one["draws"],
            )
            for one in found
        ),
    )


def _speed(found: Sequence[Record]) -> str:
    return table(
        ("true ε", "alpha", "mean trials", "90 % quantile", "without proof at the cap", "draws"),
        (
            (
                f"{one['epsilon']:g}",
                one["nominal"],
                f"{one['mean']:.1f}",
                one["p90"],
                f"{one['unproved']} at {one['cap']}",
                one["draws"],
            )
            for one in found
        ),
    )


def _coverage(cells: Sequence[Record]) -> str:
    rows = []
    for rule in dict.fromkeys(cell["rule"] for cell in cells):
        own = [cell for cell in cells if cell["rule"] == rule]
        for n in sorted({cell["n"] for cell in own}):
            same = [cell for cell in own if cell["n"] == n]
            draws = sorted({cell["draws"] for cell in same})
            rows.append((rule, n, len(same), ", ".join(str(d or "enumerated") for d in draws)))
    return table(("rule", "n", "cells", "draws per cell"), rows)


def _earlier(cells: Sequence[Record]) -> str:
    rows = []
    for rule, where, n, before in EARLIER:
        key = {"rule": rule, "where": where, "n": n, "nominal": 0.05}
        for cell in cells:
            if key.items() <= cell.items():
                rows.append(
                    (
                        rule,
                        f"{where}, n {n}",
                        _percent(before),
                        _percent(cell["rate"]),
                        _interval(cell),
                    )
                )
    return table(("rule", "where", "earlier", "here", "99 % interval"), rows)


def _pivot(cells: Sequence[Record], rule: str) -> str:
    own = [cell for cell in cells if cell["rule"] == rule]
    sizes = sorted({cell["n"] for cell in own})
    rates = {(cell["where"], cell["n"], cell["nominal"]): cell["rate"] for cell in own}

    def both(where: str, n: int) -> str:
        shown = [rates.get((where, n, nominal)) for nominal in (0.05, 0.01)]
        return " / ".join(_percent(rate) for rate in shown if rate is not None) or "–"

    return table(
        ("at nominal 5 % / 1 %", *(f"n {n}" for n in sizes)),
        (
            (where, *(both(where, n) for n in sizes))
            for where in dict.fromkeys(cell["where"] for cell in own)
        ),
    )
