"""A complete, validated audit; it determines every number of the result and trains nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from dpaudit.auditing.settings import AuditSettings
from dpaudit.game.store import Private
from dpaudit.model.claim import NoClaim
from dpaudit.model.currencies import Claim, CurveClaim, written_out
from dpaudit.model.stated_claim import StatedClaim
from dpaudit.model.tables import Table, data_digest
from dpaudit.plugins.named import NamedAttack, NamedGenerator
from dpaudit.plugins.registry import ATTACKS, GENERATORS, module_of
from dpaudit.plugins.source import Reached, reached, source_digest
from dpaudit.seeds import Stream
from dpaudit.versions import __version__, versions

_WRITTEN_APART = ("game", "claim", "parameters", "links", "rows", "worker_memory")
"""Settings that a specification writes otherwise; the last one decides no number."""
_OF_EVERY_COMMAND = ("confidence", "seed")


@dataclass(frozen=True, kw_only=True)
class AuditSpec(ABC):
    """The part of a complete audit that is common to all games.

    Attributes:
        given: The generator as the caller passed it, to build it again with other settings or for
            another target.
        generator: What is audited.
        table: The table handed in.
        settings: Every choice of the audit.
        claim: The claim under audit, for the neighbours of the game.
    """

    TRAINED: ClassVar[tuple[str, ...]]
    """Keys of the specification that determine what is trained on what."""

    given: object
    generator: NamedGenerator
    table: Table
    settings: AuditSettings
    claim: Claim

    @property
    def rows(self) -> int:
        """Synthetic rows requested of every model."""
        given = self.settings.rows
        return self.table.schema.rows_asked(self.table.data) if given is None else given

    @property
    def unit(self) -> str | None:
        """The column of the unit; None in an audit of rows."""
        unit = self.table.schema.unit
        return None if unit is None else unit.column

    @property
    def target_row(self) -> int | None:
        """The row of the attacked record, if there is a single one and the table holds it."""
        return None

    @property
    def probe_fits(self) -> int:
        """Models that probes may train before the audit; none without a claim to contradict."""
        return 0 if isinstance(self.claim, NoClaim) else self.settings.game.probe_fits

    @property
    def before(self) -> str:
        """The trainings before this audit, in one line; empty if there are none."""
        return ""

    @property
    def like_it(self) -> AuditSpec:
        """An audit with the same cost per model, and nothing before it."""
        return self

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the result depends on, a library in its own environment included."""
        return {**versions(), **self.generator.versions}

    @property
    def all_attacks(self) -> Sequence[NamedAttack]:
        """Its attacks by name; none if the game has its own."""
        found: Sequence[NamedAttack] = getattr(self, "attacks", ())
        return found

    @cached_property
    def reached(self) -> Reached:
        """The code and the installed distributions that generator and attacks reach."""
        return self.reached_with((), ())

    def reached_with(self, files: Iterable[Path], modules: Iterable[str]) -> Reached:
        """As `reached`, plus the code reached from files and modules of the caller.

        Args:
            files: The files.
            modules: Names of the modules.
        """
        values = [self.generator.generator, *(attack for _, attack in self.all_attacks)]
        places = [module_of(name, ATTACKS) for name, _ in self.all_attacks]
        places.append(module_of(self.generator.name, GENERATORS))
        if hasattr(self.generator.generator, "source_files"):
            places.pop()  # its name is a command
        named = [place for place in places if place.endswith(".py") and os.path.isfile(place)]
        return reached(
            values,
            files=[*files, *map(Path, named)],
            modules=[*modules, *(place for place in places if not place.endswith(".py"))],
        )

    @property
    def software(self) -> dict[str, str]:
        """Versions and builds that the result depends on; a run folder belongs to one set."""
        return {**self.versions, **self.reached.software}

    @property
    @abstractmethod
    def own_specification(self) -> dict[str, Any]:
        """The part of the specification that is of this game alone."""

    @property
    @abstractmethod
    def own_options(self) -> list[str]:
        """The words of the command that are of this game alone."""

    @property
    def table_options(self) -> list[str]:
        """The words of the command that name the table and its schema."""
        return self.table.words

    @cached_property
    def specification(self) -> dict[str, Any]:
        """Everything that decides the result's numbers, as JSON; a run folder belongs to one."""
        return {
            "dpaudit": __version__,
            "generator": {
                "name": self.generator.name,
                "parameters": self.generator.parameters,
                "source": source_digest(self.generator.generator),
                "reached": self.reached.code,
            },
            "data": data_digest(self.table.data),
            "schema": self.table.schema.to_document(),
            "neighbours": self.claim.neighbours.value,
            **self.claim.as_settings,
            "rows": self.rows,
            **self.settings.plain(*_WRITTEN_APART),
            **self.own_specification,
        }

    @property
    def stored_specification(self) -> dict[str, Any]:
        """The specification for a run folder, with everything about records marked private."""
        spec = {**self.specification, "data": Private(self.specification["data"])}
        if self.table.schema.inferred:  # its bounds and categories are values of records
            public = ("inferred", "label", "unit", "links")
            shown = {key: of for key, of in spec["schema"].items() if key in public}
            spec["schema"] = Private(spec["schema"], shown)
        return spec

    @cached_property
    def id(self) -> str:
        """Names this audit's trainings in every random stream.

        It depends on what is trained on what, not on how it is attacked or judged, nor on the text
        of source files: an edited comment must not change a single draw. Nor does it depend on a
        library's release: two releases that behave the same have the same result.
        """
        spec = self.specification
        trained = {key: spec[key] for key in ("data", "schema", *self.TRAINED, "rows")}
        trained["generator"] = [self.generator.stream_name, self.generator.stream_parameters]
        return _digest(trained)

    def stream(self, role: str) -> Stream:
        """The random stream of one purpose."""
        return Stream(self.settings.seed, self.id, role)

    @property
    def default_folder(self) -> Path:
        """The default run folder: the same for the same audit."""
        stem = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.generator.name)
        return Path("runs") / f"{stem.strip('-.')[-40:]}-{_digest(self.specification)[:8]}"

    @property
    def reproduce(self) -> str:
        """The command that reproduces this result."""
        further = self.settings.words(*_WRITTEN_APART, *_OF_EVERY_COMMAND)
        return self.command_of("audit", [*further, *self.own_options])

    @property
    def replay(self) -> str | None:
        """The command that replays the generator on the same tables; none in most games."""
        return None

    def command_of(self, name: str, own: Sequence[str]) -> str:
        """A command on the same generator, table and claim.

        Args:
            name: The command.
            own: Its further words.
        """
        settings = self.settings
        words = ["dpaudit", name, *self.generator.words, *self.table_options]
        if settings.claim.is_stated:
            words += _stating(self.claim)
        words += _naming_unit(settings.claim)
        words += ["--neighbours", self.claim.neighbours.value, "--rows", str(self.rows)]
        words += ["--confidence", f"{settings.confidence!r}", "--seed", str(settings.seed)]
        return shlex.join([*words, *own])


def _naming_unit(claim: StatedClaim) -> list[str]:
    """The options that name a unit; none if the schema does."""
    if claim.unit is None:
        return []
    most = claim.max_rows_per_unit
    return ["--unit", claim.unit, *([] if most is None else ["--max-rows-per-unit", str(most)])]


def _stating(claim: Claim) -> list[str]:
    """The options that state a claim."""
    if isinstance(claim, CurveClaim):
        return ["--curve", written_out(claim.points)]
    return [
        word for name, value in claim.as_settings.items() for word in (f"--{name}", f"{value!r}")
    ]


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
