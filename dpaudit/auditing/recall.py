"""Cached results: an audit is not run again if nothing that decides it has changed.

A result is decided by its specification, the source of dpaudit, the state of generator and attacks,
and the code that they and their caller reach, installed distributions included. If that cannot be
determined, the audit runs. Other inputs of the generator, such as files and environment variables,
are not checked.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import json
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from dpaudit.auditing.entry import run_audit
from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.auditing.reuse import mark_judged
from dpaudit.auditing.settings import Machine
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.game.flight import ignore_progress
from dpaudit.plugins.source import source_digest
from dpaudit.report.render import write_reports
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict

OF_THE_RUN = frozenset(("jobs", "engine", "scheduler", "trial_timeout"))
"""Keywords that do not change the result."""


class Memory(NamedTuple):
    """The cache entry for the latest result of one audit.

    Attributes:
        folder: The folder, which exists.
        name: The audit's name, such as the test that runs it; one result is kept for each name.
        files: The caller's source: with what it reaches, it must be the same.
    """

    folder: Path
    name: str
    files: tuple[Path, ...]


class Recalled(NamedTuple):
    """A result, and whether it came from the cache.

    Attributes:
        result: The result.
        known: Whether it came from the cache, with nothing trained.
        unkept: Why it is not cached; empty if it is, or without a cache.
    """

    result: AuditResult
    known: bool
    unkept: str = ""


def audit_or_recall(
    generator: object,
    data: object,
    options: Mapping[str, Any],
    *,
    out: Path,
    memory: Memory | None,
    first: Callable[[], None] = lambda: None,
) -> Recalled:
    """Audits as `dpaudit.audit` does, unless the result is cached.

    Args:
        generator: As for `dpaudit.audit`.
        data: As for `dpaudit.audit`.
        options: Keywords as for `audit_by_keywords`, `on_progress` among them.
        out: Run folder; for a cached result it holds only document and reports.
        memory: Where results are kept; None to audit in any case.
        first: Called before anything is trained, unless the result is known.

    Returns:
        The result.

    Raises:
        InputError: As `dpaudit.audit`.
        AttackError: If an attack fails on a valid synthetic table.
        InterruptedRunError: On Ctrl-C.
    """
    given = dict(options)
    machine = Machine(**{name: given.pop(name) for name in OF_THE_RUN & set(given)})
    on_progress = given.pop("on_progress", ignore_progress)
    schema = given.pop("schema", None)
    settings = audit_settings(**given)
    table: Any = data
    spec = build_spec(generator, audited_table(table, schema, settings), settings)
    place = None if memory is None else _place(memory, spec, generator)
    file = place if isinstance(place, Path) else None
    if file is not None and file.is_file():
        with suppress(InputError):  # damaged, or of a version that this one does not read
            result = AuditResult.of(AuditResult.load(file), folder=out)
            out.mkdir(parents=True, exist_ok=True)
            mark_judged(spec, out)
            result.save(out)
            write_reports(result, out)
            return Recalled(result, True)
    first()
    result = run_audit(spec, out, jobs=machine, on_progress=on_progress)
    if memory is not None and file is not None and _stays_true(result):
        for older in memory.folder.glob(f"{_slot(memory.name)}-*.json"):
            older.unlink(missing_ok=True)
        write_whole(file, result.to_json(), mode=0o600)
    return Recalled(result, False, place if isinstance(place, str) else "")


def _stays_true(result: AuditResult) -> bool:
    """Whether the result is independent of this machine and of the time of the run."""
    judged_before = any(check.withholds for check in result.checks)
    failed = any(result.failures.values())
    return result.verdict is not Verdict.INVALID and not failed and not judged_before


def _place(memory: Memory, spec: AuditSpec, generator: object) -> Path | str:
    """Where a result is cached, or why it cannot be."""
    states = [_state(plugin) for plugin in (generator, *(named.attack for named in spec.attacks))]
    held = [state for state in states if state is not None]
    if len(held) < len(states):
        return "what the generator or an attack holds cannot be pickled"
    modules = set[str]().union(*(module for _, module in held))
    reached = spec.reached_with(memory.files, sorted(modules))
    if reached.unknown:
        return reached.unknown
    parts = {
        "specification": spec.specification,
        "dpaudit": source_digest(spec),
        "versions": {**spec.versions, **reached.software},
        "states": [digest for digest, _ in held],
        "code": reached.code,
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    key = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return memory.folder / f"{_slot(memory.name)}-{key}.json"


def _slot(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


class _Noting(pickle.Pickler):
    """Pickles, and records the modules of everything pickled by name."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, protocol=5)
        self.modules = set[str]()

    def reducer_override(self, value: object) -> Any:
        """Records a module; pickling is unchanged."""
        named = inspect.isroutine(value) or inspect.isclass(value)
        module = getattr(value if named else type(value), "__module__", None)
        self.modules.update([module] if isinstance(module, str) else [])
        return NotImplemented


def _state(value: object) -> tuple[str, set[str]] | None:
    """A digest of what an object or a function holds, and the modules where its code stands.

    None if it cannot be pickled.
    """
    if isinstance(value, functools.partial):
        held: object = ("partial", value.func, value.args, value.keywords)
    elif inspect.ismethod(value):
        held = (value.__func__.__qualname__, vars(value.__self__))
    elif inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        held = (value.__qualname__, cells, value.__defaults__, value.__kwdefaults__)
    elif hasattr(value, "__dict__"):
        held = (type(value).__qualname__, vars(value))
    else:
        held = value
    content = io.BytesIO()
    pickler = _Noting(content)
    try:
        pickler.dump(held)
    except Exception:  # noqa: BLE001 - whatever an object does that cannot be pickled
        return None
    digest = hashlib.blake2b(content.getvalue(), digest_size=16).hexdigest()
    return digest, pickler.modules
