"""The choices of an audit that proves from outside what a replay found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dpaudit.auditing.settings import ATTACKS_AT, AuditSettings
from dpaudit.auditing.two_worlds.settings import TwoWorlds
from dpaudit.errors import SettingsError
from dpaudit.files import io_reason
from dpaudit.model.choices import EXPOSING, WorstCase


def after_a_replay(settings: AuditSettings[TwoWorlds], record: Path) -> AuditSettings[TwoWorlds]:
    """The same audit with the attack of a replay: alone, or with those chosen.

    Args:
        settings: Every choice of the audit.
        record: The file that `dpaudit replay --json` wrote.

    Returns:
        The settings; their target or worst case is that of the replay unless another is named.

    Raises:
        SettingsError: If the file is no record of a replay.
    """
    game = settings.game
    asked = () if game.attacks == ATTACKS_AT[game.access] else game.attacks
    given: dict[str, Any] = {"attacks": (*asked, f"after-replay,record={record}")}
    if game.worst_case in (None, WorstCase.SEARCH) and game.neighbours_file is None:
        choice = _target(record)
        name = choice.removeprefix("worst-case:")
        if name != choice:
            given["worst_case"] = name
        elif game.worst_case is None and game.target == EXPOSING:
            given["target"] = choice
    return settings.with_game(**given)


def _target(record: Path) -> str:
    """The target of a replay."""
    try:
        target: str = json.loads(record.read_text(encoding="utf-8"))["target"]
    except OSError as error:
        raise SettingsError(f"{record} cannot be read: {io_reason(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise SettingsError(
            f"{record} is no record of a replay: write one with `dpaudit replay --json`"
        ) from None
    return target
