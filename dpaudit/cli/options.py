"""The options of commands, and how the settings of an audit are spelled as options.

A setting's option is one entry of `SETTINGS`. A command takes the settings as one parameter of
type `AuditSettings`; `takes_settings` shows typer one option for each field instead.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dpaudit.auditing.settings import AuditSettings, Multiplicity
from dpaudit.bounds import ThresholdRule
from dpaudit.game.choices import EngineName
from dpaudit.model.claim import Neighbours
from dpaudit.model.worst_cases import WorstCase
from dpaudit.plugins.access import Access
from dpaudit.plugins.registry import parse_parameters


def _option(*names: str, metavar: str | None = None, help: str, shown: bool = True) -> Any:
    """An option; without `shown` its help says the default in words."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=shown)


GeneratorName = Annotated[
    str,
    typer.Argument(
        metavar="GENERATOR",
        help="Registered name (see `dpaudit list generators`), LIBRARY:METHOD (see `dpaudit list "
        "libraries`), module:attr, file.py:attr, or worker:COMMAND.",
        show_default=False,
    ),
]
RunFolderArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder, or its result.json.")
]
Data = Annotated[
    str,
    _option(
        metavar="FILE", help="Table: CSV (also .gz), Parquet, or sample:breast-cancer.", shown=False
    ),
]
SchemaFile = Annotated[
    Path | None,
    _option(
        metavar="FILE",
        help="Public schema (JSON, also SDV metadata). Inferred from the table if not given.",
        shown=False,
    ),
]
Parameters = Annotated[
    list[str] | None,
    _option(
        "-p",
        "--parameter",
        metavar="KEY=VALUE",
        help="A parameter of the generator; repeatable.",
        shown=False,
    ),
]
Epsilon = Annotated[
    float | None,
    _option(
        metavar="E",
        help="Epsilon of the claim under audit. Default: the generator's own.",
        shown=False,
    ),
]
Delta = Annotated[
    float | None,
    _option(
        metavar="D", help="Delta of the claim. Default: the generator's own, else 0.", shown=False
    ),
]
Mu = Annotated[
    float | None,
    _option(
        metavar="M", help="A claim of Gaussian DP, instead of epsilon. Default: none.", shown=False
    ),
]
Rho = Annotated[
    float | None,
    _option(metavar="R", help="A claim of zCDP, instead of epsilon. Default: none.", shown=False),
]
Curve = Annotated[
    str | None,
    _option(
        metavar="FILE|E:D,E:D",
        help="A privacy curve, instead of epsilon: JSON or CSV of (epsilon, delta), or written "
        "out as 0.5:1e-3,1:1e-5. Default: none.",
        shown=False,
    ),
]
Relation = Annotated[
    Neighbours | None,
    _option(help="How D and D' differ. Default: as the claim says, else add-remove.", shown=False),
]
Rows = Annotated[
    int | None,
    _option(
        metavar="N", help="Synthetic rows per model. Default: the rows of the table.", shown=False
    ),
]
Confidence = Annotated[float, _option(metavar="C", help="One-sided confidence of the bound.")]
Seed = Annotated[int, _option(metavar="S", help="Root of every random stream.")]
Jobs = Annotated[
    int | None,
    _option(metavar="J", help="Worker processes. Default: one per core.", shown=False),
]
EngineKind = Annotated[
    EngineName,
    _option("--engine", help="Where trials run: processes of this machine, or a dask cluster."),
]
Scheduler = Annotated[
    str | None,
    _option(
        metavar="ADDRESS",
        help="Of the dask scheduler, such as tcp://host:8786, or the JSON file that it writes.",
        shown=False,
    ),
]
TrialTimeout = Annotated[
    float | None,
    _option(
        metavar="SECONDS",
        help="A trial that takes longer is stopped and has failed. Default: 20 times the slowest "
        "so far, at least an hour; a day until one has finished.",
        shown=False,
    ),
]
Python = Annotated[
    Path | None,
    _option(
        metavar="PATH",
        help="Interpreter to make environments with. Default: this one if its version fits, else "
        "python3.X on PATH.",
        shown=False,
    ),
]
WorkerMemory = Annotated[
    float | None,
    _option(
        metavar="GB",
        help="Address space that a generator in a process of its own may take. Default: no limit.",
        shown=False,
    ),
]
Json = Annotated[bool, _option("--json", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, _option("-q", "--quiet", help="No progress; one line of result.")]

SETTINGS: dict[str, Any] = {
    "parameters": Parameters,
    "epsilon": Epsilon,
    "delta": Delta,
    "mu": Mu,
    "rho": Rho,
    "curve": Curve,
    "neighbours": Relation,
    "target": Annotated[
        str,
        _option(
            metavar="exposing|farthest|vulnerable|row:N|record:FILE",
            help="The attacked record; rows count from 0. exposing: the one that most facts of "
            "the table hold of alone, such as extremes of columns. vulnerable: the one that small "
            "attacks find easiest, for as many trainings as --shadow-models.",
        ),
    ],
    "worst_case": Annotated[
        WorstCase | None,
        _option(
            help="Builds both tables from --schema alone, instead of --data and --target; see "
            "`dpaudit list worst-cases`. Default: none.",
            shown=False,
        ),
    ],
    "neighbours_file": Annotated[
        str | None,
        _option(
            metavar="FILE",
            help="Table of world out: --data without one record, or with one changed; says which "
            "record is the target. Default: none.",
            shown=False,
        ),
    ],
    "access": Annotated[
        Access,
        _option(
            help="What the attacker sees: synthetic rows; also what the model discloses, such as a "
            "discriminator; or also what the proof protects, such as noisy counts."
        ),
    ],
    "attacks": Annotated[
        list[str] | None,
        _option(
            "--attack",
            metavar="NAME[,KEY=VALUE]",
            help="Attack; repeatable, each costs confidence; --access has more. "
            "Default: groundhog, query-target and form.",
            shown=False,
        ),
    ],
    "shadow_models": Annotated[
        int, _option(metavar="N", help="Models to train, both worlds together.")
    ],
    "rows": Rows,
    "confidence": Confidence,
    "threshold": Annotated[
        ThresholdRule, _option(help="Where thresholds are chosen, always on unscored trials.")
    ],
    "multiplicity": Annotated[
        Multiplicity,
        _option(help="Several attacks: score all and correct, or select one beforehand."),
    ],
    "sequential": Annotated[
        bool,
        _option(
            "--sequential",
            help="Test after every batch, stop once proved; --shadow-models is a cap.",
        ),
    ],
    "one_run": Annotated[
        bool, _option("--one-run", help="Train once, with many canaries; for slow generators.")
    ],
    "canaries": Annotated[
        int | None,
        _option(
            metavar="M",
            help="With --one-run: records that are each in by a fair coin. Default: 100.",
            shown=False,
        ),
    ],
    "records": Annotated[
        int,
        _option(
            metavar="K",
            help="Records that every shadow model serves, each by a fair coin: K guesses a model. "
            "Attacks no single target.",
        ),
    ],
    "probe": Annotated[
        bool,
        _option(
            "--probe/--no-probe",
            help="Whether cheap probes from outside run first, if there are 400 models or more.",
        ),
    ],
    "worker_memory": WorkerMemory,
    "seed": Seed,
}
"""The option of every setting."""

REPEATABLE = {"parameters": "-p", "attacks": "--attack", "secrets": "--secret"}
"""Settings of several values, and the option that gives one."""


def takes_settings(
    *names: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command that takes `settings: AuditSettings`.

    Args:
        names: The settings that the command has options for; all if none is named.

    Returns:
        The decorator; typer then sees an option for each setting in the parameter's place.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command, eval_str=True)
        chosen = [one for one in fields(AuditSettings) if one.name in (names or SETTINGS)]

        @functools.wraps(command)
        def run(**options: Any) -> None:
            asked = {one.name: options.pop(one.name) for one in chosen}
            command(**options, settings=_settings(asked))

        shown = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if one.name in REPEATABLE else one.default,
                annotation=SETTINGS[one.name],
            )
            for one in chosen
        ]
        own = [
            one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in given.parameters.values()
        ]
        place = next(n for n, one in enumerate(own) if one.annotation is AuditSettings)
        vars(run)["__signature__"] = given.replace(
            parameters=[*own[:place], *shown, *own[place + 1 :]]
        )
        return run

    return decorate


def _settings(asked: dict[str, Any]) -> AuditSettings:
    given = {name: value for name, value in asked.items() if value is not None}
    if "parameters" in given:
        given["parameters"] = parse_parameters(given["parameters"])
    return AuditSettings(**given)


def spelled(message: str, *, options: Collection[str] = ()) -> str:
    """A message of the core with its settings spelled as options: `` `one_run` `` as --one-run.

    Args:
        message: The message; it names settings in backquotes, as Python spells them.
        options: Names of the command's own options, besides the settings of an audit.

    Returns:
        The message.
    """

    def as_option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in SETTINGS and name not in options:
            return found[0]
        option = REPEATABLE.get(name, f"--{name.replace('_', '-')}")
        return option if value in (None, "True") else f"{option} {value}"

    return re.sub(r"`(\w+)(?:=\"?([^`\"]*)\"?)?`", as_option, message)
