"""torch's noise, followed to the data that it is added to: by a world that answers itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.replaying.listening import marks
from dpaudit.replaying.listening import world as listening
from dpaudit.replaying.listening.hooks import torch_hook

torch = pytest.importorskip("torch")


class Asked(listening.ListeningWorld):
    """A world that answers its own questions with -1, and keeps them."""

    def __init__(self) -> None:
        super().__init__("in", None)
        self.active = True
        self.steps: list[dict[str, Any]] = []

    def ask(self, kind: str, where: Any, **fields: Any) -> dict[str, Any]:
        self.steps.append({"kind": kind, "site": where, **fields})
        return {"value": np.full(np.shape(fields["before"]), -1.0)}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Asked:
    world = Asked()
    monkeypatch.setattr(marks, "world", world, raising=False)
    monkeypatch.setattr(torch_hook, "torch", torch, raising=False)
    for name in ("NoiseTensor", "AnswerTensor"):
        monkeypatch.setattr(torch_hook, name, None)
    torch_hook._define()
    return world


def the_step(heard: Asked) -> tuple[str, list[float], list[float]]:
    """Law, widths and values before noise of the one step that was asked."""
    (step,) = heard.steps
    (part,) = step["parts"]
    widths = np.abs(np.asarray(part["factor"]) * np.asarray(part["scale"]))
    return part["law"], widths.ravel().tolist(), np.asarray(step["before"]).ravel().tolist()


def test_noise_is_followed_through_scaling_to_the_data(heard: Asked) -> None:
    noise = torch_hook._randn(2) * 3.0
    found = torch.tensor([5.0, 7.0]) + noise.reshape(1, 2)
    assert the_step(heard) == ("gaussian", [3.0, 3.0], [5.0, 7.0])
    assert found.tolist() == [[-1.0, -1.0]]
    assert found.dtype == torch.float32


@pytest.mark.parametrize(
    "draw",
    [
        lambda like: torch_hook._randn(2, device="meta"),
        lambda like: torch_hook._randn_like(like),
        lambda like: torch_hook._normal(0.0, 2.0, (2,), device="meta"),
        lambda like: torch_hook._rand(2, device="meta"),
        lambda like: torch_hook._rand_like(like),
        lambda like: torch_hook._randperm(2, device="meta"),
        lambda like: torch_hook._exponential_(like),
    ],
)
def test_draws_are_on_the_device_that_was_asked_for(heard: Asked, draw: Any) -> None:
    """`meta` holds no numbers: what is done with them on another device is not tested here."""
    assert draw(torch.empty(2, device="meta")).device.type == "meta"


def test_adding_in_place_answers_in_place(heard: Asked) -> None:
    data = torch.tensor([5.0, 7.0])
    data += torch_hook._normal(0.0, 2.0, (2,))
    assert the_step(heard) == ("gaussian", [2.0, 2.0], [5.0, 7.0])
    assert data.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("kind", ["Laplace", "Gumbel"])
def test_distributions_add_their_noise_to_their_middle(heard: Asked, kind: str) -> None:
    law = getattr(torch.distributions, kind)(torch.tensor([5.0, 7.0]), 0.5)
    found = torch_hook._of_distribution(kind.lower())(law)
    assert the_step(heard) == (kind.lower(), [0.5, 0.5], [5.0, 7.0])
    assert found.tolist() == [-1.0, -1.0]


@pytest.mark.parametrize("fill", ["normal_", "exponential_"])
def test_a_tensor_filled_with_noise_is_noise_under_its_old_name(heard: Asked, fill: str) -> None:
    noise = torch.empty(2)
    getattr(torch_hook, f"_{fill}")(noise)
    assert (torch.tensor([5.0, 7.0]) - noise).tolist() == [-1.0, -1.0]
    law, widths, before = the_step(heard)
    assert (law, widths, before) == (
        {"normal_": "gaussian", "exponential_": "exponential"}[fill],
        [1.0, 1.0],
        [5.0, 7.0],
    )


def test_noise_that_meets_no_data_is_spent(heard: Asked) -> None:
    latent = torch_hook._randn(3, 2)
    found = torch.tanh(latent)
    assert type(found) is torch.Tensor
    assert not heard.steps
    assert heard.end()["unseen"] == []


def test_noise_and_answers_in_one_tensor_are_both_used(heard: Asked) -> None:
    answers = torch.tensor([5.0, 7.0]) + torch_hook._randn(2)
    found = torch.cat([answers, torch_hook._randn(1)])
    assert type(found) is torch.Tensor
    assert heard.released[:2].all()
    assert heard.end()["unseen"] == []


def test_noise_that_is_joined_is_followed_to_the_data(heard: Asked) -> None:
    noise = torch.cat([torch_hook._randn(1) * 3.0, torch_hook._randn(2) * 2.0])
    found = torch.tensor([5.0, 7.0, 9.0]) + noise
    assert the_step(heard) == ("gaussian", [3.0, 2.0, 2.0], [5.0, 7.0, 9.0])
    assert found.tolist() == [-1.0, -1.0, -1.0]
