"""From what the caller asked for to a complete, validated audit; trains nothing."""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from dpaudit.adapt import as_generator
from dpaudit.claim import Neighbours, PrivacyClaim
from dpaudit.errors import ClaimError, RegistryError, SettingsError
from dpaudit.game.worlds import Game, Target, build_game, choose_target, copies_of
from dpaudit.plan import Size
from dpaudit.protocols import Attack, Generator
from dpaudit.registry import ATTACKS, GENERATORS, build, carry
from dpaudit.schema import Schema
from dpaudit.seeds import Stream
from dpaudit.tables import fitting, load_schema, load_table
from dpaudit.versions import dpaudit_version

IN_MEMORY = "a table in memory"
MAX_SEED = 2**63


class NamedGenerator(NamedTuple):
    """A generator and how it was asked for."""

    name: str
    parameters: dict[str, Any]
    generator: Generator


class NamedAttack(NamedTuple):
    """An attack and the name it was asked for by."""

    name: str
    attack: Attack


class Table(NamedTuple):
    """The table handed in: canonical, with its schema and where it came from."""

    data: pd.DataFrame
    schema: Schema
    source: str
    schema_source: str | None


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A complete audit, ready to be played.

    Attributes:
        generator: What is audited.
        table: The table handed in.
        target: The attacked record.
        game: Both worlds.
        claim: The claim under audit, for the neighbours that are played.
        claim_is_given: Whether the caller stated epsilon; else it is the generator's own.
        attacks: The attacks, each one hypothesis.
        size: Trials and confidence.
        seed: Root of every random stream.
    """

    generator: NamedGenerator
    table: Table
    target: Target
    game: Game
    claim: PrivacyClaim
    claim_is_given: bool
    attacks: tuple[NamedAttack, ...]
    size: Size
    seed: int

    @cached_property
    def specification(self) -> dict[str, Any]:
        """What decides every number of the result, as JSON; a run folder belongs to one."""
        return {
            "dpaudit": dpaudit_version(),
            "generator": {
                "name": self.generator.name,
                "parameters": self.generator.parameters,
                "source": _source_digest(self.generator.generator),
            },
            "data": data_digest(self.table.data),
            "schema": self.table.schema.to_json(),
            "target": {
                "choice": self.target.choice,
                "row": self.target.row,
                "record": data_digest(self.target.record),
            },
            "neighbours": self.claim.neighbours.value,
            "epsilon": self.claim.epsilon,
            "delta": self.claim.delta,
            "rows": self.game.view.n_rows,
            "attacks": [
                {"name": name, "settings": _settings(attack), "source": _source_digest(attack)}
                for name, attack in self.attacks
            ],
            "shadow_models": self.size.shadow_models,
            "confidence": self.size.confidence,
            "seed": self.seed,
        }

    @cached_property
    def id(self) -> str:
        """Names this audit's trainings in every random stream.

        Made of what is trained on what, not of how it is attacked or judged, nor of the text of
        source files: an edited comment must not change a single draw.
        """
        spec = self.specification
        trained = {key: spec[key] for key in ("data", "schema", "target", "neighbours", "rows")}
        trained["generator"] = [self.generator.name, self.generator.parameters]
        return _digest(trained)

    def stream(self, role: str) -> Stream:
        """The random stream of one purpose."""
        return Stream(self.seed, self.id, role)

    @property
    def default_folder(self) -> Path:
        """Where the run goes unless the caller says otherwise: the same for the same audit."""
        stem = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.generator.name)
        return Path("runs") / f"{stem.strip('-.')[-40:]}-{_digest(self.specification)[:8]}"

    @property
    def reproduce(self) -> str:
        """The command that gives this result again."""
        given = [f"{key}={_text(value)}" for key, value in self.generator.parameters.items()]
        words = ["dpaudit", "audit", self.generator.name]
        words += [word for pair in given for word in ("-p", pair)]
        words += ["--data", self.table.source]
        if self.table.schema_source is not None:
            words += ["--schema", self.table.schema_source]
        if self.claim_is_given:
            words += ["--epsilon", f"{self.claim.epsilon!r}", "--delta", f"{self.claim.delta!r}"]
        words += ["--neighbours", self.claim.neighbours.value, "--target", self.target.choice]
        words += [word for name, _ in self.attacks for word in ("--attack", name)]
        words += ["--shadow-models", str(self.size.shadow_models)]
        words += ["--rows", str(self.game.view.n_rows)]
        words += ["--confidence", f"{self.size.confidence!r}", "--seed", str(self.seed)]
        return shlex.join(words)


def load(data: pd.DataFrame | str | Path, schema: Schema | str | Path | None) -> Table:
    """Reads and validates a table.

    Args:
        data: A table, a file, or "sample:NAME".
        schema: A schema, a schema file, or None to infer one (which marks itself).

    Returns:
        The canonical table and its schema.

    Raises:
        DataError: If the table cannot be read or does not fit.
        SchemaError: If the schema is malformed or cannot be inferred.
    """
    source = IN_MEMORY if isinstance(data, pd.DataFrame) else str(data)

    def read(known: Schema | None) -> pd.DataFrame:
        return data if isinstance(data, pd.DataFrame) else load_table(data, schema=known)

    if schema is None:
        table = read(None)
        found = Schema.infer(table)
    elif isinstance(schema, Schema):
        table, found = read(schema), schema
    else:
        found = load_schema(schema, lambda: read(None))
        table = read(found)
    named = str(schema) if isinstance(schema, str | Path) else None
    return Table(fitting(table, found, source=source), found, source, named)


def named_generator(
    generator: object, parameters: Mapping[str, Any], offered: Mapping[str, Any]
) -> NamedGenerator:
    """Builds or wraps the generator that the caller named or handed in.

    Args:
        generator: A name as in `dpaudit.registry.resolve`, an object with `fit`, a class, or a
            function `f(data, n_rows, seed)`.
        parameters: Constructor parameters, for names and classes.
        offered: What a constructor may ask for: schema and target.

    Returns:
        The generator with its name.

    Raises:
        RegistryError: If it cannot be found or built, or is no generator.
    """
    if isinstance(generator, str):
        value = build(generator, GENERATORS, given=parameters, offered=offered)
        return NamedGenerator(generator, dict(parameters), as_generator(value, name=generator))
    if inspect.isclass(generator):
        raise RegistryError(
            f"{generator.__name__} is a class: hand in an instance, {generator.__name__}(...)"
        )
    if parameters:
        raise RegistryError("parameters are for generators given by name, not for ready objects")
    own = generator if inspect.isroutine(generator) else type(generator)
    carry(generator)
    name = f"{own.__module__}:{own.__qualname__}"
    return NamedGenerator(name, _settings(generator), as_generator(generator, name=name))


def prepare(
    generator: object,
    table: Table,
    *,
    parameters: Mapping[str, Any],
    epsilon: float | None,
    delta: float | None,
    neighbours: Neighbours | None,
    target: str,
    attacks: Sequence[str | Attack],
    shadow_models: int,
    rows: int | None,
    confidence: float,
    seed: int,
) -> Audit:
    """Validates everything an audit needs; see `dpaudit.audit` for the arguments.

    Raises:
        InputError: If anything is unusable; says what and how to mend it.
    """
    size = Size(shadow_models=shadow_models, attacks=len(attacks), confidence=confidence)
    if not 0 <= seed < MAX_SEED:
        raise SettingsError(f"--seed must be a whole number in [0, 2**63), got {seed}")
    data, schema = table.data, table.schema
    chosen = choose_target(target, data, schema)
    offered = {"schema": schema, "target": chosen.record}
    named = named_generator(generator, parameters, offered)
    claim = claim_under_audit(named, epsilon=epsilon, delta=delta, neighbours=neighbours)
    replacement = None
    if claim.neighbours is Neighbours.REPLACE_ONE:
        replacement = _replacement(chosen.record, schema, Stream(seed, "", "replacement"))
    game = build_game(
        data,
        schema,
        chosen,
        n_rows=len(data) if rows is None else rows,
        neighbours=claim.neighbours,
        replacement=replacement,
    )
    check = getattr(named.generator, "check", None)
    if check is not None:
        check(data)
    return Audit(
        generator=named,
        table=table,
        target=chosen,
        game=game,
        claim=claim,
        claim_is_given=epsilon is not None or delta is not None,
        attacks=_named_attacks(attacks, game),
        size=size,
        seed=seed,
    )


def claim_under_audit(
    named: NamedGenerator,
    *,
    epsilon: float | None,
    delta: float | None,
    neighbours: Neighbours | None,
) -> PrivacyClaim:
    """The claim to hold the generator to: the caller's, else its own.

    Raises:
        ClaimError: If neither states an epsilon, or the generator's own claim says nothing about
            the neighbours asked for.
    """
    own: PrivacyClaim | None = getattr(named.generator, "claim", None)
    if epsilon is None and own is None:
        raise ClaimError(f"{named.name} states no claim: give --epsilon and --delta")
    relation = neighbours or (own.neighbours if own else Neighbours.ADD_REMOVE)
    if epsilon is None:
        assert own is not None
        restated = own.under(relation)
        if delta is None:
            return restated
        epsilon, source = restated.epsilon, f"{restated.source}; delta given by the caller"
    else:
        stated = f"; the generator itself claims {own.epsilon:g}" if own else ""
        source = f"given by the caller{stated}"
    default_delta = own.delta if own else 0.0
    return PrivacyClaim(
        epsilon=epsilon,
        delta=default_delta if delta is None else delta,
        neighbours=relation,
        source=source,
    )


def data_digest(data: pd.DataFrame) -> str:
    """SHA-256 over the row hashes and column names of a canonical table."""
    hashed = pd.util.hash_pandas_object(data.astype(str), index=False)
    digest = hashlib.sha256(hashed.to_numpy().astype("<u8").tobytes())
    digest.update(json.dumps([str(name) for name in data.columns]).encode())
    return digest.hexdigest()


def _named_attacks(attacks: Sequence[str | Attack], game: Game) -> tuple[NamedAttack, ...]:
    found = []
    for attack in attacks:
        if isinstance(attack, str):
            built = build(attack, ATTACKS, given={}, offered={})
            missing = [
                method
                for method in ("check", "feature_names", "features", "fit")
                if not callable(getattr(built, method, None))
            ]
            if missing:
                raise RegistryError(f"attack {attack} lacks the method {missing[0]!r}: add it")
            found.append(NamedAttack(attack, cast(Attack, built)))
        else:
            carry(attack)
            found.append(NamedAttack(type(attack).__name__, attack))
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise SettingsError(f"an attack is named twice: {', '.join(names)}; name each once")
    for _, attack in found:
        attack.check(game.view)
    return tuple(found)


def _replacement(target: pd.DataFrame, schema: Schema, stream: Stream) -> pd.DataFrame:
    """A record drawn from the schema, never from the data, that differs from the target."""
    null = cast(Generator, build("null", GENERATORS, given={}, offered={"schema": schema}))
    drawn = null.fit(target, seed=stream.seed()).sample(1000, seed=stream.seed())
    for position in range(len(drawn)):
        record = schema.canonical(drawn.iloc[[position]])
        if not copies_of(record, target, schema):
            return record
    raise SettingsError("the schema allows no record but the target: widen its bounds")


def _settings(value: object) -> dict[str, Any]:
    """The plain settings of an object: enough to notice that they changed."""
    found = getattr(value, "__dict__", {})
    plain = {k: v for k, v in found.items() if isinstance(v, str | int | float | bool | None)}
    return {key: item for key, item in sorted(plain.items()) if not key.startswith("_")}


def _source_digest(value: object) -> str | None:
    """A digest of the file that defines an object; None where there is none."""
    function = getattr(value, "function", None)  # a wrapped bare function
    defined = function if inspect.isroutine(function) else type(value)
    try:
        file = inspect.getsourcefile(defined)
    except TypeError:
        return None
    if file is None or not Path(file).is_file():
        return None
    return hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
