"""From what the caller asked for to a complete, validated audit; trains nothing."""

from __future__ import annotations

import hashlib
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import pandas as pd

from dpaudit.auditing.plan import Multiplicity, Pace, Size
from dpaudit.bounds import ThresholdRule
from dpaudit.errors import SettingsError
from dpaudit.game.target import VULNERABLE, Target, choose_target, copies_of
from dpaudit.game.worlds import Game, build_game
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, data_digest
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.named import (
    NamedAttack,
    NamedGenerator,
    claim_under_audit,
    named_attacks,
    named_generator,
    plain_settings,
    source_digest,
)
from dpaudit.plugins.protocols import Attack, Generator
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.seeds import Stream, check_seed
from dpaudit.versions import dpaudit_version


@dataclass(frozen=True, kw_only=True)
class Prepared(ABC):
    """What every complete audit has, whatever game it plays.

    Attributes:
        generator: What is audited.
        table: The table handed in.
        claim: The claim under audit, for the neighbours that are played.
        claim_is_given: Whether the caller stated epsilon; else it is the generator's own.
        rows: Synthetic rows requested of every model.
        confidence: One-sided confidence of the bound that is reported.
        seed: Root of every random stream.

    Raises:
        SettingsError: If the seed is not in [0, 2**63).
    """

    TRAINED: ClassVar[tuple[str, ...]]
    """Keys of the specification that decide what is trained on what."""

    generator: NamedGenerator
    table: Table
    claim: PrivacyClaim
    claim_is_given: bool
    rows: int
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        check_seed(self.seed)

    @property
    @abstractmethod
    def own_specification(self) -> dict[str, Any]:
        """The part of the specification that is of this game alone."""

    @property
    @abstractmethod
    def own_options(self) -> list[str]:
        """The words of the command that are of this game alone."""

    @cached_property
    def specification(self) -> dict[str, Any]:
        """What decides every number of the result, as JSON; a run folder belongs to one."""
        return {
            "dpaudit": dpaudit_version(),
            "generator": {
                "name": self.generator.name,
                "parameters": self.generator.parameters,
                "source": source_digest(self.generator.generator),
            },
            "data": data_digest(self.table.data),
            "schema": self.table.schema.to_json(),
            "neighbours": self.claim.neighbours.value,
            "epsilon": self.claim.epsilon,
            "delta": self.claim.delta,
            "rows": self.rows,
            "confidence": self.confidence,
            "seed": self.seed,
            **self.own_specification,
        }

    @cached_property
    def id(self) -> str:
        """Names this audit's trainings in every random stream.

        Made of what is trained on what, not of how it is attacked or judged, nor of the text of
        source files: an edited comment must not change a single draw.
        """
        spec = self.specification
        trained = {key: spec[key] for key in ("data", "schema", *self.TRAINED, "rows")}
        trained["generator"] = [self.generator.name, self.generator.parameters]
        return _digest(trained)

    def stream(self, role: str) -> Stream:
        """The random stream of one purpose."""
        return Stream(self.seed, self.id, role)

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless the caller says otherwise: the same for the same audit."""
        stem = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.generator.name)
        return Path("runs") / f"{stem.strip('-.')[-40:]}-{_digest(self.specification)[:8]}"

    @property
    def reproduce(self) -> str:
        """The command that gives this result again."""
        given = [f"{key}={_text(value)}" for key, value in self.generator.parameters.items()]
        words = ["dpaudit", "audit", self.generator.name]
        words += [word for pair in given for word in ("-p", pair)]
        words += ["--data", self.table.source]
        if self.table.schema_source is not None:
            words += ["--schema", self.table.schema_source]
        if self.claim_is_given:
            words += ["--epsilon", f"{self.claim.epsilon!r}", "--delta", f"{self.claim.delta!r}"]
        words += ["--neighbours", self.claim.neighbours.value, "--rows", str(self.rows)]
        words += ["--confidence", f"{self.confidence!r}", "--seed", str(self.seed)]
        return shlex.join([*words, *self.own_options])


class Selection(NamedTuple):
    """How the most vulnerable record was searched for.

    Attributes:
        candidates: Records compared.
        trainings: Models trained for it, none of which the audit uses.
    """

    candidates: int
    trainings: int


@dataclass(frozen=True, kw_only=True)
class Audit(Prepared):
    """A complete audit with shadow models in two worlds, ready to be played.

    Attributes:
        target: The attacked record.
        selection: How it was searched for; None where it was named. Decides no number: given its
            target, an audit is the same however that was found.
        game: Both worlds.
        attacks: The attacks, each one hypothesis.
        size: Trials and confidence.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target", "neighbours")

    target: Target
    game: Game
    attacks: tuple[NamedAttack, ...]
    size: Size
    selection: Selection | None = None

    @property
    def own_specification(self) -> dict[str, Any]:
        """Target, attacks, number of shadow models, and how errors are spent."""
        return {
            "target": {
                "choice": self.target.choice,
                "row": self.target.row,
                "record": data_digest(self.target.record),
            },
            "attacks": [
                {"name": name, "settings": plain_settings(attack), "source": source_digest(attack)}
                for name, attack in self.attacks
            ],
            "shadow_models": self.size.shadow_models,
            "threshold": self.size.threshold_rule.value,
            "multiplicity": self.size.multiplicity.value,
            "pace": self.size.pace.value,
        }

    @property
    def own_options(self) -> list[str]:
        """The same, as words of the command."""
        words = ["--target", self.target.choice if self.selection is None else VULNERABLE]
        words += [word for name, _ in self.attacks for word in ("--attack", name)]
        words += ["--shadow-models", str(self.size.shadow_models)]
        words += ["--threshold", self.size.threshold_rule.value]
        words += ["--multiplicity", self.size.multiplicity.value]
        return [*words, "--sequential"] if self.size.pace is Pace.SEQUENTIAL else words


def prepare(
    generator: object,
    table: Table,
    *,
    parameters: Mapping[str, Any],
    epsilon: float | None,
    delta: float | None,
    neighbours: Neighbours | None,
    target: str,
    attacks: Sequence[str | Attack],
    shadow_models: int,
    rows: int | None,
    confidence: float,
    threshold: ThresholdRule,
    multiplicity: Multiplicity,
    pace: Pace,
    seed: int,
) -> Audit:
    """Validates everything an audit needs; see `dpaudit.audit` for the arguments.

    Raises:
        InputError: If anything is unusable; says what and how to mend it.
    """
    size = Size(
        shadow_models=shadow_models,
        attacks=len(attacks),
        confidence=confidence,
        threshold_rule=threshold,
        multiplicity=multiplicity,
        pace=pace,
    )
    playing = named_attacks(attacks)
    data, schema = table.data, table.schema
    chosen = choose_target(target, data, schema)
    offered = {"schema": schema, "target": chosen.record}
    named = named_generator(generator, parameters, offered)
    claim = claim_under_audit(named, epsilon=epsilon, delta=delta, neighbours=neighbours)
    replacement = None
    if claim.neighbours is Neighbours.REPLACE_ONE:
        replacement = _replacement(chosen.record, schema, Stream(seed, "", "replacement"))
    game = build_game(
        data,
        schema,
        chosen,
        n_rows=len(data) if rows is None else rows,
        neighbours=claim.neighbours,
        replacement=replacement,
    )
    for _, attack in playing:
        attack.check(game.view)
    check_table(named.generator, data)
    return Audit(
        generator=named,
        table=table,
        target=chosen,
        game=game,
        claim=claim,
        claim_is_given=epsilon is not None or delta is not None,
        attacks=playing,
        size=size,
        rows=game.view.n_rows,
        confidence=confidence,
        seed=seed,
    )


def _replacement(target: pd.DataFrame, schema: Schema, stream: Stream) -> pd.DataFrame:
    """A record drawn from the schema, never from the data, that differs from the target."""
    null = cast(Generator, build("null", GENERATORS, given={}, offered={"schema": schema}))
    drawn = null.fit(target, seed=stream.seed()).sample(1000, seed=stream.seed())
    for position in range(len(drawn)):
        record = schema.canonical(drawn.iloc[[position]])
        if not copies_of(record, target, schema):
            return record
    raise SettingsError("the schema allows no record but the target: widen its bounds")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
