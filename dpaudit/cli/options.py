"""The options of commands; those of settings are made from their fields.

A command takes settings as one parameter, whose type is their class; `takes_settings` shows typer
one option for each of their fields instead. What an option says is what the field says
(`dpaudit.model.setting`): its type, its default, its line in the docstring.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from dpaudit import formatting
from dpaudit.auditing.games import Keyword, audit_settings, keywords, keywords_in
from dpaudit.auditing.settings import AuditSettings, Machine, Outputs
from dpaudit.cli.command import SET, TABLE_ENDINGS, option
from dpaudit.cli.console import spell_options
from dpaudit.errors import InputError
from dpaudit.model.choices import FailOn
from dpaudit.model.setting import Panel

_OF_AUDITS = (Panel.ATTACK, Panel.MORE_AUDITS, Panel.RULES)
"""Headings that no other command has."""


def of_setting(
    name: str,
    keyword: Keyword,
    *,
    options: Collection[str] = (),
    in_audit: bool = False,
    required: bool = False,
) -> Any:
    """The option of a setting, with its description and its default in words.

    Args:
        name: The setting.
        keyword: What it is.
        options: Names of the options of its command, which the description may mention.
        in_audit: Whether its command is `dpaudit audit`, whose help omits what few audits need.
        required: Whether it must be given.
    """
    spelling, default = keyword.setting.option, keyword.default
    flags = spelling.spelled(name)
    if default is True:
        flags = (f"{flags[0]}/--no-{flags[0][2:]}",)
    text = spell_options(keyword.description, options=options)
    if _typed(keyword) == list[str]:
        before, named, after = text.partition(" Default:")
        text = f"{before} Repeatable.{named}{after}"
    if not (required or "Default:" in text or isinstance(default, bool | Mapping)):
        text += f" Default: {_in_words(default)}."
    return option(
        *flags,
        metavar=None if keyword.setting.kind is bool else spelling.value or name.upper(),
        help=text,
        panel=spelling.panel if in_audit or spelling.panel not in _OF_AUDITS else None,
        hidden=in_audit and spelling.by_name,
    )


def _in_words(default: object) -> str:
    if isinstance(default, tuple):
        *first, last = default or ("none",)
        return " and ".join([", ".join(first), last]) if first else str(last)
    return "none" if default is None else str(default)


def _typed(keyword: Keyword) -> Any:
    """The type of what is typed for a setting."""
    kind = keyword.setting.kind
    if keyword.setting.option.text:
        return str
    return kind if get_origin(kind) is None else list[str]


def _registered_generators(incomplete: str) -> list[str]:
    """The generators whose names begin with what was typed, for completion."""
    from dpaudit.plugins.registry import GENERATORS, names

    return [name for name in names(GENERATORS) if name.startswith(incomplete)]


def _refuse_table(generator: str | None) -> str | None:
    if generator is not None and generator.endswith(TABLE_ENDINGS):
        message = f"{generator} is a table: name a generator, then --data {generator}"
        raise typer.BadParameter(message)
    return generator


_GENERATOR = typer.Argument(
    metavar="GENERATOR",
    help="Class with fit(data, *, seed) and sample(n, *, seed), as file.py:Gan or module:Gan; "
    "registered name or LIBRARY:METHOD (see `dpaudit list`); or worker:COMMAND.",
    show_default=False,
    autocompletion=_registered_generators,
    callback=_refuse_table,
)
GeneratorName = Annotated[str, _GENERATOR]
GeneratorToPlan = Annotated[str | None, _GENERATOR]
RunFolderArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Run folder, or its result.json.")
]
Data = Annotated[
    str,
    option(
        metavar="FILE",
        help="Table to train on: CSV, Parquet, Excel, or sample:breast-cancer.",
        panel=Panel.INPUT,
    ),
]
Tables = Annotated[
    list[str] | None,
    option(
        metavar="FILE",
        help="Table to train on: CSV, Parquet, Excel, or sample:breast-cancer; repeatable for "
        "several tables with --link.",
        panel=Panel.INPUT,
    ),
]
SchemaFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Public schema of the table: JSON, or SDV metadata. Default: ranges and categories "
        "are read off the table, so a leak through them cannot be seen.",
        panel=Panel.INPUT,
    ),
]
OwnEpsilon = Annotated[
    float | None,
    option(
        metavar="E",
        help="The generator's parameter epsilon; same as -p epsilon=E.",
        panel=Panel.INPUT,
    ),
]
OwnDelta = Annotated[
    float | None,
    option(
        metavar="D", help="The generator's parameter delta; same as -p delta=D.", panel=Panel.INPUT
    ),
]


def _named(name: str, owner: type = AuditSettings) -> Any:
    """The option of a setting that a command takes as a parameter of its own."""
    return of_setting(name, {**keywords(), **keywords_in(owner)}[name])


Parameters = Annotated[list[str] | None, _named("parameters")]
Links = Annotated[list[str] | None, _named("links")]
Separator = Annotated[str | None, _named("separator")]
Encoding = Annotated[str | None, _named("encoding")]
UnitColumn = Annotated[str | None, _named("unit")]
WorkerMemory = Annotated[float | None, _named("worker_memory")]
Rows = Annotated[int | None, _named("rows")]
Confidence = Annotated[float, _named("confidence")]
Seed = Annotated[int, _named("seed")]
Jobs = Annotated[int | None, _named("jobs", Machine)]
FailOnVerdict = Annotated[FailOn, _named("fail_on", Outputs)]
Python = Annotated[
    Path | None,
    option(
        metavar="PATH",
        help="Python interpreter of the environments. Default: this one if its version fits, else "
        "python3.X on PATH.",
    ),
]
Json = Annotated[
    bool, option("--json", help="Print one JSON document and nothing else.", panel=Panel.OUTPUT)
]
Quiet = Annotated[
    bool,
    option("-q", "--quiet", help="Print one line of result and no progress.", panel=Panel.OUTPUT),
]
Html = Annotated[
    Path | None, option(metavar="FILE", help="Also write the report as HTML.", panel=Panel.OUTPUT)
]
Markdown = Annotated[
    Path | None,
    option(metavar="FILE", help="Also write the report as Markdown.", panel=Panel.OUTPUT),
]


_SET = option(
    f"--{SET}",
    metavar="NAME=VALUE",
    help="Any other setting, as in dpaudit.toml; repeatable. Such as unit=COLUMN, mu=M, rows=N, "
    "canaries=M, secret=COLUMN, confidence=C (`docs/configuration.md` has all).",
    panel=Panel.MORE_AUDITS,
)


def built_with(
    pairs: Sequence[str] | None, epsilon: float | None, delta: float | None
) -> dict[str, Any]:
    """The constructor parameters of a generator given by name.

    Args:
        pairs: Those that `-p` gives.
        epsilon: Its parameter of that name; None if it was not given so.
        delta: The same.

    Raises:
        InputError: If a parameter is malformed, or was given both ways.
    """
    from dpaudit.plugins.registry import parse_parameters

    parameters = parse_parameters(pairs or [])
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is None:
            continue
        if name in parameters:
            raise InputError(f"`{name}` is also given with -p: leave one of the two out")
        parameters[name] = value
    return parameters


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Decorates a command with the options that say how its CSV files are written."""

    @functools.wraps(command)
    def run(*, separator: str | None = None, encoding: str | None = None, **values: Any) -> None:
        if separator is None and encoding is None:
            return command(**values)
        from dpaudit.model.table_files import csv_written

        with csv_written(separator, encoding):
            return command(**values)

    _add_options(run, command, {"separator": (Separator, None), "encoding": (Encoding, None)})
    return shows_values(run)


def shows_values(command: Callable[..., None]) -> Callable[..., None]:
    """Decorates a command with the hidden option that lets its errors quote private values."""
    says = "Quote private values in errors, next to their rows."
    shown = option("--show-values", help=says, panel=Panel.OUTPUT, hidden=True)

    @functools.wraps(command)
    def run(*, show_values: bool = False, **values: Any) -> None:
        with formatting.show_values() if show_values else nullcontext():
            return command(**values)

    _add_options(run, command, {"show_values": (Annotated[bool, shown], False)})
    return run


def _add_options(
    run: Callable[..., None], command: Callable[..., None], added: Mapping[str, tuple[Any, object]]
) -> None:
    """Gives a command's wrapper its signature and these options, each with its default."""
    given = inspect.signature(command, eval_str=True)
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option)
        for name, (option, default) in added.items()
    ]
    vars(run)["__signature__"] = given.replace(parameters=[*given.parameters.values(), *shown])


def takes_settings(
    *names: str, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command with parameters that are settings.

    Args:
        names: Settings of an audit that are options of a command whose `settings` are a mapping of
            those that were given.
        without: Fields of settings that the command has no option for.

    Returns:
        The decorator. Typer sees an option for each setting in the place of such a parameter. One
        that is not given is None, and so distinct from one given with its default. A command that
        takes `AuditSettings` also has `--set`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command, eval_str=True)
        whole = any(param.annotation is AuditSettings for param in given.parameters.values())
        groups: dict[str, Mapping[str, Keyword]] = {}
        required = set[str]()
        taken = {*without}
        for name, param in given.parameters.items():
            known = _settings_in(param.annotation, names if name == "settings" else ())
            if known:
                groups[name] = {of: each for of, each in known.items() if of not in taken}
                taken |= groups[name].keys()
                if known is not keywords() and is_dataclass(param.annotation):
                    required |= _required(param.annotation)
        options = {*given.parameters, *taken, *([SET] if whole else [])}

        @functools.wraps(command)
        def run(**values: Any) -> None:
            values.pop(SET, None)
            for name, group in groups.items():
                asked = {of: values.pop(of) for of in group}
                values[name] = _build(given.parameters[name].annotation, asked)
            command(**values)

        shown = list[inspect.Parameter]()
        for name, param in given.parameters.items():
            if name not in groups:
                shown.append(param.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            for of, keyword in groups.get(name, {}).items():
                words = of_setting(
                    of, keyword, options=options, in_audit=whole, required=of in required
                )
                shown.append(_parameter(of, keyword, words, required=of in required))
        if whole:
            kind = inspect.Parameter.KEYWORD_ONLY
            by_name = Annotated[list[str] | None, _SET]
            shown.append(inspect.Parameter(SET, kind, default=None, annotation=by_name))
        vars(run)["__signature__"] = given.replace(parameters=shown)
        return run

    return decorate


def _settings_in(kind: Any, names: Collection[str]) -> Mapping[str, Keyword]:
    """The settings of a parameter of this type; none of any other."""
    if kind is AuditSettings:
        return keywords()
    if names:
        return {name: keywords()[name] for name in keywords() if name in names}
    return keywords_in(kind) if is_dataclass(kind) and isinstance(kind, type) else {}


def _build(kind: Any, asked: Mapping[str, Any]) -> Any:
    """Settings from those that were typed."""
    given = {name: value for name, value in asked.items() if value is not None}
    if "parameters" in given:
        from dpaudit.plugins.registry import parse_parameters

        given["parameters"] = parse_parameters(given["parameters"])
    if kind is AuditSettings:
        return audit_settings(**given)
    return given if kind == dict[str, Any] else kind(**given)


def _required(kind: Any) -> set[str]:
    """The fields of settings that have no default."""
    return {of.name for of in fields(kind) if of.default is of.default_factory is MISSING}


def _parameter(name: str, keyword: Keyword, words: Any, *, required: bool) -> inspect.Parameter:
    hint = _typed(keyword) if required else _typed(keyword) | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else None,
        annotation=Annotated[hint, words],
    )
