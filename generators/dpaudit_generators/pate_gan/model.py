"""A trained PATE-GAN: it samples, from noisy marginals or a network, and it can be saved.

Its file is an .npz with what sampling needs and one JSON text. No pickle, so loading runs no code.
Everything is written by name, so that nothing private travels along, and files of equal models are
equal byte for byte.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpaudit.errors import InputError
from dpaudit.files import write_whole
from dpaudit.model.claim import Neighbours, PrivacyClaim
from dpaudit.model.encoding import encode_values, layout, values_of, values_of_table
from dpaudit.model.schema import Schema
from dpaudit.plugins.protocols import FloatArray, IntArray
from dpaudit.seeds import rng_of
from dpaudit_generators.batches import Domain
from dpaudit_generators.marginals import TreeModel
from dpaudit_generators.marginals.release import ROOT, TreeTables
from dpaudit_generators.networks.model import NetworkModel, logits

if TYPE_CHECKING:
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


@dataclass(frozen=True, kw_only=True, eq=False)
class PateGanModel(NetworkModel):
    """A trained PATE-GAN, which is post-processing of noisy counts and released labels.

    Attributes:
        schema: The public schema with the bounds that the training used; scales the output back.
        weights: The generator's weights, W1, b1, W2, b2, ..., with a leading axis of one; empty if
            records are drawn from noisy marginals.
        critic: The weights of the student, which learnt from released labels, in the same form;
            empty in a loaded model whose sampling does not need it.
        claim: The generator's claim, and the source of this training's noise.
        proportions: Released proportions of the label's classes; empty if labels are generated.
        start: The noisy marginals that records are drawn from; None if a network makes them.
        released_numbers: The numbers that `released_facts` names; empty in a loaded model.
    """

    claim: PrivacyClaim = field()
    proportions: Sequence[float]
    start: TreeModel | None = None

    @property
    def head(self) -> Head:
        """Turns the outputs of the generator network into records."""
        from dpaudit_generators.networks.source import Head

        return Head(self.schema, given=len(self.proportions) > 0)

    def discriminate(self, rows: pd.DataFrame) -> npt.NDArray[np.float64]:
        """The student's logit of each row [n]: how real it looks.

        Args:
            rows: A table with the schema's columns.

        Raises:
            InputError: If the model was loaded from a file.
        """
        if not self.critic:
            raise InputError("a loaded PATE-GAN has no student: fit one")
        return self._logits(values_of_table(rows, self.schema))

    def _logits(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The student's logit of each row of values [n, d]."""
        rows = encode_values(values, self.schema).clip(0.0, 1.0)
        return logits(self.critic, rows[:, self.head.order])

    def parameters(self) -> npt.NDArray[np.float64]:
        """All weights of generator and student, and shares of the marginals, flat."""
        shares = np.empty(0) if self.start is None else self.start.shares
        return np.concatenate([super().parameters(), shares])

    @classmethod
    def values_of_many(
        cls, models: Sequence[Self], n: int, seeds: Sequence[int | None]
    ) -> FloatArray:
        """Draws records of many models."""
        if models[0].start is not None:
            pairs = zip(models, seeds, strict=True)
            return np.stack([model.weighted(n, seed=seed) for model, seed in pairs])
        from dpaudit_generators.networks.source import sample

        rows = sample(
            [model.weights for model in models],
            models[0].head,
            [model.proportions for model in models],
            n,
            seeds=seeds,
        )
        return np.stack(
            [
                values_of(mine.astype(np.float64), model.schema)
                for mine, model in zip(rows, models, strict=True)
            ]
        )

    def weighted(
        self,
        n: int,
        *,
        seed: int | None,
        on_candidates: Callable[[npt.NDArray[np.float64]], None] | None = None,
    ) -> npt.NDArray[np.float64]:
        """Values [n, d] drawn from the marginals and weighted by the student.

        Args:
            n: Number of records.
            seed: For audits; None means the system's entropy.
            on_candidates: Called with the values of all candidates.
        """
        assert self.start is not None  # else a network makes them
        return sample_weighted(self.start, self._logits, n, seed=seed, on_candidates=on_candidates)

    def save(self, path: Path | str) -> None:
        """Writes an .npz file without pickle, which `load` reads.

        Args:
            path: The file, usually named .npz.

        Raises:
            InputError: If the file cannot be written.
        """
        claim, path = self.claim, Path(path)
        weights = self.weights if self.start is None else self.critic
        document = {
            "format": FORMAT,
            "schema": self.schema.to_document(),
            "proportions": list(self.proportions),
            "claim": {
                "epsilon": claim.epsilon,
                "delta": claim.delta,
                "neighbours": claim.neighbours.value,
                "source": claim.source,
            },
        }
        arrays: dict[str, npt.NDArray[Any]] = {}
        arrays |= zip(_names(len(weights)), weights, strict=True)
        if self.start is not None:
            tables = self.start.tables
            document["start"] = {"bins": tables.domain.bins, "parents": list(tables.parents)}
            arrays[_SHARES] = self.start.shares
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
            raise InputError(
                f"{path} cannot be written: {error.strerror}; give another path"
            ) from None

    @staticmethod
    def load(path: Path | str) -> PateGanModel:
        """Reads a saved model without running any code from the file.

        Args:
            path: A file that `save` wrote.

        Raises:
            InputError: If the file is no saved model, is damaged, or has a newer format.
        """
        path = Path(path)
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
                    _refuse(
                        path, f"its format is {document['format']!r}, this version reads {FORMAT}"
                    )
                arrays = [
                    np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                    for name in (*names, *shares)
                ]
            weights = tuple(arrays[: len(names)])
            return _model(document, weights, arrays[-1] if shares else None)
        except _RefusedError:
            raise
        except _DAMAGE as error:
            _refuse(path, f"it is damaged ({type(error).__name__}: {error})")


CHOICES: Final = 2
"""Candidates of each sampled record."""

_PART: Final = 2048
"""Records that are sampled at a time."""


def candidates(start: TreeModel, uniforms: FloatArray) -> FloatArray:
    """Records drawn from noisy marginals.

    Args:
        start: The marginals, of d columns.
        uniforms: Two for each value, in [0, 1), [n, 2 d]: for its cell, and where in the cell.

    Returns:
        Values [n, d], as `dpaudit.model.encoding.values_of` gives them.
    """
    which, where = np.split(uniforms, 2, axis=1)
    return start.tables.domain.values(start.tables.draw(start.shares, which), where)


def sample_weighted(
    start: TreeModel,
    score: Callable[[FloatArray], FloatArray],
    n: int,
    *,
    seed: int | None,
    on_candidates: Callable[[FloatArray], None] | None = None,
) -> FloatArray:
    """Draws records from noisy marginals, preferring those that the student classifies as real.

    One of `CHOICES` candidates is kept, with probability proportional to exp(score): the odds that
    a record is real are the ratio of its frequencies in real and candidate tables (sampling
    importance resampling, Rubin 1987). Candidates share their label, because counts give the
    proportions of its classes better than votes: teachers with few records of a rare class classify
    the whole class as synthetic.

    Args:
        start: The marginals.
        score: The student's logit of each of some values [n, d].
        n: Number of records.
        seed: For audits; None means the system's entropy.
        on_candidates: Called with the values of all candidates.

    Returns:
        Values [n, d].
    """
    rng, schema = rng_of(seed, "sample"), start.tables.domain.schema
    columns = len(schema.columns)
    labels = [place for place, name in enumerate(schema.names) if name == schema.label]
    records = np.empty((n, columns))
    for first in range(0, n, _PART):
        own = records[first : first + _PART]
        uniforms = rng.random((len(own), CHOICES, 2 * columns))
        uniforms[..., labels] = uniforms[:, :1, labels]
        values = candidates(start, uniforms.reshape(-1, 2 * columns))
        if on_candidates is not None:
            on_candidates(values)
        chosen = _chosen(score(values).reshape(-1, CHOICES), rng.random(len(own)))
        own[:] = values.reshape(-1, CHOICES, columns)[np.arange(len(own)), chosen]
    return records


def _chosen(scores: FloatArray, uniforms: FloatArray) -> IntArray:
    """Which of the candidates in each row is kept."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    reached = np.cumsum(weights, axis=1)
    passed: IntArray = (reached <= uniforms[:, None] * reached[:, -1:]).sum(axis=1)
    return np.minimum(passed, CHOICES - 1)


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
) -> PateGanModel:
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
    model = PateGanModel(schema=schema, weights=(), critic=(), proportions=proportions, claim=claim)
    if ("start" in document) != (shares is not None):
        raise ValueError("the marginals are not whole")
    if shares is None:
        _check_weights(weights, more_than=model.head.classes, outputs=model.head.inputs)
        return replace(model, weights=weights)
    _check_weights(weights, more_than=0, inputs=model.head.width, outputs=1)
    start = _start(document["start"], schema, shares, claim)
    return replace(model, critic=weights, start=start)


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
