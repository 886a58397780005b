"""The pinned environment of anonymeter, which `dpaudit env` makes like those of libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpaudit.errors import RegistryError
from dpaudit.external.environments import BuiltEnvironment, Environment

ENVIRONMENT: Final = Environment(
    name="anonymeter", pins=Path(__file__).with_name("pins.txt"), pythons=("3.11", "3.12")
)
"""What anonymeter runs in."""


def built_environment() -> BuiltEnvironment:
    """The environment, complete.

    Raises:
        RegistryError: If it has not been made; says how to make it.
    """
    built = ENVIRONMENT.built
    if built is None:
        raise RegistryError(
            f"anonymeter needs its environment, which is not there yet; run: dpaudit env create "
            f"{ENVIRONMENT.name}"
        )
    return built
