"""A payload as bytes whose arrays a worker maps into its memory and does not copy.

Parts follow each other at multiples of 64 bytes: the lengths of all others, the pickle, and the
arrays that pickle out of band (PEP 574).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import numpy as np

from dpaudit.plugins.foreign import pickled

ALIGNMENT = 64
"""Where an array may begin: what numpy and Arrow want."""


def packed(value: object, *, name: str) -> bytes:
    """An object as bytes that `unpacked` takes.

    Args:
        value: Whatever can be pickled.
        name: What it is, for the message.

    Returns:
        Its pickle and the arrays that it holds.

    Raises:
        RegistryError: If it cannot be pickled.
    """
    arrays: list[pickle.PickleBuffer] = []
    blob = pickled(value, name=name, out_of_band=arrays)
    parts = [memoryview(blob), *(array.raw() for array in arrays)]
    lengths = np.array([len(parts), *map(len, parts)], dtype="<u8")
    return b"".join(_padded([lengths.data.cast("B"), *parts]))


def unpacked(content: memoryview) -> object:
    """The object that `packed` was given.

    Args:
        content: Those bytes, of which the object's arrays are views.

    Returns:
        The object.
    """
    count = int(np.frombuffer(content, dtype="<u8", count=1)[0])
    lengths = np.frombuffer(content, dtype="<u8", count=1 + count)
    begin, parts = _rounded(lengths.nbytes), []
    for length in map(int, lengths[1:]):
        parts.append(content[begin : begin + length])
        begin += _rounded(length)
    blob, *arrays = parts
    return pickle.loads(blob, buffers=arrays)


def _padded(parts: Sequence[memoryview]) -> Iterator[bytes | memoryview]:
    for part in parts:
        yield part
        yield bytes(_rounded(len(part)) - len(part))


def _rounded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT
