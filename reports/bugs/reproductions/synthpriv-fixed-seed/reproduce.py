"""The noise is a public constant: pip install synthpriv==0.2.1."""

import logging

import pandas as pd
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.privacy.mechanisms import DPSGD


def synthetic(values: list[float], **given: int) -> float:
    """The first synthetic value of a fit."""
    model = DPCopulaGenerator(DPSGD(epsilon=1.0), bounds={"x": (0, 1)}, **given)
    model.fit(pd.DataFrame({"x": values}))
    return float(model.sample(1)["x"][0])


logging.disable()
others = [0.2] * 10
for own, values in (("without it", others), ("with 0.9", [*others, 0.9])):
    print(f"{own}: values in 100 fits {len({synthetic(values) for _ in range(100)})}")
    seeds = {synthetic(values, random_state=seed) for seed in range(100)}
    print(f"{own}, seeds given: values in 100 fits {len(seeds)}")
print(f"first value: {synthetic(others):.6f} without it, {synthetic([*others, 0.9]):.6f} with it")
