"""A column is constant without one record, and noisy with it: pip install dpmm==0.1.9."""

import pandas as pd
from dpmm.pipelines import PrivBayesPipeline

TRIALS = 20
columns = [f"c{number}" for number in range(6)]
others = pd.DataFrame({name: ["a"] * 100 for name in columns})
others["c0"] = ["a", "b"] * 50
own = pd.DataFrame({name: ["z"] for name in columns})
own["c0"] = "a"
domain = {name: {"categories": ["a", "z"]} for name in columns}
domain["c0"] = {"categories": ["a", "b"]}
for name, table in (("without it", others), ("with z", pd.concat([others, own]))):
    seen = 0
    for seed in range(TRIALS):
        model = PrivBayesPipeline(
            epsilon=1.0, delta=1e-5, proc_epsilon=None, n_jobs=1, gen_kwargs={"n_iters": 20}
        )
        model.fit(table, domain, random_state=seed)
        seen += bool((model.generate(n_records=200, random_state=seed) == "z").to_numpy().any())
    print(f"{name}: 'z' appears in {seen} of {TRIALS} synthetic tables")
