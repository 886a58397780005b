"""A bug's audit over releases of its package: which of them have the bug?"""

from __future__ import annotations

from dpaudit.auditing.bisection import ReleasedSubject
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.spec import AuditSpec
from dpaudit.bugs.bug import Bug
from dpaudit.bugs.run import library_of
from dpaudit.errors import RegistryError
from dpaudit.model.tables import load


def subject_of_bug(bug: Bug, *, seed: int = 0) -> ReleasedSubject:
    """The audit of a bug's broken side, to be run at any release of its package.

    Args:
        bug: A row of the corpus.
        seed: Root of every random stream.

    Returns:
        What `audit_releases` audits.

    Raises:
        RegistryError: If the bug has no case.
        InputError: If its settings or tables cannot be used.
    """
    case = bug.case
    if case is None:
        raise RegistryError(f"{bug.id} cannot be run ({bug.status}): {bug.note}")
    given = {**case.settings, "neighbours_file": str(case.neighbour), "seed": seed, "probe": False}
    settings = audit_settings(**given)
    table = load(case.table, case.schema)
    library = library_of(bug, case, case.broken)

    def spec(version: str) -> AuditSpec:
        generator = library.with_release(version).generator(
            case.method, schema=table.schema, parameters=case.broken.parameters
        )
        return build_spec(generator, table, settings)

    return ReleasedSubject(package=bug.package, environment=library.environment, spec=spec)
