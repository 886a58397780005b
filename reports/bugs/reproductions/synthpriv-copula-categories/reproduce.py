"""A category appears only if a record has it: pip install synthpriv==0.2.1."""

import logging

import pandas as pd
from synthpriv.dp.copula import DPCopulaGenerator
from synthpriv.privacy.mechanisms import DPSGD

TRIALS = 50
logging.disable()
columns = [f"c{number}" for number in range(10)]
others = pd.DataFrame({name: ["a", "b"] * 300 for name in columns})
own = pd.DataFrame({name: ["z"] for name in columns})
for name, table in (("without it", others), ("with z", pd.concat([others, own]))):
    seen = 0
    for seed in range(TRIALS):
        model = DPCopulaGenerator(DPSGD(epsilon=1.0), random_state=seed)
        model.fit(table)
        seen += bool((model.sample(100) == "z").to_numpy().any())
    print(f"{name}: 'z' appears in {seen} of {TRIALS} synthetic tables")
