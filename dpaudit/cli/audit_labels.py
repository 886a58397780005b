"""`dpaudit audit-labels`: the white-box audit of released label bits."""

from __future__ import annotations

from typing import Annotated

import typer

from dpaudit.cli import options
from dpaudit.cli.console import FailOn, exit_code, guarded, show
from dpaudit.errors import SettingsError
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.model.choices import Drawing, Mechanism
from dpaudit.model.claim import PrivacyClaim


@guarded
def audit_labels(
    teachers: Annotated[int, typer.Option(metavar="K", help="Number of teachers.")],
    labels: Annotated[int, typer.Option(metavar="T", help="Labels released, all of them.")],
    scale: Annotated[
        float,
        typer.Option(metavar="S", help="Of the noise, in votes: standard deviation, or 1/gamma."),
    ],
    mechanism: Annotated[
        Mechanism, typer.Option(help="Which noise draws the labels.")
    ] = Mechanism.GAUSSIAN,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="E", help="Epsilon of the claim. Default: the accountant's.", show_default=False
        ),
    ] = None,
    delta: Annotated[float, typer.Option(metavar="D", help="Delta of the claim.")] = 1e-5,
    votes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Votes for 1 in world out; one more in world in. Default: the tie.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option(metavar="N", help="Simulated runs of each world.")
    ] = LabelAuditSettings.runs,
    drawing: Annotated[
        Drawing,
        typer.Option(help="Every bit through the sampler, or only their number (for millions)."),
    ] = LabelAuditSettings.drawing,
    seed: options.Seed = LabelAuditSettings.seed,
    confidence: options.Confidence = LabelAuditSettings.confidence,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit with an error from this verdict on.")
    ] = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audits label bits that a PATE ensemble releases: the attack sees what the proof protects.

    Votes are held at one count in each world, one teacher apart; no attack does better.
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
