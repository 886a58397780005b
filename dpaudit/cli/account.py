"""`dpaudit account`: what a PATE ensemble's labels cost, and how often they are right.

`dpaudit account labels --simulate` attacks the labels; `dpaudit account check` compares a stated
epsilon with what recorded mechanism calls cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.command import DefaultingGroup, PanelledCommand, option
from dpaudit.cli.console import exit_code, guarded, results, show
from dpaudit.errors import InputError, SettingsError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import Row, aligned, counted, headed, percent, rounded_up, row_lines
from dpaudit.model.choices import CLEAR_MAJORITY, Drawing, FailOn, Mechanism, Method
from dpaudit.model.claim import Neighbours, PrivacyClaim

if TYPE_CHECKING:
    from dpaudit.account.calibration import Prospect
    from dpaudit.labels import LabelAudit
    from dpaudit.results.accounts import AccountCheck, LabelCosts


class Mechanisms(StrEnum):
    """The noise mechanisms of the table."""

    ALL = "all"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    NOISY_MAX = "noisy-max"


Budget = Annotated[
    float | None,
    option(
        metavar="E",
        help="Privacy budget of all labels together; with --simulate the claimed epsilon, by "
        "default the accountant's.",
    ),
]
BudgetDelta = Annotated[
    float,
    option(
        metavar="D",
        help="Delta of the budget; choose less than one over the number of records.",
        shown=True,
    ),
]
Labels = Annotated[
    int | None,
    option(metavar="T", help="Number of labels. Default: a table of 10, 100, 1000 and 10000."),
]
Accuracy = Annotated[
    float | None,
    option(
        metavar="P", help="Probability that a label is right; finds the largest number of labels."
    ),
]
Consensus = Annotated[
    float, option(metavar="C", help="Share of teachers that agree, for --accuracy.", shown=True)
]
Scale = Annotated[
    float | None,
    option(
        metavar="S",
        help="Noise scale, to compute its cost instead of giving --epsilon; needs --labels.",
    ),
]
MechanismsOption = Annotated[
    Mechanisms,
    option(metavar="NAME", help="Noise mechanism: gaussian (default), laplace, noisy-max, all."),
]
MethodOption = Annotated[
    Method,
    option(
        metavar="NAME",
        help="Accounting: best (default; the smaller of rdp and pld), rdp, pld, tight (slow).",
    ),
]
Simulate = Annotated[
    bool,
    option(
        "--simulate",
        help="Audit the labels instead: simulate both worlds and attack the bits with the optimal "
        "test; needs --labels and --scale.",
    ),
]
Votes = Annotated[
    int | None,
    option(
        metavar="N",
        help="Votes for 1 in world out of --simulate; world in has one more. Default: a tie.",
    ),
]
Runs = Annotated[
    int | None, option(metavar="N", help="Simulated runs of each world. Default: 100000.")
]
DrawingOption = Annotated[
    Drawing | None,
    option(
        metavar="UNIT",
        help="What is simulated: bits (default; each label, through the sampler), counts (the "
        "number of ones, for millions of labels).",
    ),
]
SimulationSeed = Annotated[
    int | None, option(metavar="S", help="Seed of the simulation. Default: 0.")
]
SimulationConfidence = Annotated[
    float | None,
    option(metavar="C", help="One-sided confidence of the simulation's bound. Default: 0.95."),
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
    teachers: Annotated[int, option(metavar="K", help="Number of teachers.")],
    epsilon: Budget = None,
    delta: BudgetDelta = 1e-5,
    labels: Labels = None,
    accuracy: Accuracy = None,
    consensus: Consensus = CLEAR_MAJORITY,
    scale: Scale = None,
    mechanism: MechanismsOption = Mechanisms.GAUSSIAN,
    method: MethodOption = Method.BEST,
    simulate: Simulate = False,
    votes: Votes = None,
    runs: Runs = None,
    drawing: DrawingOption = None,
    seed: SimulationSeed = None,
    confidence: SimulationConfidence = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Computes what a PATE ensemble's labels cost, or audits them.

    A label is one bit; its accuracy is computed, too. Finds the noise for a budget (--epsilon), or
    the cost of a noise scale (--scale). Noise is in votes: standard deviation (gaussian) or Laplace
    scale (laplace, noisy-max). The cost holds for adding or removing one record, whatever the votes
    are. Nothing is trained.

    With --simulate both worlds are drawn with constant vote counts that differ by one teacher, and
    the labels are attacked with the optimal (likelihood-ratio) test.
    """
    from dpaudit.account import calibrate
    from dpaudit.account.calibration import USUAL_CONSENSUS, USUAL_LABELS, priced, prospect
    from dpaudit.results.accounts import LabelCosts

    of_simulation = {
        **{"votes": votes, "runs": runs, "drawing": drawing},
        **{"seed": seed, "confidence": confidence},
    }
    simulation: dict[str, Any] = {
        name: value for name, value in of_simulation.items() if value is not None
    }
    each = list(Mechanism) if mechanism is Mechanisms.ALL else [Mechanism(mechanism.value)]
    if simulate:
        if labels is None or scale is None or len(each) > 1 or accuracy is not None:
            raise SettingsError(
                "`simulate` needs `labels`, `scale` and one `mechanism`, and takes no `accuracy`"
            )
        claim = None if epsilon is None else PrivacyClaim(epsilon=epsilon, delta=delta)
        audit = _simulated(each[0], teachers, scale, labels, claim, delta, **simulation)
        show(audit, json=json, quiet=quiet)
        raise typer.Exit(exit_code(audit.verdict, fail_on))
    if simulation:
        raise SettingsError(f"`{next(iter(simulation))}` belongs to a simulation: give `simulate`")
    _check_question(labels, accuracy, epsilon, scale, method)
    given: dict[str, Any] = {"k": teachers, "delta": delta, "method": method}
    if scale is not None and labels is not None:
        plans = [priced(mechanism=one, labels=labels, scale=scale, **given) for one in each]
    else:
        counts: Sequence[int | None] = [labels]
        if labels is None and accuracy is None:
            counts = USUAL_LABELS
        given |= {"epsilon": epsilon, "accuracy": accuracy, "consensus": consensus}
        plans = [calibrate(mechanism=m, labels=count, **given) for m in each for count in counts]
    shares = (*USUAL_CONSENSUS, consensus)
    rows = [prospect(plan, method=method, consensus=shares) for plan in plans]
    costs = LabelCosts(
        teachers=teachers,
        budget=epsilon,
        delta=delta,
        neighbours=Neighbours.ADD_REMOVE,
        method=method,
        plans=tuple(rows),
        warnings=_warnings(rows),
    )
    text = _headline(costs) + "\n" if quiet else _text(costs)
    results().print(costs.to_json() if json else text, end="")


def _simulated(
    mechanism: Mechanism,
    teachers: int,
    scale: float,
    labels: int,
    claim: PrivacyClaim | None,
    delta: float,
    votes: int | None = None,
    **settings: Any,
) -> LabelAudit:
    """Audits simulated labels.

    Args:
        mechanism: The noise mechanism.
        teachers: Number of teachers.
        scale: Its noise scale, in votes.
        labels: Number of released labels.
        claim: What is claimed for them; by default what the accountant says.
        delta: Delta of the accountant's claim.
        votes: Votes for 1 in world out; by default those of a tie.
        settings: Keywords of `dpaudit.labels.audit_labels`.

    Raises:
        SettingsError: If a setting is out of range.
    """
    from dpaudit.account import vote_table
    from dpaudit.labels import VotePair, audit_labels

    table = vote_table(mechanism, teachers, scale).quantised()
    if votes is None:
        pair = VotePair.at_tie(table, labels=labels)
    elif 0 <= votes < teachers:
        pair = VotePair(table=table, labels=labels, votes_in=votes + 1, votes_out=votes)
    else:
        raise SettingsError(f"--votes is {votes}: give a number from 0 to {teachers - 1}")
    return audit_labels(pair, claim or table.claim(labels, delta=delta), **settings)


def _check_question(
    labels: int | None,
    accuracy: float | None,
    epsilon: float | None,
    scale: float | None,
    method: Method,
) -> None:
    """Refuses options that do not ask for the labels of a budget, their noise, or their cost.

    Raises:
        SettingsError: If they contradict one another, or one is missing.
    """
    if labels is not None and accuracy is not None:
        raise SettingsError("give either --labels or --accuracy, not both")
    if scale is None and epsilon is None:
        raise SettingsError("give --epsilon for a budget, or --labels with --scale for a cost")
    if scale is not None and epsilon is not None:
        raise SettingsError("give either --epsilon or --scale: one follows from the other")
    if scale is not None and labels is None:
        raise SettingsError("--scale needs --labels: how many labels are released?")
    if method is Method.TIGHT and labels is None and accuracy is None:
        raise SettingsError("--method tight is slow for many labels: say how many, --labels T")


def _warnings(rows: Sequence[Prospect]) -> tuple[str, ...]:
    from dpaudit.account.calibration import COIN_FLIP

    poor = [f"{row.plan.mechanism} {row.plan.labels}" for row in rows if row.near_coin_flips]
    if not poor:
        return ()
    return (
        f"near coin flips ({', '.join(poor)}): labels are right with probability below "
        f"{COIN_FLIP:g} where {percent(CLEAR_MAJORITY)} of the teachers agree. "
        "Use more teachers, fewer labels or a larger epsilon.",
    )


def _text(costs: LabelCosts) -> str:
    from dpaudit.results.phrases import relation

    rows = costs.plans
    shares = [f"{100 * each.consensus:.4g} %" for each in rows[0].qualities]
    table = [("mechanism", "labels", "noise", "epsilon", "proof", *shares, "")]
    for row in rows:
        plan = row.plan
        # Noise and cost are rounded up: noise copied from here stays within the budget.
        cost = rounded_up(plan.scale, digits=4), rounded_up(plan.epsilon)
        right = (f"{_floor(each.right):.3f}" for each in row.qualities)
        mark = "coin flip" if row.near_coin_flips else ""
        table.append((plan.mechanism, str(plan.labels), *cost, row.proof, *right, mark))
    budget = "" if costs.budget is None else f"epsilon {costs.budget:g}, "
    facts = [
        Row("budget", f"{budget}delta {costs.delta:g}, {relation(costs.neighbours)}"),
        Row("teachers", str(costs.teachers)),
        Row("noise", "in votes: standard deviation (gaussian), Laplace scale (others)"),
        Row("right", f"{', '.join(shares)}: how often a label is right if so many teachers agree"),
    ]
    lines = [
        *headed(_headline(costs), facts),
        "",
        *aligned(table, numeric={1, 2, 3, *range(5, 5 + len(shares))}),
    ]
    for warning in costs.warnings:
        lines += ["", *row_lines([Row("warning", warning)])]
    return "\n".join([*lines, ""])


def _headline(costs: LabelCosts) -> str:
    """What a budget buys, or what labels cost."""
    rows = costs.plans
    if costs.budget is None:
        least = min(rows, key=lambda row: row.plan.epsilon)
        cost = f"epsilon {rounded_up(least.plan.epsilon)} with {least.plan.mechanism} noise"
        cost += ", the least" if len(rows) > 1 else ""
        return f"ACCOUNT  {counted(least.plan.labels, 'label')} cost {cost}"
    useful = [row.plan.labels for row in rows if not row.near_coin_flips]
    bought = counted(max(useful), "label") if useful else "no labels"
    return f"ACCOUNT  epsilon {costs.budget:g} pays for {bought} better than coin flips"


def _floor(probability: float) -> float:
    """Three decimals, rounded down: what is marked as below 0.6 never reads 0.600."""
    return math.floor(1000 * probability + 1e-6) / 1000


@account.command(cls=PanelledCommand)
@guarded
def check(
    calls: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="JSON list of mechanism calls, or the JSON of a replay.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        float | None, option(metavar="E", help="Stated epsilon. Default: that of the file.")
    ] = None,
    delta: Annotated[
        float | None, option(metavar="D", help="Its delta. Default: that of the file, or 0.")
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compares a stated epsilon with what recorded mechanism calls cost.

    The cost comes from dpaudit, from dp-accounting, and from Opacus where it is installed and its
    formulae apply. A violation needs a lower limit above the stated epsilon; exit code 3 means that
    no accountant covers the calls with it, and none refutes it. Nothing is trained.
    """
    try:
        document = parse_json(calls.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"no calls at {calls}: {io_reason(error)}; give a JSON file") from None
    except ValueError:
        raise InputError(f"{calls} is not JSON: give a list of mechanism calls") from None
    if isinstance(document, dict) and "ledger" in document:
        found = _of_replay(calls, epsilon, delta)
    else:
        found = _of_list(document, calls, epsilon, delta)
    show(found, json=json, quiet=quiet)
    raise typer.Exit(exit_code(found.verdict, FailOn.INCONCLUSIVE))


def _of_list(document: Any, path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    from dpaudit.account.accountants import calls_of
    from dpaudit.results.accounts import check_account

    given = calls_of(document, str(path))
    stated = given.epsilon if epsilon is None else epsilon
    if stated is None:
        raise InputError(f"{path} states no epsilon: give it, `epsilon`")
    at = (given.delta or 0.0) if delta is None else delta
    return check_account(given.calls, epsilon=stated, delta=at, source=str(path))


def _of_replay(path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    from dpaudit.model.claim import PrivacyClaim
    from dpaudit.replaying.ledger import recorded_calls
    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.results.accounts import Replayed, check_account

    replay = ReplayRecord.load(path)
    claim = replay.claim if isinstance(replay.claim, PrivacyClaim) else None
    stated = claim.epsilon if claim is not None and epsilon is None else epsilon
    at = claim.delta if claim is not None and delta is None else delta
    if stated is None or at is None:
        raise InputError(
            f"{path} claims {replay.claim.in_words}: state `epsilon` and `delta` to compare"
        )
    proved, spent = 0.0, None  # at another delta
    if claim is not None and at == claim.delta:
        proved, spent = math.inf if replay.proved is None else replay.proved, replay.spent
    recorded = recorded_calls([one for one in replay.ledger if not one.internal])
    unknown = "the worlds part" if replay.parting is not None else recorded.unknown
    return check_account(
        recorded.calls,
        epsilon=stated,
        delta=at,
        source=str(path),
        replay=Replayed(proved, spent, unknown),
    )
