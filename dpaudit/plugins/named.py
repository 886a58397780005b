"""Generators and attacks by the names that the caller gave, fitted to the contract; the claim."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pandas as pd

from dpaudit.errors import AttackError, ClaimError, RegistryError, SettingsError, TrialError
from dpaudit.external.session import FRESH_PREFIX, PREFIX
from dpaudit.formatting import counted
from dpaudit.model.claim import (
    CurveClaim,
    Neighbours,
    NoClaim,
    PrivacyClaim,
    Promise,
    Quantity,
    StatedClaim,
)
from dpaudit.model.schema import Schema
from dpaudit.model.setting import POSITIVE, check_number
from dpaudit.model.tables import Table
from dpaudit.plugins.access import AnyAttack, ModelAttack
from dpaudit.plugins.foreign import refusing
from dpaudit.plugins.protocols import FeatureName, GameView, Generator, Model, is_seedable
from dpaudit.plugins.registry import (
    ATTACKS,
    GENERATORS,
    LIBRARIES,
    build,
    carry,
    names,
    parse_parameters,
    plugins,
    require_extras,
    resolve,
)
from dpaudit.seeds import rng_of

if TYPE_CHECKING:
    from dpaudit.external.generator import Library, WorkerGenerator

TableFunction = Callable[[pd.DataFrame, int, int], pd.DataFrame]


@dataclass(frozen=True)
class FunctionModel:
    """A table and the function that turns it into synthetic rows."""

    function: TableFunction
    data: pd.DataFrame
    fit_seed: int | None

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        """Calls the function with the table, `n` and a seed derived from both seeds."""
        rng = rng_of(self.fit_seed, f"function/{seed}")
        return self.function(self.data, n, int(rng.integers(2**32)))


@dataclass(frozen=True)
class FunctionGenerator:
    """A bare function `f(data, n_rows, seed) -> DataFrame` as a generator."""

    function: TableFunction

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> FunctionModel:
        """Keeps the table; the function does all its work when it is sampled."""
        return FunctionModel(self.function, data, seed)


def as_generator(value: object, *, name: str) -> Generator:
    """Turns an instance or a bare function into a generator that can be audited.

    Args:
        value: An object with `fit`, or a function `f(data, n_rows, seed)`.
        name: Name for messages.

    Returns:
        A generator.

    Raises:
        RegistryError: If it has no `fit`, its `fit` takes no `seed`, the class that `fit` returns
            is known to have no `sample`, or reading `seedable` raises.
    """
    if inspect.isclass(value):
        raise RegistryError(f"{name} is a class: hand in an instance of it")
    fit = getattr(value, "fit", None)
    if not callable(fit):
        if callable(value):
            if not _accepts(value, object(), 1, 0):
                raise RegistryError(
                    f"{name}: a generator function must accept (data, n_rows, seed), "
                    f"it is {name}{inspect.signature(value)}"
                )
            return FunctionGenerator(value)
        raise RegistryError(
            f"{name} has no method fit(data, *, seed): a generator is a class with fit, or a "
            "function f(data, n_rows, seed) that returns a table"
        )
    if not _accepts(fit, object(), seed=0):
        raise RegistryError(
            f"{name}: fit must accept (data, *, seed), it is fit{inspect.signature(fit)}"
        )
    returned = _returned_class(value)
    if returned is not None:
        sample = getattr(returned, "sample", None)
        if not callable(sample):
            raise RegistryError(
                f"{name}: fit returns {returned.__name__}, which lacks the method "
                "sample(n, *, seed); add it"
            )
        if not _accepts(sample, object(), 1, seed=0):
            raise RegistryError(
                f"{name}: sample must accept (n, *, seed), "
                f"{returned.__name__} has sample{inspect.signature(sample)}"
            )
    is_seedable(value)  # needed at the end of a run; errors are raised now
    return typing.cast(Generator, value)


def train(generator: Generator, data: pd.DataFrame, *, seed: int | None) -> Model:
    """Trains on a copy of a table; a generator that trains in place is its own model.

    Args:
        generator: The generator.
        data: The table; changes that the generator makes stay in its copy.
        seed: As for `fit`.

    Returns:
        What `fit` returned, or the generator if that was None.

    Raises:
        TrialError: If the model has no method `sample`.
    """
    fitted = generator.fit(data.copy(), seed=seed)
    model: object = generator if fitted is None else fitted
    if not hasattr(model, "sample"):
        raise TrialError(f"fit returned {type(model).__name__}, which has no method sample")
    return typing.cast(Model, model)


def check_table(generator: Generator, data: pd.DataFrame) -> None:
    """Asks a generator, before any training, whether it accepts a table.

    Args:
        generator: The generator; one without a method `check` accepts every table.
        data: The table.

    Raises:
        InputError: If the generator refuses; a `RegistryError` if its `check` is not a method or
            fails otherwise.
    """
    name = type(generator).__name__
    with refusing(f"{name}: its check raises"):
        check = getattr(generator, "check", None)
        if check is not None and not callable(check):
            raise RegistryError(f"{name}: its check is not a method check(data): make it one")
        if check is not None:
            check(data)


def _accepts(function: Callable[..., Any], *args: object, **kwargs: object) -> bool:
    """Whether a function can be called with these arguments, by its signature."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature, which the first trial will test
        return True
    return True


def _returned_class(generator: object) -> type | None:
    """The class of the model, if it can be known without training, else None.

    It is the return annotation of `fit`; without an annotation, the generator's own class if `fit`
    only returns `self`, as scikit-learn's estimators do.
    """
    own_class = type(generator)
    fit = inspect.unwrap(own_class.fit) if hasattr(own_class, "fit") else None
    if not inspect.isfunction(fit):
        return None
    try:
        annotated = typing.get_type_hints(fit).get("return")
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only
        annotated = None
    if annotated is type(None) or annotated is getattr(typing, "Self", None):
        return own_class
    if inspect.isclass(annotated) and annotated not in (object, typing.Any):
        return annotated
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fit)))
    except (OSError, SyntaxError, TypeError):  # no source at hand
        return None
    if not isinstance(tree.body[0], ast.FunctionDef):
        return None  # a lambda has no `return`
    returns = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return)]
    if all(value is None or ast.unparse(value) in ("self", "None") for value in returns):
        return own_class
    return None


BYTES_OF_GB: Final = 10**9
_ATTACK_METHODS = ("check", "feature_names", "fit")


class NamedGenerator(NamedTuple):
    """A generator and how the caller named it.

    Attributes:
        name: A registered name, `module:attr`, or a file and an attribute.
        parameters: Constructor parameters; for a ready object, its plain settings.
        generator: The generator.
    """

    name: str
    parameters: dict[str, Any]
    generator: Generator

    @property
    def words(self) -> list[str]:
        """The words of a command that name it and its parameters."""
        pairs = [
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in self.parameters.items()
        ]
        return [self.name, *(word for pair in pairs for word in ("-p", pair))]

    @property
    def stream_name(self) -> str:
        """The name of its random streams: the same for all releases of a library.

        A renamed generator has its old name as `stream_name`, so its audits repeat the same draws.
        """
        name: str = getattr(self.generator, "stream_name", self.name)
        return re.sub("@[^:]*(?=:)", "", name) if self.versions else name

    @property
    def stream_parameters(self) -> dict[str, Any]:
        """The parameters that name its random streams.

        These are the given ones and, in a renamed generator's `stream_parameters`, those that its
        old name needed.
        """
        earlier: Mapping[str, Any] = getattr(self.generator, "stream_parameters", {})
        return {**earlier, **self.parameters}

    @property
    def versions(self) -> Mapping[str, str]:
        """Releases that are audited in an environment of their own; empty if there is none."""
        releases: Mapping[str, str] = getattr(self.generator, "audited_releases", {})
        return releases


class NamedAttack(NamedTuple):
    """An attack and the name that the caller gave."""

    name: str
    attack: AnyAttack

    def check(self, view: GameView) -> None:
        """Allows the attack to refuse a game before any training.

        Raises:
            InputError: If the attack refuses; a `RegistryError` if it raises anything else, or
                cannot name its features.
        """
        with refusing(f"attack {self.name}: its check raises"):
            for table_view in self._views(view).values():
                self.attack.check(table_view)
        try:
            self.feature_names(view)
        except AttackError as error:  # nothing was trained yet: the caller may correct it
            raise RegistryError(str(error)) from error

    def feature_names(self, view: GameView) -> tuple[FeatureName, ...]:
        """Names of the attack's features.

        Raises:
            AttackError: If the attack cannot name them.
        """
        with refusing(f"attack {self.name}: its feature_names raises", as_error=AttackError):
            return tuple(
                name._replace(feature=f"{name.feature}{table and f' in {table}'}")
                for table, table_view in self._views(view).items()
                for name in self.attack.feature_names(table_view)
            )

    def _views(self, view: GameView) -> Mapping[str, GameView]:
        """The views of linked tables, by name; else the game's own view, under no name."""
        of_tables = {} if isinstance(self.attack, ModelAttack) else view.of_tables
        return of_tables or {"": view}


def named_generator(
    generator: object,
    parameters: Mapping[str, Any],
    offered: Mapping[str, Any],
    *,
    worker_memory: float | None = None,
) -> NamedGenerator:
    """Builds or wraps the generator that the caller named or handed in.

    Args:
        generator: A name as in `dpaudit.plugins.registry.resolve`, `worker:COMMAND`, a library's
            `LIBRARY:METHOD`, an object with `fit`, or a function `f(data, n_rows, seed)`.
        parameters: Constructor parameters, for names and classes.
        offered: Arguments that a constructor may ask for: schema and target.
        worker_memory: Gigabytes of address space for a worker process; None for no limit.

    Returns:
        The generator with its name.

    Raises:
        RegistryError: If the generator cannot be found or built, or is not a generator.
        MissingExtraError: If its entry point names an extra that is not installed.
        SettingsError: If `worker_memory` is not positive.
    """
    if worker_memory is not None:
        check_number("worker_memory", worker_memory, POSITIVE)
    if isinstance(generator, str):
        memory = None if worker_memory is None else round(worker_memory * BYTES_OF_GB)
        worker = _worker(generator, parameters, offered["schema"], memory)
        if worker is not None:
            return NamedGenerator(generator, dict(parameters), worker)
        value = build(generator, GENERATORS, given=parameters, offered=offered)
        with refusing(f"{generator} cannot be used"):
            return NamedGenerator(generator, dict(parameters), as_generator(value, name=generator))
    if inspect.isclass(generator):
        raise RegistryError(
            f"{generator.__name__} is a class: hand in an instance, {generator.__name__}(...)"
        )
    if parameters:
        raise RegistryError("`parameters` are for generators given by name, not for ready objects")
    defined = generator if inspect.isroutine(generator) else type(generator)
    carry(generator)
    name = f"{defined.__module__}:{defined.__qualname__}"
    require_extras(name, GENERATORS)
    with refusing(f"{name} cannot be used"):
        return NamedGenerator(name, plain_settings(generator), as_generator(generator, name=name))


def _worker(
    name: str, parameters: Mapping[str, Any], schema: Schema, memory: int | None
) -> WorkerGenerator | None:
    """The generator behind `[fresh-]worker:COMMAND` or `LIBRARY:METHOD`; None for other names."""
    for prefix in (PREFIX, FRESH_PREFIX):
        if name.startswith(prefix):
            from dpaudit.external.generator import WorkerGenerator

            return WorkerGenerator(
                command=name.removeprefix(prefix),
                schema=schema,
                parameters=parameters,
                fresh=prefix == FRESH_PREFIX,
                memory=memory,
            )
    place, colon, method = name.rpartition(":")
    library = library_named(place if colon else name)
    if library is None or (not colon and name in names(GENERATORS)):
        return None
    return library.generator(
        method if colon else "", schema=schema, parameters=parameters, memory=memory
    )


def library_named(name: str) -> Library | None:
    """The library registered under a name, perhaps at another release; None if there is none.

    Args:
        name: `LIBRARY`, or `LIBRARY@VERSION`.

    Raises:
        RegistryError: If the library cannot be loaded, or has no such release.
    """
    registered, at, version = name.partition("@")
    if registered not in names(LIBRARIES):
        return None
    from dpaudit.external.generator import Library

    library = resolve(registered, LIBRARIES)
    if not isinstance(library, Library):
        raise RegistryError(f"plugin {registered!r} is not a dpaudit.external.generator.Library")
    return library.with_release(version) if at else library


def libraries() -> list[Library]:
    """Every registered library; a broken one causes a warning."""
    from dpaudit.external.generator import Library

    return [value for value in plugins(LIBRARIES).values() if isinstance(value, Library)]


def named_attacks(attacks: Sequence[str | AnyAttack]) -> tuple[NamedAttack, ...]:
    """Builds the attacks that the caller named or handed in.

    Args:
        attacks: Names, perhaps with settings (`groundhog,classifier=logistic-regression`), or ready
            objects.

    Returns:
        The attacks with their names.

    Raises:
        RegistryError: If an attack cannot be found or built, or is not an attack.
        SettingsError: If two attacks have the same name.
    """
    named = []
    for attack in attacks:
        if isinstance(attack, str):
            name, *pairs = attack.split(",")
            built = build(name, ATTACKS, given=parse_parameters(pairs), offered={})
        else:
            carry(attack)
            built, attack = attack, type(attack).__name__
        features = "model_features" if hasattr(built, "sees") else "features"
        methods = (*_ATTACK_METHODS, features)
        missing = [name for name in methods if not callable(getattr(built, name, None))]
        if missing:
            raise RegistryError(f"attack {attack} lacks the method {missing[0]!r}: add it")
        named.append(NamedAttack(attack, cast(AnyAttack, built)))
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        raise SettingsError(f"an attack is named twice: {', '.join(names)}; name each once")
    return tuple(named)


def claim_under_audit(
    named: NamedGenerator, stated: StatedClaim, table: Table | None = None
) -> Promise:
    """The claim to test: the caller's, else the generator's own.

    Args:
        named: The generator.
        stated: The caller's claim.
        table: The table of the audit, whose unit the claim is about; None for an audit of rows.

    Returns:
        The claim, restated for the caller's neighbouring relation.

    Raises:
        ClaimError: If neither states a claim, and as for `claim_if_any`.
        RegistryError: If asking the generator for its claim raises.
    """
    claim = claim_if_any(named, stated, table)
    if isinstance(claim, NoClaim):
        raise ClaimError(f"{named.name} states no claim: give `epsilon` and `delta`")
    return claim


def claim_if_any(
    named: NamedGenerator, stated: StatedClaim, table: Table | None = None
) -> Promise | NoClaim:
    """The claim of an audit as in `claim_under_audit`, or no claim.

    Args:
        named: The generator.
        stated: The caller's claim.
        table: The table of the audit, whose unit the claim is about; None for an audit of rows.

    Returns:
        The claim, restated for the caller's neighbouring relation; `NoClaim` if neither the caller
        nor the generator states one.

    Raises:
        ClaimError: If the generator's own claim is not a claim of dpaudit, is for another unit,
            implies nothing for the neighbouring relation, or has no delta although the caller gives
            one.
        RegistryError: If asking the generator for its claim raises.
    """
    own = _own_claim(named)
    unit = None if table is None else table.schema.unit
    column = None if unit is None else unit.column
    relation = stated.neighbours or (own.neighbours if own else Neighbours.ADD_REMOVE)
    claim = stated.made(
        relation=relation,
        default_delta=own.delta if isinstance(own, PrivacyClaim) else 0.0,
        source=f"set for this audit{_note_own_claim(own)}",
        unit=column,
    )
    if claim is not None:
        return claim
    if own is None:
        return NoClaim(delta=stated.delta or 0.0, neighbours=relation, unit=column)
    _check_unit(named, own, table)
    restated = own.under(relation)
    if stated.delta is None:
        return restated
    if not isinstance(restated, PrivacyClaim):
        raise ClaimError(
            f"{named.name} claims {own.in_words}, which has no delta: leave out `delta`, or give "
            "`epsilon` too"
        )
    return PrivacyClaim(
        epsilon=restated.epsilon,
        delta=stated.delta,
        neighbours=relation,
        source=f"{restated.source}; delta set for this audit",
        unit=restated.unit,
    )


def _check_unit(named: NamedGenerator, own: Promise, table: Table | None) -> None:
    """Refuses the generator's own claim if the audit is about another unit."""
    unit = None if table is None else table.schema.unit
    if own.unit == (None if unit is None else unit.column):
        return
    if table is None or unit is None:
        raise ClaimError(
            f"{named.name} claims {own.in_words} per {own.unit}, and this audit is of single rows: "
            f'give `unit="{own.unit}"`, or state a claim per row'
        )
    if own.unit is not None:
        raise ClaimError(
            f"{named.name} claims {own.in_words} per {own.unit}, and this audit is per "
            f"{unit.column}: give that unit, or state a claim per {unit.column}"
        )
    rows = unit.most_rows(table.data)
    group = own.of_group(rows)
    raise ClaimError(
        f"{named.name} claims {own.in_words} per row, which says less about a {unit.column} with "
        f"{counted(rows, 'row')}: group privacy allows {group.in_words} "
        f"({_factor_in_words(own, rows)}); state the claim per {unit.column}, such as "
        f"{_settings_in_words(group)}, or audit rows without `unit`"
    )


def _factor_in_words(own: Promise, rows: int) -> str:
    """The change of a claim by group privacy, in words."""
    if own.quantity is Quantity.RHO:
        return f"{rows}² times rho"
    if own.quantity is Quantity.MU:
        return f"{rows} times mu"
    if isinstance(own, PrivacyClaim) and own.delta == 0:
        return f"{rows} times epsilon"
    return f"{rows} times epsilon, and delta times 1 + e^epsilon + ... + e^({rows - 1} epsilon)"


def _settings_in_words(claim: Promise) -> str:
    """The settings that state a claim."""
    if isinstance(claim, CurveClaim):
        return "`curve` with these points"
    settings = {
        name: value for name, value in claim.as_settings.items() if value or name != "delta"
    }
    return " and ".join(f"`{name}={value:.6g}`" for name, value in settings.items())


def _note_own_claim(own: Promise | None) -> str:
    """A note about the generator's own claim, next to the caller's."""
    if own is None:
        return ""
    name = f"{own.epsilon:g}" if isinstance(own, PrivacyClaim) else own.in_words
    return f" (generator's own: {name})"


def _own_claim(named: NamedGenerator) -> Promise | None:
    """The generator's own claim, if it makes one."""
    with refusing(f"{named.name}: its claim cannot be read"):
        own: object = getattr(named.generator, "claim", None)
    if own is None or isinstance(own, Promise):
        return own
    raise ClaimError(
        f"{named.name}: its claim is of type {type(own).__name__}: make it a dpaudit.PrivacyClaim, "
        "GaussianClaim, ConcentratedClaim or CurveClaim, or None"
    )


def plain_settings(value: object) -> dict[str, Any]:
    """The settings of an object that are numbers, texts or truth values, to notice changes."""
    attributes = getattr(value, "__dict__", {})
    plain = {k: v for k, v in attributes.items() if isinstance(v, str | int | float | bool | None)}
    return {key: item for key, item in sorted(plain.items()) if not key.startswith("_")}
