"""Artificial images: what a student learns from them, and what is recovered from the student.

Usage: DPAUDIT_DATA=DIR python -m reports.artificial_data.run [SOURCE ...]   (resumes)

After Triastcyn and Faltings 2018: generators are trained on small images of digits, a student on
what they give. Measured are the student's accuracy on other real images, the expected privacy loss
of the synthetic table, and how much model inversion recovers from the student. Writes
results/results.json after every training, the picture and the table of README.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from dpaudit.errors import DataError
from dpaudit.plugins.named import named_generator
from dpaudit.seeds import Stream
from dpaudit.versions import versions
from dpaudit_generators.pate import TorchClassifier
from reports import markdown
from reports.artificial_data.pictures import (
    CLASSES,
    Images,
    draw,
    images_of,
    packed,
    read,
    schema_of,
)
from reports.command import Run, StudyParser, start, write_json
from reports.methods.inversion import inversion_success, invert
from reports.methods.privacy_loss import expected_privacy_loss

REPEATS = 5
SHAPE = {"critic_hidden": 128, "generator_hidden": [128]}
FAST = {"learning_rate": 2e-3, "critic_learning_rate": 2e-3}


class Size(NamedTuple):
    """How large a run is.

    Attributes:
        train: Real images that generators learn from; as many are generated.
        public: Real images without labels, for `pate-g`.
        test: Real images that students are tested on.
        rounds: Steps of a generator network.
        student: Steps of a student.
        records: Real images whose privacy loss is estimated.
    """

    train: int
    public: int
    test: int
    rounds: int
    student: int
    records: int


WHOLE = Size(train=4000, public=2000, test=4000, rounds=1200, student=1500, records=200)
QUICK = Size(train=300, public=100, test=200, rounds=5, student=50, records=10)


def generators(size: Size, public: Images) -> dict[str, tuple[str, dict[str, Any]]]:
    """For each source of tables its generator, by name and settings."""
    wasserstein = {**SHAPE, **FAST, "rounds": size.rounds}
    private = {
        "epsilon": 10.0,
        "rate": 64 / size.train,
        "batch": 64,
        "rounds": max(1, size.rounds // 3),
        "critic_hidden": 64,
        "generator_hidden": [128],
    }
    semi = {
        **wasserstein,
        "public": public.table().drop(columns="digit"),
        "epsilon": 10.0,
        "teachers": 40,
        "labels": min(100, len(public.labels)),
    }
    return {
        "wgan-gp": ("wgan-gp", wasserstein),
        "wgan-gp-dp-critic": ("wgan-gp-dp-critic", wasserstein),
        "dp-gan": ("dp-gan", private),
        "pate-g": ("pate-g", semi),
    }


REAL = "real"
SOURCES = (REAL, *generators(QUICK, Images(np.zeros((1, 4)), np.zeros(1, dtype=np.int64))))


def measured(source: str, number: int, images: Images, size: Size) -> dict[str, Any]:
    """Trains a generator and a student on what it gives, and measures both.

    Args:
        source: One of `SOURCES`.
        number: Which repeat.
        images: Real images: the first are for training, then public ones, then those of the test.
        size: How many.

    Returns:
        The measures.
    """
    begun = time.process_time()
    train = images.part(slice(size.train))
    public = images.part(slice(size.train, size.train + size.public))
    test = images.part(slice(size.train + size.public, size.train + size.public + size.test))
    schema, real = schema_of(train.pixels.shape[1]), train.table()
    seed = Stream(number, "artificial data", source).seed()
    synthetic = real
    if source != REAL:
        name, settings = generators(size, public)[source]
        generator = named_generator(name, settings, {"schema": schema}).generator
        synthetic = generator.fit(real, seed=seed).sample(size.train, seed=seed)
    trained = time.process_time() - begun
    student = trained_student(images_of(synthetic), steps=size.student, seed=seed)
    found = reconstructions(student.module_, inputs=train.pixels.shape[1])
    success = inversion_success(found, train.pixels, train.labels)
    row: dict[str, Any] = {
        "seconds": round(trained, 1),
        "accuracy": round(float(np.mean(student.predict(test.pixels) == test.labels)), 4),
        "recognised": success.recognised,
        "likeness": round(success.likeness, 4),
        "reconstructions": packed(found),
    }
    try:
        loss = expected_privacy_loss(real, synthetic, schema, records=size.records, seed=number)
    except DataError as error:
        return {**row, "no_loss": str(error)}
    return {**row, "loss": round(loss.mean, 7), "mu": round(loss.mu, 4)}


def trained_student(images: Images, *, steps: int, seed: int) -> TorchClassifier:
    """A perceptron with one hidden layer, trained on images."""
    rng = torch.Generator().manual_seed(seed)
    layers = [torch.nn.Linear(images.pixels.shape[1], 128), torch.nn.Linear(128, len(CLASSES))]
    for layer in layers:
        limit = layer.in_features**-0.5
        for part in layer.parameters():
            part.data.uniform_(-limit, limit, generator=rng)
    module = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    student = TorchClassifier(module=module, steps=steps, batch=64, rate=1e-3, random_state=seed)
    return student.fit(images.pixels, images.labels)


def reconstructions(
    logits: Callable[[torch.Tensor], torch.Tensor], *, inputs: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What model inversion recovers of each class [k, d]."""
    return np.stack([invert(logits, label=label, inputs=inputs) for label in range(len(CLASSES))])


HEADS = (
    *("student learns from", "student's accuracy", "mean privacy loss", "μ at γ = 1e-5"),
    *("recognised", "likeness", "CPU seconds of a training"),
)


def page(results: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The results as a table in Markdown: means over repeats, and their range."""
    rows = []
    for source in SOURCES:
        repeats = list(results.get(source, {}).values())
        if not repeats:
            continue
        losses = [one for one in repeats if "mu" in one]
        rows.append(
            [
                source,
                ranged([one["accuracy"] for one in repeats], 3),
                ranged([1000 * one["loss"] for one in losses], 2) + ("e-3" if losses else ""),
                ranged([one["mu"] for one in losses], 2),
                ranged([one["recognised"] for one in repeats], 2),
                ranged([one["likeness"] for one in repeats], 2),
                ranged([one["seconds"] for one in repeats], 0),
            ]
        )
    return markdown.table(HEADS, rows)


def ranged(values: Sequence[float], digits: int) -> str:
    """A mean, with the least and the largest in brackets."""
    if not values:
        return "–"
    ends = f" ({min(values):.{digits}f} to {max(values):.{digits}f})" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{ends}"


def finish(run: Run, results: dict[str, dict[str, dict[str, Any]]], train: Images) -> None:
    """Writes the results, the picture of first repeats, and the page of a whole run."""
    write_json(run.out / "results.json", {"versions": versions(), "results": results}, indent=1)
    means = np.stack(
        [train.pixels[train.labels == label].mean(axis=0) for label in range(len(CLASSES))]
    )
    first = {one: results[one]["0"]["reconstructions"] for one in SOURCES if results.get(one)}
    draw({"mean of the class": packed(means), **first}, run.out / "reconstructions.png")
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(results))


def main(given: Sequence[str] | None = None) -> None:
    """Measures what the results lack."""
    parser = StudyParser(__file__, __doc__, parts=SOURCES)
    run = parser.run_of(parser.parse_args(given))
    size, repeats = (QUICK, 1) if run.quick else (WHOLE, REPEATS)
    images, path = read(), run.out / "results.json"
    results = json.loads(path.read_text())["results"] if path.exists() else {}
    torch.set_num_threads(1)  # sums depend on how many there are
    for number in range(repeats):
        for source in run.parts:
            if str(number) in results.get(source, {}):
                continue
            row = measured(source, number, images, size)
            results.setdefault(source, {})[str(number)] = row
            finish(run, results, images.part(slice(size.train)))
            print(f"{number} {source}: accuracy {row['accuracy']}", flush=True)
    finish(run, results, images.part(slice(size.train)))
    print(page(results))


if __name__ == "__main__":
    start(main)
