"""The number of records is released: pip install smartnoise-synth==1.0.8."""

import warnings

import numpy as np
import pandas as pd
from snsynth import Synthesizer

warnings.simplefilter("ignore")
rng = np.random.default_rng(1)
table = pd.DataFrame({name: rng.integers(0, 3, size=100) for name in "abc"})
for name, rows in (("with", table), ("without", table[:-1])):
    for _ in range(2):
        made = Synthesizer.create("mst", epsilon=1.0, delta=1e-5)
        made.fit(rows, categorical_columns=list("abc"))
        total = float(made.synthesizer.project(["col0"]).datavector().sum())
        print(f"{name} the record: total {total:.3f}, {len(made.sample())} rows")
