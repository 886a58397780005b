"""Adam for stacked weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

_SMALL: Final = 1e-8


class Adam:
    """Adam (Kingma and Ba 2015, Algorithm 1) on stacked buffers, elementwise.

    Padding has no gradient and stays 0.

    Args:
        weights: Tensors to train, in place.
        rate: Learning rate.
        betas: Decay rates of the two moments.
    """

    def __init__(self, weights: Sequence[Tensor], *, rate: float, betas: Sequence[float]) -> None:
        self._weights = list(weights)
        self._means = [torch.zeros_like(weight) for weight in weights]
        self._squares = [torch.zeros_like(weight) for weight in weights]
        self._steps = [torch.tensor(0.0, device=self._weights[0].device)] * len(self._weights)
        self._rate, self._betas = rate, betas

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Takes one step down the gradients."""
        self._steps[0].add_(1.0)
        # What `torch.optim.Adam(fused=True)` runs, in one pass over the memory. The class itself
        # would import torch's compiler, which takes longer than many trainings.
        torch._fused_adam_(
            *(self._weights, list(gradients), self._means, self._squares, [], self._steps),
            lr=self._rate,
            beta1=self._betas[0],
            beta2=self._betas[1],
            weight_decay=0.0,
            eps=_SMALL,
            amsgrad=False,
            maximize=False,
        )
