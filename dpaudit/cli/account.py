"""`dpaudit account`: what a PATE ensemble's labels cost, and how often they are right.

`dpaudit account labels --simulate` attacks the labels; `dpaudit account check` compares a stated
epsilon with what recorded mechanism calls cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpaudit.cli import options
from dpaudit.cli.command import DefaultingGroup, PanelledCommand, command_group, option
from dpaudit.cli.console import exit_code, guard, show
from dpaudit.errors import InputError, SettingsError
from dpaudit.files import io_reason, parse_json
from dpaudit.formatting import percent
from dpaudit.model.choices import CLEAR_MAJORITY, Drawing, FailOn, Mechanism, Method
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.setting import Option

if TYPE_CHECKING:
    from dpaudit.account.calibration import Prospect
    from dpaudit.labels import LabelAudit
    from dpaudit.results.accounts import AccountCheck


class Mechanisms(StrEnum):
    """The noise mechanisms of the table."""

    ALL = "all"
    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    NOISY_MAX = "noisy-max"


@dataclass(frozen=True, kw_only=True)
class LabelQuestion:
    """What is asked about the labels of a PATE ensemble.

    Attributes:
        teachers: Number of teachers.
        epsilon: Privacy budget of all labels together; with `simulate` the claimed epsilon.
            Default: with `simulate` the accountant's, else none.
        delta: Delta of the budget; choose less than one over the number of records.
        labels: Number of labels. Default: a table of 10, 100, 1000 and 10000.
        accuracy: Probability that a label is right; finds the largest number of labels.
        consensus: Share of teachers that agree, for `accuracy`.
        scale: Noise scale, to compute its cost instead of giving `epsilon`; needs `labels`.
        mechanism: Noise mechanism: gaussian, laplace, noisy-max, all.
        method: Accounting: best (the smaller of rdp and pld), rdp, pld, tight (slow).
        simulate: Audit the labels instead: simulate both worlds and attack the bits with the
            optimal test; needs `labels` and `scale`.
    """

    teachers: Annotated[int, Option("K")]
    epsilon: Annotated[float | None, Option("E")] = None
    delta: Annotated[float, Option("D")] = 1e-5
    labels: Annotated[int | None, Option("T")] = None
    accuracy: Annotated[float | None, Option("P")] = None
    consensus: Annotated[float, Option("C")] = CLEAR_MAJORITY
    scale: Annotated[float | None, Option("S")] = None
    mechanism: Annotated[Mechanisms, Option("NAME")] = Mechanisms.GAUSSIAN
    method: Annotated[Method, Option("NAME")] = Method.BEST
    simulate: bool = False


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What only a simulation takes; its defaults are those of `dpaudit.labels`.

    Attributes:
        votes: Votes for 1 in world out of `simulate`; world in has one more. Default: a tie.
        runs: Simulated runs of each world. Default: 100000.
        drawing: What is simulated: bits (each label, through the sampler), counts (the number of
            ones, for millions of labels). Default: bits.
        seed: Seed of the simulation. Default: 0.
        confidence: One-sided confidence of the simulation's bound. Default: 0.95.
    """

    votes: Annotated[int | None, Option("N")] = None
    runs: Annotated[int | None, Option("N")] = None
    drawing: Annotated[Drawing | None, Option("UNIT")] = None
    seed: Annotated[int | None, Option("S")] = None
    confidence: Annotated[float | None, Option("C")] = None


account = command_group(
    "Computes privacy costs: of labels (the default command), or of recorded mechanism calls.",
    DefaultingGroup,
)


@account.command("labels", cls=PanelledCommand)
@guard
@options.takes_settings()
def label_costs(
    *,
    asked: LabelQuestion,
    simulation: Simulation,
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

    given = {name: value for name, value in vars(simulation).items() if value is not None}
    mechanism = asked.mechanism
    each = list(Mechanism) if mechanism is Mechanisms.ALL else [Mechanism(mechanism.value)]
    if asked.simulate:
        audit = _audit_simulation(asked, each, **given)
        show(audit, json=json, quiet=quiet)
        raise typer.Exit(exit_code(audit.verdict, fail_on))
    if given:
        raise SettingsError(f"`{next(iter(given))}` belongs to a simulation: give `simulate`")
    _check_question(asked)
    labels, scale, method = asked.labels, asked.scale, asked.method
    common: dict[str, Any] = {"k": asked.teachers, "delta": asked.delta, "method": method}
    if scale is not None and labels is not None:
        plans = [priced(mechanism=noise, labels=labels, scale=scale, **common) for noise in each]
    else:
        counts: Sequence[int | None] = [labels]
        if labels is None and asked.accuracy is None:
            counts = USUAL_LABELS
        for name in ("epsilon", "accuracy", "consensus"):
            common[name] = getattr(asked, name)
        plans = [calibrate(mechanism=m, labels=count, **common) for m in each for count in counts]
    shares = (*USUAL_CONSENSUS, asked.consensus)
    rows = [prospect(plan, method=method, consensus=shares) for plan in plans]
    costs = LabelCosts(
        teachers=asked.teachers,
        budget=asked.epsilon,
        delta=asked.delta,
        neighbours=Neighbours.ADD_REMOVE,
        method=method,
        plans=tuple(rows),
        warnings=_warnings(rows),
    )
    show(costs, json=json, quiet=quiet)


def _audit_simulation(
    asked: LabelQuestion, mechanisms: Sequence[Mechanism], votes: int | None = None, **settings: Any
) -> LabelAudit:
    """Audits simulated labels.

    Args:
        asked: The labels and the claim; by default the claim is the accountant's epsilon.
        mechanisms: The requested noise mechanisms.
        votes: Votes for 1 in world out; by default a tie.
        settings: Keywords of `dpaudit.labels.audit_labels`.

    Raises:
        SettingsError: If a setting is missing or out of range.
    """
    from dpaudit.account import vote_table
    from dpaudit.labels import VotePair, audit_labels

    labels, scale, teachers = asked.labels, asked.scale, asked.teachers
    if labels is None or scale is None or len(mechanisms) > 1 or asked.accuracy is not None:
        raise SettingsError(
            "`simulate` needs `labels`, `scale` and one `mechanism`, and takes no `accuracy`"
        )
    stated, delta = asked.epsilon, asked.delta
    claim = None if stated is None else PrivacyClaim(epsilon=stated, delta=delta)
    table = vote_table(mechanisms[0], teachers, scale).quantised()
    if votes is None:
        pair = VotePair.at_tie(table, labels=labels)
    elif 0 <= votes < teachers:
        pair = VotePair(table=table, labels=labels, votes_in=votes + 1, votes_out=votes)
    else:
        raise SettingsError(f"--votes is {votes}: give a number from 0 to {teachers - 1}")
    return audit_labels(pair, claim or table.claim(labels, delta=delta), **settings)


def _check_question(asked: LabelQuestion) -> None:
    """Refuses options that do not ask for the labels of a budget, their noise, or their cost.

    Raises:
        SettingsError: If options contradict each other or are missing.
    """
    labels, accuracy, epsilon, scale = asked.labels, asked.accuracy, asked.epsilon, asked.scale
    if labels is not None and accuracy is not None:
        raise SettingsError("give either --labels or --accuracy, not both")
    if scale is None and epsilon is None:
        raise SettingsError("give --epsilon for a budget, or --labels with --scale for a cost")
    if scale is not None and epsilon is not None:
        raise SettingsError("give either --epsilon or --scale: one follows from the other")
    if scale is not None and labels is None:
        raise SettingsError("--scale needs --labels: how many labels are released?")
    if asked.method is Method.TIGHT and labels is None and accuracy is None:
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


@account.command(cls=PanelledCommand)
@guard
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
        result = _of_replay(calls, epsilon, delta)
    else:
        result = _of_list(document, calls, epsilon, delta)
    show(result, json=json, quiet=quiet)
    raise typer.Exit(exit_code(result.verdict, FailOn.INCONCLUSIVE))


def _of_list(document: Any, path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    """Checks a list of recorded calls."""
    from dpaudit.account.accountants import calls_of
    from dpaudit.results.accounts import check_account

    given = calls_of(document, str(path))
    stated = given.epsilon if epsilon is None else epsilon
    if stated is None:
        raise InputError(f"{path} states no epsilon: give it, `epsilon`")
    at = (given.delta or 0.0) if delta is None else delta
    return check_account(given.calls, epsilon=stated, delta=at, source=str(path))


def _of_replay(path: Path, epsilon: float | None, delta: float | None) -> AccountCheck:
    """Checks the calls that a replay recorded."""
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
    recorded = recorded_calls([line for line in replay.ledger if not line.internal])
    unknown = "the worlds part" if replay.parting is not None else recorded.unknown
    return check_account(
        recorded.calls,
        epsilon=stated,
        delta=at,
        source=str(path),
        replay=Replayed(proved, spent, unknown),
    )
