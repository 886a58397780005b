"""Model inversion recovers what classes look like, and nothing where nothing was learned."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from dpaudit.errors import DataError, MissingExtraError, SettingsError
from reports.methods.inversion import inversion_success, invert

IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16.0


def student(labels: np.ndarray, seed: int) -> torch.nn.Module:
    """A softmax regression on the digits."""
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Linear(64, 10)
    with torch.no_grad():
        model.weight.copy_(0.01 * torch.randn(10, 64, generator=generator))
        model.bias.zero_()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    inputs, targets = torch.tensor(IMAGES, dtype=torch.float32), torch.tensor(labels)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model


def inverted(model: torch.nn.Module) -> np.ndarray:
    return np.stack([invert(model, label=label, inputs=64) for label in range(10)])


def test_classes_of_a_student_are_recognised() -> None:
    found = inverted(student(LABELS, 1))
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    success = inversion_success(found, IMAGES, LABELS)
    assert success.recognised >= 0.7
    assert success.likeness > 0.2


def test_a_student_of_shuffled_labels_shows_nothing() -> None:
    recognised, likeness = [], []
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(LABELS)
        success = inversion_success(inverted(student(shuffled, seed)), IMAGES, LABELS)
        recognised.append(success.recognised)
        likeness.append(success.likeness)
    assert np.mean(recognised) < 0.3
    assert abs(np.mean(likeness)) < 0.1


def test_success_by_hand() -> None:
    images, labels = np.eye(3), np.arange(3)
    assert inversion_success(np.eye(3), images, labels) == pytest.approx((1.0, 1.0))
    assert inversion_success(np.eye(3)[[1, 2, 0]], images, labels) == pytest.approx((0.0, -0.5))
    assert inversion_success(np.zeros((3, 3)), images, labels).likeness == 0.0
    with pytest.raises(DataError, match="as many classes"):
        inversion_success(np.eye(3), images, np.array([0, 1, 1]))


def test_the_surest_input_is_kept_and_sure_is_enough() -> None:
    weights = torch.tensor([[4.0, -4.0], [-4.0, 4.0]])
    found = invert(lambda inputs: inputs @ weights, label=1, inputs=2)
    assert found[1] > 0.5
    assert found[0] == 0.0
    barely = invert(lambda inputs: inputs @ weights, label=1, inputs=2, enough=0.5)
    assert barely.tolist() == [0.0, 0.0]  # both classes are as likely to begin with
    constant = invert(lambda inputs: 0.0 * inputs, label=0, inputs=2)
    assert constant.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("given", [{"inputs": 0}, {"steps": 0}, {"rate": 0.0}, {"enough": 1.5}])
def test_numbers_out_of_range_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(SettingsError):
        invert(lambda inputs: inputs, **{"label": 0, "inputs": 2, **given})  # type: ignore[arg-type]


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[torch\]'"):
        invert(lambda inputs: inputs, label=0, inputs=2)
