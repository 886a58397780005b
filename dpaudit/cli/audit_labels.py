"""`dpaudit audit-labels`: the white-box audit of released label bits."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import FailOn, exit_code, guarded, show
from dpaudit.errors import SettingsError
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.model.choices import Drawing, Mechanism
from dpaudit.model.claim import PrivacyClaim


@guarded
def audit_labels(
    teachers: Annotated[int, option(metavar="K", help="Number of teachers.")],
    labels: Annotated[int, option(metavar="T", help="Number of released labels.")],
    scale: Annotated[
        float,
        option(
            metavar="S",
            help="Noise scale in votes: standard deviation (gaussian), 1/gamma (laplace, "
            "noisy-max).",
        ),
    ],
    mechanism: Annotated[
        Mechanism,
        option(metavar="NAME", help="Noise mechanism: gaussian (default), laplace, noisy-max."),
    ] = Mechanism.GAUSSIAN,
    epsilon: Annotated[
        float | None, option(metavar="E", help="Claimed epsilon. Default: the accountant's.")
    ] = None,
    delta: Annotated[float, option(metavar="D", help="Claimed delta.", shown=True)] = 1e-5,
    votes: Annotated[
        int | None,
        option(
            metavar="N", help="Votes for 1 in world out; world in has one more. Default: a tie."
        ),
    ] = None,
    runs: Annotated[
        int, option(metavar="N", help="Simulated runs of each world.", shown=True)
    ] = LabelAuditSettings.runs,
    drawing: Annotated[
        Drawing,
        option(
            metavar="UNIT",
            help="What is simulated: bits (default; each label, through the sampler), counts (the "
            "number of ones, for millions of labels).",
        ),
    ] = LabelAuditSettings.drawing,
    seed: options.Seed = LabelAuditSettings.seed,
    confidence: options.Confidence = LabelAuditSettings.confidence,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits the one-bit labels that a PATE ensemble releases, which its proof protects.

    Simulates both worlds with constant vote counts that differ by one teacher, and attacks the
    labels with the optimal (likelihood-ratio) test. Nothing is trained.
    """
    from dpaudit.account import vote_table
    from dpaudit.labels import VotePair, run_label_audit

    table = vote_table(mechanism, teachers, scale).quantised()
    if votes is None:
        pair = VotePair.at_tie(table, labels=labels)
    elif 0 <= votes < teachers:
        pair = VotePair(table=table, labels=labels, votes_in=votes + 1, votes_out=votes)
    else:
        raise SettingsError(f"--votes is {votes}: give a number from 0 to {teachers - 1}")
    if epsilon is None:
        claim = table.claim(labels, delta=delta)
    else:
        claim = PrivacyClaim(epsilon=epsilon, delta=delta)
    settings = LabelAuditSettings(runs=runs, seed=seed, confidence=confidence, drawing=drawing)
    result = run_label_audit(pair, claim, settings)
    show(result, json=json, quiet=quiet)
    raise typer.Exit(exit_code(result.verdict, fail_on))
