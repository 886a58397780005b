"""A complete, validated audit; it determines every number of the result and trains nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.game.flight import Engine, OnProgress
from dpaudit.game.store import Private
from dpaudit.game.trial import TrialEnd
from dpaudit.model.choices import Access
from dpaudit.model.claim import (
    Claim,
    CurveClaim,
    DeltaClaim,
    EpsilonClaim,
    Neighbours,
    NoClaim,
    PrivacyClaim,
    StatedClaim,
    written_out,
)
from dpaudit.model.linked_files import Given
from dpaudit.model.linked_tables import LinkedTables
from dpaudit.model.schema import Schema
from dpaudit.model.tables import Table, data_digest
from dpaudit.plugins.access import (
    AnyAttack,
    Disclosure,
    ModelAttack,
    access_of,
    disclosed_by,
    released_facts,
)
from dpaudit.plugins.named import (
    NamedAttack,
    NamedGenerator,
    named_attacks,
    named_generator,
    plain_settings,
)
from dpaudit.plugins.protocols import GameView, IntArray
from dpaudit.plugins.registry import ATTACKS, GENERATORS, module_of
from dpaudit.plugins.source import Reached, reached, source_digest
from dpaudit.seeds import Stream
from dpaudit.versions import __version__, versions

Data: TypeAlias = Given | None
"""A table from the caller, or several by name; None for a game that makes its own."""
SchemaGiven: TypeAlias = Schema | str | Path | None
"""Its schema from the caller; None to infer it."""
_OF_FILES = ("separator", "encoding")
_WRITTEN_APART = ("game", "claim", "parameters", "links", *_OF_FILES, "rows", "worker_memory")
"""Settings that a specification writes in another form; the last one affects no number."""
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
        attacks: The attacks, each one hypothesis; empty if the game has its own.
    """

    TRAINED: ClassVar[tuple[str, ...]]
    """Keys of the specification that determine what is trained on what."""

    given: object
    generator: NamedGenerator
    table: Table
    settings: AuditSettings
    claim: Claim
    attacks: tuple[NamedAttack, ...] = ()

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
    def not_probed(self) -> str | None:
        """Why no probes run before the audit; None if they do."""
        if isinstance(self.claim, NoClaim):
            return "there is no claim to contradict"
        if not isinstance(self.claim, PrivacyClaim | DeltaClaim):
            return "probes test claims of epsilon"
        if self.unit is not None or isinstance(self.table.schema, LinkedTables):
            return "probes are about the rows of one table"
        return self.settings.game.not_probed

    @property
    def before(self) -> str:
        """The trainings before this audit, in one line; empty if there are none."""
        return ""

    @property
    def timed_audit(self) -> AuditSpec:
        """The audit whose models are timed: itself, without any search before it."""
        return self

    def resolve(
        self,
        folder: Path,
        *,
        engine: Engine,
        on_progress: OnProgress,
        trial_timeout: float | None = None,
    ) -> AuditSpec:
        """The audit to run: itself, unless its target is searched for by trainings.

        Args:
            folder: Its run folder.
            engine: What runs trainings.
            on_progress: Called after every training.
            trial_timeout: Seconds after which a training has failed; derived if None.

        Raises:
            RunFolderError: If the folder cannot be used, or holds an audit without a search.
            InterruptedRunError: On Ctrl-C; the same call resumes.
        """
        del folder, engine, on_progress, trial_timeout
        return self

    @property
    def versions(self) -> dict[str, str]:
        """Versions of what the result depends on, a library in its own environment included."""
        return {**versions(), **self.generator.versions}

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
        values = [self.generator.generator, *(attack for _, attack in self.attacks)]
        places = [module_of(name, ATTACKS) for name, _ in self.attacks]
        places.append(module_of(self.generator.name, GENERATORS))
        if hasattr(self.generator.generator, "source_files"):
            places.pop()  # its name is a command
        named = [place for place in places if place.endswith(".py") and os.path.isfile(place)]
        return reached(
            values,
            files=[*files, *map(Path, named)],
            modules=[*modules, *(place for place in places if not place.endswith(".py"))],
        )

    def effective_claim(self, outcomes: Iterable[TrialEnd]) -> Claim:
        """The claim under audit, as the models that were trained state it.

        Thresholds, bets, bounds, power and verdict of an audit all refer to this one.

        A claim stated by the caller is used as it is. Otherwise a data-dependent accountant may
        have reported more than the generator did before training, or models may claim something
        that their generator does not. Then epsilon and delta are each the largest claimed by the
        generator or any of its models, in either world. Every single claim implies this pair, so a
        generator that satisfies all its claims satisfies the pair, and honest generators are not
        flagged more often. A claim in a quantity other than epsilon is used as the generator states
        it.

        Args:
            outcomes: The trials so far; a sequential audit asks again after each batch.

        Returns:
            The claim.
        """
        claim = self.claim
        if self.settings.claim.is_stated or not isinstance(claim, EpsilonClaim):
            return claim
        by_models = {end.claimed for end in outcomes if end.claimed is not None}
        if not by_models:
            return claim
        epsilon = max(claim.epsilon, *(claimed.epsilon for claimed in by_models))
        delta = max(claim.delta, *(claimed.delta for claimed in by_models))
        if (epsilon, delta) == (claim.epsilon, claim.delta):
            return claim
        source = f"{claim.source}; largest that a fitted model claimed in either world"
        return PrivacyClaim(
            epsilon=epsilon,
            delta=delta,
            neighbours=claim.neighbours,
            source=source,
            unit=claim.unit,
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
    def attacks_specified(self) -> list[dict[str, Any]]:
        """The attacks, with all that decides what they do."""
        return [
            {"name": name, "settings": plain_settings(attack), "source": source_digest(attack)}
            for name, attack in self.attacks
        ]

    @property
    def attack_options(self) -> list[str]:
        """The words of the command that name the attacks, unless they are the default ones."""
        if self.settings.game.are_default_attacks:
            return []
        return [word for name, _ in self.attacks for word in ("--attack", name)]

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
            **{name: of for name in _OF_FILES if (of := getattr(self.settings, name)) is not None},
            **self.settings.plain(*_WRITTEN_APART),
            **self.own_specification,
        }

    @property
    def stored_specification(self) -> dict[str, Any]:
        """The specification for a run folder, with everything about records marked private."""
        spec = {**self.specification, "data": Private(self.specification["data"])}
        if self.table.schema.inferred:  # its bounds and categories are values of records
            public = ("inferred", "label", "unit", "links")
            shown = {key: value for key, value in spec["schema"].items() if key in public}
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
        words = self.command_of("audit", [*further, *self.own_options])
        return shlex.join(self.settings.words_by_name(words))

    @property
    def replay(self) -> str | None:
        """The command that replays the generator on the same tables; none in most games."""
        return None

    def command_of(self, name: str, own: Sequence[str]) -> list[str]:
        """The words of a command on the same generator, table and claim, without its defaults.

        Args:
            name: The command.
            own: Its further words.
        """
        settings = self.settings
        words = ["dpaudit", name, *self.generator.words, *self.table_options]
        if settings.claim.is_stated:
            words += _stating(self.claim)
        words += _naming_unit(settings.claim)
        if settings.claim.neighbours is not None:
            words += ["--neighbours", self.claim.neighbours.value]
        if settings.rows is not None:
            words += ["--rows", str(settings.rows)]
        others = {field.name for field in fields(settings)} - {*_OF_FILES, *_OF_EVERY_COMMAND}
        return [*words, *settings.words(*others), *own]


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


def build_generator(
    generator: object, settings: AuditSettings, **offered: object
) -> NamedGenerator:
    """The generator of an audit, built with the caller's choices.

    Args:
        generator: As for `dpaudit.audit`.
        settings: Every choice of the audit.
        offered: What a generator may ask for by these names when it is built.

    Raises:
        RegistryError: If it cannot be built.
    """
    return named_generator(
        generator, settings.parameters, offered, worker_memory=settings.worker_memory
    )


def view_of(
    table: Table, hidden: IntArray | list[int], *, rows: int, neighbours: Neighbours
) -> GameView:
    """The attacker's knowledge: all records, but not which of the hidden ones are included.

    Args:
        table: The table handed in.
        hidden: Positions of the hidden rows.
        rows: Synthetic rows requested of the model.
        neighbours: The relation of the claim.
    """
    known = np.ones(len(table.data), dtype=np.bool_)
    known[hidden] = False
    return GameView(
        schema=table.schema,
        others=table.data[known].reset_index(drop=True),
        target=table.data.iloc[hidden].reset_index(drop=True),
        n_rows=rows,
        neighbours=neighbours,
    )


def attacks_with_access(
    generator: NamedGenerator, chosen: tuple[str | AnyAttack, ...], level: Access = Access.OUTPUT
) -> tuple[tuple[NamedAttack, ...], tuple[str, ...]]:
    """The attacks of an audit, checked against its access level and its generator.

    Args:
        generator: The generator under audit.
        chosen: Registered names or objects; default attacks of the level to which the generator
            discloses nothing are left out.
        level: What the attacker sees.

    Returns:
        The attacks, each of which sees something that the generator discloses, and the names of the
        released facts, where attacks see them.

    Raises:
        SettingsError: If an attack sees more than the level allows or the generator discloses, or
            none looks at what the level adds.
        RegistryError: If an attack cannot be built.
    """
    name = generator.name
    disclosed = disclosed_by(generator.generator, name=name) | {Disclosure.COST}
    attacks = named_attacks(chosen)
    accesses = {disclosure.access for disclosure in disclosed}
    for part in level.parts:
        if part is not Access.OUTPUT and part not in accesses:
            ways = "; or ".join(way.how for way in Disclosure if way.access is part)
            raise SettingsError(
                f'`access="{level}"`: {name} discloses nothing of the kind; give it {ways}; or '
                "leave out `access`"
            )
    if chosen == ATTACKS_AT[level]:
        attacks = tuple(named for named in attacks if _unseen(named, disclosed) is None)
    for named in attacks:
        needed, unseen = access_of(named.attack), _unseen(named, disclosed)
        if not level.includes(needed):
            raise SettingsError(
                f"attack {named.name} sees {needed.in_words}: set "
                f'`access="{needed}"`, or leave it out'
            )
        if unseen is not None:
            raise SettingsError(
                f"attack {named.name}: {name} does not disclose what it sees; give the generator "
                f"{unseen.how}, or leave the attack out"
            )
    _require_use(attacks, level)
    sees_facts = any(access_of(named.attack) is Access.RELEASED for named in attacks)
    facts = tuple(released_facts(generator.generator, name=name)) if sees_facts else ()
    return attacks, facts


def _unseen(named: NamedAttack, disclosed: frozenset[Disclosure]) -> Disclosure | None:
    """What an attack needs and the generator does not disclose, if anything."""
    attack = named.attack
    return attack.sees if isinstance(attack, ModelAttack) and attack.sees not in disclosed else None


def _require_use(attacks: Sequence[NamedAttack], level: Access) -> None:
    """Refuses a level that no attack uses: the report would promise too much."""
    for part in level.parts:
        if not any(access_of(named.attack) is part for named in attacks):
            new = [name for name in ATTACKS_AT[part] if name not in ATTACKS_AT[Access.OUTPUT]]
            raise SettingsError(
                f'`access="{level}"`, but no attack looks at what it adds: add one such as '
                f"{new[0]}, or leave out `access`"
            )
