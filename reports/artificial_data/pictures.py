"""The images that the study learns from, and the picture of what is recovered of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from dpaudit.errors import DataError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from reports.command import DATA_VARIABLE
from reports.data import sha256

FILE = "mnist_t10k.npz"
SHA256 = "af5595f05f0cc260498196e07655cfa443d2d96874d5ba0dcfeaea06defbda81"
CLASSES = tuple("0123456789")


class Images(NamedTuple):
    """Labelled images.

    Attributes:
        pixels: Grey values in [0, 1], one image a row [n, d].
        labels: Their classes, from 0 [n].
    """

    pixels: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]

    def part(self, rows: slice) -> Images:
        """Some of the images."""
        return Images(self.pixels[rows], self.labels[rows])

    def table(self) -> pd.DataFrame:
        """The images as a table that fits `schema_of`."""
        table = pd.DataFrame(self.pixels, columns=names_of(self.pixels.shape[1]))
        table["digit"] = [CLASSES[label] for label in self.labels]
        return table


def images_of(table: pd.DataFrame) -> Images:
    """The images of a table."""
    pixels = table.drop(columns="digit").to_numpy(dtype=np.float64)
    return Images(pixels, table["digit"].map(CLASSES.index).to_numpy(dtype=np.int64, copy=True))


def names_of(pixels: int) -> list[str]:
    """Names of the pixels' columns."""
    return [f"pixel {number}" for number in range(pixels)]


def schema_of(pixels: int) -> Schema:
    """The public schema of images of so many pixels."""
    columns = [
        Column(name=name, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0) for name in names_of(pixels)
    ]
    label = Column(name="digit", kind=Kind.CATEGORICAL, categories=CLASSES)
    return Schema(columns=(*columns, label), label="digit")


def read() -> Images:
    """MNIST's test images, halved in width and height, in a fixed random order.

    Raises:
        DataError: If the file is missing or another one.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if folder is None:
        raise DataError(f"set {DATA_VARIABLE} to the folder of {FILE}; README.md says what it is")
    path = Path(folder) / FILE
    try:
        found = sha256(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}; README.md says what it is") from error
    if found != SHA256:
        raise DataError(f"{path} has SHA-256 {found}, not {SHA256}; README.md says what it is")
    with np.load(path) as arrays:
        whole, labels = arrays["images"] / 255.0, arrays["labels"].astype(np.int64)
    pixels = whole.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(whole), -1)
    order = np.random.default_rng(0).permutation(len(pixels))
    return Images(pixels[order], labels[order])


def packed(pixels: npt.NDArray[np.float64]) -> list[str]:
    """Images as hexadecimal digits, two for each pixel."""
    return [row.tobytes().hex() for row in np.rint(255 * pixels).astype(np.uint8)]


def draw(rows: Mapping[str, list[str]], path: Path) -> None:
    """Draws rows of images, each from black to its own brightest pixel as white.

    Args:
        rows: For each name, images as `packed` gives them.
        path: The picture, a PNG.
    """
    figure = Figure(figsize=(7.8, 0.62 * len(rows)))
    grid = figure.subplots(len(rows), len(CLASSES), squeeze=False)
    for line, (name, images) in zip(grid, rows.items(), strict=True):
        for axes, image in zip(line, images, strict=True):
            shown = np.frombuffer(bytes.fromhex(image), dtype=np.uint8)
            side = int(len(shown) ** 0.5)
            axes.imshow(shown.reshape(side, side), cmap="gray", vmin=0, vmax=shown.max())
            axes.set_axis_off()
        line[0].text(
            -0.25, 0.5, name, transform=line[0].transAxes, ha="right", va="center", fontsize=8
        )
    figure.subplots_adjust(left=0.185, right=0.995, top=0.99, bottom=0.01, wspace=0.08, hspace=0.08)
    figure.savefig(path, dpi=90, metadata={"Software": None})
