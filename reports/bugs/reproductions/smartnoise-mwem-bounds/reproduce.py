"""The histogram ends at the last bin that a record is in: pip install smartnoise-synth==1.0.8."""

import contextlib
import warnings

import pandas as pd
from snsynth import Synthesizer
from snsynth.transform import BinTransformer, TableTransformer

TRIALS = 20
warnings.simplefilter("ignore")
others = [5.0, 15.0] * 20
for own in (5.0, 95.0):  # neighbouring tables: one record is replaced
    table, above = pd.DataFrame({"x": [*others, own]}), 0
    for _ in range(TRIALS):
        bins = TableTransformer([BinTransformer(bins=10, lower=0.0, upper=100.0)])
        model = Synthesizer.create("mwem", epsilon=1.0, iterations=4)
        with contextlib.redirect_stdout(None):
            model.fit(table, transformer=bins)
        above += bool((model.sample(41)["x"] > 20).any())
    print(f"own value {own:g}: a value above 20 in {above} of {TRIALS} synthetic tables")
