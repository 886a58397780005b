"""The result of an audit: one JSON document and the questions people ask of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dpaudit.auditing.verdict import Verdict
from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.report.words import summary_lines

SCHEMA_VERSION = 1
RESULT_FILE = "result.json"


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes:
        document: The whole result as in `result.json`; its JSON Schema ships with the package
            (`dpaudit.report.schema.result_schema`).
        folder: The run folder; None if the run was kept in memory only.
    """

    document: Mapping[str, Any]
    folder: Path | None = None

    @property
    def verdict(self) -> Verdict:
        """Violation, consistent, inconclusive or invalid."""
        return Verdict(self.document["verdict"])

    @property
    def epsilon_lower_bound(self) -> float:
        """The proved lower bound on epsilon; 0 where nothing was proved."""
        return float(self.document["proved"] or 0.0)

    @property
    def claimed_epsilon(self) -> float:
        """Epsilon of the claim under audit."""
        return float(self.document["claim"]["epsilon"])

    def __str__(self) -> str:
        return "\n".join(summary_lines(self.document))

    def assert_no_violation(self, *, on_inconclusive: Literal["fail", "pass"] = "fail") -> None:
        """Fails a test unless the audit was sound and found no violation.

        Args:
            on_inconclusive: Whether an audit too weak to decide fails too. It does by default: a
                privacy test that cannot fail is worse than none.

        Raises:
            AssertionError: On a violation, on an invalid run, and on an inconclusive one unless
                that is to pass; the message has verdict, bound, claim, leaks and seed.
        """
        passing = {Verdict.CONSISTENT}
        if on_inconclusive == "pass":
            passing.add(Verdict.INCONCLUSIVE)
        if self.verdict not in passing:
            raise AssertionError(self.failure_message())

    def failure_message(self) -> str:
        """Everything needed to understand and repeat this audit, in plain lines."""
        leaks = [f"{leak['feature']}({leak['column']})" for leak in self.document["leaks"][:5]]
        lines = [
            str(self),
            f"verdict: {self.verdict}, bound: {self.epsilon_lower_bound:.4g}, "
            f"claim: {self.claimed_epsilon:g}",
            f"leaks: {', '.join(leaks) or 'none found'}",
            f"seed: {self.document['seed']}",
        ]
        if self.folder is not None:
            lines.append(f"report: {self.folder / 'report.html'}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json.dumps(self.document, indent=2, allow_nan=False) + "\n"

    def save(self, folder: Path) -> None:
        """Writes `result.json` into a folder, all or nothing."""
        write_whole(folder / RESULT_FILE, self.to_json().encode())

    @staticmethod
    def load(path: Path) -> AuditResult:
        """Reads a result from a run folder or from a `result.json`.

        Raises:
            InputError: If there is no result, or it is not one that this version can read.
        """
        file = path / RESULT_FILE if path.is_dir() else path
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(
                f"no result at {file}: {error.strerror}; give a run folder or its result.json"
            ) from None
        except ValueError:
            raise InputError(f"{file} is not JSON: give a run folder or its result.json") from None
        version = document.get("schema_version") if isinstance(document, dict) else None
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{file} has schema_version {version}, this dpaudit reads {SCHEMA_VERSION}"
            )
        return AuditResult(document, file.parent)
