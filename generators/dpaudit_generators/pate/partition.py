"""Which record goes to which teacher."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IndexArray: TypeAlias = npt.NDArray[np.int64]


def cells(rows: npt.NDArray[np.float64], *, teachers: int, key: bytes) -> tuple[IndexArray, ...]:
    """Deals records to teachers by a keyed hash of each record alone.

    Neither the position of a record nor any other record matters, so adding or removing one
    changes one cell and leaves the others as they are, including their order: the premise of the
    privacy proof. A permutation or a split by position would change almost every cell. Equal
    records share a cell.

    Args:
        rows: Records encoded under the public schema, shape [n, width].
        teachers: Number k of cells.
        key: Key of the hash, at most 64 bytes; independent of the records.

    Returns:
        k arrays of row numbers, of which some may be empty; each in the order of the hash.
    """
    canonical = np.ascontiguousarray(rows) + 0.0  # -0.0 becomes 0.0: equal records, equal bytes
    words = b"".join(
        hashlib.blake2b(row.data, digest_size=8, key=key).digest() for row in canonical
    )
    hashes = np.frombuffer(words, dtype="<u8")
    order = np.argsort(hashes, kind="stable")
    # 64 bits are mapped to k cells: the largest bias is k / 2**64.
    owner = (hashes[order] % np.uint64(teachers)).astype(np.int64)
    return tuple(order[owner == teacher] for teacher in range(teachers))
