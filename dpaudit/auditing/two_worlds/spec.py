"""The audit with shadow models in two worlds: with the target, and without it or with another."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import numpy as np
import pandas as pd

from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings, TwoWorlds
from dpaudit.auditing.spec import AuditSpec, Data, SchemaGiven, attacks_with_access, build_generator
from dpaudit.auditing.two_worlds.plan import require_coins
from dpaudit.auditing.two_worlds.secret import SecretGuess
from dpaudit.errors import SchemaError, SettingsError
from dpaudit.game.store import Private
from dpaudit.game.target import Target, choose_target, copies_of
from dpaudit.game.trial import Role, Trial
from dpaudit.game.worlds import TargetGame, build_game
from dpaudit.model.choices import EXPOSING, VULNERABLE, Access, BoundedNumber
from dpaudit.model.claim import Claim, DeltaClaim, Neighbours, require_claim
from dpaudit.model.column import stated_unit
from dpaudit.model.linked_files import load_given
from dpaudit.model.linked_tables import TABLE, LinkedTables
from dpaudit.model.neighbouring_tables import NeighbouringTables, read_neighbours, worst_case_tables
from dpaudit.model.schema import Schema
from dpaudit.model.tables import IN_MEMORY, Table, data_digest, load_schema
from dpaudit.plugins.access import access_of, released_effect
from dpaudit.plugins.named import NamedAttack, check_table, claim_if_any
from dpaudit.plugins.protocols import BoolArray, Generator, LastBitsName, World, trains_many
from dpaudit.plugins.registry import GENERATORS, build
from dpaudit.results.record import Selection
from dpaudit.seeds import Stream


def audited_table(data: Data, schema: SchemaGiven, settings: AuditSettings[TwoWorlds]) -> Table:
    """The audited table: the caller's, or that of its worst case.

    Raises:
        InputError: As `dpaudit.auditing.games.audited_table`.
    """
    unit = stated_unit(settings.claim)
    if settings.game.worst_case is None:
        if data is None:
            raise SettingsError("no table to audit on: give `data`, or `worst_case`")
        table = load_given(data, schema, unit, settings.links)
        _check_choice(table.schema, settings.game)
        return table
    if data is not None:
        raise SettingsError(
            "`worst_case` builds its table from a public schema alone: leave out `data`, or leave "
            "out `worst_case`"
        )
    public, path = public_schema(schema)
    if unit is not None or (public is not None and public.unit is not None):
        raise SettingsError(
            "a worst case has single rows and no units: leave out the unit, or leave out "
            "`worst_case`"
        )
    pair = worst_case_tables(settings.game.worst_case, public)
    return Table(pair.data, pair.schema, pair.choice, path)


def _check_choice(schema: Schema, game: TwoWorlds) -> None:
    """Refuses choices that are of single rows or of one table where the audit is not."""
    if isinstance(schema, LinkedTables):
        of_one = {
            "neighbours_file": game.neighbours_file is not None,
            f'access="{game.access}"': game.access in (Access.MODEL, Access.RELEASED),
            "secret": game.secret is not None,
        }
        for name, is_given in of_one.items():
            if is_given:
                raise SettingsError(f"`{name}` is for audits of one table: leave it out")
    if schema.unit is not None and game.secret is not None:
        raise SettingsError(
            "`secret` is a value of one row, and a unit may have several: leave out the unit, or "
            "leave out `secret`"
        )
    if schema.unit is not None and game.target == VULNERABLE:
        raise SettingsError(
            f"the search for the most vulnerable target compares rows, not units: give "
            f'`target="{EXPOSING}"` or unit:VALUE, or leave out the unit'
        )


def audited_pair(table: Table, settings: AuditSettings[TwoWorlds]) -> NeighbouringTables | None:
    """Both tables of an audit that names a pair; None for one that names a target.

    Raises:
        DataError: If the neighbours file is not a neighbour of the table.
        SchemaError: If the schema is not public.
        SettingsError: If the tables do not have the neighbouring relation that was asked for.
    """
    if settings.game.worst_case is not None:
        return worst_case_tables(settings.game.worst_case, table.schema)
    if settings.game.neighbours_file is None:
        return None
    pair = read_neighbours(settings.game.neighbours_file, table)
    if settings.claim.neighbours not in (None, pair.neighbours):
        raise SettingsError(
            f"`neighbours` is {settings.claim.neighbours}, and the tables of `neighbours_file` are "
            f"{pair.neighbours}: leave out `neighbours`"
        )
    return pair


def public_schema(schema: SchemaGiven) -> tuple[Schema | None, str | None]:
    """A schema without a table, and its file if it was read from one.

    Raises:
        SchemaError: If the file is missing or holds no schema with bounds and categories.
    """
    if isinstance(schema, str | Path):
        return load_schema(schema, _no_table), str(schema)
    return schema, None


def _no_table() -> pd.DataFrame:
    raise SchemaError(
        "SDV metadata has no bounds and categories of its own: a worst case needs a schema with "
        "them; see docs/schema.md"
    )


_WRITTEN_APART: Final = ("target", "worst_case", "neighbours_file", "access", "attacks", "bound")
"""Settings that are recorded by their outcome instead."""


@dataclass(frozen=True, kw_only=True)
class TwoWorldSpec(AuditSpec):
    """A complete audit with shadow models in two worlds.

    Attributes:
        target: The attacked record.
        game: Both worlds.
        pair: Both tables, if the audit names them instead of a target.
        selection: How the target was searched for; None if it was named. It changes no number:
            given its target, an audit is the same however the target was found.
        secret: The attack on a secret; None if no secret is guessed.
    """

    TRAINED: ClassVar[tuple[str, ...]] = ("target", "neighbours")

    settings: AuditSettings[TwoWorlds]
    target: Target
    game: TargetGame
    pair: NeighbouringTables | None = None
    selection: Selection | None = None
    secret: NamedAttack | None = None

    @property
    def target_row(self) -> int | None:
        """The target's row; None if the table does not hold it."""
        return self.target.row

    @cached_property
    def target_repeats(self) -> int:
        """How many rows of both worlds equal `copied`."""
        return copies_of(self.copied, self.game.table(World.OUT, 0), self.table.schema)

    @property
    def copied(self) -> pd.DataFrame:
        """The record that the positive control copies: the target, or the first row of its unit."""
        return self.target.record.head(1)

    @property
    def every_attack(self) -> tuple[NamedAttack, ...]:
        """The attacks on membership, then the one on a secret, if there is one."""
        return self.attacks if self.secret is None else (*self.attacks, self.secret)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """How many features each attack has."""
        return tuple(len(named.feature_names(self.game.view)) for named in self.every_attack)

    @property
    def is_timed(self) -> bool:
        """Whether the time and memory of trainings are measured."""
        return self.settings.game.is_timed

    @property
    def trains_together(self) -> bool:
        """Whether models are trained many at once: models that are timed train alone."""
        return trains_many(self.generator.generator) and not self.is_timed

    @cached_property
    def repeatable(self) -> BoolArray:
        """Which features [f] a trial's seed decides: all but those that are measured."""
        measured = [access_of(attack) is Access.TIMING for _, attack in self.every_attack]
        return np.repeat(~np.array(measured), self.widths)

    @cached_property
    def last_bits(self) -> BoolArray:
        """Which features [f] the last bits of floating-point numbers decide."""
        view = self.game.view
        names = [name for named in self.every_attack for name in named.feature_names(view)]
        return np.array([isinstance(name, LastBitsName) for name in names], dtype=np.bool_)

    @property
    def own_specification(self) -> dict[str, Any]:
        """Target, attacks, number of shadow models, and use of the error probability."""
        game = self.settings.game
        target = {
            "choice": self.target.choice,
            "row": self.target.row,
            "record": data_digest(self.target.record),
        }
        if self.pair is not None and self.pair.replacement is not None:
            target["replacement"] = data_digest(self.pair.replacement)
        beyond = game.access is not Access.OUTPUT
        return {
            "target": target,
            **({"access": game.access.value} if beyond else {}),
            **({"bound": game.bound.value} if isinstance(self.claim, DeltaClaim) else {}),
            "attacks": self.attacks_specified,
            **game.plain(*_WRITTEN_APART),
        }

    @property
    def stored_specification(self) -> dict[str, Any]:
        """The specification for a run folder; the record is private too."""
        target = self.specification["target"]
        records = {key: Private(target[key]) for key in ("record", "replacement") if key in target}
        return {**super().stored_specification, "target": target | records}

    @property
    def table_options(self) -> list[str]:
        """The words of the command that name the table, or its worst case."""
        worst_case = self.settings.game.worst_case
        if worst_case is None:
            return super().table_options
        return ["--worst-case", worst_case.value, *self.table.schema_words]

    @property
    def own_options(self) -> list[str]:
        """The words of the command that repeat the audit's own choices."""
        game = self.settings.game
        words = self.pair_options
        if self.selection is not None:
            words = ["--target", VULNERABLE]
        if game.access is not Access.OUTPUT:
            words += ["--access", game.access.value]
        if isinstance(self.claim, DeltaClaim):
            words += ["--bound", game.bound.value]
        return words + self.attack_options + game.words(*_WRITTEN_APART)

    @property
    def pair_options(self) -> list[str]:
        """The words of the command that name the two tables: a file of both, or the target."""
        if self.settings.game.neighbours_file is not None:
            return ["--neighbours-file", self.settings.game.neighbours_file]
        is_named = self.pair is not None or self.target.choice == EXPOSING
        return [] if is_named else ["--target", self.target.choice]

    @property
    def replay(self) -> str | None:
        """The command that replays the generator on both tables, if it can read them."""
        if self.table.source == IN_MEMORY:
            return None
        return shlex.join(self.command_of("replay", self.pair_options))


def build_two_worlds(
    generator: object, table: Table, settings: AuditSettings[TwoWorlds]
) -> TwoWorldSpec:
    """Validates everything that an audit in two worlds needs.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit; its target is one record.

    Returns:
        The audit.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    data, schema = table.data, table.schema
    pair = audited_pair(table, settings)
    if pair is None:
        target = choose_target(settings.game.target, data, schema)
    else:
        record = data.iloc[list(pair.rows)].reset_index(drop=True)
        target = Target(pair.choice, pair.rows, record)
    named = build_generator(generator, settings, schema=schema, target=schema.handed(target.record))
    if isinstance(schema, LinkedTables) and trains_many(named.generator):
        raise SettingsError(f"{named.name} trains many models on one table, and several are given")
    attacks, facts = attacks_with_access(named, settings.game.attacks, settings.game.access)
    settings = with_visible(settings, attacks)
    if schema.unit is not None:
        settings = settings.with_game(probe=False)  # probes change single rows
    stated = settings.claim
    if pair is not None and pair.neighbours is not None:
        stated = replace(stated, neighbours=pair.neighbours)
    claim: Claim = claim_if_any(named, stated, table)
    if settings.game.bound is BoundedNumber.DELTA:
        claim = DeltaClaim.of(claim)
    if settings.game.sequential:
        require_claim(claim, method="`sequential`")
    require_coins(settings, claim)
    replacement = None if pair is None else pair.replacement
    if pair is None and claim.neighbours is Neighbours.REPLACE_ONE:
        stream = Stream(settings.seed, "", "replacement")
        replacement = _draw_replacements(target.record, schema, stream)
    game = build_game(
        data,
        schema,
        target,
        n_rows=schema.rows_asked(data) if settings.rows is None else settings.rows,
        neighbours=claim.neighbours,
        replacement=replacement,
        released_facts=facts,
        released_effect=released_effect(
            named.generator,
            name=named.name,
            facts=facts,
            target=target.record,
            replacement=replacement,
        ),
    )
    secret = None
    if settings.game.secret is not None:
        secret = NamedAttack("secret", SecretGuess(settings.game.secret))
    for attack in (*attacks, *([] if secret is None else [secret])):
        attack.check(game.view)
    check_table(named.generator, schema.handed(data))
    return TwoWorldSpec(
        given=generator,
        generator=named,
        table=table,
        settings=settings,
        claim=claim,
        target=target,
        game=game,
        attacks=attacks,
        pair=pair,
        secret=secret,
    )


def with_pair(
    audit: TwoWorldSpec, pair: NeighbouringTables, *, files: tuple[str, ...], other_file: str | None
) -> TwoWorldSpec:
    """The same audit on two other tables of its schema.

    Args:
        audit: The audit.
        pair: The tables, with the relation of the audit's claim.
        files: The file of the table with the record, or those of linked tables.
        other_file: The file of the other table; None if the target's choice says what it lacks.
    """
    record = pair.data.iloc[list(pair.rows)].reset_index(drop=True)
    target, view = Target(pair.choice, pair.rows, record), audit.game.view
    game = build_game(
        pair.data,
        pair.schema,
        target,
        n_rows=view.n_rows,
        neighbours=audit.claim.neighbours,
        replacement=pair.replacement,
        released_facts=view.released_facts,
    )
    return replace(
        audit,
        table=Table(pair.data, pair.schema, ", ".join(files), audit.table.schema_source, files),
        settings=audit.settings.with_game(target=EXPOSING, neighbours_file=other_file),
        target=target,
        game=game,
        pair=None if other_file is None else pair,
    )


def with_visible(
    settings: AuditSettings[TwoWorlds], attacks: tuple[NamedAttack, ...]
) -> AuditSettings[TwoWorlds]:
    """The settings whose attacks, if they are the default ones, are those that see something."""
    if settings.game.attacks != ATTACKS_AT[settings.game.access]:
        return settings
    return settings.with_game(attacks=tuple(attack.name for attack in attacks))


def _draw_replacements(target: pd.DataFrame, schema: Schema, stream: Stream) -> pd.DataFrame:
    """A record drawn from the schema, never from the data, for each row of the target.

    Each differs from the row in whose place it stands; the replacement of a unit keeps its name.
    """
    if isinstance(schema, LinkedTables):
        return _draw_linked_replacements(target, schema, stream)
    null = cast(Generator, build("null", GENERATORS, given={}, offered={"schema": schema}))
    drawn = null.fit(target, seed=stream.seed()).sample(1000 * len(target), seed=stream.seed())
    candidates = (schema.canonical(drawn.iloc[[place]]) for place in range(len(drawn)))
    records: list[pd.DataFrame] = []
    for record in candidates:
        row = target.iloc[[len(records)]]
        if not copies_of(record, row, schema):
            records.append(record)
            if len(records) == len(target):
                return _keep_unit(target, pd.concat(records, ignore_index=True), schema)
    raise SettingsError("the schema allows no record but the target: widen its bounds")


def _draw_linked_replacements(
    target: pd.DataFrame, schema: LinkedTables, stream: Stream
) -> pd.DataFrame:
    """The same for the rows of several tables; each keeps its keys."""
    records = []
    for place, name in enumerate(target[TABLE]):
        tables, part = schema.handed(target.iloc[[place]]), schema.tables[name]
        own = stream._replace(trial=place)
        drawn = _draw_replacements(part.canonical(tables[name]), part, own)
        tables[name][part.names] = drawn
        records.append(schema.stacked(tables))
    return _keep_unit(target, pd.concat(records, ignore_index=True), schema)


def _keep_unit(target: pd.DataFrame, records: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Records of the target's unit, if the audit is of units."""
    if schema.unit is None:
        return records
    return schema.canonical(records.assign(**{schema.unit.column: target[schema.unit.column]}))


FIRST_FITTED = 16
"""Trials that the first attack of a sequential audit is fitted on, half of them of each world."""


@dataclass(frozen=True)
class TrialPlan:
    """The trials of one role, named by world and number, the fitting part first.

    Attributes:
        role: The role.
        worlds: The world of every trial.
        fitted: How many of the first ones form the fitting part.
    """

    role: Role
    worlds: tuple[World, ...]
    fitted: int

    def trials(self, start: int = 0, stop: int | None = None) -> list[Trial]:
        """The trials from one place in the plan to another."""
        number = dict.fromkeys(World, 0)
        named = []
        for world in self.worlds[:stop]:
            named.append(Trial(self.role, world, number[world]))
            number[world] += 1
        return named[start:]

    @property
    def parts(self) -> tuple[list[Trial], list[Trial]]:
        """The fitting part and the part that is scored, each in the order of `in_first`."""
        trials = self.trials()
        return in_first(trials[: self.fitted]), in_first(trials[self.fitted :])


def in_first(trials: Iterable[Trial]) -> list[Trial]:
    """Trials of world "in" by number, then those of world "out"."""
    return sorted(trials, key=lambda trial: (trial.world is World.OUT, trial.number))


def plan_trials(audit: TwoWorldSpec, role: Role, settings: AuditSettings[TwoWorlds]) -> TrialPlan:
    """Draws the worlds of all trials of a role, and the fitting part, before any of them is run.

    The world of every scored trial is an independent fair coin (`bounds.fair_coin` needs that;
    `bounds.exact`, which conditions on the number of trials of either world, allows it). The
    fitting part has equally many trials of each world. Published audits score a fixed number of
    each world; `threshold="hold-out"` follows them, without coins.

    Args:
        audit: The audit; its coins come from a stream of their own.
        role: The role.
        settings: Settings of the role's trials.

    Returns:
        The plan: the same for the same settings.
    """
    every, fitted = settings.game.shadow_models, 2 * settings.game.fitted
    # A sequential audit bets on all trials after the first few, so their worlds must be coins.
    balanced = FIRST_FITTED if settings.game.sequential else fitted
    alternating = [world for _ in range(every // 2) for world in World]
    if not settings.game.fair_coins:
        return TrialPlan(role, tuple(alternating), fitted)
    coins = audit.stream(f"{role}/coins").rng().integers(2, size=every - balanced)
    drawn = [World.IN if coin else World.OUT for coin in coins]
    return TrialPlan(role, (*alternating[:balanced], *drawn), fitted)
