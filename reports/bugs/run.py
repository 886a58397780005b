"""Every bug of the corpus that is proved: the broken release and its twin, replayed and audited.

Usage: python -m reports.bugs.run [ID ...]   (about 40 minutes on two cores; resumes)

Writes results/ID.json after each, and the table of README.md. Environments are made where they are
not there yet; their making is not timed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from dpaudit.bugs.bug import Bug, Status, known_bugs
from dpaudit.bugs.run import BugOutcome, BugRun, ReplayEvidence, SideFound, run_bugs
from reports import markdown
from reports.command import StudyParser, start

HEADS = (
    *("bug", "what ran", "claim", "replay", "spent", "shown", "fits"),
    *("rows", "proved of", "seconds"),
)
QUICK_MODELS = 20


def main(given: Sequence[str] | None = None) -> None:
    """Runs the bugs that the results lack; writes the page's table if they are its own."""
    bugs = {name: bug for name, bug in known_bugs().items() if bug.status is Status.PROVED}
    parser = StudyParser(__file__, __doc__, parts=tuple(bugs), has_jobs=True)
    run = parser.run_of(parser.parse_args(given))
    chosen = [_quick(bugs[name]) if run.quick else bugs[name] for name in run.parts]
    how = BugRun(run.out, black_box=True, keeps_folders=False, jobs=run.jobs, on_step=_say)
    for ending in run_bugs(chosen, how):
        _say(
            ending.reason
            or ("proved" if ending.outcome and ending.outcome.is_proved else "NOT PROVED")
        )
    found = [run.out / f"{name}.json" for name in bugs]
    loaded = (BugOutcome.load(path) for path in found if path.exists())
    done = [one for one in loaded if one.is_whole]
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(done))


def page(done: Sequence[BugOutcome]) -> str:
    """The results as a Markdown table."""
    return markdown.table(HEADS, [row for one in done for row in _rows(one)])


def _rows(one: BugOutcome) -> list[Sequence[object]]:
    claim = f"{one.claim.value:g}"
    return [
        (f"`{one.id}`" if name == "broken" else "", side.account, claim, *_found(side))
        for name, side in one.sides()
    ]


def _found(side: SideFound) -> tuple[str, ...]:
    replay, audit = side.replay, side.audit
    assert audit is not None
    return (
        "–" if replay.verdict is None else f"{replay.verdict}{' of the proof' * replay.of_proof}",
        markdown.number(replay.spent),
        _shown(replay),
        str(replay.fits),
        audit.verdict,
        f"{markdown.number(audit.proved)} of {markdown.number(audit.provable)}",
        f"{replay.seconds:.0f} + {audit.seconds:.0f}",
    )


def _shown(replay: ReplayEvidence) -> str:
    """The lower bound that the release shows."""
    if replay.verdict is None:
        return "–"
    return "no limit" if replay.proved is None else markdown.number(replay.proved)


def _quick(bug: Bug) -> Bug:
    assert bug.case is not None
    small = {**bug.case.settings, "shadow_models": QUICK_MODELS}
    return replace(bug, case=replace(bug.case, settings=small))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    start(main)
