"""`dpaudit bounds`: every bound of a finished run, recomputed without training."""

from __future__ import annotations

from typing import Annotated

from dpaudit.cli import options
from dpaudit.cli.command import option
from dpaudit.cli.console import guarded, results
from dpaudit.errors import InputError, SettingsError
from dpaudit.model.choices import Assumption


@guarded
def bounds(
    run_folder: options.RunFolderArgument,
    delta: Annotated[
        float | None,
        option(metavar="D", help="Delta of the bounds. Default: the run's; any other is post hoc."),
    ] = None,
    confidence: Annotated[
        float | None,
        option(
            metavar="C", help="Confidence of the bounds. Default: the run's; any other is post hoc."
        ),
    ] = None,
    assume: Annotated[
        Assumption | None,
        option(
            metavar="MECHANISM",
            help="Add the estimate for this kind of mechanism: gaussian. Default: none.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Recomputes every bound of a finished run from its stored counts and scores.

    Bounds are corrected as in the run, for its number of attacks and for sequential stopping. A
    delta or confidence that differs from the run's was chosen after seeing the counts, so its
    bounds prove nothing. Estimates are for comparison with other tools: they may exceed the true
    epsilon more often than the confidence allows.
    """
    from dpaudit.results.recomputed import Asked, delta_of, lines_of, recomputed
    from dpaudit.results.result import AuditResult

    result = AuditResult.load(run_folder)
    own = delta_of(result)
    if own is None and (delta is not None or assume is not None):
        raise SettingsError(
            f"{run_folder} audits {result.claim.in_words}, which has no delta: leave out --delta "
            "and --assume"
        )
    asked = Asked(
        result=result,
        delta=own if delta is None else delta,
        confidence=result.confidence if confidence is None else confidence,
        assume=assume,
    )
    found = recomputed(asked)
    if not found.bounds:
        raise InputError(f"{run_folder} scored no attack, so there is nothing to bound")
    output = results()
    if json:
        output.print(found.to_json(), end="")
        return
    output.print("\n".join(lines_of(asked, found.bounds)))
