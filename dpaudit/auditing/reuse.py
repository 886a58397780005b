"""Whether an audit's trials have been judged before.

Random streams are named by what is trained on what, so a larger audit with the same seed, or one
with another attack, claim or threshold, has the same trials as the smaller one. If it is chosen
after the first result, it is a second chance: the first audit has used the whole error probability,
so a later audit of the same trials proves no violation. Each run folder therefore keeps salted
digests of its streams and its settings, which later audits compare.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import RunFolderError
from dpaudit.files import parse_json, write_whole
from dpaudit.formatting import clipped, listed, printable
from dpaudit.game.store import PRIVATE_FILE, RunFolder, Salt, new_salt, salt_of
from dpaudit.results.result import RESULT_FILE
from dpaudit.results.verdict import FRESH_TRIALS, Check, Consequence

STREAMS_FILE = "streams.json"
"""File of a run folder that identifies its trials and the audits that judged them before."""
MOST_BYTES = 2**20
"""Size limit of such a file; dpaudit writes no larger one."""
MOST_NAMED = 3
_DECIDE_NOTHING = ("dpaudit", "probe")
"""Keys of a specification that no verdict depends on."""
LONGEST_NAME = 60


class _Mark(NamedTuple):
    """The note of a run folder about its trials.

    Attributes:
        streams: Salted digest of what names its random streams.
        settings: Salted digest of everything that decides its numbers.
        earlier: Run folders that held a result on the same trials before this one did.
    """

    streams: str
    settings: str
    earlier: tuple[str, ...] = ()


def check_reuse(audit: AuditSpec, store: RunFolder) -> Check:
    """Looks for results of other audits on this audit's trials.

    Every start of a run looks until the run has its own result. Findings are kept.

    Args:
        audit: The audit, its target found.
        store: Its run folder, locked.

    Returns:
        The check; if it fails, a bound above the claim proves no violation.

    Raises:
        RunFolderError: If what the folder itself keeps of this is damaged.
        OSError: If it cannot be written.
    """
    own = _own(audit, store)
    # Once there is a result, later judgements of the same trials cannot have influenced it.
    if own is None or not (store.path / RESULT_FILE).is_file():
        earlier = {} if own is None else dict.fromkeys(own.earlier)
        earlier |= dict.fromkeys(judged_before(audit, store.path))
        own = _mark_of(audit, store.salt)._replace(earlier=tuple(earlier))
        _keep(own, store.path)
    if not own.earlier:
        detail = (
            "no other audit judged these shadow models before, as far as the run folders here "
            "show: the result is not the best of several analyses"
        )
        return Check(FRESH_TRIALS, True, detail, Consequence.WITHHOLDS)
    return Check(FRESH_TRIALS, False, judged_in(own.earlier), Consequence.WITHHOLDS)


def judged_before(audit: AuditSpec, folder: Path) -> tuple[str, ...]:
    """The earlier results of other audits on an audit's trials.

    The search covers the folders next to the run folder and the default place of audits. A folder
    counts if it holds a result with the same streams and generator code, and its settings differ in
    anything but the version of dpaudit.

    Args:
        audit: The audit, its target found.
        folder: Its run folder, which need not exist.

    Returns:
        Names of their run folders; empty if the audit already has its own result, which later
        judgements cannot have influenced.
    """
    try:
        if (folder / RESULT_FILE).is_file():
            return ()
    except OSError:  # a name that the system does not allow is refused when the folder is made
        return ()
    own, default = folder.resolve(), audit.default_folder.parent
    names = []
    for parent in dict.fromkeys((own.parent, default.resolve())):
        for other in _folders(parent):
            if other != own and (other / RESULT_FILE).is_file() and _judges(audit, other):
                name = other.name if parent == own.parent else f"{default.name}/{other.name}"
                names.append(clipped(printable(name), LONGEST_NAME))
    return tuple(names)


def judged_in(earlier: Sequence[str]) -> str:
    """States where trials were judged before, and what follows.

    Args:
        earlier: Names of run folders, at least one.

    Returns:
        A sentence.
    """
    return (
        f"these shadow models were already judged in {listed(earlier, MOST_NAMED)}, "
        "which spent their error probability: a further look at them proves no violation"
    )


def mark_judged(audit: AuditSpec, folder: Path) -> None:
    """Marks a folder that receives a cached result, so later audits find it like any other.

    Args:
        audit: The audit that the result is of.
        folder: The folder, which holds nothing yet.

    Raises:
        OSError: If it cannot be written.
    """
    _keep(_mark_of(audit, new_salt(folder)), folder)


def _keep(mark: _Mark, folder: Path) -> None:
    document = json.dumps(mark._asdict(), indent=1) + "\n"
    write_whole(folder / STREAMS_FILE, document, mode=PRIVATE_FILE)


def _own(audit: AuditSpec, store: RunFolder) -> _Mark | None:
    """What the audit's own folder keeps; None in a new one."""
    if not (store.path / STREAMS_FILE).exists():
        return None
    own = _read(store.path)
    if own is None or own._replace(earlier=()) != _mark_of(audit, store.salt):
        raise RunFolderError(
            f"{store.path / STREAMS_FILE} is damaged, so nothing shows whether the shadow "
            "models were judged before: put that file back, or give another `out`"
        )
    return own


def _mark_of(audit: AuditSpec, salt: Salt) -> _Mark:
    settings = {
        key: value for key, value in audit.specification.items() if key not in _DECIDE_NOTHING
    }
    streams = [audit.settings.seed, audit.id, settings["generator"]["source"]]
    return _Mark(streams=salt.digest(["streams", streams]), settings=salt.digest(settings))


def _judges(audit: AuditSpec, folder: Path) -> bool:
    """Whether the result of a folder is of another audit on the same trials."""
    there = _read(folder)
    if there is None:
        return False
    try:
        here = _mark_of(audit, salt_of(folder))
    except RunFolderError:  # without its salt nothing can be compared
        return False
    return there.streams == here.streams and there.settings != here.settings


def _folders(parent: Path) -> list[Path]:
    """The folders in a folder by name; none where it cannot be read."""
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except OSError:
        return []


def _read(folder: Path) -> _Mark | None:
    """The note of a folder about its trials; None if there is no readable note."""
    file = folder / STREAMS_FILE
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:  # a pipe would block for ever
            return None
        document: Any = parse_json(file.read_text(encoding="utf-8"))
        mark = _Mark(**{**document, "earlier": tuple(document["earlier"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    texts = (mark.streams, mark.settings, *mark.earlier)
    return mark if all(isinstance(text, str) for text in texts) else None
