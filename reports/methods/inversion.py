"""Model inversion: what the inputs of a class look like, recovered from a classifier's confidence.

Fredrikson, Jha and Ristenpart 2015 (algorithm MI-Face): descend from an empty input towards one of
which the classifier is sure. What comes out resembles what the class has in common, which says
something of its members where they are alike, as the pictures of one person are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from dpaudit.errors import DataError, MissingExtraError, SettingsError
from dpaudit.plugins.protocols import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


class InversionSuccess(NamedTuple):
    """How much reconstructions have in common with what they should show.

    Attributes:
        recognised: Share of them that are most like the mean of their own class; of k classes 1/k
            is what pictures of nothing get.
        likeness: Mean correlation with the mean of their own class, both without what all classes
            have in common.
    """

    recognised: float
    likeness: float


def invert(
    logits: Callable[[Tensor], Tensor],
    *,
    label: int,
    inputs: int,
    steps: int = 500,
    rate: float = 0.1,
    enough: float = 0.99,
) -> FloatArray:
    """Reconstructs an input of a class.

    Args:
        logits: The classifier: from inputs [n, d] in [0, 1] to logits [n, classes].
        label: The class.
        inputs: Number d of inputs.
        steps: Steps of gradient descent at most.
        rate: How far the largest input moves in a step.
        enough: Confidence at which to stop.

    Returns:
        The input [d] in [0, 1] of which the classifier was surest on the way.

    Raises:
        SettingsError: If a number is out of range.
        MissingExtraError: If torch is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("model inversion", "torch", "torch") from None
    if inputs < 1 or steps < 1:
        raise SettingsError(f"`inputs` ({inputs}) and `steps` ({steps}) begin at 1")
    if not (rate > 0.0 and 0.0 < enough <= 1.0):
        raise SettingsError(f"`rate` ({rate}) is positive, `enough` ({enough}) in (0, 1]")
    point = torch.zeros(1, inputs)
    best, surest = point, -1.0
    for _ in range(steps):
        point = point.detach().requires_grad_()
        # The logarithm has a slope where the confidence itself is flat.
        log_confidence = torch.log_softmax(logits(point), dim=1)[0, label]
        confidence = float(log_confidence.detach().exp())
        if confidence > surest:
            best, surest = point.detach(), confidence
        if confidence >= enough:
            break
        [slope] = torch.autograd.grad(log_confidence, point)
        largest = float(slope.abs().max())
        if largest == 0.0:
            break
        point = (point + rate / largest * slope).clamp(0.0, 1.0)
    return np.asarray(best[0].numpy(), dtype=np.float64)


def inversion_success(
    reconstructions: FloatArray, images: FloatArray, labels: npt.NDArray[np.int64]
) -> InversionSuccess:
    """Compares reconstructions with the means of the classes that they should show.

    Args:
        reconstructions: One [k, d] for each class, in the order of the classes.
        images: Real inputs [n, d].
        labels: Their classes [n], from 0 to k - 1.

    Returns:
        How many are recognised, and how alike they are.

    Raises:
        DataError: If a class has no image, or there are fewer than two classes.
    """
    classes = len(reconstructions)
    if classes < 2 or set(labels.tolist()) != set(range(classes)):
        raise DataError(f"{classes} reconstructions: give images of as many classes, from 0 on")
    means = np.stack([images[labels == one].mean(axis=0) for one in range(classes)])
    found = _unit(reconstructions) @ _unit(means).T
    return InversionSuccess(
        float(np.mean(found.argmax(axis=1) == np.arange(classes))), float(found.diagonal().mean())
    )


def _unit(rows: FloatArray) -> FloatArray:
    """Rows without what all have in common, of length 1; a row that has nothing else stays 0."""
    own = rows - rows.mean(axis=0)
    own = own - own.mean(axis=1, keepdims=True)
    length = np.linalg.norm(own, axis=1, keepdims=True)
    unit: FloatArray = own / np.where(length > 0, length, 1.0)
    return unit
