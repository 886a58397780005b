"""Results that are still true: of an audit that nothing has changed since, none is trained again.

What decides a result is its specification, the source of dpaudit, versions, the state of generator
and attacks, and the code that they and their caller reach outside installed packages. What the
generator reads besides, such as files and environment variables, is not looked at.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dpaudit.auditing.build import build_spec
from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.pairs import audited_table
from dpaudit.auditing.reuse import mark_judged
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.plugins.source import reached_digest, source_digest
from dpaudit.report.write import write_reports
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

_OF_THE_RUN = ("jobs", "engine", "scheduler", "trial_timeout", "on_progress")
"""Arguments of `dpaudit.audit` that change no result."""


class Memory(NamedTuple):
    """Where the latest result of one audit is kept.

    Attributes:
        folder: The folder, which exists.
        name: The audit's name, such as the test that runs it; of a name one result is kept.
        files: The caller's source: with what it reaches, it must be the same.
    """

    folder: Path
    name: str
    files: tuple[Path, ...]


class Recalled(NamedTuple):
    """A result, and whether it is one of before."""

    result: AuditResult
    known: bool


def audit_or_recall(
    generator: object,
    data: object,
    options: Mapping[str, Any],
    *,
    out: Path,
    memory: Memory | None,
) -> Recalled:
    """Audits as `dpaudit.audit` does, unless the result is known.

    Args:
        generator: As for `dpaudit.audit`.
        data: As there.
        options: Its other arguments, without `out`.
        out: Run folder; of a known result it holds document and reports alone.
        memory: Where results are kept; None to audit in any case.

    Returns:
        The result.

    Raises:
        InputError: As `dpaudit.audit`.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C.
    """
    given = dict(options)
    of_run = {name: given.pop(name) for name in _OF_THE_RUN if name in given}
    schema = given.pop("schema", None)
    settings = AuditSettings(**given)
    table: Any = data
    spec = build_spec(generator, audited_table(table, schema, settings), settings)
    file = None if memory is None else _file(memory, spec, generator)
    if file is not None and file.is_file():
        with suppress(InputError):  # damaged, or of a version that this one does not read
            result = AuditResult.of(AuditResult.load(file), folder=out)
            out.mkdir(parents=True, exist_ok=True)
            mark_judged(spec, out)
            result.save(out)
            write_reports(result, out)
            return Recalled(result, True)
    result = run_audit(spec, out, **of_run)
    if memory is not None and file is not None and _stays_true(result):
        for older in memory.folder.glob(f"{_slot(memory.name)}-*.json"):
            older.unlink(missing_ok=True)
        write_whole(file, result.to_json(), mode=0o600)
    return Recalled(result, False)


def _stays_true(result: AuditResult) -> bool:
    """Whether nothing of this machine or this day may have led to a result."""
    judged_before = any(check.withholds for check in result.checks)
    failed = any(result.failures.values())
    return result.verdict is not Verdict.INVALID and not failed and not judged_before


def _file(memory: Memory, spec: AuditSpec, generator: object) -> Path | None:
    """Where a result is kept; None if it cannot be known whether it stays true."""
    states = [_state(generator)] + [_state(of) for of in spec.settings.attacks]
    if None in states:
        return None
    built = spec.generator.generator
    code = _sources(generator, getattr(built, "function", built), *spec.settings.attacks)
    parts = {
        "specification": spec.specification,
        "dpaudit": source_digest(spec),
        "versions": spec.versions,
        "states": states,
        "code": reached_digest([*memory.files, *code]),
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return memory.folder / f"{_slot(memory.name)}-{key}.json"


def _slot(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def _state(value: object) -> str | None:
    """A digest of what an object or a function holds; None if that cannot be told."""
    if inspect.ismethod(value):
        held: object = (value.__func__.__qualname__, vars(value.__self__))
    elif inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = (value.__qualname__, cells, value.__defaults__, value.__kwdefaults__)
    elif hasattr(value, "__dict__"):
        held = (type(value).__qualname__, vars(value))
    else:
        held = value
    try:
        return hashlib.blake2b(pickle.dumps(held, protocol=5), digest_size=16).hexdigest()
    except Exception:  # noqa: BLE001 - whatever an object does that cannot be pickled
        return None


def _sources(*values: object) -> Iterable[Path]:
    """The files in which objects are defined."""
    for value in values:
        if isinstance(value, str):
            continue  # a name
        defined = value if inspect.isroutine(value) else type(value)
        with suppress(TypeError):
            found = inspect.getsourcefile(defined)
            if found is not None and Path(found).is_file():
                yield Path(found)
