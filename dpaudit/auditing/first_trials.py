"""The first trainings of an audit, which refuse a generator that always fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dpaudit.auditing.game import Game, Run
from dpaudit.errors import GeneratorError
from dpaudit.formatting import counted
from dpaudit.game.engine import FIRST_REVIEW
from dpaudit.game.outcomes import StoredOutcome
from dpaudit.game.trial import Trial, TrialStatus


def run_first(game: Game[Any], run: Run[Any]) -> float:
    """Trains a model of each world and, if none gives a table, a few more, before anything else.

    These are ordinary trials of the audit.

    Args:
        game: The game.
        run: The audit under way.

    Returns:
        The seconds of a training that finished; 0 if none did, in a way that may show a record.

    Raises:
        GeneratorError: If all fail alike; says why.
    """
    trials = game.own_trials(run.spec)
    tried = [trial for trial in trials if trial.number == 0]
    ends = _train(tried, game, run)
    finished = [end.seconds for end in ends if end.finished]
    # A model that crashed has ended its worker three times: further ones would say no more.
    if not finished and any(end.status is not TrialStatus.CRASHED for end in ends):
        ends = _train([*tried, *(t for t in trials[:FIRST_REVIEW] if t.number)], game, run)
        finished = [end.seconds for end in ends if end.finished]
    if finished or not game.fail_alike(ends):
        return finished[0] if finished else 0.0
    [(why, _)] = Counter(end.error for end in ends).most_common(1)
    raise GeneratorError(
        f"{run.spec.generator.name} gave no synthetic table in {counted(len(ends), 'training')}: "
        f"{why}; tracebacks: {run.store.log} (after the repair give another `out`)"
    )


def _train(trials: Sequence[Trial], game: Game[Any], run: Run[Any]) -> list[StoredOutcome]:
    """Runs the trials that the folder does not hold yet."""
    role = game.FIRST_TRIAL.role
    run.train(trials, game.payload(run.spec, role), among=game.own_trials(run.spec))
    stored = run.store.outcomes(role)
    return [stored[trial] for trial in trials]
