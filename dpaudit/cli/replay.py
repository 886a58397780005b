"""`dpaudit replay`: unmodified code in both worlds with the same noisy answers."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dpaudit.cli import options
from dpaudit.cli.command import HelpAll
from dpaudit.cli.console import (
    exit_code,
    guard,
    messages,
    require_folders,
    show,
    write_pages,
)
from dpaudit.errors import SettingsError
from dpaudit.model.choices import EXPOSING, Access, FailOn
from dpaudit.model.setting import Option

if TYPE_CHECKING:
    from pathlib import Path

    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.report.page import Page
    from dpaudit.searching.record import SearchRecord


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """What a replay is asked for.

    Attributes:
        target: Record to leave out: exposing (most column extremes and unique values), farthest
            (from its nearest neighbours), row:N (from 0), record:FILE; with `unit` also unit:VALUE.
        targets: Records to try, two fits each; the costliest is replayed.
        fits: Fits to read answers off the release, and for guesses. Default: 400, fewer if they
            take over two minutes, but at least 60.
        proof: How the claim is proved: by composition of its noise steps. Steps that spend more
            then violate that proof. Default: what the generator states, if anything.
        internal: Line whose noisy answers are not released, so that what it spends is left out;
            `FILE:LINE: why` says why in the report.
        access: What the attacker sees: model (the fitted model and synthetic rows), or rows.
        public_coins: Treat secret sub-samples as public, so that sampling does not lower what is
            spent: for claims that rest on noise alone.
        samplers: Noise sampler of your own code, as MODULE:NAME, with its law and the name of its
            scale parameter (loc=NAME: the parameter with the value before noise). Default: those in
            the configuration file.
        hand_over: Unless the verdict is consistent, find in 16 more fits which features of
            synthetic rows the record moves, for `dpaudit audit --set after-replay=FILE`.
    """

    target: Annotated[str, Option("RECORD")] = EXPOSING
    targets: Annotated[int, Option("N")] = 1
    fits: Annotated[int | None, Option("N")] = None
    proof: Annotated[str | None, Option("composition")] = None
    internal: Annotated[tuple[str, ...], Option("FILE:LINE")] = ()
    access: Annotated[str, Option("LEVEL")] = Access.MODEL.value
    public_coins: bool = False
    samplers: Annotated[tuple[str, ...], Option("FUNCTION,law=LAW,scale=NAME", ("--sampler",))] = ()
    hand_over: bool = False


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a search goes.

    Attributes:
        search: Instead of one pair of tables, search those of the schema, without --data, for the
            smallest ones that break the claim.
        seconds: Time for the search; 30 pairs are tried in any case.
        pairs: The most pairs to try.
        records: The fewest rows of a table; 0 tries tables without rows, too.
        out: Folder of a search: the tables that it finds, and examples for the next one.
    """

    search: bool = False
    seconds: Annotated[float, Option("S")] = 60.0
    pairs: Annotated[int, Option("N")] = 2000
    records: Annotated[int, Option("N")] = 1
    out: Annotated[str, Option("FOLDER")] = "dpaudit-search"


@guard
@options.shows_values
@options.takes_settings(
    *("parameters", "links", "epsilon", "delta", "mu", "rho", "curve", "neighbours", "unit"),
    *("max_rows_per_unit", "separator", "encoding"),
    *("worst_case", "neighbours_file", "worker_memory"),
)
def replay(
    *,
    generator: options.GeneratorName,
    data: options.Tables = None,
    schema: options.SchemaFile = None,
    settings: dict[str, Any],
    asked: ReplayOptions,
    searched: SearchOptions,
    rows: options.Rows = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    html: options.Html = None,
    markdown: options.Markdown = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    help_all: HelpAll = False,
) -> None:
    """Shows what unmodified Python code spends, line by line, and what its release shows.

    Fits the generator with and without one record and gives both fits the same noisy answers. The
    ledger says what a proof by composition charges for them. A violation needs more: some hundred
    further fits show whether the release itself leaks more than the claim.
    """
    del help_all  # its callback has answered
    from dpaudit.model.choices import sampler_of

    require_folders(html=html, markdown=markdown)
    is_level = asked.access in list(Access)  # "rows" is no level of an audit
    settings |= vars(asked) | {
        "samplers": [sampler_of(text) for text in asked.samplers],
        "access": Access(asked.access).of_replay if is_level else asked.access,
        "rows": rows,
        "confidence": confidence,
        "seed": seed,
    }
    record: ReplayRecord | SearchRecord
    with _shown_progress(messages(quiet=quiet or json)) as progress:
        if searched.search:
            given = settings | {"data": data}
            record, page = _search(generator, schema, given, searched, progress)
        elif searched != SearchOptions():
            raise SettingsError("`seconds`, `pairs`, `records` and `out` are for `search`: add it")
        else:
            given = settings | {"data": data, "schema": schema}
            record, page = _replay(generator, given, progress)
    write_pages(page, html=html, markdown=markdown)
    show(record, json=json, quiet=quiet)
    raise typer.Exit(exit_code(record.verdict, FailOn.INCONCLUSIVE))


def _replay(
    generator: str, given: dict[str, Any], progress: Callable[[str], None]
) -> tuple[ReplayRecord, Page]:
    """A replay whose worlds start while this process loads what it needs."""
    from dpaudit.replaying.launching import launch_worlds

    with launch_worlds(generator, dumps(given["samplers"])) as launched:
        gc.disable()  # collections while modules load take a tenth of the time and free nothing
        from dpaudit.replaying.record import replay_page
        from dpaudit.replaying.run import replay as replayed

        gc.enable()
        record = replayed(generator, **given, on_progress=progress, launched=launched)
        return record, replay_page(record)


def _search(
    generator: object,
    schema: Path | None,
    settings: dict[str, Any],
    asked: SearchOptions,
    progress: Callable[[str], None],
) -> tuple[SearchRecord, Page]:
    """A search with the options of a replay that it has, too."""
    from dpaudit.searching.record import search_page
    from dpaudit.searching.run import search

    plain = ReplayOptions()
    given = {
        name: value
        for name, value in settings.items()
        if value is not None and value != getattr(plain, name, None)
    }
    own = {name: value for name, value in vars(asked).items() if name != "search"}
    record = search(generator, schema, **own, **given, on_progress=progress)
    return record, search_page(record)


@contextmanager
def _shown_progress(console: Console) -> Iterator[Callable[[str], None]]:
    """What shows progress: a line that changes on a terminal, the first of each stage elsewhere."""
    if console.is_terminal:
        with console.status("replay") as status:
            yield status.update
        return
    stages: set[str] = set()

    def print_stage(line: str) -> None:
        stage = re.sub(r"[\d:].*", "", line)
        if stage not in stages:
            console.print(line)
        stages.add(stage)

    yield print_stage
