"""The part of a result that only an audit of many records per shadow model has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from dpaudit.formatting import auc_text, clipped, printable
from dpaudit.plugins.protocols import World
from dpaudit.results.document import OPTIONAL, Whole
from dpaudit.results.game import GameOutcome, GameWords, Scored, chosen_among, each_a_unit
from dpaudit.results.structure import MOST_ROWS, Block, ReportTable, left_out


@dataclass(frozen=True, kw_only=True)
class RecordOutcome:
    """The guesses about one of many records.

    Attributes:
        row: Its row in the table, from 0, or the first row of its unit.
        guesses: Scored models for which its membership was guessed.
        correct: Right guesses.
    """

    row: Whole
    guesses: Whole
    correct: Whole


@dataclass(frozen=True, kw_only=True)
class RecordsOutcome(GameOutcome):
    """How an audit of many records per shadow model ended.

    All models count as trials of world out, and counts and scores are of the coins of all records.

    Attributes:
        name: The game.
        scored: Scored models that finished; a fair coin put each record into each of them or not.
        each: The records, with the guesses of the deciding attack.
        unit: The column of the unit that each record is; absent in an audit of rows.
    """

    words = GameWords(
        attacked="the attacked records",
        unknown="which of the attacked records were in the table that a model came from",
        copies="copies the records that it saw",
        separates="guesses the coins",
        units="coins",
        inside="trained with the record",
        outside="trained without the record",
        panels="Models with a record and without it",
        scores="A high score means that a shadow model was probably trained with the record, a low "
        "one without it. The better the attack, the less the two overlap.",
    )
    names_rows = True
    unexplained = "an audit of many records: explain attacks one; audit without `records`"

    name: Literal["many records"] = "many records"
    scored: Whole
    each: tuple[RecordOutcome, ...]
    unit: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def has_fixed_independent_trials(self) -> bool:
        """Coins of records share their models."""
        return False

    @property
    def no_clopper_pearson(self) -> str:
        """Why there is no such bound: it needs independent trials."""
        return "the coins of one model are not independent trials"

    @property
    def instead_of_target(self) -> str:
        """How many records, and of what."""
        return (
            f"{len(self.each)} records{each_a_unit(self.unit)}, each by a fair coin in every model"
        )

    def achieved(self, audit: Scored) -> str | None:
        """AUC and right guesses, of all records together."""
        if audit.counts is None or audit.attack is None:
            return None
        made, right = (
            sum(getattr(record, name) for record in self.each) for name in ("guesses", "correct")
        )
        return (
            f"{clipped(printable(audit.attack), 20)}: AUC {auc_text(audit.auc)}, "
            f"{right} of {made} guesses right, {len(self.each)} records"
            f"{chosen_among(len(audit.attacks), 'models')}"
        )

    def models(self, audit: Scored) -> tuple[str, str]:
        """Shadow models; all have some of the records."""
        trained = audit.shadow_models[World.OUT]
        return "Shadow models", f"{trained}, each with about half of the records"

    def blocks(self, audit: Scored) -> Iterable[Block]:
        """The records, those guessed best first."""
        if not self.scored:
            return
        ordered = sorted(self.each, key=lambda each: (-each.correct, each.guesses, each.row))
        yield Block(
            title="Many records per shadow model",
            paragraphs=(
                f"A fair coin decided for each shadow model and each of {len(self.each)} records "
                f"whether the model was trained with it{each_a_unit(self.unit)}. On {self.scored} "
                "models that it was not "
                f"fitted on, the attack {audit.attack} guessed these coins; it abstains where it "
                "is unsure.",
                *left_out(ordered, "records"),
            ),
            table=ReportTable(
                ("Row" if self.unit is None else "First row", "Guesses", "Right"),
                tuple(
                    (str(record.row), str(record.guesses), str(record.correct))
                    for record in ordered[:MOST_ROWS]
                ),
                frozenset({1, 2}),  # a row is a name
            ),
        )
