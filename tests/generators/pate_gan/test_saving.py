"""A saved PATE-GAN: the generator and the public schema, and no pickle."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import InputError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals, PateGanModel
from dpaudit_generators.pate_gan.mechanism import TaughtGenerator

SCHEMA = Schema(
    columns=(
        Column(name="secret", kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=True),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("clerk", "cook")),
    ),
    label="job",
)
MARK = 0.123456789


def model(kind: type[TaughtGenerator] = PateGan, **settings: Any) -> PateGanModel:
    data = SCHEMA.canonical(
        pd.DataFrame({"secret": [MARK, 0.5, 0.25, None], "job": ["cook", "clerk", "cook", "clerk"]})
    )
    given = {"teachers": 3, "rounds": 2, "epsilon": 20.0}
    return kind(schema=SCHEMA, **given | settings).fit(data, seed=1)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.npz"
    model().save(path)
    return path


@pytest.mark.parametrize("proportions", ["generated", "private"])
@pytest.mark.parametrize("hidden", [(), (64,), (5, 7)])
def test_a_model_comes_back_as_it_was(
    tmp_path: Path, proportions: str, hidden: tuple[int, ...]
) -> None:
    kept = model(label_proportions=proportions, generator_hidden=hidden)
    kept.save(tmp_path / "model.npz")
    back = PateGanModel.load(tmp_path / "model.npz")
    assert (back.schema, back.claim) == (kept.schema, kept.claim)
    assert tuple(back.proportions) == tuple(kept.proportions)
    assert back.sample(50, seed=3).equals(kept.sample(50, seed=3))
    assert list(tmp_path.iterdir()) == [tmp_path / "model.npz"]


def test_marginals_and_the_student_come_back_as_they_were(tmp_path: Path) -> None:
    kept = model(PateGanMarginals, student_hidden=(7,))
    kept.save(tmp_path / "model.npz")
    back = PateGanModel.load(tmp_path / "model.npz")
    assert (back.schema, back.claim, back.weights) == (kept.schema, kept.claim, ())
    assert back.sample(50, seed=3).equals(kept.sample(50, seed=3))
    rows = kept.sample(20, seed=4)
    assert np.array_equal(back.discriminate(rows), kept.discriminate(rows))
    assert back.start is not None
    assert back.start.numbers.size == 0  # the noisy counts stay here


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parents": [0, -1]}, "no tree"),
        ({"parents": [1]}, "do not fit the schema"),
        ({"parents": [1, 7]}, "do not fit the schema"),
        ({"parents": [-1, -1]}, "the shares do not fit"),
        ({"bins": 3}, "the shares do not fit"),
        ({"bins": 10**9}, "the marginals are none"),
        (None, "the marginals are not whole"),
    ],
)
def test_damaged_marginals_are_refused(
    tmp_path: Path, change: dict[str, Any] | None, reason: str
) -> None:
    path = tmp_path / "model.npz"
    model(PateGanMarginals).save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(parts["model.json"])
    if change is None:
        del document["start"]
    else:
        document["start"] |= change
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (parts | {"model.json": json.dumps(document).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match=reason):
        PateGanModel.load(path)


def test_the_file_holds_the_generator_and_the_public_schema_alone(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        assert sorted(archive.namelist()) == [
            *("b1.npy", "b2.npy", "model.json", "w1.npy", "w2.npy"),
        ]
        document = json.loads(archive.read("model.json"))
        assert set(document) == {"format", "schema", "proportions", "claim"}
        assert document["schema"] == SCHEMA.to_document()
        weights = np.load(io.BytesIO(archive.read("w1.npy")), allow_pickle=False)
        assert weights.dtype == np.float32
        content = b"".join(archive.read(name) for name in archive.namelist())
    for number in (np.float64(MARK), np.float32(MARK)):
        assert number.tobytes() not in content
    assert str(MARK).encode() not in content


def test_equal_models_make_equal_files(saved: Path, tmp_path: Path) -> None:
    model().save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()


def rewritten(saved: Path, **changes: Any) -> None:
    """The file with its document changed."""
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["model.json"] = json.dumps(json.loads(parts["model.json"]) | changes).encode()
    with zipfile.ZipFile(saved, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"format": "dpaudit-pate-gan/2"}, "its format is 'dpaudit-pate-gan/2'"),
        ({"schema": {}}, "damaged"),
        ({"claim": {"epsilon": -1}}, "damaged"),
        ({"proportions": [0.5]}, "do not fit the label"),
        ({"proportions": [0.5, 2.0]}, "do not fit the label"),
        ({"proportions": [0.5, 0.5]}, "weights do not fit"),
    ],
)
def test_another_document_is_refused(saved: Path, changes: dict[str, Any], told: str) -> None:
    rewritten(saved, **changes)
    with pytest.raises(InputError, match=told) as caught:
        PateGanModel.load(saved)
    assert "\n" not in str(caught.value)


def test_what_is_no_model_is_refused_and_runs_no_code(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    refused = 0
    for position in range(0, len(whole), 997):
        for damaged in (whole[:position], whole[:position] + b"?????" + whole[position + 5 :]):
            saved.write_bytes(damaged)
            # No other error comes out; a hit between the parts may change nothing.
            with contextlib.suppress(InputError):
                PateGanModel.load(saved)
                refused -= 1
            refused += 1
    assert refused > len(whole) // 997
    np.savez(tmp_path / "other.npz", w1=np.zeros(3))
    with pytest.raises(InputError, match="parts are not those"):
        PateGanModel.load(tmp_path / "other.npz")
    saved.write_bytes(whole)
    array = io.BytesIO()
    np.lib.format.write_array(array, np.array([Path("x")], dtype=object))  # an array of objects
    with zipfile.ZipFile(saved) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()} | {
            "w1.npy": array.getvalue()
        }
    with zipfile.ZipFile(saved, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    (tmp_path / "pickled").write_bytes(pickle.dumps({"a": 1}))
    for path in (saved, tmp_path / "pickled", tmp_path / "missing", tmp_path):
        with pytest.raises(InputError):
            PateGanModel.load(path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        model().save(tmp_path / "no" / "model.npz")


def test_a_file_that_unpacks_to_more_than_it_is_is_refused_unread(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.npz"
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(bomb, "w") as packed:
        for name in archive.namelist():
            content = archive.read(name) + b" " * 10_000_000
            packed.writestr(name, content, compress_type=zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    with pytest.raises(InputError, match="its parts are compressed"):
        PateGanModel.load(bomb)


def test_a_large_file_is_refused(saved: Path) -> None:
    with saved.open("ab") as file:
        file.truncate(2**28 + 1)  # takes no disk
    with pytest.raises(InputError, match="larger than 268435456 bytes"):
        PateGanModel.load(saved)
