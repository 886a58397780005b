"""Every error dpaudit raises on purpose, in one tree.

DpauditError
├── InputError              the caller can correct it; the command line exits with 2
│   ├── DataError           a table that cannot be read or does not fit its schema
│   ├── SchemaError         a schema that is malformed or cannot be inferred
│   ├── ClaimError          an epsilon, delta or neighbouring relation without meaning
│   ├── SettingsError       a setting outside its range
│   ├── TargetError         a target record that does not exist
│   ├── RegistryError       a generator or attack that cannot be found or built
│   ├── GeneratorError      a generator none of whose first trainings gives a synthetic table
│   ├── RunFolderError      a run folder that is locked, unwritable, or holds another audit
│   ├── ClusterError        a scheduler that does not answer, or workers that cannot run trials
│   └── MissingExtraError   an optional dependency that is not installed
├── BudgetError             a mechanism was asked to spend more privacy than it has
├── TrialError              one shadow model failed; recorded as an outcome, never dropped
├── ReplayError             a replay that cannot go on: its draws cannot be heard, or followed
│   └── WorldEndedError     the process of one world ended
├── AttackError             an attack failed on a valid table: its own defect, the run stops
└── InterruptedRunError     the run was stopped; what finished is kept and it can be resumed

A message says what was wrong, where, and what to do, in one line.
"""

from __future__ import annotations


class DpauditError(Exception):
    """Base of every error that dpaudit raises on purpose."""


class InputError(DpauditError):
    """The caller handed in something unusable and can correct it."""


class DataError(InputError):
    """A table cannot be read, or does not fit its schema."""


class SchemaError(InputError):
    """A schema is malformed, or cannot be inferred from the table."""


class ClaimError(InputError):
    """An epsilon, a delta or a neighbouring relation has no meaning."""


class SettingsError(InputError, ValueError):
    """A setting is outside its range."""


class TargetError(InputError):
    """The target record does not exist or cannot be used."""


class RegistryError(InputError):
    """A generator or an attack cannot be found or built."""


class GeneratorError(InputError):
    """None of a generator's first trainings gives a synthetic table."""


class RunFolderError(InputError):
    """A run folder is locked, unwritable, or holds another audit."""


class ClusterError(InputError):
    """A scheduler does not answer, or its workers cannot run the trials of this audit."""


class MissingExtraError(InputError):
    """An optional dependency is not installed.

    Args:
        feature: What needs it.
        package: The package that is missing.
        extra: The extra that brings it.
        of: Whose extra it is.

    Attributes:
        command: What installs it.
    """

    def __init__(self, feature: str, package: str, extra: str, *, of: str = "dpaudit") -> None:
        # No release of dpaudit is published: its own extras come from a clone.
        source, where = (".", " it in the clone of dpaudit") if of == "dpaudit" else (of, "")
        self.command = f"pip install '{source}[{extra}]'"
        super().__init__(f"{feature} needs {package}. Install{where}: {self.command}")


class BudgetError(DpauditError):
    """A mechanism was asked to spend more privacy than it has."""


class TrialError(DpauditError):
    """One shadow model failed: what it raised, or what was wrong with its table.

    Args:
        what: What went wrong, without a word of the generator's.
        quoted: What the generator said of it, which may quote records.

    Attributes:
        shareable: What went wrong, for results and reports.
    """

    def __init__(self, what: str, quoted: str = "") -> None:
        super().__init__(f"{what}: {quoted}" if quoted else what)
        self.shareable = what


class RowCountError(TrialError):
    """One shadow model gave another number of synthetic rows than it was asked for.

    Args:
        rows: How many it gave.
        requested: How many it was asked for.
    """

    def __init__(self, rows: int, requested: int) -> None:
        super().__init__(f"wrong row count: {rows} rows instead of {requested}")
        self.rows = rows


class ReplayError(DpauditError):
    """A replay cannot go on: a world's process ended, or its draws cannot be intercepted."""


class WorldEndedError(ReplayError):
    """The process of one world ended during a fit."""


class AttackError(DpauditError):
    """An attack failed on a valid synthetic table: a defect of the attack, not an outcome."""


class InterruptedRunError(DpauditError):
    """The run was stopped; everything that finished is kept."""
