"""Attacks against the access level of an audit and what its generator discloses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings
from dpaudit.errors import SettingsError
from dpaudit.model.choices import Access
from dpaudit.plugins.access import (
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
        settings: Those of the audit, with its attacks.
        attacks: The attacks, each of which sees something that the generator discloses.
        facts: Names of the released facts, where attacks see them.
    """

    settings: AuditSettings
    attacks: tuple[NamedAttack, ...]
    facts: tuple[str, ...]


def attacks_with_access(generator: NamedGenerator, settings: AuditSettings) -> Seen:
    """The attacks of an audit, checked against its access level and its generator.

    Of the default attacks of a level, those that see nothing of this generator are left out.

    Args:
        generator: The generator under audit.
        settings: Every choice of the audit.

    Raises:
        SettingsError: If an attack sees more than the level allows or the generator discloses, or
            none looks at what the level adds.
        RegistryError: If an attack cannot be built.
    """
    level, name = settings.access, generator.name
    disclosed = disclosed_by(generator.generator, name=name)
    attacks = named_attacks(settings.attacks)
    if level is not Access.OUTPUT and not any(one.access is level for one in disclosed):
        ways = " or ".join(one.how for one in Disclosure if one.access is level)
        raise SettingsError(
            f'`access="{level}"`: {name} discloses nothing of the kind; give it {ways}, or leave '
            "out `access`"
        )
    if settings.attacks == ATTACKS_AT[level]:
        attacks = tuple(one for one in attacks if _unseen(one, disclosed) is None)
        settings = replace(settings, attacks=tuple(one.name for one in attacks))
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
    return Seen(settings, attacks, facts)


def _unseen(one: NamedAttack, disclosed: frozenset[Disclosure]) -> Disclosure | None:
    """What an attack sees and the generator does not disclose, if anything."""
    attack = one.attack
    return attack.sees if isinstance(attack, ModelAttack) and attack.sees not in disclosed else None


def _require_use(attacks: Sequence[NamedAttack], level: Access) -> None:
    """Refuses a level that no attack makes use of: the report would promise too much."""
    if any(access_of(one.attack) is level for one in attacks):
        return
    new = [name for name in ATTACKS_AT[level] if name not in ATTACKS_AT[Access.OUTPUT]]
    raise SettingsError(
        f'`access="{level}"`, but no attack looks at what it adds: add one such as {new[0]}, or '
        "leave out `access`"
    )
