"""Students, teachers and generators of published PATE-GANs, against the same in plain torch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dpaudit_generators.networks.model import (
    Activation,
    Architecture,
    Descent,
    Layer,
    Shortcut,
    Start,
    flat,
)
from dpaudit_generators.networks.stack import Adam, Networks, draw_weights, steepness, with_ones
from dpaudit_generators.published import recipes
from dpaudit_generators.published.recipes import Loss
from dpaudit_generators.published.student import Dropouts, Likeness, Students
from dpaudit_generators.published.teachers import NetworkTeachers, Partition
from dpaudit_generators.published.trainee import Form, PublishedSettings, PublishedTrainee

SHAPES = [
    Architecture(hidden=(5, 4), activation=Activation.HARDLY_LEAKY),
    Architecture(hidden=(5, 4), activation=Activation.LEAKY, shortcut=Shortcut.APPENDED),
    Architecture(hidden=(6, 6), activation=Activation.LEAKY, shortcut=Shortcut.ADDED),
]


def plain(shape: Architecture, weights: list[Tensor], rows: Tensor) -> Tensor:
    """A perceptron in plain torch, without dropout."""
    slope = 0.01 if shape.activation is Activation.HARDLY_LEAKY else 0.2
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        out = torch.nn.functional.leaky_relu(rows @ weight + bias, slope)
        if shape.shortcut is Shortcut.APPENDED:
            out = torch.cat([out, rows], dim=1)
        elif shape.shortcut is Shortcut.ADDED and out.shape == rows.shape:
            out = out + rows
        rows = out
    return rows @ weights[-2] + weights[-1]


def parameters(shape: Architecture, inputs: int, seed: int) -> list[Tensor]:
    layers = shape.layers(inputs, 1)
    found = draw_weights(layers, np.random.default_rng(seed), start=Start.BY_INPUTS)
    return [torch.tensor(part[0], requires_grad=True) for part in found]


def networks(shape: Architecture, weights: list[Tensor]) -> Networks:
    arrays = tuple(part.detach().numpy().reshape(1, -1, part.shape[-1]) for part in weights)
    return Networks([arrays], shape, recipes.synthcity(3).descent)


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_steepness_are_those_of_plain_torch(shape: Architecture) -> None:
    weights, rows = parameters(shape, 6, 1), torch.rand(7, 6)
    mine = networks(shape, weights)
    stacked = with_ones(rows)[None]
    torch.testing.assert_close(mine(stacked)[0, :, :1], plain(shape, weights, rows))
    rows.requires_grad_()
    (slopes,) = torch.autograd.grad(plain(shape, weights, rows).sum(), rows, create_graph=True)
    length = slopes.norm(dim=1)
    found = steepness(lambda at: mine(at)[..., 0], stacked, 6)
    torch.testing.assert_close(found[0], length)
    wanted = torch.autograd.grad(((length - 1.0) ** 2).mean(), weights[0])[0]
    (own,) = torch.autograd.grad([((found - 1.0) ** 2).mean()], [mine.parameters[0]])
    torch.testing.assert_close(own[0, :6, : wanted.shape[1]], wanted)


def test_shortcuts_that_append_widen_the_layers_behind_them() -> None:
    shape = Architecture(hidden=(100, 100), shortcut=Shortcut.APPENDED)
    assert shape.layers(161, 109) == (Layer(161, 100), Layer(261, 261), Layer(522, 109))
    assert Architecture(hidden=(100, 100)).layers(161, 109)[1:] == (
        Layer(100, 100),
        Layer(100, 109),
    )


def test_starts() -> None:
    rng = np.random.default_rng(0)
    layers = [Layer(400, 300)]
    weight, bias = draw_weights(layers, rng, k=2, start=Start.HE)
    assert weight.shape == (2, 400, 300)
    assert weight.std() == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert np.abs(weight).max() > 3 * weight.std()  # normal, not uniform
    assert not bias.any()
    weight, bias = draw_weights(layers, rng, start=Start.GLOROT_BIASED)
    assert np.abs(weight).max() == pytest.approx((6 / 700) ** 0.5, rel=0.01)
    assert (bias == np.float32(0.01)).all()
    assert not draw_weights(layers, rng, start=Start.GLOROT)[1].any()
    weight, bias = draw_weights(layers, rng, start=Start.BY_INPUTS)
    assert np.abs(weight).max() == pytest.approx(0.05, rel=0.01)
    assert 0.04 < np.abs(bias).max() <= 0.05


def test_a_transposed_gradient_moves_the_weights_that_it_is_of() -> None:
    gradient = torch.randn(2, 16, 32, generator=torch.Generator().manual_seed(1)).transpose(1, 2)
    moved = []
    for form in (gradient, gradient.contiguous()):
        weight = torch.zeros(2, 32, 16)
        Adam([weight], Descent(0.1, (0.9, 0.999)))([form])
        moved.append(weight)
    torch.testing.assert_close(moved[0], -0.1 * gradient.sign())
    assert torch.equal(*moved)


def test_a_gradient_beyond_the_norm_is_shrunk_to_it() -> None:
    shape, weights = SHAPES[0], parameters(SHAPES[0], 6, 1)
    arrays = tuple(part.detach().numpy().reshape(1, -1, part.shape[-1]) for part in weights)
    recipe = replace(recipes.updated(3), rate=1.0)  # its steps grow with the gradient
    rows = with_ones(torch.rand(1, 7, 6))
    steps = {}
    for norm in (0.0, 0.01, 1e6):
        mine = Networks([arrays], shape, recipe.descent._replace(norm=norm))
        mine.descend(mine(rows).sum())
        steps[norm] = np.abs(
            flat(mine.weights([0])[0]) - np.concatenate([a.ravel() for a in arrays])
        ).max()
    assert steps[0.0] == pytest.approx(steps[1e6], rel=1e-5)
    assert steps[0.01] < 0.05 * steps[0.0]


def test_only_the_student_is_clipped() -> None:
    form = Form(np.arange(4), 4, (), ())
    recipe = recipes.updated(4)
    students = Students([1], form=form, recipe=recipe)
    before = flat(students._networks.weights([0])[0])
    rows = with_ones(torch.rand(1, 8, 4))
    students.train(rows, rows[..., :0], np.ones((1, 8), dtype=np.int64))
    assert np.abs(before).max() > 0.1
    assert np.abs(flat(students._networks.weights([0])[0])).max() <= recipe.clip + 1e-9


def test_dropout_keeps_the_mean_and_the_ones() -> None:
    factors = Dropouts([1, 2], 0.25)(200, 30)
    assert factors.shape == (2, 200, 32)
    assert (factors[..., 30] == 1.0).all()
    dropped = (factors[..., :30] == 0.0).float().mean()
    assert float(dropped) == pytest.approx(0.25, abs=0.02)
    assert factors[..., :30].unique().tolist() == pytest.approx([0.0, 4 / 3])
    assert not torch.equal(factors[0], factors[1])


def test_slopes_of_a_critic_with_means() -> None:
    form = Form(np.arange(3), 3, (), ())
    recipe = replace(recipes.synthcity(3), loss=Loss.MEANS)
    students = Students([1], form=form, recipe=recipe)
    target = torch.tensor([[1.0, 0.0, 0.0, 1.0, 1.0]])
    outputs = torch.zeros(1, 5, requires_grad=True)

    def slopes(labels: Tensor) -> list[float]:
        (slope,) = torch.autograd.grad(students._loss(outputs, labels, batch=5), outputs)
        return slope[0].tolist()

    assert slopes(target) == pytest.approx([-1 / 3, 1 / 2, 1 / 2, -1 / 3, -1 / 3])
    assert slopes(torch.ones(1, 5)) == pytest.approx([-0.2] * 5)


def test_likeness_is_the_cross_entropy_of_the_columns_that_conditions_are_about() -> None:
    groups = (slice(0, 2), slice(2, 5))
    form = Form(np.arange(6), 6, groups, groups)
    rng = np.random.default_rng(2)
    fakes = torch.tensor(rng.random((1, 4, 16)), dtype=torch.float32)
    real = torch.zeros(1, 4, 16)
    for group in groups:
        for row, place in enumerate(rng.integers(group.start, group.stop, 4)):
            real[0, row, place] = 1.0
    hints = torch.zeros(1, 4, 5)
    for row, place in enumerate((0, 3, 4, 1)):
        hints[0, row, place] = 1.0
    wanted = torch.zeros(4, 16)
    for group, rows in ((groups[0], [0, 3]), (groups[1], [1, 2])):
        own = fakes[0].clone().requires_grad_()
        chosen = real[0, rows, group].argmax(dim=1)
        loss = torch.nn.functional.nll_loss(torch.log(own[rows, group] + 1e-8), chosen) / 4
        wanted += torch.autograd.grad(loss, own)[0]
    torch.testing.assert_close(Likeness(form).slope(fakes, real, hints)[0], wanted)


def teachers(batch: int, *, steps: int = 50) -> tuple[NetworkTeachers, Partition]:
    """Two of borealis' teachers and their parts."""
    records = np.random.default_rng(0).random((20, 3), dtype=np.float32)
    trainee = PublishedTrainee(records, records, records[:, :0], np.arange(20), 7)
    recipe = replace(recipes.borealis(3), teacher_steps=steps)
    settings = PublishedSettings(
        teachers=2,
        batch=batch,
        iterations=1,
        gamma=1.0,
        epsilon=1.0,
        inverse=1e5,
        switches=frozenset(),
    )
    partition = Partition(trainee, recipe, settings)
    return NetworkTeachers([trainee], [partition], recipe=recipe, batch=batch), partition


@pytest.mark.parametrize("batch", [4, 11])
def test_minibatches_without_replacement(batch: int) -> None:
    some, partition = teachers(batch)
    rows, filled = some._minibatches()
    assert filled.all()
    for part, mine in zip(partition.parts, rows[0].reshape(2, 50, batch).numpy(), strict=True):
        for step in mine:
            first = step[: len(part)]
            assert len(set(first)) == len(first)
            assert set(step) <= set(part)
            assert (step[len(part) :] == step[: max(0, batch - len(part))]).all()
        assert set(mine.ravel()) == set(part)


def test_borealis_as_released() -> None:
    recipe = recipes.borealis(29)
    assert (recipe.noise_width, recipe.generator.hidden) == (8, (16,))
    assert recipe.teacher.hidden == recipe.student.hidden == (14,)
    assert recipes.borealis(30).noise_width == 7
    weights = teachers(4)[0]._networks.weights([0])[0]
    assert all((bias == np.float32(0.01)).all() for bias in weights[1::2])


def test_teachers_take_real_and_generated_records_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    some, _ = teachers(4, steps=3)
    seen: list[tuple[int, float]] = []
    descend = some._descend

    def noted(records: Tensor, target: Tensor, weight: Tensor) -> None:
        seen.append((records.shape[1], float(target.mean())))
        descend(records, target, weight)

    monkeypatch.setattr(some, "_descend", noted)
    some.train(with_ones(torch.rand(1, 12, 3)), None)
    assert seen == 3 * [(4, 1.0), (4, 0.0)]
