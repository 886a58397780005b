"""Messages between a world and the coordinator, and the position of a draw in the code."""

from __future__ import annotations

import dis
import json
import os
import struct
import sys
from multiprocessing.connection import Client
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

Site = Tuple[str, int, str]
"""File, line and function of a draw."""

_LENGTH = struct.Struct("!I")
_HERE = os.path.dirname(os.path.abspath(__file__))
_INSIDE = tuple(
    "-packages" + os.sep + name + os.sep
    for name in (
        "numpy",
        "scipy",
        "torch",
        "opendp",
        "opacus",
        "pandas",
        "diffprivlib" + os.sep + "mechanisms",
    )
)
_STANDARD = os.path.dirname(os.__file__) + os.sep


class _Encoder(json.JSONEncoder):
    """Python's own encoder: that of the generator's code is replaced by one that ends marks."""

    iterencode = json.JSONEncoder.iterencode


def pack(message: Dict[str, Any]) -> bytes:
    """A message as bytes: JSON, with arrays as raw bytes behind it."""
    blobs: List[bytes] = []

    def plain(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value.item()
        array = np.ascontiguousarray(value)
        blobs.append(array.tobytes())
        return {"__array__": [array.dtype.str, list(array.shape), len(blobs[-1])]}

    head = _Encoder(default=plain).encode(message).encode()
    body = b"".join(blobs)
    return _LENGTH.pack(len(head)) + head + body


def unpack(message: bytes) -> dict[str, Any]:
    """The message that `packed` made."""
    [length] = _LENGTH.unpack_from(message)
    offset = _LENGTH.size + length

    def array(value: Dict[str, Any]) -> Any:
        nonlocal offset
        if "__array__" not in value:
            return value
        dtype, shape, size = value["__array__"]
        raw = message[offset : offset + size]
        offset += size
        return np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape).copy()

    fields: Dict[str, Any] = json.loads(
        message[_LENGTH.size : _LENGTH.size + length], object_hook=array
    )
    return fields


class Channel:
    """A message connection between processes of this machine."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message."""
        self.connection.send_bytes(pack(message))

    def receive(self) -> dict[str, Any]:
        """Waits for a message.

        Raises:
            EOFError: If the other side has closed.
        """
        return unpack(self.connection.recv_bytes())


def connect(address: str, hello: dict[str, Any]) -> Channel:
    """A connection to the coordinator that identifies itself."""
    channel = Channel(Client(address, family="AF_UNIX"))
    channel.send(hello)
    return channel


_known: Dict[int, Tuple[Any, Optional[Dict[int, Site]]]] = {}
"""Code objects that have drawn, by their ids, with their sites; None for code that is skipped.

The object itself is kept so that its id is not reused.
"""


def site() -> Site:
    """The innermost line outside dpaudit and the libraries of random numbers."""
    frame: Any = sys._getframe(1)
    outer = frame
    while frame is not None:
        code = frame.f_code
        known = _known.get(id(code))
        if known is None:
            known = _known[id(code)] = (code, None if _is_skipped(code.co_filename) else {})
        sites = known[1]
        if sites is not None:
            line = frame.f_lineno
            here = sites.get(line)
            if here is None:
                here = sites[line] = (code.co_filename, line, code.co_name)
            return here
        outer = frame
        frame = frame.f_back
    return (outer.f_code.co_filename, outer.f_lineno, outer.f_code.co_name)


_IN_PLACE = 13
"""The first operator in place among those of Python's one instruction for operators."""


def is_operator() -> bool:
    """Whether that line is at an operator, as in `a + b`, not at `a += b` or a call of `sum`."""
    frame: Any = sys._getframe(1)
    where = site()
    while (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) != where:
        frame = frame.f_back
    code, at = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[at]]
    return code[at + 1] < _IN_PLACE if name == "BINARY_OP" else name.startswith("BINARY_")


def _is_skipped(file: str) -> bool:
    return (
        file.startswith(_HERE)
        or (
            file.startswith("<")
            and "<cell" not in file
            and "<string>" not in file
            and "<stdin>" not in file
        )
        or any(part in file for part in _INSIDE)
        or (file.startswith(_STANDARD) and "-packages" not in file)
    )
