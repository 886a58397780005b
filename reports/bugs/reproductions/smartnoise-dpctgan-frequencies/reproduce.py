"""Exact shares of categories: pip install smartnoise-synth==1.0.8."""

import warnings

import numpy as np
import pandas as pd
from snsynth import Synthesizer

warnings.simplefilter("ignore")
table = pd.DataFrame({"illness": ["no"] * 599 + ["yes"] * 1, "sex": ["f", "m"] * 300})
for name, rows in (("with", table), ("without", table[:-1])):
    made = Synthesizer.create("dpctgan", epsilon=1.0, epochs=1, batch_size=100, verbose=False)
    made.fit(rows, categorical_columns=["illness", "sex"])
    shares = made._data_sampler.discrete_column_category_prob
    print(f"{name} the record: {np.round(shares, 6).tolist()}")
