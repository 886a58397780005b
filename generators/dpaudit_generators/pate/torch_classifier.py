"""A torch module that behaves like a scikit-learn classifier."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpaudit.errors import SettingsError

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(kw_only=True)
class TorchClassifier:
    """Trains a copy of a module by Adam on the cross-entropy of minibatches.

    Importing this module does not import torch; fitting does.

    Attributes:
        module: Maps float32 rows [n, width] to logits [n, classes]. Every fit starts from a copy
            of it, so its weights must be public: fresh, or those of a public model.
        steps: Number of minibatches in a training.
        batch: Size of a minibatch, which is drawn with replacement.
        rate: Learning rate.
        random_state: Seeds the choice of minibatches.

    Raises:
        SettingsError: If a setting is out of range.
    """

    module: Module
    steps: int = 200
    batch: int = 32
    rate: float = 1e-2
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1 or not self.rate > 0.0:
            raise SettingsError("steps and batch must be at least 1, and rate above 0")

    def fit(self, rows: npt.ArrayLike, labels: npt.ArrayLike) -> TorchClassifier:
        """Trains on rows [n, width] and class positions [n]."""
        import torch

        inputs = torch.as_tensor(np.asarray(rows, dtype=np.float32))
        classes = torch.as_tensor(np.asarray(labels, dtype=np.int64))
        rng = torch.Generator().manual_seed(self.random_state)
        self.module_ = copy.deepcopy(self.module).train()
        adam = torch.optim.Adam(self.module_.parameters(), lr=self.rate)
        for _ in range(self.steps):
            chosen = torch.randint(len(inputs), (self.batch,), generator=rng)
            loss = torch.nn.functional.cross_entropy(self.module_(inputs[chosen]), classes[chosen])
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        self.module_.eval()
        return self

    def predict(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Predicts class positions [n] of rows [n, width]."""
        import torch

        with torch.no_grad():
            logits = self.module_(torch.as_tensor(np.asarray(rows, dtype=np.float32)))
        return np.asarray(logits.argmax(dim=1).numpy(), dtype=np.int64)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as scikit-learn's `clone` needs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **settings: Any) -> TorchClassifier:
        """Changes settings."""
        for name, value in settings.items():
            setattr(self, name, value)
        return self
