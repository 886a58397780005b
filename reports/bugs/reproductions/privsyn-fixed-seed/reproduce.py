"""Known noise is subtracted: pip install privsyn-core==0.1.1."""

import tempfile

import numpy as np
import pandas as pd
from privsyn import PrivSynModel


def noisy(table: pd.DataFrame) -> np.ndarray:
    """The noisy counts of `a` in a fitted model."""
    with tempfile.TemporaryDirectory() as folder:
        model = PrivSynModel(epsilon=1.0, delta=1e-6, random_state=0, artifact_root=folder)
        model.fit(table, {"a": 3, "b": 3, "c": 3})
    return np.asarray(model._generator.one_way_marg_dict[("a",)].count)


private = pd.DataFrame(np.random.default_rng(1).integers(0, 3, size=(300, 3)), columns=list("abc"))
made_up = pd.DataFrame({name: np.arange(300) % 3 for name in "abc"})
noise = noisy(made_up) - 100  # each of its counts is 100
released = noisy(private)
print("noisy counts:", np.round(released, 3))
print("without the known noise:", np.round(released - noise, 3))
print("true counts:", np.bincount(private["a"]))
