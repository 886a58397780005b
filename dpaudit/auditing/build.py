"""From what the caller asked for to a complete, validated audit; trains nothing."""

from __future__ import annotations

from dpaudit.auditing.one_run.spec import build_one_run
from dpaudit.auditing.records.spec import build_records
from dpaudit.auditing.settings import AuditSettings
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.target_search.spec import build_target_search
from dpaudit.auditing.two_worlds import build_two_worlds
from dpaudit.model.choices import VULNERABLE
from dpaudit.model.tables import Table


def build_spec(generator: object, table: Table, settings: AuditSettings) -> AuditSpec:
    """The audit that the settings ask for.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        A one-run audit, one of many records per model, a search for the most vulnerable target,
        or an audit in two worlds.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    if settings.one_run:
        return build_one_run(generator, table, settings)
    if settings.records > 1:
        return build_records(generator, table, settings)
    if settings.target == VULNERABLE:
        return build_target_search(generator, table, settings)
    return build_two_worlds(generator, table, settings)
