"""`dpaudit audit`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dpaudit.auditing.plan import DEFAULT_SHADOW_MODELS, Multiplicity
from dpaudit.bounds import ThresholdRule
from dpaudit.cli import options
from dpaudit.cli.console import FailOn, exit_code, guarded, messages, results

Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Run folder. Default: runs/ and a name made of the audit.",
        show_default=False,
    ),
]


@guarded
def audit(
    generator: options.GeneratorName,
    data: options.Data,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    parameter: options.Parameters = None,
    neighbours: options.Relation = None,
    target: options.Target = "farthest",
    attack: options.Attacks = None,
    shadow_models: options.ShadowModels = DEFAULT_SHADOW_MODELS,
    rows: options.Rows = None,
    confidence: options.Confidence = 0.95,
    threshold: options.Threshold = ThresholdRule.CROSS_VALIDATED,
    multiplicity: options.MultiplicityRule = Multiplicity.BONFERRONI,
    sequential: options.Sequential = False,
    one_run: options.OneRun = False,
    canaries: options.Canaries = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Root of every random stream.")] = 0,
    jobs: options.Jobs = None,
    out: Out = None,
    fail_on: Annotated[
        FailOn, typer.Option(help="From which verdict on the exit code is not 0.")
    ] = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Audit a generator: train shadow models in both worlds, attack, bound epsilon.

    With --one-run: train once on a table that holds each of many canaries by a fair coin, and guess
    the coins.

    The same command resumes an interrupted run. Exit codes: 0 no violation found, 1 violation,
    2 wrong use or input, 3 inconclusive or invalid, 4 internal error.
    """
    from dpaudit.auditing.entry import DEFAULT_ATTACKS, prepared, run
    from dpaudit.auditing.target_search import TargetSearch
    from dpaudit.cli.progress import ProgressFace
    from dpaudit.errors import InterruptedRunError
    from dpaudit.model.tables import load
    from dpaudit.plugins.registry import parse_parameters

    complete = prepared(
        generator,
        load(data, schema),
        parameters=parse_parameters(parameter or []),
        epsilon=epsilon,
        delta=delta,
        neighbours=neighbours,
        target=target,
        attacks=tuple(attack or DEFAULT_ATTACKS),
        shadow_models=shadow_models,
        rows=rows,
        confidence=confidence,
        threshold=threshold,
        multiplicity=multiplicity,
        sequential=sequential,
        one_run=one_run,
        canaries=canaries,
        seed=seed,
    )
    folder = out or complete.default_folder
    errors = messages()
    if not quiet:
        errors.print(f"auditing {generator} on {data}; run folder {folder}")
        if isinstance(complete, TargetSearch):
            errors.print(complete.plan)
    try:
        with ProgressFace(errors, quiet=quiet) as progress:
            result = run(complete, folder, jobs=jobs, on_progress=progress)
    except (InterruptedRunError, KeyboardInterrupt) as error:
        again = shlex.join(["dpaudit", *sys.argv[1:]])
        raise InterruptedRunError(f"{str(error) or 'interrupted'}\nresume with: {again}") from None
    output = results()
    if json:
        output.print(result.to_json(), end="")
    elif quiet:
        output.print(str(result).splitlines()[0])
    else:
        output.print(str(result))
        output.print(f"report: {folder / 'report.html'}")
        output.print(f"reproduce: {complete.reproduce}")
    raise typer.Exit(exit_code(result.verdict, fail_on))
