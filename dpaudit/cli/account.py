"""`dpaudit account`: the privacy cost of a PATE ensemble's labels, and how often they are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.check import check
from dpaudit.cli.command import PanelledCommand
from dpaudit.cli.console import guarded, results
from dpaudit.cli.lazy import DefaultingGroup
from dpaudit.errors import SettingsError
from dpaudit.formatting import Row, aligned, counted, headed, percent, rounded_up, row_lines
from dpaudit.model.choices import CLEAR_MAJORITY, Mechanism, Method
from dpaudit.model.claim import Neighbours

if TYPE_CHECKING:
    from dpaudit.account import LabelPlan
    from dpaudit.account.calibration import Prospect
    from dpaudit.results.accounts import LabelCosts


class Mechanisms(StrEnum):
    """The noise mechanisms of the table."""

    ALL = "all"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    NOISY_MAX = "noisy-max"

    @property
    def each(self) -> tuple[Mechanism, ...]:
        """The mechanisms meant, in the order of the table."""
        return tuple(Mechanism) if self is Mechanisms.ALL else (Mechanism(self.value),)


MechanismsOption = Annotated[
    Mechanisms,
    typer.Option(
        metavar="NAME",
        help="Noise mechanism: gaussian (default), laplace, noisy-max, all.",
        show_default=False,
    ),
]
MethodOption = Annotated[
    Method,
    typer.Option(
        metavar="NAME",
        help="Accounting: best (default; the smaller of rdp and pld), rdp, pld, tight (slow).",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Question:
    """The question: the labels of a budget, their noise, or the cost of both."""

    teachers: int
    epsilon: float | None
    delta: float
    labels: int | None
    accuracy: float | None
    scale: float | None
    consensus: float
    method: Method

    def __post_init__(self) -> None:
        if self.labels is not None and self.accuracy is not None:
            raise SettingsError("give either --labels or --accuracy, not both")
        if self.scale is None and self.epsilon is None:
            raise SettingsError("give --epsilon for a budget, or --labels with --scale for a cost")
        if self.scale is not None and self.epsilon is not None:
            raise SettingsError("give either --epsilon or --scale: one follows from the other")
        if self.scale is not None and self.labels is None:
            raise SettingsError("--scale needs --labels: how many labels are released?")
        if self.method is Method.TIGHT and self.labels is None and self.accuracy is None:
            raise SettingsError("--method tight is slow for many labels: say how many, --labels T")

    def answers(self, mechanism: Mechanism) -> list[LabelPlan]:
        """The plans of one mechanism."""
        from dpaudit.account import calibrate
        from dpaudit.account.calibration import USUAL_LABELS, priced

        if self.scale is not None and self.labels is not None:
            plan = priced(
                mechanism=mechanism,
                k=self.teachers,
                labels=self.labels,
                scale=self.scale,
                delta=self.delta,
                method=self.method,
            )
            return [plan]
        assert self.epsilon is not None  # checked above
        counts: Sequence[int | None] = [self.labels]
        if self.labels is None and self.accuracy is None:
            counts = USUAL_LABELS
        return [
            calibrate(
                epsilon=self.epsilon,
                delta=self.delta,
                k=self.teachers,
                labels=count,
                accuracy=self.accuracy,
                consensus=self.consensus,
                mechanism=mechanism,
                method=self.method,
            )
            for count in counts
        ]


account = typer.Typer(
    cls=DefaultingGroup,
    add_completion=False,
    help="Computes privacy costs: of labels (the default command), or of recorded mechanism calls.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@account.command("labels", cls=PanelledCommand)
@guarded
def label_costs(
    teachers: Annotated[int, typer.Option(metavar="K", help="Number of teachers.")],
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="Privacy budget of all labels together.", show_default=False
        ),
    ] = None,
    delta: Annotated[
        float,
        typer.Option(
            metavar="D",
            help="Delta of the budget; choose less than one over the number of records.",
        ),
    ] = 1e-5,
    labels: Annotated[
        int | None,
        typer.Option(
            metavar="T",
            help="Number of labels. Default: a table of 10, 100, 1000 and 10000.",
            show_default=False,
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability that a label is right; finds the largest number of labels.",
            show_default=False,
        ),
    ] = None,
    consensus: Annotated[
        float, typer.Option(metavar="C", help="Share of teachers that agree, for --accuracy.")
    ] = CLEAR_MAJORITY,
    scale: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Noise scale, to compute its cost instead of giving --epsilon; needs --labels.",
            show_default=False,
        ),
    ] = None,
    mechanism: MechanismsOption = Mechanisms.GAUSSIAN,
    method: MethodOption = Method.BEST,
    json: options.Json = False,
) -> None:
    """Computes the privacy cost of a PATE ensemble's labels.

    A label is one bit; its accuracy is computed, too. Finds the noise for a budget (--epsilon), or
    the cost of a noise scale (--scale). Noise is in votes: standard deviation (gaussian) or Laplace
    scale (laplace, noisy-max). The cost holds for adding or removing one record, whatever the votes
    are. Nothing is trained.
    """
    from dpaudit.account.calibration import USUAL_CONSENSUS, prospect

    question = _Question(
        teachers=teachers,
        epsilon=epsilon,
        delta=delta,
        labels=labels,
        accuracy=accuracy,
        scale=scale,
        consensus=consensus,
        method=method,
    )
    rows = [
        prospect(plan, method=method, consensus=(*USUAL_CONSENSUS, consensus))
        for one in mechanism.each
        for plan in question.answers(one)
    ]
    warnings = _warnings(rows)
    if json:
        results().print(_record(question, rows, warnings).to_json(), end="")
        return
    _show(question, rows, warnings)


def _warnings(rows: Sequence[Prospect]) -> list[str]:
    from dpaudit.account.calibration import COIN_FLIP

    poor = [f"{row.plan.mechanism} {row.plan.labels}" for row in rows if row.near_coin_flips]
    if not poor:
        return []
    return [
        f"near coin flips ({', '.join(poor)}): labels are right with probability below "
        f"{COIN_FLIP:g} where {percent(CLEAR_MAJORITY)} of the teachers agree. "
        "Use more teachers, fewer labels or a larger epsilon."
    ]


def _record(question: _Question, rows: Sequence[Prospect], warnings: Sequence[str]) -> LabelCosts:
    from dpaudit.results.accounts import LabelCosts

    return LabelCosts(
        teachers=question.teachers,
        budget=question.epsilon,
        delta=question.delta,
        neighbours=Neighbours.ADD_REMOVE,
        method=question.method,
        plans=tuple(rows),
        warnings=tuple(warnings),
    )


def _show(question: _Question, rows: Sequence[Prospect], warnings: Sequence[str]) -> None:
    from dpaudit.results.phrases import relation

    shares = [f"{100 * each.consensus:.4g} %" for each in rows[0].qualities]
    table = [("mechanism", "labels", "noise", "epsilon", "proof", *shares, "")]
    for row in rows:
        plan = row.plan
        # Noise and cost are rounded up: noise copied from here stays within the budget.
        cost = rounded_up(plan.scale, digits=4), rounded_up(plan.epsilon)
        right = (f"{_floor(each.right):.3f}" for each in row.qualities)
        mark = "coin flip" if row.near_coin_flips else ""
        table.append((plan.mechanism, str(plan.labels), *cost, row.proof, *right, mark))
    budget = "" if question.epsilon is None else f"epsilon {question.epsilon:g}, "
    facts = [
        Row("budget", f"{budget}delta {question.delta:g}, {relation(Neighbours.ADD_REMOVE)}"),
        Row("teachers", str(question.teachers)),
        Row("noise", "in votes: standard deviation (gaussian), Laplace scale (others)"),
        Row("right", f"{', '.join(shares)}: how often a label is right if so many teachers agree"),
    ]
    lines = [
        *headed(_headline(question, rows), facts),
        "",
        *aligned(table, numeric={1, 2, 3, *range(5, 5 + len(shares))}),
    ]
    for warning in warnings:
        lines += ["", *row_lines([Row("warning", warning)])]
    results().print("\n".join(lines))


def _headline(question: _Question, rows: Sequence[Prospect]) -> str:
    """What a budget buys, or what labels cost."""
    if question.epsilon is None:
        least = min(rows, key=lambda row: row.plan.epsilon)
        cost = f"epsilon {rounded_up(least.plan.epsilon)} with {least.plan.mechanism} noise"
        cost += ", the least" if len(rows) > 1 else ""
        return f"ACCOUNT  {counted(least.plan.labels, 'label')} cost {cost}"
    useful = [row.plan.labels for row in rows if not row.near_coin_flips]
    bought = counted(max(useful), "label") if useful else "no labels"
    return f"ACCOUNT  epsilon {question.epsilon:g} pays for {bought} better than coin flips"


def _floor(probability: float) -> float:
    """Three decimals, rounded down: what is marked as below 0.6 never reads 0.600."""
    return math.floor(1000 * probability + 1e-6) / 1000


account.command(cls=PanelledCommand)(check)
