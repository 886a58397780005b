"""The games of an audit, and the plain keywords that choose a game and its settings.

A new game is a package next to these, with a `dpaudit.auditing.game.Game` and a plan, its settings
in `settings.py`, and a line in each of the tables here: `GAMES`, `game_of` and `sizing_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dpaudit.auditing.settings import (
    AuditSettings,
    GameSettings,
    Machine,
    ManyRecords,
    OneRun,
    Outputs,
    TwoWorlds,
)
from dpaudit.errors import SettingsError
from dpaudit.formatting import Row, did_you_mean
from dpaudit.model.choices import Effort
from dpaudit.model.claim import PrivacyClaim, StatedClaim
from dpaudit.model.setting import ANY, Option, Panel, SettingField, setting_of, settings_of

if TYPE_CHECKING:
    from dpaudit.auditing.game import Game
    from dpaudit.auditing.plan import PlanSubject, Sizing
    from dpaudit.auditing.spec import AuditSpec, Data, SchemaGiven
    from dpaudit.model.tables import Table

GAMES: Final[tuple[type[GameSettings], ...]] = (TwoWorlds, ManyRecords, OneRun)
"""The settings class of every game; the first is the default."""
EFFORT: Final = "effort"


class Keyword(NamedTuple):
    """A plain keyword of an audit.

    Attributes:
        default: Its default; None for no value.
        setting: Its type, and how the command line spells it.
        description: What it means.
        games: The games that know it; None if every audit does.
    """

    default: object
    setting: SettingField
    description: str
    games: tuple[type[GameSettings], ...] | None = None


_EFFORT: Final = Keyword(
    None,
    SettingField(Effort, optional=True, range=ANY, option=Option("SIZE", panel=Panel.ATTACK)),
    "Shadow models, or canaries, where no number is given: quick (100, 50), standard (400, 100) or "
    "thorough (1000, 400). Default: standard.",
)


@cache
def keywords() -> Mapping[str, Keyword]:
    """Every plain keyword, claims first: the fields of all settings, and switches."""
    known = keywords_in(StatedClaim)
    for game in GAMES:
        own = keywords_in(game)
        switch = game.SWITCH
        if switch is not None:
            field = own.pop(switch.keyword, None)
            setting = setting_of(type(switch.off)) if field is None else field.setting
            known[switch.keyword] = Keyword(
                switch.off,
                setting._replace(range=ANY),  # being off may be outside
                switch.description if field is None else field.description,
                (game,),
            )
        for name, keyword in own.items():
            before = known.get(name, keyword._replace(games=()))
            widest = before.setting.range.joined(keyword.setting.range)
            known[name] = before._replace(
                setting=before.setting._replace(range=widest), games=(*(before.games or ()), game)
            )
    known[EFFORT] = _EFFORT
    further = keywords_in(AuditSettings)
    return known | {
        name: keyword for name, keyword in further.items() if name not in ("game", "claim")
    }


def keywords_in(owner: type) -> dict[str, Keyword]:
    """The settings of a class by name."""
    from dpaudit.results.document import attributes_of

    settings, described = settings_of(owner), attributes_of(owner)
    return {
        name: Keyword(default, settings[name], described.get(name, ""))
        for name, default in _fields(owner).items()
    }


@cache
def by_name() -> Mapping[str, SettingField]:
    """What `dpaudit audit` takes as `--set NAME=VALUE`, or from its file: few audits need it."""
    known = {**settings_of(Machine), **settings_of(Outputs)}
    known |= {name: keyword.setting for name, keyword in keywords().items()}
    return {name: setting for name, setting in known.items() if setting.option.by_name}


def audit_settings(**given: Any) -> AuditSettings[Any]:
    """Settings from plain keywords, spelled as on the command line and in pytest.

    Args:
        given: Keywords: fields of a claim, of `AuditSettings` and of the settings of one game, the
            switch that chooses that game, and `effort`. None counts as not given.

    Returns:
        The settings of the game that a switch chooses, else of two worlds.

    Raises:
        SettingsError: If one is unknown or out of range, or belongs to another game.
    """
    known = keywords()
    for name in given:
        if name not in known:
            raise SettingsError(
                f"`{name}` is no setting of an audit{did_you_mean(name, list(known))}"
            )
    asked = {name: value for name, value in given.items() if value is not None}
    game = _chosen_by(asked)
    asked = {name: value for name, value in asked.items() if not _is_answered(name, value, game)}
    of_game = {name: asked.pop(name) for name in _fields(game) if name in asked}
    of_claim = {name: asked.pop(name) for name in _fields(StatedClaim) if name in asked}
    effort = asked.pop(EFFORT, None)
    wrong = [name for name in known if name in asked and known[name].games is not None]
    if wrong:
        raise SettingsError(_of_another_game(wrong, game))
    chosen = game(**of_game) if effort is None else game.sized(effort, **of_game)
    return AuditSettings(game=chosen, claim=StatedClaim(**of_claim), **asked)


def keywords_of(settings: AuditSettings) -> dict[str, Any]:
    """The plain keywords in which settings differ from their defaults."""
    values: dict[str, Any] = {}
    for part in (settings.claim, settings.game, settings):
        values |= {field.name: getattr(part, field.name) for field in fields(part)}
    switch = settings.game.SWITCH
    if switch is not None and switch.keyword not in values:
        values[switch.keyword] = not switch.off
    defaults = {name: keyword.default for name, keyword in keywords().items()}
    own = _fields(type(settings.game))  # a game may have a default of its own
    if switch is not None:
        own.pop(switch.keyword, None)
    defaults |= own
    return {
        name: values[name]
        for name, default in defaults.items()
        if name in values and values[name] != default
    }


def keywords_of_game(given: Mapping[str, Any]) -> frozenset[str]:
    """The keywords of the game that the given keywords choose.

    Args:
        given: The keywords.
    """
    return frozenset(_fields(_chosen_by(given)))


def sizes_of_effort() -> frozenset[str]:
    """The keywords that `effort` sets unless they are given."""
    return frozenset().union(*(sizes for game in GAMES for sizes in game.SIZES.values()))


def game_of(game: GameSettings) -> Game[Any]:
    """The game of some settings, which is loaded when it is needed: options are made of settings.

    Args:
        game: The settings of a game.
    """
    if isinstance(game, OneRun):
        from dpaudit.auditing.one_run.game import OneRunGame

        return OneRunGame()
    if isinstance(game, ManyRecords):
        from dpaudit.auditing.records.game import RecordsGame

        return RecordsGame()
    from dpaudit.auditing.two_worlds.game import TwoWorldsGame

    return TwoWorldsGame()


def sizing_of(subject: PlanSubject, settings: AuditSettings, detect: float | None) -> Sizing:
    """The power and the upper limit of audits of several sizes, before anything is trained.

    Args:
        subject: What will be audited.
        settings: Every choice of the audit.
        detect: True value of the claim's quantity that the audit must be large enough to detect;
            None if none was asked for.

    Raises:
        SettingsError: If there can be no such audit.
        ClaimError: If the game cannot be about such a claim.
    """
    # The modules of plans alone: what trains and stores models takes long to load.
    from dpaudit.auditing.alternatives import is_of_one_table, what_decides
    from dpaudit.auditing.one_run import plan as one_run
    from dpaudit.auditing.plan import MOST_PLANNED, SHADOW_MODELS
    from dpaudit.auditing.records import plan as records
    from dpaudit.auditing.two_worlds import plan as two_worlds

    plans: Mapping[type[GameSettings], Callable[..., Sizing]] = {
        TwoWorlds: two_worlds.sizing,
        ManyRecords: records.sizing,
        OneRun: one_run.sizing,
    }
    sizing = plans[type(settings.game)](subject, settings, detect)
    claim, needed = subject.claim, sizing.needed
    within = needed is None or (needed.size or MOST_PLANNED) <= max(SHADOW_MODELS)
    enough = within and sizing.asked_row.max_provable > claim.value
    if enough or not isinstance(claim, PrivacyClaim):
        return sizing
    instead = what_decides(claim, settings, subject.population, target=detect)
    rows = [Row("instead", fact) for fact in instead]
    if isinstance(settings.game, TwoWorlds) and is_of_one_table(settings.game):
        stronger = "it makes attacks stronger but leaves the limit as it is"
        rows.append(Row("not", f'`access="released"`: {stronger}'))
    return replace(sizing, details=(*sizing.details, *rows))


def audited_table(data: Data, schema: SchemaGiven, settings: AuditSettings) -> Table:
    """The audited table: the caller's, or the game's own.

    Args:
        data: As for `dpaudit.audit`.
        schema: As for `dpaudit.audit`.
        settings: Every choice of the audit.

    Returns:
        The table with its schema.

    Raises:
        DataError: If the table cannot be read or does not fit.
        SchemaError: If the schema is malformed, or not public where it must be.
        SettingsError: If the table is missing, or one too many.
    """
    from dpaudit.model.table_files import csv_written

    with csv_written(settings.separator, settings.encoding):
        return game_of(settings.game).table(data, schema, settings)


def build_spec(generator: object, table: Table, settings: AuditSettings) -> AuditSpec:
    """Builds a complete, validated audit from the caller's choices; trains nothing.

    Args:
        generator: As for `dpaudit.audit`.
        table: The table handed in.
        settings: Every choice of the audit.

    Returns:
        The audit, or the search for the most vulnerable target that comes before it.

    Raises:
        InputError: If anything is unusable; says what and how to fix it.
    """
    from dpaudit.model.table_files import csv_written

    with csv_written(settings.separator, settings.encoding):  # of a target or a second table
        return game_of(settings.game).specify(generator, table, settings)


def _fields(of: type) -> dict[str, Any]:
    """The fields of settings with their defaults."""
    defaults = {}
    for field in fields(of):
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        defaults[field.name] = None if default is MISSING else default
    return defaults


def _chosen_by(asked: Mapping[str, Any]) -> type[GameSettings]:
    """The game whose switch is on, else the first."""
    for game in GAMES:
        switch = game.SWITCH
        if switch is not None and asked.get(switch.keyword) not in (None, switch.off):
            return game
    return GAMES[0]


def _is_answered(name: str, value: object, game: type[GameSettings]) -> bool:
    """Whether a keyword adds nothing: a switch already chose the game, or the value is False."""
    if name in _fields(game):
        return False
    every = [other.SWITCH for other in GAMES if other.SWITCH]
    switches = [switch for switch in every if switch.keyword == name]
    return value is False or any(
        value == switch.off or switch is game.SWITCH for switch in switches
    )


def _of_another_game(wrong: Sequence[str], game: type[GameSettings]) -> str:
    """Refuses keywords that the game does not have."""
    named = ", ".join(f"`{name}`" for name in wrong)
    if game.SWITCH is not None:
        return (
            f"an audit of {game.NAME} has no {named}: leave out {named}, or leave out "
            f"`{game.SWITCH.keyword}`"
        )
    others = keywords()[wrong[0]].games or ()
    switches = " or ".join(f"`{other.SWITCH.keyword}`" for other in others if other.SWITCH)
    return f"{named} is for {switches}: set that too, or leave it out"
