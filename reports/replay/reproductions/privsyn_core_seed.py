"""privsyn-core 0.1.1, `random_state=0` as in its README: the noise is the same in every fit.

Documented: (epsilon, delta)-DP; `random_state` has no warning. With a seed that is public the noise
is a constant: an attacker reads it off a fit of a made-up table, and subtracts it.
"""

import tempfile

import numpy as np
import pandas as pd
from privsyn import PrivSynModel


def noisy(table):
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
