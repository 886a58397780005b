"""The options of commands, and how the settings of an audit are spelled as options.

Every plain keyword of an audit (`dpaudit.auditing.games`) is an option: with the text of its entry
in `SETTINGS`, else that of its field. A command takes the settings as one parameter of type
`AuditSettings`; `takes_settings` shows typer one option for each keyword instead.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from dpaudit.auditing.configuration import type_and_description
from dpaudit.auditing.games import audit_settings, keywords
from dpaudit.auditing.settings import SET_BY_NAME, AuditSettings
from dpaudit.cli.command import SET, Panel, option
from dpaudit.cli.console import FailOn
from dpaudit.errors import InputError
from dpaudit.model.choices import (
    CHOICES_OF_TARGET,
    Access,
    WorstCase,
)
from dpaudit.model.claim import Neighbours


def _registered_generators(incomplete: str) -> list[str]:
    """The generators whose names begin with what was typed, for completion."""
    from dpaudit.plugins.registry import GENERATORS, names

    return [name for name in names(GENERATORS) if name.startswith(incomplete)]


_GENERATOR = typer.Argument(
    metavar="GENERATOR",
    help="Class with fit(data, *, seed) and sample(n, *, seed), as file.py:Gan or module:Gan; "
    "registered name or LIBRARY:METHOD (see `dpaudit list`); or worker:COMMAND.",
    show_default=False,
    autocompletion=_registered_generators,
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
        help="Table to train on: CSV (also .gz), Parquet, or sample:breast-cancer.",
        panel=Panel.INPUT,
    ),
]
Tables = Annotated[
    list[str] | None,
    option(
        metavar="FILE",
        help="Table to train on: CSV (also .gz), Parquet, or sample:breast-cancer; repeatable for "
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
Parameters = Annotated[
    list[str] | None,
    option(
        "-p",
        "--parameter",
        metavar="K=V",
        help="Parameter of the generator; repeatable.",
        panel=Panel.INPUT,
    ),
]
Links = Annotated[
    list[str] | None,
    option(
        "--link",
        metavar="CHILD.COLUMN=PARENT.KEY",
        help="Key that connects two tables, such as visits.patient_id=patients.id; repeatable. A "
        "row of the table that refers to no other is the unit, with all rows that refer to it.",
        panel=Panel.INPUT,
    ),
]
Epsilon = Annotated[
    float | None,
    option(
        metavar="E",
        help="Claimed epsilon: tested, not passed to the generator (-p epsilon=E does that). "
        "Default: the generator's claim; if it has none, the audit gives a bound and no verdict.",
        panel=Panel.CLAIM,
    ),
]
Delta = Annotated[
    float | None,
    option(
        metavar="D",
        help="Claimed delta; give it if there is one: 0 tests pure DP. Default: the generator's "
        "claim, else 0.",
        panel=Panel.CLAIM,
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
Relation = Annotated[
    Neighbours | None,
    option(
        metavar="RELATION",
        help="Neighbouring relation: add-remove, replace-one. Default: the generator's claim, else "
        "add-remove.",
        panel=Panel.CLAIM,
    ),
]
UnitColumn = Annotated[
    str | None,
    option(
        metavar="COLUMN",
        help="Column that says whose rows each row is, such as patient_id: both worlds differ in "
        "all rows of one unit, and the claim is per unit. Default: the schema's unit, else single "
        "rows.",
        panel=Panel.RULES,
    ),
]
Rows = Annotated[
    int | None,
    option(metavar="N", help="Synthetic rows per model. Default: as many as the table has."),
]
Confidence = Annotated[
    float, option(metavar="C", help="One-sided confidence of the bound.", shown=True)
]
Seed = Annotated[
    int,
    option(
        metavar="S",
        help="Seed of all randomness; another one gives independent results.",
        shown=True,
    ),
]
Jobs = Annotated[
    int | None,
    option(
        metavar="J",
        help="Trainings in parallel. Default: one per core.",
        least=1,
        panel=Panel.MACHINE,
    ),
]
Python = Annotated[
    Path | None,
    option(
        metavar="PATH",
        help="Python interpreter of the environments. Default: this one if its version fits, else "
        "python3.X on PATH.",
    ),
]
WorkerMemory = Annotated[
    float | None,
    option(
        metavar="GB",
        help="Memory limit of a generator that runs in its own process. Default: none.",
        panel=Panel.MACHINE,
    ),
]
Json = Annotated[
    bool, option("--json", help="Print one JSON document and nothing else.", panel=Panel.OUTPUT)
]
Quiet = Annotated[
    bool,
    option("-q", "--quiet", help="Print one line of result and no progress.", panel=Panel.OUTPUT),
]
FailOnVerdict = Annotated[
    FailOn,
    option(
        metavar="VERDICT",
        help="What gives a non-zero exit code: violation (with leaks and invalid runs), "
        "inconclusive (all of these), never (nothing).",
        shown=True,
        panel=Panel.OUTPUT,
    ),
]
Html = Annotated[
    Path | None, option(metavar="FILE", help="Also write the report as HTML.", panel=Panel.OUTPUT)
]
Markdown = Annotated[
    Path | None,
    option(metavar="FILE", help="Also write the report as Markdown.", panel=Panel.OUTPUT),
]


Settings = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting, as in dpaudit.toml; repeatable. Such as neighbours=replace-one, "
        "unit=COLUMN, mu=M, rho=R, curve=FILE, rows=N, confidence=C, effort=quick, probe=false, "
        "worker-memory=GB (`docs/configuration.md` has all).",
        panel=Panel.MORE_AUDITS,
    ),
]


def _of_attack(words: Any) -> Any:
    """An option in the panel of the attack, of commands that run one."""
    hint, found = get_args(words)
    found = copy(found)
    found.rich_help_panel = Panel.ATTACK
    return Annotated[hint, found]


SETTINGS: dict[str, Any] = {
    "parameters": Parameters,
    "links": Links,
    "epsilon": Epsilon,
    "delta": Delta,
    "mu": Annotated[
        float | None,
        option(
            metavar="M",
            help="Claimed mu, for Gaussian DP instead of (epsilon, delta). Default: none.",
            panel=Panel.CLAIM,
        ),
    ],
    "rho": Annotated[
        float | None,
        option(
            metavar="R",
            help="Claimed rho, for zCDP instead of (epsilon, delta). Default: none.",
            panel=Panel.CLAIM,
        ),
    ],
    "curve": Annotated[
        str | None,
        option(
            metavar="FILE|E:D,E:D",
            help="Claimed privacy curve instead of one (epsilon, delta), such as 0.5:1e-3,1:1e-5. "
            "Default: none.",
            panel=Panel.CLAIM,
        ),
    ],
    "neighbours": Relation,
    "unit": UnitColumn,
    "max_rows_per_unit": Annotated[
        int | None,
        option(
            metavar="K",
            help="Largest number of rows that a unit may have. Default: the schema's, else none.",
            panel=Panel.RULES,
        ),
    ],
    "target": Annotated[
        str,
        option(
            metavar="RECORD",
            help=f"Record to attack: {CHOICES_OF_TARGET}, vulnerable (found by small trial "
            "attacks), row:N (from 0), record:FILE; with --unit also unit:VALUE.",
            panel=Panel.ATTACK,
        ),
    ],
    "worst_case": Annotated[
        WorstCase | None,
        option(
            metavar="NAME",
            help="Worst-case table instead of --data, built from --schema alone: search (finds the "
            "one that shows most), opposite, crowd or another (see `dpaudit list worst-cases`). "
            "Default: none.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "neighbours_file": Annotated[
        str | None,
        option(
            metavar="FILE",
            help="Your own neighbouring table: --data without the target record. Default: none.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "access": Annotated[
        Access,
        option(
            metavar="LEVEL",
            help="What the attacker sees: output (default; synthetic rows), model (also the "
            "published parts of the model, such as a discriminator), released (also what the "
            "proof protects, such as noisy counts), timing (rows, and the seconds and memory of "
            "every training), everything.",
            panel=Panel.ATTACK,
        ),
    ],
    "attacks": Annotated[
        list[str] | None,
        option(
            "--attack",
            metavar="NAME[,K=V]",
            help="Attack to run (`dpaudit list attacks`); repeatable. Default: groundhog, "
            "query-target and form.",
            panel=Panel.ATTACK,
        ),
    ],
    "shadow_models": Annotated[
        int,
        option(metavar="N", help="Total number of shadow models.", shown=True, panel=Panel.ATTACK),
    ],
    "sequential": Annotated[
        bool,
        option(
            "--sequential",
            help="Stops as soon as a violation is shown, at the latest after --shadow-models "
            "trainings.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "one_run": Annotated[
        bool,
        option(
            "--one-run",
            help="One training with many canaries, for slow generators.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "canaries": Annotated[
        int | None,
        option(
            metavar="M",
            help="Canaries of --one-run, each included with probability 1/2.",
            shown=True,
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "records": Annotated[
        int,
        option(
            metavar="K",
            help="Number of records that share the shadow models, each one attacked.",
            shown=True,
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "worker_memory": WorkerMemory,
    "seed": _of_attack(Seed),
}
"""Each setting that is an option of some command, with its help text, in the order of the help."""


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


def takes_settings(
    *names: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command that takes `settings`: `AuditSettings`, or the keywords that are given.

    Args:
        names: The settings that the command has options for. If none is named it takes all
            settings: those of `SET_BY_NAME` by `--set`, as also its own parameters of these names.

    Returns:
        The decorator; typer then sees an option for each setting in the parameter's place. A
        setting that is not given is None, and so distinct from one given with its default value.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command, eval_str=True)
        every = dict.fromkeys([*SETTINGS, *keywords()])
        chosen = [name for name in every if name in names or not names]

        @functools.wraps(command)
        def run(**options: Any) -> None:
            by_name = (pair.partition("=") for pair in options.pop(SET, None) or ())
            options |= {name: json.loads(text) for name, _, text in by_name}
            asked = {name: options.pop(name, None) for name in chosen}
            if asked.get("parameters"):
                from dpaudit.plugins.registry import parse_parameters

                asked["parameters"] = parse_parameters(asked["parameters"])
            plain = {name: value for name, value in asked.items() if value is not None}
            command(**options, settings=audit_settings(**plain) if whole else plain)

        shown = [
            _keyword(name, _option_of(name)) for name in chosen if names or name not in SET_BY_NAME
        ]
        if not names:
            shown.append(_keyword(SET, Settings))
        own = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in given.parameters.values()
            if names or one.name not in SET_BY_NAME
        ]
        place = [one.name for one in own].index("settings")
        whole = own[place].annotation is AuditSettings
        vars(run)["__signature__"] = given.replace(
            parameters=[*own[:place], *shown, *own[place + 1 :]]
        )
        return run

    return decorate


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _option_of(name: str) -> Any:
    """The option of a setting, with its default in words."""
    if name not in SETTINGS:
        hint, text = type_and_description(name)
        flag = f"--{name.replace('_', '-')}"
        if hint is bool and keywords()[name].default:
            flag = f"{flag}/--no-{flag[2:]}"
        metavar = None if hint is bool else name.upper()
        words = option(flag, metavar=metavar, help=text, shown=True, panel=Panel.MORE_AUDITS)
    else:
        hint, words = get_args(SETTINGS[name])
        words = copy(words)
    default = keywords()[name].default
    if words.show_default and not isinstance(default, bool):
        words.help = f"{words.help} Default: {getattr(default, 'value', default)}."
    words.show_default = False
    return Annotated[hint | None, words]
