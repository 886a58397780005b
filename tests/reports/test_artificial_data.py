"""The study of artificial images: what is drawn, and what is said of repeats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import DataError
from reports.artificial_data import pictures
from reports.artificial_data.run import ranged, reconstructions, trained_student


def striped(n: int) -> pictures.Images:
    """Images of 4 x 4 pixels of which the label's is bright."""
    labels = np.arange(n) % 10
    pixels = np.random.default_rng(0).uniform(0.0, 0.2, (n, 16))
    pixels[np.arange(n), labels] = 0.9
    return pictures.Images(pixels, labels)


def test_images_survive_a_table() -> None:
    images = striped(30)
    assert not pictures.schema_of(16).problems(images.table())
    back = pictures.images_of(images.table())
    assert np.array_equal(back.pixels, images.pixels)
    assert np.array_equal(back.labels, images.labels)


def test_a_student_learns_and_inversion_finds_the_pixel_of_each_class() -> None:
    student = trained_student(striped(400), steps=400, seed=1)
    assert np.mean(student.predict(striped(50).pixels) == striped(50).labels) > 0.9
    found = reconstructions(student.module_, inputs=16)
    assert list(found.argmax(axis=1)) == list(range(10))


def test_the_picture_has_a_row_for_each_source(tmp_path: Path) -> None:
    path = tmp_path / "some.png"
    pictures.draw({"one": pictures.packed(striped(10).pixels)}, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="cannot be read"):
        pictures.read()
    (tmp_path / pictures.FILE).write_bytes(b"other")
    with pytest.raises(DataError, match="SHA-256"):
        pictures.read()


def test_repeats_are_a_mean_and_a_range() -> None:
    assert ranged([0.1, 0.3], 1) == "0.2 (0.1 to 0.3)"
    assert ranged([0.5], 2) == "0.50"
    assert ranged([], 2) == "–"
