"""How an audit is run and what comes of it: settings that change no number of its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpaudit.model.choices import EngineName, FailOn
from dpaudit.model.setting import AT_LEAST_1, POSITIVE, Option, Panel, check_settings


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where and how trials run; it never changes a result.

    Attributes:
        jobs: Trainings in parallel. Default: one per core.
        engine: Engine that trains the models: "local" for processes of this machine, "dask" for
            the workers of a dask cluster.
        scheduler: Dask scheduler: tcp://host:8786, or its JSON file.
        trial_timeout: Seconds after which a shadow model has failed. Default: a day for the first,
            then 20 times the slowest, at least an hour.
        worker_memory: Gigabytes of address space that a generator in a process of its own may take
            (Linux).

    Raises:
        SettingsError: If a number or the engine has no meaning.
    """

    jobs: Annotated[int | None, AT_LEAST_1, Option("J", panel=Panel.MACHINE)] = None
    engine: Annotated[EngineName, Option("ENGINE", panel=Panel.MACHINE, by_name=True)] = (
        EngineName.LOCAL
    )
    scheduler: Annotated[str | None, Option("ADDRESS", panel=Panel.MACHINE, by_name=True)] = None
    trial_timeout: Annotated[
        float | None, AT_LEAST_1, Option("SECONDS", panel=Panel.MACHINE, by_name=True)
    ] = None
    worker_memory: Annotated[float | None, POSITIVE, Option("GB", panel=Panel.MACHINE)] = None

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """What `dpaudit audit` reads and writes in addition to its run folder.

    Attributes:
        time_one: Train one model of GENERATOR for `plan`, to estimate the cost.
        after_replay: Result of `dpaudit replay --json`, to attack the features that its record
            moves; the only attack unless attacks are named.
        junit: JUnit XML file to write: claim, controls and checks as test cases.
        fail_on: What gives a non-zero exit code: violation (with leaks and invalid runs),
            inconclusive (all of these), never (nothing).
    """

    time_one: Annotated[bool, Option(panel=Panel.PLAN, by_name=True)] = False
    after_replay: Annotated[str | None, Option("FILE", by_name=True)] = None
    junit: Annotated[str | None, Option("FILE", panel=Panel.OUTPUT, by_name=True)] = None
    fail_on: Annotated[FailOn, Option("VERDICT", panel=Panel.OUTPUT)] = FailOn.INCONCLUSIVE

    def __post_init__(self) -> None:
        check_settings(self)
