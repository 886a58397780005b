"""A trained PATE-GAN as a file: an .npz with what sampling needs and one JSON text.

No pickle, so loading runs no code. Everything is written by name, so that nothing private travels
along, and files of equal models are equal byte for byte.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit_generators.batches import Domain
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.marginals.tables import ROOT, TreeTables
from dpaudit_generators.networks.model import Weights
from dpaudit_generators.networks.source import Head

FORMAT: Final = "dpaudit-pate-gan/1"

_BINS: Final = 2**16
"""Largest number of bins that is read."""

LARGEST: Final = 2**28
"""Largest file that is read, in bytes; networks of PATE-GANs take a few million at most."""
_TEXT: Final = "model.json"
_SHARES: Final = "shares.npy"

_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),  # the archive
    *(ValueError, KeyError, TypeError, InputError, RecursionError, MemoryError),  # what is in it
)
"""What a damaged file can raise in zipfile, numpy, json and our own checks."""


class SavedModel(NamedTuple):
    """What a file of a model holds.

    Attributes:
        schema: The schema.
        weights: The weights of the generator, or of the student that weights the marginals.
        proportions: As in `PateGanModel`.
        claim: The claim.
        start: The marginals without their noisy counts; None if a network makes the records.
    """

    schema: Schema
    weights: Weights
    proportions: Sequence[float]
    claim: PrivacyClaim
    start: TreeModel | None


def save(model: SavedModel, path: Path) -> None:
    """Writes a model, replacing the file in one step.

    Args:
        model: What makes the model.
        path: The file, usually named .npz.

    Raises:
        InputError: If the file cannot be written.
    """
    claim = model.claim
    document = {
        "format": FORMAT,
        "schema": model.schema.to_document(),
        "proportions": list(model.proportions),
        "claim": {
            "epsilon": claim.epsilon,
            "delta": claim.delta,
            "neighbours": claim.neighbours.value,
            "source": claim.source,
        },
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    arrays |= zip(_names(len(model.weights)), model.weights, strict=True)
    if model.start is not None:
        tables = model.start.tables
        document["start"] = {"bins": tables.domain.bins, "parents": list(tables.parents)}
        arrays[_SHARES] = model.start.shares
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # A ZipInfo of our own, because its date is constant.
        archive.writestr(zipfile.ZipInfo(_TEXT), json.dumps(document, indent=2))
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), content.getvalue())
    try:
        write_whole(path, buffer.getvalue())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; give another path") from None


def load(path: Path) -> SavedModel:
    """Reads a model.

    Args:
        path: A file that `save` wrote.

    Returns:
        What makes the model; it samples as the saved one did.

    Raises:
        InputError: If the file cannot be read, is no saved model, is damaged, or has another
            format.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        _refuse(path, f"it is larger than {LARGEST} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.namelist()
            if sum(part.file_size for part in archive.infolist()) > len(content):
                _refuse(path, "its parts are compressed, which a saved PATE-GAN's are not")
            shares = [_SHARES] if _SHARES in parts else []
            names = _names(len(parts) - 1 - len(shares))
            if not names or sorted(parts) != sorted((_TEXT, *names, *shares)):
                _refuse(path, "its parts are not those of a saved PATE-GAN")
            document = json.loads(archive.read(_TEXT))
            if document["format"] != FORMAT:
                _refuse(path, f"its format is {document['format']!r}, this version reads {FORMAT}")
            arrays = [
                np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in (*names, *shares)
            ]
        weights = tuple(arrays[: len(names)])
        model = _model(document, weights, arrays[-1] if shares else None)
    except _RefusedError:
        raise
    except _DAMAGE as error:
        _refuse(path, f"it is damaged ({type(error).__name__}: {error})")
    return model


def _names(parts: int) -> list[str]:
    """Names of this many weights in a file, two for each layer."""
    return [f"{kind}{layer}.npy" for layer in range(1, parts // 2 + 1) for kind in "wb"]


class _RefusedError(InputError):
    """A file that must not be loaded; the message says why."""


def _refuse(path: Path, reason: str) -> NoReturn:
    reason = " ".join(reason.split())
    raise _RefusedError(f"{path} is not a model that can be loaded: {reason}; save the model again")


def _model(
    document: dict[str, Any], weights: tuple[Any, ...], shares: npt.NDArray[Any] | None
) -> SavedModel:
    """The model of a document and its arrays, which are checked against each other."""
    given = dict(document["claim"])
    claim = PrivacyClaim(**{**given, "neighbours": Neighbours(given["neighbours"])})
    schema = Schema.from_document(document["schema"])
    proportions = tuple(float(share) for share in document["proportions"])
    label = next((b for b in layout(schema) if b.column.name == schema.label), None)
    classes = 0 if label is None else label.value.stop - label.value.start
    if len(proportions) not in (0, classes) or not all(
        0.0 <= share <= 1.0 for share in proportions
    ):
        raise ValueError("the proportions do not fit the label")
    head = Head(schema, given=len(proportions) > 0)
    if ("start" in document) != (shares is not None):
        raise ValueError("the marginals are not whole")
    if shares is None:
        _check_weights(weights, more_than=head.classes, outputs=head.inputs)
        return SavedModel(schema, weights, proportions, claim, None)
    _check_weights(weights, more_than=0, inputs=head.width, outputs=1)
    start = _start(document["start"], schema, shares, claim)
    return SavedModel(schema, weights, proportions, claim, start)


def _start(
    document: dict[str, Any], schema: Schema, shares: npt.NDArray[Any], claim: PrivacyClaim
) -> TreeModel:
    """The marginals of a document and the shares of their cells.

    Raises:
        ValueError: If they do not fit each other.
    """
    bins, parents = document["bins"], tuple(document["parents"])
    columns = len(schema.columns)
    if not all(isinstance(number, int) for number in (bins, *parents)) or not 1 <= bins <= _BINS:
        raise ValueError("the marginals are none")
    if len(parents) != columns or not all(ROOT <= parent < columns for parent in parents):
        raise ValueError("the marginals do not fit the schema")
    tables = TreeTables(Domain(schema, bins), parents)
    if sum(map(len, tables.levels)) != columns:
        raise ValueError("the marginals are no tree")
    if shares.dtype != np.float64 or shares.shape != (tables.starts[-1],):
        raise ValueError("the shares do not fit the marginals")
    if not (shares >= 0.0).all() or not np.allclose(
        np.add.reduceat(shares, tables.row_starts), 1.0, rtol=0.0, atol=1e-9
    ):
        raise ValueError("the shares do not add up to 1")
    return TreeModel(tables=tables, shares=shares, numbers=np.empty(0), claim=claim)


def _check_weights(
    weights: tuple[Any, ...], *, more_than: int, outputs: int, inputs: int | None = None
) -> None:
    """Checks that layers [1, in, out] chain, with this many inputs and outputs.

    Raises:
        ValueError: If they do not.
    """
    layers = list(zip(weights[::2], weights[1::2], strict=True))
    entering = int(layers[0][0].shape[1])
    fit = entering > more_than and inputs in (None, entering)
    fit &= all(part.dtype == np.float32 for part in weights)
    for weight, bias in layers:
        leaving = bias.shape[-1]
        fit &= weight.shape == (1, entering, leaving) and bias.shape == (1, 1, leaving)
        entering = leaving
    if not fit or entering != outputs:
        raise ValueError("the weights do not fit the schema")
