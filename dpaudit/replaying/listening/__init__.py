"""Runs inside a world's process and hears every random draw of the code there.

Loaded as `dpaudit_listening` by `boot/sitecustomize.py`, in whatever environment the generator
lives in: it needs Python 3.9, numpy, and nothing of dpaudit. `channel` talks to the coordinator,
`world` has the state of one fit, `marks` the arrays and numbers that carry noise, and `hooks` one
module per library.
"""

from __future__ import annotations


def start() -> None:
    """Connects to the coordinator and installs the hooks; later imports are hooked as they come."""
    from .hooks import install
    from .world import connected

    install(connected())
