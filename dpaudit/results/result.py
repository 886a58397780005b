"""What `dpaudit.audit` returns: the record of an audit and the questions people ask of it."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dpaudit.bounds.table import ValidBound, deciding
from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.formatting import Row, printable, rounded_down, row_lines
from dpaudit.model.claim import PrivacyClaim
from dpaudit.results import sentences, summary
from dpaudit.results.document import document_schema
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from dpaudit.model.choices import FigureName

RESULT_FILE = "result.json"
REPORT_FILE = "report.html"
_EDGES: Final = {
    Verdict.VIOLATION: "#c4372c",
    Verdict.OVERSPENT: "#9a6700",
    Verdict.CONSISTENT: "#2f6ea8",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.INVALID: "#7d4bb3",
    Verdict.MEASURED: "#2f6ea8",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult(AuditRecord):
    """What an audit found; its fields are the keys of `result.json` (`dpaudit.result_schema`).

    Attributes:
        folder: The run folder; None if the run was kept in memory only.
    """

    folder: Path | None = field(default=None, compare=False, metadata={"document": False})

    @classmethod
    def of(cls, record: AuditRecord, *, folder: Path | None) -> AuditResult:
        """The result of a record."""
        values = {field.name: getattr(record, field.name) for field in fields(AuditRecord)}
        return cls(**values, folder=folder)

    @property
    def epsilon_lower_bound(self) -> float:
        """The lower bound on epsilon; 0 if none was proved, or the claim is in another quantity."""
        return (self.proved or 0.0) if self.reach is None else 0.0

    @property
    def claimed_epsilon(self) -> float:
        """Epsilon of the claim under audit; infinite where none is stated."""
        return self.claim.epsilon if isinstance(self.claim, PrivacyClaim) else math.inf

    def __str__(self) -> str:
        return "\n".join(summary.summary_lines(self, folder=self.folder))

    def __repr__(self) -> str:
        facts = [summary.attack_row(self), *self._report_row()]
        lines = [sentences.headline(self), *row_lines(facts)]
        return "\n  ".join(["<AuditResult", *lines]) + ">"

    def _repr_html_(self) -> str:
        """Verdict, what it means and why: an HTML element without scripts or style sheet."""
        word, _, finding = sentences.headline(self).partition(sentences.HEADLINE_GAP)
        paragraphs = [f"<strong>{_text(word)}</strong>: {_text(finding)}"]
        paragraphs += [_text(sentence) for sentence in sentences.lead(self)]
        body = "".join(f"<p>{text}</p>" for text in paragraphs)
        if reasons := summary.unsaid_reasons(self):
            body += f"<ul>{''.join(f'<li>{_text(reason)}</li>' for reason in reasons)}</ul>"
        if self.folder is not None:
            body += f"<p>Report: <code>{_text(str(self.folder / REPORT_FILE))}</code></p>"
        style = f"border-left: 0.5em solid {_EDGES[self.verdict]}; padding-left: 1em"
        return f'<div style="{style}; max-width: 46em">{body}</div>'

    @property
    def scores_frame(self) -> pd.DataFrame:
        """Membership scores of the deciding attack as a table: a row for each scored trial.

        Columns `world` ("in" or "out") and `score`; a high score says "in".
        """
        import pandas as pd

        rows = [(world.value, score) for world, of in self.scores.items() for score in of]
        return _typed(pd.DataFrame(rows, columns=["world", "score"]), kept=["world"])

    @property
    def features_frame(self) -> pd.DataFrame:
        """Features that carry the deciding attack as a table, the most important first.

        Columns `column` and `feature` (of the table, and its statistic), `importance` (loss of AUC
        when it is permuted) and `separation` (|AUC - 1/2| of it alone; missing in old results).
        """
        import pandas as pd

        names = ["column", "feature", "importance", "separation"]
        rows = [(of.column, of.feature, of.importance, of.separation) for of in self.leaks]
        return _typed(pd.DataFrame(rows, columns=names), kept=["column", "feature"])

    @property
    def attacks_frame(self) -> pd.DataFrame:
        """Every attack that was scored as a table, as the report lists them.

        Columns `attack`, `auc`, the number of `false_negatives`, `n_in`, `false_positives` and
        `n_out`; `bound`, the one to quote, and `rule`, its name; then every bound by its name in
        `bounds`, missing where it does not apply: `exact`, `fair_coin`, `clopper_pearson`,
        `sequential`, `one_run`, `one_run_in_turn`.
        """
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for attack in self.attacks:
            bounds = {key.value: value for key, value in attack.bounds.items()}
            entry = deciding(attack.bounds)
            quoted = {} if entry is None else {"bound": bounds[entry.key], "rule": entry.key.value}
            of = {"attack": attack.name, "auc": attack.auc, **asdict(attack.counts)}
            rows.append(of | quoted | bounds)
        counts = ["false_negatives", "n_in", "false_positives", "n_out"]
        columns = ["attack", "auc", *counts, "bound", "rule", *(key.value for key in ValidBound)]
        return _typed(pd.DataFrame(rows, columns=columns), kept=["attack", "rule", *counts])

    def plot(self, ax: Axes | None = None, *, figure: FigureName | str = "claim") -> Axes:
        """Draws a figure by matplotlib (extra `plot`).

        Args:
            ax: Axes to draw into; those of a new figure of pyplot if None.
            figure: "claim": the bounds next to the claim and to what the audit could reach. "roc":
                the ROC curve of the deciding attack. "scores": its scores in both worlds.

        Returns:
            The axes.

        Raises:
            InputError: If the result lacks what the figure shows.
            MissingExtraError: If matplotlib is not installed.
            SettingsError: If there is no such figure, or its name stands where axes do.
        """
        from dpaudit.results.curves import plot

        return plot(self, ax, figure=figure)

    def assert_no_violation(self, *, on_inconclusive: Literal["fail", "pass"] = "fail") -> None:
        """Fails a test unless the audit was sound and found no violation.

        Args:
            on_inconclusive: Whether an audit too weak to decide fails too. It does by default: a
                privacy test that cannot fail is worse than none.

        Raises:
            AssertionError: On a violation, on an invalid run, without a claim, and on an
                inconclusive run unless that is to pass; the message has verdict, bound, claim,
                leaks and seed.
        """
        __tracebackhide__ = True  # pytest shows the line of the test instead
        passing = {Verdict.CONSISTENT}
        if on_inconclusive == "pass":
            passing.add(Verdict.INCONCLUSIVE)
        if self.verdict is Verdict.MEASURED:
            raise AssertionError(
                "no claim was given, so there is none to violate: give `epsilon`, or hold the "
                f"audit to a number with assert_epsilon_below\n{self.failure_message()}"
            )
        if self.verdict not in passing:
            raise AssertionError(self.failure_message())

    def assert_epsilon_below(self, limit: float) -> None:
        """Fails a test unless the audit could have proved this epsilon and proved less.

        The limit may differ from the claim, such as a value that the generator has always kept. The
        bound is compared with it, not the verdict.

        Args:
            limit: The limit of the bound: an epsilon, or a mu, rho or curve factor if the claim is
                in one.

        Raises:
            AssertionError: If the bound reaches the limit, if the run is invalid, or if no attack
                could have reached it; the message says which, and how to repeat the audit.
        """
        __tracebackhide__ = True
        if self.verdict is Verdict.INVALID or self.proved is None or self.power is None:
            why = "the audit is invalid: nothing was measured"
        elif self.proved >= limit:
            why = f"proved {rounded_down(self.proved)}, which is not below {limit:g}"
        elif self.power.max_provable < limit:
            why = (
                f"no attack could have proved more than {rounded_down(self.power.max_provable)} "
                f"here, so the audit cannot decide about {limit:g}: ask for more shadow models"
            )
        else:
            return
        raise AssertionError(f"{why}\n{self.failure_message()}")

    def failure_message(self) -> str:
        """Everything needed to understand and repeat this audit, in plain lines."""
        lines = summary.failure_lines(self, folder=self.folder)
        return "\n".join([*lines, *row_lines(self._report_row())])

    def _report_row(self) -> list[Row]:
        return [] if self.folder is None else [report_row(self.folder)]

    def save(self, folder: str | Path) -> None:
        """Writes `result.json` into a folder, all or nothing.

        Raises:
            OSError: If the folder is missing, full or cannot be written.
        """
        write_whole(Path(folder) / RESULT_FILE, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> AuditResult:
        """Reads a result from a run folder or from a `result.json`.

        Raises:
            InputError: If there is no result, the run has not finished, or this version cannot
                read it.
        """
        file = Path(path) / RESULT_FILE if os.path.isdir(path) else Path(path)
        if not os.path.exists(file):  # a name that is too long is no file, and no error here
            from dpaudit.game.store import STORE_FILE  # loads what no other result needs

            if os.path.exists(file.parent / STORE_FILE):
                raise InputError(
                    f"the run in {file.parent} has not finished: repeat its command to resume it"
                )
        return cls.of(AuditRecord.load(file), folder=file.parent)


def result_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `result.json`; a fresh dictionary every time."""
    return document_schema(AuditRecord, title="dpaudit result")


def _typed(frame: pd.DataFrame, *, kept: list[str]) -> pd.DataFrame:
    """Makes all columns but `kept` numeric, which pandas does not do for an empty table."""
    numbers = [name for name in frame.columns if name not in kept]
    return frame.astype(dict.fromkeys(numbers, float))


def report_row(folder: Path) -> Row:
    """The row that says where a run's report is."""
    return Row("report", str(folder / REPORT_FILE), whole=True)


def _text(foreign: str) -> str:
    return escape(printable(foreign))
