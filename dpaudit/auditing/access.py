"""Checks attacks against the audit's access level and the generator's disclosures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpaudit.auditing.settings import ATTACKS_AT
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Access
from dpaudit.plugins.access import (
    AnyAttack,
    Disclosure,
    ModelAttack,
    access_of,
    disclosed_by,
    released_facts,
)
from dpaudit.plugins.named import NamedAttack, NamedGenerator, named_attacks


class Seen(NamedTuple):
    """What the attacker of an audit sees.

    Attributes:
        attacks: The attacks, each of which sees something that the generator discloses.
        facts: Names of the released facts, where attacks see them.
    """

    attacks: tuple[NamedAttack, ...]
    facts: tuple[str, ...]


def attacks_with_access(
    generator: NamedGenerator,
    chosen: tuple[str | AnyAttack, ...],
    level: Access = Access.OUTPUT,
) -> Seen:
    """The attacks of an audit, checked against its access level and its generator.

    Args:
        generator: The generator under audit.
        chosen: Registered names or objects; of the default attacks of the level, those that see
            nothing of the generator are left out.
        level: What the attacker sees.

    Raises:
        SettingsError: If an attack sees more than the level allows or the generator discloses, or
            none looks at what the level adds.
        RegistryError: If an attack cannot be built.
    """
    name = generator.name
    disclosed = disclosed_by(generator.generator, name=name) | {Disclosure.COST}
    attacks = named_attacks(chosen)
    for part in level.parts:
        if part is not Access.OUTPUT and not any(one.access is part for one in disclosed):
            ways = "; or ".join(one.how for one in Disclosure if one.access is part)
            raise SettingsError(
                f'`access="{level}"`: {name} discloses nothing of the kind; give it {ways}; or '
                "leave out `access`"
            )
    if chosen == ATTACKS_AT[level]:
        attacks = tuple(one for one in attacks if _unseen(one, disclosed) is None)
    for one in attacks:
        needed, unseen = access_of(one.attack), _unseen(one, disclosed)
        if not level.includes(needed):
            raise SettingsError(
                f"attack {one.name} sees {needed.in_words}: set "
                f'`access="{needed}"`, or leave it out'
            )
        if unseen is not None:
            raise SettingsError(
                f"attack {one.name}: {name} does not disclose what it sees; give the generator "
                f"{unseen.how}, or leave the attack out"
            )
    _require_use(attacks, level)
    sees_facts = any(access_of(one.attack) is Access.RELEASED for one in attacks)
    facts = tuple(released_facts(generator.generator, name=name)) if sees_facts else ()
    return Seen(attacks, facts)


def _unseen(one: NamedAttack, disclosed: frozenset[Disclosure]) -> Disclosure | None:
    """What an attack needs and the generator does not disclose, if anything."""
    attack = one.attack
    return attack.sees if isinstance(attack, ModelAttack) and attack.sees not in disclosed else None


def _require_use(attacks: Sequence[NamedAttack], level: Access) -> None:
    """Refuses a level that no attack uses: the report would promise too much."""
    for part in level.parts:
        if not any(access_of(one.attack) is part for one in attacks):
            new = [name for name in ATTACKS_AT[part] if name not in ATTACKS_AT[Access.OUTPUT]]
            raise SettingsError(
                f'`access="{level}"`, but no attack looks at what it adds: add one such as '
                f"{new[0]}, or leave out `access`"
            )
