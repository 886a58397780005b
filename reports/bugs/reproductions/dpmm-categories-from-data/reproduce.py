"""A category appears only if a record has it: pip install dpmm==0.1.9."""

import logging

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

TRIALS = 20
logging.disable()
columns = [f"c{number}" for number in range(6)]
others = pd.DataFrame({name: ["a", "b"] * 50 for name in columns})
own = pd.DataFrame({name: ["z"] for name in columns})
for name, table in (("without it", others), ("with z", pd.concat([others, own]))):
    seen = 0
    for seed in range(TRIALS):
        model = PrivBayesPipeline(
            epsilon=1.0, delta=1e-5, proc_epsilon=None, n_jobs=1, gen_kwargs={"n_iters": 20}
        )
        model.fit(table, {}, random_state=seed)
        seen += bool((model.generate(n_records=200, random_state=seed) == "z").to_numpy().any())
    print(f"{name}: 'z' appears in {seen} of {TRIALS} synthetic tables")
