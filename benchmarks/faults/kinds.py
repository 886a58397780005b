"""The table of kinds of faults, which the other modules fill."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from bench import Bench

Fault = Callable[[Bench, random.Random], int]
"""Injects faults, looks at what came of them, and returns how many there were.

Raises `FailureError` if anything came of them that must not, `NotHereError` if this system has no
such fault.
"""


class Kind(NamedTuple):
    """One kind of fault.

    Attributes:
        group: What is hit.
        name: How.
        weight: Its share of all faults.
        inject: Does it.
    """

    group: str
    name: str
    weight: int
    inject: Fault


class NotHereError(Exception):
    """The system does not allow this kind of fault."""


KINDS: list[Kind] = []


def kind(group: str, name: str, *, weight: int) -> Callable[[Fault], Fault]:
    """Decorates the function of one kind."""

    def decorate(fault: Fault) -> Fault:
        KINDS.append(Kind(group, name, weight, fault))
        return fault

    return decorate
