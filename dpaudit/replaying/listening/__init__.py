"""Runs inside a world's process and intercepts every random draw of the code there.

Loaded as `dpaudit_listening` by `boot/sitecustomize.py`, in the generator's own environment: it
needs Python 3.9, numpy, and nothing of dpaudit. `channel` connects to the coordinator, `world`
holds the state of one fit, `marks` has the arrays and numbers that carry noise, and `hooks` one
module per library.
"""

from __future__ import annotations


def start() -> None:
    """Connects to the coordinator and installs the hooks, for later imports as well."""
    from .hooks import install
    from .world import connect_world

    install(connect_world())
