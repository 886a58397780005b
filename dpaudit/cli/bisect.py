"""`dpaudit bisect`: the same audit over releases of a package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli import options
from dpaudit.cli.command import HelpAll, Panel, option
from dpaudit.cli.console import FailOn, exit_code, guarded, messages, results, resumable
from dpaudit.errors import RegistryError, SettingsError
from dpaudit.formatting import (
    Row,
    aligned,
    did_you_mean,
    duration,
    headed,
    percent,
    rounded_down,
)

if TYPE_CHECKING:
    from dpaudit.auditing.bisection import Bisection, ReleasedSubject, ReleaseOutcome
    from dpaudit.replaying.bisection import ReplayedRelease


VersionsOption = Annotated[
    str,
    option(
        metavar="A..B",
        help="Releases to audit, both included; A.. ends at the newest, ..B begins at the oldest.",
        panel=Panel.INPUT,
    ),
]

ReplayOption = Annotated[
    bool,
    option(
        "--replay",
        help="Replay releases, some hundred fits each, in place of audits: both ends of the range, "
        "then halves of it until two neighbours differ.",
        panel=Panel.MORE_AUDITS,
    ),
]


@guarded
@options.takes_settings()
def bisect(
    *,
    name: Annotated[
        str,
        typer.Argument(
            metavar="LIBRARY:METHOD|BUG",
            help="Library and method (see `dpaudit list libraries`), or a bug (see `dpaudit "
            "bugs`), which has its own table and settings.",
            show_default=False,
        ),
    ],
    versions: VersionsOption,
    data: options.Tables = None,
    settings: AuditSettings,
    schema: options.SchemaFile = None,
    replay: ReplayOption = False,
    python: options.Python = None,
    jobs: options.Jobs = None,
    trial_timeout: options.TrialTimeout = None,
    out: Annotated[
        Path | None,
        option(
            metavar="DIR",
            help="Folder for a run folder per release. Default: those of `dpaudit audit`.",
            panel=Panel.OUTPUT,
        ),
    ] = None,
    fail_on: options.FailOnVerdict = FailOn.INCONCLUSIVE,
    json: options.Json = False,
    quiet: options.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Audits several releases of a library and reports where the verdict changes.

    Each release gets its own environment; every other package keeps the version the library pins.
    All audits have the same seed. Each verdict holds at its confidence by itself, not all jointly.

    With `--replay`, a change is that a violation is proved or no longer so, and releases that the
    binary search does not need are left out.

    The same command resumes audits. The exit code is that of the worst release; one without a
    verdict counts as inconclusive.
    """
    del help_all  # its callback has answered
    from dpaudit.auditing.bisection import Bisection, audit_releases, gravest_verdict
    from dpaudit.auditing.progress_bar import ConsoleProgress
    from dpaudit.external.environments import releases_between

    subject = _subject(name, data, schema, settings)
    errors = messages(quiet=quiet)
    errors.print(f"asking the package index for releases of {subject.package}")
    chosen = releases_between(subject.environment, subject.package, versions, python=python)
    errors.print(f"{len(chosen)} releases of {subject.package}: {', '.join(chosen)}")
    if replay:
        record, said = _replayed(subject, chosen, settings.confidence, python, errors.print)
    else:
        audits = []
        with resumable(), ConsoleProgress(errors, quiet=quiet) as progress:
            for release in audit_releases(
                subject,
                chosen,
                out=out,
                python=python,
                jobs=jobs,
                trial_timeout=trial_timeout,
                on_progress=progress,
                on_step=errors.print,
            ):
                audits.append(release)
                errors.print(f"{subject.package} {release.version}: {release.ending}")
        record = Bisection.of(subject.package, audits, confidence=settings.confidence)
        said = _conclusion(audits)
    headline = f"BISECT  {said}"
    if json:
        results().print(record.to_json(), end="")
    else:
        results().print(headline if quiet else "\n".join(_lines(headline, record)))
    raise typer.Exit(exit_code(gravest_verdict(record.releases), fail_on))


def _replayed(
    subject: ReleasedSubject,
    chosen: Sequence[str],
    confidence: float,
    python: Path | None,
    step: Callable[[str], None],
) -> tuple[Bisection, str]:
    """A binary search over releases, and its conclusion in one line.

    Raises:
        RegistryError: If an end of the range cannot be replayed.
    """
    from dpaudit.replaying.bisection import bisection_of, replay_release, search_releases

    def replayed(version: str) -> ReplayedRelease:
        return replay_release(subject, version, python=python, on_step=step)

    found = []
    for release in search_releases(chosen, replayed):
        found.append(release)
        step(f"{subject.package} {release.version}: {release.ending}")
    record = bisection_of(subject.package, found, order=chosen, confidence=confidence)
    if not record.changes:
        ends = " and ".join(dict.fromkeys((chosen[0], chosen[-1])))
        alike = "violations" if found[0].is_violation else "no violations"
        return record, f"no change between the ends: {ends} are {alike}"
    [change] = record.changes
    begins = not found[0].is_violation
    first = "the first violation" if begins else "the first without a violation"
    return record, f"{first} is {change.after}, after {change.before}"


def _subject(
    name: str, data: list[str] | None, schema: Path | None, settings: AuditSettings
) -> ReleasedSubject:
    """The subject of a name; the audit of a bug has no settings but its seed."""
    from dpaudit.auditing.bisection import ReleasedSubject
    from dpaudit.auditing.games import audit_settings, audited_table
    from dpaudit.bugs.bug import known_bugs
    from dpaudit.bugs.run import subject_of_bug
    from dpaudit.plugins.named import libraries, library_named

    place, _, method = name.rpartition(":")
    library = library_named(place or name)
    if library is not None and "@" not in (place or name):
        library.check_method(method if place else "")
        table = audited_table(data, schema, settings)
        return ReleasedSubject.of_library(library, method, table, settings)
    bugs = known_bugs()
    if name in bugs:
        if (data, schema) != (None, None) or settings != audit_settings(seed=settings.seed):
            raise SettingsError(
                f"the bug {name} has its own table and settings: leave out all options of the "
                "audit but `seed`"
            )
        return subject_of_bug(bugs[name], seed=settings.seed)
    known = [*(f"{one.name}:{each}" for one in libraries() for each in one.methods), *bugs]
    raise RegistryError(
        f"bisect needs a LIBRARY:METHOD or a bug, and {name!r} is none{did_you_mean(name, known)}; "
        f"there is {', '.join(known)}"
    )


def _lines(headline: str, record: Bisection) -> list[str]:
    """The conclusion, then a line for each release, and why some have no verdict."""
    table = [("release", "verdict", "bound", "time")]
    for one in record.releases:
        numbers = ("", "")
        if one.verdict is not None and one.seconds is not None:
            bound = "no limit" if one.proved is None else rounded_down(one.proved)
            numbers = bound, duration(one.seconds)
        table.append((one.version, one.verdict or "none", *numbers))
    rows = [Row("bounds", f"each holds at {percent(record.confidence)} confidence by itself")]
    rows += [Row("failed", f"{one.version}: {one.reason}") for one in record.releases if one.reason]
    return [*headed(headline, rows), "", *aligned(table, numeric={2, 3})]


def _conclusion(releases: Sequence[ReleaseOutcome]) -> str:
    """Between which releases the verdict changes, in one line."""
    from dpaudit.auditing.bisection import verdict_changes

    audited = [one for one in releases if one.verdict is not None]
    if not audited:
        return "no release could be audited"
    changes = verdict_changes(releases)
    if not changes:
        alone = "only one release was audited" if len(audited) == 1 else "the verdict never changes"
        return f"{alone}: {audited[0].ending}"
    said = [
        f"between {before.version} ({before.ending}) and {after.version} ({after.ending})"
        for before, after in changes
    ]
    return f"the verdict changes {', '.join(said)}"
