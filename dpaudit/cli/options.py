"""The options of commands, and how the settings of an audit are spelled as options.

Every plain keyword of an audit (`dpaudit.auditing.games`) is an option: with the text of its entry
in `SETTINGS`, else that of its field. A command takes the settings as one parameter of type
`AuditSettings`; `takes_settings` shows typer one option for each keyword instead.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from dpaudit.auditing.configuration import type_and_description
from dpaudit.auditing.games import audit_settings, keywords
from dpaudit.auditing.settings import AuditSettings
from dpaudit.cli.panels import Panel, option, registered_generators
from dpaudit.errors import InputError
from dpaudit.model.choices import (
    Access,
    Effort,
    EngineName,
    Multiplicity,
    ThresholdRule,
    WorstCase,
)
from dpaudit.model.claim import Neighbours

GeneratorName = Annotated[
    str,
    typer.Argument(
        metavar="GENERATOR",
        help="A class with fit(data, *, seed) and sample(n, *, seed): file.py:Gan or module:Gan; "
        "a name or LIBRARY:METHOD (see `dpaudit list`); or worker:COMMAND.",
        show_default=False,
        autocompletion=registered_generators,
    ),
]
RunFolderArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder, or its result.json.")
]
Data = Annotated[
    str,
    option(
        metavar="FILE",
        help="Table to train on: CSV (also .gz), Parquet, or sample:breast-cancer.",
        shown=False,
        panel=Panel.INPUT,
    ),
]
SchemaFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        help="Public schema of the table (JSON, SDV). Default: inferred, which hides leaks "
        "through bounds.",
        shown=False,
        panel=Panel.INPUT,
    ),
]
Parameters = Annotated[
    list[str] | None,
    option(
        "-p",
        "--parameter",
        metavar="K=V",
        help="Parameter of the generator's constructor; repeatable.",
        shown=False,
        panel=Panel.INPUT,
    ),
]
Epsilon = Annotated[
    float | None,
    option(
        metavar="E",
        help="Claimed epsilon; the generator's own parameter is -p epsilon=E. Default: the "
        "generator's claim; without one, the audit measures epsilon.",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
Delta = Annotated[
    float | None,
    option(
        metavar="D",
        help="Claimed delta. Default: the generator's own, else 0 (pure DP).",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
OwnEpsilon = Annotated[
    float | None,
    option(
        metavar="E",
        help="Parameter epsilon of the generator, as -p epsilon=E. Default: its own.",
        shown=False,
        panel=Panel.INPUT,
    ),
]
OwnDelta = Annotated[
    float | None,
    option(
        metavar="D",
        help="Parameter delta of the generator, as -p delta=D. Default: its own.",
        shown=False,
        panel=Panel.INPUT,
    ),
]
Mu = Annotated[
    float | None,
    option(
        metavar="M",
        help="Mu of a Gaussian DP claim instead. Default: none.",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
Rho = Annotated[
    float | None,
    option(
        metavar="R",
        help="Rho of a zCDP claim instead. Default: none.",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
Curve = Annotated[
    str | None,
    option(
        metavar="FILE|E:D,E:D",
        help="Privacy curve as the claim instead: 0.5:1e-3,1:1e-5. Default: none.",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
Relation = Annotated[
    Neighbours | None,
    option(
        metavar="RELATION",
        help="Neighbouring relation: add-remove, replace-one. Default: the claim's own.",
        shown=False,
        panel=Panel.CLAIM,
    ),
]
Rows = Annotated[
    int | None,
    option(
        metavar="N",
        help="Synthetic rows per model. Default: the table's.",
        shown=False,
        panel=Panel.ATTACK,
    ),
]
Confidence = Annotated[
    float,
    option(metavar="C", help="One-sided confidence of the bound.", panel=Panel.ATTACK),
]
Seed = Annotated[
    int,
    option(
        metavar="S",
        help="Seed of all randomness; another one gives independent results.",
        panel=Panel.ATTACK,
    ),
]
Jobs = Annotated[
    int | None,
    option(
        metavar="J",
        help="Trainings at once; 1 for a single GPU. Default: one per core.",
        shown=False,
        panel=Panel.MACHINE,
        least=1,
    ),
]
EngineKind = Annotated[
    EngineName,
    option(
        "--engine",
        metavar="ENGINE",
        help="Where models are trained: local (processes) or dask.",
        panel=Panel.MACHINE,
    ),
]
Scheduler = Annotated[
    str | None,
    option(
        metavar="ADDRESS",
        help="Scheduler of dask: tcp://host:8786, or its JSON file.",
        shown=False,
        panel=Panel.MACHINE,
    ),
]
TrialTimeout = Annotated[
    float | None,
    option(
        metavar="SECONDS",
        help="Longest training of a model. Default: 20 times the slowest, at least an hour; at "
        "first a day.",
        shown=False,
        panel=Panel.MACHINE,
    ),
]
Python = Annotated[
    Path | None,
    option(
        metavar="PATH",
        help="Interpreter to make environments with. Default: this one if its version fits, else "
        "python3.X on PATH.",
        shown=False,
    ),
]
WorkerMemory = Annotated[
    float | None,
    option(
        metavar="GB",
        help="Memory limit of a generator's own process. Default: none.",
        shown=False,
        panel=Panel.MACHINE,
    ),
]
Json = Annotated[
    bool,
    option("--json", help="Print one JSON document and nothing else.", panel=Panel.OUTPUT),
]
Quiet = Annotated[
    bool, option("-q", "--quiet", help="No progress; one line of result.", panel=Panel.OUTPUT)
]
Html = Annotated[
    Path | None,
    option(metavar="FILE", help="Also write the report as HTML.", shown=False, panel=Panel.OUTPUT),
]
Markdown = Annotated[
    Path | None,
    option(
        metavar="FILE", help="Also write the report as Markdown.", shown=False, panel=Panel.OUTPUT
    ),
]
WorstCaseTables = Annotated[
    WorstCase | None,
    option(
        metavar="NAME",
        help="Table made to show leaks, from --schema alone: opposite, one-hot, narrow, mst, "
        "mixed. Default: none.",
        shown=False,
        panel=Panel.MORE_AUDITS,
    ),
]
NeighboursFile = Annotated[
    str | None,
    option(
        metavar="FILE",
        help="Neighbouring table: --data without the target. Default: none.",
        shown=False,
        panel=Panel.MORE_AUDITS,
    ),
]

SETTINGS: dict[str, Any] = {
    "parameters": Parameters,
    "epsilon": Epsilon,
    "delta": Delta,
    "mu": Mu,
    "rho": Rho,
    "curve": Curve,
    "neighbours": Relation,
    "effort": Annotated[
        Effort,
        option(
            metavar="EFFORT",
            help="Size of the audit in shadow models: standard (default; 400), quick (100), "
            "thorough (1000).",
            shown=False,
            panel=Panel.ATTACK,
        ),
    ],
    "target": Annotated[
        str,
        option(
            metavar="RECORD",
            help="Record to attack: exposing (default; holds the most column extremes and unique "
            "values), farthest, vulnerable (found by small trial attacks), row:N, record:FILE.",
            shown=False,
            panel=Panel.ATTACK,
        ),
    ],
    "worst_case": WorstCaseTables,
    "neighbours_file": NeighboursFile,
    "access": Annotated[
        Access,
        option(
            metavar="LEVEL",
            help="What the attacker sees: output (default; synthetic rows), model (also what the "
            "fitted model discloses, such as a discriminator), released (also what the proof "
            "protects, such as noisy counts).",
            shown=False,
            panel=Panel.ATTACK,
        ),
    ],
    "attacks": Annotated[
        list[str] | None,
        option(
            "--attack",
            metavar="NAME[,K=V]",
            help="Attack to score; repeatable, each costs confidence. Default: groundhog, "
            "query-target and form.",
            shown=False,
            panel=Panel.ATTACK,
        ),
    ],
    "shadow_models": Annotated[
        int,
        option(
            metavar="N",
            help="Shadow models to train, in all; overrides --effort.",
            panel=Panel.ATTACK,
        ),
    ],
    "rows": Rows,
    "confidence": Confidence,
    "threshold": Annotated[
        ThresholdRule,
        option(
            metavar="RULE",
            help="Where the threshold is chosen: cross-validated (default; on the models that fit "
            "the attack), hold-out (on models of its own).",
            shown=False,
            panel=Panel.RULES,
        ),
    ],
    "multiplicity": Annotated[
        Multiplicity,
        option(
            metavar="RULE",
            help="Several attacks: select (default; scores only the most promising one, or all "
            "combined), bonferroni (scores all; the default with --records).",
            shown=False,
            panel=Panel.RULES,
        ),
    ],
    "sequential": Annotated[
        bool,
        option(
            "--sequential",
            help="Sequential audit: stops at the first proof, at --shadow-models at most.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "one_run": Annotated[
        bool,
        option(
            "--one-run",
            help="Audit of one training with many canaries, for slow generators.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "canaries": Annotated[
        int | None,
        option(
            metavar="M",
            help="Canaries of --one-run, each included by a fair coin.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "records": Annotated[
        int,
        option(
            metavar="K",
            help="Records attacked in each shadow model.",
            panel=Panel.MORE_AUDITS,
        ),
    ],
    "probe": Annotated[
        bool,
        option(
            "--probe/--no-probe",
            help="Probes before the audit, from 400 models on.",
            panel=Panel.RULES,
        ),
    ],
    "worker_memory": WorkerMemory,
    "seed": Seed,
}
"""The words of settings as options, in the order of the help."""

REPEATABLE = {
    "parameters": "-p",
    "attacks": "--attack",
    "samplers": "--sampler",
    "secrets": "--secret",
}
"""Settings of several values, and the option that gives one."""


def built_with(
    pairs: Sequence[str] | None, epsilon: float | None, delta: float | None
) -> dict[str, Any]:
    """The parameters that a generator is built with by name.

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
    """Decorates a command that takes `settings: AuditSettings`.

    Args:
        names: The settings that the command has options for; all if none is named.

    Returns:
        The decorator; typer then sees an option for each setting in the parameter's place. A
        setting that is not given is None, and so distinct from one given with its default value.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command, eval_str=True)
        chosen = [name for name in all_settings() if name in names or not names]

        @functools.wraps(command)
        def run(**options: Any) -> None:
            asked = {name: options.pop(name) for name in chosen}
            if asked.get("parameters"):
                from dpaudit.plugins.registry import parse_parameters

                asked["parameters"] = parse_parameters(asked["parameters"])
            command(**options, settings=audit_settings(**asked))

        shown = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option_of(name)
            )
            for name in chosen
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


def all_settings() -> list[str]:
    """Every setting, those with an entry in `SETTINGS` first."""
    return [*SETTINGS, *(name for name in keywords() if name not in SETTINGS)]


def _option_of(name: str) -> Any:
    """The option of a setting, with its default in words."""
    if name not in SETTINGS:
        hint, text = type_and_description(name)
        flag = f"--{name.replace('_', '-')}"
        if hint is bool and keywords()[name].default:
            flag = f"{flag}/--no-{flag[2:]}"
        metavar = None if hint is bool else name.upper()
        words = option(flag, metavar=metavar, help=text, panel=Panel.MORE_AUDITS)
    else:
        hint, words = get_args(SETTINGS[name])
        words = copy(words)
    default = keywords()[name].default
    if words.show_default and not isinstance(default, bool):
        words.help = f"{words.help} Default: {getattr(default, 'value', default)}."
    words.show_default = False
    return Annotated[hint | None, words]


def spelled(message: str, *, options: Collection[str] = ()) -> str:
    """A message of the core with its settings spelled as options: `` `one_run` `` as --one-run.

    Args:
        message: The message; it names settings in backquotes, as Python spells them.
        options: Names of the command's own options, in addition to the settings of an audit.

    Returns:
        The message.
    """

    def as_option(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in keywords() and name not in options:
            return found[0]
        option = REPEATABLE.get(name, f"--{name.replace('_', '-')}")
        return option if value in (None, "True") else f"{option} {value}"

    return re.sub(r"`(\w+)(?:=\"?([^`\"]*)\"?)?`", as_option, message)
