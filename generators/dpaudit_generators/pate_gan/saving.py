"""A trained PATE-GAN as a file: an .npz with the generator's weights and one JSON text.

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

from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.encoding import layout
from dpaudit.model.schema import Schema
from dpaudit_generators.pate_gan.rows import Head
from dpaudit_generators.pate_gan.trainee import Weights

FORMAT: Final = "dpaudit-pate-gan/1"

LARGEST: Final = 2**28
"""Bytes of a file that is read; the networks of PATE-GANs take a few million at most."""
_TEXT: Final = "model.json"

_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),  # the archive
    *(ValueError, KeyError, TypeError, InputError, RecursionError, MemoryError),  # what is in it
)
"""What a damaged file can raise in zipfile, numpy, json and our own checks."""


class SavedModel(NamedTuple):
    """What a file of a model holds; the fields are those of `PateGanModel`."""

    schema: Schema
    weights: Weights
    proportions: Sequence[float]
    claim: PrivacyClaim


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
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # A ZipInfo of our own, because its date is constant.
        archive.writestr(zipfile.ZipInfo(_TEXT), json.dumps(document, indent=2))
        for name, weight in zip(_names(len(model.weights)), model.weights, strict=True):
            array = io.BytesIO()
            np.lib.format.write_array(array, weight, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), array.getvalue())
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
            names = _names(len(parts) - 1)
            if not names or sorted(parts) != sorted((_TEXT, *names)):
                _refuse(path, "its parts are not those of a saved PATE-GAN")
            document = json.loads(archive.read(_TEXT))
            if document["format"] != FORMAT:
                _refuse(path, f"its format is {document['format']!r}, this version reads {FORMAT}")
            weights = tuple(
                np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in names
            )
        model = _model(document, weights)
    except _RefusedError:
        raise
    except _DAMAGE as error:
        _refuse(path, f"it is damaged ({type(error).__name__}: {error})")
    return model


def _names(parts: int) -> list[str]:
    """Names of the weights in a file of so many parts, two for each layer."""
    return [f"{kind}{layer}.npy" for layer in range(1, parts // 2 + 1) for kind in "wb"]


class _RefusedError(InputError):
    """A file that must not be loaded; the message says why."""


def _refuse(path: Path, reason: str) -> NoReturn:
    reason = " ".join(reason.split())
    raise _RefusedError(f"{path} is not a model that can be loaded: {reason}; save the model again")


def _model(document: dict[str, Any], weights: tuple[Any, ...]) -> SavedModel:
    """The model of a document and its weights, which are checked against each other."""
    claim = dict(document["claim"])
    schema = Schema.from_document(document["schema"])
    proportions = tuple(float(share) for share in document["proportions"])
    label = next((b for b in layout(schema) if b.column.name == schema.label), None)
    classes = 0 if label is None else label.value.stop - label.value.start
    if len(proportions) not in (0, classes) or not all(
        0.0 <= share <= 1.0 for share in proportions
    ):
        raise ValueError("the proportions do not fit the label")
    _check_weights(weights, Head(schema, given=len(proportions) > 0))
    return SavedModel(
        schema=schema,
        weights=weights,
        proportions=proportions,
        claim=PrivacyClaim(**{**claim, "neighbours": Neighbours(claim["neighbours"])}),
    )


def _check_weights(weights: tuple[Any, ...], head: Head) -> None:
    """Checks that layers [1, in, out] chain, from noise and a label to the inputs of the head.

    Raises:
        ValueError: If they do not.
    """
    layers = list(zip(weights[::2], weights[1::2], strict=True))
    inputs = int(layers[0][0].shape[1])
    fit = inputs > head.classes and all(part.dtype == np.float32 for part in weights)
    for weight, bias in layers:
        outputs = bias.shape[-1]
        fit &= weight.shape == (1, inputs, outputs) and bias.shape == (1, 1, outputs)
        inputs = outputs
    if not fit or inputs != head.inputs:
        raise ValueError("the weights do not fit the schema")
